"""Shuffling the tokens of a run: rows of O follow them, unless a mask or positions say otherwise.

Attention is a sum over a set of keys: it does not know in which order they stand. Each row of O
goes with its token, whatever the order, until something in the scores depends on places: a causal
mask, a window, a bias of distances, or positions in Q and K.

References
----------
Vaswani et al. 2017, section 3.5; Lee et al. 2019, "Set Transformer", property 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from simulator.base.dtypes import F32, F64
from simulator.base.errors import SCENARIO, refuse
from simulator.base.tolerance import STEP
from simulator.engines.numpy_engine import numpy_engine
from simulator.problem.masks import Mask
from simulator.problem.positions import Rotary
from simulator.problem.workload import Inputs, Workload
from simulator.program.faults import honest

Places = Literal["run", "none", "causal", "rope"]
"""What depends on places: as in the run; nothing; a causal mask alone; rotary positions alone."""
PLACES: tuple[Places, ...] = get_args(Places)
MOST = 1024
"""Tokens up to which two runs of a head take no longer than a second."""
_THETA = 10_000.0
_ROUNDING = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
"""The largest relative error when a number is rounded to an element type."""


@dataclass(frozen=True, eq=False)
class Shuffled:
    """A head before and after its tokens were shuffled."""

    order: NDArray[np.int64]  # (N,) int64, the token that stands at each place afterwards
    before: F32  # (N, dv) float32, O of the tokens in their order
    after: F32  # (N, dv) float32, O of the shuffled run, by place
    # how far rows may be apart, as a share of a row's length, because sums in another order round
    # otherwise
    bound: float

    @cached_property
    def places(self) -> NDArray[np.int64]:
        """Where each token stands afterwards, (N,)."""
        return np.argsort(self.order)

    @cached_property
    def apart(self) -> F64:
        """The distance of each token's row from its row before, (N,), as a share of a row's length.

        A row's length is the root mean square over all rows.
        """
        off = self.after[self.places].astype(np.float64) - self.before
        shares: F64 = np.linalg.norm(off, axis=1) / _length(self.before)
        return shares

    @property
    def follows(self) -> bool:
        """Whether every row has gone with its token."""
        return bool(self.apart.max() <= self.bound)


def _length(rows: F32) -> float:
    """Return the root mean square length of some rows; 1 if they are all zero."""
    return float(np.sqrt((rows.astype(np.float64) ** 2).sum(axis=1).mean())) or 1.0


def shuffle_why_not(w: Workload) -> str:
    """Return why the tokens of a run cannot be shuffled; empty if they can."""
    if w.queries != w.seqlen_k:
        return "rows and keys are of different tokens: there is no one order to shuffle"
    if w.seqlen_k > MOST:
        return f"the run has more than {MOST} tokens"
    return ""


def order_of(tokens: int, seed: int) -> NDArray[np.int64]:
    """Return a random order of some tokens."""
    return np.random.default_rng(seed).permutation(tokens).astype(np.int64)


def shuffled(
    w: Workload, inputs: Inputs, head: int, order: NDArray[np.int64], places: Places = "run"
) -> Shuffled:
    """Run a head with its tokens in their order, and in another one.

    order: (N,) int64, the token that is to stand at each place.
    Raises InputError: the tokens cannot be shuffled.
    """
    if shuffle_why_not(w):
        expected = f"as many as keys, at most {MOST}, to shuffle them"
        raise refuse(SCENARIO, "attention.seqlen_q", w.queries, expected)
    first, rotary = _one_head(w, head, places), w.position
    kv = w.kv_head_of[head]
    q, k, v = inputs.q[head][None], inputs.k[kv][None], inputs.v[kv][None]
    if places != "run":
        if rotary is not None:  # as they were before they were turned
            q, k = (rotary.turned(x, 0, "float32", back=True) for x in (q, k))
        rotary = Rotary(_THETA, w.head_dim // 2 * 2) if places == "rope" else None
        if rotary is not None:
            q, k = (rotary.turned(x, 0, w.dtype) for x in (q, k))
    before = _output(first, replace(inputs, q=q, k=k, v=v, layer=None))
    if rotary is not None:
        q, k = (rotary.turned(x, 0, "float32", back=True)[:, order] for x in (q, k))
        q, k = (rotary.turned(x, 0, w.dtype) for x in (q, k))
    else:
        q, k = q[:, order], k[:, order]
    after = _output(first, replace(inputs, q=q, k=k, v=v[:, order], layer=None))
    longest = [float(np.linalg.norm(x[0].astype(np.float64), axis=1).max()) for x in (q, k, v)]
    size = 1 + w.logit_scale * longest[0] * longest[1]
    bound = 2 * (STEP * size + _ROUNDING[w.dtype]) * longest[2] / _length(before)
    return Shuffled(order, before, after, bound)


def _one_head(w: Workload, head: int, places: Places) -> Workload:
    """Return one head of a run, with the mask and the bias that `places` asks for."""
    slopes = w.slopes[head : head + 1]
    biases = w.biases and replace(w.biases, values=w.biases.values[head : head + 1])
    one = replace(honest(w).ungated, heads=1, kv_heads=1, kv_head_of=(0,), picked=(w.picked[head],),
                  slopes=slopes, biases=biases, mask=w.mask.of_head(head),
                  sink_logits=w.sink_logits[head : head + 1])  # fmt: skip
    if places == "run":
        return one
    mask = Mask(w.queries, w.seqlen_k, causal=places == "causal")
    return replace(one, mask=mask, slopes=(), biases=None)


def _output(w: Workload, inputs: Inputs) -> F32:
    blocks = numpy_engine(w, inputs).row_blocks(0)
    return np.concatenate([block.o for block in blocks], dtype=np.float32)
