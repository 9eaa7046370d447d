"""Parts of the speaker's window: pictures of now and next, the list of steps, time against plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPixmap,
    QWheelEvent,
)
from PySide6.QtWidgets import QSizePolicy

from ui.look.draw import LEFT, RIGHT, card, draw_text, text_width
from ui.look.names import first_that_fits
from ui.look.theme import Style
from ui.look.units import plural
from ui.safety.overrides import guarded
from ui.widgets.painted import Painted

NOW, NEXT, STEPS = QSize(880, 495), QSize(540, 304), 372
"""Sizes of the pictures and width of the list, in a window of 1920 × 1080."""
ROW, TALLER = 48, 30
"""Height of a row of the list, and of the words above a picture and the list, in such a window."""
ASKED = (
    ("larger tile?", "Alt+T"), ("and causal?", "Alt+C"),
    ("d = 128?", "Alt+D"), ("more tokens?", "Alt+N"),
)  # fmt: skip
TARGET, BEHIND, LAST = 20 * 60, 30, 120
"""Seconds: the length offered for a talk, the delay that counts as late, and the last minutes."""


def clock_words(seconds: float) -> str:
    """Return a time as ``14:32``."""
    whole = max(0, round(seconds))
    return f"{whole // 60}:{whole % 60:02}"


@dataclass(frozen=True, slots=True)
class Pace:
    """The pace of a talk: seconds spoken, seconds planned to the end of this step, the target."""

    spoken: float
    planned: float
    target: float
    left: int  # steps that are left after this one

    @property
    def words(self) -> tuple[str, str]:
        """How late the talk is, "" if it is not, and the time that is left."""
        late = self.spoken - self.planned
        behind = f"{clock_words(late)} behind" if late >= BEHIND else ""
        rest = self.target - self.spoken
        if rest < 0:
            return behind, f"{clock_words(-rest)} over time"
        return behind, f"{clock_words(rest)} left, {plural(self.left, 'step')} and the questions"

    @property
    def colour(self) -> str:
        """The colour of the clock: yellow in the last minutes, red over time."""
        rest = self.target - self.spoken
        return "bad" if rest < 0 else "current" if rest <= LAST else "text"


class SpeakerPart(Painted):
    """A part that is painted in u: a 1080th of the height of the speaker's window."""

    ground = False

    def __init__(self, name: str, meaning: str) -> None:
        super().__init__()
        self.setObjectName(name)
        self.setAccessibleName(meaning)
        self.u = 1.0

    def take(self, style: Style, u: float) -> None:
        """Take theme and the size of 1 u."""
        self.u = u
        self.set_style(replace(style, scale=u))


class SlidePicture(SpeakerPart):
    """A picture of the stage under its heading: the step on show, or the next step."""

    def __init__(self, name: str, heading: str, size: QSize) -> None:
        super().__init__(name, heading)
        self.heading, self.title = heading, ""
        self.lit = name == "now_picture"
        self.picture = QPixmap()
        self._size = size

    def show_title(self, title: str) -> None:
        """Take the title of the step."""
        self.title = title
        self.setAccessibleDescription(title)
        self.update()

    def show_picture(self, picture: QPixmap) -> None:
        """Take a picture; none while it is computed."""
        self.picture = picture
        self.update()

    def arrange(self) -> None:
        self.setFixedSize(
            round(self._size.width() * self.u),
            round((self._size.height() + TALLER) * self.u),
        )

    def paint(self, painter: QPainter) -> None:
        style, theme, u = self.style_now, self.style_now.theme, self.u
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        bold, plain = style.text_font(20, bold=True), style.text_font(19)
        place = QRectF(0, 0, self.width(), (TALLER - 6) * u)
        draw_text(painter, place, self.heading, bold,
                  theme.current if self.lit else theme.text, LEFT)  # fmt: skip
        place.setLeft(text_width(bold, self.heading) + 14 * u)
        title = first_that_fits((self.title, ""), place.width(), plain)
        draw_text(painter, place, title, plain, theme.muted, LEFT)
        box = QRectF(self.rect()).adjusted(1, TALLER * u, -1, -1)
        edge = theme.current if self.lit else theme.border
        card(painter, box, theme.window, edge, 6 * u, 3 * u if self.lit else 1)
        if self.picture.isNull():
            return
        inner = box.adjusted(3 * u, 3 * u, -3 * u, -3 * u)
        size = QSize(self.picture.size()).scaled(
            inner.size().toSize(), Qt.AspectRatioMode.KeepAspectRatio
        )
        at = QRectF(inner.center() - QPointF(size.width() / 2, size.height() / 2), size)
        painter.drawPixmap(at, self.picture, QRectF(self.picture.rect()))


class Ready(SpeakerPart):
    """Says whether the next step is computed and its picture painted."""

    def __init__(self) -> None:
        super().__init__("ready", "The next step")
        self.ready: bool | None = None

    def show_ready(self, ready: bool | None) -> None:
        """Say that the step is computed, or is being computed; None: there is no next step."""
        if ready != self.ready:
            self.ready = ready
            self.setAccessibleDescription(self.words)
            self.update()

    @property
    def words(self) -> str:
        """The words on show."""
        return "" if self.ready is None else "computed, ready" if self.ready else "computing"

    def arrange(self) -> None:
        self.setFixedHeight(round(34 * self.u))

    def paint(self, painter: QPainter) -> None:
        if self.ready is None:
            return
        theme, u, high = self.style_now.theme, self.u, self.height()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(theme.good if self.ready else theme.muted))
        painter.drawEllipse(QPointF(9 * u, high / 2), 7 * u, 7 * u)
        place = QRectF(26 * u, 0, self.width() - 26 * u, high)
        draw_text(painter, place, self.words, self.style_now.text_font(19), theme.muted, LEFT)


@guarded
class StepList(SpeakerPart):
    """The steps of the lesson with their times; a click, or Enter, goes to one."""

    chosen = Signal(int)
    """The number of a step, from 0."""

    def __init__(self) -> None:
        super().__init__("step_list", "Steps")
        self.titles: tuple[str, ...] = ()
        self.number, self.seconds, self.then = -1, 0.0, ""
        self._first = 0
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Expanding)

    def show_lesson(self, titles: Sequence[str], seconds: float, then: str) -> None:
        """Take the titles of the steps, the planned seconds of each, and the lesson after them."""
        self.titles, self.seconds, self.then = tuple(titles), seconds, then
        self.update()

    def show_place(self, number: int) -> None:
        """Take the number of the step on show, from 0."""
        self.number = number
        self.setAccessibleDescription(f"step {number + 1} of {len(self.titles)}")
        self._reveal()
        self.update()

    def arrange(self) -> None:
        self.setFixedWidth(round(STEPS * self.u))
        self._reveal()

    @property
    def _room(self) -> int:
        """How many rows fit."""
        return max(1, int((self.height() / self.u - TALLER) / (ROW + 6)))

    def _reveal(self) -> None:
        """Scroll so that the step on show and later steps are in sight."""
        most = max(0, len(self.titles) + bool(self.then) - self._room)
        self._first = min(max(0, self.number - self._room // 2), most)

    def rows(self) -> list[tuple[int, QRectF]]:
        """Return the steps in sight with their places."""
        u, high, step = self.u, ROW * self.u, (ROW + 6) * self.u
        last = min(len(self.titles), self._first + self._room)
        return [
            (n, QRectF(1, TALLER * u + (n - self._first) * step, self.width() - 2, high))
            for n in range(self._first, last)
        ]

    def step_at(self, place: QPointF) -> int | None:
        """Return the step at a place."""
        return next((n for n, box in self.rows() if box.contains(place)), None)

    def paint(self, painter: QPainter) -> None:
        style, theme, u = self.style_now, self.style_now.theme, self.u
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        head = QRectF(0, 0, self.width(), (TALLER - 6) * u)
        bold, plain = style.text_font(20, bold=True), style.text_font(19)
        draw_text(painter, head, "Steps", bold, theme.text, LEFT)
        head.setLeft(text_width(bold, "Steps") + 14 * u)
        draw_text(painter, head, "G or a number jumps", plain, theme.muted, LEFT)
        for n, box in self.rows():
            here = n == self.number
            ground, edge = (theme.accent, theme.current) if here else (theme.field, theme.border)
            card(painter, box, ground, edge, 6 * u, 2 * u if here else 1)
            colour = theme.faint if n < self.number else theme.text
            self._write(painter, box, (str(n + 1), self.titles[n]), colour, here)
        shown = self._first + len(self.rows())
        if self.then and shown == len(self.titles) and shown - self._first < self._room:
            top = TALLER * u + (shown - self._first) * (ROW + 6) * u
            box = QRectF(1, top, self.width() - 2, ROW * u)
            self._write(painter, box, ("+", f"then: {self.then}"), theme.muted, False)

    def _write(
        self, painter: QPainter, box: QRectF, words: tuple[str, str], colour: str, bold: bool
    ) -> None:
        style, u = self.style_now, self.u
        code = style.code_font(17)
        draw_text(painter, box.adjusted(18 * u, 0, 0, 0), words[0], code,
                  style.theme.current if bold else colour, LEFT)  # fmt: skip
        time = clock_words(self.seconds) if words[0] != "+" and self.seconds else ""
        draw_text(painter, box.adjusted(0, 0, -14 * u, 0), time, code, style.theme.muted, RIGHT)
        room = box.adjusted(50 * u, 0, -14 * u - text_width(code, time) - 8 * u, 0)
        for size in (18, 16, 14):
            font = style.text_font(size, bold=bold)
            if text_width(font, words[1]) <= room.width():
                break
        painter.save()
        painter.setClipRect(room)
        draw_text(painter, room, words[1], font, colour, LEFT)
        painter.restore()

    def tip(self, at: QPointF) -> str:
        step = self.step_at(at)
        return "" if step is None else self.titles[step]

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        step = self.step_at(event.position())
        if step is not None and event.button() is Qt.MouseButton.LeftButton:
            self.chosen.emit(step)

    def wheelEvent(self, event: QWheelEvent) -> None:
        most = max(0, len(self.titles) + bool(self.then) - self._room)
        by = -1 if event.angleDelta().y() > 0 else 1
        self._first = min(max(self._first + by, 0), most)
        self.update()

    def key(self, event: QKeyEvent) -> bool:
        by = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}.get(Qt.Key(event.key()), 0)
        goes = bool(by) and 0 <= self.number + by < len(self.titles)
        if goes:
            self.chosen.emit(self.number + by)
        return goes


class Asked(SpeakerPart):
    """Questions of an audience, and the keys that show the answers."""

    def __init__(self) -> None:
        super().__init__("if_asked", "If they ask")
        self.setAccessibleDescription(", ".join(f"{words} {key}" for words, key in ASKED))

    def arrange(self) -> None:
        self.setFixedWidth(round(STEPS * self.u))

    def paint(self, painter: QPainter) -> None:
        style, theme, u = self.style_now, self.style_now.theme, self.u
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        draw_text(painter, QRectF(0, 4 * u, self.width(), 26 * u), "If they ask",
                  style.text_font(18, bold=True), theme.muted, LEFT)  # fmt: skip
        font, code = style.text_font(20), style.text_font(16)
        for n, (words, key) in enumerate(ASKED):
            place = QRectF(0, (36 + 44 * n) * u, self.width(), 40 * u)
            draw_text(painter, place, words, font, theme.text, LEFT)
            wide = text_width(code, key) + 20 * u
            box = QRectF(190 * u, place.y() + 4 * u, wide, 32 * u)
            card(painter, box, theme.field, theme.border, 4 * u)
            draw_text(painter, box, key, code, theme.text, Qt.AlignmentFlag.AlignCenter)


@guarded
class PlanBar(SpeakerPart):
    """Time spoken against the plan of a talk; a click sets its length, the wheel changes it.

    target: its length in seconds; 0: not set.
    """

    changed = Signal()

    def __init__(self) -> None:
        super().__init__("plan", "Length of the talk")
        self.target = 0
        self.pace: Pace | None = None
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setToolTip("Set how long the talk is; the wheel, or ↑ ↓, change it by a minute")

    def show_pace(self, pace: Pace | None) -> None:
        """Take the pace of the talk; None: no length is set."""
        if pace != self.pace:
            self.pace = pace
            self.setAccessibleDescription(" ".join(pace.words) if pace else "not set")
            self.update()

    def set_target(self, seconds: int) -> None:
        """Set the length of the talk; 0: not set."""
        self.target = max(0, seconds)
        self.changed.emit()
        self.update()

    def arrange(self) -> None:
        self.setFixedHeight(round(76 * self.u))

    def paint(self, painter: QPainter) -> None:
        style, theme, u, pace = self.style_now, self.style_now.theme, self.u, self.pace
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if pace is None:
            words, font = f"set {clock_words(TARGET)}", style.text_font(19)
            box = QRectF(1, 14 * u, text_width(font, words) + 32 * u, 44 * u)
            card(painter, box, theme.field, theme.border, 6 * u)
            draw_text(painter, box.adjusted(16 * u, 0, 0, 0), words, font, theme.text, LEFT)
        else:
            self._paint_pace(painter, pace)

    def _paint_pace(self, painter: QPainter, pace: Pace) -> None:
        style, theme, u, wide = self.style_now, self.style_now.theme, self.u, self.width()
        behind, left = pace.words
        bold, plain, small = style.text_font(19, bold=True), style.text_font(19), 15
        place = QRectF(0, 0, wide, 28 * u)
        draw_text(painter, place, behind, bold, theme.current, LEFT)
        place.setLeft((text_width(bold, behind) + 16 * u) * bool(behind))
        short = left.partition(",")[0]
        draw_text(painter, place, first_that_fits((left, short, ""), place.width(), plain), plain,
                  theme.bad if pace.spoken > pace.target else theme.muted, LEFT)  # fmt: skip
        track = QRectF(0, 34 * u, wide, 14 * u)
        card(painter, track, theme.border, theme.border, 7 * u)
        done = QRectF(track)
        done.setWidth(max(14 * u, min(pace.spoken / pace.target, 1) * wide))
        colour = theme.bad if pace.spoken > pace.target else theme.current
        card(painter, done, colour, colour, 7 * u)
        x = min(pace.planned / pace.target, 1) * wide
        painter.fillRect(QRectF(x - 1.5 * u, 29 * u, 3 * u, 24 * u), QColor(theme.text))
        font, code = style.text_font(small, bold=True), style.code_font(small)
        name = QRectF(min(max(x - 40 * u, 0), wide - 80 * u), 55 * u, 80 * u, 20 * u)
        end = clock_words(pace.target)
        if name.right() + text_width(code, end) < wide:
            draw_text(painter, QRectF(0, 55 * u, wide, 20 * u), end, code, theme.muted, RIGHT)
        draw_text(painter, name, "plan", font, theme.text, Qt.AlignmentFlag.AlignCenter)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.LeftButton and not self.target:
            self.set_target(TARGET)
        elif event.button() is Qt.MouseButton.RightButton:
            self.set_target(0)

    def wheelEvent(self, event: QWheelEvent) -> None:
        self._change(1 if event.angleDelta().y() > 0 else -1)
        event.accept()

    def key(self, event: QKeyEvent) -> bool:
        by = {Qt.Key.Key_Up: 1, Qt.Key.Key_Down: -1}.get(Qt.Key(event.key()), 0)
        enters = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and not self.target
        if by:
            self._change(by)
        elif enters:
            self.set_target(TARGET)
        return bool(by or enters)

    def _change(self, by: int) -> None:
        minutes = ceil((self.target or TARGET) / 60) + by * bool(self.target)
        self.set_target(60 * max(1, minutes))
