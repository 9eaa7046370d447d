"""The algorithms under the roofline of a GPU: bandwidth and matrix rate.

References
----------
Williams, Waterman, Patterson 2009, "Roofline: an insightful visual performance model for
multicore architectures", section 3.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from simulator.problem.hardware import Gpu, TimeEstimate, time_estimate
from simulator.problem.scenario import Algorithm
from simulator.problem.workload import Workload
from simulator.program.algorithms import ALGORITHMS, BASELINE, algorithm_of, beside, tile_program
from simulator.program.tile_program import Counters, TileProgram
from simulator.study.sweep import figures_of
from simulator.timing.duration import Duration, duration_of

Phase = Literal["prefill", "backward", "decode"]


@dataclass(frozen=True, slots=True)
class Roof:
    """The most that a GPU can do."""

    gpu: Gpu  # the preset
    bandwidth: float  # HBM bytes/s
    rate: float | None  # matmul FLOP/s. None for float32, for which the presets have no rate

    @property
    def ridge(self) -> float | None:
        """FLOPs for each byte from which the matrix rate is the limit; None without a rate."""
        return None if self.rate is None else self.rate / self.bandwidth

    def at(self, intensity: float) -> float:
        """Return the most FLOP/s at an intensity in FLOPs for each byte."""
        slope = self.bandwidth * intensity
        return slope if self.rate is None else min(slope, self.rate)


@dataclass(frozen=True, slots=True)
class RooflinePoint:
    """One run, or a part of one, under a roof."""

    algorithm: Algorithm  # ``naive``, ``flash1`` or ``flash2``
    phase: Phase  # ``prefill`` or ``backward``, the scenario as it is, or ``decode``
    flops: int  # matmul FLOPs
    requested: int  # requested bytes
    # distinct bytes that each launch reads or writes; None for a part of a run
    compulsory: int | None
    time: TimeEstimate  # of requested bytes and FLOPs
    duration: Duration | None = None  # the run's time by model; None if nobody has asked for it

    @property
    def intensity(self) -> float:
        """FLOPs for each requested byte; 0 before the first byte."""
        return self.flops / self.requested if self.requested else 0.0

    @property
    def dram_intensity(self) -> float | None:
        """FLOPs for each byte of DRAM by model; None without a model."""
        moved = None if self.duration is None else self.duration.dram_bytes
        return self.flops / moved if moved else None

    @property
    def reached(self) -> float | None:
        """FLOP/s that the run reaches by model; None without a model."""
        timed = self.duration is not None and self.duration.model is not None
        return self.flops / self.duration.seconds if timed and self.duration else None

    @property
    def best_intensity(self) -> float | None:
        """FLOPs for each compulsory byte, as with perfect caches."""
        return None if self.compulsory is None else self.flops / self.compulsory

    @property
    def rate(self) -> float:
        """FLOP/s in the estimated time: the roof above the intensity."""
        return self.flops / self.time.seconds if self.time.seconds else 0.0


@dataclass(frozen=True, slots=True)
class Roofline:
    """All algorithms under the roof of one GPU."""

    dtype: str  # of Q, K, V, O
    roof: Roof  # the GPU
    # the whole of each algorithm, then decode of each forward pass that has a softmax
    places: tuple[RooflinePoint, ...]

    def place(self, algorithm: str, phase: Phase) -> RooflinePoint:
        """Return the place of an algorithm in a phase."""
        return next(p for p in self.places if (p.algorithm, p.phase) == (algorithm, phase))

    def on(self, gpu: Gpu) -> Roofline:
        """Return the same runs, with the same tiles, on another GPU."""
        places = tuple(
            replace(p, time=time_estimate(gpu, p.requested, p.flops, self.dtype))
            for p in self.places
        )
        return Roofline(self.dtype, roof_of(gpu, self.dtype), places)

    def part(self, algorithm: Algorithm, counters: Counters) -> RooflinePoint:
        """Return the place of the part of a run that is done."""
        time = time_estimate(self.roof.gpu, counters.bytes, counters.flops, self.dtype)
        return RooflinePoint(
            algorithm, whole_phase(algorithm), counters.flops, counters.bytes, None, time
        )


def whole_phase(algorithm: str) -> Phase:
    """Return the phase of a run of the scenario as it is: a backward pass is no prefill."""
    return "backward" if ALGORITHMS[algorithm].backward else "prefill"


def roof_of(gpu: Gpu, dtype: str) -> Roof:
    """Return the roof of a GPU for products of a dtype."""
    rate = None if dtype == "float32" else gpu.tflops * 1e12
    return Roof(gpu, gpu.tbps * 1e12, rate)


def decode_workload(w: Workload) -> Workload:
    """Return the step that makes one more token: one query row, with the keys as a cache.

    Without a softmax a step has a state, no cache: then the step is the baseline's.
    """
    plain = w.as_algorithm(BASELINE.name)  # each head with its own rows
    step = replace(plain, seqlen_q=1, mask=plain.mask.of_last_row())
    return step.as_algorithm(w.algorithm) if algorithm_of(w).softmax else step


def timed_roofline(program: TileProgram, gpu: Gpu) -> Roofline:
    """Return the place of every algorithm on a GPU, with its time by model, in the same tiles."""
    found = roofline_of(program).on(gpu)
    places = tuple(
        replace(place, duration=duration_of(tile_program(replace(work, gpu=gpu))))
        for place, (_, _, work) in zip(found.places, _runs(program), strict=True)
    )
    return replace(found, places=places)


def _runs(program: TileProgram) -> list[tuple[Algorithm, Phase, Workload]]:
    """Return the whole of each algorithm, then decode of each forward pass that has a softmax."""
    w = program.workload
    names = beside(w.algorithm)
    runs = [(name, whole_phase(name), w.as_algorithm(name)) for name in names]
    step = decode_workload(w)
    return runs + [
        (name, "decode", step.as_algorithm(name))
        for name in names
        if ALGORITHMS[name].softmax and not ALGORITHMS[name].backward
    ]


@lru_cache(maxsize=4)
def roofline_of(program: TileProgram) -> Roofline:
    """Return the place of every algorithm on the workload's GPU, made once for each program.

    Prefill and backward are the workload as it is; decode is the same workload with one query row.
    The tiles are the workload's.
    """
    w = program.workload
    places = []
    for name, phase, work in _runs(program):
        found = figures_of(work)
        places.append(
            RooflinePoint(name, phase, found.flops, found.bytes, found.compulsory, found.time)
        )
    return Roofline(w.dtype, roof_of(w.gpu, w.dtype), tuple(places))
