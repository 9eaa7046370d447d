"""Which query heads share which keys and values, and what sharing costs: MHA, GQA, MQA, MLA."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from simulator.problem.models import AttentionModel, with_kv_heads
from simulator.study.kv_cache.counts import bytes_per_token, decode_step


@dataclass(frozen=True, slots=True)
class Projection:
    """One weight matrix of an attention layer. Biases and norms are not counted."""

    name: str  # as in the papers: ``W_Q``, or MLA's ``W_DKV``
    # as which of ``W_Q``, ``W_K``, ``W_V``, ``W_O`` it counts; MLA's W_DKV, which serves K and V,
    # counts as ``W_K``
    part_of: str
    inputs: int | None  # inputs, outputs: its shape; None if the model does not say
    outputs: int | None

    @property
    def parameters(self) -> int | None:
        """Weights of the matrix; None: not known."""
        if self.inputs is None or self.outputs is None:
            return None
        return self.inputs * self.outputs


@dataclass(frozen=True, slots=True)
class HeadSharing:
    """One way in which the query heads of a model share the cached numbers."""

    model: AttentionModel  # the model that shares in this way
    kind: str  # ``MHA``, ``GQA``, ``MQA`` or ``MLA``
    # the query heads of each KV head. With MLA there is one entry with all heads: they read the
    # same latent row, from which each head makes its own keys and values
    shared_by: tuple[range, ...]
    # the matrices of one layer, in the order of the forward pass
    projections: tuple[Projection, ...]

    def parameters(self, part: str | None = None) -> int | None:
        """Return the weights of one layer, or of ``W_Q``, ``W_K``, ``W_V`` or ``W_O`` alone.

        None: not known.
        """
        return _total([p for p in self.projections if part in (None, p.part_of)])

    def bytes_per_token(self, dtype: str = "float16") -> int:
        """Return the bytes that one token adds to the cache of all layers."""
        return bytes_per_token(self.model, dtype)

    def read_bytes(self, tokens: int, dtype: str = "float16") -> int:
        """Return the bytes of the cache that decoding token number `tokens` reads, all layers."""
        return decode_step(self.model, tokens, dtype).read

    @property
    def share_of_mha(self) -> Fraction:
        """Cached numbers of a token, divided by the number with one KV head for each query head."""
        return Fraction(self.model.cached_numbers, 2 * self.model.heads * self.model.head_dim)


def kv_head_counts(heads: int) -> tuple[int, ...]:
    """Return the divisors of `heads`, largest first: from MHA through GQA to MQA."""
    return tuple(n for n in range(heads, 0, -1) if heads % n == 0)


def head_sharing(model: AttentionModel) -> HeadSharing:
    """Return the way in which the heads of `model` share."""
    groups = model.kv_heads or 1
    size = model.heads // groups
    return HeadSharing(
        model=model,
        kind=model.kind,
        shared_by=tuple(range(g * size, (g + 1) * size) for g in range(groups)),
        projections=_latent_projections(model) if model.is_latent else _projections(model),
    )


def all_sharings(model: AttentionModel) -> tuple[HeadSharing, ...]:
    """Return every way from MHA through GQA to MQA, then MLA if the model has a latent row."""
    ways = [head_sharing(with_kv_heads(model, n)) for n in kv_head_counts(model.heads)]
    return (*ways, head_sharing(model)) if model.is_latent else tuple(ways)


def _projections(model: AttentionModel) -> tuple[Projection, ...]:
    queries = model.heads * model.head_dim
    cached = model.cached_numbers // 2  # K and V have as many each
    return (
        Projection("W_Q", "W_Q", model.hidden, queries),
        Projection("W_K", "W_K", model.hidden, cached),
        Projection("W_V", "W_V", model.hidden, cached),
        Projection("W_O", "W_O", queries, model.hidden),
    )


def _latent_projections(model: AttentionModel) -> tuple[Projection, ...]:
    """Return MLA's matrices.

    References
    ----------
    DeepSeek-AI 2024, "DeepSeek-V2", section 2.1, equations 9 to 19. In DeepSeek-V3's
    ``inference/model.py``, class MLA: ``wq_a`` is W_DQ, ``wq_b`` W_UQ and W_QR, ``wkv_a`` W_DKV
    and W_KR, ``wkv_b`` W_UK and W_UV, ``wo`` W_O; ``wq`` W_UQ and W_QR of undivided queries.
    """
    hidden, latent = model.hidden, model.latent_dim
    numbers, turned = model.heads * model.head_dim, model.heads * (model.rope_dim or 0)
    if model.query_latent_dim == 0:
        queries = [
            Projection("W_Q", "W_Q", hidden, numbers),
            Projection("W_QR", "W_Q", hidden, turned),
        ]
    else:
        queries = [
            Projection("W_DQ", "W_Q", hidden, model.query_latent_dim),
            Projection("W_UQ", "W_Q", model.query_latent_dim, numbers),
            Projection("W_QR", "W_Q", model.query_latent_dim, turned),
        ]
    return (
        *queries,
        Projection("W_DKV", "W_K", hidden, latent),
        Projection("W_KR", "W_K", hidden, model.rope_dim),
        Projection("W_UK", "W_K", latent, numbers),
        Projection("W_UV", "W_V", latent, numbers),
        Projection("W_O", "W_O", numbers, hidden),
    )


def _total(projections: Sequence[Projection]) -> int | None:
    """Return the sum of weights; None if one of them is not known."""
    total = 0
    for projection in projections:
        if projection.parameters is None:
            return None
        total += projection.parameters
    return total
