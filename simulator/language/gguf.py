"""GGUF: a Llama with quantised weights, as llama.cpp stores it, read as a `LanguageModel`.

References
----------
The format: ggml-org/ggml, docs/gguf.md, version 3; blocks of Q4_1 and Q8_0: src/ggml-common.h.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulator.base.dtypes import F32, frozen
from simulator.language.model import LanguageModel
from simulator.language.shape import Shape
from simulator.language.tokenizer import BYTE_OF, GPT2_WORDS, Tokenizer

_NUMBERS = {
    0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d",
}  # fmt: skip
_TEXT, _LIST, _NORMAL = 8, 9, 1
"""The types of a text and of a list, and the type of a token that is not special."""
_PART = 32
"""Numbers of a block, which share one scale."""
_NAMES = {
    "embed": "token_embd", "norm": "output_norm", "norm1": "attn_norm", "norm2": "ffn_norm",
    "q": "attn_q", "k": "attn_k", "v": "attn_v", "o": "attn_output", "gate": "ffn_gate",
    "up": "ffn_up", "down": "ffn_down",
}  # fmt: skip


class _Tensor(NamedTuple):
    shape: tuple[int, ...]  # (outputs, inputs)
    kind: int  # how its numbers are stored
    start: int  # where in the file


def _float32(raw: NDArray[np.uint8]) -> F32:
    return raw.view("<f4").astype(np.float32)


def _q8_0(raw: NDArray[np.uint8]) -> F32:
    blocks = raw.reshape(-1, 2 + _PART)
    return blocks[:, :2].copy().view("<f2").astype(np.float32) * blocks[:, 2:].view(np.int8)


def _q4_1(raw: NDArray[np.uint8]) -> F32:
    blocks = raw.reshape(-1, 4 + _PART // 2)
    scale, least = np.split(blocks[:, :4].copy().view("<f2").astype(np.float32), 2, 1)
    return scale * np.hstack([blocks[:, 4:] & 15, blocks[:, 4:] >> 4]) + least


_KINDS: dict[int, tuple[int, int, Callable[[NDArray[np.uint8]], F32]]] = {
    0: (1, 4, _float32), 3: (_PART, 4 + _PART // 2, _q4_1), 8: (_PART, 2 + _PART, _q8_0),
}  # fmt: skip
"""Numbers and bytes of a block, and how they are read."""


class GgufWeights(Mapping[str, F32]):
    """Weights by our names, each read from the file when it is asked for."""

    def __init__(self, path: Path, tensors: Mapping[str, _Tensor], shape: Shape) -> None:
        self._file, self._tensors, self._shape = np.memmap(path, np.uint8, "r"), tensors, shape

    def __getitem__(self, name: str) -> F32:
        *block, last = name.removeprefix("blocks.").split(".")
        shape, kind, start = self._tensors[
            ".".join([*(f"blk.{n}" for n in block), _NAMES[last], "weight"])
        ]
        numbers, size, read = _KINDS[kind]
        end = start + int(np.prod(shape)) // numbers * size
        found = read(self._file[start:end]).reshape(shape)
        heads = {"q": self._shape.heads, "k": self._shape.kv_heads}.get(last)
        if heads:  # in the file, both numbers of a pair that RoPE turns are neighbours
            found = found.reshape(heads, -1, 2, shape[1]).swapaxes(1, 2).reshape(shape)
        return frozen(np.ascontiguousarray(found))

    def __iter__(self) -> Iterator[str]:
        own = [name for name in _NAMES if name not in ("embed", "norm")]
        return iter(
            ["embed", "norm"]
            + [f"blocks.{n}.{name}" for n in range(self._shape.layers) for name in own]
        )

    def __len__(self) -> int:
        return len(list(iter(self)))


def read_gguf(path: Path) -> LanguageModel:
    """Return the Llama that a file holds; its weights are read when it first computes.

    Raises OSError, ValueError: the file cannot be read, or is another kind of file or model.
    """
    try:
        said, tensors = _header(path.read_bytes())
        shape, tokenizer = _shape(said), _tokenizer(said)
    except (struct.error, LookupError, OverflowError, RecursionError) as error:
        raise ValueError(f"no Llama in GGUF: {error!r}") from error
    return LanguageModel(shape, GgufWeights(path, tensors, shape), tokenizer)


def _header(data: bytes) -> tuple[dict[str, Any], dict[str, _Tensor]]:
    at = 0

    def number(code: str) -> Any:
        nonlocal at
        (found,) = struct.unpack_from(f"<{code}", data, at)
        at += struct.calcsize(f"<{code}")
        return found

    def text() -> str:
        nonlocal at
        size = number("Q")
        at += size
        return data[at - size : at].decode("utf-8", "replace")

    def value(kind: int) -> Any:
        if kind == _LIST:
            of, count = number("I"), number("Q")
            return [value(of) for _ in range(count)]
        return text() if kind == _TEXT else number(_NUMBERS[kind])

    if (number("4s"), number("I")) != (b"GGUF", 3):
        raise ValueError("no GGUF of version 3")
    count, pairs = number("Q"), number("Q")
    said = {text(): value(number("I")) for _ in range(pairs)}
    found = {}
    for _ in range(count):
        name, sizes = text(), [number("Q") for _ in range(number("I"))]
        found[name] = _Tensor(tuple(reversed(sizes)), number("I"), number("Q"))
    whole = said.get("general.alignment", 32)
    first = -(-at // whole) * whole
    return said, {name: each._replace(start=first + each.start) for name, each in found.items()}


def _shape(said: Mapping[str, Any]) -> Shape:
    if said["general.architecture"] != "llama":
        raise ValueError(f"no Llama, but {said['general.architecture']}")
    of = {name.removeprefix("llama."): value for name, value in said.items()}
    return Shape(
        vocabulary=len(said["tokenizer.ggml.tokens"]),
        width=of["embedding_length"],
        layers=of["block_count"],
        heads=of["attention.head_count"],
        kv_heads=of["attention.head_count_kv"],
        dim=of["rope.dimension_count"],
        hidden=of["feed_forward_length"],
        learned=of["context_length"],
        base=of["rope.freq_base"],
        eps=of["attention.layer_norm_rms_epsilon"],
    )


def _tokenizer(said: Mapping[str, Any]) -> Tokenizer:
    if said["tokenizer.ggml.pre"] != "smollm":
        raise ValueError(f"no tokenizer of SmolLM, but {said['tokenizer.ggml.pre']}")
    tokens, kinds = said["tokenizer.ggml.tokens"], said["tokenizer.ggml.token_type"]
    number = {token: n for n, token in enumerate(tokens)}
    pieces = [
        bytes(BYTE_OF[sign] for sign in token) if kind == _NORMAL else token.encode()
        for token, kind in zip(tokens, kinds, strict=True)
    ]
    merges = (tuple(merge.split(" ")) for merge in said["tokenizer.ggml.merges"])
    pairs = ((number[left], number[right]) for left, right in merges)
    return Tokenizer(pairs, pieces, GPT2_WORDS, spaced=False)
