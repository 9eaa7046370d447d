"""How q·k becomes a score, for all code that computes scores.

A score is scaled, then soft-capped, then changed with the distance of query and key (ALiBi, or a
learned bias of each distance); the mask comes last. `Score` of kernels/cuda/common.cuh does the
same on a GPU.

References: Gemma Team 2024, "Gemma 2", section 2 (soft-cap). Press, Smith, Lewis 2022, "Train
Short, Test Long: Attention with Linear Biases Enables Input Length Extrapolation", section 3
(ALiBi). Raffel et al. 2020, "Exploring the Limits of Transfer Learning with a Unified Text-to-Text
Transformer", section 2.1 (a learned bias of each distance). OpenAI 2025, "gpt-oss-120b &
gpt-oss-20b Model Card", section 2.2 (a learned logit of each head in the softmax's denominator: a
sink).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from simulator.base.dtypes import F32
from simulator.base.errors import SCENARIO, refuse
from simulator.problem.masks import Mask

ROUNDING = "P in the type of V, as in FlashAttention's kernels"
SKIP = "FlashAttention-4, conditional rescaling"
SINK = "OpenAI 2025, section 2.2"
SOFTCAP = "Gemma Team 2024, section 2, logit soft-capping"
ALIBI = "Press, Smith, Lewis 2022, section 3"
RELATIVE = "Raffel et al. 2020, section 2.1"


class ScoreChange(NamedTuple):
    """A change of a scaled product before the mask, in words."""

    formula: str  # after S = QKᵀ
    done: str  # of a score
    name: str  # of the run
    key: str  # in the table ``scores`` of a scenario


CHANGING = {"softcap": 1.0, "alibi": True}
"""A table ``scores`` that changes scores in all ways that need no file."""


T = TypeVar("T", bound=np.floating[Any])


@dataclass(frozen=True, slots=True)
class Scoring:
    """The score of a pair: ``scale / temperature · q·k``, soft-capped, less the distance's bias."""

    scale: float  # softmax scale before the temperature
    temperature: float = 1.0  # divides the scaled scores
    softcap: float = 0.0  # ``s = softcap · tanh(s / softcap)``; 0 for none
    slopes: tuple[float, ...] = ()  # of each query head: ``s -= slope · |i' - j|``; empty for none
    # For each query head: the score of an extra key, of value 0, that every row sees first; empty
    # for none. No pair has this score.
    sink_logits: tuple[float, ...] = ()

    @property
    def factor(self) -> float:
        """The factor of q·k."""
        return self.scale / self.temperature

    @property
    def unscaled(self) -> Scoring:
        """The same scoring without its scale."""
        return replace(self, scale=1.0, temperature=1.0)

    @property
    def arguments(self) -> dict[str, float]:
        """The arguments of a kernel that scoring gives, by name."""
        return {"scale": self.factor, "softcap": self.softcap}

    @property
    def work(self) -> dict[str, float | bool]:
        """The changes that a kernel computes for any input, by their keys."""
        return {"softcap": self.softcap, "alibi": bool(self.slopes)}

    def check(self, farthest: int) -> None:
        """Refuse numbers that float32 cannot represent: scores would be 0, infinite or NaN."""
        limits = np.finfo(np.float32)
        steps = (("scale", self.scale, self.scale), ("temperature", self.temperature, self.factor))
        for key, value, factor in steps:
            if not float(limits.tiny) <= factor <= float(limits.max):
                expected = f"a scale of scores that float32 holds, not {factor:g}"
                raise refuse(SCENARIO, f"attention.{key}", value, expected)
        cap = self.softcap
        if cap and not float(limits.tiny) <= cap <= float(limits.max):
            expected = "a number that float32 holds, or 0 for no soft-cap"
            raise refuse(SCENARIO, "scores.softcap", cap, expected)
        steepest = max(self.slopes, default=0.0)
        if steepest * farthest > float(limits.max):
            expected = f"slopes that leave float32 at no distance up to {farthest}"
            raise refuse(SCENARIO, "scores.alibi", steepest, expected)

    def queries(self, q: NDArray[T]) -> NDArray[T]:
        """Return `q` times the factor, of the same type: its products with keys are scaled."""
        return q * q.dtype.type(self.factor)

    def of(self, products: NDArray[T]) -> NDArray[T]:
        """Return some products q·k scaled, of the same type."""
        return products * products.dtype.type(self.factor)

    def capped(self, s: NDArray[T]) -> NDArray[T]:
        """Return scaled products with the soft-cap, of the same type."""
        if not self.softcap:
            return s
        cap = s.dtype.type(self.softcap)
        s_capped: NDArray[T] = np.tanh(s / cap) * cap
        return s_capped

    def sink(self, head: int) -> float | None:
        """Return the sink logit of a head; None without one."""
        return self.sink_logits[head] if self.sink_logits else None

    def slope(self, s: NDArray[T]) -> NDArray[T]:
        """Return the slope of the soft-cap at scaled products, of the same type; 1 without one."""
        return 1 - np.tanh(s / s.dtype.type(self.softcap)) ** 2 if self.softcap else np.ones_like(s)


@dataclass(frozen=True, slots=True, eq=False)
class BiasTable:
    """Numbers that scores gain at each distance of query and key, for some query heads."""

    values: F32  # (heads, Nq + Nk - 1) float32, read-only: entry n is for ``j - i' = n - (Nk - 1)``

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BiasTable) and np.array_equal(self.values, other.values)

    def __hash__(self) -> int:
        return hash(self.values.tobytes())


@dataclass(frozen=True, slots=True)
class DistanceBias:
    """Numbers that the scores of a head lose with the distance of query and key."""

    mask: Mask  # where the rows stand among the keys
    # of the query heads, in the order of their rows; empty for none
    slopes: tuple[float, ...]
    queries: int  # rows of each query head
    table: F32 | None = None  # these heads' rows of a `BiasTable`

    @property
    def cites(self) -> str:
        """The paper that the bias comes from."""
        return ALIBI if self.table is None else RELATIVE

    @property
    def latex(self) -> str:
        """The formula of the bias, as it follows S."""
        slopes = r"- \mathrm{slope} \cdot | i' - j |" if self.slopes else ""
        return slopes if self.table is None else f"{slopes} + b_{{\\,j - i'}}".strip()

    def of(self, rows: range, keys: range) -> NDArray[np.float64]:
        """Return ``slope · |i' - j|`` less the table's number for ``j - i'``, (rows, keys)."""
        places = np.arange(keys.start, keys.stop, keys.step)[None, :]
        later = places - self.mask.positions(rows)[:, None]
        own = np.arange(rows.start, rows.stop, rows.step) // self.queries
        bias: NDArray[np.float64] = np.zeros(later.shape)
        if self.slopes:
            bias = np.asarray(self.slopes)[own][:, None] * np.abs(later)
        if self.table is not None:
            bias = bias - self.table[own[:, None], later + self.mask.seqlen_k - 1]
        return bias


def alibi_slopes(heads: int) -> tuple[float, ...]:
    """Return ALiBi's slopes of all heads of a layer (Press et al. 2022, section 3 and its code).

    They are ``2^(-8 (h + 1) / heads)`` for a power of two; else the slopes of the next lower power
    n, then every other slope of 2 n, from the first.
    """
    power = 1 << (heads.bit_length() - 1)
    own = [2.0 ** (-8 * (h + 1) / power) for h in range(power)]
    more = [2.0 ** (-8 * (h + 1) / (2 * power)) for h in range(0, 2 * power, 2)]
    return tuple(own + more[: heads - power])
