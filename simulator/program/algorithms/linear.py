"""Linear attention: feature maps in the place of the softmax, a state in the place of S.

``o_i = Σ_j φ(q_i)·φ(k_j) v_j / Σ_j φ(q_i)·φ(k_j)``. The sum over keys can be taken first, because φ
depends on one row alone: a state of f × (dv + 1) numbers has all that a later row needs of the
keys. The function is not attention with a softmax; only with random features does it approximate
softmax attention.

Causal, one thread block goes through the chunks of a head: each row reads the state of the chunks
before its own, and adds the keys of its own chunk as attention does. With chunks of one key this is
a recurrent network. Without a mask, one launch sums the state and another one reads it.

References: Katharopoulos, Vyas, Pappas, Fleuret 2020, "Transformers are RNNs: Fast Autoregressive
Transformers with Linear Attention". Choromanski et al. 2021, "Rethinking Attention with
Performers". Yang, Wang, Shen, Panda, Kim 2024, "Gated Linear Attention Transformers with
Hardware-Efficient Training" (chunks, which have been used before).
"""

from __future__ import annotations

import numpy as np

from simulator.base.dtypes import STATISTIC_WIDTH
from simulator.base.matmul import matmul
from simulator.problem.features import FeatureMap
from simulator.problem.intervals import Intervals
from simulator.problem.workload import Workload
from simulator.program.algorithms import tiles
from simulator.program.launches import Cost, Launch
from simulator.program.op import Op
from simulator.program.ops import Accumulate, LoadTiles, Normalise, StoreTiles, statistics
from simulator.program.state import ChipTile, Numbers, TileMove
from simulator.program.state_ops import (
    HidePairs,
    MapFeatures,
    MapRandomFeatures,
    ReadState,
    Similarities,
    StartState,
    SumWeights,
    UpdateState,
)
from simulator.program.tensors import TensorSpec
from simulator.program.tile_program import TileAlgorithm, Visit

_PAPER = "Katharopoulos et al. 2020"
_ALL = f"{_PAPER}, equation 5"
_START, _ADD = f"{_PAPER}, equations 16 and 17", f"{_PAPER}, equations 10 and 11"
_READ = f"{_PAPER}, equation 12"
MAPS = {
    "elu1": f"{_PAPER}, equation 7",
    "performer": "Choromanski et al. 2021, lemma 1",
}
_CHUNK = "Yang et al. 2024, chunkwise form"


def _phi(w: Workload) -> FeatureMap:
    phi = w.feature_map
    assert phi is not None
    return phi


def _state_bytes(w: Workload) -> int:
    return _phi(w).features * (w.value_dim + 1) * STATISTIC_WIDTH


def launches(w: Workload) -> tuple[Launch, ...]:
    """Return one launch over the chunks of each head, or one over keys and one over rows."""
    return (_chunks(w),) if w.chunked else (_sums(w), _reads(w))


def _chunks(w: Workload) -> Launch:
    b, d, dv, phi = w.width, w.head_dim, w.value_dim, _phi(w)
    chunk = np.arange(w.grid.Tr)
    return Launch(
        "chunks",
        (w.seqlen_q, w.rows),
        (w.seqlen_k, w.cols),
        Intervals.between(chunk, chunk + 1),
        by_rows=True,
        carries=True,
        reads={"Q": Cost(first=d * b), "K": Cost(inner=d * b), "V": Cost(inner=dv * b)},
        writes={"O": Cost(last=dv * b)},
        flops=Cost(
            inner=4 * phi.features * dv + 2 * phi.flops,
            pair=2 * (phi.features + dv),
        ),
    )


def _sums(w: Workload) -> Launch:
    b, d, dv, phi = w.width, w.head_dim, w.value_dim, _phi(w)
    return Launch(
        "state",
        (1, 1),
        (w.seqlen_k, w.cols),
        Intervals.every(1, w.grid.Tc),
        by_rows=True,
        of_keys=w.kv_head_of,
        reads={"K": Cost(inner=d * b), "V": Cost(inner=dv * b)},
        writes={"state": Cost(last=_state_bytes(w))},
        flops=Cost(inner=2 * phi.features * dv + phi.flops),
    )


def _reads(w: Workload) -> Launch:
    b, d, dv, phi = w.width, w.head_dim, w.value_dim, _phi(w)
    return Launch(
        "rows",
        (w.seqlen_q, w.rows),
        (1, 1),
        Intervals.every(w.grid.Tr, 1),
        by_rows=True,
        whole_rows=True,
        reads={"state": Cost(inner=_state_bytes(w)), "Q": Cost(first=d * b)},
        writes={"O": Cost(last=dv * b)},
        flops=Cost(pair=2 * phi.features * dv + phi.flops),
    )


def ops(w: Workload, visit: Visit) -> tuple[Op, ...]:
    """Return the ops of one visit."""
    if w.chunked:
        return _chunk_ops(w, visit)
    return _row_ops(w, visit) if visit.launch else _sum_ops(w, visit)


def _chunk_ops(w: Workload, visit: Visit) -> tuple[Op, ...]:
    phi, c = _phi(w), len(visit.rows)
    f, dv = phi.features, w.value_dim
    q, k, v = tiles.queries(w, visit), tiles.keys(w, visit), tiles.values(w, visit)
    out = [_start(w, _START)] if visit.opens else []
    loaded = tuple(tiles.in_shared(each) for each in (q, k, v))
    output = tiles.outputs(w, visit.head, visit.rows)
    return (
        *out,
        LoadTiles(cites=_CHUNK, moves=(q, k, v), allocates=loaded),
        _mapped(w, visit, queries=True, keys=True),
        ReadState(cites=_READ, flops=2 * c * f * dv, allocates=tiles.accumulators(w, visit)[1:]),
        Similarities(
            cites=_CHUNK,
            flops=tiles.matmul_flops(visit, f),
            allocates=(tiles.scores_tile(visit, "S"),),
        ),
        HidePairs(
            cites=_CHUNK,
            mask=w.mask,
            rows=visit.rows,
            cols=visit.cols,
            frees=("S",),
            allocates=(tiles.scores_tile(visit, "P"),),
        ),
        SumWeights(cites=_CHUNK),
        Accumulate(
            cites=_CHUNK, normalised=False, flops=tiles.matmul_flops(visit, dv), frees=("P",)
        ),
        UpdateState(cites=_ADD, flops=2 * c * f * dv, frees=("phi_Q", "phi_K", "Q", "K", "V")),
        Normalise(cites=_READ, tensor="O", softmax=False),
        StoreTiles(
            cites=_READ,
            moves=(output,),
            frees=("O", "l", "state") if visit.i == w.grid.Tr - 1 else ("O", "l"),
        ),
    )


def _sum_ops(w: Workload, visit: Visit) -> tuple[Op, ...]:
    k, v = tiles.keys(w, visit), tiles.values(w, visit)
    out: list[Op] = [_start(w, _ALL)] if visit.first else []
    loaded = (tiles.in_shared(k), tiles.in_shared(v))
    out += [
        LoadTiles(cites=_ALL, moves=(k, v), allocates=loaded),
        _mapped(w, visit, queries=False, keys=True),
        UpdateState(
            cites=_ALL,
            flops=2 * len(visit.cols) * _phi(w).features * w.value_dim,
            frees=("phi_K", "K", "V"),
        ),
    ]
    if visit.last:
        out.append(StoreTiles(cites=_ALL, moves=(_state(w, visit),), frees=("state",)))
    return tuple(out)


def _row_ops(w: Workload, visit: Visit) -> tuple[Op, ...]:
    q, state = tiles.queries(w, visit), _state(w, visit)
    return (
        LoadTiles(
            cites=_ALL,
            moves=(state, q),
            allocates=(ChipTile("state", state.bytes, "shared"), tiles.in_shared(q)),
        ),
        _mapped(w, visit, queries=True, keys=False),
        ReadState(
            cites=_ALL,
            whole=True,
            flops=2 * len(visit.rows) * _phi(w).features * w.value_dim,
            frees=("state", "phi_Q", "Q"),
            allocates=tiles.accumulators(w, visit)[1:],
        ),
        Normalise(cites=_ALL, tensor="O", softmax=False),
        StoreTiles(cites=_ALL, moves=(tiles.outputs(w, visit.head, visit.rows),), frees=("O", "l")),
    )


def _start(w: Workload, cites: str) -> Op:
    held = ChipTile("state", _state_bytes(w), "shared", stays=True)
    return StartState(
        cites=cites, features=_phi(w).features, totals=w.sizes["total"], allocates=(held,)
    )


def _mapped(w: Workload, visit: Visit, *, queries: bool, keys: bool) -> Op:
    phi = _phi(w)
    sizes = {"phi_Q": len(visit.rows) * queries, "phi_K": len(visit.cols) * keys}
    kind = MapRandomFeatures if phi.projects else MapFeatures
    return kind(
        cites=MAPS[phi.name],
        queries=queries,
        keys=keys,
        flops=phi.flops * sum(sizes.values()),
        allocates=tuple(
            ChipTile(name, statistics(size * phi.features), "shared")
            for name, size in sizes.items()
            if size
        ),
    )


def _state(w: Workload, visit: Visit) -> TileMove:
    kv_head = w.kv_head_of[visit.head]
    return TileMove("state", kv_head, range(_phi(w).features), None, _state_bytes(w))


def error_size(name: str, chip: Numbers, largest_v: float) -> float:
    """Return the size of the terms of a number, to which its rounding errors are relative."""
    exponent = 1.0
    if "projection" in chip:  # an error of an exponent is a relative error of its power
        rows = np.concatenate([chip[each] for each in ("Q", "K") if each in chip])
        y = np.abs(rows) * rows.shape[1] ** -0.25
        exponent += float(matmul(y, np.abs(chip["projection"]).T).max() + (y * y).sum(1).max())
    weights = {"O": "l", "state": "state"}.get(name)
    if weights is None:
        return exponent
    return exponent * max(largest_v, 1.0) * float(np.max(chip[weights], initial=1.0))


ALGORITHM = TileAlgorithm(
    name="linear",
    title="Linear attention",
    short_title="Linear",
    label="linear",
    in_a_sentence="linear attention",
    source="Katharopoulos et al. 2020, equation 12",
    about="feature maps in the place of the softmax, a state in the place of S",
    launches=launches,
    visit_ops=ops,
    normalises_last=True,
    walks=False,
    running=False,
    compared=False,
    tensors=(TensorSpec("state", ("feature", "total"), width="float32"),),
    left=("state",),
    softmax=False,
    formula="weights φ(q)·φ(k)",
    row_title="Weights of one row",
    error_size=error_size,
    exemplars=(
        {"attention": {"seqlen_q": 9}},
        {"attention": {"seqlen_q": 9, "feature_map": "performer", "features": 3}},
        {"mask": {"causal": False}},
        {
            "attention": {"feature_map": "performer", "features": 3},
            "mask": {"causal": False},
        },
    ),
)
