"""The next step of a lesson as the audience will see it, painted ahead by the stage itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QPixmap

from simulator.lesson.steps import ResolvedStep
from ui.safety.settings import Settings
from ui.session.calm import Calm
from ui.session.session import Session

if TYPE_CHECKING:
    from ui.window.main_window import MainWindow

IDLE_MS, LOOK_MS = 500, 40
"""Milliseconds of rest on the stage before the next picture is begun, and between two looks."""


class StepAhead(QObject):
    """Paints a step in a window that nobody sees, a moment at a time beside the talk."""

    painted = Signal(object, QPixmap)
    """A `ResolvedStep`, and its picture."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self._other: MainWindow | None = None
        self._step: ResolvedStep | None = None
        self._calm: Calm | None = None
        self._begin_soon = QTimer(self, singleShot=True, interval=IDLE_MS)
        self._begin_soon.timeout.connect(self._begin)
        self._looking = QTimer(self, interval=LOOK_MS)
        self._looking.timeout.connect(self._look)

    def want(self, step: ResolvedStep | None) -> None:
        """Paint a step as soon as the talk is at rest; None: paint nothing."""
        self._looking.stop()
        self._step = step
        if step is None:
            self._begin_soon.stop()
        else:
            self._begin_soon.start()

    def _begin(self) -> None:
        step, window = self._step, self._window
        if step is None:
            return
        if window.session.busy or not window.lessons.player.settled:
            self._begin_soon.start()  # the talk comes first
            return
        other = self._made()
        other.lessons.bar.show_step(step, False)
        layout = step.layout, step.panel
        if other.desk.lent != layout:
            other.desk.lend(*layout)
        other.docks.choose(step.layout, step.choices)
        other.docks.cover(step.covered)
        other.session.show_place(
            step.scenario, step.cursor, step.row, step.points, camera=step.camera
        )
        self._calm = Calm(other.session)
        self._looking.start()

    def _made(self) -> MainWindow:
        """Return the unseen window, in the size and theme of the window on the screen."""
        window, other = self._window, self._other
        if other is None:
            from ui.export.unseen_window import Unwritten

            settings = Settings(store=Unwritten())
            settings.theme, settings.motion = window.settings.theme, False
            settings.text_scale = window.text_scale
            session = Session(window.session.engines.name)
            other = self._other = type(window)(session, settings, unseen=True)
            other.menuBar().hide()
            other.lessons.bar.show()
            other.set_stage(True)
            other.setAttribute(Qt.WidgetAttribute.WA_DontShowOnScreen)
        other.settings.theme = window.settings.theme
        size = QSize(window.size())
        if other.size() != size or not other.isVisible():
            other.resize(size)
            other.show()
        other.apply_style()
        return other

    def _look(self) -> None:
        """Emit the picture of the step once the unseen window has painted the whole picture."""
        if self._other is None or self._calm is None or not self._calm.turn():
            return
        self._looking.stop()
        self.painted.emit(self._step, self._other.grab())

    def close(self) -> None:
        """End the unseen window and its threads."""
        self.want(None)
        other, self._other = self._other, None
        if other is not None:
            session = other.session
            other.close()
            session.deleteLater()
            other.deleteLater()
