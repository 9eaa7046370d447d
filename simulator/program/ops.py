"""The elementary moves of a tile program: what each costs, cites and, in numbers, does.

Counters, the picture of the chip, the chips of the transport and the animation all come
from these ops. They are also executable: `Op.apply` on a `State` in float64 is the oracle that
every engine is held against, and in float32 the NumPy engine.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from simulator.base.dtypes import STATISTIC_WIDTH
from simulator.base.matmul import matmul
from simulator.problem.masks import Mask
from simulator.program.tensors import COMMON, Axis, TensorSpec

Place = Literal["shared", "registers"]
Values = NDArray[Any]
"""float32 or float64, as the state computes."""


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
    split : int or None
        Which of the splits, of a tensor that has some; None for all of them.
    """

    tensor: str
    head: int
    rows: range
    cols: range | None
    bytes: int
    split: int | None = None


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


class State:
    """HBM and one chip: what the ops run on.

    HBM starts as NaN where an algorithm has not written, so that reading too early shows.

    Parameters
    ----------
    q, k, v : ndarray
        (heads, Nq, d), (kv_heads, Nk, d), (kv_heads, Nk, dv).
    number : dtype, optional
        What the ops compute in.
    head : int, optional
        The one query head for which tensors can be written; all without it.
    rows : range, optional
        The query rows for which they can be written; all without it.
    tensors : tuple of TensorSpec
        What can be written beside what all algorithms write.
    splits : int
        Into how many runs keys are dealt out.

    Attributes
    ----------
    chip : mapping of str to ndarray
        The newest numbers by name, those of the row block or tile at hand. A name that is not on
        the chip any more stays until it is made or loaded again.
    hbm : mapping of str to ndarray
        Tensors in HBM: Q, K and V as they were given, and of the others the part that can be
        written, (heads, rows, ...).
    """

    def __init__(
        self,
        q: NDArray[np.floating],
        k: NDArray[np.floating],
        v: NDArray[np.floating],
        number: type[np.floating] = np.float64,
        *,
        head: int | None = None,
        rows: range | None = None,
        tensors: tuple[TensorSpec, ...] = (),
        splits: int = 1,
    ) -> None:
        self.number = number
        self.chip: dict[str, Values] = {}
        self.hbm: dict[str, Values] = {"Q": q, "K": k, "V": v}
        self._heads = range(len(q)) if head is None else range(head, head + 1)
        self._rows = range(q.shape[1]) if rows is None else rows
        self._written = {spec.name: spec for spec in (*COMMON, *tensors)}
        self._sizes: dict[Axis, int] = {
            "split": splits, "row": len(self._rows), "key": k.shape[1], "value": v.shape[2],
        }  # fmt: skip

    @classmethod
    def on_chip(cls, **numbers: Values) -> State:
        """Return a float64 state without HBM, of some numbers on chip."""
        nothing = np.empty((0, 0, 0))
        state = cls(nothing, nothing, nothing)
        state.chip.update(numbers)
        return state

    def tensor(self, name: str) -> Values:
        """Return a tensor in HBM, NaN until it is written."""
        if name not in self.hbm:
            sizes = (self._sizes[axis] for axis in self._written[name].axes)
            shape = (len(self._heads), *sizes)
            self.hbm[name] = np.full(shape, np.nan, dtype=self.number)
        return self.hbm[name]

    def view(self, move: Move) -> Values:
        """Return the part of HBM that a move names, of what can be written only the part kept."""
        tensor = self.tensor(move.tensor)
        if move.tensor not in self._written:
            return tensor[move.head, move.rows.start : move.rows.stop]
        first, every = self._rows.start, slice(None)
        parts: dict[Axis, slice | int] = {
            "split": every if move.split is None else move.split,
            "row": slice(max(move.rows.start - first, 0), max(move.rows.stop - first, 0)),
            "key": every if move.cols is None else slice(move.cols.start, move.cols.stop),
        }
        axes = self._written[move.tensor].axes
        return tensor[move.head - self._heads.start, *(parts.get(axis, every) for axis in axes)]

    def load(self, move: Move) -> Values:
        """Return the numbers that a move brings to the chip."""
        found = self.view(move)
        written = move.tensor in self._written
        return found.copy() if written else found.astype(self.number, copy=False)

    def store(self, move: Move, values: Values | float) -> None:
        """Write a part of HBM."""
        self.view(move)[...] = values

    def copy(self) -> State:
        """Return a state that goes on from here by itself; S and P are written once and shared."""
        other = copy.copy(self)
        other.chip = dict(self.chip)
        other.hbm = {
            name: tensor.copy() if name in self._written and name not in "SP" else tensor
            for name, tensor in self.hbm.items()
        }
        return other


def exp_shift(high: Values, low: Values) -> Values:
    """Return exp(high - low), 0 where `high` is -inf: keys that were not seen weigh nothing."""
    floor: Values = np.where(np.isneginf(low), low.dtype.type(0), low)
    weights: Values = np.exp(high - floor)
    return weights


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
    recorded: ClassVar[tuple[str, ...]] = ()
    """Numbers that an engine may have recorded once the op was done; checked against float64."""
    changed: ClassVar[tuple[str, ...]] = ()
    """Others that are checked, though no engine records them."""

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

    def apply(self, state: State) -> None:
        """Do it, in what the state computes in."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadTiles(Op):
    """Copy tiles from HBM to the chip."""

    name: ClassVar[str] = "load"
    loads: ClassVar[bool] = True

    def apply(self, state: State) -> None:
        for move in self.moves:
            state.chip[move.tensor] = state.load(move)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreTiles(Op):
    """Copy tiles from the chip to HBM."""

    name: ClassVar[str] = "store"
    stores: ClassVar[bool] = True

    def apply(self, state: State) -> None:
        for move in self.moves:
            state.store(move, state.chip[move.tensor])


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreConstants(Op):
    """Write O = 0, l = 0 and m or LSE = -inf to HBM, where no key has been seen."""

    name: ClassVar[str] = "clear"
    stores: ClassVar[bool] = True

    def apply(self, state: State) -> None:
        for move in self.moves:
            state.store(move, -np.inf if move.tensor.startswith(("m", "LSE")) else 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Initialise(Op):
    """Start O of a row block on chip, and with `statistics` its m and l."""

    name: ClassVar[str] = "initialise"
    rows: int
    value_dim: int
    statistics: bool = True

    def apply(self, state: State) -> None:
        chip, number = state.chip, state.number
        if self.statistics:
            chip["m"] = np.full(self.rows, -np.inf, number)
            chip["l"] = np.zeros(self.rows, number)
        chip["O"] = np.zeros((self.rows, self.value_dim), number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores(Op):
    """``S = (scale · Q) Kᵀ`` of one tile."""

    name: ClassVar[str] = "scores"
    recorded: ClassVar[tuple[str, ...]] = ("S",)
    scale: float

    def apply(self, state: State) -> None:
        chip = state.chip
        chip["S"] = matmul(chip["Q"] * state.number(self.scale), chip["K"].T)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyMask(Op):
    """Set the hidden pairs of a tile to -inf, before the softmax."""

    name: ClassVar[str] = "mask"
    changed: ClassVar[tuple[str, ...]] = ("S",)
    mask: Mask = field(repr=False)
    rows: range
    cols: range

    def apply(self, state: State) -> None:
        chip = state.chip
        seen = self.mask.visible(self.rows, self.cols)
        chip["S"] = np.where(seen, chip["S"], state.number(-np.inf))


@dataclass(frozen=True, slots=True, kw_only=True)
class RowMax(Op):
    """The maximum of each row.

    `running`: over all tiles so far, with ``alpha = exp(m_old - m)``; else of what is on chip
    alone, kept as ``m_tile``, which is m where that is the `whole` row.
    """

    name: ClassVar[str] = "row max"
    recorded: ClassVar[tuple[str, ...]] = ("m", "alpha", "m_tile")
    running: bool = False
    whole: bool = False

    def apply(self, state: State) -> None:
        chip = state.chip
        chip["m_tile"] = chip["S"].max(axis=1)
        if self.running:
            chip["m_prev"] = chip["m"]
            chip["m"] = np.maximum(chip["m_prev"], chip["m_tile"])
            chip["alpha"] = exp_shift(chip["m_prev"], chip["m"])
        if self.whole:
            chip["m"] = chip["m_tile"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exponentials(Op):
    """``P = exp(S - m)``; with the maximum of the tile alone unless it is `running`."""

    name: ClassVar[str] = "exponentials"
    recorded: ClassVar[tuple[str, ...]] = ("P",)
    running: bool = False

    def apply(self, state: State) -> None:
        chip = state.chip
        top = chip["m"] if self.running else chip["m_tile"]
        chip["P"] = exp_shift(chip["S"], top[:, None])


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSum(Op):
    """The sum of each row's exponentials.

    `running`: ``l = alpha l + rowsum(P)``; else of what is on chip alone, kept as ``l_tile``,
    which is l where that is the `whole` row.
    """

    name: ClassVar[str] = "row sum"
    recorded: ClassVar[tuple[str, ...]] = ("l_tile", "l")
    running: bool = False
    whole: bool = False

    def apply(self, state: State) -> None:
        chip = state.chip
        chip["l_tile"] = chip["P"].sum(axis=1)
        if self.running:
            chip["l"] = chip["alpha"] * chip["l"] + chip["l_tile"]
        if self.whole:
            chip["l"] = chip["l_tile"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Combine(Op):
    """Join the tile's m and l with those of the run (FlashAttention-1)."""

    name: ClassVar[str] = "combine"
    recorded: ClassVar[tuple[str, ...]] = ("m", "l", "alpha", "beta")

    def apply(self, state: State) -> None:
        chip = state.chip
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

    def apply(self, state: State) -> None:
        chip = state.chip
        chip["factor"] = chip["alpha"]
        if self.normalised:
            chip["factor"] = over(chip["alpha"] * chip["l_prev"], chip["l"])
        chip["O"] = chip["factor"][:, None] * chip["O"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Accumulate(Op):
    """``O += P V``; into a `normalised` O (FlashAttention-1), ``O += beta / l · P V``."""

    name: ClassVar[str] = "accumulate"
    recorded: ClassVar[tuple[str, ...]] = ("O",)
    normalised: bool

    def apply(self, state: State) -> None:
        chip = state.chip
        product = matmul(chip["P"], chip["V"])
        if self.normalised:
            product = over(chip["beta"], chip["l"])[:, None] * product
        chip["O"] = chip["O"] + product


@dataclass(frozen=True, slots=True, kw_only=True)
class Normalise(Op):
    """Divide by l once, at the end: O of flash2, or P of naive; LSE = m + ln l."""

    name: ClassVar[str] = "normalise"
    tensor: Literal["O", "P"]

    def apply(self, state: State) -> None:
        chip = state.chip
        chip[self.tensor] = over(chip[self.tensor], chip["l"][:, None])
        chip["LSE"] = log_sum_exp(chip["m"], chip["l"])


@dataclass(frozen=True, slots=True, kw_only=True)
class StorePartials(StoreTiles):
    """Copy O and LSE of one split to HBM."""

    def apply(self, state: State) -> None:
        for move in self.moves:
            state.store(move, state.chip[move.tensor.removesuffix("_partial")])


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeMax(Op):
    """The largest LSE of each row's splits."""

    name: ClassVar[str] = "row max"
    recorded: ClassVar[tuple[str, ...]] = ("m",)

    def apply(self, state: State) -> None:
        chip = state.chip
        chip["m"] = chip["LSE_partial"].max(axis=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeWeights(Op):
    """``w = exp(LSE - m)``: how much each split weighs in its row."""

    name: ClassVar[str] = "exponentials"
    recorded: ClassVar[tuple[str, ...]] = ("w",)

    def apply(self, state: State) -> None:
        chip = state.chip
        chip["w"] = exp_shift(chip["LSE_partial"], chip["m"][None, :])


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeSum(Op):
    """The sum of the weights of each row's splits."""

    name: ClassVar[str] = "row sum"
    recorded: ClassVar[tuple[str, ...]] = ("l",)

    def apply(self, state: State) -> None:
        chip = state.chip
        chip["l"] = chip["w"].sum(axis=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeOutputs(Op):
    """``O = Σ w O_partial`` over the splits."""

    name: ClassVar[str] = "accumulate"
    recorded: ClassVar[tuple[str, ...]] = ("O",)

    def apply(self, state: State) -> None:
        chip = state.chip
        chip["O"] = (chip["w"][:, :, None] * chip["O_partial"]).sum(axis=0)


def over(numerator: Values, denominator: Values) -> Values:
    """Return the quotient, 0 where the denominator is 0: the row has seen nothing."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator != 0)


def log_sum_exp(m: Values, l: Values) -> Values:
    """Return m + ln l, -inf where l is 0: the row has seen nothing."""
    return m + np.log(l, out=np.full_like(l, -np.inf), where=l != 0)


def statistics(rows: int) -> int:
    """Return the bytes of one statistic (m, l or LSE) of `rows` rows."""
    return rows * STATISTIC_WIDTH
