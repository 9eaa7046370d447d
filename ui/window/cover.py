"""A page that covers the window below its menus until something is opened."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent, QAction
from PySide6.QtWidgets import QWidget

from simulator.lesson.steps import ResolvedStep
from ui.look.theme import Style
from ui.safety.overrides import guarded

if TYPE_CHECKING:
    from ui.window.main_window import MainWindow

STAYS = (
    "welcome", "course_map", "search", "show_keys", "about", "first_minutes", "glossary",
    "next_theme", "larger_text", "smaller_text", "set_motion", "set_sound", "full_screen",
    "ask_unsaved", "quit", "open_scenario", "open_lesson",
)  # fmt: skip
"""Actions after which a page is still there."""


@guarded
class Cover(QWidget):
    """Covers a window; what it shows is painted."""

    def __init__(self, window: MainWindow, name: str, title: str) -> None:
        super().__init__(window)
        self._window = window
        self._style = window.style_now
        self._seen_first = window.session.trace is not None
        self.setObjectName(name)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setAccessibleName(title)
        window.lessons.player.step_changed.connect(self._begun)
        window.session.trace_changed.connect(self._run_changed)
        window.presenter.toggled.connect(self._presented)
        for each, action in self._actions():
            if each not in STAYS:
                action.triggered.connect(self.leave)
        for _, dock in window.docks:
            dock.installEventFilter(self)
        bar = window.menuBar()
        self._corner = bar.cornerWidget()
        if self._corner is not None:
            self._corner.hide()

    def appear(self) -> None:
        """Come to the front, with the window's keys."""
        self.place()
        self.show()
        self.raise_()
        self.setFocus(Qt.FocusReason.OtherFocusReason)

    def _actions(self) -> Iterator[tuple[str, QAction]]:
        """Yield the window's actions, those of panels and of layouts, by their names."""
        window = self._window
        for actions in (window.actions_by_name, window.docks.actions, window.desk.actions):
            yield from actions.items()

    # --- when it goes ---------------------------------------------------------------------

    def leave(self, *_: object) -> None:
        """Show the window."""
        self.hide()
        if self._corner is not None:
            self._corner.show()
        self._window.cover = None
        self._window.board.setFocus(Qt.FocusReason.OtherFocusReason)
        self.deleteLater()

    def _begun(self, step: ResolvedStep | None) -> None:
        if step is not None:
            self.leave()

    def _run_changed(self, trace: object) -> None:
        if self._seen_first:
            self.leave()
        self._seen_first = True

    def _presented(self, on: bool) -> None:
        if on:
            self.leave()

    # --- where ----------------------------------------------------------------------------

    def place(self) -> None:
        """Cover the window below its menus."""
        top = self._window.menuBar().geometry().bottom() + 1
        rect = self._window.rect()
        self.setGeometry(rect.adjusted(0, max(top, 0), 0, 0))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Stay above docks, which come to the front as they are arranged."""
        if event.type() in (QEvent.Type.ZOrderChange, QEvent.Type.Show):
            self.raise_()
        return False

    def set_style(self, style: Style) -> None:
        """Take theme and text scale."""
        self._style = style
        self._forget()

    def _forget(self) -> None:
        """Find the places of everything again, and paint."""
        raise NotImplementedError

    def say(self, words: str) -> None:
        """Tell a screen reader what has the focus of the page: the widget keeps the window's."""
        self.setAccessibleDescription(words)
        if self.isVisible():
            QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(self, words))


def means(event_key: Qt.Key, text: str, own: Collection[Qt.Key]) -> bool:
    """Return whether a key without modifiers has a meaning on a page.

    Letters and digits that mean something only on what is covered do nothing; T is the theme.
    """
    return event_key in own or (text.isalnum() and event_key != Qt.Key.Key_T)
