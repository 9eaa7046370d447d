"""Record Q, K and V of one attention layer of a Hugging Face model, for Tilescope to open.

    python capture.py MODEL LAYER OUT.safetensors "The text that the model reads."

MODEL is a folder or a name on the hub. Needs torch and transformers 5; docs/capture.md tells more.
"""

import json
import sys

import torch
from safetensors.torch import save_file
from transformers import AttentionInterface, AttentionMaskInterface, AutoModel, AutoTokenizer
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask


def capture(model, ids, layer):
    """Run `model` on `ids` (1, N); return q, k, v of `layer` and what the file says of them."""
    found = {}

    def record(module, query, key, value, mask, scaling=None, **more):
        odd = [name for name in ("softcap", "s_aux", "position_bias") if more.get(name) is not None]
        if odd:
            raise SystemExit(f"not captured: {odd[0]} changes the scores beyond scale * QK^T")
        out, _ = sdpa_attention_forward(module, query, key, value, mask, scaling=scaling, **more)
        if getattr(module, "layer_idx", None) == layer:
            causal = more.get("is_causal")
            found.update(q=query[0], k=key[0], v=value[0], out=out[0].transpose(0, 1))
            found.update({name: tensor.cpu().contiguous() for name, tensor in found.items()})
            found["causal"] = getattr(module, "is_causal", True) if causal is None else causal
            found["scale"] = scaling or query.shape[-1] ** -0.5
            found["window"] = more.get("sliding_window") or 0
        return out, None

    AttentionInterface.register("record", record)
    AttentionMaskInterface.register("record", sdpa_mask)
    before = model.config._attn_implementation
    model.eval().set_attn_implementation("record")
    try:
        with torch.no_grad():
            model(input_ids=ids.to(model.device), use_cache=False)
    finally:
        model.set_attn_implementation(before)
    if not found:
        raise SystemExit(f"not captured: the model ran no attention layer {layer}")
    check(**found)
    tensors = {name: found[name] for name in "qkv"}
    said = {"layer": layer, "scale": found["scale"], "causal": found["causal"]}
    return tensors, {name: str(value).lower() for name, value in said.items()}, found["window"]


def check(q, k, v, out, causal, scale, window):
    """Stop unless softmax(scale * QK^T) V in float64 is what the layer itself computed."""
    ones = torch.ones(q.shape[1], k.shape[1], dtype=torch.bool)
    late = k.shape[1] - q.shape[1]
    sees = ones.tril(late) if causal else ones
    if window:
        sees = sees & ones.triu(late - window + 1)
    errors = []
    for head, kv_head in enumerate(torch.arange(len(k)).repeat_interleave(len(q) // len(k))):
        scores = q[head].double() @ k[kv_head].double().T * scale
        weights = scores.masked_fill(~sees, float("-inf")).softmax(-1)
        errors.append((weights @ v[kv_head].double() - out[head]).abs().max())
    error = torch.stack(errors).max() / out.abs().max()
    if not error < max(1e-5, 4 * torch.finfo(out.dtype).eps):
        raise SystemExit(f"not captured: Q, K and V give another output, off by {error:.1e} of it")


if __name__ == "__main__":
    if len(sys.argv) != 5 or not sys.argv[2].isdigit():
        raise SystemExit(__doc__)
    name, layer, path, text = sys.argv[1:]
    tokenizer, model = AutoTokenizer.from_pretrained(name), AutoModel.from_pretrained(name)
    ids = tokenizer(text, return_tensors="pt").input_ids
    tensors, said, window = capture(model, ids, int(layer))
    tokens = json.dumps([tokenizer.decode([token]) for token in ids[0].tolist()])
    save_file(tensors, path, {"tokens": tokens, "model": name, **said})
    print(path, *(f"{key} {tuple(tensor.shape)}" for key, tensor in tensors.items()))
    if 0 < window < ids.shape[1]:
        print(f"The layer has a window: write `window = {window}` under [mask] in the scenario.")
