"""The spread of a trained layer's scores beside float64 by hand."""

import math

import numpy as np
import pytest

from simulator.problem.scenario import parse_scenario
from simulator.problem.workload import read_inputs, resolve
from simulator.study.sqrt_d.trained_scores import SHOWN, shipped_scores, trained_scores


def found(**tables):
    w = resolve(parse_scenario(tables))
    inputs = read_inputs(w)
    return w, inputs, trained_scores(w, inputs)


@pytest.mark.parametrize("mask", [{}, {"window": 5}, {"causal": True}], ids=str)
def test_rows_one_by_one(mask: dict[str, object]) -> None:
    attention = {"heads": 4, "kv_heads": 2, "seqlen_q": 12, "head_dim": 8, "scale": 0.5}
    _, inputs, spread = found(attention=attention, mask=mask)
    by_hand, pairs = [], 0
    for head in range(4):
        for row in range(12):
            keys = [
                j for j in range(12)
                if (not mask.get("causal") or j <= row)
                and (not mask.get("window") or abs(row - j) < 5)
            ]  # fmt: skip
            if len(keys) < 2:
                continue
            pairs += len(keys)
            q, k = inputs.q[head, row].astype(float), inputs.k[head // 2].astype(float)
            each = []
            for factor in (1.0, 0.5):
                scores = [factor * sum(q * k[j]) for j in keys]
                total = sum(math.exp(s) for s in scores)
                p = [math.exp(s) / total for s in scores]
                entropy = -sum(x * math.log2(x) for x in p)
                each.append((np.var(scores), entropy, sum(x * (1 - x) for x in p)))
            by_hand.append(each)
    values = np.array(by_hand)
    assert spread.rows == len(values)
    for n, which in enumerate((spread.plain, spread.scaled)):
        for m, estimate in enumerate((which.variance, which.entropy, which.gradient)):
            assert estimate.mean == pytest.approx(values[:, n, m].mean())
            assert estimate.median == pytest.approx(np.median(values[:, n, m]))
    assert spread.scale == 0.5
    assert spread.rows * spread.keys == pytest.approx(pairs)


def test_a_row_that_sees_one_key_has_no_spread() -> None:
    assert found(attention={"seqlen_q": 1, "seqlen_k": 1, "head_dim": 4})[2] is None


def test_the_shipped_layer_is_not_random() -> None:
    """Random vectors would have variance d; what this layer has learned spreads farther."""
    spread = shipped_scores()
    assert (spread.name, spread.d, spread.heads) == ("all-MiniLM-L6-v2, layer 2", 32, 12)
    assert spread.name.endswith(SHOWN[-1])
    assert spread.plain.variance.mean > 1.5 * spread.d
    assert spread.scaled.variance.mean == pytest.approx(
        spread.plain.variance.mean * spread.scale**2
    )


def test_a_soft_cap_and_a_bias_are_in_what_the_layer_uses() -> None:
    attention = {"heads": 2, "seqlen_q": 30, "head_dim": 32}
    plain = found(attention=attention)[2]
    capped = found(attention=attention, scores={"softcap": 0.5})[2]
    biased = found(attention=attention, scores={"alibi": True})[2]
    assert plain.plain == capped.plain == biased.plain
    assert capped.scaled.variance.mean < 0.5**2 < plain.scaled.variance.mean
    assert biased.scaled.variance.mean > plain.scaled.variance.mean


def test_of_a_long_input_some_rows_are_taken() -> None:
    spread = found(attention={"seqlen_q": 3000, "head_dim": 4})[2]
    assert spread.rows == 2**20 // 3000


def test_a_sink_takes_its_share_of_the_weights() -> None:
    attention = {"heads": 2, "seqlen_q": 7, "head_dim": 4, "scale": 0.5}
    sinks = [1.5, -2.0]
    _, inputs, spread = found(attention=attention, scores={"sink_logits": sinks})
    without = found(attention=attention)[2]
    measured = []
    for head, row in np.ndindex(2, 7):
        products = inputs.k[head].astype(float) @ inputs.q[head, row].astype(float)
        total = sum(math.exp(0.5 * s) for s in products) + math.exp(sinks[head])
        p = [math.exp(0.5 * s) / total for s in products]
        among = [x / sum(p) for x in p]
        measured.append((-sum(x * math.log2(x) for x in among), sum(x * (1 - x) for x in p)))
    entropy, gradient = np.mean(measured, axis=0)
    assert spread.scaled.entropy.mean == pytest.approx(entropy)
    assert spread.scaled.gradient.mean == pytest.approx(gradient)
    assert spread.scaled.variance == without.scaled.variance
    assert spread.plain == without.plain
