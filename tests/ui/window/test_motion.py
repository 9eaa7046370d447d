"""The window shows what moves: its visible panels are told how far it is."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication

from simulator.base.assets import SCENARIOS
from tests.helpers.portal import APPEARANCE, Portal
from ui.app.start import ask_system
from ui.panels.base import MovingPanel
from ui.panels.memory.panel import MemoryPanel
from ui.safety.settings import Settings
from ui.session.session import Session
from ui.window.main_window import MainWindow


class Moving:
    """A window with motion on, and a clock that goes only when a test says so."""

    def __init__(self, window: MainWindow) -> None:
        self.window, self.session = window, window.session
        self.time = 1.0
        self.session.clock.now = lambda: self.time
        window.actions_by_name["set_motion"].setChecked(True)
        memory = window.docks.panel("memory")
        assert isinstance(memory, MemoryPanel)
        self.memory = memory

    def next(self) -> None:
        self.session.step()
        self.session.settle()

    def wait(self, seconds: float) -> None:
        self.time += seconds
        self.session.clock.tick()

    @property
    def phases(self) -> list[float]:
        """What the visible panels that move show."""
        docks = self.window.docks
        panels = [docks.panel(name) for name in sorted(docks.made)]
        return [p.phase for p in panels if isinstance(p, MovingPanel) and p.isVisible()]


@pytest.fixture
def moving(open_window: Callable[..., MainWindow]) -> Moving:
    return Moving(open_window("causal"))


def test_panels_are_as_far_as_the_session(moving):
    moving.next()
    assert moving.phases
    assert set(moving.phases) == {0.0}
    moving.wait(0.3)
    assert 0 < moving.session.share < 1
    assert set(moving.phases) == {moving.session.share}
    moving.wait(9)
    assert set(moving.phases) == {1.0}


def test_a_panel_that_opens_meanwhile_is_as_far_as_the_others(moving):
    dock = moving.window.docks["memory"]
    dock.hide()
    moving.next()
    moving.wait(0.3)
    assert moving.memory.phase == 1, "it is not told while nobody sees it"
    dock.show()
    dock.raise_()
    moving.session.settle()
    assert moving.memory.isVisible()
    assert moving.memory.phase == moving.session.share < 1


def test_the_key_for_motion_ends_what_moves(moving):
    moving.next()
    moving.wait(0.3)
    moving.window.actions_by_name["set_motion"].trigger()
    assert not moving.window.settings.motion
    assert set(moving.phases) == {1.0}
    moving.next()
    assert set(moving.phases) == {1.0}
    assert moving.session.view.before is None


@pytest.fixture
def fresh(qapp: QApplication, tmp_path: Path) -> Iterator[Callable[..., MainWindow]]:
    """Open windows with the same settings, in which nobody has chosen anything at first."""
    windows = []

    def make(written: str = "") -> MainWindow:
        if written:
            (tmp_path / "a.ini").write_text(f"[General]\nmotion={written}\n")
        window = MainWindow(Session("numpy"), Settings(tmp_path / "a.ini"))
        windows.append(window)
        return window

    yield make
    for window in windows:
        window.close()
        window.deleteLater()


def moves(window: MainWindow) -> bool:
    """Return whether a window moves; all that says so agrees."""
    checked = window.actions_by_name["set_motion"].isChecked()
    assert {window.session.motion, window.settings.motion, window.board.camera.glides} == {checked}
    return checked


@pytest.mark.parametrize("written", ["", "true"])
def test_a_window_moves_as_the_system_wants_until_someone_chooses(fresh, written):
    window = fresh(written)
    for reduces in (None, True, False, True):
        window.follow_system(reduces)
        assert moves(window) is not reduces
    window.close()
    again = fresh()
    assert moves(again), "what the system said is asked again, not remembered"
    assert again.settings.follows_system


@pytest.mark.long
@pytest.mark.parametrize("first", [True, False])
def test_a_choice_counts_more_than_the_system(fresh, first):
    window = fresh()
    window.follow_system(first)
    window.actions_by_name["set_motion"].trigger()
    assert moves(window) is first
    for reduces in (True, False, None):
        window.follow_system(reduces)
        assert moves(window) is first
    window.close()
    assert not fresh().settings.follows_system
    assert moves(fresh()) is first


def test_a_window_of_before_that_did_not_move_does_not_move(fresh):
    window = fresh("false")
    assert not moves(window)
    assert not window.settings.follows_system


@pytest.mark.long
def test_the_system_is_asked_after_the_first_view(fresh, session_bus):
    portal = Portal(session_bus, {APPEARANCE: ("u", 1)})
    portal.begin()
    window = fresh()
    ask_system(window)
    window.session.settle()
    assert not portal.asked
    for _ in range(20):  # a machine under load may be too slow, which leaves all as it is
        window.session.open(SCENARIOS / "causal.toml")
        window.session.settle()
        if not moves(window):
            break
        ask_system(window)
    assert not moves(window)
    asked = len(portal.asked)
    window.actions_by_name["set_motion"].trigger()
    again = fresh()
    ask_system(again)
    again.session.open(SCENARIOS / "causal.toml")
    again.session.settle()
    assert len(portal.asked) == asked, "a choice needs no asking"
    assert moves(again)
