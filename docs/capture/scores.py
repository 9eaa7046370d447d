"""What attention does to scores: read from the operations of a model, and checked in float64."""

import json
import math
from dataclasses import dataclass, field

import torch
from follow import tensors_in

HIDDEN = -9e3
"""A score below that is hidden: its weight is 0 in every type."""
PRODUCTS = {"matmul", "bmm", "baddbmm", "einsum"}
KEPT = {
    "view", "reshape", "to", "type_as", "float", "half", "bfloat16", "double", "contiguous",
    "clone", "dropout", "unsqueeze", "squeeze", "expand", "__getitem__", "unflatten", "flatten",
    "view_as", "feature_dropout",
}  # fmt: skip
APART = "not captured: attention runs apart in {:g} parts of the sequence (windows or chunks)"
HEADS = ("num_heads", "num_attention_heads", "n_heads", "n_head", "attention_heads")
"""How modules call their number of query heads."""


class CaptureError(Exception):
    """Why there is no file, in one line."""


@dataclass
class Scores:
    """Attention of a layer: its inputs, what it does to scores, and its output.

    Attributes
    ----------
    q, k, v, out : Tensor
        ``(heads, Nq, d)``, ``(kv heads, Nk, d)``, ``(kv heads, Nk, dv)``, ``(heads, Nq, dv)``.
    scale : float
        What q·k is multiplied by.
    sees : Tensor
        Which pairs are visible, ``(heads or 1, Nq, Nk)`` bool.
    softcap : float
        0 for none.
    bias : Tensor or None
        What is added to scores, of a shape that broadcasts with them.
    sinks : Tensor or None
        A logit of each head that joins its softmax.
    made : Tensor or None
        Scores as the model has them before softmax, if it rounds them to half the bits.
    causal, window : bool, int
        What the module says of its mask; holds only where the mask itself leaves it open.
    gate : Tensor or None
        What the layer multiplies O by, ``(heads, Nq, dv)``.
    after : list of str
        What it does to O before the output projection.
    reached : bool
        Whether that projection was seen.
    """

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    out: torch.Tensor
    scale: float
    sees: torch.Tensor
    softcap: float = 0.0
    bias: torch.Tensor | None = None
    sinks: torch.Tensor | None = None
    made: torch.Tensor | None = None
    capped: bool = False
    causal: bool | None = None
    window: int = 0
    gate: torch.Tensor | None = None
    after: list[str] = field(default_factory=list)
    reached: bool = False

    def of(self, module, args, kwargs):
        """Return this attention as that of a module that was given something."""
        groups = getattr(module, "num_key_value_groups", 1)
        given = [each for each in (*args, *kwargs.values()) if isinstance(each, torch.Tensor)]
        one = bool(given) and given[0].ndim == 3 and given[0].shape[1] == 1
        if one and self.q.shape[1] == groups > 1 and len(self.q) == len(self.k):
            # The queries of a group stand below each other, where there is one token.
            heads = len(self.q) * groups
            self.q, self.out = (t.reshape(heads, 1, -1) for t in (self.q, self.out))
            if self.bias is not None or len(self.sees) > 1 or not self.sees.all():
                flat = self.sees.expand(heads // groups, groups, -1)
                self.sees = flat.reshape(heads, 1, -1)
            else:
                self.sees = self.sees[:, :1]
        said = [getattr(module, name, None) for name in HEADS]
        heads = next((each for each in said if isinstance(each, int)), len(self.q))
        if len(self.q) != heads and given and given[0].shape[-2] != self.q.shape[1]:
            raise CaptureError(APART.format(len(self.q) / heads))
        causal, window = getattr(module, "is_causal", None), getattr(module, "sliding_window", None)
        self.causal = causal if isinstance(causal, bool) else None
        self.window = window if isinstance(window, int) else 0
        return self

    def does(self, what):
        """Note something that a layer does to O before the output projection."""
        if what not in self.after:
            self.after.append(what)

    def gated(self, given, factor):
        """Note that what came of O is multiplied, in the shape that it has by then."""
        factor = torch.as_tensor(factor).expand_as(given).detach()
        own = self.out if self.gate is None else self.out * self.gate
        for there, back in self._layouts(given):
            if there.shape == own.shape and torch.equal(there, own.to(there.dtype)):
                gate = back(factor)
                self.gate = gate.clone() if self.gate is None else self.gate * gate
                self.does("gates O")
                return
        self.does("changes O (mul)")

    def projected(self, given):
        """Note what the output projection is given."""
        own = self.out if self.gate is None else self.out * self.gate
        flat = own.transpose(0, 1).reshape(own.shape[1], -1)
        self.reached = True
        if self.after and self.after != ["gates O"]:
            return
        rows = given.reshape(-1, given.shape[-1])
        near = rows.shape == flat.shape and torch.allclose(
            rows.double(), flat.double(), rtol=0, atol=float(flat.double().abs().max()) * 1e-2
        )
        if not near:
            self.does("changes O")

    def _layouts(self, given):
        """Yield what was made of O as (heads, Nq, dv), and how to turn another tensor so."""
        heads, rows, wide = self.out.shape
        turns = (
            lambda t: t.reshape(rows, heads, wide).transpose(0, 1),
            lambda t: t.reshape(heads, rows, wide),
        )
        if given.numel() == self.out.numel():
            yield from ((turn(given), turn) for turn in turns)


# --- reading operations --------------------------------------------------------------------------


def of_sdpa(args, kwargs, out):
    """Return the attention that scaled_dot_product_attention computes."""
    names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa")
    said = dict(zip(names, args, strict=False)) | kwargs
    q, k, v = (whole(said[name]) for name in names[:3])
    mask, scale = said.get("attn_mask"), said.get("scale")
    sees, bias = torch.ones(1, q.shape[1], k.shape[1], dtype=torch.bool), None
    if said.get("is_causal"):
        sees = sees.tril()
    if mask is not None and mask.dtype == torch.bool:
        sees = sees & of_heads(mask, q, k).cpu()
    elif mask is not None:
        added = of_heads(mask, q, k).detach().cpu()
        sees, bias = sees & (added > HIDDEN), added.masked_fill(added <= HIDDEN, 0.0)
    scale = q.shape[-1] ** -0.5 if scale is None else float(scale)
    k, v = without_repeats(len(q), k, v)
    return Scores(q, k, v, whole(out), scale, sees, bias=bias)


def of_heads(mask, q, k):
    """Return a mask or a bias as (heads or 1, Nq or 1, Nk)."""
    mask = (
        mask.reshape(-1, *mask.shape[-2:]) if mask.ndim > 2 else mask.reshape(1, *mask.shape[-2:])
    )
    if len(mask) not in (1, len(q)):
        raise CaptureError("not captured: attention runs over more than one sequence")
    return mask.expand(len(mask), q.shape[1], k.shape[1])


def whole(tensor):
    """Return a tensor of any leading axes, whose first is the batch's, as (heads, N, d).

    Raises
    ------
    CaptureError
        There is more than one sequence, or part of it, in the batch.
    """
    if tensor.ndim > 3 and len(tensor) > 1:
        raise CaptureError(APART.format(len(tensor)))
    return tensor.detach().reshape(-1, *tensor.shape[-2:])


def without_repeats(heads, k, v):
    """Return K and V of each KV head, where the heads of a group have the same."""
    for kept in range(1, len(k)):
        if len(k) % kept == 0:
            firsts = [t.unflatten(0, (kept, -1)) for t in (k, v)]
            if all(torch.equal(t, t[:, :1].expand_as(t)) for t in firsts):
                return tuple(t[:, 0] for t in firsts)
    return k, v


def of_softmax(name, args, kwargs, out, how):
    """Return what reads the attention that a product ends, None if it is none of a softmax."""
    if name not in PRODUCTS:
        return None
    parts = tensors_in(args[1:] if name in ("baddbmm", "einsum") else args, kwargs)
    if len(parts) != 2 or parts[0].ndim < 3:
        return None
    made = back_to_softmax(parts[0], how)
    if made is None:
        return None

    def read():
        p, v = parts
        o = out
        if name == "einsum":
            p, v, o = turned(args[0], p, v, out)
        return of_products(made, p, v, o, how)

    return read


def back_to_softmax(tensor, how):
    """Return how the softmax was made that weights come of; None if they are none."""
    for _ in range(24):
        made = how(tensor)
        if made is None:
            return None
        name = made.name.strip("_")
        if name in ("softmax", "softmax_"):
            dim = made.kwargs.get("dim", made.args[1] if len(made.args) > 1 else None)
            return made if dim in (-1, tensor.ndim - 1) and tensor.ndim > 2 else None
        if made.name not in KEPT | {"where", "nan_to_num", "masked_fill", "masked_fill_", "mul"}:
            return None
        tensor = made.args[0] if name != "where" else made.args[1]
        if not isinstance(tensor, torch.Tensor):
            return None
    return None


def turned(equation, one, other, out):
    """Return the operands and the result of a product by einsum, with the axes of a matmul."""
    if "..." in equation:
        raise CaptureError(f"not captured: scores are made by einsum({equation!r})")
    left, right = equation.replace(" ", "").split("->")
    a, b = left.split(",")
    (inner,) = (set(a) & set(b)) - set(right) or {""}
    rows, cols = [c for c in a if c not in b], [c for c in b if c not in a]
    if not inner or len(rows) != 1 or len(cols) != 1:
        raise CaptureError(f"not captured: scores are made by einsum({equation!r})")
    rest = [c for c in right if c in a and c in b]
    order = lambda t, names, last: t.permute([names.index(c) for c in (*rest, *last)])  # noqa: E731
    return (
        order(one, a, (rows[0], inner)),
        order(other, b, (inner, cols[0])),
        order(out, right, (rows[0], cols[0])),
    )


def of_products(made, p, v, out, how):
    """Return the attention of a softmax and the product with V."""
    before = made.args[0]
    first = how(before)
    if first is None:
        raise CaptureError("not captured: scores are no product of queries and keys")
    product, stages = stages_of(first, how)
    q, k, factor, added = operands(product)
    lead = torch.broadcast_shapes(q.shape[:-2], k.shape[:-2])
    q, k = (whole(t.expand(*lead, *t.shape[-2:])) for t in (q, k))
    outs = whole(out)
    v = whole(v.expand(*out.shape[:-2], *v.shape[-2:]))
    k, v = without_repeats(len(q), k, v)
    scores = before.detach()
    scores = scores.reshape(-1, *scores.shape[-2:])[..., : k.shape[1]]
    found = Scores(q, k, v, outs, factor, scores > HIDDEN, bias=added)
    if scores.dtype not in (torch.float32, torch.float64):
        found.made = scores.cpu()
    if scores.shape[0] != len(q):
        raise CaptureError("not captured: scores have other heads than queries")
    for stage, value in stages:
        apply(found, stage, value)
    found.scale *= found.softcap or 1.0
    if found.bias is not None:
        found.bias = of_heads(found.bias.broadcast_to(scores.shape[-2:] if found.bias.ndim < 2
                              else found.bias.shape), q, k)  # fmt: skip
        found.bias = found.bias.masked_fill(found.bias <= HIDDEN, 0.0).cpu()
    found.sees = (found.sees[:1] if (found.sees == found.sees[:1]).all() else found.sees).cpu()
    return found


def apply(found, stage, value):
    """Do a stage of scores to what is known of them."""
    if stage == "cap":
        found.capped = True
        if found.bias is not None:
            raise CaptureError("not captured: scores get a bias before a soft-cap")
    elif stage == "scale" and found.capped:
        if found.softcap:
            raise CaptureError("not captured: scores are scaled after a soft-cap")
        found.softcap = value
    elif stage == "scale":
        found.scale *= value
        found.bias = None if found.bias is None else found.bias * value
    elif stage == "add":
        found.bias = value if found.bias is None else found.bias + value
    elif stage == "sinks":
        heads = value.reshape(len(found.q), -1)
        if not (heads == heads[:, :1]).all():
            raise CaptureError("not captured: a sink logit is another for each row")
        found.sinks = heads[:, 0]


def operands(product):
    """Return Q, K, the factor of their product and what is added to it."""
    factor, added, args = 1.0, None, product.args
    if product.name == "einsum":
        q, k, _ = turned(args[0], *tensors_in(args[1:]), product.out)
    elif product.name == "baddbmm":
        factor = float(product.kwargs.get("alpha", 1.0))
        added = args[0]
        q, k = tensors_in(args[1:], product.kwargs)
        beta = float(product.kwargs.get("beta", 1.0))
        added = None if not beta else added.detach() * beta
    else:
        q, k = tensors_in(args, product.kwargs)
    return q.detach(), k.detach().transpose(-1, -2), factor, added


def stages_of(made, how):
    """Return the product that scores begin with, and what is done to it, first things first.

    Raises
    ------
    CaptureError
        Something is done to them for which a file has no key.
    """
    stages = []
    while made.name not in PRODUCTS:
        made, stage = step(made, how)
        stages += [stage] if stage else []
    return made, stages[::-1]


def step(made, how):
    """Return what made the scores that an operation is done to, and the stage that it is."""
    name = made.name.strip("_")
    parts = made.args[0] if name == "cat" else made.args
    if made.before is not None:
        before, others = made.before, parts[1:]
    else:
        first = next((each for each in parts if leads(each, how)), None)
        if first is None:
            raise CaptureError("not captured: scores are no product of queries and keys")
        before, others = how(first), [each for each in parts if each is not first]
    last = others[-1] if others else None
    if made.name in KEPT or name in ("setitem", "max", "maximum", "clamp", "clamp_min"):
        return before, None
    if name in ("mul", "div", "truediv"):
        factor = constant(last)
        if name == "mul" and isinstance(last, torch.Tensor) and ((last == 0) | (last == 1)).all():
            return before, None  # of a mask, whose hidden pairs are lowered next
        if factor is not None and (name == "mul" or parts[0] is not last):
            return before, ("scale", factor if name == "mul" else 1 / factor)
    if name in ("add", "sub"):
        if not isinstance(last, torch.Tensor) or not last.ndim or last.shape[-1] == 1:
            return before, None  # the same for a whole row: it changes no weight
        sign = float(made.kwargs.get("alpha", 1.0)) * (1 if name == "add" else -1)
        return before, ("add", last.detach() * sign)
    if name == "tanh":
        return before, ("cap", None)
    if name in ("masked_fill", "where"):
        filled = made.kwargs.get("value", last)
        if float(filled.max() if isinstance(filled, torch.Tensor) else filled) <= HIDDEN:
            return before, None
    if name == "cat" and parts[-1] is last and last.shape[-1] == 1:
        return before, ("sinks", last.detach())
    raise CaptureError(f"not captured: scores go through {name}, for which a file has no key")


def leads(tensor, how):
    """Whether a tensor comes of a product of queries and keys."""
    todo = [tensor] if isinstance(tensor, torch.Tensor) and tensor.ndim > 2 else []
    for _ in range(64):
        made = how(todo.pop()) if todo else None
        if made is not None and made.name in PRODUCTS:
            return True
        if made is not None and made.name not in ("linear", "embedding", "addmm"):
            todo += tensors_in(made.args) if made.before is None else [made.before.out]
    return False


def constant(value):
    """Return a number, also in a tensor that has nothing else; None if it is more."""
    if isinstance(value, torch.Tensor):
        return float(value.reshape(-1)[0]) if value.numel() == 1 else None
    return float(value)


# --- what a file has ------------------------------------------------------------------------------


def kept(scores):
    """Return tensors and texts of an attention, after holding that they are all that it does.

    Raises
    ------
    CaptureError
        They are not.
    """
    moved = [t.detach().cpu() for t in (scores.q, scores.k, scores.v, scores.out)]
    q, k, v, out = (t.float() if t.dtype == torch.float64 else t for t in moved)
    tensors = {"q": q.contiguous(), "k": k.contiguous(), "v": v.contiguous()}
    texts = {"scale": scores.scale, "softcap": scores.softcap}
    if scores.sinks is not None:
        tensors["sink_logits"] = scores.sinks.float().cpu().contiguous()
    sees = scores.sees
    causal, window, rest = mask_of(sees, scores.causal, scores.window)
    texts |= {"causal": causal, "window": window}
    if rest is not None:
        tensors["mask"], texts["mask_shape"] = packed(rest), json.dumps(list(rest.shape))
    if scores.bias is not None and (scores.bias * sees).any():
        table, slopes = by_distance(scores.bias, sees, len(q))
        if slopes is None:
            tensors["bias"] = table
        else:
            texts["alibi"] = json.dumps(slopes)
    check(out, sees, tensors, texts, scores.made)
    texts = {name: value for name, value in texts.items() if value != 0 or name == "causal"}
    return tensors, {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in texts.items()
    }


def with_rest(scores, tensors, texts):
    """Return what a file has of a layer, with what the layer does to O as well."""
    if scores.gate is not None and scores.after == ["gates O"]:
        gate = scores.gate.cpu()
        gate = (gate.float() if gate.dtype == torch.float64 else gate).contiguous()
        tensors = {**tensors, "gate": gate}
    after = " and ".join(scores.after)
    if not scores.reached:
        after = after or "passes O on, and no output projection was seen"
    return tensors, {**texts, "after": after} if after else texts


def packed(mask):
    """Return booleans as bits along the last axis, uint8."""
    import numpy as np

    return torch.from_numpy(np.packbits(mask.numpy(), axis=-1))


def mask_of(sees, causal, window):
    """Return whether a mask is causal, its window, and what is visible if that is not all.

    Parameters
    ----------
    sees : Tensor
        (heads or 1, Nq, Nk) bool.
    causal : bool or None
        What the module says, which holds where the mask leaves it open.
    window : int
        The same.
    """
    queries, keys = sees.shape[1:]
    same = bool((sees == sees[:1]).all())
    own = torch.arange(queries) + keys - queries
    some, first = sees.max(2)
    last = keys - 1 - sees.flip(2).max(2).indices
    ahead, behind = ((t * some).max() for t in (last - own, own - first))
    if same:
        reach = int(max(ahead, behind)) + 1
        for past in dict.fromkeys((bool(causal), False, True)):
            for each in (window, 0, reach):
                if torch.equal(sees[0], visible(queries, keys, past, each)):
                    return past, each, None
    past = bool((causal or queries == keys) and ahead <= 0)
    return past, 0, sees[0] if same else sees


def visible(queries, keys, causal, window):
    """Return which pairs a mask leaves, (queries, keys)."""
    ones, late = torch.ones(queries, keys, dtype=torch.bool), keys - queries
    sees = ones.tril(late) if causal else ones
    if window:
        sees = sees & ones.triu(late - window + 1)
        if not causal:
            sees = sees & ones.tril(late + window - 1)
    return sees


def distances(queries, keys):
    """Return where the distance of each pair stands in a table, (queries, keys)."""
    place = torch.arange(queries)[:, None] + keys - queries
    return torch.arange(keys)[None] - place + keys - 1


def by_distance(bias, sees, heads):
    """Return a bias matrix, (heads or 1, queries or 1, keys), as a table; ALiBi's as slopes.

    What it adds to all scores of a row alike changes no weight, and is left out if the bias depends
    on the distance alone without it.
    """
    queries, keys = sees.shape[1:]
    bias = bias.double().expand(heads, queries, keys)
    sees = sees.any(0)
    where = distances(queries, keys)
    own = torch.arange(keys - queries, keys)[None, :, None].expand(heads, -1, 1)
    for each in (bias, bias - bias.gather(2, own.clamp(min=0))):
        table = torch.zeros(heads, queries + keys - 1, dtype=torch.float64)
        table[:, where[sees]] = each[:, sees]
        if (table[:, where] - each)[:, sees].abs().max() <= 1e-5 * each[:, sees].abs().max():
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


def check(out, sees, tensors, texts, made=None):
    """Stop unless attention in float64 of what a file has is what the layer itself computed.

    Where the model rounds its scores to half the bits, they are compared with those of the file
    first, and attention is computed of the model's own.
    """
    q, k, v = (tensors[name].double() for name in "qkv")
    if not all(bool(t.isfinite().all()) for t in (q, k, v, out)):
        raise CaptureError("not captured: the layer's numbers have NaN or infinity")
    group, cap = len(q) // len(k), texts.get("softcap", 0.0)
    where = distances(q.shape[1], k.shape[1])
    slopes = json.loads(texts.get("alibi", "null")) or [0.0] * len(q)
    blind = ~sees.any(2)
    if blind.any() and out[:, blind.all(0)].any():
        first = int(blind.any(0).nonzero()[0])
        raise CaptureError(
            f"not captured: row {first} sees no key: give the text without padding before it"
        )
    finest = max(1e-5, 4 * torch.finfo(out.dtype).eps)
    whole_of = out.double().abs().max()
    if out.dtype not in (torch.float32, torch.float64):
        whole_of = max(whole_of, v.abs().max())  # weights are rounded before they multiply V
    off, of_scores, largest = [], [], 0.0
    for head in range(len(q)):
        scores = q[head] @ k[head // group].T
        scores *= texts["scale"]
        if cap:
            scores = (scores / cap).tanh_() * cap
        if slopes[head]:
            scores -= slopes[head] * (where - (k.shape[1] - 1)).abs()
        if "bias" in tensors:
            scores += tensors["bias"][head].double()[where]
        hidden = ~sees[head % len(sees)]
        largest = max(largest, float(scores.masked_fill(hidden, 0.0).abs().max()))
        tries = [scores] if made is None else [scores, made[head].double()]
        errors = []
        for each in tries:
            each = each.masked_fill(hidden, -math.inf)
            if "sink_logits" in tensors:
                sink = tensors["sink_logits"][head].double().expand(len(each), 1)
                each = torch.cat([each, sink], dim=1)
            weights = each.softmax(-1)[:, : k.shape[1]]
            weights[hidden.all(1)] = 0.0
            errors.append((weights @ v[head // group] - out[head].double()).abs().max())
        off.append(min(errors))
        if len(tries) > 1 and errors[1] < errors[0]:
            apart = (tries[1] - scores).masked_fill(hidden, 0.0)  # but for a whole row's gain
            mean = apart.sum(1, keepdim=True) / (~hidden).sum(1, keepdim=True)
            apart = (apart - mean).masked_fill(hidden, 0.0).abs().max()
            of_scores.append(apart / tries[1].masked_fill(hidden, 0.0).abs().max())
    error = torch.stack(off).max() / whole_of
    worst = max([float(error), *(float(each) for each in of_scores)])
    if not worst < finest + torch.finfo(torch.float32).eps * largest:
        raise CaptureError(
            f"not captured: Q, K and V give another output, off by {worst:.1e} of it"
        )


def agree(name, own, theirs):
    """Stop unless what x and the weights make is what the model has computed."""
    error = (own - theirs).abs().max() / theirs.abs().max()
    if not error < max(1e-5, 4 * torch.finfo(theirs.dtype).eps):
        raise CaptureError(
            f"not captured: x and the weights give another {name}, off by {error:.1e} of it "
            "(RoPE or a norm after the product?)"
        )
