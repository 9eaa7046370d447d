"""Formats of the numbers in a lesson: as in the rest of the window."""

from __future__ import annotations

from simulator.lesson.expressions import Formats
from ui.look.units import bytes_text, count_text, decimal_bytes_text, number_text, time_text


def _whole(text: str) -> str:
    """Return a number without line breaks, so that its unit stays beside it."""
    return text.replace(" ", "\u00a0")


def _factor(value: float, digits: int) -> str:
    """Return a factor with at most three digits, from 100 on as a whole number."""
    return number_text(value, digits) if value < 100 else count_text(round(value))


FORMATS: Formats = {
    "bytes": lambda value, _: _whole(bytes_text(int(value))),
    "decimal": lambda value, _: _whole(decimal_bytes_text(int(value))),
    "count": lambda value, _: count_text(int(value)),
    "number": number_text,
    "percent": lambda value, digits: _whole(f"{number_text(100 * value, digits)} %"),
    "time": lambda value, _: _whole(time_text(value)),
    "times": lambda value, digits: _whole(f"{_factor(value, digits)} ×"),
}
"""For `simulator.lesson.reader.resolve_step`."""
