"""The soak itself: a short one finds nothing, and what is wrong is seen."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QTimer, qWarning

from simulator import simulate
from simulator.base.assets import DEMO
from tests.helpers.process import python
from tests.soak.fresh import FreshSessions, compare, differences, prints_of
from tests.soak.run import MOST_BLOCK_MS, WARM, Report, settle, soak
from tests.soak.watch import Block, Failures, Sample
from ui.app.start import make_window
from ui.look.layouts import LAYOUTS
from ui.safety.settings import Settings
from ui.widgets.application import application

FIRST = Sample(
    actions=WARM, seconds=60, rss=300, held=320, objects=10_000, qobjects=1_000, widgets=500
)
ROOT = Path(__file__).resolve().parents[2]
LANDS = """
from PySide6.QtCore import QEvent, QObject, Qt, QTimer
from PySide6.QtWidgets import QApplication, QDockWidget, QMainWindow
from tests.soak.devices import is_there, press

class Lands(QObject):
    def eventFilter(self, watched, event):
        if event.type() is QEvent.Type.{when}:
            QTimer.singleShot(0, lambda: dock.setFloating(False))
        return False

app = QApplication([])
window = QMainWindow()
dock = QDockWidget(window)
window.addDockWidget(Qt.DockWidgetArea.LeftDockWidgetArea, dock)
window.show()
dock.setFloating(True)
lands, floating = Lands(), dock.windowHandle()
floating.installEventFilter(lands)
assert is_there(floating)
press(floating, "Ctrl+Shift+K")
assert not is_there(floating)
"""
"""A dock lands as a key with Shift and Ctrl is pressed or let go in its window, which ends."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing is written to the real home."""
    for name in ("HOME", "USERPROFILE", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.long
def test_a_short_soak_finds_nothing_wrong(home: Path) -> None:
    lines: list[str] = []
    report = soak(home, actions=250, seed=3, every=125, check=50, say=lines.append)
    assert report.failures == {}
    assert report.checks >= 3
    assert [each.actions for each in report.samples] == [0, 125, 250]
    assert len(lines) == 5


@pytest.mark.long
def test_each_layout_shows_what_a_new_session_shows(home: Path) -> None:
    application()
    window, fresh = make_window(DEMO, "numpy", Settings(home / "settings.ini")), FreshSessions()
    try:
        window.show()
        for layout in LAYOUTS:
            window.desk.take(layout.name)
            settle()
            assert differences(window, fresh) == [], layout.name
        window.desk.take(LAYOUTS[0].name)
        window.actions_by_name["present"].setChecked(True)
        settle()
        assert differences(window, fresh) == [], "the stage"
    finally:
        fresh.close()
        window.close()


@pytest.mark.parametrize("name", ["rss", "objects", "qobjects", "widgets"])
def test_growth_is_a_fault(name: str) -> None:
    larger = replace(FIRST, actions=2 * WARM, **{name: getattr(FIRST, name) * 1.2})
    assert [text.partition(":")[0] for text in Report([FIRST, larger]).faults()] == [name]
    last = replace(FIRST, actions=2 * WARM)
    assert Report([FIRST, last]).faults() == []
    # One sample out of the row is none, neither before nor after.
    small, early = replace(FIRST, **{name: 1}), replace(FIRST, actions=WARM + 1)
    assert Report([small, FIRST, early, last, last, larger]).faults() == []
    assert len(Report([small, FIRST, early, larger, last, larger]).faults()) == 1


def test_blocks_and_failures_are_faults() -> None:
    slow = Block(cpu=MOST_BLOCK_MS + 1, wall=400, what="present", at=7)
    quick = Block(cpu=MOST_BLOCK_MS - 1, wall=900, what="present", at=8)
    report = Report([FIRST], [slow, quick], {"Traceback\nValueError: no": 2})
    assert len(report.faults()) == 2
    assert "ValueError" in report.faults()[0]
    assert "action 7" in report.faults()[1]


def test_errors_and_warnings_are_told() -> None:
    app, failures = application(), Failures()
    try:
        failures.during = "a test"
        qWarning("a leg is missing")
        QTimer.singleShot(0, lambda: 1 // 0)
        failures.keep(app.processEvents)
        assert failures.keep(lambda: "said") == "said"
    finally:
        failures.close()
    assert sum("ZeroDivisionError" in text for text in failures.told) == 1
    assert "Qt: a leg is missing" in failures.told


@pytest.mark.parametrize("when", ["KeyPress", "KeyRelease"])
def test_keys_are_let_go_in_a_window_that_ends_meanwhile(when: str) -> None:
    # What is freed is overwritten at once, where the C library can.
    env = {**os.environ, "PYTHONPATH": str(ROOT), "MALLOC_PERTURB_": "171"}
    done = python("-c", LANDS.replace("{when}", when), env=env)
    assert done.returncode == 0, done.stderr


def test_other_numbers_are_seen() -> None:
    one, same = simulate(DEMO), simulate(DEMO)
    here = prints_of(one.snapshot(3), "it")
    assert compare(here, prints_of(same.snapshot(3), "it")) == []
    found = compare(here, prints_of(same.snapshot(4), "it"))
    assert any(text.startswith("it.tile.states[2]['S']: float32") for text in found)
    assert any("visit" in text for text in found)
