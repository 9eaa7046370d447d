"""Tile programs against plain loops, and every byte against the conventions' table."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.problem.intervals import Intervals
from simulator.problem.scenario import Scenario
from simulator.problem.tiling import TileKind
from simulator.problem.workload import Workload, read_inputs, resolve
from simulator.program.launches import Cost, Launch
from simulator.program.state import State, TileMove
from simulator.program.tile_program import Visit
from simulator.program.traffic import compulsory_bytes, floor_bytes, stored_bytes
from simulator.run.trace import tile_counts
from tests.helpers.op_by_op import counted_by_ops
from tests.helpers.runs import (
    ALGORITHMS,
    WIDTHS,
    pairs_of,
    papers_elements,
    program_of,
    scenario,
    scenarios,
    visits_in_order,
)
from tests.helpers.scarce import free_memory, peak_memory

# --- visits --------------------------------------------------------------------------------


def test_a_visit_of_whole_rows_is_full_where_every_tile_is() -> None:
    full, causal = (
        [visit.kind for visit in map(program.visit, range(len(program))) if visit.launch == 1]
        for program in (
            program_of(scenario("naive", nq=4, rows=2, cols=2, mask={"causal": own}))
            for own in (False, True)
        )
    )
    assert set(full) == {TileKind.FULL}
    assert set(causal) == {TileKind.PARTIAL}


@given(scenarios())
def test_visits_are_those_of_plain_loops(chosen: Scenario) -> None:
    program = program_of(chosen)
    w = program.workload
    kinds = pairs_of(w).kinds(w.rows, w.cols)
    expected = list(visits_in_order(w))
    assert len(program) == len(expected)
    for index, (launch, head, i, j) in enumerate(expected):
        visit = program.visit(index)
        assert (visit.index, visit.launch, visit.head, visit.i, visit.j) == (
            index,
            launch,
            head,
            i,
            j,
        )
        assert visit.rows == range(i * w.rows, min((i + 1) * w.rows, w.seqlen_q))
        if w.algorithm == "naive" and launch == 1:
            assert visit.cols == range(w.seqlen_k)
        else:
            assert visit.cols == range(j * w.cols, min((j + 1) * w.cols, w.seqlen_k))
            assert visit.kind == max(kinds[i, j], TileKind.PARTIAL)
        outer = (launch, head, j if w.algorithm == "flash1" else i)
        ends = [n for n in (index - 1, index + 1) if 0 <= n < len(expected)]
        blocks = {n: (a, b, d if w.algorithm == "flash1" else c)
                  for n, (a, b, c, d) in ((n, expected[n]) for n in ends)}  # fmt: skip
        assert visit.first == (blocks.get(index - 1) != outer)
        assert visit.last == (blocks.get(index + 1) != outer)
        assert visit.opens == (index == 0 or expected[index - 1][:2] != (launch, head))


@given(scenarios())
def test_index_inverts_visit(chosen: Scenario) -> None:
    program = program_of(chosen)
    w = program.workload
    where = {place: index for index, place in enumerate(visits_in_order(w))}
    for launch, head in product(range(len(program.launches)), range(w.heads)):
        # A picture of a larger run may be asked, too: its other tiles are none of this one.
        for i, j in product(range(-1, w.grid.Tr + 2), range(-1, w.grid.Tc + 2)):
            column = 0 if program.launches[launch].whole_rows else j
            assert program.index(head, i, j, launch) == where.get((launch, head, i, column))


def test_a_launch_over_any_intervals() -> None:
    """Also where the first of two does not begin at block 0, as it does in all masks here."""
    visits = Intervals.of([[(1, 3), (5, 6)], [], [(2, 4), (4, 7)]])
    launch = Launch(
        "any", (8, 3), (20, 3), visits, by_rows=True,
        reads={}, writes={}, flops=Cost(start=3, first=5, inner=7, pair=11, last=13),
    )  # fmt: skip
    inner = [[1, 2, 5], [], [2, 3, 4, 5, 6]]
    visits = [
        (head, a, b, nth) for head in range(2) for a in range(3) for nth, b in enumerate(inner[a])
    ]
    assert launch.per_head == 8
    rows, keys = [3, 3, 2], [3, 3, 3, 3, 3, 3, 2]
    amount = 0
    for index, (head, outer, block, nth) in enumerate(visits):
        assert launch.place(index) == (head, outer, block, nth)
        assert launch.index(head, outer, block) == index
        if nth == 0:
            amount += 5 * rows[outer] + (3 if outer == 0 else 0)
        amount += (7 + 11 * rows[outer]) * keys[block]
        amount += 13 * rows[outer] if nth == len(inner[outer]) - 1 else 0
        assert launch.cost_before(index + 1)(launch.flops) == amount
        before = index - nth
        assert launch.block_bounds(index) == (before, before + len(inner[outer]))
    for outer, blocks in enumerate(inner):
        assert launch.visits.visited(outer).tolist() == blocks
        assert launch.count(outer) == len(blocks)
        assert launch.outer_size(outer) == rows[outer]
        missing = set(range(-1, 8)) - set(blocks)
        assert {launch.index(0, outer, block) for block in missing} == {None}
    assert launch.index(0, -1, 1) is launch.index(0, 3, 1) is None


@given(scenarios())
def test_bounds_of_outer_blocks_and_heads(chosen: Scenario) -> None:
    program = program_of(chosen)
    w = program.workload
    by_block, by_head = [], []
    for launch, head, i, j in visits_in_order(w):
        by_head.append((launch, head))
        by_block.append((launch, head, j if w.algorithm == "flash1" else i))
    for index in range(len(program)):
        for bounds, group in ((program.block_bounds, by_block), (program.head_bounds, by_head)):
            members = [n for n, key in enumerate(group) if key == group[index]]
            assert bounds(index) == (members[0], members[-1] + 1)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_there_is_no_visit_outside(algorithm: str) -> None:
    program = program_of(scenario(algorithm))
    for index in (-1, len(program)):
        with pytest.raises(IndexError, match=f"visit {index}: expected 0 to"):
            program.visit(index)
    for index in (-1, len(program) + 1):
        with pytest.raises(IndexError):
            program.counters(index)


# --- counts --------------------------------------------------------------------------------


@given(scenarios())
def test_counters_are_those_of_the_ops_and_of_the_table(chosen: Scenario) -> None:
    counted_by_ops(program_of(chosen))
    check_totals(chosen)


def counts_of_the_table(w: Workload) -> tuple[Counter[str], Counter[str], int]:
    """Return requested bytes by tensor, and FLOPs, as docs/counting.md counts them."""
    kinds = pairs_of(w).kinds(w.rows, w.cols)
    Tr, Tc = kinds.shape
    b, d, dv = WIDTHS[w.dtype], w.head_dim, w.value_dim
    row = [min(w.rows, w.seqlen_q - i * w.rows) for i in range(Tr)]
    col = [min(w.cols, w.seqlen_k - j * w.cols) for j in range(Tc)]
    read: Counter[str] = Counter()
    write: Counter[str] = Counter()
    flops = 0
    for _ in range(w.heads):
        if w.sink_logits:  # also a row block that sees nothing needs its own
            read["sink"] += 4 * (1 if w.algorithm == "flash1" else Tr)
        if w.algorithm == "naive":
            square = w.seqlen_q * w.seqlen_k
            read["Q"] += w.seqlen_q * d * b
            read["K"] += Tr * w.seqlen_k * d * b
            write["S"] += square * b
            read["S"] += square * b
            write["P"] += square * b
            read["P"] += square * b
            read["V"] += Tr * w.seqlen_k * dv * b
            write["O"] += w.seqlen_q * dv * b
            flops += 2 * square * (d + dv)
            continue
        if w.algorithm == "flash1":
            write["O"] += w.seqlen_q * dv * 4
            write["l"] += w.seqlen_q * 4
            write["m"] += w.seqlen_q * 4
            for j in range(Tc):
                if kinds[:, j].any():
                    read["K"] += col[j] * d * b
                    read["V"] += col[j] * dv * b
        else:
            write["O"] += w.seqlen_q * dv * b
            write["LSE"] += w.seqlen_q * 4
            for i in range(Tr):
                read["Q"] += row[i] * d * b if kinds[i].any() else 0
        for i, j in zip(*kinds.nonzero(), strict=True):
            flops += 2 * row[i] * col[j] * (d + dv)
            if w.algorithm == "flash1":
                read["Q"] += row[i] * d * b
                for counter in (read, write):
                    counter["O"] += row[i] * dv * 4
                    counter["l"] += row[i] * 4
                    counter["m"] += row[i] * 4
            else:
                read["K"] += col[j] * d * b
                read["V"] += col[j] * dv * b
    return read, write, flops


def check_totals(chosen: Scenario) -> None:
    """Compare with the table."""
    program = program_of(chosen)
    read, write, flops = counts_of_the_table(program.workload)
    totals = program.totals
    assert set(totals.read) == set(read) | set(write)
    assert Counter(totals.read) + Counter() == read + Counter()
    assert Counter(totals.write) + Counter() == write + Counter()
    assert (totals.read_bytes, totals.write_bytes) == (read.total(), write.total())
    assert totals.flops == flops


@given(
    st.sampled_from(ALGORITHMS),
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(1, 5),
    st.integers(1, 5),
    st.integers(1, 9),
)
def test_closed_forms_of_the_papers(
    algorithm: str, Br: int, Bc: int, scale: int, more: int, d: int
) -> None:
    N = Br * Bc * scale * more
    totals = program_of(scenario(algorithm, nq=N, d=d, rows=Br, cols=Bc)).totals
    # One head in float32: every element, statistics too, takes four bytes.
    assert totals.bytes == 4 * papers_elements(algorithm, N, d, Br, Bc)


@pytest.mark.long
@given(scenarios())
def test_moves_ask_for_the_bytes_they_move(chosen: Scenario) -> None:
    program = program_of(chosen)
    w = program.workload
    machine = State(*(getattr(read_inputs(w), name) for name in "qkv"), sinks=w.sinks)
    for index in range(len(program)):
        visit = program.visit(index)
        for op in program.ops(index):
            assert op.read_bytes + op.write_bytes == sum(move.bytes for move in op.moves)
            for move in op.moves:
                held = machine.view(move).size * width(w, move.tensor)
                if move.tensor == "sink":  # once for each row block, also those that see nothing
                    assert move.bytes % held == 0 < held <= move.bytes
                else:
                    assert move.bytes == held
                shared = move.tensor in ("K", "V")
                assert move.head == (w.kv_head_of[visit.head] if shared else visit.head)


def width(w: Workload, tensor: str) -> int:
    """Return the bytes of an element: statistics, sinks, and flash1's O, are float32."""
    wide = tensor in ("m", "l", "LSE", "sink") or (tensor == "O" and w.algorithm == "flash1")
    return 4 if wide else WIDTHS[w.dtype]


def elements(move: TileMove) -> set[tuple[str, int, int, int]]:
    """Return what a move touches: rows, or cells of S and P (all cells of a row are alike)."""
    cols = [0] if move.cols is None else move.cols
    return {(move.tensor, move.head, row, col) for row in move.rows for col in cols}


@pytest.mark.long
@given(scenarios(longest=12))
def test_compulsory_bytes_are_the_distinct_ones_of_each_launch(chosen: Scenario) -> None:
    program = program_of(chosen)
    w = program.workload
    touched: dict[int, set[tuple[str, int, int, int]]] = {}
    for index in range(len(program)):
        launch = touched.setdefault(program.visit(index).launch, set())
        for op in program.ops(index):
            for move in op.moves:
                launch |= elements(move)
    length = {"Q": w.head_dim, "K": w.head_dim, "V": w.value_dim, "O": w.value_dim}
    total = sum(
        length.get(tensor, 1) * width(w, tensor)
        for launch in touched.values()
        for tensor, *_ in launch
    )
    assert compulsory_bytes(w) == total
    assert compulsory_bytes(w) <= program.totals.bytes
    if not w.mask.hides:
        assert floor_bytes(w) <= compulsory_bytes(w)


@given(scenarios(longest=12))
def test_stored_bytes_are_all_elements_that_a_run_may_touch(chosen: Scenario) -> None:
    program = program_of(chosen)
    w = program.workload
    touched = {
        element
        for index in range(len(program))
        for op in program.ops(index)
        for move in op.moves
        for element in elements(move)
    }
    length = {"Q": w.head_dim, "K": w.head_dim, "V": w.value_dim, "O": w.value_dim}
    length["O_partial"] = w.value_dim
    stored = stored_bytes(w, program.tensors)
    assert list(stored) == list(program.tensors)
    for tensor in program.tensors:
        mine = length.get(tensor, 1) * width(w, tensor)
        found = mine * sum(element[0] == tensor for element in touched)
        assert found <= stored[tensor]
        if not w.mask.hides:
            assert found == stored[tensor]


@given(scenarios())
def test_tile_counts(chosen: Scenario) -> None:
    program = program_of(chosen)
    w = program.workload
    kinds = pairs_of(w).kinds(w.rows, w.cols)
    counts = tile_counts(program)
    assert counts["total"] == w.heads * kinds.size
    for number, name in enumerate(("skipped", "partial", "full")):
        assert counts[name] == w.heads * (kinds == number).sum()
    visited = kinds.size if w.algorithm == "naive" else (kinds > 0).sum()
    assert counts["visited"] == w.heads * visited


# --- on chip -------------------------------------------------------------------------------

NEEDS = {
    "scores": ({"Q", "K"}, {"S"}),
    "mask": ({"S"}, {"S"}),
    "row max": ({"S"}, {"S"}),
    "exponentials": ({"S"}, {"P"}),
    "row sum": ({"P"}, {"P"}),
    "combine": ({"m", "l", "O"}, {"m", "l", "O"}),
    "rescale": ({"m", "l", "O"}, {"O"}),
    "accumulate": ({"P", "V", "O"}, {"O"}),
    "initialise": (set(), {"O"}),
}


@pytest.mark.long
@given(scenarios())
def test_on_chip_is_what_running_from_the_start_leaves(chosen: Scenario) -> None:
    program = program_of(chosen)
    w = program.workload
    held: dict[str, tuple[int, str]] = {}
    peak = 0
    for index in range(len(program)):
        for number, op in enumerate(program.ops(index)):
            before = set(held)
            for name in op.frees:
                del held[name]  # nothing is freed that is not there
            for tile in op.allocates:
                assert tile.name not in held or op.name == "load"
                held[tile.name] = (tile.bytes, tile.place)
            now = {tile.name: (tile.bytes, tile.place) for tile in program.on_chip(index, number)}
            assert now == held
            needs, gives = NEEDS.get(op.name, (set(), set()))
            naive_output = w.algorithm == "naive"  # no m and l beside O there
            assert needs - ({"m", "l"} if naive_output else set()) <= before
            assert gives <= set(held)
            if op.stores and op.name == "store":
                assert {move.tensor for move in op.moves} - {"LSE"} <= before
            peak = max(peak, sum(size for size, place in held.values() if place == "shared"))
            assert peak <= program.peak_shared_bytes
    assert not held  # a run leaves nothing behind
    assert program.peak_shared_bytes == peak_of_whole_tiles(w)
    largest = (min(w.rows, w.seqlen_q), min(w.cols, w.seqlen_k))
    visits = [program.visit(n) for n in range(len(program))]
    if any((len(v.rows), len(v.cols)) == largest for v in visits):
        assert peak == program.peak_shared_bytes


def size_on_chip(w: Workload, visit: Visit, name: str) -> tuple[int, str]:
    """Return bytes and place of a tile: operands as in HBM, what is computed as float32."""
    b, r, c = WIDTHS[w.dtype], len(visit.rows), len(visit.cols)
    if w.algorithm == "naive" and visit.launch == 1:
        return 4 * w.seqlen_k, "shared"  # one row at a time
    if name in ("Q", "K", "V"):
        size = r if name == "Q" else c
        return size * (w.value_dim if name == "V" else w.head_dim) * b, "shared"
    if name == "P" and w.algorithm == "naive":
        return r * c * b, "shared"
    return {"S": r * c, "P": r * c, "m": r, "l": r, "O": r * w.value_dim}[name] * 4, "registers"


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_tile_on_chip_has_its_size(algorithm: str) -> None:
    program = program_of(
        scenario(algorithm, nq=13, nk=8, d=3, dv=5, heads=2, kv_heads=1, rows=4, cols=3,
                 dtype="float16", mask={"causal": True})
    )  # fmt: skip
    w = program.workload
    for index in range(len(program)):
        visit, ops = program.visit(index), program.ops(index)
        for number in range(len(ops)):
            for tile in program.on_chip(index, number):
                assert (tile.bytes, tile.place) == size_on_chip(w, visit, tile.name)
        left = {tile.name for tile in program.on_chip(index, len(ops) - 1)}
        assert left == (set() if visit.last else STAYS[algorithm][visit.launch])
        for tile in (each for op in ops for each in op.allocates):
            assert tile.stays == (tile.name in STAYS[algorithm][visit.launch])


STAYS: dict[str, tuple[set[str], ...]] = {
    "naive": ({"Q"}, set(), {"O"}),
    "flash1": ({"K", "V"},),
    "flash2": ({"Q", "m", "l", "O"},),
}
"""What lies on chip from one visit to the next, by launch."""


def peak_of_whole_tiles(w: Workload) -> int:
    """Return what tiles of full size take: operands as wide as in HBM, one row of naive's S."""
    b, d, dv = WIDTHS[w.dtype], w.head_dim, w.value_dim
    rows, cols = min(w.rows, w.seqlen_q), min(w.cols, w.seqlen_k)
    if w.algorithm == "naive":
        return max(b * (rows + cols) * d, 4 * w.seqlen_k, b * cols * (rows + dv))
    return b * (rows * d + cols * (d + dv))


# --- at scale ------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_hundred_thousand_tokens_take_no_list_of_visits(algorithm: str) -> None:
    chosen = scenario(
        algorithm, nq=2**17, d=128, heads=32, kv_heads=8, rows=128, cols=128,
        dtype="float16", mask={"causal": True},
    )  # fmt: skip
    with peak_memory() as peak:
        program = program_of(chosen)
        assert program.totals.flops > 0
        ends = [program.visit(0), program.visit(len(program) - 1)]
        assert peak() < 5e6
    blocks = 2**10
    tiles = blocks * (blocks + 1) // 2
    expected = {"naive": 2 * blocks**2 + blocks, "flash1": tiles, "flash2": tiles}
    assert len(program) == 32 * expected[algorithm]
    assert (ends[0].head, ends[1].head, ends[1].i) == (0, 31, blocks - 1)
    for index in np.random.default_rng(0).integers(0, len(program), 50).tolist():
        visit = program.visit(index)
        assert program.index(visit.head, visit.i, visit.j, visit.launch) == index
        after = program.counters(index).after(program.ops(index))
        assert program.counters(index + 1) == after


def test_counts_beyond_what_floats_hold() -> None:
    N, d, heads, tiles = 2**22, 128, 4096, 2**12
    chosen = scenario("flash1", nq=N, d=d, heads=heads, rows=N // tiles, cols=N // tiles)
    with free_memory(2**60):
        program = program_of(chosen)
    elements_of_a_head = tiles * (3 * N * d + 4 * N) + 3 * N * d + 2 * N
    assert program.totals.bytes == 4 * heads * elements_of_a_head > 2**53
    assert program.totals.flops == heads * 4 * N * N * d
    assert len(program) == heads * tiles**2


@pytest.mark.long
def test_the_floor_is_q_k_v_and_o_once() -> None:
    w = resolve(scenario(nq=10, nk=7, d=4, dv=3, heads=6, kv_heads=2, dtype="float16"))
    # Q 6 x 10 x 4 and O 6 x 10 x 3; K 2 x 7 x 4 and V 2 x 7 x 3; two bytes each.
    assert floor_bytes(w) == 2 * (240 + 180 + 56 + 42)
