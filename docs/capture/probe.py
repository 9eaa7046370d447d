"""Attention that a layer computes in pieces: its weights, by what it makes of other values.

Attention's output is linear in V. Of values that are 1 for one key in each column, and 0 else, a
layer makes the weights of these keys, however it computes them: in blocks, in diagonals, gathered.
Of queries that are 0 it makes the weights that mask and bias alone give.
"""

import torch
from scores import APART, HEADS, CaptureError, Scores

NAMES = (
    ("query", "key", "value"),
    ("q", "k", "v"),
    ("q_proj", "k_proj", "v_proj"),
)
"""How modules call their projections."""
LAST = ("o", "out_proj", "o_proj", "dense")
"""How they call the output projection, if it is their own."""


def parts_of(module):
    """Return the projections to Q, K and V of a module; None if it has none of its own."""
    for names in NAMES:
        parts = [getattr(module, name, None) for name in names]
        if all(isinstance(part, torch.nn.Linear) for part in parts):
            return parts
    return None


class Layer:
    """A module with projections of its own, run again with other values.

    Parameters
    ----------
    module : Module
        Has the projections.
    args, kwargs
        What it was given in the model's run.
    """

    def __init__(self, module, args, kwargs):
        self._module, self._args, self._kwargs = module, args, kwargs

    def run(self, **others):
        """Return Q, K, V and O as rows of all heads; `others` stand in place of q or v."""
        made, hooks = {}, []
        parts = dict(zip("qkv", parts_of(self._module), strict=True))

        def keep(name):
            def hook(_, given, out):
                made[name] = out.clone()  # some layers scale it in place
                return others[name].view_as(out) if name in others else None

            return hook

        hooks = [part.register_forward_hook(keep(name)) for name, part in parts.items()]
        last = next((each for name in LAST if (each := getattr(self._module, name, None))), None)
        if isinstance(last, torch.nn.Linear):
            before = lambda _, given: made.update(o=given[0])  # noqa: E731
            hooks.append(last.register_forward_pre_hook(before))
        try:
            out = self._module(*self._args, **self._kwargs)
        finally:
            for hook in hooks:
                hook.remove()
        made.setdefault("o", out[0] if isinstance(out, tuple | list) else out)
        return [made[name].detach().reshape(-1, made[name].shape[-1]) for name in "qkvo"]


def probe(module, args, kwargs):
    """Return the attention of a module that computes it in pieces.

    Raises
    ------
    CaptureError
        It has no weights of softmax for each pair.
    """
    said = [getattr(module, name, None) for name in HEADS]
    heads = next((each for each in said if isinstance(each, int)), 0)
    given = next((each for each in (*args, *kwargs.values()) if torch.is_tensor(each)), None)
    if given is not None and given.ndim > 2 and len(given) > 1:
        raise CaptureError(APART.format(len(given)))
    layer = Layer(module, args, kwargs)
    flat = layer.run()
    if not heads or any(len(each) != len(flat[0]) or each.shape[1] % heads for each in flat):
        raise CaptureError("not captured: attention is computed in pieces")
    q, k, v, out = (each.unflatten(1, (heads, -1)).transpose(0, 1) for each in flat)
    weights, resting = weights_of(layer, v), weights_of(layer, v, q=torch.zeros_like(flat[0]))
    off = (weights @ v - out).abs().max() / out.abs().max()
    if not off < 1e-4 or (resting < 0).any():
        raise CaptureError("not captured: O is no sum of weighted values")
    used = (resting != 0).any(0)
    last = int((used.any(0) | used.any(1)).nonzero().max()) + 1  # padding follows
    q, k, v, out = (t[:, :last] for t in (q, k, v, out))
    weights, resting = (t[:, :last, :last].double() for t in (weights, resting))
    sees = resting > 0
    times = resting / resting.masked_fill(~sees, 2.0).amin(-1, keepdim=True)
    if times.max() > 1.5 and (times - times.round()).abs().max() < 1e-4:
        raise CaptureError("not captured: rows count some keys more than once")
    bias = centred(resting.clamp(min=1e-300).log(), sees)
    bias = None if bias.abs().max() < 1e-5 else bias
    scale = scale_of(q, k, weights, resting)
    same = bool((sees == sees[:1]).all())
    return Scores(q, k, v, out, scale, sees[:1] if same else sees, bias=bias, reached=True)


def centred(table, sees):
    """Return numbers of pairs without their mean over each row, 0 where a pair is hidden."""
    count = sees.sum(-1, keepdim=True).clamp(min=1)
    return (table - (table * sees).sum(-1, keepdim=True) / count) * sees


def scale_of(q, k, weights, resting):
    """Return the scale that explains weights beside those of queries that are 0."""
    sure = (weights > 1e-6) & (resting > 0)
    gain = centred((weights.clamp(min=1e-300) / resting.clamp(min=1e-300)).log(), sure)
    products = centred(q.double() @ k.double().transpose(1, 2), sure)
    fitted = float((products * gain).sum() / (products * products).sum())
    usual = q.shape[-1] ** -0.5, 1.0
    return next((each for each in usual if abs(each - fitted) < 1e-3 * each), fitted)


def weights_of(layer, v, **others):
    """Return the weights of a layer, (heads, N, N)."""
    heads, keys, wide = v.shape
    weights = torch.zeros(heads, keys, keys, dtype=v.dtype)
    for first in range(0, keys, wide):
        count = min(wide, keys - first)
        values = torch.zeros(keys, heads, wide, dtype=v.dtype)
        values[range(first, first + count), :, range(count)] = 1.0
        *_, made = layer.run(v=values, **others)
        made = made.unflatten(1, (heads, wide)).transpose(0, 1)
        weights[:, :, first : first + count] = made[:, :, :count]
    return weights
