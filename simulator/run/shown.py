"""The picture that a notebook shows for a run or a state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

html: Callable[[Any], str] | None = None
"""Returns HTML of a trace or a snapshot; a package that can paint sets this function."""


class ShownFigure:
    """An object that a notebook shows as a picture, if `html` is set."""

    def _repr_html_(self) -> str | None:
        return None if html is None else html(self)
