"""Keeping the screen on: asked off the GUI thread, granted or told why not, always taken back."""

import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import wakepy

from tests.helpers.waiting import wait_until
from ui.talk.awake import Awake

LINUX = pytest.mark.skipif(os.name != "posix" or not Path("/proc").exists(), reason="needs Linux")


@pytest.fixture
def awake() -> Iterator[Awake]:
    out = Awake()
    yield out
    out.release(10)


def test_granted_and_taken_back(awake, monkeypatch):
    monkeypatch.setenv("WAKEPY_FAKE_SUCCESS", "1")
    awake.hold()
    wait_until(lambda: awake.granted)
    assert awake.on
    assert awake.why == ""
    assert wakepy.modecount() == 1
    awake.release(10)
    assert not awake.on
    assert not awake.granted
    assert wakepy.modecount() == 0


def test_asked_once_however_often_it_is_told(awake, monkeypatch):
    monkeypatch.setenv("WAKEPY_FAKE_SUCCESS", "1")
    awake.hold()
    wait_until(lambda: awake.granted)
    awake.hold()
    assert len([t for t in threading.enumerate() if t.name == "awake"]) == 1
    awake.release(10)
    awake.release(10)
    awake.hold()
    wait_until(lambda: awake.granted)


@LINUX
def test_without_a_bus_it_says_so_and_prints_nothing(awake, monkeypatch, capfd):
    monkeypatch.delenv("DBUS_SESSION_BUS_ADDRESS", raising=False)
    awake.hold()
    wait_until(lambda: awake.why)
    assert awake.why == "there is no D-Bus session"
    assert not awake.granted
    awake.release(10)
    assert awake.why == ""
    assert capfd.readouterr() == ("", "")


@LINUX
@pytest.mark.filterwarnings(
    # The library for D-Bus leaves the socket of a bus that does not answer to the collector.
    "ignore::pytest.PytestUnraisableExceptionWarning"
)
def test_a_bus_that_never_answers_holds_nothing_up(awake, monkeypatch, tmp_path):
    with socket.socket(socket.AF_UNIX) as mute:
        mute.bind(str(tmp_path / "bus"))
        mute.listen()
        monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", f"unix:path={tmp_path / 'bus'}")
        awake.hold()
        connection, _ = mute.accept()  # so it was asked, and is still waiting
        with connection:
            assert awake.why == ""
            assert not awake.granted
        wait_until(lambda: awake.why)
    assert awake.why.startswith("no answer from org.freedesktop.ScreenSaver")


SERVICE = "org.freedesktop.ScreenSaver"


def serve(
    address: str, heard: list[tuple[str, tuple[object, ...]]], ready: threading.Event
) -> None:
    """Be a screen saver on a bus until it has been told to go on twice as often as not."""
    from jeepney import MessageType, new_error, new_method_return
    from jeepney.bus_messages import message_bus
    from jeepney.io.blocking import open_dbus_connection

    with open_dbus_connection(bus=address) as bus:
        bus.send_and_get_reply(message_bus.RequestName(SERVICE))
        ready.set()
        while not heard or heard[-1][0] != "UnInhibit":
            message = bus.receive()
            if message.header.message_type is MessageType.method_call:
                name = message.header.fields[3]
                heard.append((name, message.body))
                if name == "Inhibit":
                    bus.send(new_method_return(message, "u", (4711,)))
                elif name == "UnInhibit":
                    bus.send(new_method_return(message))
                else:
                    bus.send(new_error(message, "org.freedesktop.DBus.Error.UnknownMethod"))


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[str]:
    """The address of a D-Bus of our own."""
    daemon = shutil.which("dbus-daemon")
    if daemon is None:
        pytest.skip("needs dbus-daemon")
    address = f"unix:path={tmp_path / 'bus'}"
    command = [daemon, "--session", "--nofork", f"--address={address}"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        wait_until((tmp_path / "bus").exists)
        yield address
        process.terminate()


@LINUX
def test_a_screen_saver_is_asked_and_released_with_its_own_cookie(awake, monkeypatch, bus):
    heard: list[tuple[str, tuple[object, ...]]] = []
    ready = threading.Event()
    service = threading.Thread(target=serve, args=(bus, heard, ready), daemon=True)
    service.start()
    assert ready.wait(10)
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", bus)
    awake.hold()
    wait_until(lambda: awake.granted)
    assert [name for name, _ in heard] == ["Inhibit"]
    awake.release(10)
    service.join(10)
    assert heard[-1] == ("UnInhibit", (4711,))
