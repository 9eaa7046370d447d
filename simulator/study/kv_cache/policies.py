"""Rules for which token leaves a full cache: a class each, for all KV heads of a layer at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulator.base.dtypes import F64

SINKS = 4
"""First tokens that are kept: four are enough (Xiao et al. 2023, table 2)."""


@dataclass(frozen=True, slots=True)
class Full:
    """A cache without a free place, before a token comes."""

    # (kv_heads, tokens) bool: what each KV head keeps, `budget` tokens each
    kept: NDArray[np.bool_]
    # (kv_heads, tokens) float64: sums of the softmax weights that each token has had so far
    mass: F64
    budget: int  # tokens that a KV head keeps at most
    coming: int  # the token that comes
    draw: F64  # (kv_heads, tokens) float64: random numbers of this step, from 0 to 1


@dataclass(frozen=True, slots=True)
class Policy(ABC):
    """A rule which says which tokens leave the cache."""

    name: str  # in a word or two
    says: str  # what it keeps, with its source
    sums: bool = False  # whether it keeps a sum in float32 beside each token

    @abstractmethod
    def ranks(self, full: Full) -> F64:
        """Return ranks, (kv_heads, tokens): the kept token with the least rank leaves."""

    def leaves(self, full: Full) -> NDArray[np.intp]:
        """Return (kv_heads,): the token that leaves each KV head."""
        ranks: F64 = np.where(full.kept, self.ranks(full), np.inf)
        least: NDArray[np.intp] = ranks.argmin(axis=1)
        return least


class Window(Policy):
    """The oldest leaves."""

    __slots__ = ()

    def ranks(self, full: Full) -> F64:
        return _ages(full)


class SinksAndRecent(Policy):
    """The oldest leaves, but the first few tokens stay; a small cache keeps one recent token."""

    __slots__ = ()

    def ranks(self, full: Full) -> F64:
        ages = _ages(full)
        sinks = min(SINKS, full.budget - 1)
        return np.where(ages < sinks, ages + ages.shape[1], ages)


class HeavyHitters(Policy):
    """Half of the cache is recent; of the other tokens, the one with the least mass leaves."""

    __slots__ = ()

    def ranks(self, full: Full) -> F64:
        # The token that comes is one of the recent ones.
        recent = _ages(full) > full.coming - max(full.budget // 2, 1)
        return np.where(recent, full.coming + 1, full.mass)


class Random(Policy):
    """Any token leaves, each KV head its own."""

    __slots__ = ()

    def ranks(self, full: Full) -> F64:
        return full.draw


def _ages(full: Full) -> F64:
    """Return the places of tokens, the oldest first, for every KV head."""
    return np.broadcast_to(np.arange(full.kept.shape[1], dtype=np.float64), full.kept.shape)


POLICIES: tuple[Policy, ...] = (
    SinksAndRecent(
        "sinks + recent",
        f"The first {SINKS} tokens, which many heads attend to whatever comes, and the most recent "
        "ones (StreamingLLM, Xiao et al. 2023, section 3.2).",
    ),
    HeavyHitters(
        "heavy hitters",
        "Half of it the most recent tokens, half those with the largest sums of weights so far, of "
        "all query heads of a KV head (H2O, Zhang et al. 2023, section 4).",
        sums=True,
    ),
    Window("window", "The most recent tokens alone (Beltagy et al. 2020, section 3.1)."),
    Random("random", "Any tokens and the newest: what a rule has to be better than."),
)


def policy_named(name: str) -> Policy:
    """Return a policy by its name."""
    return next(each for each in POLICIES if each.name == name)
