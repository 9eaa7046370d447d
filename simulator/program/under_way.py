"""Ops that are being done: the numbers that exist when a share of an op has been done.

The functions stand beside the ops and not in them, because the code panel shows the text of the
ops. A kind of op that is not listed here has no numbers between its beginning and its end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from simulator.base.matmul import matmul
from simulator.program.gradient_ops import (
    AddKeyGradient,
    AddQueryGradient,
    AddValueGradient,
    RowDots,
    WeightedMeans,
    WeightGradient,
)
from simulator.program.op import Op
from simulator.program.ops import Accumulate, MergeOutputs, MergeSum, Rescale, RowSum, Scores, over
from simulator.program.playback import rescaling
from simulator.program.state import Numbers, State, Values
from simulator.program.state_ops import (
    ReadOutput,
    ReadState,
    Recall,
    Similarities,
    SumWeights,
    UpdateState,
    with_ones,
)


@dataclass(frozen=True, slots=True)
class Sum:
    """The sum that a kind of op makes."""

    # the number of terms of each sum, from the op and the numbers before the op
    count: Callable[[Any, Numbers], int]
    # the sums of the first terms, from the op, the numbers before it and the number of terms
    first: Callable[[Any, Numbers, int], dict[str, Values]]


def terms(op: Op, before: Numbers) -> int:
    """Return how many terms an op adds up for each number; 0 if the op makes no sum."""
    found = _SUMS.get(type(op))
    return 0 if found is None else found.count(op, before)


@np.errstate(all="ignore")  # with a fault on, numbers may be infinite
def under_way(op: Op, before: Numbers, share: float) -> dict[str, Values]:
    """Return the numbers that exist when a share of an op has been done, in float64.

    An op that makes a sum has added its first terms by then.

    share: 0 to 1; with 1, the numbers that the op makes, but for rounding.
    """
    if isinstance(op, Rescale):
        return _rescaled(op, before, share)
    found = _SUMS.get(type(op))
    return {} if found is None else found.first(op, before, added(op, before, share))


def added(op: Op, before: Numbers, share: float) -> int:
    """Return how many terms have been added when a share of an op has been done."""
    count = terms(op, before)
    return min(int(share * count), count)


def _exact(values: Values) -> Values:
    return values.astype(np.float64, copy=False)


def _rescaled(op: Rescale, before: Numbers, share: float) -> dict[str, Values]:
    """Return O rescaled as far as the maximum has risen; this is no sum."""
    state = State.on_chip(**before)
    op.apply(state)
    return {"O": _exact(state.chip["factor"])[:, None] ** rescaling(share).risen * before["O"]}


def _scores(op: Scores, before: Numbers, n: int) -> dict[str, Values]:
    q, k = (_exact(before[name][:, :n]) for name in ("Q", "K"))
    return {"S": matmul(q * op.scale, k.T)}


def _row_sum(op: RowSum, before: Numbers, n: int) -> dict[str, Values]:
    part = _exact(before["P"][:, :n]).sum(axis=1)
    if op.running:
        return {"l": _exact(before["alpha"]) * before["l"] + part}
    return {"l": part, "l_tile": part} if op.whole else {"l_tile": part}


def _accumulated(op: Accumulate, before: Numbers, n: int) -> dict[str, Values]:
    product = matmul(_exact(before["P"][:, :n]), _exact(before["V"][:n]))
    if op.normalised:
        product = over(_exact(before["beta"]), _exact(before["l"]))[:, None] * product
    return {"O": before["O"] + product}


def _row_dots(op: RowDots, before: Numbers, n: int) -> dict[str, Values]:
    return {"D": (_exact(before["dO"][:, :n]) * _exact(before["O"][:, :n])).sum(axis=1)}


def _weighted_means(op: WeightedMeans, before: Numbers, n: int) -> dict[str, Values]:
    return {"D": (_exact(before["P"][:, :n]) * _exact(before["dP"][:, :n])).sum(axis=1)}


def _weight_gradient(op: WeightGradient, before: Numbers, n: int) -> dict[str, Values]:
    upstream, v = (_exact(before[name][:, :n]) for name in op.factors)
    return {"dP": matmul(upstream, v.T)}


def _over_rows(op: Op, before: Numbers, n: int) -> dict[str, Values]:
    """Return a sum over rows for each key."""
    weights, x = (_exact(before[name][:n]) for name in op.factors)
    (name,) = op.recorded
    return {name: before[name] + matmul(weights.T, x)}


def _query_gradient(op: AddQueryGradient, before: Numbers, n: int) -> dict[str, Values]:
    weights, k = (_exact(before[name]) for name in op.factors)
    return {"dQ_acc": before["dQ_acc"] + matmul(weights[:, :n], k[:n])}


def _similarities(op: Similarities, before: Numbers, n: int) -> dict[str, Values]:
    q, k = (_exact(before[name][:, :n]) for name in ("phi_Q", "phi_K"))
    return {"S": matmul(q, k.T)}


def _read_state(op: ReadState, before: Numbers, n: int) -> dict[str, Values]:
    found = matmul(_exact(before["phi_Q"][:, :n]), _exact(before["state"][:n]))
    return {"O": found[:, :-1], "l": found[:, -1]}


def _sum_of_weights(op: SumWeights, before: Numbers, n: int) -> dict[str, Values]:
    part = _exact(before["P"][:, :n]).sum(axis=1)
    return {"l": _exact(before["l"]) + part, "l_tile": part}


def _updated_state(op: UpdateState, before: Numbers, n: int) -> dict[str, Values]:
    k, v = _exact(before["phi_K"][:n]), _exact(before["V"][:n])
    return {"state": before["state"] + matmul(k.T, with_ones(v))}


def _recalled(op: Recall, before: Numbers, n: int) -> dict[str, Values]:
    return {"v_old": matmul(_exact(before["phi_K"][:, :n]), _exact(before["state"][:n]))}


def _read(op: ReadOutput, before: Numbers, n: int) -> dict[str, Values]:
    return {"O": matmul(_exact(before["phi_Q"][:, :n]), _exact(before["state"][:n]))}


def _merged_sum(op: MergeSum, before: Numbers, n: int) -> dict[str, Values]:
    return {"l": _exact(before["w"][:n]).sum(axis=0)}


def _merged_outputs(op: MergeOutputs, before: Numbers, n: int) -> dict[str, Values]:
    weights = _exact(before["w"][:n])[:, :, None]
    return {"O": (weights * before["O_partial"][:n]).sum(axis=0)}


_SUMS: dict[type[Op], Sum] = {
    Scores: Sum(lambda op, before: before["Q"].shape[1], _scores),
    RowSum: Sum(lambda op, before: before["P"].shape[1], _row_sum),
    Accumulate: Sum(lambda op, before: before["P"].shape[1], _accumulated),
    RowDots: Sum(lambda op, before: before["O"].shape[1], _row_dots),
    WeightedMeans: Sum(lambda op, before: before["P"].shape[1], _weighted_means),
    WeightGradient: Sum(lambda op, before: before["V"].shape[1], _weight_gradient),
    AddValueGradient: Sum(lambda op, before: len(before["P"]), _over_rows),
    AddKeyGradient: Sum(lambda op, before: len(before["dS"]), _over_rows),
    AddQueryGradient: Sum(lambda op, before: before["dS"].shape[1], _query_gradient),
    Similarities: Sum(lambda op, before: before["phi_Q"].shape[1], _similarities),
    ReadState: Sum(lambda op, before: before["phi_Q"].shape[1], _read_state),
    SumWeights: Sum(lambda op, before: before["P"].shape[1], _sum_of_weights),
    UpdateState: Sum(lambda op, before: len(before["phi_K"]), _updated_state),
    Recall: Sum(lambda op, before: len(before["state"]), _recalled),
    ReadOutput: Sum(lambda op, before: len(before["state"]), _read),
    MergeSum: Sum(lambda op, before: len(before["w"]), _merged_sum),
    MergeOutputs: Sum(lambda op, before: len(before["w"]), _merged_outputs),
}
