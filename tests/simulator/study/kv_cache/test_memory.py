"""GPUs that hold a model with its cache, against a formula that is written here once more."""

from math import ceil

import pytest

from simulator.base.tables import read_toml
from simulator.problem.hardware import gpus
from simulator.problem.models import MODELS, AttentionModel, models
from simulator.study.kv_cache.memory import need, sharings

LLAMA, H100 = models()["Llama-3-70B"], gpus()["H100-SXM"]
ELEMENTS = {"float16": 2.0, "fp8": 1.0, "int4": 0.5}
NINE = (
    "Llama-2-7B", "Llama-3-8B", "Llama-3.1-405B", "Mixtral-8x7B", "Gemma-3-27B", "Qwen2.5-7B",
    "Qwen3-235B-A22B", "gpt-oss-120b", "DeepSeek-V3",
)  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "dtype", "cache", "many", "rate", "larger_from"),
    [
        ("MHA", "float16", 343.60, 7, 46.6, 1), ("MHA", "fp8", 171.80, 5, 50.5, 1),
        ("GQA", "float16", 42.95, 3, 54.6, 4), ("GQA", "fp8", 21.47, 3, 61.8, 7),
        ("GQA", "int4", 10.74, 2, 44.1, 14), ("MQA", "float16", 5.37, 2, 46.5, 26),
        ("MLA", "float16", 12.08, 2, 42.4, 13), ("MLA", "int4", 3.02, 2, 45.0, 49),
    ],
)  # fmt: skip
def test_the_figures_of_a_large_llama(kind, dtype, cache, many, rate, larger_from):
    found = need(sharings(LLAMA)[kind], 131072, H100, dtype)
    assert (round(found.cache / 1e9, 2), found.gpus) == (cache, many)
    assert round(found.tokens_per_second, 1) == rate
    assert found.larger_from == larger_from
    more = need(sharings(LLAMA)[kind], 131072, H100, dtype, batch=larger_from)
    assert more.cache > more.weights
    assert larger_from == 1 or more.cache - found.cache <= more.weights


def test_two_gpus_are_enough_with_bytes_of_one_number():
    assert need(LLAMA, 131072, H100, "fp8", "fp8").gpus == 2


@pytest.mark.parametrize("name", NINE)
def test_models_need_what_the_formula_says(name):
    row = read_toml(MODELS)[name]
    windowed = row.get("windowed_layers", 0)
    for tokens in (1000, 131072):
        held = (row["layers"] - windowed) * tokens + windowed * min(tokens, row.get("window", 0))
        numbers = row["latent_dim"] + row["rope_dim"] if "latent_dim" in row else (
            2 * row["kv_heads"] * row["head_dim"]
        )  # fmt: skip
        for gpu in gpus().values():
            for dtype, element in ELEMENTS.items():
                cache = held * numbers * element
                weights = round(row["params_billion"] * 1e9) * element
                active = row.get("active_params_billion", row["params_billion"]) * 1e9 * element
                many = ceil((weights + cache) / (gpu.memory_gb * 1e9))
                found = need(models()[name], tokens, gpu, dtype, dtype)
                assert (found.cache, found.weights, found.gpus) == (cache, weights, many)
                rate = many * gpu.tbps * 1e12 / (active + cache)
                assert found.tokens_per_second == pytest.approx(rate, rel=1e-9)
                filled = list(found.filled())
                assert len(filled) == many
                assert [sum(each) for each in zip(*filled, strict=True)] == [weights, cache]
                assert all(sum(each) == gpu.memory_bytes for each in filled[:-1])


@pytest.mark.parametrize("name", models())
def test_other_ways_change_the_parameters_of_keys_and_values_alone(name):
    model, row = models()[name], read_toml(MODELS)[name]
    d, hidden, heads = row["head_dim"], row["hidden"], row["heads"]

    def weights(way):
        if way.kv_heads is not None:
            return 2 * hidden * way.kv_heads * d
        latent, turned = way.latent_dim, way.rope_dim
        queries = row.get("query_latent_dim", 0) or hidden
        return hidden * (latent + turned) + 2 * latent * heads * d + queries * heads * turned

    found = sharings(model)
    assert list(found) == [kind for kind in ("MHA", "GQA", "MQA", "MLA") if kind in found]
    assert found[model.kind] == model
    for kind, way in found.items():
        assert (way.kind, way.windowed_layers) == (kind, model.windowed_layers)
        more = row["layers"] * (weights(way) - weights(model))
        for field in ("params_billion", "active_params_billion"):
            if field in row:
                assert (getattr(way, field) - row[field]) * 1e9 == pytest.approx(more, abs=4)


def test_nothing_is_said_where_weights_are_not_known():
    own = AttentionModel("own", 80, 64, 128, kv_heads=8)
    found = need(own, 131072, H100)
    assert (found.gpus, found.tokens_per_second, found.larger_from) == (None, None, None)
    assert list(found.filled()) == []
    narrow = AttentionModel("own", 80, 64, 128, kv_heads=8, params_billion=70.6)
    assert {k: need(way, 9, H100).gpus for k, way in sharings(narrow).items()} == {
        "MHA": None, "GQA": 2, "MQA": None, "MLA": None,
    }  # fmt: skip
