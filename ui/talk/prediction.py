"""A question before its answer: its words, and the scale with a guess and the answer on it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QColor, QFont, QPainter, QPen

from simulator.lesson.predict import GuessOutcome, Prediction
from ui.look.draw import CENTRE, draw_text, mixed, text_width
from ui.look.theme import Style
from ui.look.units import number_text, tick_text
from ui.talk.caption_text import plain_text

_MANY = 3.0
"""From this factor on, the verdict says how many times too large or small a guess is."""
_TICKS = 5
_HIGH = 1.1
"""Least end of a scale without given ends, as a multiple of the larger of guess and answer."""


def written(prediction: Prediction, value: float) -> str:
    """Return an answer or a guess as text, with its unit."""
    if prediction.choices:
        return f"“{plain_text(prediction.choices[int(value)])}”"
    if prediction.click is not None:
        return f"column {int(value)}"
    number = number_text(value, prediction.digits)
    return f"{number}\u00a0{prediction.unit}" if prediction.unit else number


def _guessed(prediction: Prediction, value: float) -> str:
    """Return a guess with as many digits as were typed, though no fewer than it needs."""
    if not prediction.is_number:
        return written(prediction, value)
    unit = f"\u00a0{prediction.unit}" if prediction.unit else ""
    return f"{tick_text(value)}{unit}"


def wanted(prediction: Prediction) -> str:
    """Return in words which input is wanted, for the field, and after a wrong input."""
    if prediction.choices:
        return f"1 to {len(prediction.choices)} chooses"
    if prediction.click is not None:
        tensor, row = prediction.click
        return f"click a cell of {tensor} in row {row}"
    unit = f" ({prediction.unit})" if prediction.unit else ""
    if prediction.span is None:
        return f"a number{unit}"
    low, high = map(tick_text, prediction.span)
    return f"a number between {low} and {high}{unit}"


def verdict(prediction: Prediction, found: GuessOutcome) -> str:
    """Return one sentence about a guess, by the sign and the size of its distance."""
    truth, guess = written(prediction, prediction.truth), _guessed(prediction, found.guess)
    if not prediction.is_number:
        return f"Yes: {truth}." if found.right else f"Computed: {truth}. Yours: {guess}."
    apart = number_text(abs(found.apart), prediction.digits)
    side = "above" if found.apart > 0 else "below"
    if found.right:
        return f"Right: computed {truth}, yours {guess}."
    if found.factor >= _MANY:
        times = number_text(found.factor, 0 if found.factor >= 10 else 1)
        size = "large" if side == "above" else "small"
        return f"Computed {truth}, yours {guess}: {times} times too {size}."
    return f"Computed {truth}, yours {guess}: {apart} {side}."


def printed(prediction: Prediction) -> str:
    """Return a question for a page or a film, in which nobody types: with its choices."""
    each = (f"**{n}** {text}" for n, text in enumerate(prediction.choices, start=1))
    return "  ".join(filter(None, (prediction.ask, " · ".join(each))))


@dataclass(frozen=True, slots=True)
class Scale:
    """A scale with a guess on it, and with the answer once that may be seen."""

    low: float
    high: float
    guess: float | None = None
    truth: float | None = None
    share: float = 1.0  # how far the line between both has grown, 0 to 1


def scale_of(prediction: Prediction, guess: float | None, *, told: bool) -> Scale | None:
    """Return the scale of a question; None while its ends would tell the answer.

    told: whether the answer is shown.
    """
    if not prediction.is_number or not (told or prediction.span):
        return None
    seen = [each for each in (guess, prediction.truth if told else None) if each is not None]
    low, high = prediction.span or (min(0.0, *seen), _round_end(_HIGH * max(0.0, *seen)))
    low, high = min(low, *seen, low), max(high, *seen, high)
    if low == high:
        high = low + 1.0
    return Scale(low, high, guess, prediction.truth if told else None)


def _round_end(value: float) -> float:
    """Return the next number from a value on that is 1, 2 or 5 times a power of ten."""
    if value <= 0:
        return 0.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(part * power for part in (1, 2, 5, 10) if part * power >= value * (1 - 1e-9))


def line_of(rect: QRectF, style: Style) -> tuple[float, float, float]:
    """Return the line of a scale: the x of its left and right end, and its y."""
    side = style.px(14)
    return rect.left() + side, rect.right() - side, rect.top() + 0.38 * rect.height()


def value_at(scale: Scale, rect: QRectF, style: Style, x: float) -> float:
    """Return the number of a scale at a place, rounded to a hundredth of the scale."""
    left, right, _ = line_of(rect, style)
    share = min(max((x - left) / max(right - left, 1.0), 0.0), 1.0)
    step = 10.0 ** math.floor(math.log10((scale.high - scale.low) / 100.0))
    return round((scale.low + share * (scale.high - scale.low)) / step) * step


def paint_scale(painter: QPainter, scale: Scale, style: Style, rect: QRectF, font: QFont) -> None:
    """Draw a scale: the guess as a ring, the answer as a dot, and a line that says how far."""
    theme, px = style.theme, style.px
    left, right, y = line_of(rect, style)

    def place(value: float) -> float:
        return left + (value - scale.low) / (scale.high - scale.low) * (right - left)

    painter.setPen(QPen(QColor(theme.border), px(4)))
    painter.drawLine(QPointF(left, y), QPointF(right, y))
    painter.setPen(QPen(QColor(theme.muted), px(1)))
    for n in range(_TICKS):
        x = left + n / (_TICKS - 1) * (right - left)
        painter.drawLine(QPointF(x, y - px(5)), QPointF(x, y + px(5)))
    for n in (0, (_TICKS - 1) // 2, _TICKS - 1):
        x = left + n / (_TICKS - 1) * (right - left)
        words = tick_text(scale.low + n / (_TICKS - 1) * (scale.high - scale.low))
        wide = text_width(font, words) + 2
        at = min(max(x - wide / 2, rect.left()), rect.right() - wide)
        below = QRectF(at, y + px(6), wide, rect.bottom() - y - px(6))
        draw_text(painter, below, words, font, theme.muted, CENTRE)
    if scale.guess is not None and scale.truth is not None:
        truth, guess = place(scale.truth), place(scale.guess)
        painter.setPen(QPen(mixed(theme.panel, theme.current, 0.65), px(5)))
        end = truth + scale.share * (guess - truth)
        painter.drawLine(QPointF(truth, y), QPointF(end, y))
    painter.setPen(QPen(QColor(theme.current), px(2)))
    if scale.truth is not None:
        painter.setBrush(QColor(theme.current))
        painter.drawEllipse(QPointF(place(scale.truth), y), px(6), px(6))
    if scale.guess is not None:
        waits = scale.truth is None
        painter.setPen(QPen(QColor(theme.current if waits else theme.text), px(2.5)))
        painter.setBrush(QColor(theme.text if waits else theme.panel))
        painter.drawEllipse(QPointF(place(scale.guess), y), px(6), px(6))
