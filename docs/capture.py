"""Record Q, K and V of attention layers of a Hugging Face model, for Tilescope to open.

    python capture.py MODEL LAYERS OUT.safetensors "The text." ["The decoder's text."] [--weights]

MODEL is a folder or a name on the hub. LAYERS is a number, counted from 0, or a list as 0,3-5, or
all; of a model with two stacks encoder.N, decoder.N or cross.N, which need the decoder's text as
well. Of more than one layer each has a file of its own, OUT-N.safetensors. With --weights a file
has x and the weights of the layer instead of Q, K and V. Needs torch and transformers 5;
docs/capture.md tells more.
"""

import json
import re
import sys
from pathlib import Path

EXTRA = (
    "capture needs torch and transformers 5, the extra `capture`: make run EXTRAS=capture in a "
    "checkout of Tilescope, or pip install torch transformers beside this script"
)
USED = "capture.py MODEL LAYERS OUT.safetensors TEXT [DECODER_TEXT] [--weights]"
CROSS = ("EncDecAttention", "encoder_attn", "crossattention", "cross_attn")
"""How models call an attention whose keys are of another text than its queries."""


class CaptureError(Exception):
    """Why there is no file, in one line."""


def place_of(name, model):
    """Return which layer a module is of, by its name in the model: 3, or cross.3."""
    number = re.search(r"\.(\d+)\.", f".{name}.")
    if number is None:
        return None
    if not model.config.is_encoder_decoder:
        return number[1]
    side = "encoder" if name.startswith("encoder.") else "decoder"
    return f"{'cross' if any(word in name for word in CROSS) else side}.{number[1]}"


def capture(model, layers, **given):
    """Run `model` on what is given to it; return tensors and texts of the layers asked for.

    Parameters
    ----------
    model : PreTrainedModel
        Is left as it was.
    layers : list of str, or None
        As `place_of` names them; None for all.
    **given
        For the model: ``input_ids`` (1, N), maybe ``decoder_input_ids``.

    Returns
    -------
    dict
        ``(tensors, texts)`` by layer, as a file has them.
    """
    import torch
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.integrations.sdpa_attention import sdpa_attention_forward
    from transformers.masking_utils import sdpa_mask

    places = {module: place_of(name, model) for name, module in model.named_modules()}
    found, seen = {}, set()

    def keep(module, out, **said):
        place = places.get(module)
        seen.add(place)
        if place is not None and (layers is None or place in layers) and place not in found:
            found[place] = layer_of(out=out, **said)

    def record(module, query, key, value, mask, scaling=None, **more):
        cap, sinks = more.get("softcap"), more.get("s_aux")
        if cap is None and sinks is None:
            out, _ = sdpa_attention_forward(
                module, query, key, value, mask, scaling=scaling, **more
            )
        else:
            out = written_out(query, key, value, mask, scaling, cap, sinks)
        causal = more.get("is_causal")
        keep(
            module,
            out[0].transpose(0, 1),
            q=query[0],
            k=key[0],
            v=value[0],
            causal=getattr(module, "is_causal", True) if causal is None else causal,
            scale=scaling or query.shape[-1] ** -0.5,
            window=more.get("sliding_window") or 0,
            softcap=cap or 0.0,
            sinks=sinks,
            bias=more.get("position_bias"),
        )
        return out, None

    def of_mpt(module, args, kwargs, output):
        # Asks no interface: what it does is done again here, and checked like every other.
        hidden = args[0] if args else kwargs["hidden_states"]
        made = module.Wqkv(hidden)[0]
        if module.clip_qkv:
            made = made.clamp(-module.clip_qkv, module.clip_qkv)
        q, k, v = (t.unflatten(1, (module.n_heads, -1)).transpose(0, 1) for t in made.chunk(3, 1))
        out = outputs[module].unflatten(1, (module.n_heads, -1)).transpose(0, 1)
        bias = args[1] if len(args) > 1 else kwargs.get("position_bias")
        bias = None if bias is None else bias[..., -hidden.shape[1] :][None]
        keep(module, out, q=q, k=k, v=v, causal=True, scale=module.softmax_scale, bias=bias)

    outputs, hooks = {}, []
    for module in model.modules():
        if hasattr(module, "Wqkv") and hasattr(module, "softmax_scale"):
            before = lambda _, args, own=module: outputs.update({own: args[0][0]})  # noqa: E731
            hooks.append(module.out_proj.register_forward_pre_hook(before))
            hooks.append(module.register_forward_hook(of_mpt, with_kwargs=True))
    AttentionInterface.register("record", record)
    AttentionMaskInterface.register("record", sdpa_mask)
    was = model.config._attn_implementation
    model.eval()
    if not hooks:
        model.set_attn_implementation("record")
    try:
        with torch.no_grad():
            model(**{name: ids.to(model.device) for name, ids in given.items()}, use_cache=False)
    finally:
        for hook in hooks:
            hook.remove()
        if not hooks:
            model.set_attn_implementation(was)
    missing = [layer for layer in layers or ["0"] if layer not in found]
    if missing and (layers or not found):
        have = ", ".join(sorted(place for place in seen if place)) or "none that can be seen"
        raise CaptureError(
            f"not captured: the model ran no attention layer {missing[0]} (it ran {have})"
        )
    return found


def written_out(query, key, value, mask, scaling, cap, sinks):
    """Return attention with a soft-cap or sink logits, (1, N, heads, dv), of the model's type."""
    import torch

    group = query.shape[1] // key.shape[1]
    scores = query @ key.repeat_interleave(group, 1).transpose(2, 3) * scaling
    if cap is not None:
        scores = (scores / cap).tanh() * cap
    if mask is None:
        ones = torch.ones(scores.shape[2:], dtype=torch.bool, device=scores.device)
        mask = ones.tril(scores.shape[3] - scores.shape[2])
    scores = scores.masked_fill(~mask, float("-inf")).float()
    if sinks is not None:
        column = sinks.float().reshape(1, -1, 1, 1).expand(*scores.shape[:3], 1)
        scores = torch.cat([scores, column], dim=-1)
    weights = scores.softmax(-1)[..., : key.shape[2]].to(value.dtype)
    return (weights @ value.repeat_interleave(group, 1)).transpose(1, 2).contiguous()


def layer_of(out, q, k, v, causal, scale, window=0, softcap=0.0, sinks=None, bias=None):
    """Return what a file has of a layer, after holding that this is all that the layer does."""
    q, k, v, out = (tensor.detach().cpu().contiguous() for tensor in (q, k, v, out))
    tensors = {"q": q, "k": k, "v": v}
    texts = {"scale": scale, "causal": causal, "window": window, "softcap": softcap}
    if sinks is not None:
        tensors["sink_logits"] = sinks.detach().float().cpu().contiguous()
    sees = visible(q.shape[1], k.shape[1], causal, window)
    if bias is not None and bias.any():
        table, slopes = by_distance(bias[0].detach().cpu(), sees, len(q))
        if slopes is None:
            tensors["bias"] = table
        else:
            texts["alibi"] = json.dumps(slopes)
    check(out, sees, tensors, texts)
    return tensors, {name: str(value).lower() for name, value in texts.items() if value != 0 or
                     name == "causal"}  # fmt: skip


def visible(queries, keys, causal, window):
    """Return which pairs a mask leaves, (queries, keys)."""
    import torch

    ones, late = torch.ones(queries, keys, dtype=torch.bool), keys - queries
    sees = ones.tril(late) if causal else ones
    if window:
        sees = sees & ones.triu(late - window + 1)
        if not causal:
            sees = sees & ones.tril(late + window - 1)
    return sees


def distances(queries, keys):
    """Return where the distance of each pair stands in a table, (queries, keys)."""
    import torch

    place = torch.arange(queries)[:, None] + keys - queries
    return torch.arange(keys)[None] - place + keys - 1


def by_distance(bias, sees, heads):
    """Return a bias matrix, (heads or 1, queries or 1, keys), as a table; ALiBi's as slopes.

    What it adds to all scores of a row alike changes no weight, and is left out if the bias depends
    on the distance alone without it.
    """
    import torch

    bias = bias.double().expand(heads, *sees.shape)
    queries, keys = sees.shape
    where = distances(queries, keys)
    own = torch.arange(keys - queries, keys)[None, :, None].expand(heads, -1, 1)
    for each in (bias, bias - bias.gather(2, own.clamp(min=0))):
        table = torch.zeros(heads, queries + keys - 1, dtype=torch.float64)
        table[:, where[sees]] = each[:, sees]
        if (table[:, where] - each)[:, sees].abs().max() <= 1e-5 * each.abs().max():
            break
    else:
        raise CaptureError("not captured: its position bias depends on more than the distance")
    away = (torch.arange(queries + keys - 1) - (keys - 1)).abs()
    near = torch.zeros(queries + keys - 1, dtype=torch.bool)
    near[where[sees]] = True
    furthest = int((away * near).argmax())
    slopes = -table[:, furthest] / max(1, int(away[furthest]))
    linear = (table + slopes[:, None] * away)[:, near].abs().max() <= 1e-6 * table.abs().max()
    if linear and (slopes >= 0).all():
        return table.float(), [float(slope) for slope in slopes]
    return table.float(), None


def check(out, sees, tensors, texts):
    """Stop unless attention in float64 of what a file has is what the layer itself computed."""
    import torch

    q, k, v = (tensors[name].double() for name in "qkv")
    group, errors, cap = len(q) // len(k), [], texts.get("softcap", 0.0)
    where = distances(q.shape[1], k.shape[1])
    slopes = json.loads(texts.get("alibi", "null")) or [0.0] * len(q)
    for head in range(len(q)):
        scores = q[head] @ k[head // group].T * texts["scale"]
        scores = (scores / cap).tanh() * cap if cap else scores
        scores = scores - slopes[head] * (where - (k.shape[1] - 1)).abs()
        if "bias" in tensors:
            scores = scores + tensors["bias"][head].double()[where]
        scores = scores.masked_fill(~sees, float("-inf"))
        if "sink_logits" in tensors:
            sink = tensors["sink_logits"][head].double().expand(len(scores), 1)
            scores = torch.cat([scores, sink], dim=1)
        weights = scores.softmax(-1)[:, : k.shape[1]]
        errors.append((weights @ v[head // group] - out[head]).abs().max())
    error = torch.stack(errors).max() / out.abs().max()
    if not error < max(1e-5, 4 * torch.finfo(out.dtype).eps):
        raise CaptureError(
            f"not captured: Q, K and V give another output, off by {error:.1e} of it"
        )


def capture_weights(model, layers, **given):
    """Return x, the weights and biases of layers, and their texts, by layer.

    Stops unless the weights make of x what attention was given, and of its output the layer's: a
    layer that turns Q and K by their places (RoPE) or norms them is not x and weights alone.
    """
    out = {}
    for layer in layers if layers is not None else capture(model, None, **given):
        out[layer] = weights_of(model, layer, given)
    return out


def weights_of(model, layer, given):
    """Return x, the weights and biases of one layer, and its texts."""
    named = ("q_proj", "k_proj", "v_proj", "o_proj")
    modules = [
        module
        for name, module in model.named_modules()
        if place_of(name, model) == layer and all(hasattr(module, n) for n in named)
    ]
    if not modules:
        raise CaptureError(f"not captured: no layer {layer} has {', '.join(named)}")
    parts = {name[0]: getattr(modules[0], name) for name in named}
    taken, made = {}, {}

    def keep(module, args, output):
        name = "q" if module is parts["q"] else "o"
        taken[name], made[name] = args[0][0], output[0]

    hooks = [parts[name].register_forward_hook(keep) for name in "qo"]
    try:
        attention, texts = capture(model, [layer], **given)[layer]
    finally:
        for hook in hooks:
            hook.remove()
    more = [name for name in attention if name not in "qkv"]
    if more:
        raise CaptureError(f"not captured: a file with x and weights has no {more[0]}")
    tensors = {"x": taken["q"]}
    for name, part in parts.items():
        tensors[f"w{name}"] = part.weight.detach().T
        if part.bias is not None:
            tensors[f"b{name}"] = part.bias.detach()
    tensors = {name: tensor.cpu().contiguous() for name, tensor in tensors.items()}
    wide = {name: tensor.double() for name, tensor in tensors.items()}
    for name, theirs in attention.items():
        own = wide["x"] @ wide[f"w{name}"] + wide.get(f"b{name}", 0)
        agree(name.upper(), own.unflatten(1, (len(theirs), -1)).transpose(0, 1), theirs)
    own = taken["o"].cpu().double() @ wide["wo"] + wide.get("bo", 0)
    agree("Y", own, made["o"].cpu())
    return tensors, texts


def agree(name, own, theirs):
    """Stop unless what x and the weights make is what the model has computed."""
    import torch

    error = (own - theirs).abs().max() / theirs.abs().max()
    if not error < max(1e-5, 4 * torch.finfo(theirs.dtype).eps):
        raise CaptureError(
            f"not captured: x and the weights give another {name}, off by {error:.1e} of it "
            "(RoPE or a norm after the product?)"
        )


def layer_list(text):
    """Return the layers that a text names, cross.0,cross.2-4 for example; None for all."""
    if text == "all":
        return None
    layers = []
    for part in text.split(","):
        match = re.fullmatch(
            r"((?:encoder|decoder|cross)\.)?(\d{1,4})(?:-(\d{1,4}))?", part.strip()
        )
        if match is None:
            raise CaptureError(f"layers {text!r}: expected a number, a list as 0,3-5, or all")
        side, first, last = match[1] or "", int(match[2]), int(match[3] or match[2])
        layers += [f"{side}{number}" for number in range(first, last + 1)]
    return layers


def write_files(name, layers, path, text, decoder_text="", weights=False):
    """Capture layers of a model by its name or folder; write files and yield a line for each."""
    layers, path = layer_list(layers), Path(path)
    if path.suffix != ".safetensors":
        raise CaptureError(f"{path}: expected a name that ends in .safetensors")
    try:
        from safetensors.torch import save_file
        from transformers import AutoModel, AutoTokenizer
        from transformers.utils import logging
    except ImportError:
        raise CaptureError(EXTRA) from None
    logging.disable_progress_bar()  # of weights that are loaded: one line is what an error has
    try:
        tokenizer, model = AutoTokenizer.from_pretrained(name), AutoModel.from_pretrained(name)
    except (OSError, ValueError, KeyError, ImportError) as error:
        why = str(error).strip().splitlines() or [type(error).__name__]
        raise CaptureError(
            f"{name}: expected a model's folder or its name on the hub: {why[0]}"
        ) from None
    ids = tokenizer(text, return_tensors="pt").input_ids
    given = {"input_ids": ids}
    both = model.config.is_encoder_decoder
    if both:
        layers = layers and [layer if "." in layer else f"encoder.{layer}" for layer in layers]
        own = tokenizer(decoder_text, return_tensors="pt").input_ids if decoder_text else ids
        given["decoder_input_ids"] = own
        if not decoder_text and (layers is None or any("encoder" not in one for one in layers)):
            raise CaptureError(f"{name}: expected a second text, which its decoder reads")
    captured = (capture_weights if weights else capture)(model, layers, **given)

    def tokens_of(side):
        chosen = given["decoder_input_ids" if side == "decoder" else "input_ids"][0].tolist()
        return json.dumps([tokenizer.decode([token]) for token in chosen])

    for layer, (tensors, texts) in captured.items():
        side = layer.split(".")[0] if both else ""
        own = {"tokens": tokens_of("decoder" if side == "decoder" else "encoder")}
        if side == "cross":
            own["query_tokens"] = tokens_of("decoder")
        file = path if len(captured) == 1 else path.with_stem(f"{path.stem}-{layer}")
        save_file(tensors, file, {**own, "model": str(name), "layer": layer, **texts})
        yield " ".join([str(file), *(f"{key} {tuple(t.shape)}" for key, t in tensors.items())])
    if weights:
        heads = model.config.num_attention_heads
        yield f'Open it with source = "layer", and write `heads = {heads}` under [attention].'


def main(arguments):
    """Do what a command line says; return its exit status."""
    words = [word for word in arguments if word != "--weights"]
    if not 4 <= len(words) <= 5 or any(word.startswith("-") for word in words):
        print(__doc__ if not words or "--help" in words else f"usage: {USED}", file=sys.stderr)
        return 2
    try:
        for line in write_files(*words, weights=len(words) < len(arguments)):
            print(line)
    except CaptureError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
