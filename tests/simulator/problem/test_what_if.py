"""A scenario that says other than its file, and asks what would be."""

from typing import Any

import numpy as np
import pytest

from simulator.base.assets import SCENARIOS
from simulator.base.dtypes import round_to
from simulator.problem.scenario import Scenario, load_scenario, with_values
from simulator.problem.workload import read_inputs, resolve
from simulator.run.cosimulation import verify
from simulator.run.trace import simulate

DEMO = load_scenario(SCENARIOS / "flash2.toml")


def what_if(**changes: Any) -> Scenario:
    return with_values(DEMO, {"input": {"what_if": True}, **changes})


def test_a_scenario_that_agrees_is_no_what_if() -> None:
    w = resolve(what_if())
    assert w.what_if == ()
    np.testing.assert_array_equal(read_inputs(w).q, read_inputs(resolve(DEMO)).q)


@pytest.mark.parametrize(
    ("changes", "keys"),
    [
        ({"mask": {"causal": True}}, ("mask.causal",)),
        ({"attention": {"scale": 0.5}}, ("attention.scale",)),
        ({"attention": {"dtype": "bfloat16"}}, ("attention.dtype",)),
        (
            {"attention": {"dtype": "bfloat16"}, "mask": {"causal": True}},
            ("attention.dtype", "mask.causal"),
        ),
    ],
)
def test_another_mask_scale_or_type_is_as_the_scenario_says(
    changes: dict[str, Any], keys: tuple[str, ...]
) -> None:
    trace, own = simulate(what_if(**changes)), read_inputs(resolve(DEMO))
    w = trace.workload
    assert w.what_if == keys
    assert w.tokens == resolve(DEMO).tokens
    for ours, theirs in zip((trace.inputs.q, trace.inputs.v), (own.q, own.v), strict=True):
        np.testing.assert_array_equal(ours, round_to(theirs, w.dtype))
    assert w.dtype == changes.get("attention", {}).get("dtype", "float16")
    assert w.mask.causal == bool(changes.get("mask"))
    assert w.scale == changes.get("attention", {}).get("scale", resolve(DEMO).scale)
    assert verify(trace).difference is None
    assert trace.summary()["what_if"] == list(keys)


@pytest.mark.parametrize(
    "sizes",
    [{"head_dim": 128}, {"seqlen_q": 64, "seqlen_k": 64}, {"kv_heads": 3}, {"value_dim": 8}],
)
def test_other_sizes_are_random_numbers_of_that_shape(sizes: dict[str, int]) -> None:
    w = resolve(what_if(attention=sizes))
    assert w.what_if == tuple(f"attention.{name}" for name in sizes)
    assert (w.file, w.tokens, w.dtype) == (None, (), "float16")
    heads, kv_heads = w.input_heads
    rng, found = np.random.default_rng(0), read_inputs(w)
    for ours, shape in ((found.q, (heads, w.queries, w.head_dim)),
                        (found.k, (kv_heads, w.seqlen_k, w.head_dim))):  # fmt: skip
        drawn = rng.standard_normal(shape).astype(np.float32)
        picked = list(w.picked) if shape[0] == heads else sorted(set(w.kv_head_of))
        if len(ours) == len(drawn):
            picked = list(range(len(drawn)))
        np.testing.assert_array_equal(ours, round_to(drawn, "float16")[picked])
