"""One visit of a tile, and the counters of bytes and FLOPs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from simulator.problem.tiling import TileKind
from simulator.program.op import Op


@dataclass(frozen=True, slots=True)
class Visit:
    """The work on one (head, i, j) tile of the score matrix."""

    index: int  # place in the program
    launch: int  # which kernel launch it belongs to
    # head, i, j: Query head, row block, column block. A visit of naive's softmax launch works on
    # its whole row block: then `j` is 0 and `cols` has all keys.
    head: int
    i: int
    j: int
    # rows, cols: valid query rows and keys
    rows: range
    cols: range
    kind: TileKind  # PARTIAL or FULL
    # first, last: whether it is the first or last visit of its outer block
    first: bool
    last: bool
    opens: bool  # whether it is the first visit of its head in this launch
    split: int = 0  # which run of the column blocks it is in


@dataclass(frozen=True, slots=True)
class Counters:
    """Requested bytes of each tensor, and matmul FLOPs."""

    # read, write: bytes by tensor
    read: Mapping[str, int]
    write: Mapping[str, int]
    flops: int  # matmul FLOPs

    @property
    def read_bytes(self) -> int:
        """Bytes read of all tensors."""
        return sum(self.read.values())

    @property
    def write_bytes(self) -> int:
        """Bytes written of all tensors."""
        return sum(self.write.values())

    @property
    def bytes(self) -> int:
        """Bytes read and written of all tensors."""
        return self.read_bytes + self.write_bytes

    def after(self, ops: tuple[Op, ...]) -> Counters:
        """Return the counters after `ops` have been done as well."""
        read, write, flops = dict(self.read), dict(self.write), self.flops
        for op in ops:
            flops += op.flops
            for move in op.moves:
                into = read if op.loads else write
                into[move.tensor] += move.bytes
        return Counters(read, write, flops)
