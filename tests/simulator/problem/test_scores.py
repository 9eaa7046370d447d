"""What turns q·k into a score."""

import numpy as np
import pytest

from simulator.problem.scenario import with_values
from simulator.problem.scores import UNSCALED, Scoring
from simulator.problem.workload import resolve
from tests.helpers.runs import scenario


@pytest.mark.parametrize("number", [np.float32, np.float64])
def test_queries_and_products_become_scores(number: type[np.floating]) -> None:
    rng = np.random.default_rng(0)
    q, k = (rng.standard_normal(shape).astype(number) for shape in ((5, 7), (6, 7)))
    exact = q.astype(np.float64) @ k.astype(np.float64).T * 0.3 / 2.5
    scoring = Scoring(0.3, 2.5)
    for scores in (scoring.queries(q) @ k.T, scoring.of(q @ k.T)):
        assert scores.dtype == number
        np.testing.assert_allclose(scores, exact, atol=40 * np.finfo(number).eps)
    np.testing.assert_array_equal(UNSCALED.of(q), q)


def test_a_workloads() -> None:
    w = resolve(scenario(scale=0.75, temperature=3.0))
    assert w.scoring == w.scoring_before_softmax == Scoring(0.75, 3.0)
    assert w.scoring.factor == w.logit_scale == 0.25
    assert w.scoring.arguments == {"scale": 0.25}
    late = resolve(with_values(scenario(scale=0.75), {"faults": {"late_scale": True}}))
    assert (late.scoring, late.scoring_before_softmax) == (Scoring(0.75), UNSCALED)
