"""Keeps the screen on while someone presents, if the system allows it."""

from __future__ import annotations

import atexit
import logging
import os
import sys
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wakepy import ActivationResult, DBusAdapter

PATIENCE_S = 1.0
"""How long the program's end waits until the system has been asked to stop keeping the screen
on."""
_NOWHERE = logging.NullHandler()


class Awake:
    """Asks the system to keep the screen on, and ends this request.

    The system is asked in another thread, because a D-Bus that does not answer takes seconds. If
    the screen cannot be kept on, `why` says so, and nothing fails.
    """

    def __init__(self) -> None:
        self._hold: _Hold | None = None
        atexit.register(self.release, PATIENCE_S)

    @property
    def on(self) -> bool:
        """Whether the request has been made, granted or not."""
        return self._hold is not None

    @property
    def granted(self) -> bool:
        """Whether the system has agreed; False while it has not answered yet."""
        return self._hold is not None and self._hold.granted

    @property
    def why(self) -> str:
        """Why the screen may still go off, in words; "" if nothing is known."""
        return self._hold.why if self._hold else ""

    def hold(self) -> None:
        """Keep the screen on from now on; returns at once."""
        if self._hold is None:
            hold = _Hold()
            hold.start()  # fails if the system lets no thread start
            self._hold = hold

    def release(self, patience: float = 0.0) -> None:
        """Let the screen sleep again.

        patience: seconds to wait until the system has been told.
        """
        hold, self._hold = self._hold, None
        if hold is not None:
            hold.over.set()
            hold.join(patience)


class _Hold(Thread):
    """One request, from its beginning to its end: both must be done by the same thread."""

    def __init__(self) -> None:
        super().__init__(name="awake", daemon=True)
        self.over = Event()
        self.granted = False
        self.why = ""

    def run(self) -> None:
        try:
            self._hold()
        except Exception as error:  # whatever a service of the system does, the talk continues
            self.why = f"{type(error).__name__}: {error}"
        finally:
            self.granted = False

    def _hold(self) -> None:
        from wakepy import keep

        # Its messages would go to standard error; `why` has their important part.
        logging.getLogger("wakepy").addHandler(_NOWHERE)
        buses: list[DBusAdapter] = []
        try:
            with keep.presenting(on_fail="pass", dbus_adapter=_bus(buses)) as mode:
                if mode.active:
                    self.granted = True
                else:
                    self.why = why_not(mode.result)
                self.over.wait()
        finally:
            for bus in buses:
                bus.close_connections()


def _bus(made: list[DBusAdapter]) -> Any:
    """Return the class that speaks D-Bus, None without one; its objects are put into `made`."""
    try:
        from wakepy.dbus_adapters.jeepney import JeepneyDBusAdapter
    except ImportError:  # not on Windows and macOS
        return None

    class Bus(JeepneyDBusAdapter):
        """Closes its connections without collecting garbage, which only Qt's thread may do."""

        def __init__(self) -> None:
            super().__init__()
            made.append(self)

        def close_connections(self) -> None:
            while self._connections:
                self.close_connection(self._connections.popitem()[1])

    return Bus


def why_not(result: ActivationResult) -> str:
    """Return, in words, why the screen cannot be kept on."""
    tried = [m.method_name for m in result.list_methods(ignore_platform_fails=True)]
    if not tried:
        return f"no way is known on {sys.platform}"
    if sys.platform.startswith("linux") and not os.environ.get("DBUS_SESSION_BUS_ADDRESS"):
        return "there is no D-Bus session"
    return f"no answer from {' and '.join(tried)}"
