"""The op of a layer that multiplies O by a gate before its output projection.

References: Qiu et al. 2025, "Gated Attention for Large Language Models: Non-linearity, Sparsity,
and Attention-Sink-Free", section 2.2 (a gate of each head after attention).
"""

from __future__ import annotations

from typing import ClassVar

from simulator.problem.workload import Workload
from simulator.program.launches import Cost
from simulator.program.op import Gesture, Op
from simulator.program.ops import LoadTiles
from simulator.program.state import ChipTile, State, TileMove
from simulator.program.tensors import GATE
from simulator.program.tile_program import Visit

GATING = "Qiu et al. 2025, section 2.2"


class ApplyGate(Op):
    """``O = gate ∘ O``: each number of O times its own of the gate."""

    __slots__ = ()

    name: ClassVar[str] = "gate"
    label: ClassVar[str] = "gate O"
    short_label: ClassVar[str] = "gO"
    gesture: ClassVar[Gesture] = Gesture.SETTLE
    changed: ClassVar[tuple[str, ...]] = ("O",)

    @property
    def says(self) -> str:
        return "each number of O is multiplied by its gate"

    def apply(self, state: State) -> None:
        chip = state.chip
        chip["O"] = chip["gate"] * chip["O"]


def gate_ops(w: Workload, visit: Visit, cites: str) -> list[Op]:
    """Return the ops that gate O of the visit's rows; none without a gate."""
    if not w.gated:
        return []
    size = len(visit.rows) * w.value_dim * w.width
    move, cited = TileMove(GATE.name, visit.head, visit.rows, None, size), f"{cites}, {GATING}"
    held = ChipTile(GATE.name, size, "registers")
    return [
        LoadTiles(cites=cited, moves=(move,), allocates=(held,)),
        ApplyGate(cites=cited, frees=(GATE.name,)),
    ]


def gate_cost(w: Workload, *, every: bool = False) -> dict[str, Cost]:
    """Return the cost of reading a gate; `every`: also for rows that see nothing."""
    size = w.value_dim * w.width
    return {GATE.name: Cost(last=size) if every else Cost(final=size)} if w.gated else {}
