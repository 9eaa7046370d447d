"""Work in parts, for this process, for other processes, or for other machines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

Map = Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]]
"""A function like `map`, which does the parts here. Elsewhere function and parts are pickled."""
