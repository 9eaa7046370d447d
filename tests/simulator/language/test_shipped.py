"""The sentence model that ships: its size, what its heads do, how it goes on."""

from itertools import islice

import numpy as np
import pytest

from simulator.language.continuation import continued
from simulator.language.model import LanguageModel
from simulator.language.models import MODELS, WEIGHTS, opened
from simulator.language.tokenizer import START
from simulator.problem.scenario import parse_scenario
from simulator.study.attention_part import fitting_part
from simulator.study.jobs.report import HeadReport, head_report
from tests.helpers.runs import trace_of
from tests.training.measure import OWN, PROMPTS, names, tired

WORDS = 50
SAID = "cat river stone apple horse window paper garden moon bread ship table letter cloud"


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return opened(MODELS["own"])


def of_random_tokens(model: LanguageModel) -> tuple[np.ndarray, np.ndarray]:
    """Weights (layers, heads, n, n) and logits of tokens that are drawn, then said again."""
    drawn = np.random.default_rng(0).integers(257, model.shape.vocabulary, WORDS)
    found = model.run([START, *drawn, *drawn])
    return np.stack(found.weights), found.logits


def test_it_is_small() -> None:
    assert WEIGHTS.stat().st_size <= 6_000_000


def test_two_heads_find_what_followed_the_same_token_before(model: LanguageModel) -> None:
    weights, _ = of_random_tokens(model)
    again = np.arange(WORDS + 1, 2 * WORDS + 1)
    scores = weights[:, :, again, again - WORDS + 1].mean(-1)
    assert (scores >= 0.8).sum() >= 2, scores.round(2)


def test_what_was_said_once_is_said_again(model: LanguageModel) -> None:
    _, logits = of_random_tokens(model)
    drawn = np.random.default_rng(0).integers(257, model.shape.vocabulary, WORDS)
    assert (logits[WORDS + 1 : -1].argmax(-1) == drawn[1:]).mean() >= 0.9


def test_heads_look_at_the_previous_and_at_the_first_token(model: LanguageModel) -> None:
    scores = []
    for said in OWN:
        weights = np.stack(model.run(model.tokenizer.encode(said)).weights)
        rows = np.arange(2, weights.shape[-1])
        previous, first = weights[:, :, rows, rows - 1], weights[:, :, rows, 0]
        scores.append([previous.mean(-1), first.mean(-1)])
    of_previous, of_first = np.mean(scores, 0)
    assert of_previous.max() >= 0.8, of_previous.round(2)
    assert of_first.max() >= 0.5, of_first.round(2)


def test_it_knows_what_was_tired_and_who_got_the_book(model: LanguageModel) -> None:
    assert tired(model, 60) >= 0.9
    assert names(model, 60) >= 0.8


def of_all_heads(text: str) -> HeadReport:
    said = {"source": "sentence", "text": text}
    w, inputs = trace_of(parse_scenario({"input": said})).single_heads
    return head_report(w, inputs, fitting_part(w, 0, 0))


def test_jobs_finds_the_heads_of_a_typed_text() -> None:
    found = of_all_heads(f"{SAID} {SAID}")
    assert len(found.heads) == 36
    induction, previous = (found.jobs.of(name) for name in ("induction", "previous"))
    assert (induction >= 0.8).sum() >= 2, induction.round(2)
    assert (previous >= 0.8).sum() >= 1, previous.round(2)
    first = of_all_heads(OWN[0]).jobs.of("first")
    assert (first >= 0.5).sum() >= 1, first.round(2)


@pytest.mark.long
@pytest.mark.parametrize("prompt", PROMPTS)
def test_it_goes_on_the_same_with_and_without_a_cache(model: LanguageModel, prompt: str) -> None:
    tokens = model.tokenizer.encode(prompt)
    kept, anew = (
        [each.token for each in islice(continued(model, tokens, 0.0, cached=cached), 200)]
        for cached in (True, False)
    )
    assert kept == anew
