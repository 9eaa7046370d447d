"""Standard output and error in any state: of any encoding, full, gone or closed."""

from __future__ import annotations

import codecs
import io
import os
import sys
from collections.abc import Callable

from simulator.base.errors import reason, safe_text
from ui.safety.system_libraries import why_not_imported

_ALIKE = {"µ": "u", "–": "-", "−": "-", "×": "x"}
"""Replacements for letters in units and tables."""


def fit_encoding() -> None:
    """Let standard output accept every letter in any encoding: pipes of Windows use cp1252."""
    codecs.register_error("tilescope", _stand_in)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="tilescope")


def _stand_in(error: UnicodeError) -> tuple[str, int]:
    """Return a replacement of letters that an encoding lacks: a likeness, a space, or else ?."""
    assert isinstance(error, UnicodeEncodeError)
    lost = error.object[error.start : error.end]
    return "".join(
        " " if letter.isspace() else _ALIKE.get(letter, "?") for letter in lost
    ), error.end


def send_off() -> bool:
    """Send the printed text to its reader, who may be gone; return whether it was written."""
    if sys.stdout is None:  # closed
        return True
    try:
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has seen enough
        _drop_output()
    except OSError as error:
        _drop_output()
        tell_unwritten(error)
        return False
    return True


def tell_unwritten(error: OSError) -> None:
    """Say in one line which file could not be read or written."""
    what = safe_text(str(error.filename or "standard output"))
    print(f"{what}: expected a file that can be used ({reason(error)})", file=sys.stderr)


def lack(error: Exception) -> str:
    """Return in words the lack in the system that caused an error, else an empty text."""
    unmapped = isinstance(error, ImportError) and "map segment" in str(error)
    if isinstance(error, MemoryError) or unmapped:
        return "not enough memory: expected a smaller problem"
    if isinstance(error, RuntimeError) and str(error) == "can't start new thread":
        return "not enough threads: expected a system that lets more of them start"
    if isinstance(error, ImportError) and (words := why_not_imported(error)):
        return f"tilescope: Qt cannot start: {words}"
    return ""


def on_terminal() -> bool:
    """Return whether standard error is a terminal, where progress is shown."""
    return sys.stderr is not None and sys.stderr.isatty()


def progress(what: str) -> Callable[[float], None]:
    """Return a function that shows the share done on a terminal, and otherwise does nothing."""
    if not on_terminal():
        return lambda share: None

    def show(share: float) -> None:
        end = "\n" if share >= 1 else ""
        print(f"\r{what} {share:4.0%}", end=end, file=sys.stderr, flush=True)

    return show


def _drop_output() -> None:
    """Let the interpreter's own last flush write to nowhere, without an error."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
