"""The tensors that a tile program writes to HBM, and their axes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Axis = Literal["split", "row", "key", "value"]


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A tensor in HBM, with one part for each query head.

    Attributes
    ----------
    name : str
        As in docs/conventions.md.
    axes : tuple of str
        Of each head: ``split``, ``row`` for query rows, ``key``, ``value`` for the value dimension.
    """

    name: str
    axes: tuple[Axis, ...]


COMMON = (
    TensorSpec("O", ("row", "value")),
    TensorSpec("LSE", ("row",)),
    TensorSpec("m", ("row",)),
    TensorSpec("l", ("row",)),
    TensorSpec("S", ("row", "key")),
    TensorSpec("P", ("row", "key")),
)
"""The tensors that every algorithm may write."""
