"""The elementary moves of a tile program: what each costs, cites and, in numbers, does.

Counters, the picture of the chip, the chips of the transport and the animation all come
from these ops. They are also executable: `Op.apply` on a `Machine` in float64 is the oracle
that every engine is held against.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from simulator.base.dtypes import F64, STATISTIC_WIDTH
from simulator.base.matmul import matmul
from simulator.problem.masks import Mask

Place = Literal["shared", "registers"]


@dataclass(frozen=True, slots=True)
class Move:
    """One tile on its way between HBM and the chip.

    Attributes
    ----------
    tensor : str
        ``Q K V S P O LSE m l``.
    head : int
        Index along the tensor's first axis: the KV head for K and V.
    rows : range
        Rows of the tensor; for S and P the query rows.
    cols : range or None
        Keys, for S and P alone.
    bytes : int
        What the move asks of HBM.
    """

    tensor: str
    head: int
    rows: range
    cols: range | None
    bytes: int


@dataclass(frozen=True, slots=True)
class ChipTile:
    """A tile held on chip.

    Attributes
    ----------
    name : str
        Tensor or statistic; one name is held once.
    bytes : int
        Its size.
    place : str
        ``shared`` memory, which the GPU preset limits for each block, or ``registers``.
    stays : bool
        Whether it outlives the visit, until its row or column block is done.
    """

    name: str
    bytes: int
    place: Place
    stays: bool = False


class Machine:
    """HBM and one chip, in float64: what the ops run on.

    HBM starts as NaN where an algorithm has not written, so that reading too early shows.

    Parameters
    ----------
    q, k, v : ndarray
        (heads, Nq, d), (kv_heads, Nk, d), (kv_heads, Nk, dv).
    """

    def __init__(self, q: NDArray[np.floating], k: NDArray[np.floating], v: NDArray[np.floating]):
        heads, rows, keys, dv = q.shape[0], q.shape[1], k.shape[1], v.shape[2]
        self.hbm: dict[str, F64] = {
            "Q": q.astype(np.float64),
            "K": k.astype(np.float64),
            "V": v.astype(np.float64),
        }
        self._written = {
            "O": (heads, rows, dv),
            "LSE": (heads, rows),
            "m": (heads, rows),
            "l": (heads, rows),
            "S": (heads, rows, keys),
            "P": (heads, rows, keys),
        }
        self.chip: dict[str, F64] = {}

    def tensor(self, name: str) -> F64:
        """Return a tensor in HBM, NaN until it is written."""
        if name not in self.hbm:
            self.hbm[name] = np.full(self._written[name], np.nan)
        return self.hbm[name]

    def view(self, move: Move) -> F64:
        """Return the part of HBM that a move names."""
        rows = slice(move.rows.start, move.rows.stop)
        part: F64 = self.tensor(move.tensor)[move.head, rows]
        return part if move.cols is None else part[:, move.cols.start : move.cols.stop]


def exp_shift(high: F64, low: F64) -> F64:
    """Return exp(high - low), 0 where `high` is -inf: what has seen nothing weighs nothing."""
    nothing = np.isneginf(high)
    return np.where(
        nothing, 0.0, np.exp(np.where(nothing, 0.0, high) - np.where(nothing, 0.0, low))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """One elementary move inside a visit.

    Attributes
    ----------
    cites : str
        Paper, algorithm and line.
    flops : int
        Matmul FLOPs; other arithmetic is not counted (docs/conventions.md, "Bytes").
    moves : tuple of Move
        Tiles that cross between HBM and the chip.
    allocates : tuple of ChipTile
        Tiles that are on chip from here on.
    frees : tuple of str
        Names that are not on chip any more.
    """

    name: ClassVar[str]
    """The op's word, as in docs/conventions.md; also its anchor in the kernel sources."""
    loads: ClassVar[bool] = False
    stores: ClassVar[bool] = False

    cites: str
    flops: int = 0
    moves: tuple[Move, ...] = ()
    allocates: tuple[ChipTile, ...] = ()
    frees: tuple[str, ...] = ()

    @property
    def read_bytes(self) -> int:
        """Bytes requested from HBM."""
        return sum(move.bytes for move in self.moves) if self.loads else 0

    @property
    def write_bytes(self) -> int:
        """Bytes stored to HBM."""
        return sum(move.bytes for move in self.moves) if self.stores else 0

    def apply(self, machine: Machine) -> None:
        """Do it, in float64."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadTiles(Op):
    """Copy tiles from HBM to the chip."""

    name: ClassVar[str] = "load"
    loads: ClassVar[bool] = True

    def apply(self, machine: Machine) -> None:
        for move in self.moves:
            machine.chip[move.tensor] = machine.view(move).copy()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreTiles(Op):
    """Copy tiles from the chip to HBM."""

    name: ClassVar[str] = "store"
    stores: ClassVar[bool] = True

    def apply(self, machine: Machine) -> None:
        for move in self.moves:
            machine.view(move)[...] = machine.chip[move.tensor]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreConstants(Op):
    """Write O = 0, l = 0 and m or LSE = -inf to HBM, where no key has been seen."""

    name: ClassVar[str] = "clear"
    stores: ClassVar[bool] = True

    def apply(self, machine: Machine) -> None:
        for move in self.moves:
            machine.view(move)[...] = -np.inf if move.tensor in ("m", "LSE") else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Initialise(Op):
    """Start m, l and O of a row block on chip."""

    name: ClassVar[str] = "initialise"
    rows: int
    value_dim: int

    def apply(self, machine: Machine) -> None:
        machine.chip["m"] = np.full(self.rows, -np.inf)
        machine.chip["l"] = np.zeros(self.rows)
        machine.chip["O"] = np.zeros((self.rows, self.value_dim))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores(Op):
    """``S = scale · Q Kᵀ`` of one tile."""

    name: ClassVar[str] = "scores"
    scale: float

    def apply(self, machine: Machine) -> None:
        machine.chip["S"] = matmul(machine.chip["Q"], machine.chip["K"].T) * self.scale


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyMask(Op):
    """Set the hidden pairs of a tile to -inf, before the softmax."""

    name: ClassVar[str] = "mask"
    mask: Mask = field(repr=False)
    rows: range
    cols: range

    def apply(self, machine: Machine) -> None:
        seen = self.mask.visible(self.rows, self.cols)
        machine.chip["S"] = np.where(seen, machine.chip["S"], -np.inf)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowMax(Op):
    """The maximum of each row.

    `running`: over all tiles so far, with ``alpha = exp(m_old - m)``; else of what is on chip
    alone, kept as ``m_tile``.
    """

    name: ClassVar[str] = "row max"
    running: bool

    def apply(self, machine: Machine) -> None:
        chip = machine.chip
        chip["m_tile"] = chip["S"].max(axis=1)
        if self.running:
            chip["m_prev"] = chip["m"]
            chip["m"] = np.maximum(chip["m"], chip["m_tile"])
            chip["alpha"] = exp_shift(chip["m_prev"], chip["m"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Exponentials(Op):
    """``P = exp(S - m)``, with the maximum of the run or of the tile."""

    name: ClassVar[str] = "exponentials"
    running: bool

    def apply(self, machine: Machine) -> None:
        top = machine.chip["m" if self.running else "m_tile"]
        machine.chip["P"] = exp_shift(machine.chip["S"], top[:, None])


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSum(Op):
    """The sum of each row's exponentials: ``l = alpha l + rowsum(P)``, or the tile's own."""

    name: ClassVar[str] = "row sum"
    running: bool

    def apply(self, machine: Machine) -> None:
        chip = machine.chip
        chip["l_tile"] = chip["P"].sum(axis=1)
        if self.running:
            chip["l"] = chip["alpha"] * chip["l"] + chip["l_tile"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Combine(Op):
    """Join the tile's m and l with those of the run (FlashAttention-1)."""

    name: ClassVar[str] = "combine"

    def apply(self, machine: Machine) -> None:
        chip = machine.chip
        chip["m_prev"], chip["l_prev"] = chip["m"], chip["l"]
        chip["m"] = np.maximum(chip["m_prev"], chip["m_tile"])
        chip["alpha"] = exp_shift(chip["m_prev"], chip["m"])
        chip["beta"] = exp_shift(chip["m_tile"], chip["m"])
        chip["l"] = chip["alpha"] * chip["l_prev"] + chip["beta"] * chip["l_tile"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescale(Op):
    """Correct O for the new maximum; `normalised` O (FlashAttention-1) for the new l as well."""

    name: ClassVar[str] = "rescale"
    normalised: bool

    def apply(self, machine: Machine) -> None:
        chip = machine.chip
        factor = chip["alpha"]
        if self.normalised:
            factor = _over(factor * chip["l_prev"], chip["l"])
        chip["O"] = factor[:, None] * chip["O"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Accumulate(Op):
    """``O += P V``; into a `normalised` O (FlashAttention-1), ``O += beta / l · P V``."""

    name: ClassVar[str] = "accumulate"
    normalised: bool

    def apply(self, machine: Machine) -> None:
        chip = machine.chip
        product = matmul(chip["P"], chip["V"])
        if self.normalised:
            product = _over(chip["beta"], chip["l"])[:, None] * product
        chip["O"] = chip["O"] + product


@dataclass(frozen=True, slots=True, kw_only=True)
class Normalise(Op):
    """Divide by l once, at the end: O of flash2 (and LSE = m + ln l), or P of naive."""

    name: ClassVar[str] = "normalise"
    tensor: Literal["O", "P"]

    def apply(self, machine: Machine) -> None:
        chip = machine.chip
        total = chip["l"] if self.tensor == "O" else chip["l_tile"]
        top = chip["m"] if self.tensor == "O" else chip["m_tile"]
        chip[self.tensor] = _over(np.ones_like(total), total)[:, None] * chip[self.tensor]
        chip["LSE"] = np.where(total > 0, top + np.log(np.where(total > 0, total, 1.0)), -np.inf)


def _over(numerator: F64, denominator: F64) -> F64:
    """Return the quotient, 0 where the denominator is 0: the row has seen nothing."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)


def statistics(rows: int) -> int:
    """Return the bytes of one statistic (m, l or LSE) of `rows` rows."""
    return rows * STATISTIC_WIDTH
