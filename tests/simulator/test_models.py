"""Shapes of models: those that ship, one's own, and one clear line for what cannot be used."""

import tomllib

import pytest

from simulator import InputError
from simulator.hardware import gpus
from simulator.models import (
    MODELS,
    find_model,
    load_model,
    models,
    parse_model,
    with_kv_heads,
    with_latent,
    with_window,
)

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


def test_names_are_found_in_any_case():
    assert find_model("llama-3-8b") is models()["Llama-3-8B"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Llama-3-9B", ["Llama-3-8B", ".toml"]),
        ("deepseek", ["DeepSeek-V2", "DeepSeek-V3"]),
        ("?", ["Llama-2-7B", "DeepSeek-V3"]),
        ("", ["Llama-2-7B"]),
        ("x" * 5000, ["xxx..."]),
        ("missing.toml", ["missing.toml", "No such file"]),
    ],
)
def test_an_unknown_model_names_those_like_it(name, words):
    with pytest.raises(InputError) as error:
        find_model(name)
    message = str(error.value)
    assert "\n" not in message
    for word in words:
        assert word in message


def test_names_like_it_are_not_all_names():
    with pytest.raises(InputError) as error:
        find_model("Llama-3-9B")
    assert "Gemma" not in str(error.value)


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
    with pytest.raises(InputError) as error:
        load_model(path)
    message = str(error.value)
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
    with pytest.raises(InputError, match="rope_dim: expected a whole number beside latent_dim"):
        load_model(path)


def test_one_file_holds_one_model(tmp_path):
    path = tmp_path / "two.toml"
    path.write_text(f"[a]\n{GOOD}\n[b]\n{GOOD}")
    with pytest.raises(InputError, match=r"two.toml: expected one model; it holds 2: a, b"):
        load_model(path)
    path.write_bytes(b"\xff")
    with pytest.raises(InputError, match="UTF-8"):
        load_model(path)


def test_a_stated_size_may_be_rounded_but_not_wrong():
    row = {"layers": 61, "heads": 128, "head_dim": 128, "latent_dim": 512, "rope_dim": 64}
    assert parse_model("x", {**row, "kib_per_token": 68.6}, "x").kib_per_token == 68.6
    with pytest.raises(InputError, match=r"kib_per_token = 69.0: expected 68.625"):
        parse_model("x", {**row, "kib_per_token": 69.0}, "x")


def test_other_ways_of_sharing():
    llama = models()["Llama-2-70B"]
    assert with_kv_heads(llama, 64).kind == "MHA"
    assert with_kv_heads(llama, 1).cached_numbers == 256
    latent = with_latent(llama, 512, 64)
    assert (latent.kind, latent.cached_numbers, latent.kv_heads) == ("MLA", 576, None)
    assert with_kv_heads(latent, 8).cached_numbers == llama.cached_numbers
    assert with_window(with_window(llama, 4096, 40), 0, 0) == llama


@pytest.mark.parametrize(
    "change",
    [
        lambda model: with_kv_heads(model, 5),
        lambda model: with_kv_heads(model, 0),
        lambda model: with_latent(model, 0, 64),
        lambda model: with_latent(model, 512, -1),
        lambda model: with_window(model, 0, 3),
        lambda model: with_window(model, 16, 0),
        lambda model: with_window(model, 16, 81),
    ],
)
def test_a_choice_that_does_not_fit_is_refused(change):
    with pytest.raises(InputError, match="Llama-2-70B: "):
        change(models()["Llama-2-70B"])
