"""A run as a model generates it: the prompt in one pass, then steps of a few tokens each.

The queries, keys and values of a causal run come in their order. A step brings some queries, which
attend to all keys so far, including the keys of its own tokens; K and V of the tokens before lie in
the cache. Without a cache a step would attend with all rows again. Only attention is counted:
projections and the rest of a model are not. Several queries at once are guesses of speculative
decoding, which are all taken here (Leviathan et al. 2023).

References
----------
Shazeer 2019, "Fast Transformer Decoding", section 2.4 (incremental inference).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate
from typing import Literal

import numpy as np

from simulator.base.dtypes import F32, frozen
from simulator.engines.numpy_engine import numpy_engine
from simulator.engines.reference import reference_rows
from simulator.problem.masks import Mask
from simulator.problem.scenario import parse_scenario
from simulator.problem.workload import Inputs, Workload, read_inputs, resolve
from simulator.program.algorithms import USUAL, algorithm_of, tile_program
from simulator.run.trace import Trace
from simulator.study.generation.typed import Continuation, continued_run
from simulator.study.sweep import Figures, figures_of
from simulator.timing.duration import Duration, rough_duration

Quantity = Literal["bytes", "flops", "time"]
Progress = Callable[[float], object]
TOKENS = 64
"""Tokens that are generated, in a run that has twice as many."""
AT_ONCE = (1, 2, 4, 8)
"""Queries of a step."""
SHIPPED = "passage-layer1"
"""The capture that is shown if a run could not have been generated."""
_LENGTHS = range(4, 1025)


@dataclass(frozen=True, slots=True)
class StepCost:
    """The cost of the attention of a step."""

    figures: Figures
    time: Duration


@dataclass(frozen=True, slots=True)
class GenerationStep:
    """One step; the first is the prompt."""

    rows: range  # the queries that it brings
    keys: int  # keys so far, its own included
    cached: StepCost  # with K and V of a cache
    anew: StepCost  # all rows so far computed again

    def of(self, quantity: Quantity, *, cached: bool) -> float:
        """Return a figure: requested bytes, FLOPs or seconds."""
        found = self.cached if cached else self.anew
        if quantity == "time":
            return found.time.seconds
        return float(found.figures.bytes if quantity == "bytes" else found.figures.flops)


@dataclass(frozen=True, eq=False)
class Generation:
    """A run step by step."""

    workload: Workload  # the whole run in one causal pass, its heads one by one
    head: int  # the head whose weights are shown
    at_once: int  # queries of a step
    steps: tuple[GenerationStep, ...]  # the prompt, then the steps
    # (steps,) float64: largest difference of a step's O from O of one causal pass over all rows,
    # all heads, relative to the largest number of O. Both come from NumPy's tile programs, in
    # float32, and O is not rounded to the dtype.
    apart: np.ndarray
    # for each step (older rows,) float64: without the mask, by how much the O of each older row of
    # the head moves when the step's keys come, relative to the length of that row
    moved: tuple[np.ndarray, ...]
    # weights, free: (N, N) float32, softmax weights of the head, 0 where the mask hides a key; and
    # without the mask
    weights: F32
    free: F32
    k: F32  # k, v: (N, d), (N, dv) float32 of the head
    v: F32
    continuation: Continuation | None = None  # of a typed text: the drawn tokens

    @property
    def modelled(self) -> bool:
        """Whether the model gives the times of all steps, not the data sheet alone."""
        return all(each.time.model for step in self.steps for each in (step.cached, step.anew))

    @property
    def unmasked(self) -> np.ndarray:
        """The largest of `moved` of each step; 0 for the prompt."""
        return np.array([rows.max(initial=0.0) for rows in self.moved])

    def total(self, quantity: Quantity, *, cached: bool) -> float:
        """Return a figure of all steps after the prompt."""
        return sum(step.of(quantity, cached=cached) for step in self.steps[1:])

    def so_far(self, quantity: Quantity, *, cached: bool) -> tuple[float, ...]:
        """Return a figure summed over the steps after the prompt, up to each of them."""
        return tuple(accumulate(step.of(quantity, cached=cached) for step in self.steps[1:]))

    def seen(self, at: int, *, masked: bool) -> F32:
        """Return the weights of all rows that a step has, (keys, keys).

        Without the mask they are the weights of all these keys: later keys are left out of the
        softmax.
        """
        keys = self.steps[at].keys
        if masked:
            return self.weights[:keys, :keys]
        own = self.free[:keys, :keys].astype(np.float64)
        left = own.sum(axis=1, keepdims=True)
        if self.workload.sink_logits:  # a sink keeps its share
            left += 1 - self.free.sum(axis=1, dtype=np.float64)[:keys, None]
        return (own / np.where(left > 0, left, 1.0)).astype(np.float32)


def suits(w: Workload) -> bool:
    """Return whether a run could have been generated token by token."""
    plain = w.mask.simple and w.biases is None and not w.faults.on and not w.query_tokens
    return plain and algorithm_of(w).softmax and w.queries == w.seqlen_k and w.seqlen_k in _LENGTHS


@lru_cache(maxsize=1)
def shipped_run() -> tuple[Workload, Inputs]:
    """Return the shipped capture, its heads one by one."""
    w = resolve(parse_scenario({"input": {"source": "capture", "name": SHIPPED}}))
    return w, read_inputs(w)


def generation_of(
    trace: Trace,
    head: int,
    at_once: int = 1,
    draw: str = "0",
    progress: Progress = lambda share: None,
) -> Generation:
    """Return a run step by step, or the shipped capture if it could not have been generated.

    A typed text is the prompt; the model that reads the text draws the tokens that follow.

    draw: ``greedy``, or the seed of the draw.
    progress: told the share done.
    """
    w, inputs = trace.single_heads
    if not w.typed:
        if not suits(w):
            (w, inputs), head = shipped_run(), 0
        return generation(w, inputs, head, at_once, progress)
    longer, inputs, said = continued_run(w, draw, TOKENS, lambda share: progress(share / 2))
    found = generation(
        longer, inputs, head, at_once, lambda share: progress((1 + share) / 2), said.prompt
    )
    return replace(found, continuation=said)


def generation(
    w: Workload,
    inputs: Inputs,
    head: int,
    at_once: int = 1,
    progress: Progress | None = None,
    prompt: int | None = None,
) -> Generation:
    """Return a run step by step.

    w: as many queries as keys; its mask is made causal.
    progress: told the share done.
    prompt: rows that come first, in one pass; absent: half of the run, or all but `TOKENS`.
    """
    w, inputs = w.as_algorithm(USUAL.name).ungated, w.as_algorithm(USUAL.name).posed(inputs)
    n = w.seqlen_k
    whole = _part(w, range(n), n)
    exact = _output(whole, inputs)
    largest = float(np.abs(exact).max()) or 1.0
    first = max(n - TOKENS, n // 2) if prompt is None else prompt
    spans = [range(first), *(range(i, min(i + at_once, n)) for i in range(first, n, at_once))]
    steps, apart, moved = [], [], [np.zeros(0)]
    before = _unmasked(w, inputs, head, first, first)
    for count, rows in enumerate(spans):
        part, keys = _part(w, rows, rows.stop), rows.stop
        own = _output(part, _given(inputs, rows, keys))
        apart.append(float(np.abs(own - exact[:, rows.start : keys]).max()) / largest)
        steps.append(GenerationStep(rows, keys, _cost(part), _cost(_part(w, range(keys), keys))))
        if count:
            now = _unmasked(w, inputs, head, keys, keys)
            lengths = np.linalg.norm(before, axis=1)
            far = np.linalg.norm(now[: len(before)] - before, axis=1)
            moved.append(frozen(far / np.where(lengths > 0, lengths, 1.0)))
            before = now
        if progress:
            progress((count + 1) / len(spans))
    return Generation(
        whole, head, at_once, tuple(steps), frozen(np.array(apart)), tuple(moved),
        _weights(whole, inputs, head), _weights(_unmasked_part(w, n, n), inputs, head),
        inputs.k[w.kv_head_of[head]], inputs.v[w.kv_head_of[head]],
    )  # fmt: skip


def _part(w: Workload, rows: range, keys: int) -> Workload:
    """Return the attention of some rows to the first keys, causal; the last row sees all."""
    mask = Mask(len(rows), keys, True, w.mask.window, w.mask.sinks)
    return replace(w, seqlen_q=len(rows), seqlen_k=keys, mask=mask)


def _cost(w: Workload) -> StepCost:
    return StepCost(figures_of(w), rough_duration(tile_program(w)))


def _unmasked_part(w: Workload, rows: int, keys: int) -> Workload:
    """Return the attention of the first rows to the first keys without a mask."""
    return replace(w, seqlen_q=rows, seqlen_k=keys, mask=Mask(rows, keys))


def _given(inputs: Inputs, rows: range, keys: int) -> Inputs:
    """Return the numbers of some rows and of the first keys."""
    own = slice(rows.start, rows.stop)
    return replace(inputs, q=inputs.q[:, own], k=inputs.k[:, :keys], v=inputs.v[:, :keys])


def _output(w: Workload, inputs: Inputs) -> F32:
    """Return O of a run of NumPy, (heads, rows, dv), not rounded."""
    w = replace(w, dtype="float32")
    return Trace(tile_program(w), numpy_engine(w, inputs), inputs).output


def _unmasked(w: Workload, inputs: Inputs, head: int, rows: int, keys: int) -> np.ndarray:
    """Return O of the first rows of a head without a mask, float64."""
    free = _unmasked_part(w, rows, keys)
    return reference_rows(free, _given(inputs, range(rows), keys), head, range(rows))[0]


def _weights(w: Workload, inputs: Inputs, head: int) -> F32:
    """Return the softmax weights of a head, (N, N): its output for values that are unit vectors."""
    n, kv = w.seqlen_k, w.kv_head_of[head]
    ones = np.zeros((len(inputs.v), n, n), np.float32)
    ones[kv] = np.eye(n, dtype=np.float32)
    found, _ = reference_rows(w, replace(inputs, v=ones), head, range(n))
    return frozen(found.astype(np.float32))
