"""docs/capture on small models with random weights: what it records is what they computed."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simulator.problem.scenario import parse_scenario
from simulator.run.trace import Trace, simulate
from tests.helpers.runs import ALGORITHMS

pytestmark = pytest.mark.peers
for package in ("torch", "transformers"):
    pytest.importorskip(package, reason=f"{package} is not here: make test-peers brings it")

SCRIPT = Path(__file__).parents[2] / "docs/capture"
TEXT = "the cat sat on the mat because it was tired of all the tiles that it had to count"
WORDS = sorted(set(TEXT.split()))
Model = Any  # of transformers, which is imported late


def make(kind: str, seed: int = 0, **settings: Any) -> Model:
    """Return a model of three layers whose scores are as large as those of trained ones."""
    import torch
    import transformers

    torch.manual_seed(seed)
    sizes = {
        "vocab_size": 61,
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "max_position_embeddings": 128,
        "initializer_range": 0.2,
        "bos_token_id": None,
        "eos_token_id": None,
        "pad_token_id": 0,
    }
    if kind != "Bert":
        sizes |= {"num_key_value_heads": 2, "head_dim": 16}
    config = getattr(transformers, f"{kind}Config")(**sizes | settings)
    return getattr(transformers, f"{kind}Model")(config).eval()


def token_ids(model: Model, count: int = 45) -> Any:
    import torch

    return torch.randint(1, model.config.vocab_size, (1, count))


def own_output(model: Model, ids: Any, before: Any) -> np.ndarray:
    """Return what a module is given, as (heads, N, dv): attention's output before W_O."""
    import torch

    found = []
    hook = before.register_forward_pre_hook(lambda module, given: found.append(given[0]))
    with torch.no_grad():
        model(input_ids=ids)
    hook.remove()
    flat = found[0][0].float().numpy()
    return flat.reshape(len(flat), model.config.num_attention_heads, -1).transpose(1, 0, 2)


@pytest.fixture
def save(script: dict[str, Any], tmp_path: Path) -> Callable[..., Path]:
    """Capture a layer into a file."""

    def captured(model: Model, ids: Any, layer: int) -> Path:
        from safetensors.torch import save_file

        tensors, said = script["capture"](model, [str(layer)], input_ids=ids)[str(layer)]
        path = tmp_path / "mine.safetensors"
        save_file(tensors, path, said)
        return path

    return captured


def opened(path: Path, algorithm: str = "flash2", **tables: Any) -> Trace:
    """Return a run on a file, in tiles that do not divide it."""
    attention = {"algorithm": algorithm} | tables.pop("attention", {})
    source = {"source": "file", "path": str(path)}
    tiles = {"rows": 16, "cols": 12}
    return simulate(
        parse_scenario({"attention": attention, "input": source, "tiling": tiles, **tables})
    )


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize(("layer", "way"), [(0, "sdpa"), (1, "sdpa"), (2, "sdpa"), (0, "eager")])
def test_a_llama_computes_the_same(
    layer: int, way: str, algorithm: str, save: Callable[..., Path]
) -> None:
    # Later layers of another way start from numbers that were rounded otherwise.
    model = make("Llama", attn_implementation=way)
    ids = token_ids(model)
    own = own_output(model, ids, model.layers[layer].self_attn.o_proj)
    trace = opened(save(model, ids, layer), algorithm)
    w = trace.workload
    assert (w.heads, w.kv_heads, w.head_dim, w.dtype) == (4, 2, 16, "float32")
    assert w.mask.causal
    assert w.scale == 0.25
    assert trace.output.shape == own.shape == (4, 45, 16)
    assert np.abs(trace.output - own).max() < 1e-5
    # What was compared tells one attention from another.
    assert np.abs(own).max() > 0.5
    warmer = opened(trace.workload.file.path, algorithm, attention={"temperature": 1.01})
    assert np.abs(warmer.output - own).max() > 1e-3


WITHOUT_ROPE = {"rope_type": "linear", "factor": 1e12, "rope_theta": 1e4}
"""Angles that are 0 in float32, so that Q and K are as the weights make them."""


def layer_run(path: Path, algorithm: str = "flash2", heads: int = 4) -> Trace:
    """Return a run on x and the weights in a file."""
    tables = {
        "attention": {"algorithm": algorithm, "heads": heads},
        "input": {"source": "layer", "path": str(path)},
        "tiling": {"rows": 16, "cols": 12},
    }
    return simulate(parse_scenario(tables))


def own_y(model: Model, ids: Any, module: Any) -> np.ndarray:
    """Return what a module makes, (N, D)."""
    import torch

    found = []
    hook = module.register_forward_hook(lambda module, given, made: found.append(made))
    with torch.no_grad():
        model(input_ids=ids)
    hook.remove()
    return found[0][0].float().numpy()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize(("layer", "biased"), [(0, False), (1, True), (2, False)])
def test_y_of_a_whole_llama_layer_is_transformers(
    layer: int, biased: bool, algorithm: str, script: dict[str, Any], tmp_path: Path
) -> None:
    """x, the weights and the causal mask make Y; RoPE is off, because the file has no places."""
    from safetensors.torch import save_file

    model = make("Llama", attention_bias=biased, rope_parameters=WITHOUT_ROPE)
    if biased:
        for name, values in model.named_parameters():
            if name.endswith("bias"):
                values.data.normal_()
    ids = token_ids(model)
    captured = script["capture_weights"](model, [str(layer)], input_ids=ids)
    tensors, said = captured[str(layer)]
    assert {name for name in tensors if name[0] == "b"} == (
        {"bq", "bk", "bv", "bo"} if biased else set()
    )
    path = tmp_path / "layer.safetensors"
    save_file(tensors, path, said)
    trace = layer_run(path, algorithm)
    w = trace.workload
    assert (w.heads, w.kv_heads, w.head_dim, w.mask.causal) == (4, 2, 16, True)
    own = own_y(model, ids, model.layers[layer].self_attn.o_proj)
    y = trace.run(keep_arrays=True)[1]["y"]
    assert y.shape == own.shape == (45, 64)
    assert np.abs(y - own).max() <= 1e-5 * np.abs(own).max()
    # What was compared tells one layer from another.
    other = own_y(model, ids, model.layers[layer - 1].self_attn.o_proj)
    assert np.abs(y - other).max() > 0.1 * np.abs(own).max()


def test_a_layer_that_is_not_x_and_weights_alone_is_refused(script: dict[str, Any]) -> None:
    model, other = make("Llama"), make("Bert")
    ids = token_ids(model)
    with pytest.raises(script["CaptureError"], match=r"give another Q, off by .* \(RoPE or a norm"):
        script["capture_weights"](model, ["1"], input_ids=ids)
    with pytest.raises(script["CaptureError"], match="not captured: no layer 1 has q_proj"):
        script["capture_weights"](other, ["1"], input_ids=ids)


def test_a_window_comes_with_the_file(save: Callable[..., Path]) -> None:
    model = make("Mistral", sliding_window=8)
    ids = token_ids(model)
    own = own_output(model, ids, model.layers[1].self_attn.o_proj)
    path = save(model, ids, 1)
    assert np.abs(opened(path).output - own).max() < 1e-5
    assert np.abs(opened(path, mask={"window": 0}).output - own).max() > 1e-3


def test_an_encoder_is_not_causal(save: Callable[..., Path]) -> None:
    model = make("Bert")
    ids = token_ids(model)
    own = own_output(model, ids, model.encoder.layer[2].attention.output.dense)
    trace = opened(save(model, ids, 2))
    assert not trace.workload.mask.causal
    assert np.abs(trace.output - own).max() < 1e-5


def test_sixteen_bits_stay_sixteen_bits(save: Callable[..., Path]) -> None:
    import torch

    model = make("Llama").to(torch.bfloat16)
    ids = token_ids(model)
    own = own_output(model, ids, model.layers[1].self_attn.o_proj)
    trace = opened(save(model, ids, 1))
    assert trace.workload.dtype == "bfloat16"
    assert np.abs(trace.output - own).max() < 2**-7 * np.abs(own).max()


def test_the_model_is_left_as_it_was(script: dict[str, Any]) -> None:
    model = make("Llama", attn_implementation="eager")
    ids = token_ids(model)
    before = own_output(model, ids, model.layers[2].self_attn.o_proj)
    script["capture"](model, ["1"], input_ids=ids)
    with pytest.raises(script["CaptureError"], match=r"ran no attention layer 7 \(it ran 0-2\)"):
        script["capture"](model, ["7"], input_ids=ids)
    assert model.config._attn_implementation == "eager"
    again = own_output(model, ids, model.layers[2].self_attn.o_proj)
    assert again.tolist() == before.tolist()


def test_what_gives_another_output_is_refused(script: dict[str, Any]) -> None:
    import torch

    q, k, v = torch.randn(4, 9, 8), torch.randn(2, 9, 8), torch.randn(2, 9, 8)
    out = torch.nn.functional.scaled_dot_product_attention(
        q[None], k[None], v[None], is_causal=True, enable_gqa=True
    )[0]
    sees = script["visible"](9, 9, True, 0)[None]
    said = {"q": q, "k": k, "v": v, "out": out, "scale": 8**-0.5, "sees": sees}
    file = lambda **more: script["kept"](script["Scores"](**said | more))  # noqa: E731
    assert file()[1] == {"scale": str(8**-0.5), "causal": "true"}
    wrong = ({"sees": sees | True}, {"scale": 0.3}, {"softcap": 1.0},
             {"sees": script["visible"](9, 9, True, 4)[None]},
             {"bias": torch.randn(4, 1, 9) * torch.arange(9.0)},
             {"sinks": torch.zeros(4)})  # fmt: skip
    for more in wrong:
        with pytest.raises(script["CaptureError"], match=r"not captured: .*(off by|more than)"):
            file(**more)
    with pytest.raises(script["CaptureError"], match="NaN or infinity"):
        file(out=out * float("nan"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a model and its tokenizer, as the hub would give it."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {word: n for n, word in enumerate(["[UNK]", *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    where = tmp_path / "model"
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]").save_pretrained(where)
    make("Mistral", sliding_window=6).save_pretrained(where)
    return where


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the script as one does, with nothing to download."""
    return subprocess.run(
        [sys.executable, str(SCRIPT), *map(str, arguments)],
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_from_the_command_line_into_tilescope(folder: Path, tmp_path: Path) -> None:
    import torch
    from transformers import AutoModel, AutoTokenizer

    path = tmp_path / "out.safetensors"
    done = run(folder, 1, path, TEXT)
    assert done.returncode == 0, done.stderr
    told = done.stdout.splitlines()
    assert told == [f"{path} q (4, 19, 16) k (2, 19, 16) v (2, 19, 16)"]
    trace = opened(path)
    assert trace.workload.mask.window == 6
    file = trace.workload.file
    assert file is not None
    assert file.said.tokens == tuple(TEXT.split())
    said = file.said
    assert (said.model, said.layer, said.scale, said.causal) == (str(folder), "1", 0.25, True)
    model = AutoModel.from_pretrained(folder)
    ids = AutoTokenizer.from_pretrained(folder)(TEXT, return_tensors="pt").input_ids
    assert ids.dtype == torch.int64
    own = own_output(model, ids, model.layers[1].self_attn.o_proj)
    assert np.abs(trace.output - own).max() < 1e-5


def test_weights_from_the_command_line(tmp_path: Path, folder: Path) -> None:
    make("Llama", rope_parameters=WITHOUT_ROPE).save_pretrained(folder)
    path = tmp_path / "out.safetensors"
    text = TEXT.replace("cat", "mat")
    done = run(folder, 1, path, text, "--weights")
    told = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert told[-1] == 'Open it with source = "layer", and write `heads = 4` under [attention].'
    assert told[0].startswith(f"{path} x (19, 64) wq (64, 64) wk (64, 32)")
    trace = layer_run(path)
    assert trace.workload.tokens == tuple(text.split())
    assert trace.run()[0]["layer"]["max_abs_error"] < 1e-4


def test_several_layers_at_once_have_a_file_each(folder: Path, tmp_path: Path) -> None:
    from ui.app.cli import main

    path = tmp_path / "out.safetensors"
    assert main(["capture", str(folder), "0,2", str(path), TEXT]) == 0
    assert sorted(file.name for file in tmp_path.glob("out*")) == [
        "out-0.safetensors", "out-2.safetensors",
    ]  # fmt: skip
    first, last = (opened(tmp_path / f"out-{n}.safetensors") for n in (0, 2))
    assert np.abs(first.output - last.output).max() > 0.1
    assert main(["capture", str(folder), "all", str(tmp_path / "every.safetensors"), TEXT]) == 0
    every = opened(tmp_path / "every-2.safetensors")
    assert every.output.tolist() == last.output.tolist()


def test_the_command_line_explains_itself(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.safetensors"
    wrong = {
        (): "capture MODEL LAYERS OUT.safetensors",
        ("model", "1"): "usage: capture MODEL LAYERS",
        ("model", "first", out, "text"): "layers 'first': expected a number",
        ("model", "1", "out.npz", "text"): "out.npz: expected a name that ends in .safetensors",
        (tmp_path, "1", out, "text"): "expected a model's folder or its name on the hub",
        (folder, "9", out, "the cat"): "ran no attention layer 9 (it ran 0-2)",
    }
    for arguments, line in wrong.items():
        done = run(*arguments)
        assert done.returncode == 2
        assert line in done.stderr
        assert "Traceback" not in done.stderr
        assert not arguments or len(done.stderr.splitlines()) == 1
    assert not out.exists()
