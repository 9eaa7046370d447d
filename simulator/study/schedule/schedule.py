"""A run on the multiprocessors of a GPU: launch after launch, block by block.

This is a model (docs/time-model.md, "A schedule"): nothing was measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from simulator.base.errors import spaced
from simulator.problem.hardware import LAUNCH_SECONDS, Gpu, time_estimate
from simulator.program.tile_program import TileProgram
from simulator.study.schedule.blocks import (
    MOST_BLOCKS,
    ThreadBlocks,
    amounts_of,
    blocks_of,
    count_all,
    of_visit,
)
from simulator.study.schedule.placing import Placement, placed
from simulator.study.schedule.residency import BlockNeeds, Residency, residency
from simulator.timing.duration import duration_of
from simulator.timing.orders import Order
from simulator.timing.run_time import RunTime, run_time, why_no_time


@dataclass(frozen=True, eq=False)
class LaunchSchedule:
    """One launch of a run."""

    blocks: ThreadBlocks  # its thread blocks
    needs: BlockNeeds  # what each of them takes
    residency: Residency  # how many fit on a multiprocessor
    placed: Placement  # where and when each runs, in seconds after the launch began
    begins: float  # seconds from the start of the run to the start of its first blocks
    works: list[float]  # seconds that each block takes alone on a multiprocessor
    library: bool = False  # whether the model's time is a library's, whatever its blocks

    @cached_property
    def work(self) -> float:
        """Seconds that all blocks take on one multiprocessor, one after the other."""
        return sum(self.works)

    @cached_property
    def seconds(self) -> float:
        """How long the launch takes."""
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
    # the programs of all sequences of its batch, in their order; without a batch the run alone
    programs: tuple[TileProgram, ...]
    gpu: Gpu  # where
    order: Order  # how blocks are placed
    launches: tuple[LaunchSchedule, ...]  # one after the other
    # model, usual: the time in this order, and in the model's order; None if there is no model
    model: RunTime | None
    usual: RunTime | None
    why: str  # why there is no model, as a sentence; empty if there is one

    @property
    def what_if(self) -> bool:
        """Whether the order, and so the time, is another than the model's."""
        return self.model is not None and self.order != "model"

    @property
    def seconds(self) -> float:
        """How long all launches take, one after the other."""
        if self.model is not None:
            return self.model.seconds
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
        sequence, launch = self.programs.index(self.program), self.launches[found.launch]
        parts, _, _ = launch.blocks.shapes[sequence]
        shares = parts if launch.blocks.launch.in_turn else 1
        own, before = of_visit(self.program, found, shares), launch.blocks.before(sequence)
        return launch, range(own.start + before, own.stop + before)


def idle_share(work: float, sms: int, seconds: float) -> float:
    """Return the idle share of a time: a multiprocessor with any block on it works."""
    return max(1 - work / (sms * seconds), 0.0) if seconds else 0.0


def why_no_schedule(
    program: TileProgram, needs: Sequence[BlockNeeds], programs: Sequence[TileProgram] = ()
) -> str:
    """Return why a run has no schedule, as a sentence; empty if it has one.

    The arguments are as in `schedule_of`.
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

    By model a launch begins with the time that starting it takes; its blocks run one at a time on a
    multiprocessor, stretched where L2 or DRAM bounds the launch. Without a model a block's work is
    the roofline time of its own bytes and FLOPs on one multiprocessor, which has an equal share of
    the GPU's bandwidth and matrix rate. A launch begins when the one before has ended.

    programs: the programs of all sequences of its batch, with the run's own: each launch has the
        thread blocks of all of them.
    Raises ValueError: `why_no_schedule` has a reason.
    """
    programs = tuple(programs) or (program,)
    why = why_no_schedule(program, needs, programs)
    if why:
        raise ValueError(why)
    model, usual = _model(programs, order), _model(programs, "model")
    launches: list[LaunchSchedule] = []
    begins = 0.0
    for number, own in enumerate(needs):
        fit = residency(own, program.workload.gpu)
        if model is None:
            found = _by_data_sheet(programs, number, order, own, fit)
        else:
            found = _by_model(programs, number, order, own, fit, model)
        launches.append(replace(found, begins=begins + found.begins))
        begins = launches[-1].begins + launches[-1].seconds
    no_model = why_no_time(programs[0]) if model is None else ""
    return Schedule(
        program, programs, program.workload.gpu, order, tuple(launches), model, usual, no_model
    )


@lru_cache(maxsize=16)
def _model(programs: tuple[TileProgram, ...], order: Order) -> RunTime | None:
    if why_no_time(programs[0]):
        return None
    if order == "model" and len(programs) == 1:
        return duration_of(programs[0]).model
    return run_time(*programs, order=order)


def _by_data_sheet(
    programs: Sequence[TileProgram], number: int, order: Order, needs: BlockNeeds, fit: Residency
) -> LaunchSchedule:
    w, blocks = programs[0].workload, blocks_of(programs, number)
    works = block_seconds(programs, number)
    found = placed(works, w.gpu.sms, fit.blocks, order, blocks.heads)
    return LaunchSchedule(blocks, needs, fit, found, 0.0, works)


def _by_model(
    programs: Sequence[TileProgram],
    number: int,
    order: Order,
    needs: BlockNeeds,
    fit: Residency,
    model: RunTime,
) -> LaunchSchedule:
    parts = [each for each in model.launches if each.number == number]
    times, starting = parts[0].blocks, len(parts) * LAUNCH_SECONDS
    if times is None:  # a library's: the blocks of our kernels share its time
        found = _by_data_sheet(programs, number, order, needs, fit)
    else:
        blocks, works = blocks_of(programs, number, times.shares), times.seconds.tolist()
        place = placed(works, model.gpu.sms, 1, order, blocks.heads)
        found = LaunchSchedule(blocks, needs, fit, place, 0.0, works)
    factor = (sum(each.seconds for each in parts) - starting) / found.seconds
    works = [factor * each for each in found.works]
    place = found.placed.stretched(factor)
    return replace(found, placed=place, begins=starting, works=works, library=times is None)


def block_seconds(programs: Sequence[TileProgram], launch: int) -> list[float]:
    """Return how long each block of a launch takes alone on a multiprocessor by the data sheet."""
    moved, done = amounts_of(programs, launch)
    w, known = programs[0].workload, dict[tuple[int, int], float]()  # many blocks are alike
    pairs = list(zip(moved.tolist(), done.tolist(), strict=True))
    for pair in pairs:
        if pair not in known:
            known[pair] = w.gpu.sms * time_estimate(w.gpu, *pair, w.dtype).seconds
    return [known[pair] for pair in pairs]
