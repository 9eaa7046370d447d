"""Requested bytes from the first visit of a run to its last, sampled by arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from simulator.problem.intervals import I64
from simulator.program.tile_program import TileProgram
from simulator.program.traffic import compulsory_bytes
from simulator.study.compare import comparison_of
from simulator.study.gpu_report import gpu_report, measured_dram

POINTS = 800
"""Places at which the current run is sampled; between two of them curves are straight."""
OTHER_POINTS = 200


@dataclass(frozen=True, slots=True, eq=False)
class TrafficCurve:
    """Requested bytes of one run at some of its visits."""

    algorithm: str  # the algorithm of the run
    length: int  # visits of the run
    visits: I64  # (n,) int64, how many visits are done at each point: 0 first, all of them last
    tensors: tuple[str, ...]  # in the order of the program
    bytes: I64  # (tensors, n) int64, read and written up to there

    @property
    def totals(self) -> I64:
        """Bytes of all tensors at each point, (n,)."""
        out: I64 = self.bytes.sum(axis=0)
        return out

    @property
    def end(self) -> int:
        """Bytes of the whole run."""
        return int(self.bytes[:, -1].sum())


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class RunTraffic:
    """The bytes of a run as curves, and figures to compare them with."""

    own: TrafficCurve  # the current run
    # the other algorithms on the same workload, each over its own run
    others: tuple[TrafficCurve, ...]
    compulsory: int  # distinct bytes that each launch of the current run reads or writes
    # DRAM bytes that a hardware counter counted for exactly this workload; None: there are none
    dram: int | None


def curve(program: TileProgram, points: int = POINTS) -> TrafficCurve:
    """Return the bytes of a run at about `points` evenly spread visits and at every launch.

    points: most points, in addition to one for each launch.
    """
    length = len(program)
    spread = np.linspace(0, length, min(length, points - 1) + 1).round().astype(np.int64)
    visits = np.union1d(spread, np.cumsum(program.sizes))
    amounts = np.empty((len(program.tensors), len(visits)), dtype=np.int64)
    for n, visit in enumerate(visits.tolist()):
        counters = program.counters(visit)
        amounts[:, n] = [counters.read[t] + counters.write[t] for t in program.tensors]
    for array in (visits, amounts):
        array.flags.writeable = False
    return TrafficCurve(program.workload.algorithm, length, visits, program.tensors, amounts)


@lru_cache(maxsize=4)
def run_traffic(program: TileProgram) -> RunTraffic:
    """Return the curves of a run and of the other algorithms, made once for each program."""
    programs = comparison_of(program).programs.values()
    return RunTraffic(
        own=curve(program),
        others=tuple(curve(other, OTHER_POINTS) for other in programs if other is not program),
        compulsory=compulsory_bytes(program.workload),
        dram=measured_dram(program.workload, gpu_report()),
    )
