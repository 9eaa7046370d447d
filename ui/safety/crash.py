"""Errors in our code: caught wherever they happen, told in one dialog, with a report to send."""

from __future__ import annotations

import math
import os
import platform
import signal
import sys
import threading
import time
import traceback
from contextlib import suppress
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from PySide6 import __version__ as pyside_version
from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QApplication,
    QDialog,
    QDialogButtonBox,
    QLabel,
    QPlainTextEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from simulator.base.version import version
from simulator.problem.scenario import scenario_toml
from ui.safety.log import LOG, log_path
from ui.safety.overrides import guarded
from ui.safety.program import KIND
from ui.safety.signals import put_back, take_lost_screen, take_signals

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from simulator.program.playback import Cursor
    from simulator.run.trace import Trace

MOST_TOLD = 20  # failures that one report describes; it only counts further ones
QUIET_SECONDS = 5.0
"""A failure that repeats within this time is not told again, because painting may repeat it."""

QUIT = 2  # result of the dialog; any other result means to go on

_Where = tuple[str, str, int]  # kind of a failure, and the file and line where it was raised


class Reported(Protocol):
    """The parts of a session that a report describes."""

    @property
    def trace(self) -> Trace | None:
        """The run."""

    @property
    def cursor(self) -> Cursor:
        """The place in the run."""

    @property
    def why(self) -> str:
        """Why this engine was chosen; empty if there is no reason."""

    @property
    def path(self) -> Path | None:
        """The scenario's file."""


class Keeper(Protocol):
    """Keeps unsaved changes."""

    @property
    def kept(self) -> bool:
        """Whether a copy exists and contains all changes."""

    @property
    def pending(self) -> bool:
        """Whether there are changes that no copy holds yet."""

    def flush(self) -> None:
        """Copy the changes now."""


class CrashDesk(QObject):
    """Receives signals, the loss of a screen, and every error that nothing else has caught.

    Errors come from slots of Qt, threads and finalizers; signals from a terminal or a system that
    shuts down. A screen may go while its window is open.

    Further failures while the dialog is open are added to its report. A failure in this class is
    only written to the log: nothing is called that could cause it again.

    window: the window under the dialog, which is closed when the user quits; None before the
        window is made.
    autosave: keeps unsaved changes before the dialog asks.
    cut_short: whether the window was not closed by its user: the next start offers unsaved changes.
    quiet_seconds: a failure that comes again sooner is not told again.
    """

    _caught = Signal(str, object)  # the text of a failure, and the place where it was raised
    _interrupted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.window: QWidget | None = None
        self.session: Reported | None = None
        self.autosave: Keeper | None = None
        self.dialog: CrashDialog | None = None
        self.cut_short = False
        self.quiet_seconds = QUIET_SECONDS
        self._last: dict[_Where, float] = {}
        self.broken = False
        self._hooks = (sys.excepthook, threading.excepthook, sys.unraisablehook)
        self._handlers: dict[int, Any] = {}
        self._leave_screen: Callable[[], None] | None = None
        # Never at once, because the error may come in the middle of painting or from another
        # thread.
        self._caught.connect(self._tell, Qt.ConnectionType.QueuedConnection)
        self._interrupted.connect(self._end, Qt.ConnectionType.QueuedConnection)

    def install(self) -> None:
        """Receive all errors, signals and the loss of a screen from now on."""
        sys.excepthook = self.take
        threading.excepthook = self._take_of_thread
        sys.unraisablehook = self._take_unraisable
        self._handlers = take_signals(self._interrupt)
        if QGuiApplication.platformName() == "xcb":
            self._leave_screen = take_lost_screen(self._end_at_once)

    def uninstall(self) -> None:
        """Let errors and signals go where they went before."""
        sys.excepthook, threading.excepthook, sys.unraisablehook = self._hooks
        put_back(self._handlers)
        if self._leave_screen is not None:
            self._leave_screen()

    # --- taking -----------------------------------------------------------------------------

    def take(
        self,
        kind: type[BaseException],
        error: BaseException | None,
        trace: TracebackType | None,
        place: str = "",
    ) -> None:
        """Receive an error, in any thread; `place` says where, unless in the window."""
        try:
            if issubclass(kind, KeyboardInterrupt):
                self._interrupted.emit()
                return
            text = "".join(traceback.format_exception(kind, error, trace)).rstrip()
            text = f"{place}\n{text}" if place else text
            LOG.error("failure\n%s", text)
            self._caught.emit(text, _where(kind, trace))
        except BaseException:  # no error may leave this function: it would come back
            with suppress(BaseException):
                LOG.critical("the failure could not be told", exc_info=True)

    def _take_of_thread(self, args: threading.ExceptHookArgs) -> None:
        if args.exc_type is not SystemExit:
            name = args.thread.name if args.thread else "unknown"
            self.take(args.exc_type, args.exc_value, args.exc_traceback, f"In the thread {name}:")

    def _take_unraisable(self, args: sys.UnraisableHookArgs) -> None:
        place = args.err_msg or "Ignored"
        self.take(args.exc_type, args.exc_value, args.exc_traceback, f"{place}:")

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        """Close soon; a signal that comes again ends the process at once."""
        signal.signal(number, signal.SIG_DFL)
        self._interrupted.emit()

    def _end(self, status: int = 0) -> None:
        """Close without a question, because nobody may be there to answer."""
        self.cut_short = True
        try:
            if self.window is not None:
                self.window.close()
        finally:
            QApplication.exit(status)  # also if a dialog is open

    def _end_at_once(self) -> NoReturn:
        """Keep unsaved changes and end in the middle of a call: the X server has died."""
        with suppress(BaseException):
            LOG.error("the X server has died")
            self._keep()
        os._exit(1)

    # --- telling ----------------------------------------------------------------------------

    def _tell(self, text: str, where: _Where) -> None:
        try:
            now = time.monotonic()
            again = now - self._last.get(where, -math.inf) < self.quiet_seconds
            self._last[where] = now
            if self.dialog is not None:
                self.dialog.add(text)
            elif not again and not self.broken:
                self._open(text)
        except BaseException:
            self.broken = True
            LOG.critical("the failure could not be told", exc_info=True)

    def _open(self, text: str) -> None:
        kept = self._keep()
        self.dialog = CrashDialog(text, self.session, kept, self.window)
        self.dialog.finished.connect(self._close)
        self.dialog.open()

    def _keep(self) -> str:
        """Copy unsaved changes; return in words what was done with them."""
        if self.autosave is None:
            return ""
        try:
            self.autosave.flush()
        except Exception:  # the dialog is needed all the more
            LOG.critical("unsaved changes could not be copied", exc_info=True)
        if self.autosave.kept:
            return "Your unsaved changes are kept: if you quit, the next start offers them."
        if self.autosave.pending:
            return "Your unsaved changes could not be kept: save them now."
        return "There are no unsaved changes."

    def _close(self, result: int) -> None:
        self.dialog = None
        if result == QUIT:
            self._end(1)


@guarded
class CrashDialog(QDialog):
    """Says in plain words that something went wrong; the details are for developers."""

    def __init__(
        self, text: str, session: Reported | None, kept: str, window: QWidget | None
    ) -> None:
        super().__init__(window)
        self._head = report_head(session)
        self._failures = [text]
        self._count = 1
        self.setObjectName("crash")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Something went wrong")
        goes_on = window is not None
        self.words = QLabel(_words(goes_on, kept))
        self.words.setWordWrap(True)
        self.words.setTextFormat(Qt.TextFormat.PlainText)
        self.more = QLabel()
        self.more.hide()
        self.details = QPlainTextEdit()
        self.details.setReadOnly(True)
        self.details.setAccessibleName("Report")
        self.details.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.details.hide()
        buttons = QDialogButtonBox()
        self.show_button = self._button(buttons, "Show details", "ActionRole")
        self.show_button.setCheckable(True)
        self.show_button.toggled.connect(self._show_details)
        self.copy_button = self._button(buttons, "Copy report", "ActionRole")
        self.copy_button.setToolTip(
            "Puts version, system, engine, scenario and the error on the clipboard."
        )
        self.copy_button.clicked.connect(self._copy)
        self.quit_button = self._button(buttons, "Quit", "RejectRole")
        self.quit_button.clicked.connect(lambda: self.done(QUIT))
        self.continue_button = self._button(buttons, "Continue", "AcceptRole")
        self.continue_button.clicked.connect(self.accept)
        self.continue_button.setVisible(goes_on)
        first = self.continue_button if goes_on else self.copy_button
        first.setDefault(True)
        column = QVBoxLayout(self)
        column.setSpacing(12)
        for widget in (self.words, self.more):
            column.addWidget(widget)
        column.addWidget(self.details, 1)
        column.addWidget(buttons)
        self._goes_on = goes_on
        self._fit()

    def _button(self, box: QDialogButtonBox, text: str, role: str) -> QPushButton:
        button = box.addButton(text, QDialogButtonBox.ButtonRole[role])
        button.setAutoDefault(False)
        return button

    def _fit(self) -> None:
        """Make the dialog as wide as a line that is easy to read, at any text scale."""
        self.setMinimumWidth(self.words.fontMetrics().averageCharWidth() * 72)

    @property
    def report(self) -> str:
        """The report that can be copied: the system, the scenario on show, and every failure."""
        unwritten = self._count - len(self._failures)
        more = [f"{unwritten} more"] if unwritten else []
        return "\n\n".join([self._head, *self._failures, *more]) + "\n"

    def add(self, text: str) -> None:
        """Add another failure to the report."""
        self._count += 1
        if len(self._failures) < MOST_TOLD and text not in self._failures:
            self._failures.append(text)
        others = self._count - 1
        times = "once more" if others == 1 else f"{others} more times"
        self.more.setText(f"It has gone wrong {times} since.")
        self.more.show()
        if not self.details.isHidden():
            self.details.setPlainText(self.report)

    def _show_details(self, on: bool) -> None:
        self.show_button.setText("Hide details" if on else "Show details")
        self.details.setPlainText(self.report)
        self.details.setMinimumHeight(self.details.fontMetrics().height() * 12)
        self.details.setVisible(on)
        self.adjustSize()

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.report)
        self.copy_button.setText("Report copied")

    def reject(self) -> None:
        """Go on after Escape, if there is a window to go on with."""
        self.done(QDialog.DialogCode.Accepted if self._goes_on else QUIT)


def report_head(session: Reported | None) -> str:
    """Return the head of a report, before the failures: version, system, engine, scenario."""
    lines = [
        f"Tilescope {version()} ({KIND})",
        f"{platform.platform()}, Python {platform.python_version()}",
        f"PySide6 {pyside_version}, {QGuiApplication.platformName()}",
        f"log: {log_path()}",
    ]
    trace = session.trace if session else None
    if session is None or trace is None:
        return "\n".join([*lines, "no scenario on show"])
    why = f" ({session.why})" if session.why else ""
    at = session.cursor
    lines += [
        f"engine {trace.engine.name}, {trace.engine.device}{why}",
        f"at visit {at.visit}, op {at.op}",
        "",
        f"# {session.path or 'no file'}",
        scenario_toml(trace.workload.scenario).rstrip(),
    ]
    return "\n".join(lines)


def _words(goes_on: bool, kept: str) -> str:
    failure = "Something inside Tilescope went wrong. It is a mistake of the program, not yours."
    on = (
        "You can go on, but what is on show may be wrong until you open the scenario anew."
        if goes_on
        else "It cannot start."
    )
    return "\n\n".join(filter(None, (failure, kept, on)))


def _where(kind: type[BaseException], trace: TracebackType | None) -> _Where:
    last = traceback.extract_tb(trace)[-1:] if trace else []
    return kind.__name__, last[0].filename if last else "", last[0].lineno or 0 if last else 0
