"""Numbers of a schedule that captions may ask for.

Without a model they agree with the panel where one thread block fits on a multiprocessor at a time,
as with tiles of 128 rows: the resources that kernels take are not known here.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from simulator.base.dtypes import F32
from simulator.base.errors import refuse
from simulator.engines.numpy_engine import numpy_engine
from simulator.problem.filling import alone
from simulator.problem.scenario import Algorithm, Scenario
from simulator.problem.workload import Workload
from simulator.program.algorithms import ALGORITHMS, algorithm_of, tile_program
from simulator.program.tile_program import TileProgram
from simulator.run.trace import Trace, trace_of
from simulator.study.captions import Numbers, chosen, known, named, once_a_run, program_of
from simulator.study.schedule.batch import batch_programs
from simulator.study.schedule.blocks import MOST_BLOCKS, count_all
from simulator.study.schedule.residency import BlockNeeds
from simulator.study.schedule.schedule import schedule_of
from simulator.study.schedule.splits import splitting, with_splits
from simulator.timing.orders import ORDERS, Order


@known
def schedule_blocks(n: Numbers, algorithm: str = "", splits: int = 0) -> int:
    """Thread blocks of the first launch; with an algorithm, or with so many splits."""
    return _placed(n.scenario, _algorithm(n, algorithm), "model", splits).blocks


@known
def schedule_seconds(
    n: Numbers, algorithm: str = "", order: str = "model", splits: int = 0
) -> float:
    """Seconds of the run's thread blocks in an order: `model`, `index`, `longest`, `persistent`."""
    return _placed(
        n.scenario, _algorithm(n, algorithm), chosen("order", order, ORDERS), splits
    ).seconds


@known
def schedule_idle(n: Numbers, algorithm: str = "", order: str = "model", splits: int = 0) -> float:
    """The share of that time in which nothing runs on a multiprocessor."""
    return _placed(
        n.scenario, _algorithm(n, algorithm), chosen("order", order, ORDERS), splits
    ).idle


@known
def schedule_uneven(n: Numbers) -> float:
    """The longest of the run's thread blocks over the shortest."""
    return _placed(n.scenario, n.workload.algorithm, "model", 0).uneven


@known
def auto_splits(n: Numbers) -> int:
    """What `splits = "auto"` chooses for the run."""
    return splitting(n.workload).split_choice.splits


@known
def batch_moves(n: Numbers) -> int:
    """Numbers of O that have other bits than if the run's sequence were alone on the GPU."""
    w = n.workload
    return _moved(n, replace(w, scenario=alone(w.scenario)))


@known
def split_moves(n: Numbers, splits: int) -> int:
    """Numbers of O that have other bits with so many splits of equal size."""
    return _moved(n, with_splits(n.workload, splits))


def _moved(n: Numbers, other: Workload) -> int:
    """Return how many numbers of O differ where keys are dealt out as in another workload."""
    w = n.workload
    if not algorithm_of(w).splits:
        raise refuse("", "algorithm", w.algorithm, "one that deals keys out to splits")
    if w.heads * w.seqlen_q * w.seqlen_k > n.most_scores:
        expected = f"a run of at most {n.most_scores} scores in all heads"
        raise refuse("", "bits of O", f"{w.heads} x {w.seqlen_q} x {w.seqlen_k}", expected)
    one, two = (_output(n.trace, each) for each in (w, other))
    return int(np.count_nonzero(one.view(np.int32) != two.view(np.int32)))


@once_a_run
def _output(trace: Trace, dealt: Workload) -> F32:
    """Return O of a run's numbers if its keys are dealt out as in another workload."""
    return trace_of(dealt, trace.inputs, numpy_engine).output


def _algorithm(n: Numbers, name: str) -> Algorithm:
    return named("algorithm", name or n.workload.algorithm, ALGORITHMS).name


def _workload(scenario: Scenario, algorithm: Algorithm, splits: int) -> Workload:
    w = program_of(scenario).workload.as_algorithm(algorithm)
    return with_splits(splitting(w), splits) if splits else w


def _programs(scenario: Scenario, algorithm: Algorithm, splits: int) -> tuple[TileProgram, ...]:
    return batch_programs(tile_program(_workload(scenario, algorithm, splits)))


class _Times(NamedTuple):
    seconds: float
    idle: float
    uneven: float  # the longest block over the shortest
    blocks: int  # of the first launch


@lru_cache(maxsize=16)
def _placed(scenario: Scenario, algorithm: Algorithm, order: Order, splits: int) -> _Times:
    programs = _programs(scenario, algorithm, splits)
    gpu, count = programs[0].workload.gpu, count_all(programs)
    if count > MOST_BLOCKS:
        raise refuse("", "thread blocks", count, f"at most {MOST_BLOCKS}")
    needs = [BlockNeeds(each.name, 1, gpu.smem_bytes, 1) for each in programs[0].launches]
    found = schedule_of(programs[0], needs, order, programs)
    works = [[each for each in launch.works if each] for launch in found.launches]
    uneven = max(max(busy) / min(busy) for busy in works if busy)
    return _Times(found.seconds, found.idle, uneven, len(found.launches[0].blocks))
