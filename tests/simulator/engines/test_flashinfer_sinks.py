"""The cases of flashinfer's tests of attention sinks, within their tolerances.

Shapes, windows and tolerances are those of flashinfer-ai/flashinfer,
tests/attention/test_attention_sink.py (prefill, incremental generation, chunked prefill); the
formula is that of its reference: ``exp(s - m) / (sum of exp(s - m) + exp(sink - m))``. Its
window_left counts the keys before a row's own. A sequence of a batch is a run of its own here, and
only causal rows have a window, because ours hides later keys as well.
"""

from itertools import product
from typing import Any

import numpy as np
import pytest

from simulator.problem.scenario import with_values
from tests.helpers.runs import scenario, trace_of

HEAD_DIM, HEADS = 128, 32
TOLERANCE = {"float16": 1e-3, "bfloat16": 1e-2}
MASKS: tuple[dict[str, Any], ...] = (
    {}, {"causal": True}, {"causal": True, "window": 129}
)  # fmt: skip
PREFILL = tuple((n, n) for n in (1, 4, 16, 128))
STEPS = tuple((1, start + step) for start in (32, 128) for step in (0, 1, 3))
CHUNKS = ((16, 144), (128, 256), (128, 384), (256, 512))
TYPES = (("float16", 8), ("bfloat16", 32))
ALGORITHMS = ("flash2", "split-kv", "flash1")
CASES = [
    (ALGORITHMS[(n + size) % 3], *lengths, mask, *kind)
    for size, lengths in enumerate((*PREFILL, *STEPS, *CHUNKS))
    for n, (mask, kind) in enumerate(product(MASKS, TYPES))
]
"""Every length with every mask and type, and with every algorithm by turns."""


def expected(q: Any, k: Any, v: Any, sinks: Any, window: int, causal: bool) -> np.ndarray:
    """Return O as flashinfer's reference has it, (heads, rows, d), in float64."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    group = len(q) // len(k)
    s = np.einsum("hid,hjd->hij", q, np.repeat(k, group, axis=0)) / np.sqrt(q.shape[2])
    i = np.arange(q.shape[1])[:, None] + k.shape[1] - q.shape[1]
    j = np.arange(k.shape[1])[None]
    seen = np.ones_like(i + j, dtype=bool)
    if causal:
        seen &= j <= i
    if window:
        seen &= i - j < window
    s = np.where(seen, s, -np.inf)
    m = s.max(axis=2, keepdims=True)
    p = np.exp(s - m)
    total = p.sum(axis=2, keepdims=True) + np.exp(sinks[:, None, None] - m)
    o: np.ndarray = np.einsum("hij,hjd->hid", p / total, np.repeat(v, group, axis=0))
    return o


@pytest.mark.sweep(keep=12)
@pytest.mark.parametrize(("algorithm", "nq", "nk", "mask", "dtype", "kv_heads"), CASES, ids=str)
def test_sinks_are_those_of_flashinfer(algorithm, nq, nk, mask, dtype, kv_heads):
    sinks = np.random.default_rng(42).random(HEADS).astype(np.float32) * 5
    said = scenario(
        algorithm, nq=nq, nk=nk, d=HEAD_DIM, heads=HEADS, kv_heads=kv_heads, rows=64, cols=64,
        dtype=dtype, seed=42, mask=mask, scores={"sink_logits": sinks.tolist()},
    )  # fmt: skip
    if algorithm == "split-kv":
        said = with_values(said, {"tiling": {"splits": 3}})
    trace = trace_of(said)
    w = trace.workload.as_algorithm("flash2")
    raw = w.posed(trace.inputs)
    want = expected(raw.q, raw.k, raw.v, sinks, mask.get("window", 0), bool(mask.get("causal")))
    near = TOLERANCE[dtype]
    np.testing.assert_allclose(trace.output, want, rtol=near, atol=near)
