"""A text continued token by token, with the probabilities of each next token."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from simulator.base.dtypes import F32, F64
from simulator.language.model import Cache, LanguageModel

TEMPERATURE = 0.8
"""The usual temperature: a model this small repeats itself if the most probable token is taken."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A token that was drawn, and the probability of every token at that place."""

    token: int
    probabilities: F64  # (vocabulary,), at the temperature of the draw; greedy: at 1

    def top(self, count: int) -> list[int]:
        """Return the most probable tokens, the most probable first."""
        return [int(n) for n in np.argsort(-self.probabilities, kind="stable")[:count]]


def probabilities(logits: F32, temperature: float = 1.0) -> F64:
    """Return the softmax of logits over their temperature; greedy, 0, is as 1."""
    scaled = (logits - logits.max(-1, keepdims=True)).astype(np.float64) / (temperature or 1.0)
    p = np.exp(scaled)
    return np.asarray(p / p.sum(-1, keepdims=True))


def continued(
    model: LanguageModel,
    tokens: Sequence[int],
    temperature: float = TEMPERATURE,
    seed: int = 0,
    *,
    cached: bool = True,
) -> Iterator[Drawn]:
    """Yield the tokens with which a model continues `tokens`, without end.

    temperature: the divisor of the logits; 0: greedy, the most probable token each time.
    cached: whether keys and values are kept; else each token is computed from all tokens before it.
    """
    rng, tokens = np.random.default_rng(seed), list(tokens)
    cache, left = Cache(), tokens
    while True:
        p = probabilities(model.run(left, cache, last=True).logits[0], temperature)
        token = int(rng.choice(len(p), p=p)) if temperature else int(p.argmax())
        yield Drawn(token, p)
        tokens.append(token)
        cache, left = (cache, [token]) if cached else (Cache(), tokens)
