"""A page that covers the window below its menus until a lesson, a file or a demo is opened."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import (
    QAccessible,
    QAccessibleAnnouncementEvent,
    QAction,
    QColor,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QToolTip, QWidget

from simulator.lesson.steps import ResolvedStep
from ui.look.draw import card
from ui.look.theme import Style
from ui.safety.overrides import guarded
from ui.safety.painting import painting
from ui.window.cover_scene import CoverMarks, CoverScene

if TYPE_CHECKING:
    from ui.window.main_window import MainWindow

STAYS = (
    "welcome", "course_map", "search", "show_keys", "about", "first_minutes", "glossary",
    "next_theme", "larger_text", "smaller_text", "set_motion", "set_sound", "full_screen",
    "ask_unsaved", "quit", "open_scenario", "open_lesson",
)  # fmt: skip
"""Actions that do not close a page."""


_PAGES = {Qt.Key.Key_PageUp: -0.8, Qt.Key.Key_PageDown: 0.8}
_MOVES = {
    Qt.Key.Key_Left: (-1, 0), Qt.Key.Key_Right: (1, 0), Qt.Key.Key_Up: (0, -1),
    Qt.Key.Key_Down: (0, 1),
}  # fmt: skip
_OWN = (*_MOVES, *_PAGES, Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space, Qt.Key.Key_Escape)
_HAND = Qt.CursorShape.PointingHandCursor


def in_sight(places: CoverScene, number: int, scrolled: float) -> float:
    """Return how far to scroll so that an entry is whole in sight."""
    area, row = places.area, places.rows.get(number)
    if row is not None and row.top() < area.top():
        scrolled -= area.top() - row.top()
    elif row is not None and row.bottom() > area.bottom():
        scrolled += row.bottom() - area.bottom()
    return min(max(scrolled, 0.0), places.most)


@guarded
class Cover(QWidget):
    """Covers a window with painted entries; one entry has the focus."""

    def __init__(self, window: MainWindow, name: str, title: str) -> None:
        super().__init__(window)
        self.focused = 0
        self.hovered: int | None = None
        self.pressed: int | None = None
        self.scrolled = 0.0
        self._places: CoverScene | None = None
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
        """Yield all actions of the window, also of its panels and layouts, with their names."""
        window = self._window
        for actions in (window.actions_by_name, window.docks.actions, window.desk.actions):
            yield from actions.items()

    # --- leaving --------------------------------------------------------------------------

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

    # --- places ---------------------------------------------------------------------------

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

    @property
    def places(self) -> CoverScene:
        """The places of all boxes now."""
        if self._places is None:
            found = self.places_at(QSizeF(self.size()))
            self.scrolled = min(self.scrolled, found.most)
            self._places = found.moved(self.scrolled)
        return self._places

    def places_at(self, size: QSizeF) -> CoverScene:
        """Return the places of all boxes on a page of that size that is not scrolled."""
        raise NotImplementedError

    def _forget(self) -> None:
        """Find the places of all boxes again, and paint."""
        self._places = None
        self.update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._forget()

    def _scroll(self, by: float) -> None:
        scrolled = min(max(self.scrolled + by, 0.0), self.places.most)
        if scrolled != self.scrolled:
            self._places = self.places.moved(scrolled - self.scrolled)
            self.scrolled = scrolled
            self.update()

    # --- entries --------------------------------------------------------------------------

    def said(self, number: int) -> str:
        """Return an entry as a screen reader says it."""
        raise NotImplementedError

    def tip(self, number: int) -> str:
        """Return the tip of an entry."""
        raise NotImplementedError

    def go_round(self, by: int) -> None:
        """Take Tab, which does not leave the page: the window below is covered."""
        raise NotImplementedError

    def open(self, number: int) -> None:
        """Open an entry."""
        raise NotImplementedError

    def choose(self, number: int) -> None:
        """Give an entry the focus of the page, and scroll to it."""
        self.focused = number
        self._scroll(in_sight(self.places, number, self.scrolled) - self.scrolled)
        self.say(self.said(number))
        self.update()

    def say(self, words: str) -> None:
        """Tell a screen reader the entry with the page's focus; the widget has the window's."""
        self.setAccessibleDescription(words)
        if self.isVisible():
            QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(self, words))

    # --- keys -----------------------------------------------------------------------------

    def event(self, event: QEvent) -> bool:
        """Take the page's keys before the window's shortcuts; show tips."""
        if event.type() is QEvent.Type.ShortcutOverride:
            assert isinstance(event, QKeyEvent)
            if self._means(event):
                event.accept()
                return True
        elif event.type() is QEvent.Type.ToolTip:
            assert isinstance(event, QHelpEvent)
            at = self._entry_at(QPointF(event.pos()))
            if at is None:
                QToolTip.hideText()
            else:
                rect = (self.places.still | self.places.rows)[at]
                QToolTip.showText(event.globalPos(), self.tip(at), self, rect.toAlignedRect())
            return True
        return super().event(event)

    def focusNextPrevChild(self, forward: bool) -> bool:
        self.go_round(1 if forward else -1)
        return True

    def _means(self, event: QKeyEvent) -> bool:
        """Return whether a key has a meaning on the page.

        Letters and digits with a meaning only in the covered window do nothing; T is the theme.
        """
        plain = not event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
        key = event.key()
        return plain and (key in _OWN or (event.text().isalnum() and key != Qt.Key.Key_T))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = Qt.Key(event.key())
        if not self._means(event):
            super().keyPressEvent(event)
        elif key in _MOVES:
            self.choose(self.places.neighbour(self.focused, *_MOVES[key]))
        elif key in _PAGES:
            self._scroll(_PAGES[key] * self.places.area.height())
        elif key == Qt.Key.Key_Escape:
            if not self._window.messages.escape():
                self.leave()
        elif key in _OWN:
            self.open(self.focused)

    # --- hand -----------------------------------------------------------------------------

    def _entry_at(self, point: QPointF) -> int | None:
        found = self.places.at(point)
        return found if isinstance(found, int) else None

    def hover(self, point: QPointF) -> bool:
        """Take the place of the pointer; return whether a press there does something."""
        at = self._entry_at(point)
        if at != self.hovered:
            self.hovered = at
            self.update()
        return at is not None

    def _hover(self, point: QPointF) -> None:
        self.setCursor(_HAND if self.hover(point) else Qt.CursorShape.ArrowCursor)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._hover(event.position())

    def leaveEvent(self, event: QEvent) -> None:
        self._hover(QPointF(-1, -1))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.LeftButton:
            self.pressed = self._entry_at(event.position())
            if self.pressed is not None:
                self.choose(self.pressed)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        pressed, self.pressed = self.pressed, None
        self.update()
        if pressed is not None and pressed == self._entry_at(event.position()):
            self.open(pressed)

    def wheelEvent(self, event: QWheelEvent) -> None:
        self._scroll(-event.angleDelta().y() / 120 * self.places.style.px(72))
        self._hover(event.position())

    # --- picture --------------------------------------------------------------------------

    @property
    def marks(self) -> CoverMarks:
        """The entries with the focus, under the pointer and pressed."""
        return CoverMarks(self.focused, self.hovered, self.pressed)

    def paint_still(self, painter: QPainter) -> None:
        """Paint the ground of the boxes that stand still."""
        raise NotImplementedError

    def paint_rows(self, painter: QPainter) -> None:
        """Paint the ground of the boxes of the list."""
        raise NotImplementedError

    def paintEvent(self, event: QPaintEvent) -> None:
        with painting(self) as painter:
            places = self.places
            painter.fillRect(self.rect(), QColor(places.style.theme.window))
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
            self.paint_still(painter)
            places.frame.paint(painter)
            painter.save()
            ring = places.style.px(8)  # room for the ring around the focus
            painter.setClipRect(places.area.adjusted(-ring, 0, ring, 0))
            self.paint_rows(painter)
            places.listed.paint(painter)
            painter.restore()
            if places.most > 0:
                area, px = places.area, places.style.px
                share = area.height() / (area.height() + places.most)
                top = area.top() + share * self.scrolled
                bar = QRectF(area.right() + px(8), top, px(5), share * area.height())
                card(painter, bar, places.style.theme.faint, places.style.theme.faint, px(2.5))


def show_welcome(window: MainWindow) -> None:
    """Cover a window with the first page; a talk or a lesson ends."""
    from ui.window.welcome.page import WelcomePage

    _cover(window, WelcomePage)


def show_course_map(window: MainWindow) -> None:
    """Cover a window with the map of the course; a talk or a lesson ends."""
    from ui.window.course_map.page import CoursePage

    _cover(window, CoursePage)


def _cover(window: MainWindow, page: Callable[[MainWindow], Cover]) -> None:
    window.presenter.end()
    window.lessons.player.leave()
    if window.cover is not None:
        window.cover.leave()
    window.cover = page(window)
