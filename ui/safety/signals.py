"""Events that end the program from outside.

These are signals (Ctrl+C, a closed terminal, a system that shuts down) and an X server that dies.
"""

from __future__ import annotations

import _thread
import ctypes
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")  # Windows has the first two
_IMPORT = "<frozen importlib._bootstrap>"
_WAIT = 0.02  # seconds after which an interrupt that came during an import is tried again
_seen: list[int] = []
_LOST = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


def take_signals(handler: Callable[[int, FrameType | None], object]) -> dict[int, Any]:
    """Handle signals from now on, except signals that this process is to ignore, as with nohup.

    Returns: the handlers from before by their numbers; empty in another thread than the main one.
    """
    if threading.current_thread() is not threading.main_thread():
        return {}
    numbers = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
    unheard = signal.SIG_IGN, None  # None: the handler is not Python's
    heard = [number for number in numbers if signal.getsignal(number) not in unheard]
    return {number: signal.signal(number, handler) for number in heard}


def put_back(handlers: dict[int, Any]) -> None:
    """Handle signals as before `take_signals`."""
    for number, handler in handlers.items():
        signal.signal(number, handler)


def take_lost_screen(act: Callable[[], NoReturn]) -> Callable[[], None]:
    """Let `act` run when the X server dies, and not Xlib's own function, which ends the process.

    Qt's event loop sees most deaths itself. Xlib sees them first where a call is under way.

    Returns: a function that puts the handler from before back.
    """
    set_handler = ctypes.CDLL("libX11.so.6").XSetIOErrorHandler
    set_handler.argtypes, set_handler.restype = (ctypes.c_void_p,), ctypes.c_void_p
    handler = _LOST(lambda display: act())
    before = set_handler(ctypes.cast(handler, ctypes.c_void_p))

    def undo(handler: object = handler) -> None:  # keeps the handler alive
        set_handler(before)

    return undo


def interrupt(number: int, frame: FrameType | None) -> None:
    """Raise `KeyboardInterrupt`, but not during an import: Qt would drop it with half a module."""
    while frame is not None:
        if frame.f_code.co_filename == _IMPORT:
            again = threading.Timer(_WAIT, _thread.interrupt_main, (number,))
            again.daemon = True
            again.start()
            return
        frame = frame.f_back
    _seen.append(number)
    raise KeyboardInterrupt


def interrupted() -> bool:
    """Return whether `interrupt` has raised an error: it may have caused a later error."""
    return bool(_seen)
