"""The elementary moves of algorithms that keep a state of all keys in the place of scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from simulator.base.matmul import matmul
from simulator.program.op import Gesture, Op
from simulator.program.ops import ApplyMask, over
from simulator.program.state import State, Values


@dataclass(frozen=True, slots=True, kw_only=True)
class StartState(Op):
    """Start the state of a head on chip: no key has been added."""

    name: ClassVar[str] = "start state"
    starts: ClassVar[bool] = True
    features: int
    totals: int

    def apply(self, state: State) -> None:
        chip, number = state.chip, state.number
        chip["state"] = np.zeros((self.features, self.totals), number)


@dataclass(frozen=True, slots=True, kw_only=True)
class MapFeatures(Op):
    """``φ(Q)`` and ``φ(K)`` of the tiles on chip, ``φ(x) = elu(x) + 1``."""

    name: ClassVar[str] = "features"
    short_label: ClassVar[str] = "φ"
    latex: ClassVar[str] = r"\phi(Q),\, \phi(K)"
    recorded: ClassVar[tuple[str, ...]] = ("phi_Q", "phi_K")
    queries: bool = True
    keys: bool = True

    @property
    def says(self) -> str:
        rows = " and ".join(("Q",) * self.queries + ("K",) * self.keys)
        return f"each row of {rows} becomes its features φ"

    @property
    def makes(self) -> tuple[str, ...]:
        """Recorded numbers of the tiles on chip."""
        return ("phi_Q",) * self.queries + ("phi_K",) * self.keys

    def apply(self, state: State) -> None:
        chip = state.chip
        if self.queries:
            chip["phi_Q"] = elu_plus_one(chip["Q"])
        if self.keys:
            chip["phi_K"] = elu_plus_one(chip["K"])


class MapRandomFeatures(MapFeatures):
    """``φ(Q)`` and ``φ(K)`` with Performer's positive random features."""

    __slots__ = ()

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
    label: ClassVar[str] = "O = φ(Q) state"
    short_label: ClassVar[str] = "φ(Q)·"
    latex: ClassVar[str] = r"[O, \ell] \leftarrow \phi(Q)\, \mathrm{state}"
    shows: ClassVar[str] = "O"
    recorded: ClassVar[tuple[str, ...]] = ("l", "O")
    whole: bool = False

    @property
    def says(self) -> str:
        return "each row reads the state, feature by feature"

    @property
    def makes(self) -> tuple[str, ...]:
        """Recorded numbers; none if keys of the chunk follow."""
        return self.recorded if self.whole else ()

    def apply(self, state: State) -> None:
        chip = state.chip
        found = matmul(chip["phi_Q"], chip["state"])
        chip["O"] = found[:, :-1]
        chip["l"] = found[:, -1]


class Similarities(Op):
    """``S = φ(Q) φ(K)ᵀ`` of the rows and keys of a chunk: positive, no softmax follows."""

    __slots__ = ()

    name: ClassVar[str] = "similarities"
    label: ClassVar[str] = "S = φ(Q)φ(K)ᵀ"
    short_label: ClassVar[str] = "φφᵀ"
    gesture: ClassVar[Gesture] = Gesture.SUM_DEPTH
    recorded: ClassVar[tuple[str, ...]] = ("S",)

    def apply(self, state: State) -> None:
        chip = state.chip
        chip["S"] = matmul(chip["phi_Q"], chip["phi_K"].T)


class HidePairs(ApplyMask):
    """P: the similarities that a row sees, 0 for keys after it."""

    __slots__ = ()

    label: ClassVar[str] = "P = mask S"
    short_label: ClassVar[str] = "P"
    recorded: ClassVar[tuple[str, ...]] = ("P",)
    changed: ClassVar[tuple[str, ...]] = ()

    def apply(self, state: State) -> None:
        chip = state.chip
        seen = self.mask.visible(self.rows, self.cols)
        chip["P"] = np.where(seen, chip["S"], state.number(0))


class SumWeights(Op):
    """``l += rowsum(P)``: the keys of the chunk, beside those in the state."""

    __slots__ = ()

    name: ClassVar[str] = "row sum"
    label: ClassVar[str] = "ℓ += ΣP"
    short_label: ClassVar[str] = "ℓ"
    gesture: ClassVar[Gesture] = Gesture.GATHER
    recorded: ClassVar[tuple[str, ...]] = ("l_tile", "l")

    def apply(self, state: State) -> None:
        chip = state.chip
        chip["l_tile"] = chip["P"].sum(axis=1)
        chip["l"] = chip["l"] + chip["l_tile"]


class UpdateState(Op):
    """``state += φ(K)ᵀ [V, 1]``: every key of the tile adds a matrix of rank one."""

    __slots__ = ()

    name: ClassVar[str] = "update state"
    label: ClassVar[str] = "state += φ(K)ᵀV"
    short_label: ClassVar[str] = "+ φ(K)ᵀV"
    latex: ClassVar[str] = r"\mathrm{state} \leftarrow \mathrm{state} + \phi(K)^{\top} [V, 1]"
    recorded: ClassVar[tuple[str, ...]] = ("state",)

    @property
    def says(self) -> str:
        return "each key adds φ(k)ᵀ [v, 1] to the state"

    def apply(self, state: State) -> None:
        chip = state.chip
        chip["state"] = chip["state"] + matmul(chip["phi_K"].T, with_ones(chip["V"]))


class KeepRows(MapFeatures):
    """``φ(x) = x``: queries and keys as they are, in float32."""

    __slots__ = ()

    def apply(self, state: State) -> None:
        chip = state.chip
        chip["phi_Q"] = chip["Q"]
        chip["phi_K"] = chip["K"]


class UnitRows(MapFeatures):
    """``φ(x) = x / |x|``: so what the state has for a key is what was written with it."""

    __slots__ = ()

    def apply(self, state: State) -> None:
        chip = state.chip
        chip["phi_Q"] = over(chip["Q"], lengths(chip["Q"]))
        chip["phi_K"] = over(chip["K"], lengths(chip["K"]))


class DecayState(Op):
    """``state = diag(α) state``: each feature keeps its share α."""

    __slots__ = ()

    name: ClassVar[str] = "decay state"
    label: ClassVar[str] = "state = α·state"
    short_label: ClassVar[str] = "α·"
    latex: ClassVar[str] = r"\mathrm{state} \leftarrow \mathrm{diag}(\alpha)\, \mathrm{state}"
    shows: ClassVar[str] = "decay"
    changed: ClassVar[tuple[str, ...]] = ("state",)

    @property
    def says(self) -> str:
        return "each feature of the state shrinks by its α"

    def apply(self, state: State) -> None:
        chip = state.chip
        chip["state"] = chip["decay"].T * chip["state"]


class Recall(Op):
    """``v_old = φ(K) state``: the value that the state has for the key by now."""

    __slots__ = ()

    name: ClassVar[str] = "recall"
    label: ClassVar[str] = "v_old = φ(K) state"
    short_label: ClassVar[str] = "v_old"
    latex: ClassVar[str] = r"v_{\mathrm{old}} \leftarrow \phi(K)\, \mathrm{state}"
    shows: ClassVar[str] = "v_old"
    recorded: ClassVar[tuple[str, ...]] = ("v_old",)

    @property
    def says(self) -> str:
        return "v_old = φ(k) · state, Σ over features"

    def apply(self, state: State) -> None:
        chip = state.chip
        chip["v_old"] = matmul(chip["phi_K"], chip["state"])


class Correct(Op):
    """``u = β (V - v_old)``: what has to be added so that a share β of the new value is there."""

    __slots__ = ()

    name: ClassVar[str] = "correct"
    label: ClassVar[str] = "u = β (V − v_old)"
    short_label: ClassVar[str] = "u"
    latex: ClassVar[str] = r"u \leftarrow \beta\, (V - v_{\mathrm{old}})"
    shows: ClassVar[str] = "u"
    recorded: ClassVar[tuple[str, ...]] = ("u",)

    @property
    def says(self) -> str:
        return "u = β (v − v_old): what is still missing"

    def apply(self, state: State) -> None:
        chip = state.chip
        chip["u"] = chip["strength"][:, None] * (chip["V"] - chip["v_old"])


class AddValues(Op):
    """``state += φ(K)ᵀ V``, without a sum of the weights."""

    __slots__ = ()

    name: ClassVar[str] = "update state"
    label: ClassVar[str] = "state += φ(K)ᵀV"
    short_label: ClassVar[str] = "+ φ(K)ᵀV"
    latex: ClassVar[str] = r"\mathrm{state} \leftarrow \mathrm{state} + \phi(K)^{\top} V"
    recorded: ClassVar[tuple[str, ...]] = ("state",)

    @property
    def says(self) -> str:
        return "φ(k)ᵀ v is added to the state"

    def apply(self, state: State) -> None:
        chip = state.chip
        chip["state"] = chip["state"] + matmul(chip["phi_K"].T, chip["V"])


class AddCorrection(Op):
    """``state += φ(K)ᵀ u``: from now on the state has more of the new value for the key."""

    __slots__ = ()

    name: ClassVar[str] = "update state"
    label: ClassVar[str] = "state += φ(K)ᵀu"
    short_label: ClassVar[str] = "+ φ(K)ᵀu"
    latex: ClassVar[str] = r"\mathrm{state} \leftarrow \mathrm{state} + \phi(K)^{\top} u"
    recorded: ClassVar[tuple[str, ...]] = ("state",)

    @property
    def says(self) -> str:
        return "φ(k)ᵀ u is added to the state"

    def apply(self, state: State) -> None:
        chip = state.chip
        chip["state"] = chip["state"] + matmul(chip["phi_K"].T, chip["u"])


class ReadOutput(Op):
    """``O = φ(Q) state``, the key of the same token included; nothing is divided."""

    __slots__ = ()

    name: ClassVar[str] = "read state"
    label: ClassVar[str] = "O = φ(Q) state"
    short_label: ClassVar[str] = "φ(Q)·"
    latex: ClassVar[str] = r"O \leftarrow \phi(Q)\, \mathrm{state}"
    shows: ClassVar[str] = "O"
    recorded: ClassVar[tuple[str, ...]] = ("O",)

    @property
    def says(self) -> str:
        return "O = φ(q) · state, Σ over features"

    def apply(self, state: State) -> None:
        chip = state.chip
        chip["O"] = matmul(chip["phi_Q"], chip["state"])


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


def lengths(x: Values) -> Values:
    """Return the length of each row, as a column."""
    found: Values = np.sqrt((x * x).sum(axis=1))[:, None]
    return found


def with_ones(v: Values) -> Values:
    """Return ``[v, 1]``: the last column adds up the weights."""
    return np.concatenate([v, np.ones_like(v[:, :1])], axis=1)
