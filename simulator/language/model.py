"""The language model in NumPy: a whole text at once, or more tokens beside a cache.

A decoder: RMSNorm before attention and before a gated layer of SiLU, rotary positions that turn
halves, heads that share keys and values, and the embedding again at the end.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open

from simulator.base.dtypes import F32, frozen
from simulator.base.matmul import matmul
from simulator.language.shape import Shape
from simulator.language.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """The weights of one layer, each as it multiplies from the right."""

    before: F32  # (width,), the gain of the norm before attention
    projections: F32  # (width, (heads + 2 kv_heads) dim) of Q, K and V side by side
    output: F32  # (heads dim, width)
    between: F32  # (width,), the gain of the norm before the gated layer
    gated: F32  # (width, 2 hidden): the gate, then the part that the gate multiplies
    down: F32  # (hidden, width)


@dataclass(slots=True)
class Cache:
    """Keys and values of the tokens so far, RoPE applied, (kv_heads, n, dim) of each layer."""

    k: list[F32] = field(default_factory=list)
    v: list[F32] = field(default_factory=list)

    def __len__(self) -> int:
        return self.k[0].shape[1] if self.k else 0

    def extended(self, layer: int, k: F32, v: F32) -> tuple[F32, F32]:
        """Add keys and values at the end of a layer's, and return all of the layer's."""
        if layer == len(self.k):
            self.k.append(k)
            self.v.append(v)
        else:
            self.k[layer] = np.concatenate([self.k[layer], k], 1)
            self.v[layer] = np.concatenate([self.v[layer], v], 1)
        return self.k[layer], self.v[layer]


@dataclass(frozen=True, slots=True)
class Computed:
    """Logits of `n` tokens after `before` others, and lists of each layer's tensors."""

    logits: F32  # (n, vocabulary), or (1, vocabulary) of the last token alone
    q: list[F32]  # (heads, n, dim), RoPE applied
    k: list[F32]  # (kv_heads, before + n, dim), RoPE applied
    v: list[F32]  # (kv_heads, before + n, dim)
    weights: list[F32]  # (heads, n, before + n): each row sums to 1


class LanguageModel:
    """A decoder: sizes, tokens, weights.

    weights: by the names of `tests/training`, each (outputs, inputs); read when first computed.
    """

    def __init__(self, shape: Shape, weights: Mapping[str, F32], tokenizer: Tokenizer) -> None:
        self.shape, self.tokenizer, self._weights = shape, tokenizer, weights

    @cached_property
    def embedding(self) -> F32:
        """The vector of each token, (vocabulary, width)."""
        return self._weights["embed"]

    @cached_property
    def layers(self) -> tuple[LayerWeights, ...]:
        """The weights of each layer."""
        return tuple(_layer(self._weights, f"blocks.{n}.") for n in range(self.shape.layers))

    @cached_property
    def _end(self) -> tuple[F32, F32]:
        """The gain of the last norm, and the embedding as it multiplies from the right."""
        return self._weights["norm"], np.ascontiguousarray(self.embedding.T)

    def run(
        self, tokens: Sequence[int], cache: Cache | None = None, *, last: bool = False
    ) -> Computed:
        """Return logits for the token after each token, and Q, K, V and weights of every layer.

        tokens: at least one; the first token of a text is the start.
        cache: keys and values of the tokens before; the keys and values of `tokens` are added.
        last: whether only the last token needs logits.
        """
        s, cache = self.shape, Cache() if cache is None else cache
        before, n = len(cache), len(tokens)
        x, turns = self.embedding[list(tokens)], self._turns(before, n)
        hidden = np.triu(np.full((n, before + n), -np.inf, np.float32), before + 1)
        out = Computed(x, [], [], [], [])
        for number, layer in enumerate(self.layers):
            made = matmul(_normed(x, layer.before, s.eps), layer.projections)
            made = made.reshape(n, -1, s.dim).transpose(1, 0, 2)
            q, k, v = np.split(made, [s.heads, s.heads + s.kv_heads])
            q, (k, v) = _turned(q, turns), cache.extended(number, _turned(k, turns), v)
            shared = q.reshape(s.kv_heads, -1, s.dim)
            scores = matmul(shared, k.transpose(0, 2, 1)) * np.float32(s.dim**-0.5)
            weights = _softmax(scores.reshape(s.heads, n, -1) + hidden)
            o = matmul(weights.reshape(s.kv_heads, -1, before + n), v)
            x = x + matmul(o.reshape(s.heads, n, s.dim).swapaxes(0, 1).reshape(n, -1), layer.output)
            gate, up = np.split(matmul(_normed(x, layer.between, s.eps), layer.gated), 2, 1)
            x = x + matmul(gate / (1 + np.exp(-gate)) * up, layer.down)
            for kept, value in zip(
                (out.q, out.k, out.v, out.weights), (q, k, v, weights), strict=True
            ):
                kept.append(value)
        gain, unembedding = self._end
        x = _normed(x[-1:] if last else x, gain, s.eps)
        return Computed(matmul(x, unembedding), out.q, out.k, out.v, out.weights)

    def _turns(self, first: int, count: int) -> tuple[F32, F32]:
        """Return cosines and sines of RoPE, (count, dim), from a place on."""
        s = self.shape
        waves = s.base ** (-np.arange(0, s.dim, 2) / s.dim)
        angles = np.tile(np.arange(first, first + count)[:, None] * waves, 2)
        return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def write_model(path: Path, shape: Shape, weights: Mapping[str, F32], tokenizer: Tokenizer) -> None:
    """Write a model as float16, always as the same bytes."""
    said = {
        "shape": json.dumps(asdict(shape)),
        "merges": json.dumps(tokenizer.merges).replace(" ", ""),
    }
    header: dict[str, object] = {"__metadata__": said}
    start, stored = 0, {name: np.asarray(value, np.float16) for name, value in weights.items()}
    for name, value in stored.items():
        ends = [start, start := start + value.nbytes]
        header[name] = {"dtype": "F16", "shape": value.shape, "data_offsets": ends}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    data = [value.tobytes() for value in stored.values()]
    path.write_bytes(b"".join([len(text).to_bytes(8, "little"), text, *data]))


def read_model(path: Path) -> LanguageModel:
    """Return the model that a file holds, with its float16 weights as float32.

    Raises OSError, ValueError: the file cannot be read, or holds something else.
    """
    try:
        with safe_open(path, "numpy") as file:
            said = file.metadata()
            weights = {
                name: frozen(file.get_tensor(name).astype(np.float32))
                for name in file.keys()  # noqa: SIM118
            }
        merges = [(left, right) for left, right in json.loads(said["merges"])]
        shape = Shape(**json.loads(said["shape"]))
    except (SafetensorError, KeyError, TypeError) as error:
        raise ValueError(f"no model of ours: {error}") from error
    return LanguageModel(shape, weights, Tokenizer(merges))


def _layer(weights: Mapping[str, F32], name: str) -> LayerWeights:
    def beside(*names: str) -> F32:
        return np.ascontiguousarray(np.vstack([weights[name + each] for each in names]).T)

    return LayerWeights(
        before=weights[name + "norm1"],
        projections=beside("q", "k", "v"),
        output=beside("o"),
        between=weights[name + "norm2"],
        gated=beside("gate", "up"),
        down=beside("down"),
    )


def _normed(x: F32, gain: F32, eps: float) -> F32:
    return np.asarray(x / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(eps)) * gain)


def _turned(x: F32, turns: tuple[F32, F32]) -> F32:
    """Return Q or K, (heads, n, dim), turned by their places."""
    cos, sin = turns
    first, second = np.split(x, 2, -1)
    return np.asarray(x * cos + np.concatenate([-second, first], -1) * sin)


def _softmax(scores: F32) -> F32:
    p = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(p / p.sum(-1, keepdims=True))
