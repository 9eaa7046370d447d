"""Windows for tests: settings in a temporary folder, closed at the end."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from simulator.base.assets import SCENARIOS
from simulator.problem.scenario import load_scenario, save_scenario
from tests.helpers.scenario_desk import CAPTURE, RANDOM, Desk
from ui.app.start import make_window
from ui.safety.settings import Settings
from ui.session.session import Session
from ui.talk.lesson_player import LessonPlayer
from ui.widgets.application import application
from ui.window.main_window import MainWindow


@pytest.fixture(scope="session")
def qapp() -> Iterator[QApplication]:
    """The application as the program makes it: Fusion, shipped fonts."""
    app = application()
    yield app
    # What Python made and Qt deletes only at the very end, without Python, is a crash.
    app.clipboard().clear()


@pytest.fixture(autouse=True)
def deleted() -> Iterator[None]:
    """Delete what waits for it after a test, as a running event loop would.

    `processEvents` alone leaves it be, with its timers and all that it has painted.
    """
    yield
    if QCoreApplication.instance() is not None:
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


@pytest.fixture(autouse=True)
def lessons_ask(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let steps of lessons begin at once, but in tests of their questions and of talks."""
    asks = request.module.__name__.rpartition(".")[2] in ("test_predict", "test_presenter")
    monkeypatch.setattr(LessonPlayer, "asks", asks)


def settings_in(folder: Path) -> Settings:
    out = Settings(folder / "settings.ini")
    out.motion = False
    return out


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return settings_in(tmp_path)


@pytest.fixture
def open_window(qapp: QApplication, settings: Settings) -> Iterator[Callable[..., MainWindow]]:
    """Open windows on demos; each is ready when it is returned."""
    yield from opened(qapp, settings)


@pytest.fixture
def demo(request: pytest.FixtureRequest) -> str:
    """The run of a window: DEMO of a file, or the parameter `demo` of a test."""
    return getattr(request.module, "DEMO", "flash2")


@pytest.fixture
def size(request: pytest.FixtureRequest) -> tuple[int, int]:
    """The size of a window: SIZE of a file, or the parameter `size` of a test."""
    return getattr(request.module, "SIZE", (1440, 900))


@pytest.fixture
def window(open_window: Callable[..., MainWindow], demo: str, size: tuple[int, int]) -> MainWindow:
    return open_window(demo, size)


@pytest.fixture
def session(window: MainWindow) -> Session:
    return window.session


@pytest.fixture
def talk(
    window: MainWindow, monkeypatch: pytest.MonkeyPatch, qapp: QApplication
) -> Iterator[MainWindow]:
    """A window in a talk, without a lesson."""
    monkeypatch.setenv("WAKEPY_FAKE_SUCCESS", "1")
    window.presenter.start()
    qapp.processEvents()
    yield window
    window.presenter.end()
    qapp.processEvents()


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A scenario file of the user's: the window asks about its changes, and not about a demo's."""
    path = tmp_path / "größe 1.toml"
    save_scenario(load_scenario(SCENARIOS / "causal.toml"), path)
    return path


@pytest.fixture(scope="module")
def open_for_all(
    qapp: QApplication, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., MainWindow]]:
    """The same for all tests of a file that leave a window as it was: what takes long is done once.

    That is where a panel computes for a second or two before there is something to look at.
    """
    yield from opened(qapp, settings_in(tmp_path_factory.mktemp("window")))


def opened(qapp: QApplication, settings: Settings) -> Iterator[Callable[..., MainWindow]]:
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
        window.session.deleteLater()  # else what is connected to it keeps it, with its runs
        window.deleteLater()
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


@pytest.fixture
def session_bus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a D-Bus of our own, which is the session's."""
    daemon = shutil.which("dbus-daemon")
    if daemon is None:
        pytest.skip("needs dbus-daemon")
    address = f"unix:path={tmp_path / 'bus'}"
    config = tmp_path / "bus.conf"  # it starts no service of this computer
    config.write_text(
        f"<busconfig><type>session</type><listen>{address}</listen><policy context='default'>"
        "<allow send_destination='*'/><allow eavesdrop='false'/><allow own='*'/></policy>"
        "</busconfig>"
    )
    command = [daemon, f"--config-file={config}", "--nofork", "--print-address"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        process.stdout.readline()  # it listens: its socket is there before
        monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", address)
        yield address
        process.terminate()
