"""Whether the system's user has asked programs to move less. Qt tells this only from 6.12 on."""

from __future__ import annotations

import ctypes
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from threading import Timer
from typing import Any

_PATIENCE_S = 0.1
"""Seconds that a bus may take to let us in, and once more to answer."""
_MAC_S = 1.0  # how long macOS may take to start the program that reads its settings
_PORTAL = {
    "object_path": "/org/freedesktop/portal/desktop",
    "bus_name": "org.freedesktop.portal.Desktop",
    "interface": "org.freedesktop.portal.Settings",
}
_KEYS: tuple[tuple[str, str, Callable[[object], bool]], ...] = (
    ("org.freedesktop.appearance", "reduced-motion", lambda value: value == 1),
    ("org.gnome.desktop.interface", "enable-animations", lambda value: value is False),
)
"""Keys for the portal, and which answers mean less motion; the first known key counts."""
_ANIMATIONS = 0x1042  # Windows' SPI_GETCLIENTAREAANIMATION


def system_reduces_motion() -> bool | None:
    """Return whether the system asks for less motion; None if it does not say.

    It takes at most a fifth of a second on Linux and a second on macOS, and nothing fails.
    """
    ask = {"win32": _ask_windows, "darwin": _ask_mac}.get(sys.platform, _ask_portal)
    try:
        return ask()
    except Exception:  # whatever a service of the system does, the window continues
        return None


def _ask_portal() -> bool | None:
    """Ask the settings portal of a Linux desktop."""
    from jeepney import DBusAddress, MessageType, new_method_call
    from jeepney.io.blocking import DBusConnection, get_bus, prep_socket

    portal = DBusAddress(**_PORTAL)
    # Greeting a bus has no time limit in jeepney, so a call that waits too long loses its socket.
    line = prep_socket(get_bus("SESSION"), timeout=_PATIENCE_S)
    limit = Timer(_PATIENCE_S, _hang_up, (line,))
    limit.daemon = True
    limit.start()
    try:
        bus = DBusConnection(line)
        for space, key, means in _KEYS:
            for method in ("ReadOne", "Read"):  # older portals have only the second
                call = new_method_call(portal, method, "ss", (space, key))
                reply = bus.send_and_get_reply(call)
                if reply.header.message_type is MessageType.method_return:
                    return means(_bare(reply.body[0]))
    finally:
        limit.cancel()
        line.close()
    return None


def _hang_up(line: socket.socket) -> None:
    with suppress(OSError):
        line.shutdown(socket.SHUT_RDWR)


def _bare(value: Any) -> object:
    """Return the value inside a variant, which jeepney gives as a pair of signature and value."""
    while isinstance(value, tuple):
        value = value[1]
    return value


def _ask_windows() -> bool | None:
    """Ask whether "Animation effects" are off."""
    on = ctypes.c_int(1)
    user32 = ctypes.CDLL("user32")  # WinDLL, with which 64-bit Windows has no difference left
    told = user32.SystemParametersInfoW(_ANIMATIONS, 0, ctypes.byref(on), 0)
    return on.value == 0 if told else None


def _ask_mac() -> bool | None:
    """Ask for "Reduce motion"; until somebody has changed it, there is no such setting."""
    done = subprocess.run(
        ["/usr/bin/defaults", "read", "com.apple.universalaccess", "reduceMotion"],
        capture_output=True,
        text=True,
        check=False,
        timeout=_MAC_S,
    )
    return mac_answer(done.returncode, done.stdout)


def mac_answer(status: int, printed: str) -> bool | None:
    """Return the answer that `defaults` has printed; None if there is none."""
    return {"1": True, "0": False}.get(printed.strip()) if status == 0 else None
