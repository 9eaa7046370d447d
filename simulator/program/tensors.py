"""The tensors that a tile program reads from HBM and writes to it, and their axes."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Literal

Axis = Literal["split", "row", "key", "depth", "value"]


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A tensor in HBM, with one part for each query head.

    Attributes
    ----------
    name : str
        As in docs/conventions.md.
    axes : tuple of str
        Of each head: ``split``, ``row`` for query rows, ``key``, ``depth`` for the head dimension,
        ``value`` for the value dimension.
    empty : float
        What stands in rows that have seen nothing.
    """

    name: str
    axes: tuple[Axis, ...]
    empty: float = 0.0

    @property
    def of_pairs(self) -> bool:
        """Whether it has a number for each query row and key."""
        return self.axes == ("row", "key")


INPUTS = (
    TensorSpec("Q", ("row", "depth")),
    TensorSpec("K", ("key", "depth")),
    TensorSpec("V", ("key", "value")),
)

COMMON = (
    TensorSpec("O", ("row", "value")),
    TensorSpec("LSE", ("row",), -inf),
    TensorSpec("m", ("row",), -inf),
    TensorSpec("l", ("row",)),
    TensorSpec("S", ("row", "key")),
    TensorSpec("P", ("row", "key")),
)
"""The tensors that every algorithm may write."""


def symbol(name: str) -> str:
    """Return a tensor or statistic as the papers write it."""
    return {"l": "ℓ"}.get(name, name)
