"""Light on α while a rescale is done: one style in formulas, in code and on the board."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainter

from ui.look.draw import card, mixed
from ui.look.formula import formula, typeset
from ui.look.theme import Style

_GROUND = 0.2
"""Share of the current colour in the ground of a lit box."""
_ABOVE, _BELOW = 0.55, 0.12
"""Least height of a lit box above and below the baseline, in sizes of the letters."""
_ALPHA = re.compile(
    r"\\dfrac\{\\alpha[^{}]*\}\{[^{}]*(?:\{[^{}]*(?:\{[^{}]*\})?[^{}]*\}[^{}]*)*\}"
    r"|\\alpha(?![A-Za-z])"
    r"|e\^\{m_i(?:[^{}]|\{[^{}]*\})*\}"
)
"""α, a fraction that begins with it, and the power of e that papers write in its place."""
ALPHA_IN_CODE = re.compile(r"""chip\["(?:alpha|factor)"\]|\balpha\b""")
"""α in NumPy and in CUDA."""


def paint_lit(painter: QPainter, box: QRectF, style: Style) -> None:
    """Paint the ground and the frame of a lit box, margins included."""
    theme = style.theme
    line = style.px(3 if theme.name == "contrast" else 2)
    card(painter, box, mixed(theme.panel, theme.current, _GROUND), theme.current, style.px(4), line)


def alpha_boxes(
    latex: str, pixels: float, x: float, baseline: float, style: Style
) -> Iterator[QRectF]:
    """Yield the lit boxes of α in a formula, margins included.

    pixels: size of the formula's letters.
    x, baseline: the formula's left end and baseline.
    """
    across, down = style.px(4.5), style.px(3)
    for before, own in _parts(latex):
        end, made = formula(before + own, pixels).width, formula(own, pixels)
        above, below = max(made.ascent, _ABOVE * pixels), max(made.descent, _BELOW * pixels)
        box = QRectF(x + end - made.width, baseline - above, made.width, above + below)
        yield box.adjusted(-across, -down, across, down)


def typeset_alpha(formulas: Iterable[str]) -> None:
    """Typeset the parts that tell where α stands, ahead of painting."""
    for latex in formulas:
        for before, own in _parts(latex):
            typeset((before + own, own))


@lru_cache(maxsize=64)
def _parts(latex: str) -> tuple[tuple[str, str], ...]:
    """Return the text before each α in a formula, and the α itself; outside of braces."""
    found = ((latex[: each.start()], each[0]) for each in _ALPHA.finditer(latex))
    return tuple((before, own) for before, own in found if before.count("{") == before.count("}"))
