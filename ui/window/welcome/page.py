"""The first page as one widget: all that can be pressed on it comes from one table."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QPointF, QRectF, QSizeF, Qt, QTimer
from PySide6.QtGui import (
    QColor,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPixmap,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QToolTip

from simulator.base.errors import InputError
from simulator.lesson.reader import parts
from simulator.problem.scenario import Scenario
from simulator.run.trace import Trace
from ui.safety.overrides import guarded
from ui.safety.painting import painting
from ui.session.worker import Worker
from ui.window.cover import Cover, means
from ui.window.welcome.entries import (
    PictureName,
    WelcomePlaces,
    entries_of,
    in_sight,
    neighbour,
    places_of,
)
from ui.window.welcome.painter import PageLook, paint_page

if TYPE_CHECKING:
    from ui.window.main_window import MainWindow
    from ui.window.welcome.pictures import WelcomePicture

_MOST_KEPT = 12
"""Pictures that are kept as they were painted."""
_OPENS = (Qt.Key.Key_Right, Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space)
_MOVES = {Qt.Key.Key_Left: (-1, 0), Qt.Key.Key_Up: (0, -1), Qt.Key.Key_Down: (0, 1)}
_PAGES = {Qt.Key.Key_PageUp: -0.8, Qt.Key.Key_PageDown: 0.8}
_HAND = Qt.CursorShape.PointingHandCursor
_NUMBERS = (Qt.Key.Key_1, Qt.Key.Key_2, Qt.Key.Key_3, Qt.Key.Key_4)
_OWN = (*_OPENS, *_MOVES, *_NUMBERS, *_PAGES, Qt.Key.Key_Escape)


@guarded
class WelcomePage(Cover):
    """Covers a window below its menus until a lesson, a file or a demo is opened."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window, "welcome", "Welcome")
        settings = window.settings
        self._parts = parts()
        self.entries = entries_of(self._parts, settings.lesson_place, settings.lessons_done)
        self.focused = 0
        self.hovered: int | None = None
        self.pressed: int | None = None
        self.scrolled = 0.0
        self._places: WelcomePlaces | None = None
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
        self._tell()
        window.session.view_changed.connect(self._go_on_soon)
        self.appear()

    def leave(self, *_: object) -> None:
        """Show the window."""
        self._worker.stop()
        self._soon.stop()
        super().leave()

    # --- where ----------------------------------------------------------------------------

    @property
    def places(self) -> WelcomePlaces:
        """Where everything is now."""
        if self._places is None:
            size = QSizeF(self.size())
            self._places = places_of(self.entries, self._parts, self._style, size, self.scrolled)
            if self.scrolled > self._places.most:
                self.scrolled = self._places.most
                self._places = places_of(
                    self.entries, self._parts, self._style, size, self.scrolled
                )
        return self._places

    def _forget(self) -> None:
        self._places = None
        self.update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._painted.clear()
        self._forget()

    # --- what is chosen -------------------------------------------------------------------

    def choose(self, number: int) -> None:
        """Give an entry the focus of the page, and scroll to it."""
        self.focused = number
        scrolled = in_sight(self.places, number, self.scrolled)
        if scrolled != self.scrolled:
            self.scrolled = scrolled
            self._forget()
        self._tell()
        self.update()

    def open(self, number: int) -> None:
        """Open what an entry stands for."""
        entry = self.entries[number]
        if entry.path is None:
            self._window.actions_by_name[entry.role].trigger()
        else:
            self._window.lessons.open(entry.path, entry.step)

    def _tell(self) -> None:
        """Tell a screen reader which entry has the focus: the widget keeps that of the window."""
        self.say(self.entries[self.focused].said)

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
                rect = self.places.hits[at].rect.toAlignedRect()
                QToolTip.showText(event.globalPos(), self.entries[at].tip, self, rect)
            return True
        return super().event(event)

    def focusNextPrevChild(self, forward: bool) -> bool:
        """Go to the next entry, or the one before; what lies below the page is covered."""
        self.choose((self.focused + (1 if forward else -1)) % len(self.entries))
        return True

    def _means(self, event: QKeyEvent) -> bool:
        """Return whether a key has a meaning on the page."""
        plain = not event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
        key = Qt.Key(event.key())
        return plain and means(key, event.text(), _OWN)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = Qt.Key(event.key())
        if not self._means(event):
            super().keyPressEvent(event)
        elif key in _OPENS:
            self.open(self.focused)
        elif key in _NUMBERS:
            named = str(_NUMBERS.index(key) + 1)
            self.choose(next(n for n, each in enumerate(self.entries) if each.key == named))
        elif key in _MOVES:
            self.choose(neighbour(self.places, self.focused, *_MOVES[key]))
        elif key in _PAGES:
            self._scroll(_PAGES[key] * self.places.area.height())
        elif key == Qt.Key.Key_Escape and not self._window.messages.escape():
            self.leave()

    # --- hand -----------------------------------------------------------------------------

    def _at(self, point: QPointF) -> int | None:
        return self.places.at(point.x(), point.y())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._hover(self._at(event.position()))

    def leaveEvent(self, event: QEvent) -> None:
        self._hover(None)

    def _hover(self, number: int | None) -> None:
        if number != self.hovered:
            self.hovered = number
            hand = Qt.CursorShape.ArrowCursor if number is None else _HAND
            self.setCursor(hand)
            self.update()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.LeftButton:
            self.pressed = self._at(event.position())
            if self.pressed is not None:
                self.choose(self.pressed)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        pressed, self.pressed = self.pressed, None
        self.update()
        if pressed is not None and pressed == self._at(event.position()):
            self.open(pressed)

    def wheelEvent(self, event: QWheelEvent) -> None:
        self._scroll(-event.angleDelta().y() / 120 * self.places.style.px(72))
        self._hover(self._at(event.position()))

    def _scroll(self, by: float) -> None:
        scrolled = min(max(self.scrolled + by, 0.0), self.places.most)
        if scrolled != self.scrolled:
            self.scrolled = scrolled
            self._forget()

    # --- pictures -------------------------------------------------------------------------

    def _names(self, number: int) -> tuple[PictureName, ...]:
        """Return the pictures that a card may show, the best first.

        That of a lesson under the pointer, or with the focus, takes the place of the first card's.
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
        for number, rect in enumerate(self.places.pictures):
            for name in self._names(number):
                if self._key(name, rect) not in self._painted:
                    kind = f"card {number}" if name == self.entries[number].picture else "lesson"
                    yield kind, name, rect

    @property
    def ready(self) -> bool:
        """Whether all pictures are painted."""
        return not any(self._missing())

    def _go_on(self) -> None:
        """Let what is missing be computed beside the window; paint one that has been."""
        for kind, name, rect in tuple(self._missing()):
            picture = self._pictures.get(name)
            if picture is not None:
                self._painted[self._key(name, rect)] = self._paint(picture, rect)
                while len(self._painted) > _MOST_KEPT:
                    self._painted.pop(next(iter(self._painted)))
                self.update()
                return
            if self._coming.get(kind) != name:
                self._coming[kind] = name
                self._worker.submit(kind, partial(_compute, name, self._window.session.run_of))

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

    def paintEvent(self, event: QPaintEvent) -> None:
        with painting(self) as painter:
            pictures = tuple(
                next((self._painted[key] for name in self._names(number)
                      if (key := self._key(name, rect)) in self._painted), None)
                for number, rect in enumerate(self.places.pictures)
            )  # fmt: skip
            look = PageLook(self.places, pictures, self.focused, self.hovered, self.pressed)
            paint_page(painter, look, QRectF(self.rect()), self.scrolled)
            # The window's own run comes first: pictures would make the start longer.
            if self._window.session.view is not None and not self.ready:
                self._soon.start()


def _compute(
    name: PictureName, run_of: Callable[[Scenario], Trace]
) -> tuple[PictureName, WelcomePicture | None]:
    from ui.window.welcome.pictures import picture_of

    try:
        return name, picture_of(name, run_of)
    except (InputError, MemoryError):  # it is told when the lesson is opened
        return name, None
