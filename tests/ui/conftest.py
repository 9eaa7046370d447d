"""Windows for tests: settings in a temporary folder, closed at the end."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from simulator.base.assets import SCENARIOS
from tests.helpers.scenario_desk import CAPTURE, RANDOM, Desk
from ui.app.start import make_window
from ui.safety.settings import Settings
from ui.widgets.application import application
from ui.window.main_window import MainWindow


@pytest.fixture(scope="session")
def qapp() -> Iterator[QApplication]:
    """The application as the program makes it: Fusion, shipped fonts."""
    app = application()
    yield app
    # What Python made and Qt deletes only at the very end, without Python, is a crash.
    app.clipboard().clear()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    out = Settings(tmp_path / "settings.ini")
    out.motion = False
    return out


@pytest.fixture
def open_window(qapp: QApplication, settings: Settings) -> Iterator[Callable[..., MainWindow]]:
    """Open windows on demos; each is ready when it is returned."""
    windows: list[MainWindow] = []

    def make(name: str = "flash2", size: tuple[int, int] = (1440, 900)) -> MainWindow:
        window = make_window(SCENARIOS / f"{name}.toml", settings=settings)
        windows.append(window)
        window.resize(*size)
        window.show()
        window.session.settle()
        return window

    yield make
    for window in windows:
        window.close()
        window.deleteLater()
    # `processEvents` alone leaves them be, with their timers and all that they have painted.
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    qapp.processEvents()


@pytest.fixture
def hooked() -> Iterator[list[BaseException]]:
    """Return what arrives at `sys.excepthook`, a new one, which has been told of nothing yet."""
    out: list[BaseException] = []
    before, sys.excepthook = sys.excepthook, lambda kind, error, trace: out.append(error)
    yield out
    sys.excepthook = before


@pytest.fixture
def desk(qtbot: QtBot) -> Desk:
    return Desk(qtbot, RANDOM)


@pytest.fixture
def capture_desk(qtbot: QtBot) -> Desk:
    return Desk(qtbot, CAPTURE)
