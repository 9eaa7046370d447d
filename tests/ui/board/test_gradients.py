"""Gradients on the board: they fill as they are computed, in the colours of what they are of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

import numpy as np
import pytest
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QColor, QImage

from simulator.base.assets import SCENARIOS
from simulator.run.motion import Motion
from simulator.run.row_report import row_report
from simulator.run.snapshot import Cell
from simulator.run.trace import Trace, simulate
from tests.helpers.painted import painted, record_texts
from tests.helpers.runs import scenario, trace_of
from ui.board import scene
from ui.board.board import Marks, board_layout, describe, paint_board, paint_moving_board
from ui.board.layout import BoardLayout, locate
from ui.board.middle import middle_at
from ui.board.scores import shown_current
from ui.board.words import caption_phrases
from ui.look.heat import colour_map
from ui.look.names import op_label, short_op_label
from ui.look.theme import DARK, THEMES, Style
from ui.panels.formula.lines import explanation_text, formula_lines
from ui.panels.memory.model import memory_model

pytestmark = pytest.mark.usefixtures("qapp")
RECT = QRectF(0, 0, 900, 640)
STYLE = Style(DARK)
PAIRS = (("Q", "dQ"), ("K", "dK"), ("V", "dV"), ("O", "dO"))


@pytest.fixture(scope="module")
def demo() -> Trace:
    return simulate(SCENARIOS / "flash2-backward.toml")


def tile(trace: Trace, head: int, i: int, j: int) -> int:
    """Return the visit of a tile."""
    found = trace.program.index(head, i, j, trace.program.forming)
    assert found is not None
    return found


def picture(trace: Trace, visit: int, op: int | None = None) -> tuple[QImage, BoardLayout]:
    now = trace.snapshot(visit, op)
    paint = partial(paint_board, snapshot=now, style=STYLE, rect=RECT)
    return painted(paint, 900, 640), board_layout(trace.workload, STYLE, RECT)


def filled(image: QImage, box: QRectF) -> float:
    """Return the share of a box that is not empty."""
    empty = QColor(DARK.empty).rgb()
    places = [
        (x, y)
        for x in range(round(box.left()) + 6, round(box.right()) - 6, 3)
        for y in range(round(box.top()) + 6, round(box.bottom()) - 6, 3)
    ]
    return sum(image.pixel(x, y) != empty for x, y in places) / len(places)


def test_gradients_of_keys_fill_column_block_by_column_block(demo):
    w, seen = demo.workload, []
    for j in range(w.grid.Tc):
        image, lay = picture(demo, tile(demo, 1, w.grid.Tr - 1, j))
        for name in ("dK", "dV"):
            shares = [
                filled(image, lay.col_band(name, w.grid.col_range(block)))
                for block in range(w.grid.Tc)
            ]
            assert min(shares[: j + 1]) > 0.9, (name, j)
            assert max(shares[j + 1 :], default=0) < 0.1, (name, j)
            seen.append(sum(shares))
    assert seen == sorted(seen)


def test_gradients_of_rows_are_zero_first_and_done_last(demo):
    """Before anything is cleared there is none; every box is filled at the end."""
    before, lay = picture(demo, 0, 0)
    for name in ("dQ", "dK", "dV", "D"):
        assert filled(before, lay.boxes[name]) < 0.1, name
    after, lay = picture(demo, len(demo) - 1)
    for name in ("dQ", "dK", "dV", "D", "LSE", "dO"):
        assert filled(after, lay.boxes[name]) > 0.9, name
    cleared, lay = picture(demo, tile(demo, 0, 0, 0), 0)
    row = lay.row_band("dQ", range(5, 6)).adjusted(4, 4, -4, -4)
    colours = {
        cleared.pixel(x, round(row.center().y())) for x in range(int(row.left()), int(row.right()))
    }
    assert len(colours) == 1  # zeros of all columns


@pytest.mark.parametrize("theme", THEMES.values(), ids=lambda theme: theme.name)
def test_a_gradient_has_the_colours_of_what_it_is_of(theme):
    assert isinstance(theme, type(DARK))
    for name, gradient in PAIRS:
        assert theme.tensor(gradient) == theme.tensor(name)
        np.testing.assert_array_equal(colour_map(theme, gradient), colour_map(theme, name))
    assert theme.tensor("dS") == theme.tensor("S")
    assert theme.tensor("dP") == theme.tensor("P")
    assert theme.tensor("dQ_acc") == theme.tensor("Q")


def test_the_tile_shows_the_newest_numbers_of_its_pairs(demo):
    """Of both signs alike, so that nothing is the middle of the map."""
    visit, names = tile(demo, 0, 2, 1), list[str]()
    lay = board_layout(demo.workload, STYLE, RECT)
    for op in range(len(demo.program.ops(visit))):
        now = demo.snapshot(visit, op)
        found, shown = now.newest_pairs, shown_current(now, lay)
        if found is None:
            assert shown is None
            continue
        np.testing.assert_array_equal(shown.values, found[1])  # nothing is hidden in this tile
        if found[0].startswith("d"):
            low, high = middle_at(now).value_range(now, found[0])
            assert low == -high < 0
        names.append(found[0])
    assert list(dict.fromkeys(names)) == ["S", "P", "dP", "dS"]


def test_the_pointer_finds_gradients_and_reads_them(demo):
    visit = tile(demo, 0, 2, 1)
    now, lay = demo.snapshot(visit), board_layout(demo.workload, STYLE, RECT)
    for name, cell in (("dQ", Cell("dQ", 9, 3)), ("dK", Cell("dK", 5, 2)), ("D", Cell("D", 9, 0))):
        assert locate(lay, lay.place(cell).center()) == cell
        assert describe(now, cell).startswith(("dQ_acc[9, 3] = ", "dK[5, 2] = ", "D[9] = ")), name
    later = describe(now, Cell("dK", 12, 2))
    assert later == "dK[12, 2]: not there yet"
    pair = describe(now, Cell("S", 9, 5))
    assert all(f"{name} = " in pair for name in ("P", "dP", "dS"))
    assert locate(lay, lay.place(Cell("dS", 9, 5)).center() + QPointF(1, 1)) == Cell("S", 9, 5)


def test_a_tile_that_is_computed_again_flashes(demo, monkeypatch):
    """More at first than later, and said in words; the forward pass itself has no second visit."""

    def lightness(trace: Trace, visit: int, op: int, share: float) -> float:
        motion = Motion(*(trace.snapshot(visit, each) for each in (op - 1, op)))
        lay = board_layout(trace.workload, STYLE, RECT)
        image = painted(
            lambda painter: paint_moving_board(painter, motion, share, lay, Marks()),
            900,
            640,
        )
        box = lay.tile(motion.after.visit.rows, motion.after.visit.cols).adjusted(6, 6, -6, -6)
        points = [(box.left() + n * box.width() / 9, box.center().y()) for n in range(10)]
        return sum(image.pixelColor(round(x), round(y)).lightness() for x, y in points) / 10

    visit = tile(demo, 0, 2, 1)
    op = next(n for n, op in enumerate(demo.program.ops(visit)) if "S" in op.makes)
    first, last = (lightness(demo, visit, op, share) for share in (0.02, 0.98))
    assert first > last + 30
    said = record_texts(monkeypatch, scene)
    lightness(demo, visit, op, 0.5)
    assert any("computed again" in text.text for text in said)
    forward = trace_of(scenario("flash2", nq=16, d=8))
    said.clear()
    lightness(forward, 1, 1, 0.5)
    assert said
    assert not any("again" in text.text for text in said)


@pytest.mark.parametrize("name", ["dV", "dK", "dQ_acc", "dP", "D"])
def test_sums_grow_term_by_term(demo, name):
    """Half way, the board has the sum of half of the terms, and at the end what is recorded."""
    visit = 1 if name == "D" else tile(demo, 0, 2, 1)
    op = next(n for n, op in enumerate(demo.program.ops(visit)) if name in op.makes)
    motion = Motion(*(demo.snapshot(visit, each) for each in (op - 1, op)))
    assert motion.terms
    half, whole = (motion.at(share).state[name] for share in (0.5, 1.0))
    assert not np.allclose(half, whole)
    np.testing.assert_allclose(motion.at(0.999999).state[name].shape, whole.shape)
    head = motion.at(0.5).head
    assert head is not None
    lay = board_layout(demo.workload, STYLE, RECT)
    place = lay.box_of(name)
    if place in head.results:
        own = motion.after.visit.cols if name in ("dV", "dK") else motion.after.visit.rows
        found = head.results[place][own.start : own.stop]
        np.testing.assert_allclose(found, half.reshape(found.shape), rtol=1e-6)


def test_what_a_visit_makes_of_rows_and_drops_stays_on_the_board():
    """As m and l of rows that are done do: D of naive's backward pass never goes to HBM."""
    trace = simulate(SCENARIOS / "naive-backward.toml")
    w, head, done = trace.workload, 1, set[int]()
    for index in range(len(trace)):
        now = trace.snapshot(index)
        if now.visit.head != head:
            continue
        if now.made("D"):
            done.add(now.visit.i)
        dots = (now.inputs["dO"].astype(np.float64) * now.head.o).sum(axis=1)
        found = now.head.results["D"][:, 0]
        image, lay = picture(trace, index)
        for i in range(w.grid.Tr):
            rows = w.grid.row_range(i)
            own = slice(rows.start, rows.stop)
            seen = filled(image, lay.row_band("D", rows))
            if i in done:
                np.testing.assert_allclose(found[own], dots[own], atol=1e-5)
                assert seen > 0.9
                words = describe(now, Cell("D", rows.start, 0))
                assert "HBM" not in words or i == now.visit.i
                assert i == now.visit.i or words.endswith(f"of row block {i}, used and dropped")
            else:
                assert np.isnan(found[own]).all()
                assert seen < 0.1
    assert done == {*range(w.grid.Tr)}
    assert describe(now, Cell("dK", 0, 0)).endswith("of column block 0, as it lies in HBM")


def names_in(trace: Trace, head: int) -> Iterator[tuple[str, str]]:
    """Yield the words of each op of a head about the rows' sums, and where they are read."""
    for index in range(len(trace)):
        for op in range(len(trace.program.ops(index))):
            now = trace.snapshot(index, op)
            if now.visit.head != head:
                continue
            w, row = trace.workload, now.visit.rows.start + 1
            yield "strip", f"{op_label(now.op, w)} {short_op_label(now.op, w)}"
            yield "caption", ", ".join(caption_phrases(now, 20.0))
            model = memory_model(now)
            yield from (("chip", name) for chip in model.registers for name in chip.names)
            for line in formula_lines(now, row_report(now, row)):
                pieces = [piece for choice in line.choices for piece in choice]
                yield "formula", f"{line.latex} {' '.join(p.text + p.hint for p in pieces)}"
            cell = Cell("dQ", row, 2)
            yield "board", describe(now, cell)
            found = explanation_text(now, cell)
            parts = (*found.title, *found.lines, *found.terms, found.total)
            yield "explanation", " ".join(p.text + p.hint for part in parts for p in part)


@pytest.mark.long
@pytest.mark.parametrize("name", ["flash2-backward", "naive-backward"])
def test_a_sum_that_hbm_never_has_is_called_as_what_it_becomes(name):
    trace = simulate(SCENARIOS / f"{name}.toml")
    places = {place for place, words in names_in(trace, 1) if re.search("dQ_(acc|.mathrm)", words)}
    in_hbm = "dQ_acc" in trace.program.tensors
    assert in_hbm == (name == "flash2-backward")
    assert places == ({"strip", "chip", "formula", "board", "explanation"} if in_hbm else set())
