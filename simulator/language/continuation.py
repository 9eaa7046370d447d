"""How a text goes on, token by token, with the probabilities of each next token."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from simulator.base.dtypes import F64
from simulator.language.model import Cache, LanguageModel

TEMPERATURE = 0.8
"""Of usual draws: the most probable tokens alone soon go round in circles."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """One token that follows, and how probable all were."""

    token: int
    probabilities: F64  # (vocabulary,), at the temperature of the draw


def continued(
    model: LanguageModel,
    tokens: Sequence[int],
    temperature: float = TEMPERATURE,
    seed: int = 0,
    *,
    cached: bool = True,
) -> Iterator[Drawn]:
    """Yield the tokens that follow some, without end.

    temperature: that divides the logits; 0 takes the most probable token each time.
    cached: whether keys and values are kept, or all is computed anew for each token.
    """
    rng, tokens = np.random.default_rng(seed), list(tokens)
    cache, left = Cache(), tokens
    while True:
        logits = model.run(left, cache, last=True).logits[0].astype(np.float64)
        logits = (logits - logits.max()) / (temperature or 1.0)
        p = np.exp(logits)
        p /= p.sum()
        token = int(rng.choice(len(p), p=p)) if temperature else int(logits.argmax())
        yield Drawn(token, p)
        tokens.append(token)
        cache, left = (cache, [token]) if cached else (Cache(), tokens)
