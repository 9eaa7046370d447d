"""Numbers of masks, linear attention and whole layers that captions may ask for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from simulator.base.dtypes import F64
from simulator.base.errors import refuse
from simulator.base.matmul import matmul
from simulator.engines.reference import reference_rows
from simulator.problem.layer import WEIGHTS
from simulator.problem.scenario import parse_scenario
from simulator.program.algorithms import USUAL
from simulator.program.playback import Cursor
from simulator.run.whole_layer import LayerRun, compute_layer, known_layer
from simulator.study.attention_map import HeadScores, settings_of
from simulator.study.attention_part import MapPart
from simulator.study.captions import Numbers, cell_of, chosen, known
from simulator.study.layer.heads import head_matrices, row_shares

Bools = NDArray[np.bool_]


# --- the mask -----------------------------------------------------------------------------------


@known
def kept(n: Numbers, row: int) -> float:
    """Weight that a row's visible keys have if the softmax is taken over all keys."""
    seen, everywhere, _ = _unmasked(n, row)
    return float(everywhere[seen].sum())


@known
def leaked(n: Numbers, row: int) -> float:
    """Weight of a row on keys of other texts if the mask let it see these texts."""
    seen, everywhere, _ = _unmasked(n, row)
    single = n.trace.single_heads[0]
    one_text = replace(single.mask.of_head(n.single(row)[0]), documents=())
    both = one_text.visible(range(row, row + 1), range(single.seqlen_k))[0]
    return float(everywhere[both & ~seen].sum() / everywhere[both].sum())


@known
def zeroed_off(n: Numbers, row: int, renormalised: int = 0) -> float:
    """Largest difference to the right weights if hidden ones are zeroed after the softmax."""
    seen, everywhere, right = _unmasked(n, row)
    zeroed = np.where(seen, everywhere, 0.0)
    if renormalised:
        zeroed = zeroed / zeroed.sum()
    return float(np.abs(zeroed - right).max())


def _unmasked(n: Numbers, row: int) -> tuple[Bools, F64, F64]:
    """Return the keys that a row sees, its weights over all keys, and over the visible keys."""
    cell_of(n.workload, "m", row, 0)
    head, own = n.single(row)
    single, inputs = n.trace.single_heads
    part = MapPart((head,), range(own, own + 1))
    scores = HeadScores(single, inputs, part)
    open_to_all = settings_of(single).open
    seen = single.mask.of_head(head).visible(part.rows, range(single.seqlen_k))[0]
    if not seen.any():
        raise refuse("", "row", row, "a row that sees a key")
    maps = (scores.maps(settings).of(head)[0].astype(np.float64) for settings in
            (open_to_all, None))  # fmt: skip
    everywhere, right = maps
    return seen, everywhere, right


# --- linear attention ---------------------------------------------------------------------------


@known
def softmax_differs(n: Numbers) -> float:
    """Distance of the head's O from softmax attention on the same numbers, relative to that O."""
    w, trace = n.as_if(USUAL.name), n.trace
    rows = range(w.seqlen_q)
    exact, _ = reference_rows(w, w.posed(trace.inputs), n.head, rows)
    return float(np.linalg.norm(trace.output[n.head] - exact) / np.linalg.norm(exact))


@known
def left_of(n: Numbers, row: int, key: int) -> float:
    """Share of a key's value that is left in the state at a row, a mean over features."""
    gate = n.snapshot.gate
    if gate is None or gate.ndim < 2:
        raise refuse("", "left_of", n.workload.algorithm, "a run whose state decays")
    if not 0 <= key <= row < len(gate):
        raise refuse("", "left_of", f"{row}, {key}", "a key at or before a row of the run")
    return float(gate[key + 1 : row + 1].astype(np.float64).prod(axis=0).mean())


@known
def recalled(n: Numbers, row: int, col: int) -> float:
    """A number of the value that the state holds for a row's key before the row writes its own."""
    index = n.trace.program.index(n.head, row, row) if n.workload.rule else None
    found = None if index is None else n.trace.snapshot(index).tile.last("v_old")
    if found is None or not 0 <= col < found.shape[1]:
        raise refuse("", "recalled", f"{row}, {col}", "a number of a row of a run that corrects")
    return float(found[0, col])


@known
def overwritten(n: Numbers, row: int, key: int) -> float:
    """How far a row's write moves what the state has for another key, over its value's length."""
    keys, updates = [], []
    for each in (row, key):
        index = n.trace.program.index(n.head, each, each) if n.workload.rule else None
        tile = None if index is None else n.trace.snapshot(index).tile
        phi, u = (None, None) if tile is None else (tile.last("phi_K"), tile.last("u"))
        if phi is None or u is None:
            raise refuse("", "overwritten", f"{row}, {key}", "rows of a run that corrects")
        keys.append(phi[0])
        updates.append(u[0])
    moved = abs(float(matmul(keys[0], keys[1]))) * np.linalg.norm(updates[0])
    return float(moved / np.linalg.norm(n.trace.inputs.v[n.workload.kv_head_of[n.head], key]))


# --- other captures -----------------------------------------------------------------------------


@known
def weight_in(_: Numbers, capture: str, head: int, row: int, key: int) -> float:
    """Softmax weight of a key for a row of a head of a shipped capture."""
    scenario = parse_scenario({"input": {"source": "capture", "name": capture, "head": [head]}})
    other = Numbers(scenario, Cursor(0, 0))
    cell_of(other.workload, "S", row, key)
    return float(other.maps.of(0)[row, key])


@known
def most_in(_: Numbers, capture: str, row: int, key: int) -> float:
    """Largest softmax weight of a key for a row in any head of a shipped capture."""
    scenario = parse_scenario({"input": {"source": "capture", "name": capture, "head": "all"}})
    other = Numbers(scenario, Cursor(0, 0))
    cell_of(other.workload, "S", row, key)
    part = MapPart(tuple(range(other.workload.heads)), range(row, row + 1))
    maps = HeadScores(other.workload, other.trace.inputs, part).maps()
    return float(maps.weights[:, 0, key].max())


# --- the whole layer ----------------------------------------------------------------------------


@known
def layer_error(n: Numbers) -> float:
    """Largest difference of Y from float64, from x on."""
    return _layer(n).error


@known
def layer_flops(n: Numbers, stage: str) -> int:
    """FLOPs that make `q`, `k`, `v`, `o` or `y` of a whole layer."""
    found = _layer(n)
    return found.stage(chosen("stage", stage, [each.name for each in found.stages])).flops


@known
def layer_width(n: Numbers) -> int:
    """D, the width of x."""
    return int(_layer(n).layer.x.shape[1])


@known
def layer_parameters(n: Numbers) -> int:
    """Weights of W_Q, W_K, W_V and W_O, without biases."""
    weights = _layer(n).layer.weights
    return sum(weights[name].size for name in WEIGHTS)


@known
def given(n: Numbers, row: int, head: int) -> float:
    """Share of a row of Y that a head gives in its direction: all heads together give 1."""
    shares = row_shares(_layer(n), _row_of(n, row)).along
    if not 0 <= head < len(shares):
        raise refuse("", "head", head, f"one of {len(shares)} heads")
    return float(shares[head])


@known
def asymmetry(n: Numbers, head: int) -> float:
    """``‖A − Aᵀ‖ / ‖A‖`` of W_Q W_Kᵀ of a head: 0 if it is symmetric."""
    layer = _layer(n).layer
    if not 0 <= head < layer.shapes[0][0]:
        raise refuse("", "head", head, f"one of {layer.shapes[0][0]} heads")
    return head_matrices(layer, head).asymmetry


def _row_of(n: Numbers, row: int) -> int:
    rows = len(_layer(n).layer.x)
    if not 0 <= row < rows:
        raise refuse("", "row", row, f"one of {rows} rows")
    return row


def _layer(n: Numbers) -> LayerRun:
    if n.trace.inputs.layer is None:
        raise refuse("", "input", "", "a whole layer, with x and weights")
    return known_layer(n.trace) or compute_layer(n.trace)
