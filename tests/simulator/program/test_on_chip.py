"""What lies on chip against the numbers that an engine has there, of every algorithm."""

import pytest

from simulator.code.code_lines import exemplars
from simulator.program.algorithms import ALGORITHMS, TENSORS
from simulator.program.op import Op
from simulator.program.state import ChipTile
from simulator.program.tile_program import TileProgram
from tests.helpers.runs import program_of, scenario, trace_of

PASSING = {"alpha", "beta", "m_tile", "l_tile", "w"}
"""Factors and sums of one tile: no op keeps them for the next visit, so none counts them."""


def check_op(held: dict[str, ChipTile], op: Op, *, of_one_row: bool) -> None:
    """Let an op free and take its tiles; nothing is freed that is not there, or taken twice."""
    for name in op.frees:
        assert name in held, (op.name, name)
        del held[name]
    for tile in op.allocates:
        assert tile.name not in held, (op.name, tile.name)
        held[tile.name] = tile
    if not of_one_row:  # whose m and l are two numbers
        assert {*op.makes, *op.changed} - PASSING <= held.keys(), op.name


def check(program: TileProgram) -> None:
    """Run a program and compare every tile with the array of its name, byte by byte."""
    trace = trace_of(program.workload)
    held: dict[str, ChipTile] = {}
    for index in range(len(program)):
        launch = program.launches[program.visit(index).launch]
        states = trace.tile(index).states
        for number, op in enumerate(program.ops(index)):
            check_op(held, op, of_one_row=launch.row_each)
            assert sorted(map(repr, program.on_chip(index, number))) == sorted(
                map(repr, held.values())
            )
            for name in held.keys() & states[number + 1].keys():
                whole = states[number + 1][name].nbytes
                one_row = launch.row_each and "row" in TENSORS[name].axes
                rows = len(program.visit(index).rows) if one_row else 1
                assert held[name].bytes == whole // rows, (op.name, name)
    assert not held  # a run leaves nothing behind


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_tiles_on_chip_are_the_numbers_that_are_there(algorithm: str) -> None:
    for program in exemplars(algorithm):
        assert program.workload.width == 4  # in which the engine has its numbers
        check(program)
    if ALGORITHMS[algorithm].softmax:
        for program in exemplars(algorithm, frozenset({"changes", "sinks"})):
            check(program)


def test_no_two_algorithms_are_called_alike() -> None:
    every = ALGORITHMS.values()
    for said in ("name", "title", "short_title", "label", "in_a_sentence", "source"):
        assert len({getattr(each, said) for each in every}) == len(every), said


@pytest.mark.parametrize("algorithm", [each.name for each in ALGORITHMS.values() if each.backward])
def test_what_a_backward_pass_leaves_is_as_large_as_what_it_writes(algorithm: str) -> None:
    chosen = scenario(algorithm, nq=7, nk=9, d=3, dv=5, heads=4, kv_heads=2, dtype="float16")
    program = program_of(chosen)
    left = {spec.name: spec.bytes_in(program.workload) for spec in program.algorithm.tensors}
    assert left | {name: program.totals.write[name] for name in left if name != "dQ_acc"} == left


def test_numbers_of_every_row_stand_between_the_scores_and_o_once() -> None:
    columns = {name: ALGORITHMS[name].columns for name in ("flash2", "linear", "flash2-backward")}
    expected = {"flash2": ("m", "l"), "linear": ("l",), "flash2-backward": ("LSE", "D")}
    assert columns == expected
