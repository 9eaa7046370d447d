"""Layers of models of many kinds, captured and opened, are what the models computed."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simulator.problem.scenario import parse_scenario
from simulator.run.trace import Trace, simulate

pytestmark = pytest.mark.peers
for package in ("torch", "transformers"):
    pytest.importorskip(package, reason=f"{package} is not here: make test-peers brings it")

SCRIPT = Path(__file__).parents[2] / "docs/capture"
COUNT, TARGET = 45, 21
Model = Any  # of transformers, which is imported late

SIZES = {"vocab_size": 61, "hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4,
         "intermediate_size": 96, "max_position_embeddings": 128,
         "initializer_range": 0.2}  # fmt: skip
GROUPED = SIZES | {"num_key_value_heads": 2, "head_dim": 16}
T5 = {"vocab_size": 61, "d_model": 64, "d_kv": 16, "d_ff": 96, "num_layers": 3, "num_heads": 4,
      "initializer_factor": 1.5, "relative_attention_num_buckets": 8,
      "relative_attention_max_distance": 20}  # fmt: skip
NO_TOKENS = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": 0}


def make(kind: str, **settings: Any) -> Model:
    """Return a model with random weights whose scores are as large as those of trained ones."""
    import torch
    import transformers

    torch.manual_seed(0)
    config = getattr(transformers, f"{kind}Config")(**NO_TOKENS | settings)
    model = getattr(transformers, f"{kind}Model")(config).eval()
    for name, values in model.named_parameters():
        if "relative_attention_bias" in name or name.endswith("sinks"):
            values.data.normal_(std=2.0)
    return model


KINDS: dict[str, tuple[dict[str, Any], Callable[[Model], list[Any]]]] = {
    "Mistral": (GROUPED | {"sliding_window": 8}, lambda m: [n.self_attn.o_proj for n in m.layers]),
    "Qwen3": (GROUPED, lambda m: [n.self_attn.o_proj for n in m.layers]),
    "Gemma2": (GROUPED | {"sliding_window": 8, "attn_logit_softcapping": 2.0},
               lambda m: [n.self_attn.o_proj for n in m.layers]),
    "GptOss": (GROUPED | {"sliding_window": 8, "num_local_experts": 4, "num_experts_per_tok": 2},
               lambda m: [n.self_attn.o_proj for n in m.layers]),
    "GPT2": ({"vocab_size": 61, "n_embd": 64, "n_layer": 3, "n_head": 4, "n_positions": 128,
             "initializer_range": 0.2}, lambda m: [n.attn.c_proj for n in m.h]),
    "Bert": (SIZES, lambda m: [n.attention.output.dense for n in m.encoder.layer]),
    "Mpt": ({"vocab_size": 61, "d_model": 64, "n_layers": 3, "n_heads": 4, "max_seq_len": 128,
            "initializer_range": 0.2}, lambda m: [n.attn.out_proj for n in m.blocks]),
}  # fmt: skip
SAYS = {
    "Mistral": {"window"},
    "Gemma2": {"window", "softcap"},
    "GptOss": {"window"},
    "Mpt": {"alibi"},
}
"""What a layer's file says beyond scale and whether it is causal; the first layer's."""


def own_outputs(model: Model, modules: list[Any], heads: int, **given: Any) -> list[np.ndarray]:
    """Return what some modules are given, as (heads, N, dv): attention's outputs before W_O."""
    import torch

    found: dict[Any, Any] = {}
    hooks = [
        module.register_forward_pre_hook(lambda own, args: found.update({own: args[0][0]}))
        for module in modules
    ]
    with torch.no_grad():
        model(**given)
    for hook in hooks:
        hook.remove()
    flat = [found[module].float().numpy() for module in modules]
    return [each.reshape(len(each), heads, -1).transpose(1, 0, 2) for each in flat]


def opened(tensors: dict[str, Any], texts: dict[str, str], path: Path) -> Trace:
    from safetensors.torch import save_file

    save_file(tensors, path, texts)
    source = {"source": "file", "path": str(path)}
    return simulate(parse_scenario({"input": source, "tiling": {"rows": 16, "cols": 12}}))


def apart(trace: Trace, own: np.ndarray) -> float:
    """Return how far a run is from what a layer made, as a share of its largest number."""
    assert trace.output.shape == own.shape
    return float(np.abs(trace.output - own).max() / np.abs(own).max())


@pytest.mark.parametrize("kind", KINDS)
def test_every_layer_opened_is_the_layers_own_output(
    kind: str, script: dict[str, Any], tmp_path: Path
) -> None:
    import torch

    settings, modules = KINDS[kind]
    model = make(kind, **settings)
    ids = torch.randint(1, 61, (1, COUNT))
    own = own_outputs(model, modules(model), 4, input_ids=ids)
    captured = script["capture"](model, None, input_ids=ids)
    assert list(captured) == ["0", "1", "2"]
    assert {*captured["0"][1]} - {"scale", "causal"} == SAYS.get(kind, set())
    for (layer, (tensors, texts)), output in zip(captured.items(), own, strict=True):
        trace = opened(tensors, texts, tmp_path / f"{layer}.safetensors")
        assert apart(trace, output) <= 1e-6, layer
        # What was compared tells one attention from another.
        if kind == "GptOss":
            without = {name: tensor for name, tensor in tensors.items() if name != "sink_logits"}
            other = opened(without, texts, tmp_path / "other.safetensors")
            assert apart(other, output) > 1e-2
        for word in {*texts} - {"scale", "causal"}:
            other = opened(tensors, {**texts, word: "0"} if word == "window" else
                           {key: text for key, text in texts.items() if key != word},
                           tmp_path / "other.safetensors")  # fmt: skip
            assert apart(other, output) > 1e-3, word
    again = own_outputs(model, modules(model), 4, input_ids=ids)
    assert all((one == two).all() for one, two in zip(own, again, strict=True))


@pytest.mark.parametrize("place", ["encoder", "decoder", "cross"])
def test_each_attention_of_t5_is_its_own(
    place: str, script: dict[str, Any], tmp_path: Path
) -> None:
    import torch

    model = make("T5", **T5)
    given = {"input_ids": torch.randint(1, 61, (1, COUNT)),
             "decoder_input_ids": torch.randint(1, 61, (1, TARGET))}  # fmt: skip
    own_attention = {"encoder": (model.encoder, 0, "SelfAttention"),
                     "decoder": (model.decoder, 0, "SelfAttention"),
                     "cross": (model.decoder, 1, "EncDecAttention")}  # fmt: skip
    stack, n, name = own_attention[place]
    modules = [getattr(block.layer[n], name).o for block in stack.block]
    own = own_outputs(model, modules, 4, **given)
    for layer, output in enumerate(own):
        where = f"{place}.{layer}"
        tensors, texts = script["capture"](model, [where], **given)[where]
        trace = opened(tensors, texts, tmp_path / "mine.safetensors")
        assert trace.workload.scale == 1.0
        assert trace.workload.mask.causal == (place == "decoder")
        assert apart(trace, output) <= 1e-6
        assert ("bias" in tensors) == (place != "cross")
        assert (trace.workload.biases is not None) == (place != "cross")
        if place != "cross":
            tensors.pop("bias")
            assert apart(opened(tensors, texts, tmp_path / "no.safetensors"), output) > 1e-2


def test_cross_attention_has_tokens_of_both_texts(tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    from ui.app.cli import main

    source, target = "the cat sat on the mat", "die katze sass"
    words = {word: n for n, word in enumerate(["?", *sorted({*source.split(), *target.split()})])}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    where = tmp_path / "model"
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="?").save_pretrained(where)
    make("T5", **T5).save_pretrained(where)
    path = tmp_path / "out.safetensors"
    assert main(["capture", str(where), "cross.1", str(path), source, target]) == 0
    source_file = {"source": "file", "path": str(path)}
    w = simulate(parse_scenario({"input": source_file})).workload
    assert (w.tokens, w.query_tokens) == (tuple(source.split()), tuple(target.split()))
    assert [w.query_token(row) for row in range(3)] == target.split()
    assert main(["capture", str(where), "cross.1", str(path), source]) == 2


def test_a_bias_of_more_than_the_distance_is_refused(script: dict[str, Any]) -> None:
    import torch

    sees = script["visible"](9, 9, True, 0)[None]
    with pytest.raises(script["CaptureError"], match="more than the distance"):
        script["by_distance"](torch.randn(4, 9, 9), sees, 4)


def test_alibi_is_told_by_its_slopes(script: dict[str, Any], tmp_path: Path) -> None:
    import torch

    settings, _ = KINDS["Mpt"]
    model = make("Mpt", **settings)
    ids = torch.randint(1, 61, (1, COUNT))
    _, texts = script["capture"](model, ["1"], input_ids=ids)["1"]
    assert json.loads(texts["alibi"]) == [2**-2, 2**-4, 2**-6, 2**-8]
