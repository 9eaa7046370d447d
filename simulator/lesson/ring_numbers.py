"""Numbers of a ring of devices that a lesson's text may ask for; they join `FUNCTIONS`."""

from __future__ import annotations

from functools import lru_cache

from simulator.base.errors import refuse
from simulator.lesson.numbers import Numbers, known
from simulator.problem.hardware import links
from simulator.problem.scenario import MAX_DEVICES, Layout, Scenario
from simulator.problem.workload import Workload, read_inputs, resolve
from simulator.study.ring.dealing import DEVICES, LAYOUTS
from simulator.study.ring.numbers import ring_numbers, why_no_numbers
from simulator.study.ring.timeline import RingTimeline, ring_timeline
from simulator.study.ring.work import Ring, ring_of, ring_work, why_no_ring


@known
def ring_time(
    n: Numbers, figure: str, layout: str = "", link: str = "NVLink-4", sending: str = "during"
) -> float:
    """Seconds, "idle" share, "speed-up" over one device, largest and smallest share of FLOPs.

    `layout` is that of the scenario if it is empty; blocks are sent "during" the work or "after".
    """
    if link not in links():
        raise refuse("", "link", link, f"one of {', '.join(links())}")
    if sending not in ("during", "after"):
        raise refuse("", "sending", sending, "one of during, after")
    found = _timeline(_ring(n, layout), link, sending == "during")
    shares = found.work.flops.sum(axis=1) / max(int(found.work.flops.sum()), 1)
    figures = {"seconds": found.seconds, "idle": found.idle, "speed-up": found.speed_up,
               "most": float(shares.max()), "least": float(shares.min())}  # fmt: skip
    if figure not in figures:
        raise refuse("", "figure", figure, f"one of {', '.join(figures)}")
    return figures[figure]


@known
def ring_sent(n: Numbers) -> int:
    """Bytes that a link of the scenario's ring carries at most."""
    return int(ring_work(_ring(n, "")).sent.sum(axis=1).max())


@known
def ring_devices(n: Numbers) -> int:
    """Devices of the scenario's ring."""
    return _ring(n, "").devices


@known
def ring_error(n: Numbers, layout: str = "") -> float:
    """How far O of the ring is from float64 at most."""
    ring = _ring(n, layout)
    why = why_no_numbers(ring)
    if why:
        raise refuse("", "tokens", ring.workload.seqlen_k, why)
    return _error(n.scenario, ring, n.head)


def _ring(n: Numbers, layout: str) -> Ring:
    said, w = n.scenario.tiling, _workload(n.scenario)
    why = why_no_ring(w)
    if why:
        raise refuse("", "ring", "", why)
    wanted = layout or said.layout or LAYOUTS[0]
    for each in LAYOUTS:
        if each == wanted:
            return _dealt(n.scenario, said.devices or DEVICES, each)
    raise refuse("", "layout", layout, f"one of {', '.join(LAYOUTS)}")


@lru_cache(maxsize=2)
def _workload(scenario: Scenario) -> Workload:
    return resolve(scenario)


@lru_cache(maxsize=MAX_DEVICES)
def _dealt(scenario: Scenario, devices: int, layout: Layout) -> Ring:
    return ring_of(_workload(scenario), devices, layout)


@lru_cache(maxsize=MAX_DEVICES)
def _timeline(ring: Ring, link: str, overlapped: bool) -> RingTimeline:
    return ring_timeline(ring_work(ring), links()[link], overlapped)


@lru_cache(maxsize=len(LAYOUTS))
def _error(scenario: Scenario, ring: Ring, head: int) -> float:
    inputs = ring.workload.posed(read_inputs(_workload(scenario)))
    return ring_numbers(ring, inputs, head).error
