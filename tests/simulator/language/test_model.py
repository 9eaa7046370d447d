"""The language model: what it computes is attention, with a cache as without one."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from simulator.language.continuation import continued
from simulator.language.model import Cache, LanguageModel, read_model, write_model
from simulator.language.tokenizer import Tokenizer
from tests.helpers.small_language_model import MERGES, SHAPE, weights_of

TOKENS = [0, *range(40, 51), 40, 41]


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return LanguageModel(SHAPE, weights_of(SHAPE), Tokenizer(MERGES))


def test_each_layer_gives_the_numbers_of_its_heads(model: LanguageModel) -> None:
    found, n = model.run(TOKENS), len(TOKENS)
    assert found.logits.shape == (n, SHAPE.vocabulary)
    for layer in range(SHAPE.layers):
        assert found.q[layer].shape == (SHAPE.heads, n, SHAPE.dim)
        assert found.k[layer].shape == found.v[layer].shape == (SHAPE.kv_heads, n, SHAPE.dim)
        assert found.weights[layer].shape == (SHAPE.heads, n, n)


def test_weights_are_the_softmax_of_what_a_row_may_see(model: LanguageModel) -> None:
    found = model.run(TOKENS)
    for layer in range(SHAPE.layers):
        for head in range(SHAPE.heads):
            q, k = found.q[layer][head], found.k[layer][head // 3]
            for row in range(len(TOKENS)):
                e = np.exp(k[: row + 1].astype(float) @ q[row] / np.sqrt(SHAPE.dim))
                whole = found.weights[layer][head, row]
                np.testing.assert_allclose(whole[: row + 1], e / e.sum(), rtol=2e-4, atol=1e-6)
                assert not whole[row + 1 :].any()


def test_a_product_of_turned_rows_depends_on_their_distance_alone(model: LanguageModel) -> None:
    # In the first layer nothing but the token and its place is known.
    found = model.run([0, 40, 41, 42, 43, 44, 40, 41])
    q, k = found.q[0][0], found.k[0][0]
    assert q[2] @ k[1] == pytest.approx(float(q[7] @ k[6]), rel=1e-4)
    assert q[2] @ k[1] != pytest.approx(float(q[7] @ k[1]), rel=1e-2)


@pytest.mark.parametrize("cuts", [(5,), (1, 2, 3), (4, 9, 10), tuple(range(1, 14))])
def test_with_a_cache_it_computes_the_same(model: LanguageModel, cuts: tuple[int, ...]) -> None:
    whole, cache = model.run(TOKENS), Cache()
    ends = (0, *cuts, len(TOKENS))
    for first, end in pairwise(ends):
        part = model.run(TOKENS[first:end], cache)
        assert len(cache) == end
        np.testing.assert_allclose(part.logits, whole.logits[first:end], rtol=1e-3, atol=1e-3)
        for layer in range(SHAPE.layers):
            np.testing.assert_allclose(
                part.weights[layer], whole.weights[layer][:, first:end, :end], atol=1e-5
            )
    last = model.run(TOKENS, last=True)
    np.testing.assert_allclose(last.logits, whole.logits[-1:], rtol=1e-5)


def test_what_comes_later_changes_nothing_before(model: LanguageModel) -> None:
    whole, part = model.run(TOKENS), model.run(TOKENS[:6])
    np.testing.assert_allclose(part.logits, whole.logits[:6], rtol=1e-3, atol=1e-3)


def test_a_text_goes_on_the_same_with_and_without_a_cache(model: LanguageModel) -> None:
    for temperature in (0.0, 0.8):
        kept, anew = (continued(model, TOKENS, temperature, 5, cached=c) for c in (True, False))
        for _ in range(30):
            one, other = next(kept), next(anew)
            assert one.token == other.token
            assert one.probabilities.sum() == pytest.approx(1)


def test_the_coldest_draw_is_the_most_probable_token(model: LanguageModel) -> None:
    drawn = next(continued(model, TOKENS, 0.0))
    assert drawn.token == model.run(TOKENS).logits[-1].argmax() == drawn.probabilities.argmax()
    seeds = {next(continued(model, TOKENS, 50.0, seed)).token for seed in range(8)}
    assert len(seeds) > 1


def test_a_file_holds_the_whole_model(model: LanguageModel, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    write_model(path, SHAPE, weights_of(SHAPE), model.tokenizer)
    read = read_model(path)
    assert read.shape == SHAPE
    assert read.tokenizer.merges == MERGES
    np.testing.assert_array_equal(read.run(TOKENS).logits, model.run(TOKENS).logits)
