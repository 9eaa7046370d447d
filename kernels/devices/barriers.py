"""A watched kernel without one of its barriers, and the race that it then has."""

from __future__ import annotations

import logging
import re
from dataclasses import replace
from functools import lru_cache
from subprocess import SubprocessError

from kernels.build.sources import whole_lines, whole_source
from kernels.devices.host.device import HostDevice
from kernels.devices.host.module import HostModule
from kernels.devices.host.watch import Side, watch_reason
from kernels.devices.races import MOST_PAIRS, launch_all
from kernels.errors import KernelError
from simulator.base.errors import refuse
from simulator.problem.scenario import Scenario
from simulator.problem.workload import Workload, read_inputs, resolve
from simulator.study.barrier import RECORDED, BarrierRace, recorded_race

SEEN = "Seen on this machine"
UNSEEN = f"{RECORDED}: this machine cannot watch kernels"
_BARRIER = re.compile(r"__sync(?:threads|warp)\(\)(?=;\s*// (.+))")
_TENSOR = re.compile(r"(\w+)_shared\b")


class WithoutBarrier(HostDevice):
    """A device that watches, on which `instead` is compiled in the place of `code`."""

    def __init__(self, code: str, instead: str) -> None:
        super().__init__(watch=True)
        self._code, self._instead = code, instead

    def module(self, code: str, options: tuple[str, ...]) -> HostModule:
        return super().module(self._instead if code == self._code else code, options)


def race_without(w: Workload, barrier: str) -> BarrierRace:
    """Return the race in a workload's kernel without a barrier, or the recorded one.

    Where kernels can be watched, the kernel runs now, on the CPU; this takes some seconds.
    """
    if watch_reason():
        return replace(recorded_race(w, barrier), seen=UNSEEN)
    try:
        return _race(w.scenario, barrier)
    except (KernelError, OSError, SubprocessError):
        logging.getLogger(__name__).exception("a kernel without a barrier")
        return replace(recorded_race(w, barrier), seen=UNSEEN)


@lru_cache(maxsize=4)
def _race(scenario: Scenario, barrier: str) -> BarrierRace:
    w = resolve(scenario)
    if (pairs := w.heads * w.seqlen_q * w.seqlen_k) > MOST_PAIRS:
        expected = f"at most {MOST_PAIRS} pairs of a query and a key in all heads"
        raise refuse("", "pairs", pairs, expected)
    lines, code = whole_lines(w.algorithm), whole_source(w.algorithm).split("\n")
    found = {said[1]: n for n, line in enumerate(code) if (said := _BARRIER.search(line))}
    if barrier not in found:
        raise refuse("", "barrier", barrier, f"one of {', '.join(found)}")
    n = found[barrier]
    what = _BARRIER.search(code[n])
    assert what is not None
    without = [*code[:n], code[n].replace(what[0], ""), *code[n + 1 :]]
    device = WithoutBarrier("\n".join(code), "\n".join(without))
    launch_all(w, read_inputs(w), device, "fast")
    for fault in device.faults:
        first, then = fault.first, fault.second
        if fault.missing == what[0] and first and (first.verb, then.verb) == ("writes", "reads"):
            return BarrierRace(
                fault.kernel, what[0], f"{lines[n].file}:{lines[n].shown}", _tensor(first),
                str(first.called), str(then.called), first.thread, then.thread, SEEN,
            )  # fmt: skip
    raise refuse("", "barrier", barrier, "one without which a thread reads what another writes")


def _tensor(side: Side) -> str:
    """Return the tensor of shared memory that a line names first."""
    found = _TENSOR.search(side.called.text)
    return found[1] if found else side.called.text
