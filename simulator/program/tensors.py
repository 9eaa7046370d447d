"""The tensors that a tile program reads from HBM and writes to it, and their axes."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, prod
from typing import Literal

from simulator.base.dtypes import STATISTIC_WIDTH
from simulator.problem.paging import pages_of
from simulator.problem.workload import Workload

Axis = Literal["split", "row", "key", "depth", "value", "feature", "total", "own", "page"]


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A tensor in HBM, with one part for each query head, or for each KV head."""

    name: str  # as in docs/counting.md
    # of each head: ``split``, ``row`` for query rows, ``key``, ``depth`` for the head dimension,
    # ``value`` for the value dimension, ``feature`` for the features of a row, ``total`` for the
    # value dimension and one more number, the sum of the weights, ``own`` for the query heads that
    # are packed into one, and ``page`` for the pages of K and V, the same for all heads
    axes: tuple[Axis, ...]
    empty: float = 0.0  # the number in rows that have seen nothing
    # of an element: the dtype's, float32's or int32's; ``sum``: float32's in an algorithm whose
    # tiles all add to the tensor in HBM, else the dtype's
    width: Literal["dtype", "float32", "int32", "sum"] = "dtype"
    # the number in rows that have seen a sink logit alone
    with_sink: Literal["empty", "logit", "one"] = "empty"
    # The tensor beside which it is shown, and whose colours it has; a tensor of the same shape as
    # one that is shown there takes its place. Empty: a place of its own, or none.
    at: str = ""

    @property
    def of_pairs(self) -> bool:
        """Whether it has a number for each query row and key."""
        return self.axes == ("row", "key")

    def bytes_in(self, w: Workload, *, sums: bool = False, keys: int | None = None) -> int:
        """Return the bytes of the tensor in HBM, all heads, or of its part for so many keys."""
        narrow = self.width == "dtype" or (self.width == "sum" and not sums)
        heads = w.kv_heads if self.of_kv_heads else w.heads
        heads = 1 if self.of_all else heads
        sizes = w.sizes
        if keys is not None:
            sizes |= {"key": keys, "page": pages_of(keys, w.page_size)}
        numbers = heads * prod(sizes[axis] for axis in self.axes)
        return numbers * (w.width if narrow else STATISTIC_WIDTH)

    @property
    def of_kv_heads(self) -> bool:
        """Whether it has a part for each KV head."""
        return self.axes[0] in ("key", "feature")

    @property
    def of_all(self) -> bool:
        """Whether it is the same for all heads."""
        return self.axes[0] == "page"


INPUTS = (
    TensorSpec("Q", ("row", "depth")),
    TensorSpec("K", ("key", "depth")),
    TensorSpec("V", ("key", "value")),
)

OUTPUT = TensorSpec("O", ("row", "value"), width="sum")  # what a forward pass computes
COMMON = (
    OUTPUT,
    TensorSpec("LSE", ("row",), -inf, "float32", "logit"),
    TensorSpec("m", ("row",), -inf, "float32", "logit"),
    TensorSpec("l", ("row",), width="float32", with_sink="one"),
    TensorSpec("S", ("row", "key")),
    TensorSpec("P", ("row", "key")),
)
"""The tensors that every algorithm may write."""

SINK = TensorSpec("sink", ("own",), width="float32")
"""The logits that join the softmax, where a run has some."""
GATE = TensorSpec("gate", ("row", "value"), at="O")
"""The factors of O before O is stored, where a run has a gate."""


def symbol(name: str) -> str:
    """Return a tensor or statistic as the papers write it."""
    return _SYMBOLS.get(name, name)


_SYMBOLS = {
    "l": "ℓ", "phi_Q": "φ(Q)", "phi_K": "φ(K)", "decay": "α", "strength": "β",
}  # fmt: skip
