"""The elementary moves of a tile program: what each costs, cites and, in numbers, does.

Counters, the picture of the chip, the chips of the transport and the animation all come
from these ops. They are also executable: `Op.apply` on a `State` in float64 is the oracle that
every engine is held against, and in float32 the NumPy engine.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import ClassVar, Literal

import numpy as np

from simulator.base.dtypes import STATISTIC_WIDTH
from simulator.base.matmul import matmul
from simulator.problem.masks import Mask
from simulator.problem.scores import DistanceBias
from simulator.program.state import ChipTile, Move, State, Values


def exp_shift(high: Values, low: Values) -> Values:
    """Return exp(high - low), 0 where `high` is -inf: keys that were not seen weigh nothing."""
    floor: Values = np.where(np.isneginf(low), low.dtype.type(0), low)
    weights: Values = np.exp(high - floor)
    return weights


class Gesture(Enum):
    """How an op is seen to happen."""

    STATE = auto()
    """Nothing moves: its result is there at the end."""
    CARRY = auto()
    """Tiles fly between HBM and the chip."""
    SUM_DEPTH = auto()
    """A product grows over the depth of its rows and columns."""
    WIPE = auto()
    """What is hidden is wiped out."""
    PICK = auto()
    """The largest of each row flies to its maximum."""
    TURN = auto()
    """Every cell turns into another number."""
    SHRINK = auto()
    """A factor runs back over the row, and what was summed shrinks by it."""
    GATHER = auto()
    """The cells of each row slide onto their sum."""
    SUM_KEYS = auto()
    """Rows are added up, one for each key, each with its weight."""
    SETTLE = auto()
    """Sums are divided."""


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
    starts: ClassVar[bool] = False
    """Whether it gives tensors the numbers of rows that have seen nothing."""
    hides: ClassVar[bool] = False
    """Whether it is the mask."""
    recorded: ClassVar[tuple[str, ...]] = ()
    """Numbers that an engine may have recorded once the op was done; checked against float64."""
    changed: ClassVar[tuple[str, ...]] = ()
    """Others that are checked, though no engine records them."""
    gesture: ClassVar[Gesture] = Gesture.STATE
    lands: ClassVar[float] = 1.0
    """The share of its motion after which its result is shown."""

    cites: str
    flops: int = 0
    moves: tuple[Move, ...] = ()
    allocates: tuple[ChipTile, ...] = ()
    frees: tuple[str, ...] = ()

    @property
    def makes(self) -> tuple[str, ...]:
        """Those of `recorded` that it makes in its algorithm."""
        return self.recorded

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
    gesture: ClassVar[Gesture] = Gesture.CARRY
    loads: ClassVar[bool] = True

    def apply(self, state: State) -> None:
        for move in self.moves:
            state.chip[move.tensor] = state.load(move)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreTiles(Op):
    """Copy tiles from the chip to HBM."""

    name: ClassVar[str] = "store"
    gesture: ClassVar[Gesture] = Gesture.CARRY
    stores: ClassVar[bool] = True

    def apply(self, state: State) -> None:
        for move in self.moves:
            state.store(move, state.chip[move.tensor])


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreConstants(Op):
    """Write O = 0, l = 0 and m or LSE = -inf to HBM, where no key has been seen."""

    name: ClassVar[str] = "clear"
    gesture: ClassVar[Gesture] = Gesture.CARRY
    stores: ClassVar[bool] = True
    starts: ClassVar[bool] = True

    def apply(self, state: State) -> None:
        for move in self.moves:
            state.store(move, state.written[move.tensor].empty)


@dataclass(frozen=True, slots=True, kw_only=True)
class Initialise(Op):
    """Start O of a row block on chip, and with `statistics` its m and l."""

    name: ClassVar[str] = "initialise"
    starts: ClassVar[bool] = True
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
    gesture: ClassVar[Gesture] = Gesture.SUM_DEPTH
    recorded: ClassVar[tuple[str, ...]] = ("S",)
    scale: float

    def apply(self, state: State) -> None:
        chip = state.chip
        chip["S"] = matmul(chip["Q"] * state.number(self.scale), chip["K"].T)


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftCap(Op):
    """``S = cap · tanh(S / cap)``: no score is larger than the cap."""

    name: ClassVar[str] = "soft-cap"
    gesture: ClassVar[Gesture] = Gesture.WIPE
    changed: ClassVar[tuple[str, ...]] = ("S",)
    cap: float

    def apply(self, state: State) -> None:
        chip = state.chip
        chip["S"] = np.tanh(chip["S"] / state.number(self.cap)) * state.number(self.cap)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bias(Op):
    """``S = S - slope · |i' - j|``: a score is the lower, the further away its key is."""

    name: ClassVar[str] = "bias"
    gesture: ClassVar[Gesture] = Gesture.WIPE
    changed: ClassVar[tuple[str, ...]] = ("S",)
    bias: DistanceBias = field(repr=False)
    rows: range
    cols: range

    def apply(self, state: State) -> None:
        chip = state.chip
        chip["S"] = chip["S"] - state.number(self.bias.of(self.rows, self.cols))


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyMask(Op):
    """Set the hidden pairs of a tile to -inf, before the softmax."""

    name: ClassVar[str] = "mask"
    hides: ClassVar[bool] = True
    gesture: ClassVar[Gesture] = Gesture.WIPE
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
    gesture: ClassVar[Gesture] = Gesture.PICK
    lands: ClassVar[float] = 0.7
    recorded: ClassVar[tuple[str, ...]] = ("m", "alpha", "m_tile")
    running: bool = False
    whole: bool = False

    @property
    def makes(self) -> tuple[str, ...]:
        """Also m of all keys so far, unless it is made later."""
        return self.recorded if self.running or self.whole else ("m_tile",)

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
    gesture: ClassVar[Gesture] = Gesture.TURN
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
    gesture: ClassVar[Gesture] = Gesture.GATHER
    recorded: ClassVar[tuple[str, ...]] = ("l_tile", "l")
    running: bool = False
    whole: bool = False

    @property
    def makes(self) -> tuple[str, ...]:
        """Also l of all keys so far, unless it is made later."""
        return self.recorded if self.running or self.whole else ("l_tile",)

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
    gesture: ClassVar[Gesture] = Gesture.SHRINK
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
    gesture: ClassVar[Gesture] = Gesture.SUM_KEYS
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
    """Divide by l once, at the end: O of flash2, or P of naive; LSE = m + ln l if there is an m."""

    name: ClassVar[str] = "normalise"
    gesture: ClassVar[Gesture] = Gesture.SETTLE
    tensor: Literal["O", "P"]
    softmax: bool = True

    def apply(self, state: State) -> None:
        chip = state.chip
        chip[self.tensor] = over(chip[self.tensor], chip["l"][:, None])
        if self.softmax:
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
    gesture: ClassVar[Gesture] = Gesture.PICK
    lands: ClassVar[float] = 0.7
    recorded: ClassVar[tuple[str, ...]] = ("m",)

    def apply(self, state: State) -> None:
        chip = state.chip
        chip["m"] = chip["LSE_partial"].max(axis=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeWeights(Op):
    """``w = exp(LSE - m)``: how much each split weighs in its row."""

    name: ClassVar[str] = "exponentials"
    gesture: ClassVar[Gesture] = Gesture.TURN
    recorded: ClassVar[tuple[str, ...]] = ("w",)

    def apply(self, state: State) -> None:
        chip = state.chip
        chip["w"] = exp_shift(chip["LSE_partial"], chip["m"][None, :])


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeSum(Op):
    """The sum of the weights of each row's splits."""

    name: ClassVar[str] = "row sum"
    gesture: ClassVar[Gesture] = Gesture.GATHER
    recorded: ClassVar[tuple[str, ...]] = ("l",)

    def apply(self, state: State) -> None:
        chip = state.chip
        chip["l"] = chip["w"].sum(axis=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeOutputs(Op):
    """``O = Σ w O_partial`` over the splits."""

    name: ClassVar[str] = "accumulate"
    gesture: ClassVar[Gesture] = Gesture.SUM_KEYS
    recorded: ClassVar[tuple[str, ...]] = ("O",)

    def apply(self, state: State) -> None:
        chip = state.chip
        chip["O"] = (chip["w"][:, :, None] * chip["O_partial"]).sum(axis=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class StartState(Op):
    """Start the state of a head on chip: no key has been added."""

    name: ClassVar[str] = "start state"
    starts: ClassVar[bool] = True
    features: int
    value_dim: int

    def apply(self, state: State) -> None:
        chip, number = state.chip, state.number
        chip["state"] = np.zeros((self.features, self.value_dim + 1), number)


@dataclass(frozen=True, slots=True, kw_only=True)
class MapFeatures(Op):
    """``φ(Q)`` and ``φ(K)`` of what is on chip, ``φ(x) = elu(x) + 1``."""

    name: ClassVar[str] = "features"
    recorded: ClassVar[tuple[str, ...]] = ("phi_Q", "phi_K")
    queries: bool = True
    keys: bool = True

    @property
    def makes(self) -> tuple[str, ...]:
        """Those of the tiles that are on chip."""
        return ("phi_Q",) * self.queries + ("phi_K",) * self.keys

    def apply(self, state: State) -> None:
        chip = state.chip
        if self.queries:
            chip["phi_Q"] = elu_plus_one(chip["Q"])
        if self.keys:
            chip["phi_K"] = elu_plus_one(chip["K"])


@dataclass(frozen=True, slots=True, kw_only=True)
class MapRandomFeatures(MapFeatures):
    """``φ(Q)`` and ``φ(K)`` with Performer's positive random features."""

    def apply(self, state: State) -> None:
        chip = state.chip
        if self.queries:
            chip["phi_Q"] = positive_features(chip["Q"], chip["projection"])
        if self.keys:
            chip["phi_K"] = positive_features(chip["K"], chip["projection"])


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadState(Op):
    """``[O, l] = φ(Q) · state``: of all keys that have been added; `whole` if no others follow."""

    name: ClassVar[str] = "read state"
    recorded: ClassVar[tuple[str, ...]] = ("l", "O")
    whole: bool = False

    @property
    def makes(self) -> tuple[str, ...]:
        """Nothing that is whole, if keys of the chunk follow."""
        return self.recorded if self.whole else ()

    def apply(self, state: State) -> None:
        chip = state.chip
        found = matmul(chip["phi_Q"], chip["state"])
        chip["O"] = found[:, :-1]
        chip["l"] = found[:, -1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Similarities(Op):
    """``S = φ(Q) φ(K)ᵀ`` of the rows and keys of a chunk: positive, no softmax follows."""

    name: ClassVar[str] = "similarities"
    gesture: ClassVar[Gesture] = Gesture.SUM_DEPTH
    recorded: ClassVar[tuple[str, ...]] = ("S",)

    def apply(self, state: State) -> None:
        chip = state.chip
        chip["S"] = matmul(chip["phi_Q"], chip["phi_K"].T)


@dataclass(frozen=True, slots=True, kw_only=True)
class HidePairs(Op):
    """P: the similarities that a row sees, 0 for keys after it."""

    name: ClassVar[str] = "mask"
    hides: ClassVar[bool] = True
    gesture: ClassVar[Gesture] = Gesture.WIPE
    recorded: ClassVar[tuple[str, ...]] = ("P",)
    mask: Mask = field(repr=False)
    rows: range
    cols: range

    def apply(self, state: State) -> None:
        chip = state.chip
        seen = self.mask.visible(self.rows, self.cols)
        chip["P"] = np.where(seen, chip["S"], state.number(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class SumWeights(Op):
    """``l += rowsum(P)``: the keys of the chunk, beside those in the state."""

    name: ClassVar[str] = "row sum"
    gesture: ClassVar[Gesture] = Gesture.GATHER
    recorded: ClassVar[tuple[str, ...]] = ("l_tile", "l")

    def apply(self, state: State) -> None:
        chip = state.chip
        chip["l_tile"] = chip["P"].sum(axis=1)
        chip["l"] = chip["l"] + chip["l_tile"]


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateState(Op):
    """``state += φ(K)ᵀ [V, 1]``: every key of the tile adds a matrix of rank one."""

    name: ClassVar[str] = "update state"
    recorded: ClassVar[tuple[str, ...]] = ("state",)

    def apply(self, state: State) -> None:
        chip = state.chip
        chip["state"] = chip["state"] + matmul(chip["phi_K"].T, with_ones(chip["V"]))


def elu_plus_one(x: Values) -> Values:
    """Return ``elu(x) + 1``: x + 1 above 0, exp(x) below."""
    mapped: Values = np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))
    return mapped


def positive_features(x: Values, projection: Values) -> Values:
    """Return ``exp(w·y - |y|²/2) / sqrt(r)`` for the r rows w of `projection`, y = x / d^(1/4)."""
    y = x * x.dtype.type(x.shape[1] ** -0.25)
    half = (y * y).sum(axis=1)[:, None] / 2
    mapped: Values = np.exp(matmul(y, projection.T) - half) / x.dtype.type(len(projection) ** 0.5)
    return mapped


def with_ones(v: Values) -> Values:
    """Return ``[v, 1]``: the last column adds up the weights."""
    return np.concatenate([v, np.ones_like(v[:, :1])], axis=1)


def over(numerator: Values, denominator: Values) -> Values:
    """Return the quotient, 0 where the denominator is 0: the row has seen nothing."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator != 0)


def log_sum_exp(m: Values, l: Values) -> Values:
    """Return m + ln l, -inf where l is 0: the row has seen nothing."""
    return m + np.log(l, out=np.full_like(l, -np.inf), where=l != 0)


def statistics(rows: int) -> int:
    """Return the bytes of one statistic (m, l or LSE) of `rows` rows."""
    return rows * STATISTIC_WIDTH
