"""What a random scenario comes to, in float64 from definitions alone: no code of the program."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.helpers.random_scenarios import Case, rounded, visible

F64 = NDArray[np.float64]
STEPS = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
"""Half a unit in the last place of an element type, relative to the number."""


def expected(case: Case) -> tuple[dict[str, F64], float]:
    """Return the arrays that a run writes, float64, and the size of what scores are made of."""
    q, k, v = (case.numbers[name] for name in "qkv")
    if case.said["position"]:
        shift = k.shape[1] - q.shape[1]
        q = turned(q, np.arange(q.shape[1]) + shift, case)
        k = turned(k, np.arange(k.shape[1]), case)
    wide = [np.repeat(x.astype(np.float64), case.heads // len(x), axis=0) for x in (q, k, v)]
    if case.algorithm in ("gla", "deltanet"):
        return {"o": updated(case, *wide)[case.picked]}, 1.0
    if case.algorithm.startswith("linear"):
        return {"o": linear(case, *wide)[case.picked]}, 1.0
    out, size = softmax(case, *wide)
    if "x" in case.numbers:
        layer = case.numbers
        o = rounded(out["o"], case.dtype).astype(np.float64)
        joined = o.transpose(1, 0, 2).reshape(o.shape[1], -1)
        out["y"] = joined @ layer["wo"].astype(np.float64) + layer.get("bo", 0)
        out |= {name: x.astype(np.float64) for name, x in zip("qkv", (q, k, v), strict=True)}
    return out, size


def turned(x: NDArray[Any], places: NDArray[Any], case: Case) -> NDArray[np.float32]:
    """Return Q or K after rotary positions."""
    said = case.said["position"]
    width = round(said.get("fraction", 1.0) * x.shape[-1])
    n = np.arange(width // 2)
    angles = (places + said.get("offset", 0))[:, None] * said.get("theta", 1e4) ** (-2 * n / width)
    first, second = (2 * n, 2 * n + 1) if said.get("interleaved") else (n, n + width // 2)
    out = x.astype(np.float64)
    a, b = out[..., first].copy(), out[..., second].copy()
    out[..., first] = a * np.cos(angles) - b * np.sin(angles)
    out[..., second] = a * np.sin(angles) + b * np.cos(angles)
    return rounded(out, case.dtype)


def slopes(heads: int) -> list[float]:
    """Return ALiBi's slopes, as its authors' code has them."""

    def of_power(n: int) -> list[float]:
        start = 2.0 ** -(2.0 ** -(math.log2(n) - 3))
        return [start ** (h + 1) for h in range(n)]

    if math.log2(heads).is_integer():
        return of_power(heads)
    lower = 2 ** math.floor(math.log2(heads))
    return of_power(lower) + slopes(2 * lower)[0::2][: heads - lower]


def softmax(case: Case, q: F64, k: F64, v: F64) -> tuple[dict[str, F64], float]:
    """Return O, LSE and what else a run with a softmax writes, of the picked heads."""
    attention, scores, numbers = case.said["attention"], case.said["scores"], case.numbers
    nq, nk = q.shape[1], k.shape[1]
    scale = attention.get("scale", 1 / math.sqrt(q.shape[2])) / attention.get("temperature", 1.0)
    s = q @ k.transpose(0, 2, 1) * scale
    terms = np.abs(q) @ np.abs(k).transpose(0, 2, 1) * scale
    cap = scores.get("softcap", 0.0)
    capped = s = cap * np.tanh(s / cap) if cap else s
    i, j = np.arange(nq)[:, None] + nk - nq, np.arange(nk)[None, :]
    if "bias" in numbers:
        s = s + numbers["bias"].astype(np.float64)[:, j - i + nk - 1]
    if said := scores.get("alibi"):
        own = np.array(slopes(case.heads) if said is True else said)
        s = s - own[:, None, None] * np.abs(i - j)
    size = max(1.0, float(terms.max()), float(np.abs(s).max()))
    blocks, pairs = numbers.get("block_mask"), numbers.get("mask")
    s = np.where(visible(nq, nk, case.said["mask"], blocks, pairs), s, -np.inf)
    start = np.full(case.heads, -np.inf)
    if "sink_logits" in numbers:
        start = numbers["sink_logits"].astype(np.float64)
    m = np.maximum(s.max(axis=-1), start[:, None])
    base = np.where(np.isfinite(m), m, 0.0)
    p, sink = np.exp(s - base[..., None]), np.exp(start[:, None] - base)
    total = p.sum(axis=-1) + sink
    with np.errstate(all="ignore"):
        lse = np.where(total > 0, base + np.log(total), -np.inf)
        p = np.where(total[..., None] > 0, p / total[..., None], 0.0)
    o = p @ v
    if "gate" in numbers:
        o = o * numbers["gate"].astype(np.float64)
    out = {"o": o, "lse": lse}
    if case.algorithm in ("flash1", "flash2"):
        out |= statistics(case, s, start)
    picked = case.picked
    out = {name: x[picked] for name, x in out.items()}
    if case.algorithm.endswith("backward"):
        do = numbers["do"].astype(np.float64)
        kept = rounded(o, case.dtype) if case.algorithm == "flash2-backward" else o
        d = (do * kept).sum(axis=-1)
        ds = p * (do @ v.transpose(0, 2, 1) - d[..., None])
        if cap:
            ds = ds * (1 - (capped / cap) ** 2)

        def shared(x: F64) -> F64:
            kv = sorted({head * case.kv_heads // case.heads for head in picked})
            own: F64 = x.reshape(case.kv_heads, -1, *x.shape[1:]).sum(axis=1)[kv]
            return own

        out["dq"] = (ds @ k * scale)[picked]
        out["dk"] = shared(ds.transpose(0, 2, 1) @ q * scale)
        out["dv"] = shared(p.transpose(0, 2, 1) @ do)
    return out, size


def statistics(case: Case, s: F64, start: F64) -> dict[str, F64]:
    """Return m and l after each column block, key by key: (H, Nq, Tc)."""
    threshold = 0.0
    if case.algorithm == "flash2":
        threshold = case.said["attention"].get("rescale_threshold", 0.0) * math.log(2)
    cols = case.said["tiling"]["cols"]
    m = np.repeat(start[:, None], s.shape[1], axis=1)
    l = np.where(np.isfinite(m), 1.0, 0.0)
    ms, ls = [], []
    for first in range(0, s.shape[2], cols):
        part = s[..., first : first + cols]
        top = np.maximum(m, part.max(axis=-1))
        with np.errstate(invalid="ignore"):
            moves = (np.isneginf(m) & np.isfinite(top)) | (top - m > threshold)
        new = np.where(moves, top, m)
        base = np.where(np.isfinite(new), new, 0.0)
        old = np.where(np.isfinite(m), m, 0.0)
        l = np.where(l > 0, l * np.exp(old - base), 0.0)
        l = l + np.exp(part - base[..., None]).sum(axis=-1)
        m = new
        ms.append(m)
        ls.append(l)
    return {"m": np.stack(ms, axis=-1), "l": np.stack(ls, axis=-1)}


def linear(case: Case, q: F64, k: F64, v: F64) -> F64:
    """Return O of linear attention, from all of its weights."""

    def features(x: F64) -> F64:
        if "projection" not in case.numbers:
            return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))
        directions = case.numbers["projection"].astype(np.float64)
        y = x / x.shape[-1] ** 0.25
        exponents = y @ directions.T - (y**2).sum(axis=-1, keepdims=True) / 2
        return np.asarray(np.exp(exponents) / math.sqrt(len(directions)))

    weights = features(q) @ features(k).transpose(0, 2, 1)
    if case.said["mask"].get("causal"):
        weights = np.tril(weights)
    out: F64 = weights @ v / weights.sum(axis=-1, keepdims=True)
    return out


def updated(case: Case, q: F64, k: F64, v: F64) -> F64:
    """Return O of gated linear attention or the delta rule, token by token."""
    gates = case.numbers["decay" if case.algorithm == "gla" else "strength"].astype(np.float64)
    gates = np.repeat(gates, case.heads // len(gates), axis=0)
    if case.algorithm == "deltanet":
        lengths = [np.sqrt((x**2).sum(axis=-1, keepdims=True)) for x in (q, k)]
        q, k = (x / np.where(n > 0, n, 1) for x, n in zip((q, k), lengths, strict=True))
    out = np.zeros(v.shape[:1] + q.shape[1:2] + v.shape[2:])
    for head in range(len(q)):
        state = np.zeros((q.shape[2], v.shape[2]))
        for t in range(q.shape[1]):
            key, value, gate = k[head, t], v[head, t], gates[head, t]
            if case.algorithm == "gla":
                state = gate[:, None] * state + np.outer(key, value)
            else:
                state = state + gate * np.outer(key, value - key @ state)
            out[head, t] = q[head, t] @ state
    return out


def shares(case: Case, name: str, ours: NDArray[Any], exact: F64, size: float) -> F64:
    """Return which share of what float32 and the element type may be off each number uses.

    float32 is allowed 2**-18 of the largest term of a score, times the numbers that are added up;
    sums of many tiles or tokens eight times that, and a number in HBM one step of its element type.
    NaN and a wrong infinity are infinitely wrong.
    """
    if ours.shape != exact.shape:
        return np.full(1, np.inf)
    finite = np.isfinite(exact)
    largest = float(np.abs(exact[finite]).max(initial=1.0))
    sums = 8 if case.algorithm in ("gla", "deltanet") or "linear" in case.algorithm else 1
    sums = 8 if case.algorithm.endswith("backward") else sums
    step = STEPS[case.dtype]
    room = np.full(exact.shape, 2.0**-18 * size * (1 + largest) * sums)
    if name not in ("lse", "m", "l"):
        room += 2 * step * np.abs(np.where(finite, exact, 0.0)) + 6e-8 * (case.dtype == "float16")
    if case.said["position"] or "x" in case.numbers:  # Q and K, or O of a layer, are rounded again
        room += 2 * step * largest
    with np.errstate(invalid="ignore"):
        off = np.abs(ours.astype(np.float64) - exact) / room
    off = np.where(ours == exact, 0.0, off)
    return np.where(np.isnan(off), np.inf, off)
