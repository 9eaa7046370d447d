"""A whole attention layer as stages: the inputs, output, cost and error of each stage.

The tiles are one stage. The projections are computed at once, so a cursor is always in the tiles;
the rows of each head that are in HBM by then are the inputs of the later stages.

References: Vaswani et al. 2017, section 3.2.2.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from simulator.base.assets import SCENARIOS
from simulator.base.dtypes import F32, frozen, round_to
from simulator.engines.layer_check import output_error
from simulator.engines.reference import error_rows, reference_rows
from simulator.problem.layer import Layer
from simulator.problem.workload import Inputs, Workload
from simulator.program.algorithms import algorithm_of
from simulator.run.snapshot import Snapshot
from simulator.run.trace import Trace, simulate

Progress = Callable[[float], None]
Shape = tuple[int, ...]

EXAMPLE = "layer.toml"
_CITES = "Vaswani et al. 2017, §3.2.2"
AT_ONCE, TILES_AT_ONCE = 2**25, 2**11
"""Multiplications of all heads, and tiles, up to which a view waits for a layer."""


@dataclass(frozen=True, slots=True)
class LayerStage:
    """One step from X to Y."""

    name: str  # the tensor that it makes: a key of `LayerRun.shapes`
    takes: tuple[str, ...]  # the tensors that it reads
    flops: int  # of its matrix products
    bytes: int | None  # requested of HBM; None where docs/counting.md counts none
    error: float  # largest difference of its output from float64 of its inputs
    cites: str  # where the paper has it


@dataclass(frozen=True, slots=True, eq=False)
class LayerRun:
    """A whole layer at the end of its run."""

    layer: Layer  # x and the weights
    # of all tensors by name: x, the weights and biases of `layer`, q, k, v and o with heads first,
    # concat and y
    shapes: dict[str, Shape]
    stages: tuple[LayerStage, ...]  # in the order in which they are done
    # the tensors that the stages make, float32; o as it is in HBM, concat rounded to the dtype
    arrays: dict[str, F32]
    # q, k, v and concat with heads side by side: (N, heads · the width of a head)
    flat: dict[str, F32]
    shares: F32  # (H, N, D) float32, the part of Y that each head gives
    # ``m`` and ``l`` (H, N, Tc) after each column block, ``lse`` (H, N), where the engine records
    # them; of query heads one by one
    statistics: dict[str, F32]
    error: float  # largest difference of Y from float64, from x on
    plain: bool = False  # whether its attention is naive: matrices, and no tiles on a chip

    @property
    def heads(self) -> int:
        """How many query heads there are."""
        return self.shapes["o"][0]

    @property
    def group(self) -> int:
        """How many query heads share a KV head."""
        return self.heads // self.shapes["k"][0]

    @property
    def bias(self) -> F32:
        """The part of Y that no head gives, (D,): the bias of W_O."""
        wide = self.shapes["y"][1]
        return self.layer.weights.get("bo", np.zeros(wide, dtype=np.float32))

    def stage(self, name: str) -> LayerStage:
        """Return the stage that makes a tensor."""
        return next(stage for stage in self.stages if stage.name == name)


_KEPT: weakref.WeakKeyDictionary[Trace, LayerRun] = weakref.WeakKeyDictionary()
_LOCK = threading.Lock()


def is_short(w: Workload) -> bool:
    """Return whether a view may wait until a layer has been run."""
    cost = w.heads * w.seqlen_q * w.seqlen_k * (w.head_dim + w.value_dim)
    return cost <= AT_ONCE and w.heads * w.grid.Tr * w.grid.Tc <= TILES_AT_ONCE


def known_layer(trace: Trace) -> LayerRun | None:
    """Return the layer of a run, if it has been computed or is computed quickly."""
    if trace.whole_layer is None:
        return None
    with _LOCK:
        found = _KEPT.get(trace)
    if found is None and is_short(trace.workload):
        return compute_layer(trace)
    return found


@cache
def example_layer() -> tuple[Trace, Snapshot]:
    """Return the shipped run of a whole layer, for runs without a layer, and its last state."""
    trace = simulate(SCENARIOS / EXAMPLE)
    return trace, trace.snapshot(len(trace) - 1)


def compute_layer(trace: Trace, progress: Progress = lambda share: None) -> LayerRun:
    """Run a whole layer and hold each stage against float64; its result is kept with the run."""
    layer = trace.whole_layer
    assert layer is not None
    single, inputs = trace.single_heads
    numbers = _numbers(trace, progress)
    o = numbers.pop("o")
    made = {"q": inputs.q, "k": inputs.k, "v": inputs.v, "concat": round_to(o, layer.dtype)}
    flat = {name: _side_by_side(values) for name, values in made.items()}
    arrays = {
        **made, "o": o, "concat": flat["concat"],
        "y": frozen(np.asarray(layer.output(o), dtype=np.float32)),
    }  # fmt: skip
    found = LayerRun(
        layer=layer,
        shapes=_shapes(layer, arrays),
        stages=_stages(trace, layer, single, inputs, arrays),
        arrays=arrays,
        flat=flat,
        shares=frozen(layer.shares(o)),
        statistics=numbers,
        error=_from_x(single, inputs, layer, o),
        plain=trace.program.algorithm.stores_scores,
    )
    progress(1.0)
    with _LOCK:
        return _KEPT.setdefault(trace, found)


def _side_by_side(heads: F32) -> F32:
    return frozen(heads.transpose(1, 0, 2).reshape(heads.shape[1], -1))


def _numbers(trace: Trace, progress: Progress) -> dict[str, F32]:
    """Return O and its recorded statistics, of all query heads one by one."""
    w, algorithm = trace.workload, algorithm_of(trace.workload)
    names = ("o", "lse", "m", "l") if algorithm.running else ("o", "lse")
    heads: dict[str, list[F32]] = {name: [] for name in names}
    for head in range(w.heads):
        parts: dict[str, list[F32]] = {name: [] for name in names}
        for i in range(w.grid.Tr):
            block = trace.row_block(head, i)
            for name, found in parts.items():
                found.append(getattr(block, name))
            progress(0.9 * (head * w.grid.Tr + i + 1) / (w.heads * w.grid.Tr))
        for name, found in parts.items():
            heads[name].append(np.concatenate(found))
    return {name: frozen(w.unpacked(np.stack(found))) for name, found in heads.items()}


def _shapes(layer: Layer, arrays: dict[str, F32]) -> dict[str, Shape]:
    weights = {name: values.shape for name, values in layer.weights.items()}
    return {"x": layer.x.shape, **weights, **{name: each.shape for name, each in arrays.items()}}


def _stages(
    trace: Trace, layer: Layer, single: Workload, inputs: Inputs, arrays: dict[str, F32]
) -> tuple[LayerStage, ...]:
    totals, flops = trace.program.totals, layer.flops
    exact = dict(zip("qkv", layer.heads(exact=True), strict=True))
    made = [
        LayerStage(
            name, ("x", *_given(layer, f"w{name}", f"b{name}")), flops[name], None,
            _apart(arrays[name], exact[name].reshape(arrays[name].shape)), _CITES,
        )
        for name in exact
    ]  # fmt: skip
    o, flat = arrays["o"], arrays["concat"]
    rows = [single.grid.row_range(i) for i in error_rows(single)]
    wrong = [
        _apart(o[head, part.start : part.stop], reference_rows(single, inputs, head, part)[0])
        for head in range(single.heads)
        for part in rows
    ]
    beside = o.transpose(1, 0, 2).reshape(flat.shape)
    return (
        *made,
        LayerStage("o", ("q", "k", "v"), totals.flops, totals.bytes, _largest(wrong),
              algorithm_of(trace.workload).source),
        LayerStage("concat", ("o",), 0, None, _apart(flat, beside), _CITES),
        LayerStage("y", ("concat", *_given(layer, "wo", "bo")), flops["y"], None,
              _apart(arrays["y"], layer.output(o, exact=True)), _CITES),
    )  # fmt: skip


def _given(layer: Layer, weight: str, bias: str) -> tuple[str, ...]:
    return (weight, bias) if bias in layer.weights else (weight,)


def _from_x(single: Workload, inputs: Inputs, layer: Layer, o: F32) -> float:
    """Return the error of Y from x on, as the summary of a run has it."""
    parts = (single.grid.row_range(i) for i in error_rows(single))
    return output_error(
        single, inputs, layer, ((rows, o[:, rows.start : rows.stop]) for rows in parts)
    )


def _apart(found: NDArray[np.floating], exact: NDArray[np.floating]) -> float:
    with np.errstate(invalid="ignore"):  # a NaN must not count as a small error
        return float(np.max(np.abs(found.astype(np.float64) - exact)))


def _largest(errors: list[float]) -> float:
    return math.nan if any(map(math.isnan, errors)) else max(errors)


def finished_rows(now: Snapshot) -> NDArray[np.bool_]:
    """Return which rows of O are in HBM for good at a cursor, (H, N), query heads one by one."""
    w, visit = now.program.workload, now.visit
    blocks = np.zeros((w.heads, w.grid.Tr), dtype=np.bool_)
    if now.launch.writes_output:
        blocks[: visit.head] = True
        stored = now.stored("O")
        if algorithm_of(w).normalises_each_tile:
            reached = np.where(np.arange(w.grid.Tr) < visit.i, visit.j + 1, visit.j)
            reached[visit.i] += stored
            columns = w.grid.visited_columns
            all_of = columns.before_each(np.full(w.grid.Tr, w.grid.Tc))
            blocks[visit.head] = columns.before_each(reached) == all_of
        else:
            blocks[visit.head, : visit.i] = True
            blocks[visit.head, visit.i] = stored
    rows = np.arange(w.seqlen_q) // w.rows
    found: NDArray[np.bool_] = blocks[:, rows].reshape(len(w.picked), w.queries)
    return found
