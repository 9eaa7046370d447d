"""What the system says about motion: asked on a bus of our own, and never waited for."""

import socket
import sys
import threading
from collections.abc import Callable

import pytest

from tests.helpers.portal import APPEARANCE, Known, Portal
from tests.helpers.waiting import wait_until
from ui.safety.system_motion import mac_answer, system_reduces_motion

LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a portal is Linux's")
GNOME = "org.gnome.desktop.interface", "enable-animations"


def begin_asking() -> tuple[threading.Thread, list[bool | None]]:
    """Ask in another thread, which must end by itself; return it, and where its answer will be."""
    answers: list[bool | None] = []
    asking = threading.Thread(target=lambda: answers.append(system_reduces_motion()), daemon=True)
    asking.start()
    return asking, answers


@pytest.fixture
def portal(session_bus: str) -> Callable[..., Portal]:
    def start(
        known: Known, methods: tuple[str, ...] = ("ReadOne", "Read"), mute: bool = False
    ) -> Portal:
        made = Portal(session_bus, known, methods, mute)
        made.begin()
        return made

    return start


@LINUX
@pytest.mark.parametrize("methods", [("ReadOne", "Read"), ("Read",)])
@pytest.mark.parametrize(
    ("known", "reduces"),
    [
        ({APPEARANCE: ("u", 1)}, True),
        ({APPEARANCE: ("u", 0)}, False),
        ({APPEARANCE: ("u", 0), GNOME: ("b", False)}, False),
        ({GNOME: ("b", False)}, True),
        ({GNOME: ("b", True)}, False),
        ({}, None),
    ],
)
def test_a_portal_is_understood(portal, methods, known, reduces):
    asked = portal(known, methods).asked
    # A machine under load may take longer than the limit, which is an answer, too.
    wait_until(lambda: system_reduces_motion() is reduces)
    assert asked[0] == ("ReadOne", APPEARANCE)


@LINUX
def test_a_bus_without_a_portal_says_nothing(session_bus):
    assert system_reduces_motion() is None


@LINUX
def test_without_a_bus_nothing_is_said(monkeypatch, capfd):
    for address in ("", "unix:path=/nowhere/bus", "tcp:host=localhost,port=1", "nonsense"):
        monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", address)
        assert system_reduces_motion() is None
    monkeypatch.delenv("DBUS_SESSION_BUS_ADDRESS")
    assert system_reduces_motion() is None
    assert capfd.readouterr() == ("", "")


@LINUX
def test_a_portal_that_never_answers_is_not_waited_for(portal):
    portal({APPEARANCE: ("u", 1)}, mute=True)
    asking, answers = begin_asking()
    asking.join(10)
    assert answers == [None]


@LINUX
@pytest.mark.parametrize("says", [b"", b"OK 1234deadbeef1234deadbeef12345678\r\n"])
def test_a_bus_that_never_answers_is_not_waited_for(monkeypatch, tmp_path, says):
    with socket.socket(socket.AF_UNIX) as mute:
        mute.bind(str(tmp_path / "bus"))
        mute.listen()
        monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", f"unix:path={tmp_path / 'bus'}")
        asking, answers = begin_asking()
        connection, _ = mute.accept()
        with connection:
            connection.sendall(says)
            asking.join(10)
    assert answers == [None]


@pytest.mark.parametrize(
    ("status", "printed", "reduces"),
    [(0, "1\n", True), (0, "0\n", False), (1, "", None), (0, "maybe\n", None)],
)
def test_what_macos_prints_is_understood(status, printed, reduces):
    assert mac_answer(status, printed) is reduces
