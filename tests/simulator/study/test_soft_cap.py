"""What a soft-cap does to a row: the same as plain NumPy, of the keys that the row sees."""

import numpy as np
import pytest

from simulator.problem.scenario import parse_scenario
from simulator.study.sqrt_d.soft_cap import SUPPOSED, capped_row
from tests.helpers.runs import trace_of

LONG = {"attention": {"seqlen_q": 1000, "head_dim": 4}}


@pytest.mark.parametrize("cap", [0.0, 3.0])
def test_scores_of_a_row_before_and_after(cap):
    attention = {"heads": 4, "kv_heads": 2, "seqlen_q": 12, "head_dim": 8, "temperature": 0.5}
    run = {"attention": attention, "mask": {"causal": True}, "scores": {"softcap": cap}}
    w, inputs = trace_of(parse_scenario(run)).single_heads
    found = capped_row(w, inputs, 3, 7)
    assert found.keys == tuple(range(8))
    assert found.own == bool(cap)
    before = inputs.k[1, :8].astype(np.float64) @ inputs.q[3, 7] / np.sqrt(8) / 0.5
    np.testing.assert_allclose(found.before, before)
    c = cap or SUPPOSED
    np.testing.assert_allclose(found.after, c * np.tanh(before / c))


def test_keys_of_a_long_row_are_evenly_spread():
    w, inputs = trace_of(parse_scenario(LONG)).single_heads
    found = capped_row(w, inputs, 0, 0)
    assert len(found.keys) == 256
    assert (found.keys[0], found.keys[-1]) == (0, 999)
