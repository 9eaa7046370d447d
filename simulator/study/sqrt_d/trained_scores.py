"""How far the scores of a trained layer spread, beside scores of random vectors.

A trained layer need not have scores of variance d: its queries and keys are not independent, and
training may have used the scale. The spread of a row is taken about the row's mean, because the
softmax does not see a part that all scores of a row have in common.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from simulator.base.matmul import matmul
from simulator.problem.scenario import Scenario, parse_scenario
from simulator.problem.workload import Inputs, Workload, read_inputs, resolve
from simulator.study.sqrt_d.experiment import Estimate

F64 = NDArray[np.float64]

SHOWN = "soft-red-mat-layer2"
"""The shipped capture that stands beside random vectors if a run has no trained layer."""
_MOST = 2**20
"""Most scores that are computed: of a longer input, evenly spread rows."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The spread of rows' scores, and of the weights that the softmax makes of them."""

    variance: Estimate  # of the scores of a row about their mean, over rows
    entropy: Estimate  # of the row's weights, in bits
    gradient: Estimate  # ``1 - sum p^2``, the trace of the softmax's Jacobian


@dataclass(frozen=True, slots=True)
class TrainedScores:
    """The scores of a layer, undivided and as the layer uses them."""

    name: str  # whose: the model and the layer as the file says, or the file
    d: int  # head dimension
    heads: int  # heads, rows: heads, and rows of all heads, that were taken
    rows: int
    keys: float  # keys that a row sees, on average
    scale: float  # the factor of q·k
    # plain, scaled: of q·k, and of the scores as the layer has them: q·k times the scale, with its
    # soft-cap and bias if it has them. If it has a sink, that is no score, but its share is taken
    # from the weights
    plain: Spread
    scaled: Spread


def trained_scores(w: Workload, inputs: Inputs) -> TrainedScores | None:
    """Return the spread of the scores of a workload's rows; None if no row sees two keys.

    w: shapes, mask and scale, its heads one by one.
    """
    some = max(1, min(w.seqlen_q, _MOST // (w.heads * w.seqlen_k)))
    picked = np.unique(np.linspace(0, w.seqlen_q - 1, some).astype(int)).tolist()
    plain: list[tuple[float, float, float]] = []
    scaled: list[tuple[float, float, float]] = []
    seen = 0
    for head in range(w.heads):
        k = inputs.k[w.kv_head_of[head]].astype(np.float64)
        products = matmul(inputs.q[head, picked].astype(np.float64), k.T)
        for row, all_keys in zip(picked, products, strict=True):
            one, keys = range(row, row + 1), range(w.seqlen_k)
            visible = w.mask.of_head(head).visible(one, keys)[0]
            used = w.changed(head, one, keys, w.scoring.of(all_keys[None, :]))[0]
            count = int(np.count_nonzero(visible))
            if count > 1:
                seen += count
                plain.append(_measured(all_keys[visible]))
                sink = float(w.start(head, one)[0][0])
                scaled.append(_measured(used[visible], sink))
    if not plain:
        return None
    return TrainedScores(
        name="this run" if w.file is None else w.file.title,
        d=w.head_dim,
        heads=w.heads,
        rows=len(plain),
        keys=seen / len(plain),
        scale=w.logit_scale,
        plain=_spread(plain),
        scaled=_spread(scaled),
    )


@cache
def shipped_scores() -> TrainedScores:
    """Return the spread of the shipped capture `SHOWN`, all of its heads."""
    scenario: Scenario = parse_scenario({"input": {"source": "capture", "name": SHOWN}})
    w = resolve(scenario)
    found = trained_scores(w, read_inputs(w))
    assert found is not None
    return found


def _measured(scores: F64, sink: float = -math.inf) -> tuple[float, float, float]:
    """Return variance, entropy in bits and trace of the Jacobian of one row, maybe with a sink.

    The entropy is that of the weights among the keys.
    """
    top = float(scores.max())
    below = scores - top
    p = np.exp(below)
    own = float(p.sum())
    entropy = float((p * (math.log(own) - below)).sum()) / own / math.log(2)
    p /= own + math.exp(min(sink - top, 700.0))
    return float(scores.var()), entropy, float((p * (1.0 - p)).sum())


def _spread(rows: list[tuple[float, float, float]]) -> Spread:
    values = np.array(rows)
    count = len(values)
    errors = values.std(axis=0, ddof=1) / math.sqrt(count) if count > 1 else np.full(3, np.inf)
    medians = np.median(values, axis=0)
    return Spread(*(
        Estimate(float(mean), float(error), float(median))
        for mean, error, median in zip(values.mean(axis=0), errors, medians, strict=True)
    ))  # fmt: skip
