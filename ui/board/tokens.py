"""Sizes and places of tokens; on the stage cells may be less high than the letters of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nlargest

from ui.look.draw import text_width
from ui.look.theme import Style

TOKEN_SIZE = 11.0
"""Size of tokens, at scale 1, beside cells that are as high."""
_SMALL = (5.0, 10.0)
"""Least size of tokens beside smaller cells: at scale 1, and in pixels whatever the scale is."""
MOST_THINNED = 4
"""Of so many tokens one at least is written; where that is too many, numbers of blocks are."""
LINE = 1.1
"""Height of a line of tokens, in sizes of their letters."""
LEAD = 10.0
"""Length, at scale 1, of the lines from tokens to their cells."""
_LONGEST, _MEASURED = 84.0, 8
"""Room, at scale 1, that the longest token may take, and of how many the longest is found."""


def least_size(style: Style) -> float:
    """Return the least size of tokens, at scale 1."""
    return min(max(_SMALL[0], max(_SMALL[1], style.least) / style.scale), TOKEN_SIZE)


def room_for(tokens: Sequence[str], style: Style, size: float) -> float:
    """Return the room, at scale 1, that tokens of a size need beside the board."""
    font = style.text_font(size)
    longest = nlargest(_MEASURED, tokens, key=len)
    widest = max((text_width(font, token) for token in longest), default=0.0)
    return min(widest / style.scale + 1, _LONGEST)


def apart(middles: Sequence[float], line: float, low: float, high: float) -> list[float]:
    """Return where the middles of tokens are that need more room than their cells have.

    Parameters
    ----------
    middles : sequence of float
        Of the cells, evenly spaced.
    line : float
        Room of one token.
    low, high : float
        Limits of all of them.
    """
    if len(middles) < 2 or middles[1] - middles[0] >= line:
        return list(middles)
    whole = line * len(middles)
    start = max(min((middles[0] + middles[-1] - whole) / 2, high - whole), low)
    return [start + (n + 0.5) * line for n in range(len(middles))]
