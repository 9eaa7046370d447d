"""The base classes of panels, with the methods that the window calls on any panel."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from PySide6.QtCore import QRectF, QSize
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QWidget

from simulator.program.playback import moved, rescaling
from simulator.run.motion import Motion
from simulator.run.rescales import rescales
from simulator.run.snapshot import Snapshot
from ui.look.theme import Style
from ui.session.view import Model, View
from ui.widgets.choice_bar import PlotBar
from ui.widgets.painted import Painted

if TYPE_CHECKING:
    from simulator.lesson.tables import ChooseTable

State = TypeVar("State")
SMALLEST = QSize(320, 150)
"""Smallest size of most panels."""


class Panel(Painted, Generic[Model]):
    """The content of a dock.

    A panel is generic over its model: its data beyond the snapshot, made with the view in the
    engine's thread. The window gives views to a visible panel and calls only the methods of this
    class; a method that only some panels need does nothing in the others.
    """

    def __init__(self, name: str, title: str, smallest: QSize = SMALLEST) -> None:
        super().__init__()
        self.setObjectName(name)
        self.setAccessibleName(title)
        self.setMinimumSize(smallest)

    def show_view(self, view: View, model: Model) -> None:
        """Show a view; a panel that follows the session by itself needs no view."""

    def forget(self) -> None:
        """Forget a run that is no longer shown: a panel out of sight gets a view when it is seen.

        Panels that keep a view or a trace, and with it the inputs of a large run, override this.
        """

    def show_share(self, share: float) -> None:
        """Show how much of the op has been done, 0 to 1; most panels show states only."""

    def set_stage(self, on: bool) -> None:
        """Hide the speaker's controls from an audience; most panels are pictures alone."""

    def show_controls(self, on: bool) -> None:
        """Show the controls of the picture, or hide them in a film, where nobody can use them."""

    def take_choices(self, choices: ChooseTable) -> None:
        """Show a lesson's choices; most panels have nothing to choose."""

    def chosen_now(self) -> dict[str, Any]:
        """Return the choices, by key, with which `take_choices` would show the same picture."""
        return {}

    @property
    def title_bar(self) -> PlotBar | None:
        """Choices that stand in the title of the dock; most panels have theirs inside, or none."""
        return None

    def dock_title(self, view: View) -> str:
        """Return the dock's title for a view; empty for most docks, which have one title."""
        return ""


class AlphaLight:
    """Whether α is lit in a panel: during a rescale that is shown to shrink something."""

    def __init__(self) -> None:
        self.on = False
        self._rescales = False

    def take(self, view: View) -> None:
        """Take another view."""
        self.on = False
        self._rescales = view.before is not None and rescales(view.snapshot)

    def changes(self, share: float) -> bool:
        """Take how much of the op has been done; return whether α is lit otherwise than before."""
        before = self.on
        self.on = self._rescales and share < 1 and rescaling(moved(share)).lit
        return self.on != before


class StatePicture(Painted, Generic[State]):
    """A panel's state as a pure function paints it."""

    def __init__(
        self, parent: QWidget, name: str, draw: Callable[[QPainter, State, Style, QRectF], None]
    ) -> None:
        super().__init__(parent)
        self.state: State | None = None
        self._draw = draw
        self.setAccessibleName(name)

    def paint(self, painter: QPainter) -> None:
        if self.state is not None:
            self._draw(painter, self.state, self.style_now, QRectF(self.rect()))


class MovingPanel(Panel[Model]):
    """A panel whose picture moves while an op is being done, if motion is on.

    A new snapshot ends a motion at once: the panel always shows the latest state.
    """

    def __init__(self, name: str, title: str, smallest: QSize) -> None:
        # Painters make their text smaller if there is less space than they want.
        super().__init__(name, title, QSize(smallest.width(), round(0.78 * smallest.height())))
        self.snapshot: Snapshot | None = None
        self.motion: Motion | None = None
        """The op that leads to the snapshot; None if the snapshot is shown at once."""
        self.phase = 1.0
        """The share of the current op that has been done, 0 to 1."""
        self._moves = False

    def take(self, snapshot: Snapshot, before: Snapshot | None, *, moves: bool) -> None:
        """Show a new state; if `moves`, with the motion from the state before."""
        self.snapshot, self._moves = snapshot, moves
        self.motion = None if before is None else Motion(before, snapshot)
        self.phase = 1.0 if before is None else 0.0
        self.update()

    def forget(self) -> None:
        self.snapshot = self.motion = None

    def show_share(self, share: float) -> None:
        if self.motion is not None and share != self.phase:
            self.phase = share
            if self._moves:
                self.update()

    def place(self) -> QRectF:
        """Return the place of the picture."""
        return QRectF(self.rect()).adjusted(8, 6, -8, -6)
