"""Jobs of all heads of the model that reads a typed text."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simulator.problem import sentence
from simulator.problem.masks import Mask
from simulator.problem.scenario import Scenario, parse_scenario
from simulator.study.attention_part import fitting_part
from simulator.study.jobs import report
from simulator.study.jobs.jobs import head_distances, head_jobs
from simulator.study.jobs.report import HeadReport, head_report
from tests.helpers.runs import trace_of
from tests.helpers.small_language_model import SHAPE, put_in_place, weights_of


@pytest.fixture(autouse=True)
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_in_place(tmp_path, monkeypatch)


def typed(**tables: Any) -> Scenario:
    said = {"source": "sentence", "text": "the cat, the cat", "layer": 1}
    return parse_scenario({**tables, "input": {**said, **tables.pop("input", {})}})


def report_of(scenario: Scenario) -> HeadReport:
    w, inputs = trace_of(scenario).single_heads
    return head_report(w, inputs, fitting_part(w, 0, 0))


@pytest.mark.parametrize("heads", ["all", [4]])
def test_heads_of_all_layers_have_the_scores_of_their_weights(heads: Any) -> None:
    found = report_of(typed(input={"head": heads}))
    whole = sentence.computed(typed().input)
    weights = np.concatenate(whole.weights)
    w = trace_of(typed()).workload
    expected = head_jobs(weights, Mask(14, 14, causal=True), range(14), w.tokens)
    assert found.heads == tuple((n, head) for n in range(3) for head in range(6))
    np.testing.assert_array_equal(found.jobs.scores, expected.scores)
    np.testing.assert_array_equal(found.distances, head_distances(weights))
    assert found.layers
    assert not found.part


def test_without_a_head_its_share_of_y_is_missing() -> None:
    found, whole = report_of(typed()), sentence.computed(typed().input)
    wo = weights_of(SHAPE)["blocks.2.o"].T.astype(float)
    v = np.repeat(whole.v[2], 3, axis=0).astype(float)
    parts = [
        whole.weights[2][head] @ v[head] @ wo[head * SHAPE.dim : (head + 1) * SHAPE.dim]
        for head in range(SHAPE.heads)
    ]
    for head in range(SHAPE.heads):
        share = np.linalg.norm(parts[head]) / np.linalg.norm(sum(parts))
        assert found.shares[12 + head] == pytest.approx(share, rel=1e-3)


@pytest.mark.parametrize(
    "tables",
    [
        {"attention": {"temperature": 2.0}},
        {"mask": {"window": 3}},
        {"scores": {"softcap": 5.0}},
        {"mask": {"causal": False}, "input": {"what_if": True}},
    ],
)
def test_a_run_that_is_not_as_the_model_computes_has_its_own_heads(tables: dict[str, Any]) -> None:
    assert report_of(typed(**tables)).heads == tuple((None, head) for head in range(6))


def test_of_many_heads_those_are_told_that_do_most(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = report_of(typed())
    monkeypatch.setattr(report, "MOST_HEADS", 8)
    found = report_of(typed())
    assert "18 heads" in found.part
    assert len(found.heads) <= 8
    at = [whole.heads.index(head) for head in found.heads]
    assert at == sorted(at)
    for name in ("previous", "first", "same", "induction"):
        assert found.jobs.of(name).max() == whole.jobs.of(name).max()
    np.testing.assert_array_equal(found.distances, whole.distances[np.ix_(at, at)])
    assert found.shares is not None
    np.testing.assert_array_equal(found.shares, whole.shares[at])
    assert replace(found, part="").layers
