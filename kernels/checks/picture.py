"""Curves over powers of two as SVG text: a picture that needs no library."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 420, 300
LEFT, RIGHT, TOP, BOTTOM = 62, 16, 40, 42
COLOURS = ("#b3541e", "#2f6fab", "#3f8f5f", "#7a5aa6")
_FONT = 'font-family="Inter, sans-serif" fill="#333333"'


@dataclass(frozen=True, slots=True)
class Chart:
    """Some curves, both axes logarithmic."""

    title: str  # what is drawn, with its unit
    curves: Mapping[str, Sequence[tuple[float, float]]]  # name to points (x, y), both above 0


def svg(charts: Sequence[Chart], note: str) -> str:
    """Return a picture of charts side by side."""
    width, height = WIDTH * len(charts), HEIGHT + 24
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for n, chart in enumerate(charts):
        parts.append(f'<g transform="translate({n * WIDTH} 0)">')
        parts += _chart(chart)
        parts.append("</g>")
    parts.append(f'<text x="{LEFT}" y="{height - 10}" font-size="11" {_FONT}>{escape(note)}</text>')
    parts.append("</svg>\n")
    return "\n".join(parts)


def _chart(chart: Chart) -> list[str]:
    points = [point for curve in chart.curves.values() for point in curve]
    title = f'<text x="{LEFT}" y="22" font-size="14" {_FONT}>{escape(chart.title)}</text>'
    if not points:
        return [title, f'<text x="{LEFT}" y="60" font-size="12" {_FONT}>no measurement</text>']
    x_low, x_high = _span([x for x, _ in points], 2)
    y_low, y_high = _span([y for _, y in points], 10)

    def at(x: float, y: float) -> tuple[float, float]:
        across = (math.log2(x) - x_low) / (x_high - x_low)
        up = (math.log10(y) - y_low) / (y_high - y_low)
        return (
            round(LEFT + across * (WIDTH - LEFT - RIGHT), 1),
            round(HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM), 1),
        )

    parts = [title]
    for power in range(x_low, x_high + 1):
        x, bottom = at(2.0**power, 10.0**y_low)
        parts.append(f'<path d="M{x} {TOP}V{bottom}" stroke="#e4e4e4"/>')
        parts.append(
            f'<text x="{x}" y="{bottom + 16}" font-size="10" text-anchor="middle" {_FONT}>'
            f"{2**power}</text>"
        )
    for power in range(y_low, y_high + 1):
        left, y = at(2.0**x_low, 10.0**power)
        parts.append(f'<path d="M{left} {y}H{WIDTH - RIGHT}" stroke="#e4e4e4"/>')
        parts.append(
            f'<text x="{left - 6}" y="{y + 3}" font-size="10" text-anchor="end" {_FONT}>'
            f"{10.0**power:g}</text>"
        )
    for n, (name, curve) in enumerate(chart.curves.items()):
        colour = COLOURS[n % len(COLOURS)]
        places = [at(x, y) for x, y in curve]
        if places:
            line = " ".join(f"{x},{y}" for x, y in places)
            parts.append(
                f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>'
            )
        parts += [f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>' for x, y in places]
        parts.append(
            f'<text x="{LEFT + 8}" y="{TOP + 14 + 15 * n}" font-size="12" '
            f'font-family="Inter, sans-serif" fill="{colour}">{escape(name)}</text>'
        )
    parts.append(
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}" font-size="11" '
        f'text-anchor="middle" {_FONT}>N, tokens</text>'
    )
    return parts


def _span(values: Sequence[float], base: int) -> tuple[int, int]:
    """Return the powers of a base that hold all values between them, at least one apart."""
    low = math.floor(math.log(min(values), base) + 1e-9)
    high = math.ceil(math.log(max(values), base) - 1e-9)
    return low, max(high, low + 1)
