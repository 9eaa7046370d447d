"""A run on the multiprocessors of a GPU: launch after launch, block by block.

This is a model (docs/time-model.md, "A schedule"): nothing of it was measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from simulator.base.errors import spaced
from simulator.problem.hardware import Gpu, time_estimate
from simulator.program.tile_program import TileProgram
from simulator.study.schedule.blocks import (
    MOST_BLOCKS,
    ThreadBlocks,
    blocks_of,
    count_all,
    of_visit,
)
from simulator.study.schedule.placing import Order, Placement, placed
from simulator.study.schedule.residency import BlockNeeds, Residency, residency


@dataclass(frozen=True, eq=False)
class LaunchSchedule:
    """One launch of a run."""

    blocks: ThreadBlocks  # its thread blocks
    needs: BlockNeeds  # what each of them takes
    residency: Residency  # how many fit on a multiprocessor
    placed: Placement  # where and when each runs, in seconds after the launch began
    begins: float  # seconds after the run began
    works: list[float]  # seconds that each block takes alone on a multiprocessor

    @cached_property
    def work(self) -> float:
        """Seconds that all blocks take on one multiprocessor, one after the other."""
        return sum(self.works)

    @cached_property
    def seconds(self) -> float:
        """How long it takes."""
        return float(self.placed.seconds)

    @cached_property
    def tail(self) -> float:
        """Seconds from when the first multiprocessor has nothing more to do to the end."""
        return float(self.placed.tail)

    @property
    def idle(self) -> float:
        """The share of the multiprocessors' time in which nothing runs on them, 0 to 1."""
        return idle_share(self.work, self.placed.sms, self.seconds)


@dataclass(frozen=True, eq=False)
class Schedule:
    """A whole run."""

    program: TileProgram  # the run that is shown
    # those of all sequences of its batch, in their order; without a batch the run alone
    programs: tuple[TileProgram, ...]
    gpu: Gpu  # where
    order: Order  # how blocks are placed
    launches: tuple[LaunchSchedule, ...]  # one after the other

    @property
    def seconds(self) -> float:
        """How long all launches take, one after the other."""
        return self.launches[-1].begins + self.launches[-1].seconds

    @property
    def idle(self) -> float:
        """The share of the multiprocessors' time in which nothing runs on them, 0 to 1."""
        return idle_share(sum(each.work for each in self.launches), self.gpu.sms, self.seconds)

    @property
    def least(self) -> float:
        """Seconds of the roofline: all bytes, or all FLOPs, on all multiprocessors at once."""
        totals = [each.totals for each in self.programs]
        moved, done = sum(each.bytes for each in totals), sum(each.flops for each in totals)
        return time_estimate(self.gpu, moved, done, self.program.workload.dtype).seconds

    def at(self, visit: int) -> tuple[LaunchSchedule, range]:
        """Return the launch of a visit, and which of its thread blocks do it."""
        found = self.program.visit(visit)
        own, earlier = of_visit(self.program, found), self.programs.index(self.program)
        before = count_all(self.programs[:earlier], slice(found.launch, found.launch + 1))
        return self.launches[found.launch], range(own.start + before, own.stop + before)


def idle_share(work: float, sms: int, seconds: float) -> float:
    """Return the idle share of a time: a multiprocessor with any block on it works."""
    return max(1 - work / (sms * seconds), 0.0) if seconds else 0.0


def why_no_schedule(
    program: TileProgram, needs: Sequence[BlockNeeds], programs: Sequence[TileProgram] = ()
) -> str:
    """Return why a run has no schedule, as a sentence; empty if it has one.

    The arguments are those of `schedule_of`.
    """
    w = program.workload
    for each in needs:
        if not residency(each, w.gpu).blocks:
            have = f"{w.gpu.name} gives {w.gpu.smem_kib} KiB to one"
            return f"A thread block of {each.kernel} takes {each.shared / 1024:.0f} KiB: {have}."
    blocks = count_all(programs or (program,))
    if blocks > MOST_BLOCKS:
        many = f"{spaced(blocks)} thread blocks are too many to place one by one"
        return f"{many}: at most {spaced(MOST_BLOCKS)}."
    return ""


def schedule_of(
    program: TileProgram,
    needs: Sequence[BlockNeeds],
    order: Order,
    programs: Sequence[TileProgram] = (),
) -> Schedule:
    """Place a run's thread blocks on its GPU.

    A block's work is the roofline time of its own bytes and FLOPs on one multiprocessor, which has
    an equal share of the GPU's bandwidth and matrix rate. A launch begins when the one before has
    ended.

    programs: those of all sequences of its batch, the run among them: each launch has the thread
        blocks of all of them.
    Raises ValueError: there is a reason why not (`why_no_schedule`).
    """
    programs = tuple(programs) or (program,)
    why = why_no_schedule(program, needs, programs)
    if why:
        raise ValueError(why)
    w = program.workload
    launches: list[LaunchSchedule] = []
    begins = 0.0
    for number, own in enumerate(needs):
        blocks = blocks_of(programs, number)
        works = block_seconds(blocks, w.gpu, w.dtype)
        fit = residency(own, w.gpu)
        found = placed(works, w.gpu.sms, fit.blocks, order)
        launches.append(LaunchSchedule(blocks, own, fit, found, begins, works))
        begins += launches[-1].seconds
    return Schedule(program, programs, w.gpu, order, tuple(launches))


def block_seconds(blocks: ThreadBlocks, gpu: Gpu, dtype: str) -> list[float]:
    """Return how long each block takes alone on a multiprocessor."""
    pairs = list(zip(blocks.bytes.tolist(), blocks.flops.tolist(), strict=True))
    known: dict[tuple[int, int], float] = {}  # many blocks are alike
    for pair in pairs:
        if pair not in known:
            known[pair] = gpu.sms * time_estimate(gpu, *pair, dtype).seconds
    return [known[pair] for pair in pairs]
