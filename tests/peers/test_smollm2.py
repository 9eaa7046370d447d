"""SmolLM2 in GGUF beside transformers' Llama, where make sentence-models has downloaded it."""

import numpy as np
import pytest

from simulator.language.models import MODELS, opened

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
KNOWN = MODELS["smollm2"]
pytestmark = [pytest.mark.peers, pytest.mark.skipif(not KNOWN.path.exists(), reason=KNOWN.expected)]
BLOCK = "model.layers.{}."
NAMES = {
    "norm1": "input_layernorm", "norm2": "post_attention_layernorm", "q": "self_attn.q_proj",
    "k": "self_attn.k_proj", "v": "self_attn.v_proj", "o": "self_attn.o_proj",
    "gate": "mlp.gate_proj", "up": "mlp.up_proj", "down": "mlp.down_proj",
}  # fmt: skip


def test_logits_are_those_of_the_library() -> None:
    own = opened(KNOWN)
    s, stored = own.shape, {}
    for name, values in own._weights.items():
        *block, last = name.removeprefix("blocks.").split(".")
        theirs = BLOCK.format(*block) + NAMES[last] if block else f"model.{last}"
        stored[f"{theirs.replace('embed', 'embed_tokens')}.weight"] = torch.tensor(values)
    config = transformers.LlamaConfig(
        vocab_size=s.vocabulary, hidden_size=s.width, intermediate_size=s.hidden,
        num_hidden_layers=s.layers, num_attention_heads=s.heads, num_key_value_heads=s.kv_heads,
        max_position_embeddings=s.learned, rms_norm_eps=s.eps, tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": s.base},
    )  # fmt: skip
    twin = transformers.LlamaForCausalLM(config).eval()
    left = twin.load_state_dict(stored, strict=False)
    assert left.missing_keys == ["lm_head.weight"]
    assert not left.unexpected_keys
    tokens = own.tokenizer.encode("The capital of France is Paris. The capital of Germany is")
    with torch.no_grad():
        logits = twin(torch.tensor([tokens])).logits[0].numpy()
    assert np.abs(own.run(tokens).logits - logits).max() <= 5e-4
    assert own.tokenizer.label(int(logits[-1].argmax())) == " Berlin"
