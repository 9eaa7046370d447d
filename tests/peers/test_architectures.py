"""Architectures of transformers, one for each cause and kind: what capture writes is what they do.

`make test-architectures` tries all of them.
"""

from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.peers
for package in ("torch", "transformers"):
    pytest.importorskip(package, reason=f"{package} is not here: make test-peers brings it")

from tests.peers import architectures  # noqa: E402  (torch may be absent)
from tests.peers.small_architectures import build, inputs_of  # noqa: E402

KINDS = {
    # by the attention interface
    "llama": "EQUAL",
    "deepseek_v3": "EQUAL",  # K and V of each head from a latent
    "deepseek_v32": "EQUAL mask",  # an index chooses keys
    "minimax_m3_vl_text": "EQUAL mask",  # an index chooses blocks of keys
    "llama4_text": "EQUAL mask",  # chunks
    "gemma2": "EQUAL softcap window",
    "gemma3": "EQUAL window",
    "gpt_oss": "EQUAL sink_logits window",
    "longcat_flash": "EQUAL",  # two attentions of each layer
    "albert": "EQUAL",  # one layer, four times
    "hrm_text": "AFTER gate",  # two stacks, in cycles
    "diffllama": "AFTER",  # two attentions, subtracted
    "qwen3_next": "AFTER gate",
    "afmoe": "AFTER gate window",
    "bitnet": "AFTER",  # norms O
    # encoder and decoder
    "t5": "EQUAL bias",
    "bart": "EQUAL",
    "pegasus_x": "EQUAL",  # a decoder that is causal by its mask alone
    "nllb-moe": "EQUAL",
    "t5gemma": "EQUAL softcap window",
    "florence2": "EQUAL",  # the encoder is within a part
    # outside the attention interface
    "bloom": "EQUAL alibi",
    "mpt": "EQUAL alibi",
    "falcon": "EQUAL",
    "gptj": "EQUAL",
    "codegen": "EQUAL",
    "gpt_neo": "EQUAL window",
    "mpnet": "EQUAL bias",
    "roformer": "EQUAL",
    "rembert": "EQUAL",
    "xglm": "EQUAL",
    "squeezebert": "EQUAL",
    "xlm": "EQUAL",
    "layoutlm": "EQUAL",
    "mamba": "NO ATTENTION",
    "deberta-v2": "REFUSED",
    # pictures and sound
    "vit": "EQUAL",
    "clip": "EQUAL",
    "gemma3@picture": "EQUAL",
    "whisper": "EQUAL",
    "wav2vec2": "EQUAL",
}


@pytest.mark.parametrize("name", KINDS)
def test_what_is_written_is_what_the_model_does(name: str) -> None:
    word, _, keys = KINDS[name].partition(" ")
    if word == "NO":
        word, keys = "NO ATTENTION", ""
    became, said = architectures.outcome(name)
    assert became == word, said
    assert {*keys.split()} <= {*said.split()}, said


@pytest.mark.parametrize("name", ["llama", "gptj", "flint"])
def test_layers_in_bfloat16_open(name: str, tmp_path: Path) -> None:
    # GPT-J and Flint make scores in float32.
    import torch

    model = build(name).to(torch.bfloat16)
    inputs = inputs_of(name, model)
    own = architectures.truth_of(model, inputs)
    for place, each in architectures.recording().capture(model, None, **inputs).items():
        run = architectures.opened(*each, tmp_path / "file.safetensors")
        assert architectures.nearest(np.asarray(run.output), own, place).error < 0.04


@pytest.mark.parametrize(
    ("name", "place", "fault"),
    [
        ("gemma2", "0", {"window": "0"}),
        ("gemma2", "1", {"causal": "false"}),
        ("gemma2", "1", {"softcap": "9.0"}),
        ("gemma2", "1", {"after": "norms O"}),
        ("gemma2", "1", "0"),
        ("bart", "encoder.1", "decoder.1"),
        ("bart", "decoder.1", "cross.1"),
        ("deepseek_v32", "1", ("mask", 255)),
        ("llama4_text", "1", ("v", 0)),
        ("longcat_flash", "1.2", None),
    ],
)
def test_what_is_not_the_models_is_seen(
    name: str, place: str, fault: object, tmp_path: Path
) -> None:
    model = build(name)
    inputs = inputs_of(name, model)
    captured = architectures.recording().capture(build(name), None, **inputs)
    own = architectures.tried(model, inputs)
    matches = []
    for each, (tensors, texts) in captured.items():
        if each == place and fault is None:
            continue
        if each == place and isinstance(fault, dict):
            texts = texts | fault
        if each == place and isinstance(fault, tuple):
            tensors = tensors | {fault[0]: tensors[fault[0]] * 0 + fault[1]}
        run = architectures.opened(tensors, texts, tmp_path / "file.safetensors")
        called = fault if each == place and isinstance(fault, str) else each
        word, said, match = architectures.place_outcome(
            called, tensors, texts, np.asarray(run.output), own
        )
        assert (word == "WRONG") == (each == place), said
        matches.append(match)
    if fault is None:
        assert architectures.missed(own.found, matches, captured.left_out)
