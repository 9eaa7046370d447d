"""Record Q, K and V of one attention layer of a Hugging Face model, for Tilescope to open.

    python capture.py MODEL LAYER OUT.safetensors "The text that the model reads." [--weights]

MODEL is a folder or a name on the hub. With --weights the file has x and the weights of the layer
instead of Q, K and V. Needs torch and transformers 5; docs/capture.md tells more.
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


def capture_weights(model, ids, layer):
    """Run `model` on `ids`; return x, the weights and biases of `layer`, and what `capture` says.

    Stops unless the weights make of x what attention was given, and of its output the layer's: a
    layer that turns Q and K by their places (RoPE) or norms them is not x and weights alone.
    """
    named = ("q_proj", "k_proj", "v_proj", "o_proj")
    found = [
        module
        for module in model.modules()
        if getattr(module, "layer_idx", None) == layer and all(hasattr(module, n) for n in named)
    ]
    if not found:
        raise SystemExit(f"not captured: no layer {layer} has {', '.join(named)}")
    parts = {name[0]: getattr(found[0], name) for name in named}
    given, made = {}, {}

    def keep(module, args, output):
        name = "q" if module is parts["q"] else "o"
        given[name], made[name] = args[0][0], output[0]

    hooks = [parts[name].register_forward_hook(keep) for name in "qo"]
    try:
        attention, said, window = capture(model, ids, layer)
    finally:
        for hook in hooks:
            hook.remove()
    tensors = {"x": given["q"]}
    for name, part in parts.items():
        tensors[f"w{name}"] = part.weight.detach().T
        if part.bias is not None:
            tensors[f"b{name}"] = part.bias.detach()
    tensors = {name: tensor.cpu().contiguous() for name, tensor in tensors.items()}
    wide = {name: tensor.double() for name, tensor in tensors.items()}
    for name, theirs in attention.items():
        own = wide["x"] @ wide[f"w{name}"] + wide.get(f"b{name}", 0)
        agree(name.upper(), own.unflatten(1, (len(theirs), -1)).transpose(0, 1), theirs)
    own = given["o"].cpu().double() @ wide["wo"] + wide.get("bo", 0)
    agree("Y", own, made["o"].cpu())
    return tensors, said, window


def agree(name, own, theirs):
    """Stop unless what x and the weights make is what the model has computed."""
    error = (own - theirs).abs().max() / theirs.abs().max()
    if not error < max(1e-5, 4 * torch.finfo(theirs.dtype).eps):
        raise SystemExit(
            f"not captured: x and the weights give another {name}, off by {error:.1e} of it "
            "(RoPE or a norm after the product?)"
        )


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
    arguments = [argument for argument in sys.argv[1:] if argument != "--weights"]
    if len(arguments) != 4 or not arguments[1].isdigit():
        raise SystemExit(__doc__)
    name, layer, path, text = arguments
    record = capture if len(arguments) == len(sys.argv) - 1 else capture_weights
    tokenizer, model = AutoTokenizer.from_pretrained(name), AutoModel.from_pretrained(name)
    ids = tokenizer(text, return_tensors="pt").input_ids
    tensors, said, window = record(model, ids, int(layer))
    tokens = json.dumps([tokenizer.decode([token]) for token in ids[0].tolist()])
    save_file(tensors, path, {"tokens": tokens, "model": name, **said})
    print(path, *(f"{key} {tuple(tensor.shape)}" for key, tensor in tensors.items()))
    if record is capture_weights:
        heads = model.config.num_attention_heads
        print(f'Open it with source = "layer", and write `heads = {heads}` under [attention].')
    if 0 < window < ids.shape[1]:
        print(f"The layer has a window: write `window = {window}` under [mask] in the scenario.")
