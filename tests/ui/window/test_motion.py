"""The window shows what moves: its visible panels are told how far it is."""

from collections.abc import Callable

import pytest

from ui.panels.base import MovingPanel
from ui.panels.memory.panel import MemoryPanel
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


def test_panels_are_as_far_as_the_session(moving: Moving) -> None:
    moving.next()
    assert moving.phases
    assert set(moving.phases) == {0.0}
    moving.wait(0.3)
    assert 0 < moving.session.share < 1
    assert set(moving.phases) == {moving.session.share}
    moving.wait(9)
    assert set(moving.phases) == {1.0}


def test_a_panel_that_opens_meanwhile_is_as_far_as_the_others(moving: Moving) -> None:
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


def test_the_key_for_motion_ends_what_moves(moving: Moving) -> None:
    moving.next()
    moving.wait(0.3)
    moving.window.actions_by_name["set_motion"].trigger()
    assert not moving.window.settings.motion
    assert set(moving.phases) == {1.0}
    moving.next()
    assert set(moving.phases) == {1.0}
    assert moving.session.view is not None
    assert moving.session.view.before is None
