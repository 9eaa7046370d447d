"""Messages above the board: why an input was refused, or a run did not move or stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, QRect
from PySide6.QtWidgets import QWidget

from ui.look.names import visit_words
from ui.session.runs import Stop
from ui.widgets.message_bar import MessageBar, MessageKind

if TYPE_CHECKING:
    from ui.window.main_window import MainWindow


class Messages(MessageBar):
    """Messages of a window, about its session."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window, window.board)
        self._window = window
        self._said_of_run = ""
        session = window.session
        session.withdrawn.connect(self.settle)
        session.fell_back.connect(self._say_failure)
        session.runs.said.connect(self._say_run)
        session.runs.play_ended.connect(self._say_stop)

    def _say_failure(self, line: str) -> None:
        self.say(line, kind=MessageKind.FAILURE)

    def _say_run(self, line: str) -> None:
        """Show why a run did not move, until another run begins."""
        if line:
            self.say(line)
        else:
            self.unsay(self._said_of_run)
        self._said_of_run = line

    def _say_stop(self, stop: Stop) -> None:
        """Show which breakpoint has ended playing, and where, also if the code panel is hidden."""
        trace = self._window.session.trace
        assert trace is not None
        at, words = stop.cursor, stop.condition.words if stop.condition else ""
        op = trace.program.ops(at.visit)[at.op].name
        place = visit_words(trace.program, at.visit)
        self._say_run(f"Stopped at a breakpoint: {words} ({place}, {op}).")

    def neighbours(self) -> list[QWidget]:
        """Return the board and the scenario's dock."""
        return [self._window.board, self._window.docks["scenario"]]

    def room(self) -> QRect:
        """Return the place of the board, else the place of the largest visible dock.

        A place that is too narrow for words becomes as wide as the window. The place is never over
        the scenario's form, where the user may have to repair a value.
        """
        window = self._window
        docks = [d for spec, d in window.docks if spec.name != "scenario" and d.isVisible()]
        docked = [dock for dock in docks if not dock.isFloating()]
        over = [window.board] if window.board.isVisibleTo(window) else docked
        largest = max(over, key=lambda widget: widget.width() * widget.height(), default=window)
        out = _place(largest, window)
        form = window.docks["scenario"]
        if out.width() < self.comfortable and window.width() > self.comfortable:
            left, right = 0, window.width()
            if form.isVisible() and not form.isFloating():
                taken = _place(form, window)
                if taken.center().x() < out.center().x():
                    left = taken.right() + 1
                else:
                    right = taken.left()
            out = QRect(left, out.top(), right - left, out.height())
        return out


def _place(widget: QWidget, window: QWidget) -> QRect:
    return QRect(widget.mapTo(window, QPoint()), widget.size())
