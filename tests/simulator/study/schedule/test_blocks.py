"""Thread blocks against plain loops over the visits and their ops."""

from collections import Counter

import pytest
from hypothesis import given

from simulator.code.code_lines import exemplars
from simulator.problem.scenario import Scenario
from simulator.program.algorithms import ALGORITHMS
from simulator.program.tile_program import TileProgram
from simulator.study.schedule.blocks import amounts_of, blocks_of, count_blocks, of_visit
from tests.helpers.runs import program_of, scenario, scenarios


def check(program: TileProgram) -> None:
    """Compare the work of each thread block with the sums over the ops of its visits."""
    w = program.workload
    moved: Counter[tuple[int, int]] = Counter()
    summed: Counter[tuple[int, int]] = Counter()
    rows_of: dict[int, set[range]] = {}
    for index in range(len(program)):
        visit = program.visit(index)
        doing = of_visit(program, visit)
        rows_of.setdefault(visit.launch, set()).add(doing)
        for op in program.ops(index):
            moved[visit.launch, doing.start] += op.read_bytes + op.write_bytes
            summed[visit.launch, doing.start] += op.flops
    total_bytes = total_flops = 0
    for number, launch in enumerate(program.launches):
        blocks, (moves, sums) = blocks_of([program], number), amounts_of([program], number)
        assert len(blocks) == count_blocks(launch, w.heads)
        seen = set()
        for doing in rows_of.get(number, ()):
            seen |= set(doing)
            assert moves[doing.start : doing.stop].sum() == moved[number, doing.start]
            assert sums[doing.start : doing.stop].sum() == summed[number, doing.start]
        assert all(moves[n] == sums[n] == 0 for n in set(range(len(blocks))) - seen)
        total_bytes += int(moves.sum())
        total_flops += int(sums.sum())
    assert (total_bytes, total_flops) == (program.totals.bytes, program.totals.flops)


@given(scenarios(longest=24))
def test_work_of_thread_blocks_is_that_of_their_visits(chosen: Scenario) -> None:
    check(program_of(chosen))


VARIANTS = (frozenset(), frozenset({"sinks"}))


@pytest.mark.parametrize("variant", VARIANTS, ids=("plain", "sinks"))
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_work_of_every_algorithm(algorithm: str, variant: frozenset[str]) -> None:
    for program in exemplars(algorithm, variant if ALGORITHMS[algorithm].softmax else frozenset()):
        check(program)


def test_several_heads_and_splits_are_in_the_order_of_the_grid() -> None:
    said = {"tiling": {"rows": 2, "cols": 2, "splits": 3}}
    chosen = scenario("split-kv", nq=2, nk=12, heads=8, kv_heads=2)
    program = program_of(
        chosen.model_copy(update={"tiling": type(chosen.tiling)(**said["tiling"])})
    )
    check(program)
    blocks = blocks_of([program], 0)
    assert blocks.shapes == ((3, 2, 4),)
    assert blocks.title(0) == "KV head 0, row block 0, split 0"
    assert blocks.title(4) == "KV head 1, row block 0, split 0"
    assert blocks.title(8 + 4 + 3) == "KV head 1, row block 3, split 1"


@pytest.mark.parametrize("kv_heads", [2, 4])
def test_a_thread_block_of_several_query_heads_is_named_after_their_kv_head(kv_heads: int) -> None:
    program = program_of(scenario("flash2-backward", nq=8, heads=4, kv_heads=kv_heads))
    dots, tiles, _ = (blocks_of([program], n) for n in range(3))
    assert dots.title(len(dots) - 1).startswith("head 3, ")
    assert tiles.title(len(tiles) - 1).startswith("KV head 1, " if kv_heads == 2 else "head 3, ")


@pytest.mark.parametrize(
    ("algorithm", "counts"),
    [("naive", (6, 32, 6)), ("flash1", (2,)), ("flash2", (6,)), ("linear", (1, 6))],
)
def test_how_many_there_are(algorithm: str, counts: tuple[int, ...]) -> None:
    """Two heads of 16 rows in blocks of 6; naive's softmax has one for each row."""
    chosen = scenario(algorithm, nq=16, heads=2, kv_heads=1, rows=6, cols=4)
    program = program_of(chosen)
    assert tuple(count_blocks(each, 2) for each in program.launches) == counts
