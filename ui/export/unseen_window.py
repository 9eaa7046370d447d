"""A window that is not on the screen: the real panels, brought to a state and painted."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication, QEvent, QPoint, QSize, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QRegion
from PySide6.QtWidgets import QWidget

from simulator.lesson.places import Framing, Pointer
from simulator.lesson.steps import ResolvedStep
from simulator.problem.scenario import Scenario
from simulator.program.playback import MOVING, Cursor, Granularity, eased, seconds_to
from simulator.run.trace import Trace
from ui.export.writers.widgets import paint_widgets
from ui.look.theme import HALL, hall_scale
from ui.safety.collector import collect_here
from ui.safety.faults import raising
from ui.safety.ini import Value
from ui.safety.settings import Settings
from ui.session.calm import Calm
from ui.session.engines import Engines
from ui.session.session import Session
from ui.talk.caption import LessonEnd
from ui.talk.window import LessonWindow
from ui.widgets.application import application

if TYPE_CHECKING:
    from simulator.lesson.tables import ChooseTable

Look = Callable[[], None]
"""Called often while the caller waits; an error in it ends the waiting."""

WindowFactory = Callable[[Session, Settings], LessonWindow]
"""Makes a window; an argument, because the window imports exports and not the reverse."""

_NAP = 0.0005
_WORDS = ("stage_title", "stage_band")
"""Names of the widgets above the scene of a slide, and below it, beside the caption."""


CAMERA_SECONDS = 1.2  # seconds of the camera from the part that a step frames to the next


@dataclass(frozen=True, slots=True)
class Sight:
    """The camera on its way."""

    start: Framing  # start, end: the parts from which and to which the camera goes
    end: Framing
    share: float  # share of the time that has passed, 0 to 1


@dataclass(frozen=True, slots=True)
class WindowPlace:
    """The content of a window."""

    scenario: Scenario  # of the run
    cursor: Cursor  # the state
    row: int  # the query row that is explained
    # layout, panel: name of the layout, and of the panel in front; "" for the layout's first
    layout: str
    panel: str = ""
    points: tuple[Pointer, ...] = ()  # a lesson's pointers
    choices: ChooseTable | None = None  # choices in panels; None: as in a new window
    sight: Sight | None = None  # the part of the score matrix in sight; None: the whole


@dataclass(frozen=True, slots=True)
class Moving:
    """An op that is being done."""

    before: Cursor  # the state one op earlier
    share: float  # share of the motion that has been seen, 0 to 1


def picture_size(size: tuple[int, int]) -> QSize:
    """Return the window's size for a picture: never small, so that text keeps its share."""
    width, height = size
    room = min(1.0, width / HALL[0], height / HALL[1])
    return QSize(round(width / room), round(height / room))


@dataclass(frozen=True, slots=True)
class CaptionState:
    """The caption of a lesson at a picture."""

    step: ResolvedStep  # the step
    revealed: bool  # whether the answer to its question is shown
    # the end of the lesson, which replaces the caption after the last step, beside the costs
    end: LessonEnd | None = None
    whole: bool = False  # whether the whole caption is shown, on a page that is read alone


class UnseenWindow:
    """A window that is not on the screen, with its own settings; in the GUI thread.

    Menus and questions are left out; header and transport belong to the picture of a layout, and a
    lesson is on the stage, with its caption. The window's clock stands still: an op is shown as far
    as it is asked for. Each layout has a new window, because the places of docks depend on earlier
    layouts, and a picture must not.

    trace: a run that has been built already.
    """

    def __init__(
        self,
        size: tuple[int, int],
        theme: str,
        new_window: WindowFactory,
        engine: str = "auto",
        trace: Trace | None = None,
    ) -> None:
        collect_here(application())
        self._size = size
        self._theme = theme
        self._make_window = new_window
        self._engine = engine
        self._trace = trace
        self._window: LessonWindow | None = None
        self._shown: WindowPlace | None = None
        self._moving: Moving | None = None  # the op under way in the window
        self._now = 0.0  # time of the window's clock
        self._refused: list[Exception] = []

    def run_of(self, scenario: Scenario) -> Trace:
        """Return the run of a scenario: the run on show, or a new one."""
        if self._window is not None:
            return self._window.session.run_of(scenario)
        return Engines(self._engine).trace(scenario)

    def show(
        self,
        place: WindowPlace,
        look: Look,
        said: CaptionState | None = None,
        moving: Moving | None = None,
    ) -> None:
        """Show a state, and wait until it is shown.

        said: the caption, for a lesson: in all pictures of a window or in none.
        moving: how far the op that leads there has come; by default the op is done.
        """
        with raising():
            self._show(place, look, said, moving)

    def _show(
        self, place: WindowPlace, look: Look, said: CaptionState | None, moving: Moving | None
    ) -> None:
        window = self._window
        if window is None or window.desk.lent != (place.layout, place.panel):
            window = self._new_window(place, said)
        if said is not None:
            window.lessons.bar.show_step(said.step, said.revealed)
            window.docks.cover(said.step.covered)
            if said.end is not None:
                window.lessons.bar.show_end(said.end)
        if not self._goes_on(place, moving):
            self._begin(window, place, look, moving)
        if moving is not None:
            self._move(window.session, place, moving)
        self._moving = moving
        window.show_costs(said is not None and said.end is not None)
        sight = place.sight
        if sight is not None:
            window.frame(sight.start, sight.end, eased(sight.share))

    def _goes_on(self, place: WindowPlace, moving: Moving | None) -> bool:
        """Return whether the window shows this place, or an earlier moment of the same op."""
        if replace(place, sight=None) != self._shown:
            return False
        if moving is None or self._moving is None:
            return moving is self._moving
        return moving.before == self._moving.before and moving.share >= self._moving.share

    def _begin(
        self, window: LessonWindow, place: WindowPlace, look: Look, moving: Moving | None
    ) -> None:
        """Show a state at rest, or at the beginning of the op that leads to it."""
        self._shown = self._moving = None
        session = window.session
        if place.choices is not None:
            window.docks.choose(place.layout, place.choices)
        first = place.cursor if moving is None else moving.before
        session.motion = False
        session.show_place(place.scenario, first, place.row, place.points)
        self._settle(session, look)
        if moving is not None:
            session.motion = True
            session.go(place.cursor)
            self._settle(session, look)
            self._moving = replace(moving, share=0.0)
        self._shown = replace(place, sight=None)

    def _move(self, session: Session, place: WindowPlace, moving: Moving) -> None:
        """Let as much time pass in the window as an op takes from one share to another."""
        assert session.trace is not None
        assert self._moving is not None
        lasts = seconds_to(session.trace.program, place.cursor, Granularity.OP)
        done = [
            lasts if at >= 1 else at * MOVING * lasts for at in (self._moving.share, moving.share)
        ]
        self._now += done[1] - done[0]
        session.clock.tick()

    def _new_window(self, place: WindowPlace, said: CaptionState | None) -> LessonWindow:
        self.close()
        settings = Settings(store=Unwritten())
        size = picture_size(self._size)
        settings.text_scale = hall_scale(size.width(), size.height())
        settings.theme, settings.motion = self._theme, False
        session = Session(self._engine, now=lambda: self._now)
        session.refused.connect(self._refused.append)
        self._window = window = self._make_window(session, settings)
        window.menuBar().hide()
        window.hide_questions()
        window.lessons.bar.setVisible(said is not None)
        window.set_stage(said is not None, whole=said is not None and said.whole)
        window.docks.show_controls(said is None)
        window.setAttribute(Qt.WidgetAttribute.WA_DontShowOnScreen)
        window.resize(size)
        window.show()
        window.desk.lend(place.layout, place.panel)
        if self._trace is not None and self._trace.workload.scenario == place.scenario:
            session.show_trace(self._trace)
        return window

    def _settle(self, session: Session, look: Look) -> None:
        """Handle events until all work is done and shown, also work that other work has caused."""
        calm = Calm(session)
        while not calm.turn():
            QCoreApplication.processEvents()  # a reported result may ask for more work
            QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
            if self._refused:
                raise self._refused.pop(0)
            if not session.shown:
                look()
                time.sleep(_NAP)

    @property
    def window(self) -> LessonWindow:
        """The window, once something was shown."""
        assert self._window is not None
        return self._window

    def paint(self, painter: QPainter, *, scene: bool = False) -> None:
        """Draw the window as it is, over the whole picture.

        scene: whether the words of a slide are left out, above the scene and below it; not on
            pixels.
        """
        window, (width, height) = self._window, self._size
        assert window is not None
        if window.size() == QSize(width, height):
            self._render(window, painter, scene=scene)
        elif isinstance(painter.device(), QImage):  # widgets draw with their own whole pixels
            image = QImage(window.size(), QImage.Format.Format_RGB32)
            inner = QPainter(image)
            try:
                self._render(window, inner)
            finally:
                inner.end()
            smooth = Qt.TransformationMode.SmoothTransformation
            whole = Qt.AspectRatioMode.IgnoreAspectRatio
            painter.drawImage(QPoint(), image.scaled(width, height, whole, smooth))
        else:
            painter.save()
            painter.scale(width / window.width(), height / window.height())
            self._render(window, painter, scene=scene)
            painter.restore()

    def _render(self, window: LessonWindow, painter: QPainter, *, scene: bool = False) -> None:
        painter.fillRect(window.rect(), QColor(window.style_now.theme.window))
        with raising():
            if not isinstance(painter.device(), QImage):
                found = [window.findChild(QWidget, name) for name in _WORDS] if scene else []
                words = {window.lessons.bar, *filter(None, found)} if scene else set()
                paint_widgets(painter, window, QPoint(), words)
                return
            parts = QWidget.RenderFlag.DrawWindowBackground | QWidget.RenderFlag.DrawChildren
            window.render(painter, QPoint(), QRegion(), parts)

    def close(self) -> None:
        """End the window and its threads."""
        if self._window is not None:
            session = self._window.session
            self._trace = session.trace
            self._window.close()
            # Discard reports of its threads that nobody has received.
            session.deleteLater()
            self._window.deleteLater()
            QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
            self._window = self._shown = self._moving = None


class WindowFrames(ABC):
    """Frames that an unseen window shows: painted in the GUI thread, with a background."""

    transparent = False
    in_gui = True

    def __init__(self, make: Callable[[], UnseenWindow], size: tuple[int, int]) -> None:
        self._make = make
        self._unseen: UnseenWindow | None = None
        self.size = size

    @property
    def unseen(self) -> UnseenWindow:
        """The window, made now if there is none."""
        if self._unseen is None:
            self._unseen = self._make()
        return self._unseen

    @abstractmethod
    def make_ready(self, k: int, look: Look) -> None:
        """Bring the window to the state of frame `k`."""

    def paint(self, painter: QPainter, k: int) -> None:
        """Draw frame `k`."""
        self.make_ready(k, lambda: None)
        self.unseen.paint(painter)

    def close(self) -> None:
        """End the window."""
        if self._unseen is not None:
            self._unseen.close()
            self._unseen = None


class Unwritten:
    """Keeps settings only in memory: a process that is killed leaves no file of them."""

    path = Path(os.devnull)

    def __init__(self) -> None:
        self._values: dict[str, Value] = {}

    def get(self, key: str) -> Value | None:
        return self._values.get(key)

    def put(self, key: str, value: Value) -> None:
        self._values[key] = value
