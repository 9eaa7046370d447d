"""What is lit in the formula is lit on the board: of every op of every algorithm, the same."""

import re

import pytest
from PySide6.QtCore import QRectF
from PySide6.QtGui import QFontMetricsF

from simulator.code.code_lines import exemplars
from simulator.problem.workload import Workload
from simulator.program.algorithms import ALGORITHMS
from simulator.run.row_report import row_report
from simulator.run.snapshot import Snapshot
from simulator.run.touched import touched
from simulator.run.trace import simulate
from ui.board.board import board_layout
from ui.board.layout import BoardLayout, number_size
from ui.board.marks import lit_band, lit_boxes, lit_frame
from ui.board.partials import lit_partials, split_places
from ui.board.scores import hall_numbers_fit
from ui.look.theme import DARK, Style, stage_label, stage_scale
from ui.panels.formula.lines import formula_lines

pytestmark = pytest.mark.usefixtures("qapp")
RECT = QRectF(0, 0, 1200, 800)
STYLE = Style(DARK)
NAMES = {
    r"\ell": "l", "LSE": "LSE", "D": "D", "C": "C", "m": "m", "gate": "gate",
    **{name: name for name in "QKVOSP"},
    **{f"d{name}": f"d{name}" for name in "QKVOSP"},
}  # fmt: skip
"""What symbols of a formula stand for; features for their rows, and a sum's part for the sum."""
TOKEN = re.compile(r"\\ell|LSE|gate|d[QKVOSP]|[A-Z]|(?<![a-z])m(?![a-z])")


def named(latex: str, lay: BoardLayout) -> set[str]:
    """Return the boxes of the tensors that a formula names."""
    stored = re.sub(r"(O|\\mathrm\{LSE\})_\{\\mathrm\{partial\}\}", "", latex)  # below the keys
    said = re.sub(r"\\(?!ell)[a-zA-Z]+", " ", re.sub(r"_\{\\mathrm\{[a-z]*\}\}", "", stored))
    found = {NAMES[token] for token in TOKEN.findall(said) if token in NAMES}
    stands = {"K": lay.keys, "V": lay.values}
    return {stands.get(name, lay.box_of(name)) for name in found} - {""}


def states(name: str) -> list[tuple[Snapshot, Workload]]:
    """Return a state of every form of an op of an algorithm."""
    found: dict[tuple[object, ...], tuple[Snapshot, Workload]] = {}
    for program in exemplars(name):
        trace = simulate(program.workload.scenario)
        for visit in range(len(trace.program)):
            for n, op in enumerate(trace.program.ops(visit)):
                key = op.name, type(op), tuple(move.tensor for move in op.moves)
                if key not in found:
                    found[key] = trace.snapshot(visit, n), trace.workload
    return list(found.values())


@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_tensors_of_the_lit_lines_are_marked_on_the_board(name: str) -> None:
    for now, w in states(name):
        lay = board_layout(w, STYLE, RECT)
        lines = formula_lines(now, row_report(now, now.visit.rows.start))
        lit = [line.part or line.latex for line in lines if line.current]
        assert lit
        wanted = set[str]().union(*(named(latex, lay) for latex in lit))
        marked = lit_boxes(now, lay)
        assert {*marked} == wanted, (now.op.name, type(now.op).__name__, lit)
        assert [each for each in lay.boxes if each in wanted] == [*marked]  # in every process
        for box in marked:
            assert lay.boxes[box].intersects(lit_band(now, lay, box)), (now.op.name, box)


@pytest.mark.parametrize("name", ["split-kv", "paged", "mla"])
def test_what_splits_have_left_is_lit_where_a_formula_reads_or_stores_it(name: str) -> None:
    tried = set()
    for now, w in states(name):
        lay = board_layout(w, STYLE, RECT)
        places = split_places(now, lay)
        if not places or not now.split_tensors:
            continue
        lit = {s: lit_partials(now, STYLE, place, s) for s, place in places.items()}
        moved = [move for move in now.op.moves if move.tensor in now.split_tensors]
        first = now.visit.rows.start
        own = {move.split for move in moved if first in move.rows}
        read = touched(now) & now.split_tensors
        wanted = {"O"} if moved else {each.removesuffix("_partial") for each in read}
        for split, place in places.items():
            expected = wanted if not moved or own & {split, None} else set()
            assert {*lit[split]} == expected, (now.op.name, split)
            assert all(place.contains(band) for band in lit[split].values())
            if len(lit[split]) == 1 and not moved:
                assert next(iter(lit[split].values())).width() < place.width()
        tried |= {frozenset(wanted)}
    assert tried == {frozenset(), frozenset("O"), frozenset({"LSE"})}


def test_the_frame_of_lit_rows_crosses_none_of_their_numbers() -> None:
    style = Style(DARK, stage_scale(1920, 1080), stage_label(1920, 1080))
    now, w = next(each for each in states("flash1") if "m" in touched(each[0]))
    low = next(  # the lowest rows with numbers
        lay
        for high in range(300, 1080, 4)
        if hall_numbers_fit(
            style,
            (lay := board_layout(w, style, QRectF(0, 0, 1400, high))).boxes["m"].width(),
            lay.cell[1],
        )
    )
    font = style.code_font(number_size(style, low.boxes["m"].width(), low.cell[1]))
    frame = lit_frame(lit_band(now, low, "m"), "m", low)
    number = low.row_y(now.visit.rows.start + 0.5) - QFontMetricsF(font).capHeight() / 2
    assert frame.top() + style.px(4) <= number
