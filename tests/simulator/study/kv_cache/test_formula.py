"""The formula of the cache beside its exact counts, and GPUs that hold it."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.problem.hardware import gpus
from simulator.problem.models import models, with_shapes
from simulator.study.heads.sharing import kv_head_counts
from simulator.study.kv_cache.counts import CONVENTIONS, ELEMENT_TYPES, cache_bytes, weight_bytes
from simulator.study.kv_cache.formula import FormulaTerm, cache_formula
from simulator.study.kv_cache.memory import gpus_for
from tests.helpers.refused import refused


@given(
    st.sampled_from(list(models())), st.integers(0, 2**20), st.sampled_from(ELEMENT_TYPES),
    st.integers(1, 64), st.sampled_from([1, 16, 48]), st.sampled_from(CONVENTIONS),
)  # fmt: skip
def test_the_product_is_the_count(name, tokens, dtype, batch, page, convention):
    model = models()[name]
    found = cache_formula(model, tokens, dtype, batch, page, convention)
    counts = cache_bytes(model, tokens, dtype, batch, page)
    assert found.total == getattr(counts, convention)
    assert sum(term.layers for term in found.terms) == model.layers
    assert [each.bytes for each in found.factors].count(True) == 1


def test_the_factors_of_plain_rows_are_named():
    found = cache_formula(models()["Llama-3-8B"], 10, "int8", 3)
    assert [(each.name, each.value, each.bytes) for each in found.factors] == [
        ("K and V", 2, False), ("KV heads", 8, False), ("head size", 128, False),
        ("int8", 1, True), ("conversations", 3, False),
    ]  # fmt: skip
    latent = cache_formula(models()["DeepSeek-V3"], 10)
    assert [each.name for each in latent.factors] == ["latent + rope", "float16", "conversations"]
    assert [each.bytes for each in latent.factors] == [False, True, False]


def test_an_odd_row_of_half_bytes_is_a_factor_of_its_own():
    model = replace(models()["DeepSeek-V3"], rope_dim=63)
    found = cache_formula(model, 10, "int4")
    assert found.factors[0].value == 288  # of 575 numbers
    assert found.factors[0].bytes
    assert found.total == cache_bytes(model, 10, "int4").logical


def test_layers_with_a_window_are_a_term_of_their_own():
    model = models()["Gemma-3-27B"]
    assert model.windowed_layers
    found = cache_formula(model, 100_000)
    assert found.terms == (
        FormulaTerm(model.layers - model.windowed_layers, 100_000),
        FormulaTerm(model.windowed_layers, model.window),
    )
    assert len(cache_formula(model, 100_000, convention="logical").terms) == 1


def test_a_million_tokens_of_70_billion_parameters_with_all_heads():
    """Of 80 layers and 64 KV heads: 10.49 TB are four sequences in float16, or two in float32.

    No element type gives that for one sequence: it would need eight bytes for a number.
    """
    model = with_shapes(models()["Llama-2-70B"], 80, 64, 128)
    one = {dtype: cache_formula(model, 10**6, dtype).total for dtype in ELEMENT_TYPES}
    assert one["float16"] == 2 * 80 * 64 * 128 * 10**6 * 2 == 2_621_440_000_000
    assert one["float32"] == 5_242_880_000_000
    asked = 10_485_760_000_000
    assert cache_formula(model, 10**6, "float16", 4).total == asked
    assert cache_formula(model, 10**6, "float32", 2).total == asked
    assert asked not in one.values()
    assert asked == 2 * 80 * 64 * 128 * 10**6 * 8
    h100 = gpus()["H100-SXM"]
    assert gpus_for(one["float16"], h100) == 33
    assert gpus_for(asked, h100) == 132


@given(st.integers(0, 10**15), st.sampled_from(list(gpus())))
def test_gpus_are_as_few_as_hold_it(count, name):
    gpu = gpus()[name]
    found = gpus_for(count, gpu)
    assert found * gpu.memory_bytes >= count
    assert found == 1 or (found - 1) * gpu.memory_bytes < count


@given(st.integers(1, 1000), st.sampled_from(list(gpus())))
def test_a_cache_may_fill_its_gpus_exactly(many, name):
    gpu = gpus()[name]
    assert gpus_for(many * gpu.memory_bytes, gpu) == many
    assert gpus_for(many * gpu.memory_bytes + 1, gpu) == many + 1


@given(st.sampled_from(list(models())), st.data())
def test_other_shapes_are_marked_and_have_no_known_weights(name, data):
    model = models()[name]
    kv = data.draw(st.sampled_from(kv_head_counts(model.heads)))
    layers, width = data.draw(st.integers(1, 200)), data.draw(st.integers(1, 300))
    found = with_shapes(model, layers, None if model.is_latent else kv, width)
    assert found.name == f"{name}, changed"
    assert (found.layers, found.head_dim) == (layers, width)
    assert weight_bytes(found) is None
    assert bool(found.windowed_layers) == bool(found.window)
    share = Fraction(model.windowed_layers, model.layers)
    assert abs(found.windowed_layers - share * layers) <= Fraction(1, 2)
    assert with_shapes(model, model.layers, model.kv_heads, model.head_dim) is model


@pytest.mark.parametrize("shapes", [(0, 8, 128), (32, 7, 128), (32, 8, 0), (32, 8, 5000)])
def test_shapes_that_no_model_has_are_refused(shapes):
    assert refused(with_shapes, models()["Llama-3-8B"], *shapes)
