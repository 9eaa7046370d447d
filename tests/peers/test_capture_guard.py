"""What holds a capture against the model: faults that are planted are refused, not written."""

from typing import Any

import pytest

pytestmark = pytest.mark.peers
for package in ("torch", "transformers"):
    pytest.importorskip(package, reason=f"{package} is not here: make test-peers brings it")

SIZES = {"vocab_size": 61, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
         "intermediate_size": 96, "max_position_embeddings": 128, "initializer_range": 0.2,
         "bos_token_id": None, "eos_token_id": None, "pad_token_id": 0}  # fmt: skip
Model = Any  # of transformers, which is imported late


def make(kind: str, **settings: Any) -> Model:
    import torch
    import transformers

    torch.manual_seed(0)
    config = getattr(transformers, f"{kind}Config")(**SIZES | settings)
    return getattr(transformers, f"{kind}Model")(config).eval()


def make_t5() -> Model:
    import torch
    import transformers

    torch.manual_seed(0)
    config = transformers.T5Config(vocab_size=61, d_model=64, d_kv=16, d_ff=96, num_layers=2,
                                   num_heads=4, initializer_factor=1.5)  # fmt: skip
    return transformers.T5Model(config).eval()


@pytest.fixture
def ids() -> Any:
    import torch

    torch.manual_seed(0)
    return torch.randint(1, 61, (1, 40))


def test_a_mask_that_is_dropped(script: Any, planted: Any, ids: Any) -> None:
    model = make("Mistral", sliding_window=8, num_key_value_heads=2)
    assert script["capture"](model, ["1"], input_ids=ids)["1"][1]["window"] == "8"
    wrong = planted("scores", 'mask, scale = said.get("attn_mask")', "mask, scale = None")
    with pytest.raises(wrong["CaptureError"], match="give another output, off by"):
        wrong["capture"](model, ["1"], input_ids=ids)


def test_a_wrong_causal_flag(script: Any, planted: Any, ids: Any) -> None:
    model, encoder = make("Llama"), make("Bert")
    assert script["capture"](model, ["0"], input_ids=ids)["0"][1]["causal"] == "true"
    wrong = planted("scores", 'if said.get("is_causal"):', 'if not said.get("is_causal"):')
    with pytest.raises(wrong["CaptureError"], match="give another output, off by"):
        wrong["capture"](model, ["0"], input_ids=ids)
    # What the weights of an encoder without RoPE are is then asked in another way.
    assert wrong["capture"](encoder, ["0"], input_ids=ids)["0"][1]["causal"] == "false"


def test_stacks_that_are_swapped(script: Any, planted: Any, ids: Any) -> None:
    model = make_t5()
    given = {"input_ids": ids, "decoder_input_ids": ids.flip(1)}
    assert script["capture"](model, ["decoder.1"], **given)["decoder.1"][1]["causal"] == "true"
    other = '{"encoder": "decoder", "decoder": "encoder"}[side]'
    wrong = planted("recording", "{name: side for name", f"{{name: {other} for name")
    with pytest.raises(wrong["CaptureError"], match="encoder and decoder cannot be told"):
        wrong["capture"](model, ["decoder.1"], **given)


def test_the_second_of_two_calls_that_is_lost(script: Any, planted: Any, ids: Any) -> None:
    model = make("DiffLlama", num_key_value_heads=2)
    captured = script["capture"](model, None, input_ids=ids)
    assert list(captured) == ["0.1", "0.2", "1.1", "1.2"]
    assert list(script["capture"](model, ["1"], input_ids=ids)) == ["1.1", "1.2"]
    assert "joins O with that of another attention" in captured["0.1"][1]["after"]
    wrong = planted(
        "recording", "if len(own) == 1:\n            places", "if own:\n            places"
    )
    with pytest.raises(wrong["CaptureError"], match="ran 4 attentions, and 2 have a place"):
        wrong["capture"](model, None, input_ids=ids)


def test_a_model_that_computes_otherwise_while_it_is_recorded(script: Any, ids: Any) -> None:
    model = make("Llama")
    runs = []

    def drift(module: Model, given: Any, made: Any) -> Any:
        runs.append(1)
        return made + 0.01 * len(runs)

    model.embed_tokens.register_forward_hook(drift)
    with pytest.raises(script["CaptureError"], match="made other numbers than before, off by"):
        script["capture"](model, None, input_ids=ids)


def test_a_projection_that_is_given_other_numbers_than_o_is_said(script: Any, ids: Any) -> None:
    import torch

    model = make("Llama")
    first, second = model.layers
    second.self_attn.o_proj.register_forward_pre_hook(lambda own, args: (args[0].roll(1, 1),))
    gate = torch.rand(64)
    first.self_attn.o_proj.register_forward_pre_hook(lambda own, args: (args[0] * gate,))
    captured = script["capture"](model, None, input_ids=ids)
    assert "gate" in captured["0"][0]
    assert captured["0"][1]["after"] == "gates O"
    assert captured["1"][1]["after"] == "changes O by roll"
    assert torch.allclose(captured["0"][0]["gate"][1, 7], gate[16:32])


def test_scores_that_are_divided_in_place(script: Any, ids: Any) -> None:
    model = make("Falcon", attn_implementation="eager")
    captured = script["capture"](model, None, input_ids=ids)
    assert [texts["scale"] for _, texts in captured.values()] == ["0.25", "0.25"]
