"""Naive's backward pass: visits and bytes against plain loops, and what it saves and costs."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given

from simulator.engines.gradient_engine import check_stored_pairs
from simulator.problem.scenario import Algorithm, Scenario
from simulator.problem.workload import Workload
from simulator.program.algorithms import ALGORITHMS, TENSORS
from simulator.program.tile_program import TileProgram
from simulator.program.traffic import compulsory_bytes
from simulator.run.trace import tile_counts
from tests.helpers.op_by_op import counted_by_ops
from tests.helpers.refused import refused
from tests.helpers.runs import WIDTHS, pairs_of, program_of, scenario, scenarios, trace_of

NAME = "naive-backward"
DRAWN = scenarios(algorithms=(NAME,))


def plain_visits(w: Workload) -> list[tuple[int, int, int, int]]:
    """Return (launch, head, i, j) of every visit, by plain loops."""
    Tr, Tc = pairs_of(w).kinds(w.rows, w.cols).shape
    tiles = [*product(range(w.heads), range(Tr), range(Tc))]
    of_keys = [
        (head, i, j)
        for kv, j in product(range(w.kv_heads), range(Tc))
        for head in range(w.heads)
        if w.kv_head_of[head] == kv
        for i in range(Tr)
    ]
    rows = [(head, i, 0) for head, i in product(range(w.heads), range(Tr))]
    launches = (of_keys, tiles, rows, tiles, of_keys)
    return [(number, *place) for number, places in enumerate(launches) for place in places]


@given(DRAWN)
def test_visits_are_those_of_plain_loops_over_every_tile(chosen: Scenario) -> None:
    program = program_of(chosen)
    expected = plain_visits(program.workload)
    assert len(program) == len(expected)
    for index, (launch, head, i, j) in enumerate(expected):
        visit = program.visit(index)
        assert (visit.launch, visit.head, visit.i, visit.j) == (launch, head, i, j)
        assert program.index(head, i, j, launch) == index
    w = program.workload
    assert (
        tile_counts(program)["visited"]
        == tile_counts(program)["total"]
        == w.heads * np.prod(pairs_of(w).kinds(w.rows, w.cols).shape)
    )


@given(DRAWN)
def test_counts_are_those_of_the_ops_and_of_plain_loops(chosen: Scenario) -> None:
    program = program_of(chosen)
    counted = counted_by_ops(program)
    assert (dict(counted.read), dict(counted.write), counted.flops) == brute_force(program)


@pytest.mark.parametrize("name", [each.name for each in ALGORITHMS.values() if each.backward])
def test_launches_say_which_numbers_of_rows_their_visits_make(name: Algorithm) -> None:
    program = program_of(scenario(name, nq=7, nk=6, rows=3, cols=4, mask={"causal": True}))
    for index in range(len(program)):
        launch = program.launches[program.visit(index).launch]
        made = {number for op in program.ops(index) for number in op.makes}
        of_rows = {number for number in made if TENSORS[number].axes == ("row",)}
        assert of_rows == {*launch.makes} | {*launch.writes} & {"D"}


def brute_force(program: TileProgram) -> tuple[dict[str, int], dict[str, int], int]:
    """Return what the conventions count, tile by tile."""
    w = program.workload
    b, d, dv = WIDTHS[w.dtype], w.head_dim, w.value_dim
    Tr, Tc = pairs_of(w).kinds(w.rows, w.cols).shape
    rows = [min(w.rows, w.seqlen_q - i * w.rows) for i in range(Tr)]
    keys = [min(w.cols, w.seqlen_k - j * w.cols) for j in range(Tc)]
    read, write, flops = Counter[str](), Counter[str](), 0
    for r in rows * w.heads:
        read["dO"] += r * dv * b  # once for dP
        write["dQ"] += r * d * b
        for c in keys:
            pairs = r * c * b
            read.update(P=2 * pairs, dP=pairs, dS=2 * pairs, V=c * dv * b, K=c * d * b)
            read.update(dO=r * dv * b, Q=r * d * b)  # for dV and dK, which go over columns
            write.update(dP=pairs, dS=pairs)
            flops += 2 * r * c * (2 * d + 2 * dv)
            if w.softcap:
                read["S"] += pairs
    for c in keys:
        write.update(dK=w.kv_heads * c * d * b, dV=w.kv_heads * c * dv * b)
    found = (dict.fromkeys(program.tensors, 0) | dict(counted) for counted in (read, write))
    return (*found, flops)


def test_the_least_bytes_count_each_launch_once() -> None:
    program = program_of(scenario(NAME, nq=6, nk=8, d=3, dv=2, heads=2, kv_heads=1, rows=2, cols=4))
    pairs, queries = 2 * 6 * 8, 2 * 6
    products = 2 * pairs + 2 * queries * 2 + 2 * 8 * 2  # dV of P and dO, dP of dO and V
    products += 2 * pairs + 2 * queries * 3 + 2 * 8 * 3  # dQ of dS and K, dK of dS and Q
    assert compulsory_bytes(program.workload) == 4 * (products + 3 * pairs)


def test_what_the_forward_pass_leaves_is_its_p() -> None:
    trace = trace_of(scenario(NAME, nq=6, heads=2, mask={"causal": True}))
    assert trace.program.kept == ("P",)
    scores = np.einsum("hqd,hkd->hqk", trace.inputs.q, trace.inputs.k) * trace.workload.scale
    scores[:, ~np.tri(6, dtype=bool)] = -np.inf
    weights = np.exp(scores)
    weights /= weights.sum(axis=2, keepdims=True)
    np.testing.assert_allclose(trace.left["P"], weights, atol=1e-6)


@pytest.mark.parametrize(("scores", "kept"), [({}, ("P",)), ({"softcap": 2.0}, ("P", "S"))])
def test_a_soft_cap_keeps_the_scores_as_well(
    scores: dict[str, float], kept: tuple[str, ...]
) -> None:
    assert program_of(scenario(NAME, scores=scores)).kept == kept


def test_a_length_whose_stored_pairs_no_memory_holds_is_refused_in_one_line() -> None:
    """N = 131 072: P, dP and dS would take 64 GiB each. What is counted needs none of them."""
    shape = {"d": 128, "heads": 1, "kv_heads": 1, "rows": 1024, "cols": 1024}
    long = program_of(scenario(NAME, nq=2**17, **shape))
    assert long.totals.bytes > 2**36
    assert refused(check_stored_pairs, long) == (
        "scenario: attention.seqlen_k = 131072: expected at most 268435456 pairs of a row and a "
        "key, as naive-backward stores P, dP, dS of all"
    )
    check_stored_pairs(program_of(scenario(NAME, nq=2**14, **shape)))
    check_stored_pairs(program_of(scenario("flash2-backward", nq=2**17, **shape)))
