"""The process that runs a student's function; it imports NumPy alone.

The process reads the function's text and the arrays of all calls, and writes the function's
results, call by call, or one line that says why not. An audit hook refuses files, sockets and
processes; memory and time are limited where the system can. These limits keep a mistake from doing
harm. They are no sandbox.
"""

from __future__ import annotations

import io
import os
import struct
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, BinaryIO

import numpy as np

REFUSED = (
    "open", "os.", "shutil.", "socket.", "subprocess.", "ctypes.", "pty.", "fcntl.", "mmap.",
    "winreg.", "_winapi.", "msvcrt.", "tempfile.", "signal.", "sys.addaudithook", "gc.",
    "sys._getframe", "cpython.", "webbrowser.", "ftplib.", "urllib.", "http.", "sqlite3.",
    "resource.", "syslog.", "marshal.", "pathlib.", "glob.", "code.__new__",
)  # fmt: skip
"""Names of audit events that are refused, or the beginnings of such names."""
WHAT = {"open": "open a file", "socket": "open a socket", "subprocess": "start a process"}
SECONDS = 2  # processor seconds of all calls together
MEMORY = 2**29  # bytes beside those that Python and NumPy take


class Refused(BaseException):
    """Something that a student's function may not do; `except Exception` does not catch it."""


def main() -> None:
    """Read a task on standard input, run it and answer on standard output."""
    out = os.fdopen(os.dup(1), "wb")
    given = sys.stdin.buffer
    source = _block(given).decode()
    names = _block(given).decode().split(",")
    with np.load(io.BytesIO(_block(given)), allow_pickle=False) as arrays:
        calls = [[arrays[f"{n}.{name}"] for name in names[1:]] for n in range(int(arrays["count"]))]
    np.linalg.norm(np.ones((2, 2)))  # NumPy's late imports happen now
    np.array2string(np.ones(2))
    np.set_printoptions(threshold=20)
    sys.stdout = sys.stderr = io.StringIO()
    sys.dont_write_bytecode = True
    warnings = sys.modules["warnings"]
    warnings.simplefilter("ignore")  # a warning would read the student's line
    np.seterr(all="ignore")
    limit()
    words, function = _refusing(partial(_function, source, names[0]))
    if words:
        _tell(out, words)
        return
    for call in calls:
        words, found = _refusing(partial(function, *[each.copy() for each in call]))
        if words:
            _tell(out, words)
            return
        if not isinstance(found, np.ndarray):
            with suppress(Exception):
                found = np.asarray(found, dtype=float)
        if not isinstance(found, np.ndarray) or found.dtype.kind not in "fiub":
            _tell(out, f"it returns {type(found).__name__}, not an array of numbers")
            return
        answer = io.BytesIO()
        np.save(answer, found.astype(float), allow_pickle=False)
        out.write(b"A" + struct.pack("<Q", answer.tell()) + answer.getvalue())
        out.flush()


def _block(stream: BinaryIO) -> bytes:
    (length,) = struct.unpack("<Q", stream.read(8))
    return stream.read(length)


def _tell(out: BinaryIO, words: str) -> None:
    data = " ".join(words.split())[:300].encode(errors="replace")
    out.write(b"E" + struct.pack("<Q", len(data)) + data)
    out.flush()


def _function(source: str, name: str) -> Any:
    scope: dict[str, Any] = {"np": np, "numpy": np, "__name__": "answer"}
    exec(compile(source, "answer", "exec"), scope)
    function = scope.get(name)
    if not callable(function):
        raise Refused(f"it has no function {name}")
    return function


_at_work = threading.Event()  # set while a student's function is at work
_refusals: list[str] = []  # words of refusals, which the function may have caught


def _refusing(work: Callable[[], Any]) -> tuple[str, Any]:
    """Do a student's work; return what went wrong, "" if nothing, and the result."""
    _at_work.set()
    try:
        found = work()
    except Refused as wrong:
        return str(wrong), None
    except MemoryError:
        return f"stopped: it wants more than {MEMORY >> 20} MiB of memory", None
    except SyntaxError as wrong:
        return f"line {wrong.lineno}: {wrong.msg}", None
    except RecursionError:
        return "it calls itself without an end", None
    except BaseException as wrong:  # also SystemExit
        line, at = 0, wrong.__traceback__
        while at is not None:
            if at.tb_frame.f_code.co_filename == "answer":
                line = at.tb_lineno
            at = at.tb_next
        where = f"line {line}: " if line else ""
        return f"{where}{type(wrong).__name__}: {wrong}", None
    finally:
        _at_work.clear()
    if _refusals:
        return _refusals[0], None
    return "", found


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if not _at_work.is_set():
        return
    words = ""
    if event == "import":
        words = f"it imports {arguments[0]}: np is there, and nothing else is needed"
    elif event.startswith(REFUSED):
        first = event.partition(".")[0]
        words = f"stopped: it wants to {WHAT.get(first, f'do {event}')}"
    if words:
        _refusals.append(words)
        raise Refused(words)


def limit() -> None:
    """Limit memory and processor time from here on, and refuse access to the system."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        if sys.platform == "linux":  # elsewhere the parent watches the memory
            with open("/proc/self/statm", encoding="ascii") as file:
                pages = int(file.read().split()[0])
            most = pages * resource.getpagesize() + MEMORY
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
        used = resource.getrusage(resource.RUSAGE_SELF)
        seconds = int(used.ru_utime + used.ru_stime) + 1 + SECONDS
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    sys.addaudithook(_hook)


if __name__ == "__main__":
    main()
