"""The window as lessons and exports use it; the main window is one."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Protocol

from PySide6.QtGui import QAction
from PySide6.QtWidgets import QDockWidget, QMainWindow

from simulator.base.errors import InputError
from simulator.lesson.places import Framing
from ui.look.theme import Style
from ui.safety.settings import Settings
from ui.session.session import Session
from ui.widgets.message_bar import MessageKind

if TYPE_CHECKING:
    from simulator.lesson.tables import ChooseTable
    from ui.talk.lessons import Lessons


class BorrowedLayouts(Protocol):
    """Shows layouts for lessons; the user's own layout comes back afterwards."""

    @property
    def lent(self) -> tuple[str, str] | None:
        """Layout and panel in front while a lesson uses them."""

    @property
    def current(self) -> str:
        """Name of the current layout."""

    def lend(self, name: str, panel: str = "") -> None:
        """Show a layout as in a new window."""

    def take_back(self) -> None:
        """Show the user's own layout as it was before."""


class ChosenPanels(Protocol):
    """The docks by name, and the choices of lessons in them."""

    def __getitem__(self, name: str) -> QDockWidget: ...

    def choose(self, layout: str, choices: ChooseTable) -> None:
        """Make a lesson's choices in the panels of a layout, until `take_back`."""

    def cover(self, names: Collection[str]) -> None:
        """Cover some panels, because they would tell an answer, and show all others."""

    def take_back(self) -> None:
        """Show the user's own panels again, as they were before a lesson."""

    def show_controls(self, on: bool) -> None:
        """Show the controls that change the panels' pictures, or hide them."""


class LessonWindow(QMainWindow):
    """A window in which a lesson can be shown."""

    session: Session  # the session on show
    settings: Settings  # kept from start to start
    style_now: Style  # theme and text scale
    lessons: Lessons  # the current lesson, and its strip
    desk: BorrowedLayouts  # its layouts
    docks: ChosenPanels  # its docks
    actions_by_name: dict[str, QAction]  # its actions by name

    def set_stage(self, on: bool, *, whole: bool = False) -> None:
        """Show the audience's part, without the frames of docks, or the whole window again.

        whole: whether captions are shown whole, on pages that are read alone.
        """
        raise NotImplementedError

    def hide_questions(self) -> None:
        """Leave the strip of questions out of pictures."""
        raise NotImplementedError

    def fit_top(self, *, captioned: bool = False) -> None:
        """Hide the parts of the window's top that a caption leaves no room for, or show them again.

        captioned: whether a caption is about to be shown.
        """
        raise NotImplementedError

    def show_costs(self, on: bool) -> None:
        """Show the costs of the run over the scene, or hide them."""
        raise NotImplementedError

    def frame(self, start: Framing, end: Framing, share: float) -> None:
        """Show the part of the board that is in sight at a share of the camera's way."""
        raise NotImplementedError

    def say(self, line: str, kind: MessageKind = MessageKind.HINT) -> None:
        """Show one line above the board."""
        raise NotImplementedError

    def show_error(self, error: InputError, kind: MessageKind = MessageKind.REFUSAL) -> None:
        """Show one line about an input that cannot be used."""
        raise NotImplementedError
