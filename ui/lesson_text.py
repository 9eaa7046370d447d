"""How the numbers in a lesson are written: as everywhere in the window."""

from __future__ import annotations

from simulator.lesson_expressions import Formats
from ui.units import bytes_text, count_text, decimal_bytes_text, number_text, time_text

FORMATS: Formats = {
    "bytes": lambda value, _: bytes_text(int(value)),
    "decimal": lambda value, _: decimal_bytes_text(int(value)),
    "count": lambda value, _: count_text(int(value)),
    "number": number_text,
    "percent": lambda value, digits: f"{number_text(100 * value, digits)} %",
    "time": lambda value, _: time_text(value),
    "times": lambda value, digits: f"{number_text(value, digits)} ×",
}
"""For `simulator.lesson.resolve_step`."""
