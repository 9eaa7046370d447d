"""The Formula panel: lines of every op, numbers as links, explanations that fit their place."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetricsF

from simulator.program.algorithms import ALGORITHMS
from simulator.run.cell_values import cell_value, exists
from simulator.run.row_report import row_report
from simulator.run.snapshot import Cell
from tests.helpers.demos import demo, every_op, snapshots
from tests.helpers.painted import painted
from tests.helpers.runs import trace_of
from tests.simulator.program.test_split_kv import split
from ui.look.draw import text_width
from ui.look.formula import formula
from ui.look.theme import DARK, Style
from ui.panels.formula.lines import explanation_text, formula_lines, formula_model
from ui.panels.formula.view import MIN_SIZE, FormulaLayout, formula_layout, paint_formula
from ui.panels.update_lines import softmax_lines

pytestmark = pytest.mark.usefixtures("qapp")


def some_cells(now):
    """Return cells around the current tile; None stands for one that the run does not have."""
    row, key = now.visit.rows.stop - 1, now.visit.cols.start
    cells = [Cell("S", row, key), Cell("S", 0, now.program.workload.seqlen_k - 1),
             Cell("m", row, 0), Cell("l", row, 0), Cell("O", row, 1), Cell("O", 0, 0),
             Cell("Q", row, 0), Cell("K", key, 1), Cell("V", key, 1)]  # fmt: skip
    return [None, *(cell if exists(now.program.workload, cell) else None for cell in cells)]


def boxes(lay: FormulaLayout) -> list[tuple[str, QRectF]]:
    """Return the ink of every text and formula."""
    out = []
    for text, rect, font in [
        *((w.text, w.rect, lay.font(w.font)) for w in lay.words),
        *((link.text, link.rect, lay.font()) for link in lay.links),
    ]:
        assert text_width(font, text) <= rect.width() + 1.5, text
        ink = QFontMetricsF(font).tightBoundingRect(text)
        top = rect.center().y() - ink.height() / 2
        out.append((text, QRectF(rect.x(), top, text_width(font, text.rstrip()), ink.height())))
    for maths in lay.maths:
        picture = formula(maths.latex, maths.pixels)
        height = picture.ascent + picture.descent
        top = maths.baseline - picture.ascent
        out.append((maths.latex, QRectF(maths.x, top, picture.width, height)))
    return out


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_op_has_a_line_with_its_citation(name):
    for now in every_op(demo(name)):
        report = row_report(now, now.visit.rows.start)
        model = formula_model(now, report)
        assert model.cites[0] == now.op.cites
        current = [line for line in model.lines if line.current]
        assert current
        assert all(line.reached for line in current)
        shared = softmax_lines(now, report)
        assert [line for line in model.lines if line in shared] == list(shared)


def test_what_splits_that_see_nothing_leave_is_named_once_with_what_stands_there():
    now = trace_of(split(demo("causal").workload.scenario, 4)).snapshot(0, 0)
    (line,) = (one for one in formula_lines(now, row_report(now, 0)) if one.current)
    assert "".join(piece.text for piece in line.choices[0]) == "O_partial = 0, LSE_partial = −∞"
    assert line.latex == (
        r"O_{\mathrm{partial}} \leftarrow 0,\; "
        r"\mathrm{LSE}_{\mathrm{partial}} \leftarrow -\infty"
    )


@pytest.mark.long
@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_number_of_a_line_links_to_a_cell_of_the_run(name):
    for now in every_op(demo(name)):
        report = row_report(now, now.visit.rows.stop - 1)
        for line in formula_lines(now, report):
            for pieces in line.choices:
                for piece in pieces:
                    if piece.cell is None:
                        assert not re.search(r"\d\.\d", piece.text), piece.text
                    else:
                        assert exists(now.program.workload, piece.cell)
                        assert piece.hint


@pytest.mark.sweep(keep=4)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_visit_has_no_line_that_none_of_its_ops_fills(name):
    """With S in HBM the lines are those of all launches, so that these can be told apart."""
    trace = demo(name)
    for index in range(len(trace)):
        now = trace.snapshot(index)
        lines = formula_lines(now, row_report(now, now.visit.rows.start))
        if not now.stores_scores:
            assert [line.latex for line in lines if not line.reached] == [], now.launch.name


@pytest.mark.long
def test_a_load_tells_the_numbers_of_everything_that_it_loads():
    """Of a row what another launch has left in HBM, too: here they are computed without tiles."""
    trace, seen = demo("naive-backward"), set()
    for now in every_op(trace):
        if not now.op.loads:
            continue
        w, row = trace.workload, now.visit.rows.stop - 1
        q, k, v = (values.astype(np.float64) for values in (now.q, now.k, now.v))
        scores = (q @ k.T / np.sqrt(w.head_dim))[row]
        scores[row + 1 :] = -np.inf
        weights = np.exp(scores - scores.max())
        weights /= weights.sum()
        upstream = now.inputs["dO"][row].astype(np.float64)
        of_weights = v @ upstream
        expected = {"P": weights, "dP": of_weights,
                    "dS": weights * (of_weights - weights @ of_weights)}  # fmt: skip
        (line,) = (one for one in formula_lines(now, row_report(now, row)) if one.current)
        told = "".join(piece.text for piece in line.choices[0])
        for move in now.op.moves:
            assert re.search(rf"{move.tensor}\d* = \[", told, re.IGNORECASE), (told, move.tensor)
            if move.tensor not in expected:
                continue
            seen.add((now.launch.name, move.tensor))
            shown = [p for p in line.choices[0] if p.hint.startswith(f"{move.tensor}[")]
            assert len(shown) == min(4, len(now.visit.cols))
            for piece in shown:
                assert piece.cell.row == row
                value = float(piece.text.replace("−", "-"))
                wanted = expected[move.tensor][piece.cell.col]
                assert value == pytest.approx(wanted, abs=0.006), (piece, wanted)
    assert seen == {("dV", "P"), ("dS", "P"), ("dS", "dP"), ("dQ", "dS"), ("dK", "dS")}


def test_lse_is_that_of_the_run():
    trace = demo("flash2")
    done = 0
    for now in every_op(trace):
        if now.op.name != "normalise":
            continue
        for row in now.visit.rows:
            last = formula_lines(now, row_report(now, row))[-1]
            r = row - now.visit.rows.start
            lse = float(now.tile.m[r] + np.log(now.tile.l[r]))
            assert lse == float(trace.lse[now.visit.head, row])
            assert last.choices[0][-1].cell == Cell("l", row, 0)
            done += 1
    assert done == trace.workload.heads * trace.workload.seqlen_q


@given(
    st.integers(0, 10**6), st.integers(0, 9), st.floats(MIN_SIZE.width(), 1400),
    st.floats(MIN_SIZE.height(), 900), st.floats(1, 2),
)  # fmt: skip
def test_nothing_overlaps_or_is_cut(number, which, width, height, scale):
    now = snapshots()[number % len(snapshots())]
    cell = some_cells(now)[which]
    rect = QRectF(5, 4, width, height)
    model = formula_model(now, row_report(now, now.visit.rows.start))
    said = explanation_text(now, cell) if cell else None
    lay = formula_layout(model, said, Style(DARK, scale), rect)
    room, placed = rect.adjusted(-1, -1, 1, 1), boxes(lay)
    for n, (text, box) in enumerate(placed):
        assert room.contains(box), (text, box, rect)
        for other, there in placed[:n]:
            shared = box.intersected(there)
            assert shared.width() < 1 or shared.height() < 1.5, (text, other)
    if said is None or said.terms:  # of a hidden score there are words alone
        assert any(link.text for link in lay.links) or not now.done & {"scores"}
    painted(lambda p: paint_formula(p, lay, hover=0, focus=0))


def test_terms_are_dropped_and_counted():
    now = demo("causal").snapshot(4)
    cell = Cell("S", 40, 18)
    model, said = formula_model(now, row_report(now, 40)), explanation_text(now, cell)
    for height in (260, 420, 900):
        lay = formula_layout(model, said, Style(DARK), QRectF(0, 0, 560, height))
        terms = [link for link in lay.links if link.cell.tensor == "Q"]
        more = [w.text for w in lay.words if "more term" in w.text]
        assert len(terms) + sum(int(text.split()[1]) for text in more) == 32
        assert any("sum" in text for text in more) or len(terms) == 32


SIDE = r"(\d+) (?:more lines? )?(above|below)"


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize("name", ["flash2-backward", "causal", "flash1"])
@pytest.mark.parametrize("height", [136, 230, 700])
def test_lines_that_have_no_room_are_counted_on_their_side(name, height):
    trace, sides = demo(name), set()
    visit = trace.program.visit(len(trace) // 2).index
    for op in range(len(trace.program.ops(visit))):
        now = trace.snapshot(visit, op)
        model = formula_model(now, row_report(now, now.visit.rows.start))
        for cell in (None, Cell("O", now.visit.rows.start, 0)):
            said = explanation_text(now, cell) if cell else None
            lay = formula_layout(model, said, Style(DARK), QRectF(0, 0, 560, height))
            found = [w for w in lay.words if "more line" in w.text]
            more = {side: int(n) for w in found for n, side in re.findall(SIDE, w.text)}
            first = min(maths.baseline for maths in lay.maths)
            last = max(maths.baseline for maths in lay.maths)
            for each in found:
                assert each.rect.top() > last or not each.text.endswith("below")
                assert each.rect.bottom() < first or not each.text.endswith("above")
            shown = [maths.latex for maths in lay.maths]
            every = [line.latex for line in model.lines]
            above = more.get("above", 0)
            sides |= {*more}
            if said is None or height > 200:  # else the explanation has only just room
                assert every[above : above + len(shown)] == shown
                assert len(every) == above + len(shown) + more.get("below", 0)
    assert bool(sides) == (height < 700)


def test_numbers_stand_still_from_step_to_step():
    trace = demo("flash2")
    seen: dict[int, set[tuple[float, ...]]] = {}
    for now in every_op(trace):
        if now.op.name != "row sum":
            continue
        model = formula_model(now, row_report(now, now.visit.rows.start))
        lay = formula_layout(model, None, Style(DARK), QRectF(0, 0, 560, 150))
        edges = tuple(round(link.rect.right(), 3) for link in lay.links[-4:])
        seen.setdefault(len(lay.links), set()).add(edges)
    assert all(len(edges) == 1 for edges in seen.values())


# --- in the window ------------------------------------------------------------------------------


PANEL, DEMO, LAYOUT = "formula", "causal", "algorithm"


@pytest.fixture
def window(window):
    window.session.go_to_tile(2, 1)
    window.session.choose_row(40)
    window.session.settle()
    return window


def test_a_click_on_a_number_selects_its_cell(window, panel, session, qtbot):
    assert len(panel.links) >= 4
    for link in list(panel.links):
        session.select(None)
        session.settle()
        at = next(n for n, one in enumerate(panel.links) if one == link)
        spot = panel.links[at].rect.center().toPoint()
        qtbot.mouseMove(panel, spot)
        qtbot.mouseClick(panel, Qt.MouseButton.LeftButton, pos=spot)
        session.settle()
        assert session.view.cell == link.cell
        assert window.board.selected == link.cell


@pytest.mark.long
def test_links_are_underlined_under_the_pointer(panel, qtbot):
    link = panel.links[0]
    aside = QPoint(panel.width() - 4, 4)
    qtbot.mouseMove(panel, aside)
    before = panel.grab().toImage()
    qtbot.mouseMove(panel, link.rect.center().toPoint())
    assert panel.cursor().shape() == Qt.CursorShape.PointingHandCursor
    assert panel.grab().toImage() != before
    qtbot.mouseMove(panel, aside)
    assert panel.grab().toImage() == before
    assert panel.laid.link_at(QPointF(-5, -5)) is None


def test_tab_goes_through_the_numbers_and_enter_selects(window, panel, session, qtbot):
    window.activateWindow()
    panel.setFocus(Qt.FocusReason.TabFocusReason)
    for n in range(3):
        link = panel.links[n]
        assert panel.accessibleDescription().startswith(f"{link.hint}: {link.text}")
        qtbot.keyClick(panel, Qt.Key.Key_Return)
        session.settle()
        assert session.view.cell == link.cell
        qtbot.keyClick(panel, Qt.Key.Key_Tab)
    qtbot.keyClick(panel, Qt.Key.Key_Backtab)
    assert panel.accessibleDescription().startswith(f"{panel.links[2].hint}: {panel.links[2].text}")
    for _ in range(len(panel.links)):
        qtbot.keyClick(panel, Qt.Key.Key_Tab)
    assert not panel.hasFocus()  # it does not keep the keyboard to itself


@pytest.mark.long
def test_a_number_with_the_focus_is_gone_with_its_run(window, panel, session, qtbot):
    window.activateWindow()
    panel.setFocus(Qt.FocusReason.TabFocusReason)
    panel.forget()
    qtbot.keyClick(panel, Qt.Key.Key_Return)
    session.settle()
    assert session.view.cell is None


def test_the_selected_cell_is_explained_in_words(panel, session):
    session.select(Cell("S", 3, 40))
    session.settle()
    assert "tile (0, 2) is skipped: never loaded" in panel.accessibleDescription()
    texts = [words.text for words in panel.laid.words]
    assert any("skipped: never loaded" in text for text in texts)


@pytest.mark.long
def test_alt_arrows_move_the_selection_and_escape_ends_it(window, session, qtbot):
    window.activateWindow()
    alt = Qt.KeyboardModifier.AltModifier

    def press(key, modifier=Qt.KeyboardModifier.NoModifier):
        qtbot.keyClick(window.board, key, modifier)
        session.settle()
        return session.view.cell

    window.board.setFocus()
    first = press(Qt.Key.Key_Right, alt)
    assert first == Cell("S", 40, 16)
    assert press(Qt.Key.Key_Right, alt) == Cell("S", 40, 17)
    assert press(Qt.Key.Key_Down, alt) == Cell("S", 41, 17)
    assert session.view.report.row == 41
    assert press(Qt.Key.Key_Up, alt) == Cell("S", 40, 17)
    assert press(Qt.Key.Key_Left, alt) == first
    cursor = session.view.snapshot.cursor
    assert press(Qt.Key.Key_Escape) is None
    assert session.view.snapshot.cursor == cursor
    session.select(Cell("K", 3, 2))
    session.settle()
    assert press(Qt.Key.Key_Right, alt) == Cell("K", 4, 2)
    session.select(Cell("S", 40, 640))  # the run has none
    session.settle()
    assert session.view.cell == Cell("K", 4, 2)


@pytest.mark.long
def test_the_board_marks_the_selected_cell_and_shows_it(window, session, qtbot):
    board = window.board
    for cell in (Cell("S", 40, 18), Cell("K", 5, 7), Cell("V", 5, 7), Cell("m", 9, 0),
                 Cell("O", 50, 3), Cell("Q", 2, 30)):  # fmt: skip
        session.select(None)
        session.settle()
        before = board.grab().toImage()
        place = board.board_layout().place(cell)
        qtbot.mouseClick(board, Qt.MouseButton.LeftButton, pos=place.center().toPoint())
        session.settle()
        assert session.view.cell == cell
        assert board.grab().toImage() != before
        assert f"selected: {cell.tensor if cell.tensor != 'l' else 'ℓ'}[" in (
            board.accessibleDescription()
        )
    for _ in range(8):
        board.zoom_in()
    session.select(Cell("S", 60, 2))
    session.settle()
    lay = board.board_layout()
    assert lay.boxes["S"].contains(lay.place(Cell("S", 60, 2)).center())
    assert cell_value(session.view.snapshot, Cell("S", 60, 2)).value is None
