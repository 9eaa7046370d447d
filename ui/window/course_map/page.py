"""The map of the course as one widget."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QSizeF, Qt
from PySide6.QtGui import QMouseEvent, QPainter

from ui.safety.overrides import guarded
from ui.window.course_map.course import course_now
from ui.window.course_map.scene import (
    PathSpot,
    map_scene,
    paint_paths,
    paint_rows,
)
from ui.window.cover import Cover
from ui.window.cover_scene import CoverScene

if TYPE_CHECKING:
    from ui.window.main_window import MainWindow


@guarded
class CoursePage(Cover):
    """Covers a window with the map until a lesson, a file or a demo is opened."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window, "course_map", "Course map")
        settings = window.settings
        self.course = course_now(settings.course_path, settings.lessons_done)
        self._path: int | None = None
        self.appear()
        self.choose(self.course.next or 0)

    def places_at(self, size: QSizeF) -> CoverScene:
        return map_scene(self.course, self._style, size, self.focused)

    def said(self, number: int) -> str:
        return self.course.said(number)

    def tip(self, number: int) -> str:
        return self.course.lessons[number].summary

    def choose(self, number: int) -> None:
        """Give a lesson the focus; the path's next lesson then says which key opens it."""
        if self.course.next in (self.focused, number):
            self._forget()
        super().choose(number)

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
        self._forget()
        self.choose(self.focused if self.course.next is None else self.course.next)
        self.say(f"{self.course.path.title}, {self.course.said(self.focused)}")

    def _path_at(self, point: QPointF) -> int | None:
        found = self.places.at(point)
        return found.path if isinstance(found, PathSpot) else None

    def hover(self, point: QPointF) -> bool:
        path = self._path_at(point)
        if path != self._path:
            self._path = path
            self.update()
        return super().hover(point) or path is not None

    def mousePressEvent(self, event: QMouseEvent) -> None:
        path = self._path_at(event.position())
        if path is not None and event.button() is Qt.MouseButton.LeftButton:
            self.take(path)
        super().mousePressEvent(event)

    def paint_still(self, painter: QPainter) -> None:
        paint_paths(painter, self.places, self.course, self._path)

    def paint_rows(self, painter: QPainter) -> None:
        paint_rows(painter, self.places, self.course, self.marks)
