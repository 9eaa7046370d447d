"""What it costs to add in turn, where it can be said without placing anything."""

from typing import Any

import pytest

from simulator.problem.hardware import time_estimate
from simulator.problem.scenario import with_values
from simulator.problem.workload import resolve
from simulator.program.algorithms import tile_program
from simulator.program.tile_program import TileProgram
from simulator.study.merge.block_sums import turns_of
from tests.helpers.runs import scenario


def program_of(**more: Any) -> TileProgram:
    chosen = scenario("flash2-backward", **{"nq": 64, "d": 8, "rows": 8, "cols": 8, **more})
    return tile_program(resolve(with_values(chosen, {"attention": {"dtype": "float16"}})))


def test_a_thread_block_takes_the_time_of_its_tiles_one_after_the_other() -> None:
    """A row of a tile: Q and dO in, LSE and D, and what is added to dQ read and written."""
    w = program_of(nk=8).workload
    moved = 2 * 2 * 8 + 2 * 4 + 2 * 4 * 8
    tile = w.gpu.sms * time_estimate(w.gpu, 8 * moved, 5 * 2 * 8 * 8 * 8, w.dtype).seconds
    for more, tiles in (
        ({"nk": 8}, 8),
        ({}, 8),
        ({"nk": 8, "nq": 40}, 5),
        ({"nk": 8, "heads": 3}, 8),
    ):
        found = turns_of(program_of(**more))
        assert found.at_once == pytest.approx(tiles * tile, rel=1e-12)


def test_one_column_block_waits_for_nobody() -> None:
    found = turns_of(program_of(nk=8))
    assert found.longer == 0


def test_without_a_mask_each_column_block_is_one_addition_behind_the_one_before() -> None:
    """All begin at once with the same rows, so in turn they stand in a line, once."""
    program = program_of()
    found, w = turns_of(program), program.workload
    addition = w.gpu.sms * time_estimate(w.gpu, 2 * 4 * w.head_dim * w.rows, 0, w.dtype).seconds
    assert found.in_turn - found.at_once == pytest.approx((w.grid.Tc - 1) * addition)
    assert found.counter_bytes == 4 * w.heads * (w.grid.Tr + 1)


def test_with_a_causal_mask_all_stand_in_a_line_at_the_last_row_block() -> None:
    """The first column block comes to it after all others of its own; then the others, in turn."""
    program = program_of(mask={"causal": True})
    found, w = turns_of(program), program.workload
    addition = w.gpu.sms * time_estimate(w.gpu, 2 * 4 * w.head_dim * w.rows, 0, w.dtype).seconds
    assert found.in_turn == pytest.approx(found.at_once + (w.grid.Tc - 1) * addition)
    assert found.longer > 0


def test_many_tiles_are_not_placed() -> None:
    assert turns_of(program_of(nq=8192)) is None
