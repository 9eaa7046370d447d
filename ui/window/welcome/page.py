"""The first page as one widget: all its entries come from one table."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF, QSizeF, Qt, QTimer
from PySide6.QtGui import QColor, QKeyEvent, QPainter, QPixmap, QResizeEvent

from simulator.lesson.course import parts
from ui.safety.overrides import guarded
from ui.session.worker import Worker
from ui.window.cover import Cover
from ui.window.cover_scene import CoverScene
from ui.window.welcome.entries import PictureName, entries_of
from ui.window.welcome.scene import (
    paint_rows,
    paint_still,
    picture_places,
    welcome_scene,
)

if TYPE_CHECKING:
    from ui.window.main_window import MainWindow
    from ui.window.welcome.pictures import WelcomePicture

_MOST_KEPT = 12
"""Most painted pictures that are kept."""
_NUMBERS = (Qt.Key.Key_1, Qt.Key.Key_2, Qt.Key.Key_3, Qt.Key.Key_4)


@guarded
class WelcomePage(Cover):
    """Covers a window below its menus until a lesson, a file or a demo is opened."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window, "welcome", "Welcome")
        settings = window.settings
        self._parts = parts()
        self.entries = entries_of(self._parts, settings.lesson_place, settings.lessons_done)
        self._pictures: dict[PictureName, WelcomePicture | None] = {}
        """Pictures by name; None where there is none."""
        self._painted: dict[Hashable, QPixmap] = {}
        self._coming: dict[str, PictureName] = {}
        """The picture that is being computed, by the kind of work."""
        self._worker = Worker(self)
        self._worker.finished.connect(self._take)
        self._worker.failed.connect(self._fail)
        self._soon = QTimer(self, singleShot=True, interval=0)
        self._soon.timeout.connect(self._go_on)
        self.say(self.said(0))
        window.session.view_changed.connect(self._go_on_soon)
        self.appear()

    def leave(self, *_: object) -> None:
        self._worker.stop()
        self._soon.stop()
        super().leave()

    # --- entries --------------------------------------------------------------------------

    def places_at(self, size: QSizeF) -> CoverScene:
        return welcome_scene(self.entries, self._parts, self._style, size)

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._painted.clear()
        super().resizeEvent(event)

    def said(self, number: int) -> str:
        return self.entries[number].said

    def tip(self, number: int) -> str:
        return self.entries[number].tip

    def go_round(self, by: int) -> None:
        """Go to the next entry, or to the previous one."""
        self.choose((self.focused + by) % len(self.entries))

    def open(self, number: int) -> None:
        entry = self.entries[number]
        if entry.path is None:
            self._window.actions_by_name[entry.role].trigger()
        else:
            self._window.lessons.open(entry.path, entry.step)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = Qt.Key(event.key())
        if not self._means(event) or key not in (*_NUMBERS, Qt.Key.Key_Right):
            super().keyPressEvent(event)
        elif key == Qt.Key.Key_Right:
            self.open(self.focused)
        else:
            named = str(_NUMBERS.index(key) + 1)
            self.choose(next(n for n, each in enumerate(self.entries) if each.key == named))

    # --- pictures -------------------------------------------------------------------------

    def _names(self, number: int) -> tuple[PictureName, ...]:
        """Return the pictures that a card may show, the best first.

        The first card shows the picture of a lesson under the pointer, or with the focus.
        """
        names = [self.entries[number].picture]
        chosen = (self.entries[n] for n in (self.hovered, self.focused) if n is not None)
        lesson = next((each for each in chosen if each.role == "lesson"), None)
        if number == 0 and lesson is not None:
            names.insert(0, lesson.picture)
        return tuple(name for name in names if self._pictures.get(name, name) is not None)

    def _key(self, name: PictureName, rect: QRectF) -> Hashable:
        return name, rect.width(), rect.height(), self.places.style, self.devicePixelRatioF()

    def _missing(self) -> Iterator[tuple[str, PictureName, QRectF]]:
        """Yield the pictures that are not painted yet: the kind of work, name and place."""
        for number, rect in enumerate(picture_places(self.places)):
            for name in self._names(number):
                if self._key(name, rect) not in self._painted:
                    kind = f"card {number}" if name == self.entries[number].picture else "lesson"
                    yield kind, name, rect

    @property
    def ready(self) -> bool:
        """Whether all pictures are painted."""
        return not any(self._missing())

    def _go_on(self) -> None:
        """Let missing pictures be computed beside the window; paint one that is computed."""
        for kind, name, rect in tuple(self._missing()):
            picture = self._pictures.get(name)
            if picture is not None:
                self._painted[self._key(name, rect)] = self._paint(picture, rect)
                while len(self._painted) > _MOST_KEPT:
                    self._painted.pop(next(iter(self._painted)))
                self.update()
                return
            if self._coming.get(kind) != name:
                from ui.window.welcome.pictures import named_picture

                self._coming[kind] = name
                self._worker.submit(kind, partial(named_picture, name, self._window.session.run_of))

    def _go_on_soon(self, view: object) -> None:
        if not self.ready:
            self._soon.start()

    def _take(self, kind: str, found: tuple[PictureName, WelcomePicture | None]) -> None:
        name, picture = found
        self._pictures[name] = picture
        if self._coming.get(kind) == name:
            del self._coming[kind]
        self._soon.start()

    def _fail(self, kind: str, error: Exception) -> None:
        raise error

    def _paint(self, picture: WelcomePicture, rect: QRectF) -> QPixmap:
        ratio, style = self.devicePixelRatioF(), self.places.style
        out = QPixmap((rect.size() * ratio).toSize())
        out.setDevicePixelRatio(ratio)
        out.fill(QColor(style.theme.field))
        with QPainter(out) as painter:
            picture.paint(painter, style, QRectF(QPointF(), rect.size()))
        return out

    def paint_still(self, painter: QPainter) -> None:
        pictures = [
            next((self._painted[key] for name in self._names(number)
                  if (key := self._key(name, rect)) in self._painted), None)
            for number, rect in enumerate(picture_places(self.places))
        ]  # fmt: skip
        paint_still(painter, self.places, self.marks, pictures)
        # The window's own run comes first: pictures would make the start longer.
        if self._window.session.view is not None and not self.ready:
            self._soon.start()

    def paint_rows(self, painter: QPainter) -> None:
        paint_rows(painter, self.places, self.marks)
