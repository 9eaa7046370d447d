"""Edit, Copy view as link: another window shows the same; what is no link is said in a line."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit

from simulator.base.assets import SCENARIOS
from simulator.base.errors import InputError
from simulator.lesson.link import HEAD, ViewLink, read_link
from simulator.problem.scenario import load_scenario
from simulator.program.playback import Cursor
from tests.helpers.changes import change
from ui.app.start import make_window
from ui.panels.study_panel import StudyPanel
from ui.session.session import Session
from ui.window.panel_specs import PANELS

SIZE = (1280, 720)

ROOT = Path(__file__).resolve().parents[3]


def clipboard() -> str:
    return QGuiApplication.clipboard().text()


def copied(window) -> str:
    window.actions_by_name["copy_link"].trigger()
    return clipboard()


def shown(window) -> tuple[object, ...]:
    session = window.session
    session.settle()
    return session.scenario, session.view.snapshot.cursor, session.view.report.row


@pytest.mark.long
def test_another_window_shows_the_same_view(open_window):
    one = open_window("causal", (1920, 1080))
    change(one.session, {"mask": {"sinks": 2}}, "sinks")
    one.desk.take("memory")
    one.session.go(Cursor(4, 2))
    one.session.choose_row(35)
    one.docks.open("traffic")
    QApplication.processEvents()
    wanted = shown(one)
    text = copied(one)
    assert "Copied: a link of" in one.messages.accessibleName()
    assert read_link(text).panel == "traffic"

    other = open_window("flash2", (1920, 1080))
    QTest.keyClick(other, Qt.Key.Key_V, Qt.KeyboardModifier.ControlModifier)
    assert shown(other) == wanted
    assert wanted[1:] == (Cursor(4, 2), 35)
    QApplication.processEvents()
    assert other.desk.current == "memory"
    assert not other.docks["traffic"].visibleRegion().isEmpty()
    assert other.settings.recent_names[0] == text
    assert other.session.path is None
    assert copied(other) == text


def test_choices_in_panels_come_along(open_window):
    one = open_window("causal", (1920, 1080))
    one.desk.take("memory")
    one.docks.open("sweep")
    one.docks.panel("memory").choose("memory", "scale")
    one.docks.panel("sweep").bar.choose("over", "N")
    one.session.settle()
    QApplication.processEvents()
    chosen = read_link(copied(one)).choices
    other = open_window("flash2", (1920, 1080))
    other.links.paste()
    other.session.settle()
    for window in (one, other):
        assert window.docks.panel("sweep").chosen["over"] == "N"
        seen = not window.docks["memory"].visibleRegion().isEmpty()
        assert (chosen.memory == "scale") is seen
    QApplication.processEvents()
    assert read_link(clipboard()).choices == other.links.link().choices


def test_every_choice_of_a_study_that_a_lesson_can_make_is_carried(qapp):
    session, tried = Session("numpy"), set()
    for panel in (spec.make(session) for spec in PANELS):
        for each in panel.study.choices if isinstance(panel, StudyPanel) else ():
            for value in () if each.open or not each.lesson else each.values:
                panel.chosen = {**{c.name: c.usual for c in panel.study.choices}, each.name: value}
                said = panel.chosen_now()
                told = panel.study.lesson({each.name: str(said[each.lesson])} if said else {})
                if value != each.usual:
                    assert told[each.name] == value, (panel.study.name, each.name)
                    tried.add(panel.study.name)
    assert len(tried) > 12
    session.close()


@pytest.mark.long
@pytest.mark.parametrize("text", ["", "hello", HEAD, HEAD + "AAAA", "tilescope:2/AAAA"])
def test_what_is_no_link_changes_nothing_and_says_so(window, text):
    before = shown(window)
    QGuiApplication.clipboard().setText(text)
    window.actions_by_name["paste_link"].trigger()
    assert shown(window) == before
    assert window.messages.accessibleName().startswith("link: ")
    assert not window.settings.recent_names


def test_a_layout_that_there_is_not_is_refused(window):
    strange = ViewLink(load_scenario(SCENARIOS / "causal.toml"), layout="../x")
    for text in (strange.text, ViewLink(strange.scenario, layout="steps", panel="cache").text):
        with pytest.raises(InputError, match=r"^link: (layout|panel) = "):
            window.links.read(text)


def test_a_run_of_ones_own_file_has_no_link(open_window, tmp_path):
    q = np.ones((1, 8, 4), np.float32)
    np.savez(tmp_path / "mine.npz", q=q, k=q, v=q)
    (tmp_path / "mine.toml").write_text('[input]\nsource = "file"\npath = "mine.npz"\n')
    window = open_window("flash2", (1280, 720))
    window.files.open_path(tmp_path / "mine.toml")
    window.session.settle()
    QGuiApplication.clipboard().setText("before")
    assert copied(window) == "before"
    assert 'link: input.path = "mine.npz"' in window.messages.accessibleName()


def test_recent_files_have_it_by_its_title(window):
    text = ViewLink(load_scenario(SCENARIOS / "causal.toml"), Cursor(5, 1), 40).text
    window.settings.add_recent(HEAD + "AAAA")  # of a later version, say
    window.settings.add_recent(text)
    assert window.settings.recent == []
    menu = next(m for m in window.menus["File"].findChildren(type(window.menus["File"]))
                if m.title().replace("&", "") == "Recent")  # fmt: skip
    menu.aboutToShow.emit()
    first, second = menu.actions()
    assert "visit 5, op 1" in first.text()
    assert not second.isEnabled()
    first.trigger()
    assert shown(window)[1:] == (Cursor(5, 1), 40)


def test_a_window_starts_with_one_and_clamps_its_place(qapp, settings):
    text = ViewLink(
        load_scenario(SCENARIOS / "causal.toml"), Cursor(10**9, 99), 10**9, "memory"
    ).text
    window = make_window(text, "numpy", settings)
    try:
        window.show()
        qapp.processEvents()
        scenario, cursor, row = shown(window)
        assert scenario == load_scenario(SCENARIOS / "causal.toml")
        assert cursor.visit == 9
        assert row == 63
        assert window.desk.current == "memory"
    finally:
        window.close()
        window.deleteLater()


def test_a_field_keeps_its_own_paste(window, qapp):
    before = shown(window)
    QGuiApplication.clipboard().setText(ViewLink(load_scenario(SCENARIOS / "causal.toml")).text)
    field = QLineEdit(window)
    field.show()
    field.setFocus()
    qapp.processEvents()
    QTest.keyClick(field, Qt.Key.Key_V, Qt.KeyboardModifier.ControlModifier)
    assert shown(window) == before
    assert field.text() == clipboard()


@pytest.mark.long
@pytest.mark.parametrize("text", [HEAD + "AAAA", "tilescope:2/x"])
def test_a_command_line_refuses_a_bad_one_in_a_line(text):
    done = subprocess.run(
        [sys.executable, "-m", "ui", text], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("link: ")
