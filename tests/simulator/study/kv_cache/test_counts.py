"""The KV cache: published sizes, and a sum over layers and tokens that knows no formula."""

from fractions import Fraction
from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator import InputError
from simulator.problem.hardware import gpus
from simulator.problem.models import AttentionModel, models, with_kv_heads
from simulator.study.kv_cache.counts import (
    ELEMENT_BITS,
    ELEMENT_TYPES,
    MOST_TOKENS,
    bytes_per_token,
    cache_bytes,
    cache_curve,
    decode_step,
    deepseek_latent,
    fit,
    layer_groups,
    weight_bytes,
)
from tests.helpers.refused import refused


@st.composite
def shapes(draw: st.DrawFn) -> AttentionModel:
    """Draw small models, windowed or not, with MLA or not."""
    kv_heads = draw(st.integers(1, 4))
    layers = draw(st.integers(1, 5))
    windowed = draw(st.integers(0, layers))
    latent = draw(st.booleans())
    return AttentionModel(
        name="drawn",
        layers=layers,
        heads=kv_heads * draw(st.integers(1, 3)),
        head_dim=draw(st.integers(1, 9)),
        kv_heads=None if latent else kv_heads,
        latent_dim=draw(st.integers(1, 20)) if latent else None,
        rope_dim=draw(st.integers(0, 5)) if latent else None,
        windowed_layers=windowed,
        window=draw(st.integers(1, 30)) if windowed else 0,
    )


TOKENS = st.integers(0, 50)
TYPES = st.sampled_from(ELEMENT_TYPES)


def counted(model: AttentionModel, tokens: int, dtype: str, batch: int, page: int) -> dict:
    """Count a cache token by token: what each layer of each sequence still holds at the end."""
    totals = {"logical": 0, "window_capped": 0, "allocated": 0}
    for _ in range(batch):
        for layer in range(model.layers):
            window = model.window if layer < model.windowed_layers else None
            numbers = []
            pages = 0
            held = 0
            for token in range(tokens):
                if model.latent_dim is None:
                    row = sum(model.head_dim for _ in range(model.kv_heads) for _ in "KV")
                else:
                    row = model.latent_dim + model.rope_dim
                size = ceil(Fraction(row) * {"float32": 4, "float16": 2, "bfloat16": 2, "fp8": 1,
                                             "int8": 1, "int4": Fraction(1, 2)}[dtype])  # fmt: skip
                numbers.append(size)
                seen_at_the_end = window is None or tokens - token <= window
                totals["logical"] += size
                if seen_at_the_end:
                    totals["window_capped"] += size
                    if held % page == 0:
                        pages += 1
                    held += 1
            totals["allocated"] += pages * page * (numbers[0] if numbers else 0)
    return totals


@given(shapes(), TOKENS, TYPES, st.integers(1, 3), st.integers(1, 20))
def test_bytes_equal_a_sum_over_layers_and_tokens(model, tokens, dtype, batch, page):
    cache = cache_bytes(model, tokens, dtype, batch, page)
    expected = counted(model, tokens, dtype, batch, page)
    assert {name: getattr(cache, name) for name in expected} == expected


@given(shapes(), TOKENS, TYPES, st.integers(1, 6), st.integers(1, 20))
def test_how_the_three_conventions_lie(model, tokens, dtype, batch, page):
    cache = cache_bytes(model, tokens, dtype, batch, page)
    assert cache.logical >= cache.window_capped
    assert cache.allocated >= cache.window_capped
    groups = layer_groups(model, dtype)
    assert cache.allocated - cache.window_capped < batch * sum(g.row_bytes * page for g in groups)
    unpaged = cache_bytes(model, tokens, dtype, batch, 1)
    assert unpaged.allocated == unpaged.window_capped == cache.window_capped
    if not model.windowed_layers:
        assert cache.logical == cache.window_capped


@given(shapes(), st.lists(TOKENS, max_size=8), TYPES, st.integers(1, 5), st.integers(1, 20))
def test_curves_are_the_single_counts(model, tokens, dtype, batch, page):
    curve = cache_curve(model, tokens, dtype, batch, page)
    single = [cache_bytes(model, n, dtype, batch, page) for n in tokens]
    assert curve.tokens.tolist() == tokens
    for name in ("logical", "window_capped", "allocated"):
        values = getattr(curve, name)
        assert values.tolist() == [getattr(cache, name) for cache in single]
        assert not values.flags.writeable


def test_what_is_not_said_is_one_sequence_in_float16_in_pages_of_sixteen_tokens():
    model = models()["Llama-3-8B"]
    for tokens in (0, 1, 16, 17):
        said = cache_bytes(model, tokens, "float16", 1, 16)
        assert cache_bytes(model, tokens) == said
        curve = cache_curve(model, [tokens])
        found = (curve.logical[0], curve.window_capped[0], curve.allocated[0])
        assert found == (said.logical, said.window_capped, said.allocated)
    assert cache_curve(model, []).tokens.dtype == np.int64
    assert cache_curve(model, np.array([3], dtype=np.int16)).tokens.dtype == np.int64
    assert decode_step(model, 5) == decode_step(model, 5, "float16", 1)
    gpu = gpus()["T4"]
    assert fit(model, 5, gpu) == fit(model, 5, gpu, "float16", 16, "float16")
    assert bytes_per_token(model) == bytes_per_token(model, "float16")
    assert weight_bytes(model) == weight_bytes(model, "float16", active=False)
    assert layer_groups(model) == layer_groups(model, "float16")


# --- published sizes -----------------------------------------------------------------------


@pytest.mark.parametrize("name", list(models()))
def test_bytes_per_token_of_every_shipped_model(name):
    model = models()[name]
    assert bytes_per_token(model) / 1024 == model.kib_per_token
    assert cache_bytes(model, 1).logical == bytes_per_token(model)


def test_llama_2_70b_with_and_without_shared_heads():
    llama = models()["Llama-2-70B"]
    alone = with_kv_heads(llama, 64)
    for tokens, gb in ((4096, "1.34"), (32768, "10.74")):
        size = cache_bytes(llama, tokens)
        assert f"{size.logical / 1e9:.2f}" == gb
        assert cache_bytes(alone, tokens).logical == 8 * size.logical
        assert size.logical == size.window_capped == size.allocated


def test_gemma_3_27b_with_its_windows():
    cache = cache_bytes(models()["Gemma-3-27B"], 131072)
    assert f"{cache.window_capped / 1e9:.1f}" == "11.2"
    assert f"{cache.logical / 1e9:.1f}" == "66.6"


# --- element types -------------------------------------------------------------------------


def test_element_types_against_float16():
    model = models()["Llama-3-8B"]
    whole = bytes_per_token(model, "float16")
    shares = {"float32": 2, "float16": 1, "bfloat16": 1, "fp8": 0.5, "int8": 0.5, "int4": 0.25}
    assert set(shares) == set(ELEMENT_TYPES) == set(ELEMENT_BITS)
    for dtype, share in shares.items():
        assert bytes_per_token(model, dtype) == share * whole


# --- ranges --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"tokens": -1}, "tokens = -1"),
        ({"tokens": MOST_TOKENS + 1}, "tokens = 16777217"),
        ({"tokens": 1, "batch": 0}, "batch = 0"),
        ({"tokens": 1, "page_size": 0}, "page_size = 0"),
        ({"tokens": 1, "batch": 1_048_577}, "batch = 1048577: expected 1 to 1048576"),
        ({"tokens": 1, "page_size": 65_537}, "page_size = 65537: expected 1 to 65536"),
        ({"tokens": 1, "dtype": "float64"}, 'dtype = "float64"'),
    ],
)
def test_counts_out_of_range_are_refused(arguments, words):
    model = models()["Llama-3-8B"]
    with pytest.raises(InputError, match=words):
        cache_bytes(model, **arguments)
    with pytest.raises(InputError, match=words):
        cache_curve(model, **{**arguments, "tokens": [1, arguments["tokens"]]})


def test_the_largest_cache_is_still_exact():
    model = AttentionModel("vast", 4096, 4096, 4096, kv_heads=4096)
    cache = cache_bytes(model, MOST_TOKENS, "float32", batch=2**20)
    assert cache.logical == 2**12 * 2 * 2**12 * 2**12 * 2**24 * 4 * 2**20
    assert cache_curve(model, [MOST_TOKENS], "float32", 2**20).logical[0] == float(cache.logical)


def test_deepseeks_choice_of_a_latent_is_of_whole_numbers():
    assert deepseek_latent(128) == (512, 64)
    assert deepseek_latent(5) == (20, 2)
    assert deepseek_latent(1) == (4, 1)


# --- weights and GPUs ----------------------------------------------------------------------


def test_weights():
    assert weight_bytes(models()["Llama-3-8B"]) == 16_060_000_000
    assert weight_bytes(models()["Llama-3-8B"], "int4") == 4_015_000_000
    mixture = models()["Mixtral-8x7B"]
    assert weight_bytes(mixture) == 93_400_000_000
    assert weight_bytes(mixture, active=True) == 25_800_000_000
    assert weight_bytes(AttentionModel("own", 1, 1, 1, kv_heads=1)) is None


def test_how_many_users_fit():
    model = models()["Llama-3-8B"]
    eight_thousand = 8192 * 131072
    for name, gpu in gpus().items():
        expected, left = 0, gpu.memory_gb * 10**9 - 16_060_000_000
        while left >= eight_thousand:
            expected, left = expected + 1, left - eight_thousand
        assert fit(model, 8192, gpu) == expected, name
    assert fit(model, 8192, gpus()["H100-SXM"]) == 59
    assert fit(model, 8192, gpus()["T4"]) == 0


def test_what_fits_counts_allocated_pages():
    model, gpu = models()["Llama-3-8B"], gpus()["H100-SXM"]
    assert fit(model, 1, gpu) == fit(model, 16, gpu)
    assert fit(model, 1, gpu, page_size=1) == (80 * 10**9 - 16_060_000_000) // 131072
    # A sequence of one byte, and weights that alone do not fit.
    heavy = AttentionModel("own", 1, 1, 1, latent_dim=1, rope_dim=0, params_billion=400)
    assert fit(heavy, 1, gpu, "fp8", page_size=1) == 0
    assert fit(model, 17, gpu) == fit(model, 32, gpu)
    assert "tokens = 0" in refused(fit, model, 0, gpu)


def test_what_fits_is_not_known_without_weights():
    assert fit(AttentionModel("own", 1, 1, 1, kv_heads=1), 10, gpus()["T4"]) is None


# --- decoding ------------------------------------------------------------------------------


@given(shapes(), st.integers(1, 50), TYPES, st.integers(1, 4))
def test_a_step_writes_one_row_and_reads_what_is_held(model, tokens, dtype, batch):
    step = decode_step(model, tokens, dtype, batch)
    after = cache_bytes(model, tokens, dtype, batch)
    before = cache_bytes(model, tokens - 1, dtype, batch)
    assert step.written == after.logical - before.logical == batch * bytes_per_token(model, dtype)
    assert step.read == after.window_capped
    kept = sum(g.written for g in step.groups if not g.dropped)
    assert kept == after.window_capped - before.window_capped
    for group in step.groups:
        assert group.dropped == (bool(group.group.window) and tokens > group.group.window)
        assert group.held == min(tokens, group.group.window or tokens)


def test_time_of_a_step():
    step = decode_step(models()["Llama-3-8B"], 8192, batch=4)
    assert step.seconds(gpus()["H100-SXM"]) == pytest.approx(4 * 2**30 / 3.35e12)


def test_decoding_starts_at_the_first_token():
    model = models()["Llama-3-8B"]
    assert "tokens = 0" in refused(decode_step, model, 0)
    for batch in (0, 2**20 + 1):
        with pytest.raises(InputError, match=f"batch = {batch}"):
            decode_step(model, 1, batch=batch)
    assert decode_step(model, 1, batch=2**20).written == 2**20 * bytes_per_token(model)
