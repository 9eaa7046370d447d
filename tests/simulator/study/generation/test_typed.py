"""A typed text that goes on: tokens, probabilities and rows are those of the model."""

import math
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simulator.base.errors import InputError
from simulator.language.continuation import continued, probabilities
from simulator.problem.scenario import Scenario, parse_scenario
from simulator.problem.sentence import sentence_model
from simulator.study.generation.steps import TOKENS, generation_of
from simulator.study.generation.typed import GREEDY, TOP, WARMER
from tests.helpers.refused import refused
from tests.helpers.runs import scenario, trace_of
from tests.helpers.small_language_model import put_in_place
from tests.simulator.lesson.test_lesson_numbers import computed


@pytest.fixture(autouse=True)
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_in_place(tmp_path, monkeypatch)


def typed(**tables: Any) -> Scenario:
    said = {"source": "sentence", "text": "the cat, the mat", "layer": 1, **tables.pop("input", {})}
    return parse_scenario({"tiling": {"rows": 4, "cols": 4}, **tables, "input": said})


@pytest.mark.long
@pytest.mark.parametrize(("draw", "temperature"), [("0", 0.8), ("3", 0.8), (GREEDY, 0.0)])
def test_what_follows_is_what_the_model_draws(draw: str, temperature: float) -> None:
    trace = trace_of(typed())
    found, model = generation_of(trace, 2, draw=draw), sentence_model(typed())
    said, tokens = found.continuation, model.tokenizer.encode("the cat, the mat")
    seed = int(draw) if draw.isdecimal() else 0
    drawn = list(islice(continued(model, tokens, temperature, seed, cached=False), TOKENS))
    assert [each.text for each in said.tokens] == [model.tokenizer.label(d.token) for d in drawn]
    for each, one in zip(said.tokens, drawn, strict=True):
        assert each.chance == pytest.approx(one.probabilities[one.token], rel=1e-2)
        assert each.top[each.place][1] == each.chance
        assert len(each.top) == TOP
        best = np.sort(one.probabilities)[::-1][: TOP - 1]
        assert [chance for _, chance in each.top[: TOP - 1]] == pytest.approx(best, rel=1e-2)
    after = model.run(tokens).logits[-1]
    largest = [probabilities(after, t).max() for t in WARMER]
    assert said.tokens[0].warmer == pytest.approx(largest, rel=1e-2)
    assert found.workload.tokens == (*trace.workload.tokens, *(each.text for each in said.tokens))
    assert [len(step.rows) for step in found.steps] == [len(tokens)] + [1] * TOKENS
    assert said.apart < 1e-4  # its random weights make large logits


@pytest.mark.long
def test_the_loss_is_that_of_the_text() -> None:
    said = generation_of(trace_of(typed()), 0).continuation
    model = sentence_model(typed())
    tokens = model.tokenizer.encode("the cat, the mat")
    p = [probabilities(model.run(tokens[:n]).logits[-1])[tokens[n]] for n in range(1, len(tokens))]
    assert said.loss == pytest.approx(-np.log(p).mean(), rel=1e-4)
    assert said.parameters == model.shape.parameters


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("head", [0, 4])
def test_weights_of_the_steps_are_those_of_the_model(head: int) -> None:
    found, model = generation_of(trace_of(typed()), head), sentence_model(typed())
    first = len(model.tokenizer.encode("the cat, the mat"))
    tokens = model.tokenizer.encode("the cat, the mat")
    drawn = islice(continued(model, tokens, 0.8, 0), TOKENS)
    whole = model.run([*tokens, *(each.token for each in drawn)])
    np.testing.assert_allclose(found.weights, whole.weights[1][head], atol=1e-4)
    np.testing.assert_allclose(found.k, whole.k[1][head // 3], atol=1e-5)
    assert found.steps[0].keys == first
    assert found.apart.max() < 1e-4


@pytest.mark.long
def test_picked_heads_and_packed_ones_keep_their_numbers() -> None:
    whole = generation_of(trace_of(typed()), 4)
    picked = generation_of(trace_of(typed(input={"head": [3, 4]})), 1)
    packed = generation_of(trace_of(typed(attention={"algorithm": "split-kv"})), 4)
    np.testing.assert_array_equal(picked.weights, whole.weights)
    np.testing.assert_array_equal(packed.weights, whole.weights)


@pytest.mark.long
def test_captions_have_the_tokens_of_the_text_and_of_what_follows() -> None:
    assert computed('generated("prompt")', typed()) == 14
    assert computed('generated("tokens")', typed()) == TOKENS
    said = generation_of(trace_of(typed()), 0).continuation
    assert computed("generated_chance(2)", typed()) == said.tokens[1].chance
    assert "token" in refused(computed, "generated_chance(65)", typed())
    with pytest.raises(InputError, match="a run of a typed text"):
        computed("generated_chance(1)", scenario("flash2", nq=9, d=3))


@pytest.mark.long
def test_a_text_of_nothing_but_its_start_has_no_loss() -> None:
    said = generation_of(trace_of(typed(input={"text": "\0"})), 0).continuation
    assert not math.isinf(said.loss)
