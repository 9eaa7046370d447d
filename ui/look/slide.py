"""Where the parts of a slide lie on the stage, in u: a 1080th of the height of a 16 : 9 picture."""

from __future__ import annotations

from PySide6.QtCore import QSize

TOP, CAPTION, FREE, MARGIN = 66.0, 110.0, 130.0, 40.0
"""Height of the line at the top, of the caption, and of the empty band below, in u; the margin at
both sides. The rest between, 774 of 1080, belongs to the board."""
BODY, NAME, SEGMENT = 38.0, 27.0, 4.0
"""Letters of the caption and of the lesson's name, and the height of a step's segment, in u."""
LINES = 2
"""Most lines of a caption."""
PANEL = 1 / 3
"""Share of the width that the panel of the step has beside the board."""
LEAVE_MS = 2000
"""How long the controls stay when they are no longer needed."""
_WIDE = 16 / 9


def unit(size: QSize) -> float:
    """Return the pixels of 1 u in a window of that size."""
    return min(size.height(), size.width() / _WIDE) / 1080


def beside(size: QSize) -> int:
    """Return the width of the empty ground at each side of a window wider than 16 : 9."""
    return max(0, round((size.width() - size.height() * _WIDE) / 2))
