"""The elementary moves of algorithms that keep a state of all keys in the place of scores."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from simulator.base.matmul import matmul
from simulator.problem.masks import Mask
from simulator.program.op import Gesture, Op
from simulator.program.state import State, Values


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
    def says(self) -> str:
        """What becomes of a row."""
        rows = " and ".join(("Q",) * self.queries + ("K",) * self.keys)
        return f"each row of {rows} becomes its features φ"

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
    def says(self) -> str:
        """Over what the rows add up."""
        return "each row reads the state, feature by feature"

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

    @property
    def says(self) -> str:
        """What a key does."""
        return "each key adds φ(k)ᵀ [v, 1] to the state"

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
