"""How numbers are written: the same everywhere, and of steady width."""

from __future__ import annotations

import math

_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def bytes_text(count: int) -> str:
    """Return a number of bytes in powers of two, which its unit says: ``14.0 KiB``."""
    size, unit = float(count), 0
    while size >= 1024 and unit < len(_BINARY) - 1:
        size, unit = size / 1024, unit + 1
    return f"{count} B" if unit == 0 else f"{size:.1f} {_BINARY[unit]}"


def time_text(seconds: float) -> str:
    """Return a duration: ``6.1 µs``."""
    for size, unit in _SECONDS:
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds / 1e-9:.1f} ns" if seconds else "0.0 µs"


def number_text(value: float, digits: int = 3) -> str:
    """Return a number as panels show it: fixed digits, ``−∞`` in words of mathematics."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value != 0 and (abs(value) >= 1e5 or abs(value) < 0.5 * 10**-digits):
        mantissa, exponent = f"{value:.1e}".split("e")
        return f"{mantissa}e{int(exponent)}".replace("-", "−")
    return f"{value:.{digits}f}".replace("-", "−")


def count_text(count: int) -> str:
    """Return a whole number with thin spaces between thousands."""
    return f"{count:,}".replace(",", "\u2009")
