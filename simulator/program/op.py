"""The base class of ops: cost, citation, and how the animation shows an op."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import ClassVar

from simulator.base.dtypes import F64
from simulator.program.state import ChipTile, Numbers, State, TileMove, Values

Near = Callable[[F64], F64]


class Gesture(Enum):
    """How the animation shows an op."""

    STATE = auto()  # nothing moves: its result is there at the end
    CARRY = auto()  # tiles fly between HBM and the chip
    SUM_DEPTH = auto()  # a product grows over the depth of its rows and columns
    WIPE = auto()  # hidden scores are wiped out
    PICK = auto()  # the largest of each row flies to its maximum
    ROTATE = auto()  # pairs of numbers turn like hands of clocks
    TURN = auto()  # every cell turns into another number
    SHRINK = auto()  # a factor runs back over the row, and old sums shrink by it
    GATHER = auto()  # the cells of each row slide onto their sum
    SUM_KEYS = auto()  # rows are added up, one for each key, each with its weight
    SETTLE = auto()  # sums are divided
    SUM_ROWS = auto()
    """Rows of a matrix are added up with the numbers of pairs, for each key or for each row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """One elementary move inside a visit."""

    name: ClassVar[str]
    """The op's word, as in docs/conventions.md; also its anchor in the kernel sources."""
    loads: ClassVar[bool] = False
    stores: ClassVar[bool] = False
    starts: ClassVar[bool] = False
    """Whether it gives tensors the numbers of rows that have seen nothing."""
    hides: ClassVar[bool] = False  # whether it is the mask
    before_tiles: ClassVar[bool] = False
    """Whether it is done before the first tile, in all heads at once, and not by the kernel."""
    turns: ClassVar[int | None] = None
    """Inputs that the op turns by their position, 0 for queries, 1 for keys; None: none."""
    recorded: ClassVar[tuple[str, ...]] = ()
    """Numbers that an engine may have recorded once the op was done; checked against float64."""
    changed: ClassVar[tuple[str, ...]] = ()
    """Other numbers that are checked, though no engine records them."""
    gesture: ClassVar[Gesture] = Gesture.STATE
    lands: ClassVar[float] = 1.0  # the share of its motion after which its result is shown
    label: ClassVar[str] = ""
    tile_label: ClassVar[str] = ""
    short_label: ClassVar[str] = ""
    """The words on the op's chip, the words where O is divided after each tile, and the shortest
    words."""
    latex: ClassVar[str] = ""
    shows: ClassVar[str] = ""
    """The op's line in the update of a state, and the number beside that line."""

    cites: str  # paper, algorithm and line
    flops: int = 0  # matmul FLOPs; other arithmetic is not counted (docs/counting.md, "Bytes")
    moves: tuple[TileMove, ...] = ()  # tiles that cross between HBM and the chip
    allocates: tuple[ChipTile, ...] = ()  # tiles that are on chip from here on
    frees: tuple[str, ...] = ()  # names that are not on chip any more
    # whether it has nothing to change yet, or seldom changes anything: nobody waits for it
    seldom: bool = False

    factors: ClassVar[tuple[str, ...]] = ()
    """The factors of its products, if they are not Q and the keys: rows of two matrices, or the
    numbers of pairs and the rows that they weigh."""

    @property
    def says(self) -> str:
        """Caption of how numbers change, where no sum and no flight shows the change."""
        return ""

    @property
    def change(self) -> str:
        """Formula of how the op changes S after the product; empty where S does not change."""
        return ""

    @property
    def makes(self) -> tuple[str, ...]:
        """Names of `recorded` that the op makes in its algorithm."""
        return self.recorded

    @property
    def makes_scores(self) -> bool:
        """Whether it makes S of a tile."""
        return "S" in self.recorded

    @property
    def makes_maximum(self) -> bool:
        """Whether it makes the largest score of each row."""
        return "m" in self.makes

    @property
    def read_bytes(self) -> int:
        """Bytes requested from HBM."""
        return sum(move.bytes for move in self.moves) if self.loads else 0

    @property
    def write_bytes(self) -> int:
        """Bytes stored to HBM."""
        return sum(move.bytes for move in self.moves) if self.stores else 0

    def apply(self, state: State) -> None:
        """Do the op, in the state's type of numbers."""
        raise NotImplementedError

    def terms(self, state: State, before: Values | None) -> Values | None:
        """Return the size of each score's terms after the op, (r, c); errors are relative to it.

        before: the result of `terms` of the op before; None in a visit that has made no scores
            yet.
        """
        return before

    def settle(self, state: State, before: Numbers, after: Numbers, near: Near) -> int:
        """Decide as an engine did where a choice is within rounding; return in how many rows."""
        return 0
