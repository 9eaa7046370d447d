"""The elementary moves of a tile program: what each costs, cites and, in numbers, does.

Counters, the picture of the chip, the chips of the transport and the animation all come
from these ops. They are also executable: `Op.apply` on a `State` in float64 is the oracle that
every engine is held against, and in float32 the NumPy engine.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from simulator.base.dtypes import STATISTIC_WIDTH, DType
from simulator.base.matmul import matmul
from simulator.problem.masks import Mask
from simulator.problem.scores import DistanceBias
from simulator.program.op import Gesture, Near, Op
from simulator.program.state import Numbers, State, Values


def exp_shift(high: Values, low: Values) -> Values:
    """Return exp(high - low), 0 where `high` is -inf: keys that were not seen weigh nothing."""
    floor: Values = np.where(np.isneginf(low), low.dtype.type(0), low)
    weights: Values = np.exp(high - floor)
    return weights


def kept_unless_larger(old: Values, new: Values, by: float | None) -> Values:
    """Return `old`, but `new` where it is larger by more than `by` or nothing has been seen."""
    unseen = np.isneginf(old)
    floor: Values = np.where(unseen, old.dtype.type(0), old)
    top: Values = np.where(unseen | (new - floor > (by or 0.0)), new, old)
    return top


def rounded(values: Values, dtype: DType) -> Values:
    """Return `values` rounded to `dtype`, float16 or bfloat16, to nearest even, in their type."""
    with np.errstate(over="ignore", invalid="ignore"):
        if dtype == "float16":
            half: Values = values.astype(np.float16).astype(values.dtype)
            return half
        # bfloat16: 8 bits of fraction, the leading one included, as far as float32's exponents go
        power = np.maximum(np.frexp(values)[1], -125) - 8
        nearest: Values = np.ldexp(np.rint(np.ldexp(values, -power)), power)
        return nearest


class LoadTiles(Op):
    """Copy tiles from HBM to the chip."""

    __slots__ = ()

    name: ClassVar[str] = "load"
    gesture: ClassVar[Gesture] = Gesture.CARRY
    loads: ClassVar[bool] = True

    def apply(self, state: State) -> None:
        for move in self.moves:
            state.chip[move.tensor] = state.load(move)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadLatent(LoadTiles):
    """Copy rows of a latent to the chip: keys, and in their first `value_dim` numbers values."""

    value_dim: int

    def apply(self, state: State) -> None:
        for move in self.moves:
            latent = state.load(move)
            state.chip[move.tensor] = state.chip["K"] = latent
            state.chip["V"] = latent[:, : self.value_dim]


class StoreTiles(Op):
    """Copy tiles from the chip to HBM."""

    __slots__ = ()

    name: ClassVar[str] = "store"
    gesture: ClassVar[Gesture] = Gesture.CARRY
    stores: ClassVar[bool] = True

    def apply(self, state: State) -> None:
        for move in self.moves:
            state.store(move, state.chip[move.tensor])


class StoreConstants(Op):
    """Write O = 0, l = 0 and m or LSE = -inf to HBM, where no key has been seen."""

    __slots__ = ()

    name: ClassVar[str] = "clear"
    gesture: ClassVar[Gesture] = Gesture.CARRY
    stores: ClassVar[bool] = True
    starts: ClassVar[bool] = True

    def apply(self, state: State) -> None:
        for move in self.moves:
            state.store(move, state.written[move.tensor].empty)


class LoadSink(LoadTiles):
    """Copy the sink logits of some query heads to the chip."""

    __slots__ = ()

    def apply(self, state: State) -> None:
        for move in self.moves:
            state.chip["sink"] = state.load(move)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSinks(StoreConstants):
    """Write O = 0, l = 1 and m or LSE = the sink logit, where no key has been seen.

    `queries`: rows of each query head.
    """

    queries: int

    def apply(self, state: State) -> None:
        for move in self.moves:
            own = np.arange(move.rows.start, move.rows.stop) // self.queries
            logit = state.chip["sink"][own]
            spec = state.written[move.tensor]
            starts = {"logit": logit, "one": np.ones_like(logit)}
            state.store(move, starts.get(spec.with_sink, spec.empty))


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
class InitialiseWithSink(Initialise):
    """Start O, m and l of a row block as if each row had seen its sink: a key of value 0.

    `rows_of`: how many rows each of the loaded logits has.
    """

    rows_of: tuple[int, ...]

    def apply(self, state: State) -> None:
        chip, number = state.chip, state.number
        chip["m"] = np.repeat(chip["sink"], self.rows_of)
        chip["l"] = np.ones(self.rows, number)
        chip["O"] = np.zeros((self.rows, self.value_dim), number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores(Op):
    """``S = (scale · Q) Kᵀ`` of one tile."""

    name: ClassVar[str] = "scores"
    label: ClassVar[str] = "S = QKᵀ"
    short_label: ClassVar[str] = "S"
    gesture: ClassVar[Gesture] = Gesture.SUM_DEPTH
    recorded: ClassVar[tuple[str, ...]] = ("S",)
    scale: float

    def terms(self, state: State, before: Values | None) -> Values | None:
        """Return Σ |q k| of each pair: the error of a dot product is relative to this sum."""
        chip = state.chip
        return matmul(np.abs(chip["Q"] * state.number(self.scale)), np.abs(chip["K"].T))

    def apply(self, state: State) -> None:
        chip = state.chip
        chip["S"] = matmul(chip["Q"] * state.number(self.scale), chip["K"].T)


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftCap(Op):
    """``S = cap · tanh(S / cap)``: no score is larger than the cap."""

    name: ClassVar[str] = "soft-cap"
    label: ClassVar[str] = "soft-cap S"
    short_label: ClassVar[str] = "cap"
    gesture: ClassVar[Gesture] = Gesture.WIPE
    changed: ClassVar[tuple[str, ...]] = ("S",)
    cap: float

    @property
    def says(self) -> str:
        return f"each score s becomes {self.cap:g} · tanh(s / {self.cap:g})"

    @property
    def change(self) -> str:
        return r"S \leftarrow c\, \tanh(S / c)"

    def terms(self, state: State, before: Values | None) -> Values | None:
        """Return the terms times the slope of tanh, which shrinks errors, plus the score."""
        assert before is not None
        s = state.chip["S"]
        return np.asarray(before * (1 - (s / self.cap) ** 2) + np.abs(s))

    def apply(self, state: State) -> None:
        chip = state.chip
        chip["S"] = np.tanh(chip["S"] / state.number(self.cap)) * state.number(self.cap)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bias(Op):
    """``S = S - bias(i', j)``: a score loses, or gains, with the distance of row and key."""

    name: ClassVar[str] = "bias"
    label: ClassVar[str] = "S − bias"
    short_label: ClassVar[str] = "bias"
    gesture: ClassVar[Gesture] = Gesture.WIPE
    changed: ClassVar[tuple[str, ...]] = ("S",)
    bias: DistanceBias = field(repr=False)
    rows: range
    cols: range

    @property
    def says(self) -> str:
        return "each score loses the bias of its distance"

    @property
    def change(self) -> str:
        return rf"S \leftarrow S {self.bias.latex}"

    def terms(self, state: State, before: Values | None) -> Values | None:
        """Return the terms plus the bias: the difference of both may be small."""
        assert before is not None
        return before + np.abs(self.bias.of(self.rows, self.cols))

    def apply(self, state: State) -> None:
        chip = state.chip
        chip["S"] = chip["S"] - state.number(self.bias.of(self.rows, self.cols))


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyMask(Op):
    """Set the hidden pairs of a tile to -inf, before the softmax."""

    name: ClassVar[str] = "mask"
    label: ClassVar[str] = "mask"
    short_label: ClassVar[str] = "mask"
    hides: ClassVar[bool] = True
    gesture: ClassVar[Gesture] = Gesture.WIPE
    changed: ClassVar[tuple[str, ...]] = ("S",)
    mask: Mask = field(repr=False)
    rows: range
    cols: range

    @property
    def change(self) -> str:
        return r"S \leftarrow -\infty \;\;\mathrm{where\;hidden}"

    def apply(self, state: State) -> None:
        chip = state.chip
        seen = self.mask.visible(self.rows, self.cols)
        chip["S"] = np.where(seen, chip["S"], state.number(-np.inf))


@dataclass(frozen=True, slots=True, kw_only=True)
class RowMax(Op):
    """The maximum of each row.

    `running`: over all tiles so far, with ``alpha = exp(m_old - m)``. If m is kept unless it grows
    by more than `by`, alpha is usually 1, and P may be above 1. Not `running`: over the tile alone,
    kept as ``m_tile``, and as m if the tile is the `whole` row. A `sink` joins m.
    """

    name: ClassVar[str] = "row max"
    label: ClassVar[str] = "m"
    tile_label: ClassVar[str] = "m\u0303"
    gesture: ClassVar[Gesture] = Gesture.PICK
    lands: ClassVar[float] = 0.7
    recorded: ClassVar[tuple[str, ...]] = ("m", "alpha", "m_tile")
    running: bool = False
    whole: bool = False
    sink: bool = False
    by: float | None = None

    @property
    def keeps(self) -> bool:
        """Whether m moves only if it grows by enough."""
        return self.by is not None

    @property
    def makes(self) -> tuple[str, ...]:
        """``m_tile``, and m and alpha unless a later op makes them."""
        return self.recorded if self.running or self.whole else ("m_tile",)

    def settle(self, state: State, before: Numbers, after: Numbers, near: Near) -> int:
        """Keep or move m as the engine did in rows where m grows by about the threshold."""
        chip, was, now = state.chip, before.get("m"), after.get("m")
        if not self.keeps or was is None or now is None:
            return 0
        old, top, decided = chip["m_prev"], np.maximum(chip["m_prev"], chip["m_tile"]), chip["m"]
        with np.errstate(invalid="ignore"):
            close = np.abs(top - old - (self.by or 0.0)) <= near(old) + near(top)
        theirs = np.where(now == was, old, top)
        chip["m"] = np.where(close, theirs, decided)
        chip["alpha"] = exp_shift(old, chip["m"])
        return int(np.count_nonzero(chip["m"] != decided))

    def apply(self, state: State) -> None:
        chip = state.chip
        chip["m_tile"] = chip["S"].max(axis=1)
        if self.running:
            chip["m_prev"] = chip["m"]
            chip["m"] = np.maximum(chip["m_prev"], chip["m_tile"])
            if self.keeps:
                chip["m"] = kept_unless_larger(chip["m_prev"], chip["m"], self.by)
            chip["alpha"] = exp_shift(chip["m_prev"], chip["m"])
        if self.whole:
            chip["m"] = chip["m_tile"]
        if self.sink:
            chip["m"] = np.maximum(chip["m"], chip["sink"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Exponentials(Op):
    """``P = exp(S - m)``; with the maximum of the tile alone unless it is `running`."""

    name: ClassVar[str] = "exponentials"
    label: ClassVar[str] = "P = exp"
    tile_label: ClassVar[str] = "P\u0303 = exp"
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

    `running`: ``l = alpha l + rowsum(P)``. Else over the tile alone, kept as ``l_tile``,
    and as l if the tile is the `whole` row. A `sink` joins l there.
    """

    name: ClassVar[str] = "row sum"
    label: ClassVar[str] = "ℓ"
    tile_label: ClassVar[str] = "ΣP\u0303"
    gesture: ClassVar[Gesture] = Gesture.GATHER
    recorded: ClassVar[tuple[str, ...]] = ("l_tile", "l")
    running: bool = False
    whole: bool = False
    sink: bool = False

    @property
    def makes(self) -> tuple[str, ...]:
        """``l_tile``, and l unless a later op makes it."""
        return self.recorded if self.running or self.whole else ("l_tile",)

    def apply(self, state: State) -> None:
        chip = state.chip
        chip["l_tile"] = chip["P"].sum(axis=1)
        if self.running:
            chip["l"] = chip["alpha"] * chip["l"] + chip["l_tile"]
        if self.whole:
            chip["l"] = chip["l_tile"]
        if self.sink:
            chip["l"] = chip["l"] + exp_shift(chip["sink"], chip["m"])


class Combine(Op):
    """Join the tile's m and l with the run's m and l (FlashAttention-1)."""

    __slots__ = ()

    name: ClassVar[str] = "combine"
    label: ClassVar[str] = "join m ℓ"
    short_label: ClassVar[str] = "join"
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
    label: ClassVar[str] = "rescale O"
    short_label: ClassVar[str] = "αO"
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
    label: ClassVar[str] = "O += PV"
    tile_label: ClassVar[str] = "O += P\u0303V"
    short_label: ClassVar[str] = "PV"
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
class RoundWeights(Op):
    """``P`` in the type that it is stored in, or multiplied by V; l has been summed before."""

    name: ClassVar[str] = "round"
    label: ClassVar[str] = "round P"
    tile_label: ClassVar[str] = "round P\u0303"
    changed: ClassVar[tuple[str, ...]] = ("P",)
    dtype: DType

    @property
    def says(self) -> str:
        return f"each {self.changed[0]} is rounded to {self.dtype}"

    def settle(self, state: State, before: Numbers, after: Numbers, near: Near) -> int:
        """Round as the engine did where float64 is within rounding of a tie."""
        (name,) = self.changed
        if name not in before or name not in after:
            return 0
        exact, ours = state.chip[name], after[name].astype(state.number)
        given = before[name].astype(state.number)
        with np.errstate(invalid="ignore"):
            tie = np.abs(given - (exact + ours) / 2) <= near(given)
        turned = tie & (ours != exact) & (ours == rounded(given, self.dtype))
        state.chip[name] = np.where(turned, ours, exact)
        return int(np.count_nonzero(turned.any(axis=1)))

    def apply(self, state: State) -> None:
        chip = state.chip
        chip["P"] = rounded(chip["P"], self.dtype)


class RoundScores(RoundWeights):
    """``S`` in the type that it is stored in."""

    __slots__ = ()

    label: ClassVar[str] = "round S"
    tile_label: ClassVar[str] = ""
    changed: ClassVar[tuple[str, ...]] = ("S",)

    def apply(self, state: State) -> None:
        chip = state.chip
        chip["S"] = rounded(chip["S"], self.dtype)


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


class StorePartials(StoreTiles):
    """Copy O and LSE of one split to HBM."""

    __slots__ = ()

    def apply(self, state: State) -> None:
        for move in self.moves:
            state.store(move, state.chip[move.tensor.removesuffix("_partial")])


class MergeMax(Op):
    """The largest LSE of each row's splits."""

    __slots__ = ()

    name: ClassVar[str] = "row max"
    label: ClassVar[str] = "m = max LSE"
    short_label: ClassVar[str] = "m"
    gesture: ClassVar[Gesture] = Gesture.PICK
    lands: ClassVar[float] = 0.7
    recorded: ClassVar[tuple[str, ...]] = ("m",)

    def apply(self, state: State) -> None:
        chip = state.chip
        chip["m"] = chip["LSE_partial"].max(axis=0)


class MergeWeights(Op):
    """``w = exp(LSE - m)``: how much each split weighs in its row."""

    __slots__ = ()

    name: ClassVar[str] = "exponentials"
    label: ClassVar[str] = "w = exp"
    short_label: ClassVar[str] = "w"
    gesture: ClassVar[Gesture] = Gesture.TURN
    recorded: ClassVar[tuple[str, ...]] = ("w",)

    def apply(self, state: State) -> None:
        chip = state.chip
        chip["w"] = exp_shift(chip["LSE_partial"], chip["m"][None, :])


class MergeSum(Op):
    """The sum of the weights of each row's splits."""

    __slots__ = ()

    name: ClassVar[str] = "row sum"
    label: ClassVar[str] = "ℓ = Σw"
    short_label: ClassVar[str] = "ℓ"
    gesture: ClassVar[Gesture] = Gesture.GATHER
    recorded: ClassVar[tuple[str, ...]] = ("l",)

    def apply(self, state: State) -> None:
        chip = state.chip
        chip["l"] = chip["w"].sum(axis=0)


class MergeOutputs(Op):
    """``O = Σ w O_partial`` over the splits."""

    __slots__ = ()

    name: ClassVar[str] = "accumulate"
    label: ClassVar[str] = "O = ΣwO"
    short_label: ClassVar[str] = "ΣwO"
    gesture: ClassVar[Gesture] = Gesture.SUM_KEYS
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
