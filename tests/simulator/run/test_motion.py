"""What exists between two snapshots: computed, never ahead of what has landed."""

import math
import warnings
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest

from simulator.base.assets import SCENARIOS
from simulator.problem.scenario import load_scenario
from simulator.program.algorithms import ALGORITHMS
from simulator.program.gradient_ops import (
    AddKeyGradient,
    AddQueryGradient,
    AddValueGradient,
    WeightedMeans,
    WeightGradient,
)
from simulator.program.ops import Accumulate, MergeOutputs, Rescale, RowSum, Scores
from simulator.program.playback import (
    Cursor,
    Granularity,
    Playhead,
    first_cursor,
    last_cursor,
    path_between,
    rescaling,
)
from simulator.program.state_ops import ReadOutput, ReadState, Recall, Similarities, UpdateState
from simulator.program.under_way import terms, under_way
from simulator.run.motion import Motion, flights_of, landed_between
from simulator.run.trace import Trace
from tests.helpers.faulty_runs import causal, faulty
from tests.helpers.runs import program_of, scenario, trace_of

SHARES = np.linspace(0, 1, 41)
DEMOS = [spec.name for spec in ALGORITHMS.values()]


def motions(trace: Trace) -> Iterator[Motion]:
    """Go through the first and the last ops of a run."""
    end = last_cursor(trace.program)
    path = [first_cursor(), *path_between(trace.program, first_cursor(), end, 10**6)]
    shown = path if len(path) < 140 else [*path[:100], Cursor(-1, -1), *path[-40:]]
    for one, two in pairwise(shown):
        if -1 not in (one.visit, two.visit):
            yield Motion(trace.snapshot(one.visit, one.op), trace.snapshot(two.visit, two.op))


@pytest.fixture(scope="module", params=DEMOS)
def trace(request: pytest.FixtureRequest) -> Trace:
    return trace_of(load_scenario(SCENARIOS / f"{request.param}.toml"))


@pytest.mark.sweep(keep=1)
def test_it_begins_and_ends_with_the_snapshots(trace: Trace) -> None:
    for motion in motions(trace):
        assert motion.at(0.0) is motion.before
        assert motion.at(1.0) is motion.after


@pytest.mark.sweep(keep=1)
def test_partial_sums_are_those_of_the_first_terms(trace: Trace) -> None:
    seen: set[type] = set()
    for motion in motions(trace):
        op, old = motion.after.op, {k: v.astype(float) for k, v in motion.numbers.items()}
        for share in SHARES[1:-1]:
            now, n = motion.at(share).state, int(share * terms(op, old))
            if isinstance(op, Scores):
                name, exact = "S", op.scale * old["Q"][:, :n] @ old["K"][:, :n].T
            elif isinstance(op, Accumulate):
                factor = old["beta"] / old["l"] if op.normalised else np.ones(len(old["P"]))
                name = "O"
                exact = old["O"] + factor[:, None] * (old["P"][:, :n] @ old["V"][:n])
            elif isinstance(op, WeightGradient):
                name, exact = "dP", old["dO"][:, :n] @ old["V"][:, :n].T
            elif isinstance(op, AddQueryGradient):
                name = "dQ_acc"
                exact = old["dQ_acc"] + old["dS"][:, :n] @ old["K"][:n]
            elif isinstance(op, AddValueGradient):
                name, exact = "dV", old["dV"] + old["P"][:n].T @ old["dO"][:n]
            elif isinstance(op, AddKeyGradient):
                name, exact = "dK", old["dK"] + old["dS"][:n].T @ old["Q"][:n]
            elif isinstance(op, WeightedMeans):
                name, exact = "D", np.einsum("rk,rk->r", old["P"][:, :n], old["dP"][:, :n])
            elif isinstance(op, Similarities):
                name, exact = "S", old["phi_Q"][:, :n] @ old["phi_K"][:, :n].T
            elif isinstance(op, ReadState):
                name, exact = "O", old["phi_Q"][:, :n] @ old["state"][:n, :-1]
            elif isinstance(op, ReadOutput):
                name, exact = "O", old["phi_Q"][:, :n] @ old["state"][:n]
            elif isinstance(op, Recall):
                name, exact = "v_old", old["phi_K"][:, :n] @ old["state"][:n]
            elif isinstance(op, UpdateState):
                name, ones = "state", np.ones((n, 1))
                exact = old["state"] + old["phi_K"][:n].T @ np.hstack([old["V"][:n], ones])
            elif isinstance(op, MergeOutputs):
                name, exact = "O", np.einsum("sr,srd->rd", old["w"][:n], old["O_partial"][:n])
            elif isinstance(op, RowSum):
                name = "l" if op.running or op.whole else "l_tile"
                exact = old["P"][:, :n].sum(axis=1)
                if op.running:
                    exact = exact + old["alpha"] * old["l"]
            else:
                continue
            seen.add(type(op))
            np.testing.assert_allclose(now[name], exact, rtol=1e-6, atol=1e-7)
    assert {Scores, UpdateState, ReadOutput, WeightGradient} & seen


@pytest.mark.sweep(keep=1)
def test_all_sums_of_the_demos_are_what_the_engine_recorded(trace: Trace) -> None:
    for motion in motions(trace):
        if under_way(motion.after.op, motion.numbers, 1.0):
            assert motion.is_sound, motion.after.op.name


@pytest.mark.sweep(keep=1)
def test_a_rescale_is_between_its_ends_and_nothing_moves_where_alpha_is_1(trace: Trace) -> None:
    for motion in motions(trace):
        if not isinstance(motion.after.op, Rescale):
            continue
        begin, end, half = motion.numbers["O"], motion.after.o, motion.at(0.5).o
        assert (np.abs(half) <= np.abs(begin) + 1e-6).all()
        assert (np.abs(half) >= np.abs(end) - 1e-6).all()
        still = motion.after.state["factor"] == 1
        np.testing.assert_array_equal(half[still], begin[still])


@pytest.mark.sweep(keep=1)
def test_weights_of_used_keys_are_scaled_by_powers_of_alpha_while_o_is_rescaled(
    trace: Trace,
) -> None:
    for motion in motions(trace):
        before, after = motion.before.head, motion.after.head
        if not isinstance(motion.after.op, Rescale) or before is None or after is None:
            continue
        visit, alpha = motion.after.visit, motion.after.tile.alpha[:, None]
        begin = motion.after.begun_at * trace.workload.cols
        own = np.s_[visit.rows.start : visit.rows.stop, begin : visit.cols.start]
        scaled = np.nan_to_num(before.weights[own]) * alpha
        np.testing.assert_allclose(np.nan_to_num(after.weights[own]), scaled, rtol=1e-4, atol=1e-7)
        keys = slice(begin, visit.cols.start)
        for share in (0.25, 0.6):
            now = motion.used_weights(share)
            if now is None:
                np.testing.assert_array_equal(before.weights[own], after.weights[own])
            else:
                scaled = np.nan_to_num(before.weights[own]) * alpha ** rescaling(share).risen
                np.testing.assert_allclose(np.nan_to_num(now[:, keys]), scaled, rtol=1e-5)
                others = before.weights[visit.rows.start : visit.rows.stop, :begin]
                np.testing.assert_array_equal(now[:, :begin], others)


@pytest.mark.sweep(keep=1)
def test_bytes_count_when_tiles_land(trace: Trace) -> None:
    moved = 0
    for motion in motions(trace):
        counted = [motion.at(share).counters for share in SHARES]
        for one, two in pairwise(counted):
            assert two.read_bytes >= one.read_bytes
            assert two.write_bytes >= one.write_bytes
        for share, now in zip(SHARES, counted, strict=True):
            landed = [f.move.bytes for f in motion.flights if f.landed(share)]
            assert now.bytes == motion.before.counters.bytes + sum(landed)
            loading = {f.move.tensor for f in motion.flights if f.loads and not f.landed(share)}
            held = {tile.name for tile in motion.before.on_chip}
            assert not (loading - held) & {tile.name for tile in motion.at(share).on_chip}
        moved += len(motion.flights)
    assert moved > 10


@pytest.mark.sweep(keep=1)
def test_rows_beside_the_row_block_stay_as_they_were(trace: Trace) -> None:
    for motion in motions(trace):
        now, old = motion.at(0.5).head, motion.before.head
        assert old is not None
        if motion.before.visit.head != motion.after.visit.head or motion.after.op.lands < 1:
            continue
        others = np.ones(len(now.m), dtype=bool)
        others[motion.after.visit.rows.start : motion.after.visit.rows.stop] = False
        for name in ("m", "l", "o"):
            np.testing.assert_array_equal(getattr(now, name)[others], getattr(old, name)[others])


def test_tiles_fly_one_after_the_other() -> None:
    program = trace_of(load_scenario(SCENARIOS / "flash1.toml")).program
    for count in range(1, 6):
        moves = tuple(move for op in program.ops(0) for move in op.moves)[:count]
        flights = flights_of(moves, loads=True)
        assert flights[-1].end == 1.0
        for one, two in pairwise(flights):
            assert one.begin < two.begin < one.end < two.end
        for flight in flights:
            assert flight.way(flight.begin) == 0
            assert flight.way(1.0) == 1


@pytest.mark.parametrize("loads", [True, False])
def test_between_hbm_and_the_chip_a_tile_spends_half_its_way(loads: bool) -> None:
    """A loaded one the second half, after its way from the board; a stored one the first."""
    program = trace_of(load_scenario(SCENARIOS / "flash1.toml")).program
    flight = flights_of(program.ops(0)[0].moves[:1], loads=loads)[0]
    for share in SHARES:
        way = flight.way(share)
        expected = 2 * way - 1 if loads else 2 * way
        assert flight.bus(share) == pytest.approx(min(max(expected, 0.0), 1.0))


@pytest.mark.long
def test_what_comes_out_wrong_is_no_sum() -> None:
    wrong = faulty(causal("flash2"), "late_scale")
    scores = [m for m in motions(wrong) if isinstance(m.after.op, Scores)]
    assert scores
    for motion in scores:
        assert not motion.is_sound
        assert motion.terms == 0
        assert "S" not in motion.at(0.5).state


@pytest.mark.long
def test_infinite_numbers_are_compared_without_a_warning() -> None:
    trace = faulty(causal("flash2", scale=1e4), "no_maximum")
    infinite = 0
    for motion in motions(trace):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert motion.is_sound in (True, False)
        infinite += any(np.isinf(values).any() for values in motion.numbers.values())
    assert infinite > 10


def test_on_the_way_to_the_end_every_tensor_that_moves_has_landed() -> None:
    program = program_of(scenario("naive", nq=4, rows=2, cols=2))
    every = [move.tensor for n in range(len(program)) for op in program.ops(n) for move in op.moves]
    way = Playhead(first_cursor(), 0.0), Playhead(last_cursor(program), math.inf)
    assert landed_between(program, *way, Granularity.OP) == tuple(dict.fromkeys(every))
    loaded = Playhead(first_cursor(), 0.0), Playhead(Cursor(0, 1), math.inf)
    assert landed_between(program, *loaded, Granularity.OP) == ("Q", "K")


@pytest.mark.long
def test_in_a_step_of_several_ops_what_they_move_lands_where_it_begins() -> None:
    program = program_of(scenario("flash2", nq=4, nk=6, rows=2, cols=2))
    start = Playhead(first_cursor(), 0.0)
    for end in (Cursor(0, 3), Cursor(1, 2), Cursor(2, 0)):
        first = 1 if end.visit == 0 else 0  # of another visit also what its first op moves
        ops = program.ops(end.visit)[first : end.op + 1]
        moved = tuple(dict.fromkeys(move.tensor for op in ops for move in op.moves))
        assert landed_between(program, start, Playhead(end, 0.0), Granularity.TILE) == moved
    assert landed_between(program, start, Playhead(Cursor(1, 2), 0.0), Granularity.TILE)
    assert landed_between(program, start, start, Granularity.TILE) == ()


@pytest.mark.sweep(keep=1)
def test_what_an_op_does_at_once_is_there_when_it_lands(trace: Trace) -> None:
    for motion in motions(trace):
        lands = motion.after.op.lands
        if lands < 1:
            before, there = motion.at(lands - 1e-6), motion.at(lands)
            assert there.state.keys() == motion.after.state.keys()
            for name, values in motion.after.state.items():
                np.testing.assert_array_equal(there.state[name], values)
            assert before is not there
