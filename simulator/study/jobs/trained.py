"""The small transformer trained in other ways, as docs/train_small.py has stored its losses."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache

import numpy as np

from simulator.base.assets import CAPTURES
from simulator.base.dtypes import F64, frozen

TRAINED = CAPTURES / "small-variants.json"
KINDS = ("again", "sentences")


@dataclass(frozen=True, slots=True)
class TrainedVariant:
    """The losses of one way of training, in nats a word."""

    name: str
    # again, sentences: (seeds, moments) float64, where a repeated sequence says a word again, and
    # in new sentences
    again: F64
    sentences: F64

    def of(self, kind: str) -> F64:
        """Return the losses of a kind."""
        return self.again if kind == "again" else self.sentences

    def mean(self, kind: str) -> F64:
        """Return the mean over the seeds, (moments,)."""
        out: F64 = self.of(kind).mean(axis=0)
        return out


@dataclass(frozen=True, slots=True)
class TrainedVariants:
    """All ways, at the same moments."""

    steps: tuple[int, ...]  # of training, at each moment
    seeds: tuple[int, ...]
    variants: tuple[TrainedVariant, ...]


@cache
def trained_variants() -> TrainedVariants:
    """Return the shipped losses."""
    found = json.loads(TRAINED.read_text(encoding="utf-8"))
    variants = tuple(
        TrainedVariant(name, *(frozen(np.array(losses[kind], dtype=np.float64)) for kind in KINDS))
        for name, losses in found["variants"].items()
    )
    moments = variants[0].again.shape[1]
    steps = tuple(range(0, moments * found["every"], found["every"]))
    return TrainedVariants(steps, tuple(found["seeds"]), variants)
