"""Work in parts, which somebody else may do: in this process, in others, on other machines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

Map = Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]]
"""As `map`, which does the parts here. Elsewhere function and parts are pickled."""
