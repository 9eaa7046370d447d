"""The window: every action and dock of the tables, files, settings, errors in place."""

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDragMoveEvent, QDropEvent, QKeySequence
from PySide6.QtWidgets import QApplication, QDialog, QLineEdit, QMenu, QPlainTextEdit, QTextBrowser

import ui.window.file_menu
from kernels.devices.driver import gpu_status
from simulator.base.assets import CAPTURES, SCENARIOS
from simulator.problem.scenario import load_scenario
from simulator.program.playback import Cursor, Granularity, last_cursor
from tests.helpers.by_hand import choosing, opened_menu, retype
from tests.helpers.changes import change, choose_algorithm
from ui.app.start import make_window
from ui.look.theme import THEMES
from ui.talk.presenter_keys import KEYS
from ui.window.actions import ACTIONS, MENUS
from ui.window.file_menu import DEMOS
from ui.window.mnemonics import plain, with_mnemonics
from ui.window.panel_specs import PANELS

FULL = Qt.WindowState.WindowFullScreen


def press(qtbot, window, keys, modifier=Qt.KeyboardModifier.NoModifier):
    qtbot.keyClick(window, keys, modifier)
    window.session.settle()


def test_every_action_is_in_its_menu_and_named_once(window):
    names = [spec.name for spec in ACTIONS]
    assert len(set(names)) == len(names)
    for spec in ACTIONS:
        assert spec.menu in MENUS
        assert window.actions_by_name[spec.name] in window.menus[spec.menu].actions()


def menus_in(menu):
    """Yield a menu and all in it, as they are when they open."""
    menu.aboutToShow.emit()
    yield menu
    for inner in menu.findChildren(QMenu, options=Qt.FindChildOption.FindDirectChildrenOnly):
        yield from menus_in(inner)


def test_each_line_of_a_menu_has_a_letter_of_its_own(open_window, qapp):
    window = open_window("flash2", (1280, 720))
    window.settings.add_recent(Path("R&D.toml"))
    opened = [m for menu in window.menus.values() for m in menus_in(menu)]
    letters = [QKeySequence.mnemonic(menu.title()).toString() for menu in window.menus.values()]
    assert letters == ["Alt+F", "Alt+E", "Alt+R", "Alt+L", "Alt+V", "Alt+H"]
    assert len(opened) > 10
    for menu in opened:
        lines = [action.text() for action in menu.actions() if action.text()]
        keys = [QKeySequence.mnemonic(text).toString() for text in lines]
        found = [key for key in keys if key]
        assert len(set(found)) == len(found), menu.title()
        assert len(found) >= min(len(lines), 20), menu.title()
        assert [plain(text) for text in with_mnemonics([plain(text) for text in lines])] == [
            plain(text) for text in lines
        ]
    assert any(plain(a.text()).endswith("R&D.toml") for menu in opened for a in menu.actions())


def test_no_menu_is_higher_than_a_low_screen(open_window):
    window = open_window("flash2", (1280, 720))
    for title, menu in window.menus.items():
        menu.aboutToShow.emit()
        assert menu.sizeHint().height() < 0.95 * window.height(), title
        assert menu.sizeHint().width() < 0.5 * window.width(), title
    assert window.panels_menu.actions() == list(window.docks.actions.values())


def test_no_two_actions_share_a_key(window):
    keys = [key.toString() for action in window.actions() for key in action.shortcuts()]
    assert sorted(keys) == sorted(set(keys))


def test_a_plus_with_shift_belongs_to_one_action(window, qtbot):
    # Where it is typed with Shift, Qt takes Ctrl+Shift++ for Ctrl++ as well, and does neither.
    keys = {key.toString() for action in window.actions() for key in action.shortcuts()}
    pluses = {key for key in keys if key.endswith("+")}
    assert {key.replace("Shift+", "", 1) for key in pluses} & (keys - pluses) == set()
    assert len({key.replace("Shift+", "", 1) for key in pluses}) == len(pluses)
    before = window.board.view
    press(qtbot, window, Qt.Key.Key_Plus, Qt.KeyboardModifier.ControlModifier)
    assert window.board.view != before


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("spec", ACTIONS, ids=lambda spec: spec.name)
def test_every_action_runs(window, spec):
    if spec.name == "save_scenario":
        window.session.file.path = None  # a demo is not to be written to
    action = window.actions_by_name[spec.name]
    choosing(action.trigger, None)
    window.session.settle()
    if spec.checkable:
        state = action.isChecked()
        action.trigger()
        assert action.isChecked() is not state
    assert window.session.view is not None


@pytest.fixture(scope="module")
def large(open_for_all):
    return open_for_all("flash2", (1920, 1080))


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize("spec", PANELS, ids=lambda spec: spec.name)
def test_every_dock_opens_closes_and_shows_the_view(large, spec):
    dock, action = large.docks[spec.name], large.docks.actions[spec.name]
    assert dock.objectName() == spec.name
    before = action.isChecked()
    if before:
        action.trigger()
        assert not dock.isVisible()
    action.trigger()
    assert dock.isVisible()
    assert dock.widget().grab().toImage().pixelColor(5, 5).isValid()
    if not before:
        action.trigger()
        assert not dock.isVisible()


def test_arrow_keys_step_and_come_back(open_window, qtbot):
    window = open_window("causal")
    session = window.session
    start = session.view.snapshot.cursor
    for _ in range(5):
        press(qtbot, window, Qt.Key.Key_Right)
    assert session.view.snapshot.cursor == Cursor(0, 5)
    for _ in range(5):
        press(qtbot, window, Qt.Key.Key_Left)
    assert session.view.snapshot.cursor == start
    press(qtbot, window, Qt.Key.Key_End)
    assert session.view.snapshot.cursor == last_cursor(session.trace.program)
    press(qtbot, window, Qt.Key.Key_Home)
    assert session.view.snapshot.cursor == Cursor(0, 0)
    press(qtbot, window, Qt.Key.Key_Right, Qt.KeyboardModifier.ShiftModifier)
    assert session.view.snapshot.visit.i == 1


def test_step_by_tile(open_window, qtbot):
    window = open_window("causal")
    window.session.set_granularity(Granularity.TILE)
    press(qtbot, window, Qt.Key.Key_Right)
    press(qtbot, window, Qt.Key.Key_Right)
    snapshot = window.session.view.snapshot
    assert (snapshot.cursor.visit, snapshot.cursor.op) == (1, len(snapshot.ops) - 1)


@pytest.mark.long
def test_playing_reaches_the_end_and_stops(window, session, qtbot):
    session.set_speed(20.0)
    session.set_granularity(Granularity.ROW_BLOCK)
    press(qtbot, window, Qt.Key.Key_Space)
    qtbot.waitUntil(lambda: not session.playing, timeout=10_000)
    assert session.cursor == last_cursor(session.trace.program)
    assert not window.actions_by_name["play"].isChecked()


def test_algorithm_buttons_change_the_scenario_and_undo_takes_it_back(window):
    for name in ("naive", "flash1"):
        choose_algorithm(window, name)
        window.session.settle()
        assert window.session.scenario.attention.algorithm == name
    window.actions_by_name["undo"].trigger()
    window.session.settle()
    assert window.session.scenario.attention.algorithm == "naive"
    window.actions_by_name["redo"].trigger()
    window.session.settle()
    assert window.session.scenario.attention.algorithm == "flash1"


@pytest.mark.long
def test_the_cursor_stays_on_its_tile_when_the_algorithm_changes(window):
    window.session.go_to_tile(2, 3)
    window.session.settle()
    choose_algorithm(window, "flash1")
    window.session.settle()
    visit = window.session.view.snapshot.visit
    assert (visit.i, visit.j) == (2, 3)


def test_a_broken_file_is_told_in_place_and_nothing_is_lost(window, tmp_path):
    before = window.session.view
    bad = tmp_path / "bad.toml"
    bad.write_text("[attention]\nheads = 0\n")
    window.files.open_path(bad)
    window.session.settle()
    assert "attention.heads = 0" in window.messages.text()
    assert window.messages.isVisible()
    assert window.session.view is before


@pytest.mark.long
def test_an_input_that_cannot_be_read_is_told_in_place(window, tmp_path):
    before = window.session.view
    scenario = tmp_path / "s.toml"
    scenario.write_text('[input]\nsource = "file"\npath = "missing.safetensors"\n')
    window.files.open_path(scenario)
    window.session.settle()
    assert "missing.safetensors" in window.messages.text()
    assert window.session.view is before
    window.files.open_path(SCENARIOS / "causal.toml")
    window.session.settle()
    assert not window.messages.isVisible()


def drop(window, path):
    assert drag(window, window.board, path, Qt.DropAction.CopyAction)[1:] == [COPY, COPY]
    window.session.settle()


COPY, MOVE = Qt.DropAction.CopyAction, Qt.DropAction.MoveAction


def drag(window, widget, path, offered, proposed=COPY):
    """Drag a file over a widget and drop it; return the answers to each event, None for a refusal.

    As Qt does, the events go to the first parent that takes drops.
    """
    while not widget.acceptDrops():
        widget = widget.parentWidget()
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    data.setText(str(path))  # many programs send the name as well
    at, left, plain = QPoint(5, 5), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    answers = []
    for kind in (QDragEnterEvent, QDragMoveEvent, QDropEvent):
        event = kind(QPointF(at) if kind is QDropEvent else at, offered, data, left, plain)
        if proposed != event.proposedAction():
            pytest.fail(f"Qt proposes {event.proposedAction()}")
        QApplication.sendEvent(widget, event)
        answers.append(event.dropAction() if event.isAccepted() else None)
        if not event.isAccepted():
            break
    return answers


@pytest.mark.long
def test_a_file_that_is_dropped_is_copied_whatever_its_source_proposes(open_window):
    """A source whose file was moved may delete it."""
    window = open_window("causal")
    for spec in PANELS:
        window.docks.panel(spec.name)
    editors = [*window.findChildren(QLineEdit), *window.findChildren(QPlainTextEdit)]
    path = SCENARIOS / "naive.toml"
    assert len(editors) > 15
    for widget in (window, window.board, *editors):
        assert drag(window, widget, path, COPY | MOVE, COPY)[-1] == COPY
    window.session.settle()
    assert window.session.path == path
    assert drag(window, window.board, path, MOVE, MOVE) == [None]


@pytest.mark.long
@pytest.mark.parametrize(
    ("tokens", "demo", "tiles"),
    [(6, "kv-cache", (1, 1)), (22, "kv-cache", (5, 5)), (64, "kv-cache", (16, 16)),
     (3, "flash2", (1, 1)), (13, "flash2", (4, 3)), (40, "flash2", (4, 3))],
)  # fmt: skip
def test_own_tensors_bring_their_name_and_tiles_to_watch(
    open_window, tmp_path, tokens, demo, tiles
):
    window = open_window(demo)
    path = tmp_path / "my sentence.npz"
    rng = np.random.default_rng(0)
    np.savez(path, **{name: rng.random((2, tokens, 4), np.float32) for name in "qkv"})
    drop(window, path)
    assert window.windowTitle().startswith("my sentence[*]")
    grid = window.session.trace.workload.grid
    assert (grid.rows, grid.cols) == tiles
    assert min(grid.Tr, grid.Tc) >= min(4, tokens)
    window.files.save_to(tmp_path / "kept.toml")
    kept = load_scenario(tmp_path / "kept.toml")
    assert (kept.title, kept.tiling.rows, kept.tiling.cols) == ("my sentence", *tiles)
    window.actions_by_name["undo"].trigger()
    window.session.settle()
    assert window.session.scenario.input.source != "file"


def test_dropped_scenario_tensors_and_npz_are_shown(open_window, tmp_path):
    window = open_window("causal")
    drop(window, SCENARIOS / "large-logits.toml")
    assert "logit" in window.session.scenario.title.lower() or window.session.path.stem == (
        "large-logits"
    )
    drop(window, CAPTURES / "robot-ball-layer2.safetensors")
    assert window.session.trace.workload.seqlen_q == 18
    rng = np.random.default_rng(0)
    arrays = {n: rng.standard_normal((2, 9, 4)).astype(np.float16) for n in "qkv"}
    np.savez(tmp_path / "mine.npz", **arrays)
    drop(window, tmp_path / "mine.npz")
    assert window.session.trace.workload.seqlen_q == 9
    assert window.session.trace.workload.dtype == "float16"


def test_save_and_open_again(open_window, tmp_path):
    window = open_window("grouped-heads")
    target = tmp_path / "kept.toml"
    choose_algorithm(window, "flash1")
    window.session.settle()
    assert window.isWindowModified()
    choosing(window.actions_by_name["save_scenario_as"].trigger, target)
    assert not window.isWindowModified()
    assert load_scenario(target) == window.session.scenario
    assert window.settings.recent[0] == target


def test_saving_where_nothing_can_be_written_is_told(window, tmp_path):
    window.files.save_to(tmp_path / "no" / "such" / "folder.toml")
    assert "folder.toml" in window.messages.text()


@pytest.mark.long
def test_undo_takes_a_refused_entry_back_and_nothing_else(open_window, qtbot):
    window = open_window("flash2")
    session, undo = window.session, window.actions_by_name["undo"]
    window.docks.open("scenario")
    fields = window.docks.panel("scenario").fields

    def put(name, text):
        edit = fields[name].editor
        retype(edit, text)
        qtbot.keyClick(edit, Qt.Key.Key_Return)
        session.settle()

    for name, text in (("attention.kv_heads", "3"), ("mask.window", "-1")):
        put(name, text)  # the file contradicts the first, and the second is never possible
        assert fields[name].message.text
        assert undo.text() == "Undo the refused entry"
        undo.trigger()
        session.settle()
        assert fields[name].editor.text() == ""
        assert not undo.isEnabled()
    put("tiling.rows", "2")
    tiled = session.scenario
    assert tiled.tiling.rows == 2
    put("attention.head_dim", "128")
    undo.trigger()
    session.settle()
    assert session.scenario == tiled
    assert not fields["attention.head_dim"].message.text
    undo.trigger()
    session.settle()
    assert session.scenario.tiling.rows == 4
    assert not undo.isEnabled()


def test_opening_can_be_undone(open_window):
    window = open_window("causal")
    window.files.open_path(SCENARIOS / "naive.toml")
    window.session.settle()
    window.actions_by_name["undo"].trigger()
    window.session.settle()
    assert window.session.path == SCENARIOS / "causal.toml"


def test_window_remembers_theme_text_and_layout(window, settings):
    window.actions_by_name["next_theme"].trigger()
    window.actions_by_name["larger_text"].trigger()
    window.docks["memory"].hide()
    window.close()
    again = make_window(SCENARIOS / "flash2.toml", settings=settings)
    assert again.style_now.theme is THEMES["light"]
    assert again.style_now.scale == 1.25
    again.show()
    assert not again.docks["memory"].isVisible()
    again.close()


def test_settings_that_make_no_sense_do_not_stop_the_start(tmp_path, qapp):
    from ui.safety.settings import Settings

    file = tmp_path / "s.ini"
    file.write_text("[General]\ntheme=pink\ntext_scale=huge\nrecent=@Invalid()\ngeometry=x\n")
    settings = Settings(file)
    assert (settings.theme, settings.text_scale, settings.recent) == ("dark", 1.0, [])
    window = make_window(SCENARIOS / "flash2.toml", settings=settings)
    window.show()
    window.session.settle()
    assert window.session.view is not None
    window.close()


def test_blank_covers_the_window(window):
    window.actions_by_name["blank"].trigger()
    image = window.grab().toImage()
    assert image.pixelColor(700, 400).name() == "#000000"
    window.actions_by_name["blank"].trigger()
    assert not window.blanked


def test_keys_are_listed(window):
    window.actions_by_name["show_keys"].trigger()
    box = window.findChild(QDialog, "keys")
    text = box.findChild(QTextBrowser).toPlainText()
    for spec in ACTIONS:
        for key in spec.keys:
            assert key in text
    for key in KEYS:
        assert key.words in text
    assert box.height() <= window.height()
    box.close()


@pytest.mark.long
def test_export_from_the_window_equals_the_scene(open_window, tmp_path, monkeypatch):
    from PySide6.QtGui import QImage, QPainter

    from ui.export.scenes import scene_moment

    window = open_window("causal")
    target = tmp_path / "picture.png"
    choosing(window.actions_by_name["export_picture"].trigger, target)
    window.session.settle()
    view, theme, size = window.session.view, window.style_now.theme, (1920, 1080)
    expected = QImage(*size, QImage.Format.Format_RGB32)
    with QPainter(expected) as painter:
        scene_moment("scene", view.snapshot, view.report, theme, size).paint(painter)
    assert QImage(str(target)).convertToFormat(expected.format()) == expected


def test_hover_click_and_double_click_reach_the_session(open_window):
    window = open_window("causal")
    window.board.tile_chosen.emit(3, 1)
    window.session.settle()
    visit = window.session.view.snapshot.visit
    assert (visit.i, visit.j) == (3, 1)
    window.board.row_chosen.emit(50)
    window.session.settle()
    assert window.session.view.report.row == 50


def test_every_demo_has_a_name_in_words(window):
    demos = opened_menu(window, "Demos")
    names = [plain(action.text()) for action in demos.actions()]
    assert set(DEMOS) == {path.stem for path in SCENARIOS.glob("*.toml")}
    assert names == list(DEMOS.values())
    assert names[:3] == ["Naive attention", "FlashAttention-1", "FlashAttention-2"]
    assert "Decoding with a KV cache" in names
    next(action for action in demos.actions() if plain(action.text()) == "Causal mask").trigger()
    window.session.settle()
    assert window.session.path == SCENARIOS / "causal.toml"


def test_a_demo_that_cannot_be_read_is_told(window, tmp_path, monkeypatch):
    monkeypatch.setattr(ui.window.file_menu, "SCENARIOS", tmp_path)
    (tmp_path / "broken.toml").write_text("[attention]\nseqlen_q = -1\n", encoding="utf-8")
    demos = opened_menu(window, "Demos")
    demos.actions()[0].trigger()
    assert "seqlen_q" in window.messages.text()


@pytest.mark.long
def test_a_full_screen_that_grows_stays_one_and_can_be_left(window, qapp, qtbot):
    action = window.actions_by_name["full_screen"]
    action.trigger()
    qtbot.waitUntil(window.isFullScreen)
    window.setMinimumWidth(window.width() + 100)
    qtbot.waitUntil(window.isFullScreen)
    qapp.processEvents()
    assert action.isChecked()
    action.trigger()
    qtbot.waitUntil(lambda: not window.windowHandle().windowStates() & FULL)
    qapp.processEvents()
    assert not window.isFullScreen()
    assert not action.isChecked()


def test_engine_badge_says_who_computes_and_why(window):
    assert "NumPy" in window.header.engine.text()
    assert "NumPy on the CPU" in window.header.engine.toolTip()
    assert "CPU · NumPy" in window.windowTitle()
    if not gpu_status().available:
        assert gpu_status().reason not in window.windowTitle()
        assert gpu_status().reason in window.header.engine.toolTip()


@pytest.mark.long
@pytest.mark.parametrize("size", [(1280, 720), (1920, 1080)])
def test_nothing_in_the_window_is_squeezed_below_its_minimum(open_window, size):
    window = open_window(size=size)
    window.desk.reset()
    assert (window.width(), window.height()) == size
    for widget in (window.board, window.header, window.transport):
        assert widget.width() >= widget.minimumSizeHint().width()
        assert widget.height() >= widget.minimumSizeHint().height()


def test_a_scenario_file_given_at_the_start_may_be_broken(tmp_path, settings, qapp, qtbot):
    bad = tmp_path / "bad.toml"
    bad.write_bytes(b"\xff\xfe")
    window = make_window(bad, settings=settings)
    window.show()
    qtbot.waitUntil(window.messages.isVisible, timeout=5000)
    assert "UTF-8" in window.messages.text()
    window.session.settle()
    assert window.session.view is not None
    window.close()


@pytest.mark.long
def test_codes_of_a_title_do_not_reach_the_window_manager(window):
    title = "a\x1b]0;x\x07 \u202eb"
    change(window.session, {"title": title}, "title")
    assert window.windowTitle().startswith(r"a\x1b]0;x\x07 \u202eb")
