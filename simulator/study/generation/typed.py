"""A typed text and the tokens that its model draws after it, as one run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from simulator.base.dtypes import F64
from simulator.language.continuation import TEMPERATURE, continued, probabilities
from simulator.problem.input_files import StoredTensor
from simulator.problem.masks import Mask
from simulator.problem.sentence import layer_of, sentence_model
from simulator.problem.workload import Inputs, Workload

TOP = 8
"""Tokens whose probabilities are kept at each place."""
GREEDY = "greedy"
WARMER = (1.0, 2.0, 4.0)
"""Temperatures at which the probability of the most probable token is told."""


@dataclass(frozen=True, slots=True)
class NextToken:
    """A token that was drawn, and the most probable ones at its place."""

    text: str
    chance: float  # of the drawn one
    # texts and probabilities, the most probable first; the drawn one is the last if not among them
    top: tuple[tuple[str, float], ...]
    place: int  # of the drawn one in `top`
    warmer: tuple[float, ...]  # probabilities of the most probable one at `WARMER`


@dataclass(frozen=True, slots=True)
class Continuation:
    """The tokens that follow a typed text."""

    model: str
    parameters: int
    prompt: int  # tokens of the text, the start among them
    tokens: tuple[NextToken, ...]
    draw: str  # ``greedy``, or the seed of a draw
    # mean −log of the probability of each token of the text, in nats; NaN without one after the
    # start
    loss: float
    apart: float  # largest difference of a probability from one pass without a cache


def continued_run(
    w: Workload, draw: str, count: int, progress: Callable[[float], object] = lambda share: None
) -> tuple[Workload, Inputs, Continuation]:
    """Return the run of a typed text and the `count` tokens that follow it, its heads one by one.

    w: the run of the text, its heads one by one.
    draw: ``greedy``, or the seed of a draw at the usual temperature.
    progress: told the share done.
    """
    model, said = sentence_model(w.scenario), w.scenario.input
    tokens = model.tokenizer.encode(said.text or "")
    temperature, seed = (0.0, 0) if draw == GREEDY else (TEMPERATURE, int(draw))
    drawn, label = [], model.tokenizer.label
    for each in islice(continued(model, tokens, temperature, seed), count):
        drawn.append(each)
        progress(len(drawn) / count)
    every = [*tokens, *(each.token for each in drawn)]
    found = model.run(every)
    first = len(tokens) - 1
    anew = probabilities(found.logits[first:-1], temperature)
    apart = np.abs(anew - [each.probabilities for each in drawn]).max(initial=0.0)
    texts = []
    for each in drawn:
        top = each.top(TOP)
        top = top if each.token in top else [*top[:-1], each.token]
        chances = tuple((label(n), float(each.probabilities[n])) for n in top)
        chance = float(each.probabilities[each.token])
        own = (each.probabilities ** ((temperature or 1.0) / t) for t in WARMER)
        warmer = tuple(float(p.max() / p.sum()) for p in own)
        texts.append(NextToken(label(each.token), chance, chances, top.index(each.token), warmer))
    continuation = Continuation(
        w.file.said.model if w.file else "", model.shape.parameters, len(tokens), tuple(texts),
        draw,
        _loss(probabilities(found.logits[:first]), tokens[1:]), float(apart),
    )  # fmt: skip
    q, k, v = layer_of(found, said.layer, w.dtype)
    kv = sorted({head * len(k) // len(q) for head in w.picked})
    inputs = Inputs(q[list(w.picked)], k[kv], v[kv])
    return _longer(w, tuple(map(label, every))), inputs, continuation


def _loss(p: F64, following: list[int]) -> float:
    """Return the mean −log of the probabilities of the tokens that follow."""
    own = p[np.arange(len(following)), following]
    return float(-np.log(np.maximum(own, 1e-300)).mean()) if following else float("nan")


def _longer(w: Workload, labels: tuple[str, ...]) -> Workload:
    """Return the run of more tokens."""
    n, file = len(labels), w.file
    assert file is not None

    def tensor(stored: StoredTensor) -> StoredTensor:
        return replace(stored, shape=(stored.shape[0], n, stored.shape[2]))

    file = replace(
        file, q=tensor(file.q), k=tensor(file.k), v=tensor(file.v),
        said=replace(file.said, tokens=labels),
    )  # fmt: skip
    mask = Mask(n, n, True, w.mask.window, w.mask.sinks)
    return replace(w, seqlen_q=n, seqlen_k=n, mask=mask, file=file)
