"""The Values panel; and one number for one cell, wherever the pointer reads it."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtWidgets import QApplication

from simulator.base.assets import SCENARIOS
from simulator.problem.scenario import load_scenario
from simulator.program.playback import end_of_visit, last_cursor
from simulator.run.snapshot import Cell
from tests.helpers.by_hand import choosing
from tests.helpers.pointer import move
from ui.app.cli import main
from ui.look.units import copied_text, exact_text, number_text
from ui.panels.values.panel import NO_VALUE, ValuesPanel
from ui.session.session import Session

LEFT = Qt.MouseButton.LeftButton


def point_at(board, cell: Cell) -> None:
    """Move the simulated mouse onto a cell of the board."""
    move(board, board.board_layout().place(cell).center())


def table(panel) -> list[list[str]]:
    rows, columns = panel.table.rowCount(), panel.table.columnCount()
    return [[panel.table.item(r, c).text() for c in range(columns)] for r in range(rows)]


PANEL, DEMO, LAYOUT = "values", "causal", "algorithm"


@pytest.fixture
def window(window):
    window.session.go_to_tile(2, 1)
    window.session.settle()
    return window


def test_the_cell_under_the_pointer_is_live(window, panel, session):
    point_at(window.board, Cell("l", 40, 0))
    before = session.view.snapshot
    assert panel.live.found.value == float(before.head.l[40])
    session.go_to_tile(2, 2)
    session.settle()
    after = session.view.snapshot
    assert panel.live.found.value == float(after.head.l[40]) != float(before.head.l[40])
    assert exact_text(panel.live.found.value) in panel.live.accessibleDescription()
    QApplication.sendEvent(window.board, QEvent(QEvent.Type.Leave))
    assert panel.live.found is None


def test_pinned_cells_stay_across_steps(window, panel, session, qtbot):
    window.activateWindow()
    point_at(window.board, Cell("m", 41, 0))
    qtbot.keyClick(window.board, Qt.Key.Key_P)
    QApplication.sendEvent(window.board, QEvent(QEvent.Type.Leave))
    session.select(Cell("S", 50, 3))
    session.settle()
    panel.commands["pin"].trigger()
    panel.commands["pin"].trigger()  # once is enough
    assert panel.pinned == [Cell("m", 41, 0), Cell("S", 50, 3)]
    m, s = table(panel)
    held = float(session.view.snapshot.head.m[41])
    assert m == ["m[41]", number_text(held), exact_text(held), "i = 2",
                 "of the current row block, on chip"]  # fmt: skip
    assert s == ["S[50, 3]", NO_VALUE, NO_VALUE, "(3, 0)", "tile (3, 0) is not loaded yet"]
    session.last()
    session.settle()
    head = session.view.snapshot.head
    m, s = table(panel)
    assert m[2] == exact_text(float(head.m[41]))
    assert s[0] == "P[50, 3]"
    assert s[2] == exact_text(float(head.p[50, 3]))
    assert "used and dropped" in s[4]


def test_rows_are_copied_and_unpinned(panel, session, qtbot):
    for cell in (Cell("m", 0, 0), Cell("m", 41, 0), Cell("O", 63, 0)):
        panel.pin(cell)
    panel.table.selectRow(1)
    panel.commands["copy_value"].trigger()
    held = session.view.snapshot.head.m[41]
    assert np.float32(QApplication.clipboard().text()) == held
    panel.table.setFocus()
    qtbot.keyClick(panel.table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    lines = QApplication.clipboard().text().splitlines()
    assert lines[0].split("\t") == ["Cell", "Value", "Tile", "State"]
    assert lines[2].split("\t")[:3] == ["m[41]", copied_text(float(held)), "i = 2"]
    assert lines[3].split("\t")[1] == ""  # not there yet
    qtbot.keyClick(panel.table, Qt.Key.Key_Delete)
    assert panel.pinned == [Cell("m", 0, 0), Cell("O", 63, 0)]
    assert [row[0] for row in table(panel)] == ["m[0]", "O[63, 0]"]


def test_a_row_selects_its_cell(panel, session, qtbot):
    panel.pin(Cell("V", 9, 2))
    spot = panel.table.visualItemRect(panel.table.item(0, 0)).center()
    qtbot.mouseClick(panel.table.viewport(), LEFT, pos=spot)
    session.settle()
    assert session.view.cell == Cell("V", 9, 2)


@pytest.mark.long
@pytest.mark.parametrize("seen", [True, False])
def test_a_cell_pinned_while_another_run_arrives_is_forgotten(window, panel, session, hooked, seen):

    def pin(trace) -> None:
        assert session.view.snapshot.program is not trace.program  # what is seen is the old run
        panel.pin(Cell("S", 60, 60))
        panel.pin(Cell("m", 2, 0))
        panel.pin(Cell("m", 999, 0))  # never was there

    session.trace_changed.connect(pin)
    if not seen:
        window.docks["values"].hide()
    session.open(SCENARIOS / "flash2.toml")
    session.settle()
    window.next_theme()
    window.docks["values"].show()
    window.docks["values"].raise_()
    session.last()
    session.settle()
    assert hooked == []
    assert panel.pinned == [Cell("m", 2, 0)]
    assert [row[0] for row in table(panel)] == ["m[2]"]


def test_a_panel_that_has_ended_hears_nothing_of_a_session_that_lives(qapp, hooked):
    session = Session("numpy")
    panel = ValuesPanel(session)
    session.open(SCENARIOS / "flash2.toml")
    session.settle()
    panel.deleteLater()
    QApplication.sendPostedEvents(panel, QEvent.Type.DeferredDelete)
    session.open(SCENARIOS / "causal.toml")
    session.settle()
    session.close()
    assert session.scenario == load_scenario(SCENARIOS / "causal.toml")
    assert hooked == []


def test_controls_have_names_and_a_state_without_room_is_left_out(window, panel):
    for action in panel.commands.values():
        button = panel.bar.widgetForAction(action)
        assert button.accessibleName()
        assert button.accessibleDescription() == action.toolTip()
    point_at(window.board, Cell("l", 40, 0))
    for wide in (900, 320):
        panel.live.resize(wide, 26)
        assert ("on chip" in panel.live.text()) == (wide == 900)
    assert "on chip" in panel.live.accessibleDescription()


def test_open_in_numpy_saves_a_tile_that_agrees(window, panel, session, tmp_path):
    target = tmp_path / "mine.npz"
    choosing(panel.commands["open_in_numpy"].trigger, target)
    session.settle()
    with np.load(target) as saved:
        assert saved["indices"].tolist()[2:4] == [2, 1]
    script = [sys.executable, "-I", str(target.with_suffix(".py"))]
    assert subprocess.run(script, capture_output=True, check=False).returncode == 0
    choosing(panel.commands["open_in_numpy"].trigger, tmp_path / "no" / "t.npz")
    session.settle()
    assert "t.npz" in window.messages.text()


def test_exact_text_gives_the_number_back():
    rng = np.random.default_rng(1)
    numbers = rng.standard_normal(500).astype(np.float32) * 10.0 ** rng.integers(-30, 30, 500)
    for value in [*numbers.astype(np.float32).tolist(), 0.0, 1.0, -np.inf]:
        assert np.float32(copied_text(value)) == np.float32(value)
    assert exact_text(-0.5) == "−0.5"
    assert exact_text(-np.inf) == "−∞"


# --- one number for one cell ---------------------------------------------------------------------

DEMOS = ("flash2", "causal", "flash1", "naive", "grouped-heads")


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> dict[str, dict[str, np.ndarray]]:
    """What ``run -o`` writes of each demo."""
    folder: Path = tmp_path_factory.mktemp("runs")
    out = {}
    for name in DEMOS:
        path = folder / f"{name}.npz"
        arguments = ["run", str(SCENARIOS / f"{name}.toml"), "-o", str(path), "--json"]
        assert main([*arguments, "--engine", "numpy"]) == 0
        with np.load(path) as arrays:
            out[name] = {key: arrays[key] for key in arrays.files if key != "summary.json"}
    return out


def read(window, cell: Cell, read_text: list[str]) -> tuple[str, float]:
    """Point at a cell; return what the pointer reads and the live value."""
    QApplication.sendEvent(window.board, QEvent(QEvent.Type.Leave))
    point_at(window.board, cell)
    assert window.board.hit == cell
    found = window.docks.panel("values").live.found
    assert found.cell == cell
    return read_text[-1], found.value


@pytest.mark.long
@pytest.mark.parametrize("name", DEMOS)
def test_hover_formula_values_and_run_agree(open_window, qtbot, written, name):
    window = open_window(name, (1440, 900))
    window.desk.take("algorithm")
    window.docks["formula"].raise_()
    session, run = window.session, written[name]
    texts: list[str] = []
    window.board.hovered.connect(texts.append)
    session.last()
    session.settle()
    w, snapshot = session.trace.workload, session.view.snapshot
    head, rng = snapshot.visit.head, np.random.default_rng(2)
    for row in sorted({0, w.seqlen_q - 1, *rng.integers(0, w.seqlen_q, 6).tolist()}):
        col = int(rng.integers(0, w.value_dim))
        text, value = read(window, Cell("O", row, col), texts)
        o = float(run["o"][head, row, col])
        assert text.startswith(f"O[{row}, {col}] = {number_text(o)}")
        assert value == o
        if name == "naive":
            continue  # whose board has no m and ℓ
        m_text, m = read(window, Cell("m", row, 0), texts)
        l_text, l = read(window, Cell("l", row, 0), texts)
        assert number_text(m + np.log(l)) == number_text(float(run["lse"][head, row]))
        assert m == run["m"][head, row, -1]
        assert l == run["l"][head, row, -1]
        assert f"= {number_text(m)}" in m_text
        assert f"= {number_text(l)}" in l_text
    visits = [n for n in range(len(session.trace)) if session.trace.program.visit(n).launch == 0]
    for index in (visits[len(visits) // 3], visits[-1]):
        check_visit(window, qtbot, index, run, texts)
    assert session.cursor != last_cursor(session.trace.program) or name != "naive"


def check_visit(window, qtbot, index: int, run, texts: list[str]) -> None:
    """Compare hover, values, links and arrays of one visit, and click its links."""
    session, panel = window.session, window.docks.panel("formula")
    session.go(end_of_visit(session.trace.program, index))
    session.settle()
    now = session.view.snapshot
    visit, row = now.visit, now.visit.rows.start
    session.choose_row(row)
    session.settle()
    score = Cell("S", row, visit.cols.start)
    text, _ = read(window, score, texts)
    s = float(now.tile.s[0, 0])
    if now.tile.seen[0, 0]:
        assert f"= {number_text(s)}" in text
    for tensor, key in (("m", "m"), ("l", "l")):
        cell = Cell(tensor, row, 0)
        if key not in run:
            continue
        text, value = read(window, cell, texts)
        expected = float(run[key][visit.head, row, visit.j])
        assert value == expected
        assert f"= {number_text(expected)}" in text
        spot = window.board.board_layout().place(cell).center().toPoint()
        qtbot.mouseClick(window.board, LEFT, pos=spot)
        session.settle()
        assert session.view.cell == cell
        own = [link.text for link in panel.links if link.cell == cell]
        assert number_text(expected) in own
    for at in range(min(3, len(panel.links))):
        link = panel.links[at]
        qtbot.mouseClick(panel, LEFT, pos=link.rect.center().toPoint())
        session.settle()
        assert session.view.cell == link.cell
