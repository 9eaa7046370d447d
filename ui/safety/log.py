"""The log: Tilescope's actions and failures, in a small file beside the settings."""

from __future__ import annotations

import faulthandler
import logging
import os
import platform
import sys
from logging.handlers import RotatingFileHandler
from pathlib import Path

from PySide6.QtCore import QtMsgType

from simulator.base.errors import refuse, safe_text, unusable
from ui.safety.program import KIND
from ui.safety.settings import settings_path
from ui.safety.system_libraries import advice, missing_libraries, named_platforms

LOG = logging.getLogger("tilescope")
LOG.addHandler(logging.NullHandler())  # a command without a log prints nothing instead
LOG.propagate = False

MOST_BYTES = 512 * 1024  # bytes of a log file; the previous file is kept, too
_NOT_LOGS = (".toml", ".md", ".npz", ".safetensors")
"""Endings of files that users open: `--log demo.toml` would write to such a file."""
_REMARKS = 4  # messages of Qt, the last of them fatal, that are shown if it cannot start
_LEVELS = {
    QtMsgType.QtDebugMsg: logging.DEBUG,
    QtMsgType.QtInfoMsg: logging.INFO,
    QtMsgType.QtWarningMsg: logging.INFO,
    QtMsgType.QtCriticalMsg: logging.WARNING,
    QtMsgType.QtFatalMsg: logging.ERROR,
}


def log_path() -> Path:
    """Return the log file that is used if no other is named."""
    return settings_path().with_name("tilescope.log")


def start_log(wanted: str | None = None, most_bytes: int = MOST_BYTES) -> Path | None:
    """Keep a log from now on; a crash of the interpreter is also written to it.

    wanted: file for a log of all actions; empty: `log_path`, which is told on stderr. None: only
        warnings and failures go to `log_path`.
    most_bytes: most bytes of the file; then a new file begins and the old file is kept.
    Returns: the file; None if nobody asked for one and none can be written.
    """
    stop_log()
    path = Path(wanted).absolute() if wanted else log_path()
    if wanted and path.suffix.lower() in _NOT_LOGS:
        raise refuse("--log", "", wanted, "a file for the log; name what is to be opened before it")
    try:
        if not wanted:
            path.parent.mkdir(parents=True, exist_ok=True)
        handler = _File(path, maxBytes=most_bytes, backupCount=1, encoding="utf-8")
    except OSError as error:
        if wanted is None:
            return None
        raise unusable(path, "a file that can be written", error) from None
    if wanted == "":
        print(f"log: {safe_text(str(path))}", file=sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    LOG.addHandler(handler)
    LOG.setLevel(logging.WARNING if wanted is None else logging.INFO)
    return path


def stop_log() -> None:
    """Close the log's file."""
    for handler in [each for each in LOG.handlers if isinstance(each, _File)]:
        LOG.removeHandler(handler)
        handler.close()


class _File(RotatingFileHandler):
    """Tells `faulthandler` which file is open: it writes when Python no longer runs."""

    def _open(self):  # type: ignore[no-untyped-def]  # the library's type is private
        stream = super()._open()
        faulthandler.enable(stream)
        return stream

    def handleError(self, record: logging.LogRecord) -> None:
        """Lose a line rather than print an error: a full disk is told when something is saved."""

    def close(self) -> None:
        faulthandler.disable()
        super().close()


def take_qt_message(kind: QtMsgType, context: object, message: str) -> None:
    """Write Qt's own messages to the log: the user can do nothing about them."""
    LOG.log(_LEVELS.get(kind, logging.WARNING), "Qt: %s", message)


class QtStart:
    """Receives Qt's messages while Qt starts: the message that ends the process is shown, too."""

    def __init__(self) -> None:
        self._said: list[str] = []

    def __call__(self, kind: QtMsgType, context: object, message: str) -> None:
        """Receive one message."""
        take_qt_message(kind, context, message)
        self._said.append(" ".join(message.split()))
        if kind == QtMsgType.QtFatalMsg:
            missing = missing_libraries(named_platforms(os.environ))
            words = advice(missing) or "; ".join(dict.fromkeys(self._said[-_REMARKS:]))
            print(f"tilescope: Qt cannot start: {words}", file=sys.stderr, flush=True)
            os._exit(2)  # Qt would end the process with an abort


def log_start(version: str) -> None:
    """Write the versions of Tilescope, of Python and of the system."""
    LOG.info(
        "Tilescope %s (%s), Python %s, %s",
        version, KIND, platform.python_version(), platform.platform(),
    )  # fmt: skip
