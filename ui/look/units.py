"""Numbers as text: the same everywhere, and with a constant width."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from simulator.base.errors import spaced
from simulator.problem.hardware import LAUNCH_SECONDS, TimeEstimate

_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_DECIMAL = ("B", "kB", "MB", "GB", "TB", "PB")
_PREFIXES = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"), (1e-12, "ps"))


def bytes_text(count: float) -> str:
    """Return a number of bytes in powers of two, with its unit: ``14.0 KiB``."""
    count = round(count)
    size, unit = float(count), 0
    while size >= (1023.95 if unit else 1024) and unit < len(_BINARY) - 1:
        size, unit = size / 1024, unit + 1
    return f"{count} B" if unit == 0 else f"{size:.1f} {_BINARY[unit]}"


def bytes_of_text(count: int, whole: int) -> str:
    """Return a part of some bytes, in the unit of the whole: ``0.9 of 14.0 KiB``."""
    text = bytes_text(whole)
    unit = _BINARY.index(text.rpartition(" ")[2])
    return f"{count / 1024**unit:.{1 if unit else 0}f} of {text}"


def decimal_bytes_text(count: int) -> str:
    """Return a number of bytes in powers of ten, as in data sheets: ``1.34 GB``."""
    size, unit = float(count), 0
    while size >= 999.995 and unit < len(_DECIMAL) - 1:
        size, unit = size / 1000, unit + 1
    return f"{count} B" if unit == 0 else f"{size:.2f} {_DECIMAL[unit]}"


def time_text(seconds: float) -> str:
    """Return a duration: ``6.1 µs``."""
    return clock_text(seconds, seconds)


def clock_text(seconds: float, whole: float) -> str:
    """Return a time on the way to a `whole` one, in the unit of the whole: ``0.9 µs``."""
    known = whole or 1e-9  # no time at all is 0.0 ns
    size, unit = next((pair for pair in _SECONDS if known >= 0.99995 * pair[0]), _SECONDS[-1])
    return f"{seconds / size:.1f} {unit}"


LAUNCH = f"{LAUNCH_SECONDS / 1e-6:.0f} µs"
"""The time of a kernel launch, in words."""


def estimate_text(seconds: float, gpu: str) -> str:
    """Return a data sheet's least time, ``≥ 6.1 µs on T4``, and whether a launch takes longer."""
    said = f"≥ {time_text(seconds)} on {gpu}"
    if seconds >= LAUNCH_SECONDS:
        return said
    return f"{said}, less than a launch takes (some {LAUNCH})"


def launch_words(seconds: float) -> str:
    """Return the words beside a time shorter than a launch; empty beside a longer time."""
    return f"A launch alone takes some {LAUNCH}." if seconds < LAUNCH_SECONDS else ""


def bound_text(time: TimeEstimate) -> str:
    """Return the bound of a time; requested bytes are the bound only if L2 has none of them."""
    return "compute-bound" if time.bound == "compute" else "memory-bound if nothing is found in L2"


def rate_text(rate: float, unit: str) -> str:
    """Return a rate in powers of ten, with three digits: ``989 TFLOP/s``, ``3.35 TB/s``."""
    size, prefix = next((pair for pair in _PREFIXES if rate >= 0.9995 * pair[0]), _PREFIXES[-1])
    return f"{rate / size:.3g} {prefix}{unit}"


def factor_text(ratio: float) -> str:
    """Return a factor with three digits: ``1.04×``, ``12.0×``, ``130×``."""
    for least, digits in ((99.95, 0), (9.995, 1), (0.9995, 2)):
        if ratio >= least:
            return f"{ratio:,.{digits}f}×".replace(",", "\u2009")
    return f"{ratio:.3g}×"


def small_text(value: float) -> str:
    """Return a number of at least 0 with two decimals, or two digits: ``1.05``, ``0.0038``."""
    digits = 1 - math.floor(math.log10(value)) if value else 0
    return f"{value:.{max(digits, 2)}f}"


def number_text(value: float, digits: int = 3) -> str:
    """Return a number as panels show it: with fixed digits, ``−∞`` as in mathematics."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value != 0 and (abs(value) >= 1e5 or abs(value) < 0.5 * 10**-digits):
        mantissa, exponent = f"{value:.1e}".split("e")
        return f"{mantissa}e{int(exponent)}".replace("-", "−")
    return f"{value:.{digits}f}".replace("-", "−")


def tick_text(value: float) -> str:
    """Return a number beside an axis, with as few digits as possible: ``−0.25``, ``1e−6``."""
    mantissa, e, exponent = f"{value + 0.0:.6g}".partition("e")  # no −0
    return f"{mantissa}{e}{int(exponent) if e else ''}".replace("-", "−")


def ulp_text(ulps: float) -> str:
    """Return an error in units of the last place: ``1.5 ulp``, ``4 094 ulp``, ``3.1e7 ulp``."""
    if ulps < 100:
        return f"{ulps:.1f} ulp"
    return f"{count_text(round(ulps)) if ulps < 1e5 else number_text(ulps, 1)} ulp"


def flops_text(count: float) -> str:
    """Return a number of FLOPs in powers of ten: ``8.59 GFLOP``."""
    return rate_text(count, "FLOP")


def count_text(count: float) -> str:
    """Return a rounded number, with thin spaces between thousands."""
    return spaced(round(count))


def plural(count: int, word: str) -> str:
    """Return a count and its noun: ``1 tile``, ``4 tiles``, with thin spaces between thousands."""
    return f"{count_text(count)} {word}{'' if count == 1 else 's'}"


def queries_text(count: int) -> str:
    """Return a count of queries: ``one query``, ``4 queries``."""
    return "one query" if count == 1 else f"{count_text(count)} queries"


def exact_text(value: float) -> str:
    """Return a float32 with as few digits as identify it exactly: ``−0.12345679``."""
    if math.isnan(value) or math.isinf(value):
        return number_text(value)
    return copied_text(value).replace("-", "−")


def copied_text(value: float) -> str:
    """Return a float32 as `exact_text` does, in letters that programs read: ``-inf``, ``-0.5``."""
    return str(np.float32(value))


def in_columns(rows: Sequence[Sequence[str]], names: int = 1) -> list[str]:
    """Return the lines of a table: columns of names, then numbers, aligned at the right."""
    wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            text.ljust(size) if n < names else text.rjust(size)
            for n, (text, size) in enumerate(zip(row, wide, strict=True))
        )
        for row in rows
    ]
