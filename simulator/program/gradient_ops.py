"""The elementary moves of a backward pass: gradients of Q, K and V from the gradient of O."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from simulator.base.matmul import matmul
from simulator.problem.scores import DistanceBias
from simulator.program.op import Gesture, Near, Op
from simulator.program.ops import RoundWeights, exp_shift, rounded
from simulator.program.state import Numbers, State


class RowDots(Op):
    """``D = rowsum(dO ∘ O)``: what every dP of a row is compared with."""

    __slots__ = ()

    name: ClassVar[str] = "row dots"
    label: ClassVar[str] = "D = Σ dO∘O"
    short_label: ClassVar[str] = "D"
    latex: ClassVar[str] = r"D_i \leftarrow \mathrm{rowsum}(dO_i \circ O_i)"
    recorded: ClassVar[tuple[str, ...]] = ("D",)

    @property
    def says(self) -> str:
        return "D of each row is Σ dO · O over its columns"

    def apply(self, state: State) -> None:
        chip = state.chip
        chip["D"] = (chip["dO"] * chip["O"]).sum(axis=1)


class WeightedMeans(Op):
    """``D = rowsum(P ∘ dP)``: equal to rowsum(dO ∘ O), from P and dP in HBM."""

    __slots__ = ()

    name: ClassVar[str] = "weighted means"
    label: ClassVar[str] = "D = Σ P∘dP"
    short_label: ClassVar[str] = "D"
    latex: ClassVar[str] = r"D_i \leftarrow \mathrm{rowsum}(P_i \circ dP_i)"
    recorded: ClassVar[tuple[str, ...]] = ("D",)

    @property
    def says(self) -> str:
        return "D of each row is Σ P · dP over its keys, which is Σ dO · O"

    def apply(self, state: State) -> None:
        chip = state.chip
        chip["D"] = (chip["P"] * chip["dP"]).sum(axis=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class StartGradients(Op):
    """Start some sums on chip, before their first term.

    `sums`: name, rows and width of a row of each sum.
    """

    name: ClassVar[str] = "start gradients"
    label: ClassVar[str] = "sums = 0"
    short_label: ClassVar[str] = "0"
    latex: ClassVar[str] = r"\mathrm{sums} \leftarrow 0"
    starts: ClassVar[bool] = True
    sums: tuple[tuple[str, int, int], ...]

    def apply(self, state: State) -> None:
        chip, number = state.chip, state.number
        for tensor, rows, width in self.sums:
            chip[tensor] = np.zeros((rows, width), number)


class WeightsAgain(Op):
    """``P = exp(S - LSE)``: the weights of the forward pass, divided by l already."""

    __slots__ = ()

    name: ClassVar[str] = "weights"
    gesture: ClassVar[Gesture] = Gesture.TURN
    label: ClassVar[str] = "P = exp(S − LSE)"
    short_label: ClassVar[str] = "P"
    latex: ClassVar[str] = r"P_{ij} \leftarrow e^{S_{ij} - \mathrm{LSE}_i}"
    recorded: ClassVar[tuple[str, ...]] = ("P",)

    @property
    def says(self) -> str:
        return "each score s becomes exp(s − LSE) again, the weight of the forward pass"

    def apply(self, state: State) -> None:
        chip = state.chip
        chip["P"] = exp_shift(chip["S"], chip["LSE"][:, None])


class AddValueGradient(Op):
    """``dV += Pᵀ dO``: each key's value counted in a row as much as its weight."""

    __slots__ = ()

    name: ClassVar[str] = "value gradient"
    gesture: ClassVar[Gesture] = Gesture.SUM_ROWS
    factors: ClassVar[tuple[str, ...]] = ("P", "dO")
    label: ClassVar[str] = "dV += PᵀdO"
    short_label: ClassVar[str] = "dV"
    latex: ClassVar[str] = r"dV_j \leftarrow dV_j + P_{ij}^{\top} dO_i"
    recorded: ClassVar[tuple[str, ...]] = ("dV",)

    @property
    def says(self) -> str:
        return "each key of dV gains dO of every row, times its weight there"

    def apply(self, state: State) -> None:
        chip = state.chip
        chip["dV"] = chip["dV"] + matmul(chip["P"].T, chip["dO"])


class WeightGradient(Op):
    """``dP = dO Vᵀ``: what more weight of a key would change."""

    __slots__ = ()

    name: ClassVar[str] = "weight gradient"
    gesture: ClassVar[Gesture] = Gesture.SUM_DEPTH
    factors: ClassVar[tuple[str, ...]] = ("dO", "V")
    label: ClassVar[str] = "dP = dO Vᵀ"
    short_label: ClassVar[str] = "dP"
    latex: ClassVar[str] = r"dP_{ij} \leftarrow dO_i V_j^{\top}"
    recorded: ClassVar[tuple[str, ...]] = ("dP",)

    @property
    def says(self) -> str:
        return "dP = dO · V, Σ over the columns of V"

    def apply(self, state: State) -> None:
        chip = state.chip
        chip["dP"] = matmul(chip["dO"], chip["V"].T)


class ScoreGradient(Op):
    """``dS = P ∘ (dP - D)``: a softmax gives to one key what it takes from the others."""

    __slots__ = ()

    name: ClassVar[str] = "score gradient"
    label: ClassVar[str] = "dS = P∘(dP − D)"
    short_label: ClassVar[str] = "dS"
    latex: ClassVar[str] = r"dS_{ij} \leftarrow P_{ij} \circ (dP_{ij} - D_i)"
    recorded: ClassVar[tuple[str, ...]] = ("dS",)

    @property
    def says(self) -> str:
        return "each dS is P · (dP − D of its row)"

    def apply(self, state: State) -> None:
        chip = state.chip
        chip["dS"] = chip["P"] * (chip["dP"] - chip["D"][:, None])


class RoundScoreGradient(RoundWeights):
    """``dS`` in the type that it is stored in, or multiplied by K and Q."""

    __slots__ = ()

    label: ClassVar[str] = "round dS"
    tile_label: ClassVar[str] = ""
    changed: ClassVar[tuple[str, ...]] = ("dS",)

    def settle(self, state: State, before: Numbers, after: Numbers, near: Near) -> int:
        """Round as the engine did; the error of dS was checked when dS was made."""
        return super().settle(state, before, after, lambda given: np.full(given.shape, np.inf))

    def apply(self, state: State) -> None:
        chip = state.chip
        chip["dS"] = rounded(chip["dS"], self.dtype)


@dataclass(frozen=True, slots=True, kw_only=True)
class CapGradient(Op):
    """``dS = dS ∘ (1 - (S_cap / cap)²)``: the derivative of the soft-cap, 1 - tanh²."""

    name: ClassVar[str] = "cap gradient"
    label: ClassVar[str] = "dS · (1 − tanh²)"
    short_label: ClassVar[str] = "1 − tanh²"
    latex: ClassVar[str] = r"dS_{ij} \leftarrow dS_{ij} \circ (1 - \tanh^2(\cdot))"
    changed: ClassVar[tuple[str, ...]] = ("dS",)
    scale: float
    cap: float

    @property
    def says(self) -> str:
        return f"each dS shrinks by 1 − tanh²(s / {self.cap:g}), the slope of the soft-cap"

    def apply(self, state: State) -> None:
        chip, number = state.chip, state.number
        scaled = matmul(chip["Q"] * number(self.scale), chip["K"].T)
        chip["dS"] = chip["dS"] * (number(1) - np.tanh(scaled / number(self.cap)) ** 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCapGradient(Op):
    """The gradient of a soft-cap whose scores lie in HBM without bias and hidden pairs."""

    name: ClassVar[str] = "cap gradient"
    label: ClassVar[str] = "dS · (1 − tanh²)"
    short_label: ClassVar[str] = "1 − tanh²"
    latex: ClassVar[str] = r"dS_{ij} \leftarrow dS_{ij} \circ (1 - \tanh^2(\cdot))"
    changed: ClassVar[tuple[str, ...]] = ("dS",)
    cap: float
    bias: DistanceBias | None = field(repr=False)
    rows: range
    cols: range

    @property
    def says(self) -> str:
        return f"each dS shrinks by 1 − tanh²(s / {self.cap:g}), the slope of the soft-cap"

    def apply(self, state: State) -> None:
        chip, number = state.chip, state.number
        capped = chip["S"]
        if self.bias:
            capped = capped + number(self.bias.of(self.rows, self.cols))
        capped = np.where(np.isneginf(capped), number(0), capped)
        chip["dS"] = chip["dS"] * (number(1) - (capped / number(self.cap)) ** 2)


class AddQueryGradient(Op):
    """``dQ_acc += dS K``: the sum in HBM over column blocks gains this block's product."""

    __slots__ = ()

    name: ClassVar[str] = "query gradient"
    gesture: ClassVar[Gesture] = Gesture.SUM_ROWS
    factors: ClassVar[tuple[str, ...]] = ("dS", "K")
    label: ClassVar[str] = "dQ += dS K"
    short_label: ClassVar[str] = "dQ"
    latex: ClassVar[str] = r"dQ_i \leftarrow dQ_i + dS_{ij} K_j"
    recorded: ClassVar[tuple[str, ...]] = ("dQ_acc",)

    @property
    def says(self) -> str:
        return "each row of dQ gains every key, times its dS"

    def apply(self, state: State) -> None:
        chip = state.chip
        chip["dQ_acc"] = chip["dQ_acc"] + matmul(chip["dS"], chip["K"])


class AddKeyGradient(Op):
    """``dK += dSᵀ Q``."""

    __slots__ = ()

    name: ClassVar[str] = "key gradient"
    gesture: ClassVar[Gesture] = Gesture.SUM_ROWS
    factors: ClassVar[tuple[str, ...]] = ("dS", "Q")
    label: ClassVar[str] = "dK += dSᵀQ"
    short_label: ClassVar[str] = "dK"
    latex: ClassVar[str] = r"dK_j \leftarrow dK_j + dS_{ij}^{\top} Q_i"
    recorded: ClassVar[tuple[str, ...]] = ("dK",)

    @property
    def says(self) -> str:
        return "each key of dK gains every row of Q, times its dS there"

    def apply(self, state: State) -> None:
        chip = state.chip
        chip["dK"] = chip["dK"] + matmul(chip["dS"].T, chip["Q"])


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleKeyGradient(Op):
    """``dK = scale · dK``, once, at the end: a score is scale · q·k."""

    name: ClassVar[str] = "scale keys"
    label: ClassVar[str] = "dK · scale"
    short_label: ClassVar[str] = "scale"
    latex: ClassVar[str] = r"dK_j \leftarrow \mathrm{scale} \cdot dK_j"
    changed: ClassVar[tuple[str, ...]] = ("dK",)
    scale: float

    @property
    def says(self) -> str:
        return "dK is multiplied by the scale of scores"

    def apply(self, state: State) -> None:
        chip = state.chip
        chip["dK"] = chip["dK"] * state.number(self.scale)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertQueryGradient(Op):
    """``dQ = scale · dQ_acc``, once all column blocks have been added."""

    name: ClassVar[str] = "convert"
    label: ClassVar[str] = "dQ = scale · dQ_acc"
    short_label: ClassVar[str] = "dQ"
    latex: ClassVar[str] = r"dQ_i \leftarrow \mathrm{scale} \cdot dQ_i"
    recorded: ClassVar[tuple[str, ...]] = ("dQ",)
    scale: float

    @property
    def says(self) -> str:
        return "the sum is multiplied by the scale of scores"

    def apply(self, state: State) -> None:
        chip = state.chip
        chip["dQ"] = chip["dQ_acc"] * state.number(self.scale)
