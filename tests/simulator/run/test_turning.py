"""The steps before the tiles of a run with rotary positions, held against plain loops."""

from cmath import exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.problem.scenario import Scenario, with_values
from simulator.problem.workload import resolve
from simulator.program.algorithms import ALGORITHMS, tile_program
from simulator.program.playback import SECONDS_PER_TURN, seconds_of
from simulator.run.explanation import Number
from simulator.run.motion import Motion
from simulator.run.provenance import explain
from simulator.run.snapshot import Cell
from tests.helpers.runs import scenario, trace_of

NAMES = ("unturned", "turn queries", "turn keys")
TAKES = [name for name, each in ALGORITHMS.items() if each.keys == "K"]
"""A latent has positions of its own."""


def small(**position: object) -> Scenario:
    plain = scenario(nq=5, nk=7, d=8, heads=4, kv_heads=2, dtype="float16", head=[1, 3])
    return with_values(plain, {"position": {"kind": "rope", **position}})


def without(said: Scenario) -> Scenario:
    return with_values(said, {"position": {"kind": None}})


@pytest.mark.parametrize("name", TAKES)
def test_three_ops_come_first_and_cost_nothing(name: str) -> None:
    plain = scenario(nq=6, nk=6, d=8, heads=2, kv_heads=1, algorithm=name)
    plain = with_values(plain, {"mask": {"causal": True}})
    said = with_values(plain, {"position": {"kind": "rope"}})
    with_places, bare = (tile_program(resolve(each)) for each in (said, plain))
    assert len(with_places) == len(bare)
    for index in range(len(bare)):
        own = [op.name for op in with_places.ops(index)]
        assert own == [*(NAMES if index == 0 else ()), *(op.name for op in bare.ops(index))]
        assert with_places.counters(index) == bare.counters(index)
    assert with_places.totals == bare.totals
    assert with_places.peak_shared_bytes == bare.peak_shared_bytes
    first = with_places.ops(0)[: len(NAMES)]
    assert all(op.before_tiles and not (op.flops or op.moves or op.allocates) for op in first)
    assert [seconds_of(op) == SECONDS_PER_TURN for op in first] == [False, True, True]
    assert with_places.on_chip(0, len(NAMES) - 1) == ()


@pytest.mark.parametrize("name", ["naive", "flash1", "flash2", "split-kv"])
def test_q_and_k_are_seen_before_and_after(name: str) -> None:
    said = with_values(small(offset=3), {"attention": {"algorithm": name}})
    trace, bare = trace_of(said), trace_of(without(said))
    for op in range(len(NAMES) + 1):
        now, plain = trace.snapshot(0, op), bare.snapshot(0, 0)
        for n, tensor in enumerate(("Q", "K")):
            turned = op > n
            assert now.is_turned(tensor) is turned
            expected = (now.q, now.k)[n] if turned else plain.inputs[tensor]
            np.testing.assert_array_equal(now.inputs[tensor], expected)
            assert not np.array_equal(now.inputs[tensor], plain.inputs[tensor]) or not turned
        np.testing.assert_array_equal(now.inputs["V"], plain.inputs["V"])
    ops = len(bare.program.ops(0))
    last, alone = trace.snapshot(0, ops - 1 + len(NAMES)), bare.snapshot(0, ops - 1)
    assert last.counters == alone.counters


@given(
    theta=st.sampled_from([10.0, 10000.0]),
    interleaved=st.booleans(),
    fraction=st.sampled_from([0.25, 0.5, 1.0]),
    offset=st.integers(-9, 1000),
    row=st.integers(0, 4),
    col=st.integers(0, 7),
    keys=st.booleans(),
    algorithm=st.sampled_from(["flash2", "split-kv"]),
)
def test_a_number_is_explained_by_its_pair(
    theta, interleaved, fraction, offset, row, col, keys, algorithm
) -> None:
    said = small(theta=theta, interleaved=interleaved, fraction=fraction, offset=offset)
    trace = trace_of(with_values(said, {"attention": {"algorithm": algorithm}}))
    now, tensor = trace.snapshot(0), "K" if keys else "Q"
    turning, cell = now.turning(tensor), Cell(tensor, row, col)
    pair, width = turning.pair(row, col), round(8 * fraction)
    words = explain(now, cell).lines
    if col >= width:
        assert pair is None
        assert not any("RoPE" in str(part) for line in words for part in line)
        return
    n = col // 2 if interleaved else col % (width // 2)
    first, second = (2 * n, 2 * n + 1) if interleaved else (n, n + width // 2)
    place = row + offset + (0 if keys else 7 - 5)
    before = turning.before[row]
    hand = complex(before[first], before[second]) * exp(1j * place * theta ** (-2 * n / width))
    assert (pair.number, pair.place) == (n, place)
    assert pair.turned == pytest.approx(hand.real if col == first else hand.imag, abs=1e-9)
    shown = now.inputs[tensor][row, col]
    assert shown == pytest.approx(pair.turned, rel=2e-3, abs=1e-6)
    numbers = [part.value for part in words[0] if isinstance(part, Number)]
    own, cos, other, sin, made = numbers
    assert (
        made == pair.turned == pytest.approx(own * cos + (-other if col == first else other) * sin)
    )
    assert words[1][-1].value == shown


def test_places_are_counted_and_a_row_stops_at_its_own() -> None:
    trace = trace_of(small())
    now = trace.snapshot(0, 1)
    turning = now.turned_now
    assert turning.last == 6  # the last query stands where the last key does
    np.testing.assert_array_equal(turning.at(0.0), turning.before)
    assert np.abs(turning.at(1.0) - now.q).max() < 4e-3
    half = turning.angles(np.arange(5), 0.5)
    np.testing.assert_allclose(half[:, 0], [2, 3, 3, 3, 3])


def test_before_the_places_are_known_it_is_said_that_they_will_turn() -> None:
    trace = trace_of(small())
    cell = Cell("Q", 2, 1)
    before, after = (explain(trace.snapshot(0, op), cell) for op in (0, 1))
    assert before.value.value != after.value.value
    assert len(after.lines) == len(before.lines) + 1
    assert "will be turned" in str(before.lines)
    assert "is turned" in str(after.lines)


def test_a_tile_is_not_under_way_before_the_tiles() -> None:
    trace = trace_of(small())
    motion = Motion(trace.snapshot(0, 0), trace.snapshot(0, 1))
    assert motion.terms == 0
    assert not motion.flights
    assert motion.at(0.0).inputs["Q"] is not motion.at(1.0).inputs["Q"]
    assert trace.snapshot(0, 2).turned_now.tensor == "K"
    assert trace.snapshot(0, 3).turned_now is None
