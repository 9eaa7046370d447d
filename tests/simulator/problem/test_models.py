"""Shapes of models: those that ship, one's own, and one clear line for what cannot be used."""

import math
import tomllib

import pytest

from simulator import InputError
from simulator.problem.hardware import gpus
from simulator.problem.models import (
    MODELS,
    find_model,
    load_model,
    models,
    parse_model,
    with_kv_heads,
    with_latent,
    with_window,
)
from tests.helpers.refused import refused

GOOD = """
layers = 4
heads = 8
kv_heads = 2
head_dim = 16
"""
LATENT = "layers = 4\nheads = 8\nhead_dim = 16\nlatent_dim = 64\nrope_dim = 8\n"


@pytest.mark.parametrize("name", list(models()))
def test_every_shipped_model_is_as_its_table_says(name):
    row = tomllib.loads(MODELS.read_text())[name]
    model = models()[name]
    assert model.name == name
    for key, value in row.items():
        assert getattr(model, key) == value, key
    assert model.kind in ("MHA", "GQA", "MQA", "MLA")
    assert model.hidden
    assert model.params_billion


@pytest.mark.parametrize(
    ("name", "kind"),
    [("Llama-2-7B", "MHA"), ("Llama-3-8B", "GQA"), ("Falcon-7B", "MQA"), ("DeepSeek-V3", "MLA")],
)
def test_kinds(name, kind):
    assert models()[name].kind == kind
    assert models()[name].is_latent is (kind == "MLA")


def test_every_gpu_has_its_memory():
    sizes = {name: gpu.memory_gb for name, gpu in gpus().items()}
    assert sizes["A100-80-SXM"] == sizes["H100-SXM"] == 80
    assert sizes["H200"] == 141
    assert sizes["MI300X"] == 192
    assert all(isinstance(size, int) and 16 <= size <= 192 for size in sizes.values())
    assert gpus()["H200"].memory_bytes == 141_000_000_000


@pytest.mark.parametrize("text", [GOOD, f'name = "mine"\n{GOOD}', f"[mine]\n{GOOD}"])
def test_an_own_model_file(text, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    model = load_model(path)
    assert (model.name, model.kind, model.layers, model.cached_numbers) == ("mine", "GQA", 4, 64)
    assert model.params_billion is None
    assert find_model(str(path)) == model


def test_a_table_copied_from_the_shipped_file_is_that_model(tmp_path):
    text = MODELS.read_text()
    path = tmp_path / "copy.toml"
    path.write_text(text[text.index("[Gemma-3-27B]") : text.index('["Qwen2.5-7B"]')])
    assert load_model(path) == models()["Gemma-3-27B"]


@pytest.mark.parametrize(
    ("keys", "key", "least", "most"),
    [
        ({}, "layers", 1, 4096),
        ({"kv_heads": 1}, "heads", 1, 4096),
        ({}, "head_dim", 1, 4096),
        ({"heads": 4096}, "kv_heads", 1, 4096),
        ({"layers": 9, "window": 1}, "windowed_layers", 1, 9),
        ({"windowed_layers": 1}, "window", 1, 2**24),
        ({"kv_heads": None, "rope_dim": 0}, "latent_dim", 1, 2**20),
        ({"kv_heads": None, "latent_dim": 1}, "rope_dim", 0, 2**20),
        ({"kv_heads": None, "latent_dim": 1, "rope_dim": 0}, "query_latent_dim", 0, 2**20),
        ({}, "hidden", 1, 2**20),
        ({"params_billion": 2.5}, "active_params_billion", 5e-324, 2.5),
        ({}, "params_billion", 5e-324, 1e6),
    ],
)
def test_sizes_are_from_a_least_to_a_most(keys, key, least, most):
    row = {"layers": 4, "heads": 8, "kv_heads": 2, "head_dim": 16} | keys
    row = {name: value for name, value in row.items() if value is not None}
    if key == "heads":
        assert parse_model("x", {**row, "heads": 8}, "x").kind == "MQA"
    for good in (least, most):
        assert getattr(parse_model("x", {**row, key: good}, "x"), key) == good
    below, above = (
        (0.0, math.nextafter(most, math.inf)) if isinstance(most, float) else (least - 1, most + 1)
    )
    for bad in (below, above):
        assert refused(parse_model, "x", {**row, key: bad}, "x")


def test_names_are_as_long_as_a_line():
    row = {"layers": 4, "heads": 8, "kv_heads": 2, "head_dim": 16}
    assert parse_model("x" * 80, row, "x").name == "x" * 80
    assert "1 to 80 characters" in refused(parse_model, "x" * 81, row, "x")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Llama-3-9B", ["one like Llama-3-8B", ".toml"]),
        ("deepseek", ["DeepSeek-V2", "DeepSeek-V3"]),
        ("?", ["one of Llama-2-7B", "DeepSeek-V3"]),
        ("", ["Llama-2-7B"]),
        ("x" * 5000, ["xxx..."]),
        ("missing.toml", ["missing.toml", "No such file"]),
    ],
)
def test_an_unknown_model_names_those_like_it(name, words):
    message = refused(find_model, name)
    assert "\n" not in message
    for word in words:
        assert word in message


def test_names_like_it_are_not_all_names():
    assert "Gemma" not in refused(find_model, "Llama-3-9B")
    assert sum(name in refused(find_model, "llama") for name in models()) == 4


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("kv_heads = 3", ["kv_heads = 3", "divisor of heads = 8"]),
        ("kv_heads = 2.0", ["kv_heads = 2.0", "whole number"]),
        ("kv_heads = true", ["kv_heads = true", "whole number"]),
        ('layers = "4"', ['layers = "4"', "whole number"]),
        ("layers = 0", ["layers = 0", "at least 1"]),
        ("heads = 5000", ["heads = 5000", "at most 4096"]),
        ("layer = 4", ["layer = 4", "one of layers, heads"]),
        ("window = 64", ["windowed_layers", "beside window"]),
        ("windowed_layers = 2", ["window", "beside windowed_layers"]),
        ("windowed_layers = 5\nwindow = 8", ["windowed_layers = 5", "at most layers = 4"]),
        ("latent_dim = 64", ["kv_heads = 2", "MLA"]),
        ("rope_dim = 64", ["rope_dim = 64", "latent_dim"]),
        ("query_latent_dim = 64", ["query_latent_dim = 64", "latent_dim"]),
        ("params_billion = 0", ["params_billion = 0", "above 0"]),
        ("params_billion = nan", ["params_billion = nan"]),
        ("active_params_billion = 2", ["active_params_billion = 2", "params_billion beside it"]),
        (
            "params_billion = 1\nactive_params_billion = 2",
            ["active_params_billion = 2", "at most 1"],
        ),
        ("kib_per_token = 3", ["kib_per_token = 3", "expected 0.5"]),
        ("name = 3", ["name = 3", "text in quotes"]),
        ('name = "\\u001b[2J"', ["name", "printed"]),
        ("name = ''", ["name", "printed"]),
        ("layers = = 4", ["TOML"]),
    ],
)
def test_a_wrong_model_file_names_key_and_value_in_one_line(change, words, tmp_path):
    path = tmp_path / "wrong.toml"
    keys = {line.partition(" ")[0] for line in change.splitlines()}
    kept = [line for line in GOOD.splitlines() if line.partition(" ")[0] not in keys]
    path.write_text("\n".join([*kept, change]))
    message = refused(load_model, path)
    assert "\n" not in message
    for word in ["wrong.toml", *words]:
        assert word in message


@pytest.mark.parametrize("key", ["layers", "heads", "head_dim", "kv_heads"])
def test_a_missing_key_is_named(key, tmp_path):
    path = tmp_path / "short.toml"
    path.write_text("\n".join(line for line in GOOD.splitlines() if not line.startswith(key)))
    with pytest.raises(InputError, match=rf"short.toml: {key}: expected a "):
        load_model(path)


def test_mla_needs_its_rope_dim(tmp_path):
    path = tmp_path / "mla.toml"
    path.write_text(LATENT)
    assert load_model(path).cached_numbers == 72
    path.write_text(LATENT.replace("rope_dim = 8\n", ""))
    assert "rope_dim: expected a whole number beside latent_dim" in refused(load_model, path)


def test_one_file_holds_one_model(tmp_path):
    path = tmp_path / "two.toml"
    path.write_text(f"[a]\n{GOOD}\n[b]\n{GOOD}")
    assert "two.toml: expected one model; it holds 2: a, b" in refused(load_model, path)
    path.write_text(f"{GOOD}\n[a]\n{GOOD}\n[b]\n{GOOD}")
    with pytest.raises(InputError, match=r"two.toml: a = .*: expected one of layers, heads"):
        load_model(path)
    path.write_text(f"{GOOD}\n[a]\n{GOOD}")
    with pytest.raises(InputError, match=r"two.toml: a = .*: expected one of layers, heads"):
        load_model(path)
    path.write_text("")
    assert "two.toml: layers: expected a value" in refused(load_model, path)
    path.write_bytes(b"\xff")
    assert "UTF-8" in refused(load_model, path)


def test_a_stated_size_may_be_rounded_but_not_wrong():
    row = {"layers": 61, "heads": 128, "head_dim": 128, "latent_dim": 512, "rope_dim": 64}
    assert parse_model("x", {**row, "kib_per_token": 68.6}, "x").kib_per_token == 68.6
    with pytest.raises(InputError, match=r"kib_per_token = 69.0: expected 68.625"):
        parse_model("x", {**row, "kib_per_token": 69.0}, "x")
    row = {"layers": 1000, "heads": 2, "head_dim": 128, "kv_heads": 2}  # 1000 KiB: off by one
    for stated in (999.0, 1001.0):
        assert parse_model("x", {**row, "kib_per_token": stated}, "x").kib_per_token == stated
    for stated in (998.999, 1001.001):
        with pytest.raises(InputError, match=r"expected 1000, the float16 cache"):
            parse_model("x", {**row, "kib_per_token": stated}, "x")


def test_other_ways_of_sharing():
    llama = models()["Llama-2-70B"]
    assert with_kv_heads(llama, 64).kind == "MHA"
    assert with_kv_heads(llama, 1).cached_numbers == 256
    latent = with_latent(llama, 512, 64)
    assert (latent.kind, latent.cached_numbers, latent.kv_heads) == ("MLA", 576, None)
    assert with_kv_heads(latent, 8).cached_numbers == llama.cached_numbers
    assert with_window(with_window(llama, 4096, 40), 0, 0) == llama
    assert with_window(llama, 1, llama.layers).windowed_layers == llama.layers
    assert (latent.rope_dim, latent.query_latent_dim) == (64, 0)
    for widths in ((1, 0, None), (2**20, 2**20, 7)):
        found = with_latent(llama, *widths)
        assert (found.latent_dim, found.rope_dim, found.query_latent_dim) == widths
    stated = models()["DeepSeek-V3"]
    for other in (with_kv_heads(stated, 128), with_latent(stated, 256, 64)):
        assert other.kib_per_token is None  # it was another cache's
    heads = with_kv_heads(stated, 128)
    assert (heads.latent_dim, heads.rope_dim, heads.query_latent_dim) == (None, None, None)


@pytest.mark.parametrize(
    "change",
    [
        lambda model: with_kv_heads(model, 5),
        lambda model: with_kv_heads(model, 0),
        lambda model: with_latent(model, 0, 64),
        lambda model: with_latent(model, 512, -1),
        lambda model: with_latent(model, 2**20 + 1, 0),
        lambda model: with_latent(model, 512, 2**20 + 1),
        lambda model: with_window(model, -1, 3),
        lambda model: with_window(model, 16, -1),
        lambda model: with_window(model, 0, 3),
        lambda model: with_window(model, 16, 0),
        lambda model: with_window(model, 16, 81),
    ],
)
def test_a_choice_that_does_not_fit_is_refused(change):
    assert "Llama-2-70B: " in refused(change, models()["Llama-2-70B"])
