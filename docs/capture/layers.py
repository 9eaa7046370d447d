"""Record what goes into whole layers, and their weights."""

from recording import Captured, CaptureError, capture
from tensors import agree

PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj")


def capture_weights(model, layers, **given):
    """Return x, the weights and biases of layers, and their texts, by place.

    Stops unless the weights make of x what attention was given, and of its output the layer's: a
    layer that turns Q and K by their places (RoPE) or norms them is not x and weights alone.
    """
    taken, hooks = {}, []
    for module in model.modules():
        if all(hasattr(module, part) for part in PROJECTIONS):
            for part in (module.q_proj, module.o_proj):
                keep = lambda own, args, made: taken.update({own: (args[0][0], made[0])})  # noqa: E731
                hooks.append(part.register_forward_hook(keep))
    try:
        attention = capture(model, layers, **given)
    finally:
        for hook in hooks:
            hook.remove()
    out, modules = Captured(), dict(model.named_modules())
    out.left_out = attention.left_out
    out.heads = {place: len(tensors["q"]) for place, (tensors, _) in attention.items()}
    for place, own in attention.items():
        module = modules[attention.modules[place]]
        if not all(hasattr(module, part) for part in PROJECTIONS):
            raise CaptureError(f"not captured: no layer {place} has {', '.join(PROJECTIONS)}")
        if list(attention.modules.values()).count(attention.modules[place]) > 1:
            raise CaptureError(f"not captured: layer {place} runs more than once with its weights")
        out[place] = weights_of(module, own, taken)
    return out


def weights_of(module, captured, taken):
    """Return x, the weights and biases of one layer, and its texts."""
    attention, texts = captured
    more = [name for name in (*attention, *texts) if name in ("after", "mask", "gate", "bias",
                                                             "sink_logits")]  # fmt: skip
    if more:
        why = texts["after"] if "after" in more else f"has {more[0]}"
        raise CaptureError(f"not captured: x and the weights are not all: the layer {why}")
    tensors = {"x": taken[module.q_proj][0]}
    for name in PROJECTIONS:
        part = getattr(module, name)
        tensors[f"w{name[0]}"] = part.weight.detach().T
        if part.bias is not None:
            tensors[f"b{name[0]}"] = part.bias.detach()
    tensors = {name: tensor.cpu().contiguous() for name, tensor in tensors.items()}
    wide = {name: tensor.double() for name, tensor in tensors.items()}
    for name, theirs in attention.items():
        own = wide["x"] @ wide[f"w{name}"] + wide.get(f"b{name}", 0)
        agree(name.upper(), own.unflatten(1, (len(theirs), -1)).transpose(0, 1), theirs)
    given, made = (each.cpu() for each in taken[module.o_proj])
    agree("Y", given.double() @ wide["wo"] + wide.get("bo", 0), made)
    return tensors, texts
