"""Common parts of programs by token: one launch, one visit for each token, a state on chip.

A visit loads the token's rows, changes the state with its key and value, and reads the state with
its query. No weight of a pair is ever formed. The state stays on chip from the first token to the
last, so HBM holds none; the cost of a token does not depend on how many came before.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from simulator.base.dtypes import STATISTIC_WIDTH
from simulator.base.matmul import matmul
from simulator.problem.intervals import Intervals
from simulator.problem.workload import Workload
from simulator.program.algorithms import tiles
from simulator.program.launches import Cost, Launch
from simulator.program.op import Op
from simulator.program.ops import LoadTiles, Normalise, StoreTiles, statistics
from simulator.program.state import ChipTile, Numbers, TileMove
from simulator.program.state_ops import MapFeatures, StartState
from simulator.program.tensors import TensorSpec
from simulator.program.tile_program import Visit

EXEMPLARS = ({"attention": {"seqlen_q": 9}},)
"""Small runs in which all ops of such a program occur: there are as many queries as keys."""


def launches(w: Workload, *, products: int, gate: TensorSpec | None = None) -> tuple[Launch, ...]:
    """Return the launch over the tokens of each head.

    products: how many products a token has: of a vector with the state, or of two vectors into a
        matrix as large as the state.
    """
    b, d, dv, phi = w.width, w.head_dim, w.value_dim, w.feature_map
    assert phi is not None
    token = np.arange(w.seqlen_k)
    gates = {gate.name: Cost(inner=_gate_bytes(w, gate))} if gate else {}
    return (
        Launch(
            "tokens",
            (w.seqlen_q, w.rows),
            (w.seqlen_k, w.cols),
            Intervals.between(token, token + 1),
            by_rows=True,
            carries=True,
            reads={
                "Q": Cost(first=d * b),
                "K": Cost(inner=d * b),
                "V": Cost(inner=dv * b),
                **gates,
            },
            writes={"O": Cost(last=dv * b)},
            flops=Cost(inner=products * product_flops(w) + 2 * phi.flops),
        ),
    )


def product_flops(w: Workload) -> int:
    """Return the FLOPs of one product with the values of the state."""
    return 2 * w.sizes["feature"] * w.value_dim


def _gate_bytes(w: Workload, gate: TensorSpec) -> int:
    return STATISTIC_WIDTH * (w.sizes["feature"] if "feature" in gate.axes else 1)


def opening(w: Workload, visit: Visit, cites: str) -> tuple[Op, ...]:
    """Return the op that starts the state, in the first visit of a head."""
    if not visit.opens:
        return ()
    f, totals = w.sizes["feature"], w.sizes["total"]
    held = ChipTile("state", f * totals * STATISTIC_WIDTH, "shared", stays=True)
    return (StartState(cites=cites, features=f, totals=totals, allocates=(held,)),)


def loading(w: Workload, visit: Visit, cites: str, gate: TensorSpec | None = None) -> LoadTiles:
    """Return the op that loads the token's rows, and its gate."""
    moves = [tiles.queries(w, visit), tiles.keys(w, visit), tiles.values(w, visit)]
    if gate is not None:
        kv_head = w.kv_head_of[visit.head]
        moves.append(TileMove(gate.name, kv_head, visit.cols, None, _gate_bytes(w, gate)))
    held = tuple(tiles.in_shared(each) for each in moves)
    return LoadTiles(cites=cites, moves=tuple(moves), allocates=held)


def mapping(w: Workload, kind: Callable[..., MapFeatures], cites: str) -> MapFeatures:
    """Return the op that makes the features of the token's query and key."""
    phi = w.feature_map
    assert phi is not None
    held = (ChipTile(name, statistics(phi.features), "shared") for name in ("phi_Q", "phi_K"))
    return kind(cites=cites, flops=2 * phi.flops, allocates=tuple(held))


def closing(w: Workload, visit: Visit, cites: str, *, sums: bool) -> tuple[Op, ...]:
    """Return the ops that divide the token's row of O, if there is an l, and store it."""
    over = (Normalise(cites=cites, tensor="O", softmax=False),) if sums else ()
    left = ("O", *(("l",) * sums), *(("state",) * (visit.i == w.grid.Tr - 1)))
    return (
        *over,
        StoreTiles(cites=cites, moves=(tiles.outputs(w, visit.head, visit.rows),), frees=left),
    )


def error_size(name: str, chip: Numbers, largest_v: float) -> float:
    """Return the size of the terms of a number that is not divided; terms may have cancelled."""
    if name.startswith("phi"):
        return 1.0
    held = max(1.0, largest_v, float(np.max(np.abs(chip["state"]), initial=0.0)))
    if name == "state":
        return 4 * held * max(1.0, float(np.max(np.abs(chip["phi_K"]))))
    rows = np.abs(np.concatenate([chip["phi_Q"], chip["phi_K"]]))
    return 4 * held * max(1.0, float(matmul(rows, np.ones((rows.shape[1], 1))).max()))
