"""NSA's compressed branch: its keys, its price and its error against plain loops."""

from dataclasses import replace

import numpy as np
import pytest

from simulator.problem.hardware import time_estimate
from simulator.problem.workload import read_inputs, resolve
from simulator.study.sparse.compressed import Compression, compressed
from simulator.study.sparse.patterns import MOST_PAIRS, MOST_SCORES, Knobs
from tests.helpers.runs import scenario

SCORES = {"softcap": 1.5, "sink_logits": [0.5, 2.0, -1.0, 0.0]}


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("nk", "length", "stride"), [(40, 8, 4), (43, 6, 3), (53, 5, 2)])
def test_keys_pairs_bytes_and_error_are_those_of_plain_loops(
    causal: bool, nk: int, length: int, stride: int
) -> None:
    nq, heads, kv_heads, d = 40, 4, 2, 8
    w = resolve(scenario(nq=nq, nk=nk, heads=heads, kv_heads=kv_heads, d=d, rows=4, cols=4,
                         mask={"causal": causal}, scores=SCORES))  # fmt: skip
    inputs = read_inputs(w)
    (found,) = compressed(w, inputs, Knobs(length, 4))
    blocks = [range(n, n + length) for n in range(0, nk - length + 1, stride)]
    pairs = dense_pairs = 0
    apart = size = 0.0
    visited = set()
    for head in range(heads):
        k, v = (x[head // 2].astype(np.float64) for x in (inputs.k, inputs.v))
        for row in range(nq):
            at = row + nk - nq
            q = inputs.q[head, row].astype(np.float64) / np.sqrt(d)
            seen = [n for n, own in enumerate(blocks) if not causal or own[-1] <= at]
            every = [j for j in range(nk) if not causal or j <= at]
            pairs, dense_pairs = pairs + len(seen), dense_pairs + len(every)
            visited |= {(head, row // 4, n // 4) for n in seen}
            sink = np.exp(w.sink_logits[head])
            full = np.exp([1.5 * np.tanh(q @ k[j] / 1.5) for j in every])
            whole = sum(p * v[j] for p, j in zip(full / (full.sum() + sink), every, strict=True))
            brief = np.zeros(d)
            if seen:
                short = [q @ k[blocks[n]].mean(axis=0) for n in seen]
                short = np.exp(1.5 * np.tanh(np.array(short) / 1.5))
                parts = zip(short / (short.sum() + sink), seen, strict=True)
                brief = sum(p * v[blocks[n]].mean(axis=0) for p, n in parts)
            apart += float(((brief - whole) ** 2).sum())
            size += float((whole**2).sum())
    assert found.pairs == pytest.approx(pairs / dense_pairs)
    assert found.visited == len(visited)
    assert found.error == pytest.approx(np.sqrt(apart / size))
    # Q of row blocks that see a key, O and LSE of every row, K and V of a tile at each visit, the
    # sink of each row block; and K and V for the compression.
    lengths = [min(4, len(blocks) - 4 * n) for _, _, n in visited]
    blocks_that_see = {(head, i) for head, i, _ in visited}
    asked = len(blocks_that_see) * 4 * d + heads * nq * (d + 1) + sum(lengths) * 2 * d
    asked += heads * nq // 4
    made = kv_heads * 2 * d * (nk + len(blocks))
    assert found.figures.bytes == 4 * (asked + made)
    figures = found.figures
    assert figures.bytes == figures.read + figures.write
    keys = sum(min(4, len(blocks) - 4 * n) for _, n in {(h // 2, n) for h, _, n in visited})
    once = len(blocks_that_see) * 4 * d + heads * nq * (d + 1) + keys * 2 * d + heads
    assert figures.compulsory == 4 * (once + made)
    assert figures.time == time_estimate(w.gpu, figures.bytes, figures.flops, w.dtype)
    assert found.figures.flops == sum(4 * n * 2 * 2 * d for n in lengths)
    assert figures.time.seconds <= found.seconds < 1e-3


def test_a_block_longer_than_the_run_and_biases_have_no_price() -> None:
    w = resolve(scenario(nq=8, d=4, rows=4, cols=4))
    assert compressed(w, read_inputs(w), Knobs(9, 1)) == ()
    w = resolve(scenario(nq=8, d=4, rows=4, cols=4, scores={"alibi": True}))
    assert compressed(w, read_inputs(w), Knobs(4, 1)) == ()


def test_the_error_of_too_many_scores_is_not_asked_for() -> None:
    tokens = 2048
    w = resolve(scenario(nq=tokens, heads=64, kv_heads=1, d=1, rows=512, cols=512))
    assert tokens * tokens <= MOST_PAIRS < MOST_SCORES < w.heads * tokens * tokens
    (found,) = compressed(w, read_inputs(w), Knobs(64, 4))
    assert (found.error, found.pairs) == (None, (tokens // 32 - 1) / tokens)


def test_one_key_for_each_token_is_dense() -> None:
    w = resolve(scenario(nq=12, d=4, rows=4, cols=4, mask={"causal": True}))
    assert Compression(1, 1).count(12) == 12
    (found,) = compressed(w, read_inputs(w), Knobs(1, 1))
    assert found.pairs == 1.0
    assert found.error == pytest.approx(0.0, abs=1e-12)


def test_an_error_is_a_share_of_o_however_small_that_is() -> None:
    w = resolve(scenario(nq=16, d=4, rows=4, cols=4))
    inputs = read_inputs(w)
    errors = []
    for size in (1.0, 2.0**-20, 0.0):
        (found,) = compressed(w, replace(inputs, v=inputs.v * np.float32(size)), Knobs(4, 1))
        errors.append(found.error)
    assert errors == [pytest.approx(errors[0], rel=1e-9)] * 2 + [0.0]
