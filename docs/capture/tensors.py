"""What a file has of a layer: its mask and bias in the file's words, checked in float64."""

import json
import math

import torch
from scores import CHANGES, CaptureError


def kept(scores):
    """Return tensors and texts of an attention, after holding that they are all that it does.

    Raises
    ------
    CaptureError
        They are not.
    """
    moved = [t.detach().cpu() for t in (scores.q, scores.k, scores.v, scores.out)]
    q, k, v, out = (t.float() if t.dtype == torch.float64 else t for t in moved)
    wide = torch.promote_types(torch.promote_types(q.dtype, k.dtype), v.dtype)
    q, k, v = (t.to(wide) for t in (q, k, v))  # some multiply q and k in float32 alone
    tensors = {"q": q.contiguous(), "k": k.contiguous(), "v": v.contiguous().clone()}
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
        gate = scores.gate.cpu().to(tensors["q"].dtype).contiguous()
        tensors = {**tensors, "gate": gate}
    after = in_words(scores.after)
    if not scores.reached:
        after = after or "may change O: no output projection was seen"
    return tensors, {**texts, "after": after} if after else texts


def in_words(done):
    """Return what is done to O in one line, the plainest things first."""
    plain = [each for each in done if not each.startswith(CHANGES)]
    names = [each.removeprefix(CHANGES) for each in done if each not in plain]
    if names and not any(each.startswith("joins") for each in plain):
        plain.append(f"{CHANGES}{', '.join(names[:3])}{' ...' if names[3:] else ''}")
    return " and ".join(plain)


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
    whole_of = out.double().abs().max().clamp(min=1e-30)
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
