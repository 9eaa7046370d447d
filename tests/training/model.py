"""The language model in PyTorch: what is trained, and the twin of simulator/language/model."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from simulator.language.shape import Shape


class Block(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        s, wide = shape, shape.width
        self.shape = shape
        self.norm1, self.norm2 = nn.Parameter(torch.ones(wide)), nn.Parameter(torch.ones(wide))
        self.q = _matrix(s.heads * s.dim, wide)
        self.k = _matrix(s.kv_heads * s.dim, wide)
        self.v = _matrix(s.kv_heads * s.dim, wide)
        self.o = _matrix(wide, s.heads * s.dim, 0.3)
        self.gate, self.up = _matrix(s.hidden, wide), _matrix(s.hidden, wide)
        self.down = _matrix(wide, s.hidden, 0.3)

    def forward(self, x: Tensor, turns: tuple[Tensor, Tensor], kept: list | None) -> Tensor:
        s = self.shape
        y = F.rms_norm(x, (s.width,), self.norm1, s.eps)
        q, k, v = (
            F.linear(y, w).view(*y.shape[:2], -1, s.dim).transpose(1, 2)
            for w in (self.q, self.k, self.v)
        )
        q, k = _turned(q, *turns), _turned(k, *turns)
        if kept is not None:
            kept.append((q, k, v))
        o = _attention(q, k, v)
        x = x + F.linear(o.transpose(1, 2).flatten(2), self.o)
        y = F.rms_norm(x, (s.width,), self.norm2, s.eps)
        return x + F.linear(F.silu(F.linear(y, self.gate)) * F.linear(y, self.up), self.down)


class Model(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.embed = nn.Parameter(torch.randn(shape.vocabulary, shape.width) * 0.05)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = nn.Parameter(torch.ones(shape.width))
        waves = shape.base ** (-torch.arange(0, shape.dim, 2).double() / shape.dim)
        angles = torch.arange(2048)[:, None] * waves
        for name in ("cos", "sin"):
            half = getattr(angles, name)().float()
            self.register_buffer(name, torch.cat((half, half), -1), persistent=False)

    def forward(self, tokens: Tensor, kept: list | None = None) -> Tensor:
        """Logits, (B, N, vocabulary); to `kept` go Q, K, V of every layer, RoPE applied."""
        x, n = F.embedding(tokens, self.embed), tokens.shape[1]
        for block in self.blocks:
            x = block(x, (self.cos[:n], self.sin[:n]), kept)
        return F.linear(F.rms_norm(x, (self.shape.width,), self.norm, self.shape.eps), self.embed)


def _matrix(rows: int, columns: int, size: float = 1.0) -> nn.Parameter:
    return nn.Parameter(torch.randn(rows, columns) * (size * columns**-0.5))


def _attention(q: Tensor, k: Tensor, v: Tensor, block: int = 128) -> Tensor:
    """Causal attention of groups of heads, a block of rows at a time.

    With its way back it takes half the time of PyTorch's own on a processor.
    """
    batch, heads, n, dim = q.shape
    pairs = batch * k.shape[1]
    q, k, v = q.reshape(pairs, -1, n, dim), k.reshape(pairs, n, dim), v.reshape(pairs, n, dim)
    hidden = torch.full((n, n), -torch.inf, dtype=q.dtype).triu(1)
    out = []
    for first in range(0, n, block):
        last = min(first + block, n)
        rows = q[:, :, first:last].flatten(1, 2) * dim**-0.5
        scores = torch.bmm(rows, k[:, :last].transpose(1, 2)).unflatten(1, (-1, last - first))
        weights = torch.softmax(scores + hidden[first:last, :last], -1).flatten(1, 2)
        out.append(torch.bmm(weights, v[:, :last]).unflatten(1, (-1, last - first)))
    return torch.cat(out, 2).reshape(batch, heads, n, dim)


def _turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, -1)
    return x * cos.to(x.dtype) + torch.cat((-second, first), -1) * sin.to(x.dtype)
