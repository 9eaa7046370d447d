"""The map of the course as one widget."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import (
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPaintEvent,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QToolTip

from ui.safety.overrides import guarded
from ui.safety.painting import painting
from ui.window.course_map.painter import MapLook, paint_map
from ui.window.course_map.places import Places, course_now, in_sight, neighbour, places_of
from ui.window.cover import Cover, means

if TYPE_CHECKING:
    from ui.window.main_window import MainWindow

_OPENS = (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space)
_MOVES = {
    Qt.Key.Key_Left: (-1, 0), Qt.Key.Key_Right: (1, 0), Qt.Key.Key_Up: (0, -1),
    Qt.Key.Key_Down: (0, 1),
}  # fmt: skip
_PAGES = {Qt.Key.Key_PageUp: -0.8, Qt.Key.Key_PageDown: 0.8}
_OWN = (*_OPENS, *_MOVES, *_PAGES, Qt.Key.Key_Escape)
_HAND = Qt.CursorShape.PointingHandCursor


@guarded
class CoursePage(Cover):
    """Covers a window with the map until a lesson, a file or a demo is opened."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window, "course_map", "Course map")
        settings = window.settings
        self.course = course_now(settings.course_path, settings.lessons_done)
        self.focused = self.course.next or 0
        self.hovered: int | None = None
        self.pressed: int | None = None
        self._path: int | None = None
        self.scrolled = 0.0
        self._places: Places | None = None
        self.appear()
        self.choose(self.focused)

    @property
    def places(self) -> Places:
        """Where everything is now."""
        if self._places is None:
            size = QSizeF(self.size())
            self._places = places_of(self.course, self._style, size, self.scrolled)
            if self.scrolled > self._places.most:
                self.scrolled = self._places.most
                self._places = places_of(self.course, self._style, size, self.scrolled)
        return self._places

    def _forget(self) -> None:
        self._places = None
        self.update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._forget()

    # --- what is chosen -------------------------------------------------------------------

    def choose(self, number: int) -> None:
        """Give a lesson the focus of the page, and scroll to it."""
        self.focused = number
        scrolled = in_sight(self.places, number, self.scrolled)
        if scrolled != self.scrolled:
            self.scrolled = scrolled
            self._forget()
        self.say(self.course.said(number))
        self.update()

    def take(self, path: int) -> None:
        """Choose a path; its next lesson gets the focus."""
        self.course = replace(self.course, chosen=path % len(self.course.paths))
        self._window.settings.course_path = self.course.path.name
        self.choose(self.focused if self.course.next is None else self.course.next)
        self.say(f"{self.course.path.title}, {self.course.said(self.focused)}")

    def open(self, number: int) -> None:
        """Open a lesson."""
        self._window.lessons.open(self.course.lessons[number].path)

    # --- keys -----------------------------------------------------------------------------

    def event(self, event: QEvent) -> bool:
        """Take the keys of the page before those of the window; show tips."""
        if event.type() is QEvent.Type.ShortcutOverride:
            assert isinstance(event, QKeyEvent)
            if self._means(event):
                event.accept()
                return True
        elif event.type() is QEvent.Type.ToolTip:
            assert isinstance(event, QHelpEvent)
            at = self.places.at(event.pos().x(), event.pos().y())
            if at is None:
                QToolTip.hideText()
            else:
                rect = self.places.rows[at].toAlignedRect()
                tip = self.course.lessons[at].summary
                QToolTip.showText(event.globalPos(), tip, self, rect)
            return True
        return super().event(event)

    def focusNextPrevChild(self, forward: bool) -> bool:
        """Go to the next path, or the one before."""
        self.take(self.course.chosen + (1 if forward else -1))
        return True

    def _means(self, event: QKeyEvent) -> bool:
        plain = not event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
        return plain and means(Qt.Key(event.key()), event.text(), _OWN)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = Qt.Key(event.key())
        if not self._means(event):
            super().keyPressEvent(event)
        elif key in _OPENS:
            self.open(self.focused)
        elif key in _MOVES:
            self.choose(neighbour(self.places, self.focused, *_MOVES[key]))
        elif key in _PAGES:
            self._scroll(_PAGES[key] * self.places.area.height())
        elif key == Qt.Key.Key_Escape and not self._window.messages.escape():
            self.leave()

    # --- hand -----------------------------------------------------------------------------

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._hover(event.position())

    def leaveEvent(self, event: QEvent) -> None:
        self._hover(QPointF(-1, -1))

    def _hover(self, point: QPointF) -> None:
        at = self.places.at(point.x(), point.y())
        path = self.places.path_at(point.x(), point.y())
        if (at, path) != (self.hovered, self._path):
            self.hovered, self._path = at, path
            self.setCursor(Qt.CursorShape.ArrowCursor if at is path is None else _HAND)
            self.update()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.LeftButton:
            point = event.position()
            path = self.places.path_at(point.x(), point.y())
            self.pressed = self.places.at(point.x(), point.y())
            if path is not None:
                self.take(path)
            if self.pressed is not None:
                self.choose(self.pressed)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        pressed, self.pressed = self.pressed, None
        self.update()
        point = event.position()
        if pressed is not None and pressed == self.places.at(point.x(), point.y()):
            self.open(pressed)

    def wheelEvent(self, event: QWheelEvent) -> None:
        self._scroll(-event.angleDelta().y() / 120 * self.places.style.px(72))
        self._hover(event.position())

    def _scroll(self, by: float) -> None:
        scrolled = min(max(self.scrolled + by, 0.0), self.places.most)
        if scrolled != self.scrolled:
            self.scrolled = scrolled
            self._forget()

    def paintEvent(self, event: QPaintEvent) -> None:
        with painting(self) as painter:
            look = MapLook(
                self.course, self.places, self.focused, self.hovered, self.pressed, self._path
            )
            paint_map(painter, look, QRectF(self.rect()))
