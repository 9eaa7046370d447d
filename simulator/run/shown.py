"""What a notebook shows in the place of a run or of a state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

html: Callable[[Any], str] | None = None
"""Returns HTML of a trace or a snapshot; whoever can paint sets it."""


class ShownFigure:
    """Something that a notebook shows as a picture, where there is one."""

    def _repr_html_(self) -> str | None:
        return None if html is None else html(self)
