"""The time of a run on a GPU, and what bounds it: a model (docs/time-model.md).

A tile takes the longer of its products and its softmax, and the share of the shorter that the
kernel does not hide. A launch takes as long as its busiest multiprocessor, or as its bytes through
L2 or DRAM, whichever is longest.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from simulator.base.dtypes import F64
from simulator.problem.hardware import LAUNCH_SECONDS, Gpu
from simulator.problem.intervals import I64
from simulator.problem.workload import Workload
from simulator.program.tile_program import TileProgram
from simulator.timing.accesses import LaunchWork, works
from simulator.timing.kernel_kinds import KernelKind, kernel_kinds, usual_kind
from simulator.timing.l2_cache import DramTraffic, dram_bytes
from simulator.timing.orders import Order, begins

Bound = Literal[
    "products", "softmax", "L2", "DRAM", "too few blocks", "start and end of blocks", "launch"
]
PORT_BYTES = 64  # bytes a clock from L2 into one multiprocessor
SHARED_BYTES = 128  # bytes a clock between a multiprocessor and its shared memory
LIBRARY_SHARE = 0.65
"""Share of the HBM bandwidth that launches of a library reach, one after the other, as in naive
attention; fitted to published figures of naive attention."""
UNEVEN = 1.5
"""A launch that takes more than this many times as long as in equal shares lacks thread blocks, or
its thread blocks begin and end at different times."""
MOST_VISITS, MOST_OF_SEVERAL = 1 << 20, 1 << 18
"""Most visits of a run, and of several runs side by side, that go through the cache one by one; in
a longer run, several visits count as one there. Thread blocks stay the same."""


@dataclass(frozen=True, eq=False, slots=True)
class BlockTimes:
    """How long each thread block of a launch takes, in the order of the grid (`LaunchWork`)."""

    seconds: F64  # (thread blocks,): alone on a multiprocessor that waits for no memory
    turn: I64  # (thread blocks,): their numbers in the order in which they are started
    shares: tuple[int, ...]  # of each sequence: thread blocks of a head whose rows are dealt out


@dataclass(frozen=True, slots=True)
class LaunchTime:
    """The time of one launch."""

    name: str
    number: int  # of its launch in the tile program
    seconds: float
    bound_by: Bound
    dram: DramTraffic
    requested: int  # bytes that the launch asks of L2
    # seconds of each part alone
    products: float  # on all multiprocessors
    softmax: float  # likewise
    busy: float  # of the busiest multiprocessor
    l2: float
    memory: float
    # None for a launch of a library, whose thread blocks are not modelled
    blocks: BlockTimes | None = field(compare=False)


@dataclass(frozen=True, slots=True)
class RunTime:
    """The time of a run, by model."""

    gpu: Gpu
    kind: KernelKind
    launches: tuple[LaunchTime, ...]

    @property
    def seconds(self) -> float:
        """Seconds from the first launch to the end of the last."""
        return sum(each.seconds for each in self.launches)

    @property
    def dram_bytes(self) -> int:
        """Bytes between L2 and DRAM."""
        return sum(sum(each.dram) for each in self.launches)

    @property
    def l2_bytes(self) -> int:
        """Bytes that multiprocessors ask of L2."""
        return sum(each.requested for each in self.launches)

    @property
    def bound_by(self) -> Bound:
        """The bound of the longest launch."""
        return max(self.launches, key=lambda each: each.seconds).bound_by


def why_no_time(program: TileProgram) -> str:
    """Return why there is no model of a run's time, as a sentence; empty if there is one."""
    algorithm = program.algorithm
    if algorithm.backward:
        return "The time of backward passes is not modelled."
    if algorithm.splits:
        return "The time of joining splits is not modelled."
    if not algorithm.softmax:
        return f"The time of {algorithm.in_a_sentence} is not modelled."
    if not len(program):
        return "No row sees a key: nothing is computed."
    return ""


def model_of(*programs: TileProgram) -> dict[str, Any]:
    """Return a summary of the time of a run, or of all sequences of a batch."""
    if why := why_no_time(programs[0]):
        return {"model": None, "why": why}
    found = run_time(*programs)
    return {
        "model": {
            "gpu": found.gpu.name,
            "kernel": found.kind.name,
            "dram_bytes": found.dram_bytes,
            "l2_bytes": found.l2_bytes,
            "seconds": found.seconds,
            "bound_by": found.bound_by,
        }
    }


def run_time(
    *programs: TileProgram,
    kind: KernelKind | None = None,
    order: Order = "model",
    most: int = MOST_VISITS,
) -> RunTime:
    """Return the time of a run, or of all sequences of a batch, on its GPU.

    kind: None: the scenario's, or the usual kind for the algorithm on the GPU.
    order: in which thread blocks are started; other orders than the model's are a what-if.
    most: visits of a run that go through the cache; in a longer run, several count as one.

    Raises ValueError: there is no model of the run's time (`why_no_time`).
    """
    if why := why_no_time(programs[0]):
        raise ValueError(why)
    w = programs[0].workload
    gpu, kernel = w.gpu, w.scenario.hardware.kernel
    kind = kind or kernel_kinds()[kernel or usual_kind(w.algorithm, gpu)]
    shares = 1
    if kind.shares_rows:
        # Two thread blocks find a place on each multiprocessor.
        shares = max(1, -(-2 * gpu.sms // sum(each.workload.heads for each in programs)))
    if len(programs) > 1:
        most = min(most, MOST_OF_SEVERAL // len(programs))
    coarser = [_coarser(each, most, shares) for each in programs]
    found = works(programs, gpu.sms, shares, order, coarser)
    capacity = gpu.rates.l2_bytes
    if coarser != list(programs):  # K and V of a long tile and of the next one find room
        largest = max(int(each.accesses.sizes.max(initial=0)) for each in found)
        capacity = max(capacity, 4 * largest)
    traffic = dram_bytes([each.accesses for each in found], capacity)
    launches = [
        _launch(work, _in_its_own_tiles(work, dram), gpu, kind, w, order)
        for work, dram in zip(found, traffic, strict=True)
    ]
    return RunTime(gpu, kind, tuple(launches))


def _coarser(program: TileProgram, most: int, shares: int) -> TileProgram:
    """Return a long run in longer blocks, inner blocks first: as many bytes, in fewer visits.

    If the rows of a head are shared out, each share keeps a row block. The outer blocks then become
    longer, too, so fewer bytes are requested (`_in_its_own_tiles`).
    """
    while len(program) > most:
        w = program.workload
        if program.launches[0].in_turn and w.grid.Tr >= 2 * shares:
            longer = replace(w, rows=2 * w.rows)
        elif w.cols < w.seqlen_k:
            longer = replace(w, cols=2 * w.cols)
        else:
            break
        program = TileProgram(longer, program.algorithm)
    return program


def _in_its_own_tiles(work: LaunchWork, dram: DramTraffic) -> DramTraffic:
    """Return the DRAM traffic of a launch, given its traffic in longer outer blocks.

    The first read and write of each tile stay; the rest grows with the requested bytes.
    """
    stream = work.accesses
    more = work.requested / stream.bytes
    if more == 1.0:
        return dram
    _, first = np.unique(2 * stream.tiles + stream.writes, return_index=True)
    once, total = int(stream.sizes[first].sum()), sum(dram)
    if total <= once:
        return dram
    factor = (once + (total - once) * more) / total
    return DramTraffic(round(dram.read * factor), round(dram.written * factor))


def _launch(
    work: LaunchWork, dram: DramTraffic, gpu: Gpu, kind: KernelKind, w: Workload, order: Order
) -> LaunchTime:
    rates, sms = gpu.rates, gpu.sms
    if w.dtype == "float32":  # no matrix unit: a product and a sum are one float32 operation
        peak = 2.0 * rates.fp32_per_clock * rates.clock * sms
    else:
        newest = kind.newest_instruction or not work.fused
        peak = gpu.tflops * 1e12 * (1.0 if newest else rates.mma_sync)
    products = work.flops / (peak * rates.sustained)
    exchanged = 8 * kind.exchange_warps * w.value_dim / w.cols / SHARED_BYTES * work.fused
    exponentials = work.exponentials * (1 / rates.exp_per_clock + exchanged)
    softmax = (exponentials + work.operations / rates.fp32_per_clock) / rates.clock / sms
    requested = work.requested
    port = requested / (PORT_BYTES * rates.clock) / sms
    l2 = requested / (rates.l2_tbps * 1e12)
    memory = sum(dram) / (gpu.tbps * 1e12 * (rates.hbm_share if work.fused else LIBRARY_SHARE))
    even = busy = max(products, softmax)
    blocks = None
    if work.fused:
        even = max(even + kind.in_turn * min(products, softmax), port)
        visits = np.maximum(work.visits, 1)
        tile = even * sms / int(visits.sum())
        seconds = visits * tile + kind.block_us * 1e-6
        started = seconds[work.turn]
        busy = float((begins(started, sms, order) + started).max())
        blocks = BlockTimes(seconds, work.turn, work.shares)
    longest = max(busy, l2, memory)
    if longest < LAUNCH_SECONDS:
        bound: Bound = "launch"
    elif longest > busy:
        bound = "L2" if longest == l2 else "DRAM"
    elif busy > UNEVEN * even:
        bound = "too few blocks" if len(work.visits) < sms else "start and end of blocks"
    elif work.fused and even == port:
        bound = "L2"
    else:
        bound = "products" if products >= softmax else "softmax"
    return LaunchTime(
        work.name, work.number, longest + LAUNCH_SECONDS, bound, dram, requested, products, softmax,
        busy, l2, memory, blocks,
    )  # fmt: skip
