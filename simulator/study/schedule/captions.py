"""Numbers of a schedule that captions may ask for.

They are those of the panel where one thread block fits on a multiprocessor at a time, as with tiles
of 128 rows: what kernels take of a multiprocessor is not known here.
"""

from __future__ import annotations

from functools import lru_cache

from simulator.base.errors import refuse
from simulator.problem.scenario import Algorithm, Scenario
from simulator.problem.workload import Workload
from simulator.program.algorithms import ALGORITHMS, tile_program
from simulator.program.tile_program import TileProgram
from simulator.study.captions import Numbers, chosen, known, named, program_of
from simulator.study.schedule.batch import batch_programs
from simulator.study.schedule.blocks import MOST_BLOCKS, blocks_of, count_all
from simulator.study.schedule.placing import ORDERS, Order, placed
from simulator.study.schedule.schedule import block_seconds, idle_share
from simulator.study.schedule.splits import split_choice, splitting, with_splits


@known
def schedule_blocks(n: Numbers, algorithm: str = "", splits: int = 0) -> int:
    """Thread blocks of the first launch; with an algorithm, or with so many splits."""
    return count_all(_programs(n.scenario, _algorithm(n, algorithm), splits), slice(1))


@known
def schedule_seconds(
    n: Numbers, algorithm: str = "", order: str = "index", splits: int = 0
) -> float:
    """Seconds of the run's thread blocks in an order: `index`, `longest` or `persistent`."""
    return _placed(n.scenario, _algorithm(n, algorithm), chosen("order", order, ORDERS), splits)[0]


@known
def schedule_idle(n: Numbers, algorithm: str = "", order: str = "index", splits: int = 0) -> float:
    """The share of that time in which nothing runs on a multiprocessor."""
    return _placed(n.scenario, _algorithm(n, algorithm), chosen("order", order, ORDERS), splits)[1]


@known
def schedule_uneven(n: Numbers) -> float:
    """The longest of the run's thread blocks over the shortest."""
    return _placed(n.scenario, n.workload.algorithm, "index", 0)[2]


@known
def auto_splits(n: Numbers) -> int:
    """What `splits = "auto"` chooses for the run."""
    return split_choice(splitting(n.workload)).splits


def _algorithm(n: Numbers, name: str) -> Algorithm:
    return named("algorithm", name or n.workload.algorithm, ALGORITHMS).name


def _workload(scenario: Scenario, algorithm: Algorithm, splits: int) -> Workload:
    w = program_of(scenario).workload.as_algorithm(algorithm)
    return with_splits(splitting(w), splits) if splits else w


def _programs(scenario: Scenario, algorithm: Algorithm, splits: int) -> tuple[TileProgram, ...]:
    return batch_programs(tile_program(_workload(scenario, algorithm, splits)))


@lru_cache(maxsize=16)
def _placed(
    scenario: Scenario, algorithm: Algorithm, order: Order, splits: int
) -> tuple[float, float, float]:
    """Return seconds, idle share, and the longest block over the shortest."""
    programs = _programs(scenario, algorithm, splits)
    w, count = programs[0].workload, count_all(programs)
    if count > MOST_BLOCKS:
        raise refuse("", "thread blocks", count, f"at most {MOST_BLOCKS}")
    seconds = work = 0.0
    uneven = 1.0
    for launch in range(len(programs[0].launches)):
        works = block_seconds(blocks_of(programs, launch), w.gpu, w.dtype)
        seconds += placed(works, w.gpu.sms, 1, order).seconds
        work += sum(works)
        busy = [each for each in works if each]
        uneven = max(uneven, max(busy) / min(busy)) if busy else uneven
    return seconds, idle_share(work, w.gpu.sms, seconds), uneven
