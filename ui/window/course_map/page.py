"""The map of the course as one widget."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QMouseEvent, QPaintEvent

from ui.safety.overrides import guarded
from ui.safety.painting import painting
from ui.window.course_map.painter import MapLook, paint_map
from ui.window.course_map.places import Places, course_now, neighbour, places_of
from ui.window.cover import Cover

if TYPE_CHECKING:
    from ui.window.main_window import MainWindow


@guarded
class CoursePage(Cover[Places]):
    """Covers a window with the map until a lesson, a file or a demo is opened."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window, "course_map", "Course map")
        settings = window.settings
        self.course = course_now(settings.course_path, settings.lessons_done)
        self._path: int | None = None
        self.appear()
        self.choose(self.course.next or 0)

    def places_at(self, size: QSizeF) -> Places:
        return places_of(self.course, self._style, size, self.scrolled)

    def said(self, number: int) -> str:
        return self.course.said(number)

    def tip(self, number: int) -> tuple[QRectF, str]:
        return self.places.rows[number], self.course.lessons[number].summary

    def neighbour(self, number: int, across: int, down: int) -> int:
        return neighbour(self.places, number, across, down)

    def go_round(self, by: int) -> None:
        """Go to another path."""
        self.take(self.course.chosen + by)

    def open(self, number: int) -> None:
        """Open a lesson."""
        self._window.lessons.open(self.course.lessons[number].path)

    def take(self, path: int) -> None:
        """Choose a path; its next lesson gets the focus."""
        self.course = replace(self.course, chosen=path % len(self.course.paths))
        self._window.settings.course_path = self.course.path.name
        self.choose(self.focused if self.course.next is None else self.course.next)
        self.say(f"{self.course.path.title}, {self.course.said(self.focused)}")

    def hover(self, point: QPointF) -> bool:
        path = self.places.path_at(point.x(), point.y())
        if path != self._path:
            self._path = path
            self.update()
        return super().hover(point) or path is not None

    def mousePressEvent(self, event: QMouseEvent) -> None:
        point = event.position()
        path = self.places.path_at(point.x(), point.y())
        if path is not None and event.button() is Qt.MouseButton.LeftButton:
            self.take(path)
        super().mousePressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        with painting(self) as painter:
            look = MapLook(
                self.course, self.places, self.focused, self.hovered, self.pressed, self._path
            )
            paint_map(painter, look, QRectF(self.rect()))
