"""One visit of a tile, and what has been requested and computed before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from simulator.problem.tiling import TileKind
from simulator.program.op import Op


@dataclass(frozen=True, slots=True)
class Visit:
    """The work on one (head, i, j) tile of the score matrix.

    Attributes
    ----------
    index : int
        Place in the program.
    launch : int
        Which kernel launch it belongs to.
    head, i, j : int
        Query head, row block, column block. A visit of naive's softmax launch works on its whole
        row block: then `j` is 0 and `cols` has all keys.
    rows, cols : range
        Valid query rows and keys.
    kind : TileKind
        PARTIAL or FULL.
    first, last : bool
        Whether it is the first or last visit of its outer block.
    opens : bool
        Whether it is the first visit of its head in this launch.
    split : int
        Which run of the column blocks it is in.
    """

    index: int
    launch: int
    head: int
    i: int
    j: int
    rows: range
    cols: range
    kind: TileKind
    first: bool
    last: bool
    opens: bool
    split: int = 0


@dataclass(frozen=True, slots=True)
class Counters:
    """Requested bytes of each tensor, and matmul FLOPs.

    Attributes
    ----------
    read, write : mapping of str to int
        Bytes by tensor.
    flops : int
        Matmul FLOPs.
    """

    read: Mapping[str, int]
    write: Mapping[str, int]
    flops: int

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
