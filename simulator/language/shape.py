"""The sizes of a language model."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    """A decoder's sizes: `heads` query heads in groups share `kv_heads` of keys and values."""

    vocabulary: int = 4096
    width: int = 192
    layers: int = 6
    heads: int = 6
    kv_heads: int = 2
    dim: int = 32
    hidden: int = 448
    learned: int = 256  # tokens that a text had in training
    base: float = 10_000.0  # of RoPE
    eps: float = 1e-5  # of RMSNorm

    @property
    def parameters(self) -> int:
        """Numbers that training finds."""
        attention = 2 * self.width * self.dim * (self.heads + self.kv_heads)
        layer = attention + 3 * self.width * self.hidden + 2 * self.width
        return self.vocabulary * self.width + self.layers * layer + self.width
