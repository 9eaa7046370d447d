"""What the layer panel shows, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulator.base.dtypes import F32
from simulator.run.row_report import RowReport, row_report
from simulator.run.snapshot import Snapshot
from simulator.run.trace import Trace
from simulator.run.whole_layer import LayerRun, example_layer, finished_rows, known_layer
from simulator.study.compare import Position
from ui.look.formula import typeset
from ui.panels.layer.words import LATEX

Bools = NDArray[np.bool_]

PROJECTED = ("q", "k", "v")
"""What X is turned into, from top to bottom."""
WEIGHTS = {"q": "wq", "k": "wk", "v": "wv", "y": "wo"}
"""The weight of each stage that has one."""
COLOURS = {
    "wq": "Q", "q": "Q", "wk": "K", "k": "K", "wv": "V", "v": "V", "wo": "O", "o": "O",
    "concat": "O", "m": "m", "l": "l", "lse": "LSE",
}  # fmt: skip
"""Whose colour a matrix has; X and Y have that of text."""


@dataclass(frozen=True, slots=True, eq=False)
class LayerModel:
    """A layer at a cursor."""

    snapshot: Snapshot
    run: LayerRun | None  # None if there is none, or it has not been computed
    finished: Bools  # (H, N), rows of O that are in HBM for good; query heads one by one
    head: int  # the query head and its row that the board explains
    row: int
    missing: bool = False  # whether the layer is computed beside the window
    example: bool = False  # whether the run has no layer: this is the end of the demo of one

    @property
    def whole(self) -> Bools:
        """Which rows all heads have done, (N,)."""
        return np.asarray(self.finished.all(axis=0))

    @property
    def position(self) -> Position:
        """The place of the run, for its miniature."""
        now = self.snapshot
        done = now.cursor.visit + (now.cursor.op == len(now.ops) - 1)
        return Position(
            algorithm=now.program.workload.algorithm, visits=done, visit=now.visit,
            counters=now.counters, seconds=now.seconds, on_chip=0,
            finished=done == len(now.program),
        )  # fmt: skip

    def row_name(self, row: int) -> str:
        """Return a row in words: ``row 8 “it”``."""
        token = self.snapshot.program.workload.query_token(row)
        return f"row {row} “{token}”" if token else f"row {row}"


def layer_model(trace: Trace, snapshot: Snapshot, report: RowReport) -> LayerModel:
    """Return the layer of a run at a cursor, computed now if that is quick; else the demo's."""
    example = trace.inputs.layer is None
    if example:
        trace, snapshot = example_layer()
        report = row_report(snapshot, 0)
    run = known_layer(trace)
    if run is not None:
        typeset(LATEX)
    head, row = trace.workload.single(snapshot.visit.head, report.row)
    missing = run is None and trace.whole_layer is not None
    return LayerModel(snapshot, run, finished_rows(snapshot), head, row, missing, example)


def matrix(run: LayerRun, name: str) -> F32:
    """Return a tensor of a layer as the flow shows it: heads side by side."""
    flat = {**run.flat, "o": run.flat["concat"]}
    found: F32 = {"x": run.layer.x, **run.layer.weights, **run.arrays, **flat}[name]
    return found


def heads_of(run: LayerRun, name: str) -> tuple[range, ...]:
    """Return which query heads each slice of a tensor serves, slice by slice; none of X and Y."""
    each = run.heads // run.shapes[name][0] if name in PROJECTED else 1
    if name in WEIGHTS.values():
        made = {weight: stage for stage, weight in WEIGHTS.items()}[name]
        return heads_of(run, made) if made in PROJECTED else heads_of(run, "concat")
    if name in ("x", "y"):
        return ()
    return tuple(range(head, head + each) for head in range(0, run.heads, each))


@dataclass(frozen=True, slots=True, eq=False)
class FlowState:
    """The flow at a share of an op."""

    model: LayerModel  # the state after the op
    arriving: Bools | None = None  # (H, N), rows that the op finishes while its motion is shown
    share: float = 1.0  # how much of it has been done
    selected: str | None = None  # the stage that was asked for

    @property
    def moving(self) -> Bools | None:
        """Rows that are on their way now."""
        some = self.arriving is not None and self.share < 1 and bool(self.arriving.any())
        return self.arriving if some else None

    @property
    def landed(self) -> Bools:
        """Rows that lie in the concat, (H, N)."""
        moving = self.moving
        return self.model.finished if moving is None else self.model.finished & ~moving

    @property
    def mixing(self) -> Bools | None:
        """Rows of Y that are being made of what arrives, (N,); None if there are none."""
        moving = self.moving
        if moving is None:
            return None
        rows = np.asarray(self.model.whole & moving.any(axis=0))
        return rows if rows.any() else None

    @property
    def slid(self) -> float:
        """How far heads have come on their way into the concat, 0 to 1; then W_O mixes them."""
        if self.mixing is None:
            return self.share
        return min(2 * self.share, 1.0)

    @property
    def mixed(self) -> int:
        """How many heads W_O has added to the rows of Y that are being made."""
        heads = len(self.model.finished)
        return int(max(2 * self.share - 1, 0.0) * heads)

    @property
    def at_work(self) -> str:
        """The stage that is at work: the tiles, unless rows leave them or all have left."""
        if self.moving is not None:
            return "y" if self.mixing is not None and self.slid >= 1 else "concat"
        return "y" if self.model.finished.all() else "o"

    @property
    def shown(self) -> str:
        """The stage that is explained: the one that was asked for, or the one at work."""
        return self.selected or self.at_work
