"""What attention does to scores, read from the operations of a model."""

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
CHANGES = "changes O by "
"""Begins what is said of an operation that is none of those that are known."""
APART = "not captured: attention runs apart in {:g} parts of the sequence (windows or chunks)"
OTHERS = "not captured: attention is over other things than all tokens"
HEADS = ("num_heads", "num_attention_heads", "n_heads", "n_head", "attention_heads")
"""How modules call their number of query heads."""


class CaptureError(Exception):
    """Why there is no file, in one line."""


def refuse(why):
    """Raise CaptureError."""
    raise CaptureError(why)


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
        own = next((each.shape for each in given if each.ndim == 3), None)
        itself = own is not None and tuple(own[:2]) == self.q.shape[:2]  # what is given is Q
        if own and not itself and self.q.shape[1] not in (own[0] * own[1], own[2]):
            parts = own[0] * own[1] / max(1, self.q.shape[1])
            refuse(APART.format(parts) if len(self.q) != heads else OTHERS)
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
        factor = torch.as_tensor(factor)
        if torch.broadcast_shapes(factor.shape, given.shape) != given.shape:
            self.does(f"{CHANGES}mul")
            return
        factor = factor.expand_as(given).detach()
        own = self.out if self.gate is None else self.out * self.gate
        for there, back in self._layouts(given):
            if there.shape == own.shape and torch.equal(there, own.to(there.dtype)):
                gate = back(factor)
                self.gate = gate.clone() if self.gate is None else self.gate * gate
                self.does("gates O")
                return
        self.does(f"{CHANGES}mul")

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
            self.does(f"{CHANGES}values")

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
        raise CaptureError(f"not captured: scores are made in blocks, by einsum({equation!r})")
    left, right = equation.replace(" ", "").split("->")
    a, b = left.split(",")
    (inner,) = (set(a) & set(b)) - set(right) or {""}
    rows, cols = [c for c in a if c not in b], [c for c in b if c not in a]
    if not inner or len(rows) != 1 or len(cols) != 1:
        raise CaptureError(f"not captured: scores are made in blocks, by einsum({equation!r})")
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
    todo = [how(tensor)] if isinstance(tensor, torch.Tensor) and tensor.ndim > 2 else []
    for _ in range(64):
        made = todo.pop() if todo else None
        if made is not None and made.name in PRODUCTS:
            return True
        if made is not None and made.before is not None:
            todo.append(made.before)
        elif made is not None and made.name not in ("linear", "embedding", "addmm"):
            todo += [how(each) for each in tensors_in(made.args)]
    return False


def constant(value):
    """Return a number, also in a tensor that has nothing else; None if it is more."""
    if isinstance(value, torch.Tensor):
        return float(value.reshape(-1)[0]) if value.numel() == 1 else None
    return float(value)
