"""Two parts of the strip of a lesson: its caption, and its steps in a row."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import (
    QFocusEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
)
from PySide6.QtWidgets import QWidget

from simulator.lesson.places import NumberPlace
from simulator.run.cell_values import cell_name
from ui.look.draw import card, outline
from ui.look.terms import TermSpot, said_of
from ui.safety.overrides import guarded
from ui.talk.caption import (
    Caption,
    caption_layout,
    caption_numbers,
    caption_terms,
    paint_caption,
    place_rect,
)
from ui.talk.caption_text import spoken
from ui.talk.slide import paint_slide
from ui.widgets.focus import has_ring
from ui.widgets.named import named
from ui.widgets.painted import Painted

_DRAG = 24.0
"""Pixels at scale 1 by which a number is dragged for each step."""
_FADED = 0.3
"""Opacity of a caption that does not hold for the state on show."""


@guarded
class CaptionView(Painted):
    """The caption of the step; in a window, words of the glossary can be asked for."""

    ground = False
    ringed = False  # the word that has the focus is framed
    word_asked = Signal(str)
    number_pointed = Signal(tuple)
    number_dragged = Signal(str, int, bool)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("caption")
        self.setAccessibleName("Caption")
        self.shown: Caption | None = None
        self.on_slide = False
        """Whether the view shows the two lines of a slide."""
        self.faded = False
        """Whether the run has left the place that the caption describes."""
        self.large = False
        """Whether the view is on the stage, where nobody asks for a word."""
        self._chosen: str | None = None
        """The word that Enter asks for, while the view has the keyboard's focus."""
        self.lit: NumberPlace | None = None
        """The number under the mouse."""
        self._dragged: tuple[str, float, int] | None = None
        """The setting that is dragged, the x where this began, and the steps so far."""
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)

    def show_caption(self, caption: Caption) -> None:
        """Show a caption, and announce it."""
        self.shown, self._chosen = caption, None
        self._light(None)
        head = ", ".join(filter(None, (caption.title, caption.place, caption.lesson)))
        answer = caption.answer if caption.revealed else ""
        self.setAccessibleDescription(spoken(head, caption.body, caption.question, answer))
        self.update()

    @property
    def place(self) -> QRectF:
        """The label with the step's number; on a slide the right end of its first line."""
        if self.shown is None:
            return QRectF()
        if self.on_slide:
            return QRectF(self.width(), 0, 0, 0)
        return place_rect(self.shown, self.style_now, self.width(), self.height())

    @property
    def cut(self) -> bool:
        """Whether the space is too small for the whole caption."""
        if self.shown is None or self.on_slide:
            return False
        width, height = self.width(), self.height()
        return caption_layout(self.shown, self.style_now, width, height).height > height

    @property
    def terms(self) -> list[tuple[TermSpot, QRectF]]:
        """The words of the glossary that can be asked for, with their places."""
        if self.shown is None or self.large:
            return []
        return caption_terms(self.shown, self.style_now, self.width(), self.height())

    @property
    def numbers(self) -> list[tuple[NumberPlace, QRectF]]:
        """The numbers that light their origin or can be dragged, with their places."""
        if self.shown is None or self.large:
            return []
        return caption_numbers(self.shown, self.style_now, self.width(), self.height())

    def _number_at(self, at: QPointF) -> NumberPlace | None:
        return next((number for number, box in self.numbers if box.contains(at)), None)

    def _light(self, number: NumberPlace | None) -> None:
        """Light a number and its origin; None: light nothing."""
        if number != self.lit:
            self.lit = number
            self.number_pointed.emit(number.origin.points if number and not self.faded else ())
            self.update()

    def _term_at(self, at: QPointF) -> str:
        return next((spot.name for spot, box in self.terms if box.contains(at)), "")

    def tip(self, at: QPointF) -> str:
        name, number = self._term_at(at), self._number_at(at)
        whole = self.accessibleDescription() * self.cut
        return said_of(name) if name else _number_tip(number) if number else whole

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._dragged is not None:
            self._drag(event)
        else:
            super().mouseMoveEvent(event)

    def point(self, at: QPointF | None) -> None:
        number = None if at is None else self._number_at(at)
        self._light(number)
        if number is not None and number.origin.setting:
            self.setCursor(Qt.CursorShape.SizeHorCursor)
        elif at is not None and self._term_at(at):
            self.setCursor(Qt.CursorShape.PointingHandCursor)
        else:
            self.setCursor(Qt.CursorShape.ArrowCursor)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        number = self._number_at(event.position())
        left = event.button() is Qt.MouseButton.LeftButton
        if left and number is not None and number.origin.setting:
            self._dragged = number.origin.setting, event.position().x(), 0

    def _drag(self, event: QMouseEvent) -> None:
        """Change the setting that is dragged by a step for each stretch of the way."""
        assert self._dragged is not None
        name, start, done = self._dragged
        steps = int((event.position().x() - start) / self.style_now.px(_DRAG))
        self._dragged = name, start, steps
        fine = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        for _ in range(abs(steps - done)):
            self.number_dragged.emit(name, 1 if steps > done else -1, fine)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        dragged, self._dragged = self._dragged, None
        if dragged is not None:
            return
        name = self._term_at(event.position())
        if name and event.button() is Qt.MouseButton.LeftButton:
            self.word_asked.emit(name)

    def focusInEvent(self, event: QFocusEvent) -> None:
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        self._chosen = None
        self.update()

    def key(self, event: QKeyEvent) -> bool:
        """Go from word to word with Up and Down; Enter asks for the chosen word."""
        names = list(dict.fromkeys(spot.name for spot, _ in self.terms))
        step = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}.get(Qt.Key(event.key()), 0)
        enters = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if names and step:
            start = names.index(self._chosen) if self._chosen in names else -(step > 0)
            self._chosen = names[(start + step) % len(names)]
            self.update()
        elif names and enters:
            self.word_asked.emit(self._chosen or names[0])
        return bool(names and (step or enters))

    def paint(self, painter: QPainter) -> None:
        if self.shown is not None:
            painter.setOpacity(_FADED if self.faded else 1.0)
            if self.on_slide:
                paint_slide(painter, self.shown, self.style_now, QRectF(self.rect()))
                return
            rect, terms = QRectF(self.rect()), not self.large
            paint_caption(painter, self.shown, self.style_now, rect, terms=terms, lit=self.lit)
        for spot, box in self.terms if has_ring(self) else ():
            if spot.name == (self._chosen or self.terms[0][0].name):
                outline(painter, box.adjusted(-2, 0, 2, 0), self.style_now.theme.text)


def _number_tip(number: NumberPlace) -> str:
    """Return a number's origin in words, or how to change the number."""
    if name := number.origin.setting:
        return f"{name}: drag it to the right for twice, to the left for half; with Shift a little"
    cells = (cell_name(point.cell) for point in number.origin.points if point.cell is not None)
    rows = (f"row {point.row}" for point in number.origin.points if point.row is not None)
    return f"From {', '.join((*cells, *rows))}, which is lit on the board"


@guarded
class StepTicks(Painted):
    """The steps of the lesson in a row: the current step is bright, earlier steps are filled."""

    ground = False
    chosen = Signal(int)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        named(self, "steps", "Steps of the lesson", focus=Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.titles: tuple[str, ...] = ()
        self.number = self.count = 0

    def show_place(self, number: int, count: int) -> None:
        """Show which step of how many is current, from 0."""
        self.number, self.count = number, count
        self.setAccessibleDescription(f"step {number + 1} of {count}; Up and Down choose others")
        self.update()

    def boxes(self) -> list[QRectF]:
        """Return the places of the steps, as wide as there is space for."""
        px, count = self.style_now.px, max(self.count, 1)
        gap = min(px(4), 0.3 * self.width() / count)
        wide = min((self.width() + gap) / count - gap, px(24))
        high = px(8)
        top = (self.height() - high) / 2
        return [QRectF(n * (wide + gap), top, wide, high) for n in range(self.count)]

    def step_at(self, x: float) -> int | None:
        """Return the step at a place of the widget."""
        for n, box in enumerate(self.boxes()):
            if box.left() <= x <= box.right():
                return n
        return None

    def paint(self, painter: QPainter) -> None:
        theme, px = self.style_now.theme, self.style_now.px
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for n, box in enumerate(self.boxes()):
            if n == self.number:
                tall = box.adjusted(0, -px(3), 0, px(3))
                card(painter, tall, theme.current, theme.current, px(2))
            elif n < self.number:
                card(painter, box, theme.muted, theme.muted, px(2))
            else:
                card(painter, box, theme.field, theme.muted, px(2))

    def tip(self, at: QPointF) -> str:
        step = self.step_at(at.x())
        if step is None:
            return ""
        title = self.titles[step] if step < len(self.titles) else ""
        return f"Step {step + 1}: {title}" if title else f"Step {step + 1}"

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        step = self.step_at(event.position().x())
        if step is not None and event.button() is Qt.MouseButton.LeftButton:
            self.chosen.emit(step)

    def key(self, event: QKeyEvent) -> bool:
        step = self.number + {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}.get(Qt.Key(event.key()), 0)
        if step != self.number and 0 <= step < self.count:
            self.chosen.emit(step)
        return step != self.number
