"""The case tables of FlashAttention's own tests, as runs of ours.

Their parameters, how inputs are drawn and which errors are allowed are those of
Dao-AILab/flash-attention at 0251105: test_flash_attn_output, test_flash_attn_causal and
test_flash_attn_kvcache of tests/test_flash_attn.py, and test_flash_attn_output of
hopper/test_flash_attn.py. Each has thousands of cases; every so many of their product are taken,
such that any two values of two parameters meet in one of them.

A sequence of a batch is a run of its own here, with six query heads, of which two are held: they
never share keys unless all do. Numbers of a cache are random, so it does not matter whether
positions turn all its keys or the newest alone. Three caches are an eighth as long as theirs
(20 000 and twice 131 072 keys); hopper's longest is a quarter (4224), and its 4096 left out. All
queries of a cache turned by the same angle, as theirs are without causal and window, are none of
our runs. Dropout, gradients, pages, padding and fp8 are left out, too.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from simulator.base.dtypes import DType, round_to
from simulator.problem.filling import drawn
from simulator.problem.positions import Rotary
from simulator.problem.scenario import with_values
from simulator.problem.workload import read_inputs, resolve
from simulator.run.trace import Trace
from tests.helpers.runs import scenario, trace_of

Rows = np.ndarray
HEADS = 6
KV_HEADS = {"mha": 6, "gqa": 2, "mqa": 1}
HALF: tuple[DType, ...] = ("float16", "bfloat16")
BOTH = (False, True)


@dataclass(frozen=True)
class Case:
    """A case of a table, by the table's names."""

    size: tuple[int, int]  # nq and Nk, the other way round if it is `swapped`
    d: int  # numbers of each query, key and value
    dtype: DType  # of Q, K, V and O
    causal: bool
    local: bool  # whether a row sees only some keys before its own and some after it
    swapped: bool = False
    heads: str = "mha"  # which query heads share keys
    alibi: bool = False
    softcap: float = 0.0
    # with a soft-cap Q is multiplied by it and by so much, so that scores reach it
    reach: float = 1.0
    rotary: float = 0.0  # the share of each head that positions turn
    interleaved: bool = False
    splits: int | str = 0  # of split-kv; 0 for FlashAttention-2
    chunked: bool = False  # whether a row sees the keys of its own chunk alone

    @property
    def shape(self) -> tuple[int, int]:
        """Nq and Nk."""
        nq, nk = self.size
        return (nk, nq) if self.swapped else (nq, nk)

    @property
    def seed(self) -> int:
        """Another for each size."""
        return self.shape[0] + 7 * self.shape[1]

    @property
    def window(self) -> tuple[int, int]:
        """How many keys before its own a row sees, and after it."""
        left, right = np.random.default_rng(self.seed).integers(0, self.shape[1], 2)
        return int(left), int(right)

    @property
    def slopes(self) -> list[float]:
        """ALiBi's slopes, below 0.3 as in the tables."""
        return [float(each) for each in np.random.default_rng(self.seed).random(HEADS) * 0.3]

    @property
    def chunk(self) -> int:
        """Keys of a chunk."""
        return int(np.random.default_rng(self.seed).integers(1, 2 * self.shape[1]))

    @property
    def position(self) -> Rotary | None:
        """Of the share the largest multiple of 16 numbers is turned; None for none."""
        width = int(self.rotary * self.d) // 16 * 16
        return Rotary(10000.0, width, self.interleaved) if width else None

    def reaching(self, q: Rows) -> Rows:
        """Return queries whose scores reach the cap."""
        return round_to(q * np.float32(self.softcap * self.reach), self.dtype)

    def hidden(self) -> Rows:
        """Return which pairs are hidden, (Nq, Nk) bool."""
        nq, nk = self.shape
        i, j = np.arange(nq)[:, None] + nk - nq, np.arange(nk)[None]
        hidden = (j > i) if self.causal else np.zeros((nq, nk), dtype=bool)
        if self.local:
            left, right = self.window
            hidden |= (j < i - left) | (j > i + right)
        if self.chunked:
            first = i - i % self.chunk
            hidden |= (j < first) | (j >= first + self.chunk)
        return hidden

    def biases(self, head: int) -> Rows | float:
        """Return what ALiBi adds to the scores of a head, (Nq, Nk)."""
        if not self.alibi:
            return 0.0
        nq, nk = self.shape
        distance = np.arange(nq)[:, None] + nk - nq - np.arange(nk)[None]
        return -self.slopes[head] * np.abs(distance)

    def trace(self) -> Trace:
        """Return the run of the case on NumPy."""
        nq, nk = self.shape
        said: dict[str, Any] = {
            "mask": {"causal": self.causal}, "scores": {"softcap": self.softcap}, "position": {}
        }  # fmt: skip
        if self.local:
            said["mask"]["window"] = list(self.window)
        if self.chunked:
            said["mask"]["documents"] = [self.chunk] * (nk // self.chunk + 1)
        if self.alibi:
            said["scores"]["alibi"] = self.slopes
        if self.position:
            said["position"] = {
                "kind": "rope", "fraction": self.position.width / self.d,
                "interleaved": self.interleaved,
            }  # fmt: skip
        chosen = scenario(
            nq=nq, nk=nk, d=self.d, heads=HEADS, kv_heads=KV_HEADS[self.heads],
            rows=64, cols=64, dtype=self.dtype, seed=self.seed, **said,
        )  # fmt: skip
        if self.splits:
            chosen = with_values(chosen, {"tiling": {"splits": self.splits}})
        w = resolve(chosen)
        inputs = read_inputs(w)
        if self.softcap:
            inputs = replace(inputs, q=self.reaching(inputs.q))
        if self.splits:
            w = w.as_algorithm("split-kv")
            inputs = w.posed(inputs)
        return trace_of(w, inputs)


def turned(x: Rows, said: Rotary, first: int, sign: int = 1) -> Rows:
    """Return rows turned in float32, each pair as a complex number.

    x: (heads, rows, d) float32.
    said: angles and pairs.
    first: the place of the first row.
    sign: -1 turns them back.
    """
    half = said.width // 2
    a = np.arange(half) * 2 if said.interleaved else np.arange(half)
    b = a + 1 if said.interleaved else a + half
    places = first + said.offset + np.arange(x.shape[1])
    angles = places[:, None] * said.theta ** (-2.0 * np.arange(half) / said.width)
    pairs = (x[..., a] + 1j * x[..., b]) * np.exp(sign * 1j * angles).astype(np.complex64)
    out = x.copy()
    out[..., a], out[..., b] = pairs.real, pairs.imag
    return out


def definition(
    case: Case, head: int, q: Rows, k: Rows, v: Rows, kept: Callable[[Rows], Rows], swapped: bool
) -> Rows:
    """Return O of a head from its definition, step by step, (Nq, dv).

    case: mask, biases and cap.
    head: the query head.
    q, k, v: of the head, float64.
    kept: what a type of numbers keeps of a result; it is asked after each step.
    swapped: scale K, not Q: the same but for rounding.
    """
    scale = 1 / np.sqrt(q.shape[1])
    s = kept(q @ kept(k * scale).T) if swapped else kept(kept(q * scale) @ k.T)
    if case.softcap:
        s = kept(kept(np.tanh(kept(s / case.softcap))) * case.softcap)
    s = np.where(case.hidden(), -np.inf, s + case.biases(head))
    top = s.max(axis=1, keepdims=True)
    p = np.exp(s - np.where(np.isneginf(top), 0.0, top))
    total = p.sum(axis=1, keepdims=True)
    out: Rows = kept(kept(p / np.where(total == 0, 1.0, total)) @ v)
    return out


def exact(case: Case, head: int, q: Rows, k: Rows, v: Rows) -> Rows:
    """Return O of a head in float64."""
    return definition(case, head, q, k, v, lambda x: x, swapped=False)


def same_precision(case: Case, head: int, q: Rows, k: Rows, v: Rows) -> Rows:
    """Return O as operations of the case's dtype make it: each result is rounded."""

    def kept(x: Rows) -> Rows:
        return round_to(x.astype(np.float32), case.dtype).astype(float)

    return definition(case, head, q, k, v, kept, swapped=True)


Plain = Callable[[Case, int, Rows, Rows, Rows], Rows]


@dataclass(frozen=True)
class Errors:
    """How far O is from its definition in float64, rounded to the dtype."""

    # ours, plain: the largest error of our run, and of attention made of operations of the dtype
    ours: float
    plain: float
    nudge: float  # by how much O changes, in the dtype, if 0.3 is added and taken away again


def errors(case: Case, plain: Plain = same_precision) -> Errors:
    """Return how far O of a case is from its definition, in the first query head and the last."""
    trace = case.trace()

    def kept(x: Rows) -> Rows:
        return round_to(x.astype(np.float32), case.dtype).astype(float)

    got = trace.workload.unpacked(trace.output)
    all_q, all_k, all_v = drawn(trace.workload)
    if case.softcap:
        all_q = case.reaching(all_q)
    if case.position:
        nq, nk = case.shape
        all_q, all_k = (turned(x, case.position, n) for x, n in ((all_q, nk - nq), (all_k, 0)))
    worst = np.zeros(3)
    for head in (0, HEADS - 1):
        of = head * len(all_k) // HEADS
        q, k, v = (kept(x) for x in (all_q[head], all_k[of], all_v[of]))
        true = kept(exact(case, head, q, k, v))
        nudged = kept(kept(true + 0.3) - 0.3)
        off = kept(got[head]) - true, plain(case, head, q, k, v) - true, nudged - true
        worst = np.maximum(worst, [np.abs(each).max() for each in off])
    return Errors(*map(float, worst))


def table(stride: int, **values: Sequence[Any]) -> tuple[Case, ...]:
    """Return every so many cases of a product."""
    whole = [Case(**dict(zip(values, each, strict=True))) for each in product(*values.values())]
    return tuple(whole[::stride])


OUTPUT = table(
    61, dtype=HALF, heads=tuple(KV_HEADS), alibi=BOTH, local=BOTH, causal=BOTH,
    d=(32, 40, 59, 64, 96, 111, 128, 160, 192, 224, 256),
    size=((113, 203), (128, 217), (113, 211), (108, 256), (256, 512), (512, 256), (1024, 1024),
          (1023, 1024), (1024, 1023), (2048, 2048)),
    softcap=(0.0, 50.0),
)  # fmt: skip
CAUSAL = table(
    7, dtype=HALF, local=BOTH, swapped=BOTH, causal=(True,),
    d=(32, 40, 59, 64, 80, 96, 111, 128, 160, 192, 224, 256),
    size=((1, 239), (3, 799), (127, 512), (127, 513), (113, 203), (128, 217), (113, 211),
          (108, 256), (256, 512), (1023, 1024)),
)  # fmt: skip
CACHE = tuple(
    case
    for case in table(
        137, dtype=("float16",), splits=(1, "auto"), heads=tuple(KV_HEADS), alibi=BOTH, local=BOTH,
        causal=BOTH, interleaved=BOTH, rotary=(0.0, 0.5, 1.0), d=(32, 59, 64, 80, 128, 256),
        size=((1, 128), (1, 339), (3, 1024), (64, 800), (64, 256), (3, 799), (64, 2048),
              (16, 2500), (1, 16384), (16, 16384), (128, 128)),
    )
    if not case.rotary or case.causal or case.local
)  # fmt: skip
HOPPER = table(
    111, dtype=HALF, heads=tuple(KV_HEADS), softcap=(0.0, 15.0), reach=(0.25,), local=BOTH,
    causal=BOTH, chunked=BOTH, d=(64, 96, 128, 192, 256),
    size=((1, 1), (64, 128), (128, 192), (256, 256), (239, 1), (799, 3), (113, 203), (113, 128),
          (128, 217), (113, 211), (108, 256), (256, 512), (384, 256), (640, 128), (512, 256),
          (1024, 1024), (1023, 1024), (1024, 1023), (1056, 1056)),
    splits=(0, 3),
)  # fmt: skip
TABLES: dict[str, tuple[tuple[Case, ...], Callable[[Case, Errors], float]]] = {
    "output": (OUTPUT, lambda case, of: 2 * of.plain),
    "causal": (CAUSAL, lambda case, of: 2 * of.plain + 1e-5),
    "cache": (CACHE, lambda case, of: (5 if case.alibi else 3) * of.plain + 1e-5),
    "hopper": (HOPPER, lambda case, of: (3 if case.softcap else 2) * of.plain + 2 * of.nudge),
}
"""The cases of each table, and the error of O that it allows."""
