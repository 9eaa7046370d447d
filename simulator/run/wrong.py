"""Which numbers of a snapshot are wrong: a run with faults compared with the same run without."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from simulator.base.dtypes import F32, UNIT, DType, frozen
from simulator.base.matmul import matmul
from simulator.base.tolerance import STEP, shares
from simulator.engines.numpy_engine import op_engine
from simulator.engines.protocol import Engine
from simulator.problem.workload import Inputs, Workload
from simulator.program.algorithms import TENSORS, algorithm_of
from simulator.program.faults import honest
from simulator.run.snapshot import Snapshot

Marks = NDArray[np.bool_]
_UNIT: dict[DType, float] = {"float32": 0.0, "float16": 2.0**-10, "bfloat16": 2.0**-7}
"""Unit in the last place of a stored O, relative to it."""


@dataclass(frozen=True, slots=True)
class WrongNumbers:
    """Numbers whose error against the right algorithm in float64 is more than rounding explains.

    The tolerance is the same as in `verify`; NaN and wrong infinities always count as wrong.
    Numbers that do not exist at the cursor are False.
    """

    # s, p: (Nq, Nk) bool, S and P of all tiles of the head; None for large problems
    s: Marks | None
    p: Marks | None
    # tile_s, tile_p: (r, c) bool, S and P of the current tile; None while it has none
    tile_s: Marks | None
    tile_p: Marks | None
    # m, l: (rows,) bool; all rows of the head, in large problems the rows of the row block
    m: Marks
    l: Marks
    o: Marks  # (rows, dv) bool, likewise
    # (r, c) bool, the newest numbers of pairs of the current tile; None while it has none
    newest: Marks | None = None
    # (rows or keys, n) bool, by name, numbers of a backward pass of all rows and keys of the head
    others: Mapping[str, Marks] = field(default_factory=dict)

    @property
    def results(self) -> dict[str, Marks]:
        """m, l and O, (rows, n) each, and the other numbers of rows and of keys."""
        return {"m": self.m[:, None], "l": self.l[:, None], "O": self.o, **self.others}


def exact_engine(workload: Workload, inputs: Inputs) -> Engine:
    """Return the engine that computes a workload in float64, without faults."""
    return op_engine(honest(workload), inputs, np.float64)


def wrong_numbers(now: Snapshot, exact: Snapshot) -> WrongNumbers:
    """Return which numbers of a snapshot are wrong; `exact`: the same without faults in float64."""
    s = _scores(exact)
    size = max(_terms(exact), float(np.max(np.abs(s), initial=1.0, where=np.isfinite(s))))
    pairs = now.program.workload.pair_dtype
    if pairs is not None:  # either side of a tie is right
        size *= UNIT[pairs] / STEP
    o_size = size * float(np.max(np.abs(exact.v), initial=1.0))
    l = exact.l if exact.head is None else exact.head.l
    if now.program.algorithm.normalises_last:  # O is a sum of as many terms as l
        o_size *= float(np.max(l, initial=1.0, where=np.isfinite(l)))
    if exact.output_gate is not None:
        o_size *= float(np.max(np.abs(exact.output_gate), initial=1.0))
    tile_s = _beyond(now.scores, exact.scores, size)
    tile_p = _beyond(now.weights, exact.weights, size)
    newest = _wrong_newest(now, exact, size)
    ours, theirs = now.head, exact.head
    if ours is None or theirs is None:
        return WrongNumbers(
            s=None, p=None, tile_s=tile_s, tile_p=tile_p,
            m=_wrong(now.m, exact.m, size), l=_wrong(now.l, exact.l, size),
            o=_wrong(now.o, exact.o, o_size), newest=newest,
        )  # fmt: skip
    return WrongNumbers(
        s=_wrong(ours.s, theirs.s, size), p=_wrong(ours.p, theirs.p, size),
        tile_s=tile_s, tile_p=tile_p,
        m=_wrong(ours.m, theirs.m, size), l=_wrong(ours.l, theirs.l, size),
        o=frozen(_wrong(ours.o, theirs.o, o_size) & ~_rounded(now, ours.o, theirs.o)),
        newest=newest, others=_wrong_gradients(now, exact),
    )  # fmt: skip


def _wrong_newest(now: Snapshot, exact: Snapshot, size: float) -> Marks | None:
    """Return which of the newest numbers of pairs of the visit are wrong."""
    ours, theirs = now.newest_pairs, exact.newest_pairs
    if ours is None or theirs is None:
        return None
    if TENSORS[ours[0]].at:
        size = _gradient_size(exact, ours[0])
    return _wrong(ours[1], theirs[1], size)


def _wrong_gradients(now: Snapshot, exact: Snapshot) -> dict[str, Marks]:
    """Return which gradients of the head, and numbers that they are made of, are wrong."""
    assert now.head is not None
    assert exact.head is not None
    out, unit = {}, _UNIT[now.program.workload.dtype]
    for name in now.head.others:
        if TENSORS[name].of_pairs:
            continue
        ours, theirs = now.head.results[name], exact.head.results[name]
        close = np.zeros(ours.shape, dtype=np.bool_)
        if TENSORS[name].width == "dtype":  # it may be in HBM, rounded
            with np.errstate(invalid="ignore"):
                close = np.abs(ours - theirs) <= unit * np.abs(theirs)
        size = _gradient_size(exact, name)
        out[name] = frozen(np.asarray(_wrong(ours, theirs, size) & ~close))
    return out


def _gradient_size(exact: Snapshot, name: str) -> float:
    """Return the size of the terms of a gradient, over all rows of all heads that share keys."""
    algorithm, w = exact.program.algorithm, exact.program.workload
    size_of = algorithm.error_size
    assert size_of is not None
    largest_v = float(np.max(np.abs(exact.v), initial=1.0))
    # As if all rows were on chip with all of their numbers.
    chip = {**exact.inputs, "S": _scores(exact), **dict.fromkeys(algorithm.columns, exact.q)}
    return size_of(name, chip, largest_v) * w.heads / w.kv_heads


def _scores(exact: Snapshot) -> F32:
    """Return the scores that are known; where splits are joined, LSE in the place of scores."""
    if not exact.program.algorithm.softmax:
        return np.ones(1, np.float32)  # without a softmax there are no exponents
    if exact.head is not None:
        return exact.head.s
    if exact.program.algorithm.backward and exact.scores is None:
        return np.ones(1, np.float32)
    if exact.partials is not None and exact.launch.combines:
        return exact.partials.lse
    return exact.tile.s


def _terms(exact: Snapshot) -> float:
    """Return the largest Σ |q k| of a score of the head, or of a large problem's tile."""
    w, visit = exact.program.workload, exact.visit
    if not exact.program.algorithm.softmax:
        return 1.0
    q, k = np.abs(exact.q), np.abs(exact.k)
    if exact.head is None:
        q, k = q[visit.rows.start : visit.rows.stop], k[visit.cols.start : visit.cols.stop]
    return float(w.scoring.factor * np.max(matmul(q, k.T), initial=0.0))


def _beyond(ours: F32 | None, exact: F32 | None, size: float) -> Marks | None:
    return None if ours is None or exact is None else _wrong(ours, exact, size)


def _wrong(ours: F32, exact: F32, size: float) -> Marks:
    used = shares(ours, exact.astype(np.float64), size)
    # NaN in the exact numbers of a head marks numbers that do not exist.
    return frozen((used > 1) & ~np.isnan(exact))


def _rounded(now: Snapshot, ours: F32, exact: F32) -> Marks:
    """Return which numbers of O are in HBM and differ by no more than rounding to the dtype."""
    w = now.program.workload
    stored = np.ones((len(ours), 1), dtype=np.bool_)
    stored[now.visit.rows.start : now.visit.rows.stop] = False
    with np.errstate(invalid="ignore"):
        close = np.abs(ours - exact) <= _UNIT[w.dtype] * np.abs(exact)
    return np.asarray(
        close & stored if not algorithm_of(w).normalises_each_tile else np.zeros_like(close)
    )
