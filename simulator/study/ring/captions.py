"""Numbers of a ring of devices that captions may ask for."""

from __future__ import annotations

from functools import lru_cache

from simulator.base.errors import refuse
from simulator.problem.hardware import links
from simulator.problem.scenario import Layout, Scenario
from simulator.problem.values import MAX_DEVICES
from simulator.run.trace import Trace
from simulator.study.captions import Numbers, chosen, known, named, once_a_run, program_of
from simulator.study.ring.dealing import DEVICES, LAYOUTS
from simulator.study.ring.numbers import ring_numbers, why_no_numbers
from simulator.study.ring.timeline import RingTimeline, ring_timeline
from simulator.study.ring.work import Ring, ring_of, ring_work, why_no_ring


@known
def ring_time(
    n: Numbers, figure: str, layout: str = "", link: str = "NVLink-4", sending: str = "during"
) -> float:
    """`seconds`, `idle` share, `speed-up` over one device; `most`, `least` share of FLOPs of one.

    `layout` is that of the scenario if it is empty; blocks are sent `during` the work or `after`.
    """
    named("link", link, links())
    sending = chosen("sending", sending, ("during", "after"))
    found = _timeline(_ring(n, layout), link, sending == "during")
    shares = found.work.flops.sum(axis=1) / max(int(found.work.flops.sum()), 1)
    figures = {"seconds": found.seconds, "idle": found.idle, "speed-up": found.speed_up,
               "most": float(shares.max()), "least": float(shares.min())}  # fmt: skip
    return named("figure", figure, figures)


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
    return _error(n.trace, ring, n.head)


def _ring(n: Numbers, layout: str) -> Ring:
    said, why = n.scenario.tiling, why_no_ring(n.workload)
    if why:
        raise refuse("", "ring", "", why)
    wanted = chosen("layout", layout or said.layout or LAYOUTS[0], LAYOUTS)
    return _dealt(n.scenario, said.devices or DEVICES, wanted)


@lru_cache(maxsize=MAX_DEVICES)
def _dealt(scenario: Scenario, devices: int, layout: Layout) -> Ring:
    return ring_of(program_of(scenario).workload, devices, layout)


@lru_cache(maxsize=MAX_DEVICES)
def _timeline(ring: Ring, link: str, overlapped: bool) -> RingTimeline:
    return ring_timeline(ring_work(ring), links()[link], overlapped)


@once_a_run
def _error(trace: Trace, ring: Ring, head: int) -> float:
    return ring_numbers(ring, ring.workload.posed(trace.inputs), head).error
