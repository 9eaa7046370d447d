"""The panel's state for a layer, as plain data."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulator.base.dtypes import F32, frozen
from simulator.problem.filling import done_after_words
from simulator.run.snapshot import Snapshot
from simulator.run.trace import Trace
from simulator.run.whole_layer import LayerRun, compute_layer, example_layer, known_layer
from simulator.study.layer.choices import AT_WORK, FLOW
from ui.kit.boxes import Box
from ui.look.formula import typeset
from ui.panels.layer.words import latex_of
from ui.panels.study import Words
from ui.session.tasks import Report

Bools = NDArray[np.bool_]
PROJECTED = ("q", "k", "v")
"""The projections of X, from top to bottom."""
WEIGHTS = {"q": "wq", "k": "wk", "v": "wv", "y": "wo"}
"""The weight of each stage that has one."""
COLOURS = {
    "wq": "Q", "q": "Q", "wk": "K", "k": "K", "wv": "V", "v": "V", "wo": "O", "o": "O",
    "concat": "O", "m": "m", "l": "l", "lse": "LSE", "qk": "S", "s": "S", "a": "P",
}  # fmt: skip
"""The tensor whose colour a matrix has; X and Y have the colour of text."""
NO_LAYER = (
    "This run begins at Q, K and V: it has no X and no weights, so there is no layer around it."
)


@dataclass(frozen=True, eq=False)
class LayerFound:
    """A layer at the end of its run, or the demo's layer and why the run has none."""

    run: LayerRun | None
    why: str = ""
    end: Snapshot | None = None  # the end of the demo


def layer_found(trace: Trace, report: Report) -> LayerFound:
    """Return the layer of a run."""
    why, end = "", None
    if trace.inputs.layer is None:
        why = " ".join(filter(None, (NO_LAYER, done_after_words(trace.workload.file))))
        trace, end = example_layer()
    elif trace.whole_layer is None:
        picked, count = trace.workload.picked, trace.workload.input_heads[0]
        heads = f"head{'s' * (len(picked) > 1)} {', '.join(map(str, picked))} of {count}"
        return LayerFound(None, f"Only {heads} run, and Y needs all of them.")
    run = known_layer(trace) or compute_layer(trace, report)
    typeset(latex_of(run, trace.workload))
    return LayerFound(run, why, end)


@dataclass(frozen=True, eq=False)
class LayerState:
    """A layer at a share of an op, and the choices made."""

    found: LayerFound
    shows: str = FLOW
    stage: str = AT_WORK
    now: Snapshot | None = None  # the state after the op
    head: int = 0  # the query head and its row that the board explains
    row: int = 0
    finished: Bools = field(default_factory=lambda: np.zeros((1, 1), np.bool_))
    """(H, N), rows of O that are in HBM for good; query heads one by one."""
    arriving: Bools | None = None  # (H, N), rows that the op finishes while its motion is shown
    share: float = 1.0  # how much of the op has been done
    chosen_row: int | None = None  # chosen here; None: the row of the run
    chosen_head: int | None = None
    chosen_cell: tuple[int, int] | None = None  # the number of a stage that is explained
    supposed: int | None = None  # place of a number of heads in `head_counts`; None: the layer's
    controls: bool = True  # whether somebody can choose
    roomy: bool = (
        True  # whether the demo's layer can be read below the words on a run without a layer
    )

    @property
    def run(self) -> LayerRun:
        """The layer, where there is one."""
        assert self.found.run is not None
        return self.found.run

    @property
    def snapshot(self) -> Snapshot:
        """The state after the op, where there is a layer."""
        assert self.now is not None
        return self.now

    @property
    def shown_row(self) -> int:
        """The row of Y that is shown."""
        row = self.row if self.chosen_row is None else self.chosen_row
        return min(row, self.run.shapes["y"][0] - 1)

    @property
    def shown_head(self) -> int:
        """The head whose matrices are shown."""
        head = self.head if self.chosen_head is None else self.chosen_head
        return min(head, self.run.heads - 1)

    @property
    def done(self) -> list[int]:
        """The heads that have finished the row of Y that is shown."""
        return [int(head) for head in np.flatnonzero(self.finished[:, self.shown_row])]

    @cached_property
    def weights(self) -> F32 | None:
        """The softmax of the head at work, (N, N) float32; None where a run is too large."""
        now, rows = self.snapshot, self.run.shapes["x"][0]
        if now.head is None:
            return None
        start = self.head % now.program.workload.group * rows
        with np.errstate(invalid="ignore"):
            lse = self.run.statistics["lse"][self.head][:, None]
            weights = np.exp(now.head.s[start : start + rows] - lse)
        return frozen(np.nan_to_num(weights, nan=0.0).astype(np.float32))

    # --- the way of an op -----------------------------------------------------------------

    @property
    def whole(self) -> Bools:
        """Which rows all heads have done, (N,)."""
        return np.asarray(self.finished.all(axis=0))

    @property
    def moving(self) -> Bools | None:
        """Rows that are on their way now."""
        some = self.arriving is not None and self.share < 1 and bool(self.arriving.any())
        return self.arriving if some else None

    @property
    def landed(self) -> Bools:
        """Rows that lie in the concat, (H, N)."""
        moving = self.moving
        return self.finished if moving is None else self.finished & ~moving

    @property
    def mixing(self) -> Bools | None:
        """Rows of Y that are being made from arriving rows, (N,); None if there are none."""
        moving = self.moving
        rows = None if moving is None else np.asarray(self.whole & moving.any(axis=0))
        return rows if rows is not None and rows.any() else None

    @property
    def slid(self) -> float:
        """How far heads have come on their way into the concat, 0 to 1; then W_O mixes them."""
        return self.share if self.mixing is None else min(2 * self.share, 1.0)

    @property
    def mixed(self) -> int:
        """How many heads W_O has added to the rows of Y that are being made."""
        return int(max(2 * self.share - 1, 0.0) * len(self.finished))

    @property
    def at_work(self) -> str:
        """The stage that is at work: the tiles, unless rows leave them or all have left."""
        if self.moving is not None:
            return "y" if self.mixing is not None and self.slid >= 1 else "concat"
        return "y" if self.finished.all() else "o"

    @property
    def shown(self) -> str:
        """The stage that is explained: the one that was asked for, or the one at work."""
        return self.at_work if self.stage == AT_WORK else self.stage


class Pictured(NamedTuple):
    """One picture of a layer, its words, and more words for screen readers."""

    words: Callable[[LayerState], Words]
    picture: Callable[[LayerState], Box | None]
    more: Callable[[LayerState], Iterable[str]] = lambda state: ()


def matrix(run: LayerRun, name: str) -> F32:
    """Return a tensor of a layer as the flow shows it: heads side by side."""
    flat = {**run.flat, "o": run.flat["concat"]}
    found: F32 = {"x": run.layer.x, **run.layer.weights, **run.arrays, **flat}[name]
    return found


def heads_of(run: LayerRun, name: str) -> tuple[range, ...]:
    """Return which query heads each slice of a tensor serves, slice by slice; none for X and Y."""
    if name in ("x", "y"):
        return ()
    made = {weight: stage for stage, weight in WEIGHTS.items()}.get(name, name)
    each = run.heads // run.shapes[made][0] if made in PROJECTED else 1
    return tuple(range(head, head + each) for head in range(0, run.heads, each))
