"""Random scenarios of every feature, with the numbers that their input files hold.

A seed gives one scenario, always the same: every algorithm, mask, score, position, gate, table,
batch, layer, element type and kind of file turns up among a few hundred seeds.
"""

from __future__ import annotations

import json
import math
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w
from numpy.typing import NDArray

from tests.helpers.written_files import write_safetensors

ALGORITHMS = (
    "naive", "flash1", "flash2", "split-kv", "paged", "mla", "naive-backward", "flash2-backward",
    "linear", "linear-recurrent", "gla", "deltanet",
)  # fmt: skip
STATES = ("linear", "linear-recurrent", "gla", "deltanet")
"""Algorithms without a softmax."""
Array = NDArray[np.float32]


@dataclass
class Case:
    """A scenario file, and what a reader of its TOML and its input file knows."""

    path: Path  # the scenario file
    seed: int  # what it was drawn from
    tables: dict[str, Any]  # the tables of the file
    # the same with what the input file says in their place: ``attention``, ``mask``, ``scores``,
    # ``position``, ``tiling``, ``batch``
    said: dict[str, dict[str, Any]]
    # heads, kv_heads: of the input
    heads: int
    kv_heads: int
    picked: list[int]  # the query heads that run
    # float32: ``q`` (H, Nq, d), ``k`` (Hkv, Nk, d), ``v`` (Hkv, Nk, dv), before positions turn
    # them, of the sequence that runs; and, if there are some, ``do``, ``bias``, ``sink_logits``,
    # ``projection``, ``decay``, ``strength``, ``block_mask``, ``mask`` and the tensors of a layer
    numbers: dict[str, NDArray[Any]] = field(repr=False)

    @property
    def algorithm(self) -> str:
        """The algorithm's name."""
        return str(self.said["attention"]["algorithm"])

    @property
    def dtype(self) -> str:
        """The element type."""
        return str(self.said["attention"]["dtype"])


def rounded(values: NDArray[Any], dtype: str) -> Array:
    """Return numbers rounded to an element type, to nearest even, as float32."""
    values = np.ascontiguousarray(values, dtype=np.float32)
    if dtype == "float16":
        return values.astype(np.float16).astype(np.float32)
    if dtype == "bfloat16":
        bits = values.view(np.uint32)
        return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)
    return values


def visible(
    nq: int,
    nk: int,
    said: dict[str, Any],
    blocks: NDArray[np.bool_] | None = None,
    pairs: NDArray[np.bool_] | None = None,
) -> NDArray[np.bool_]:
    """Return which pairs a scenario's mask shows, (Nq, Nk) or those of each head of a file."""
    shift = 0 if said.get("align") == "top-left" else nk - nq
    i, j = np.arange(nq)[:, None] + shift, np.arange(nk)[None, :]
    seen = np.ones((nq, nk), dtype=bool)
    if said.get("causal"):
        seen &= j <= i
    if window := said.get("window", 0):
        everywhere = said.get("global_tokens", 0)
        pair = isinstance(window, list)
        left, right = window if pair else (window - 1, window - 1)
        near = (i - j) % said.get("dilation", 1) == 0
        if left >= 0:
            near &= i - j <= left
        if right >= 0 and not said.get("causal"):
            near &= j - i <= right
        near |= (j < said.get("sinks", 0)) | (j < everywhere)
        seen &= near | ((i < everywhere) & (everywhere > 0))
    if said.get("documents"):
        own = np.repeat(np.arange(len(said["documents"])), said["documents"])
        inside = (i >= 0) & (i < nk)
        of_row = np.where(inside, own[np.clip(i, 0, nk - 1)], -1)
        seen &= of_row == own[j]
    if blocks is not None:
        seen &= blocks[np.arange(nq)[:, None] // said["block"], j // said["block"]]
    return seen if pairs is None else seen & pairs


def random_case(
    seed: int,
    folder: Path,
    algorithms: tuple[str, ...] = ALGORITHMS,
    *,
    longest: int = 90,
    for_kernels: bool = False,
) -> Case:
    """Write a random scenario, and its input file if it has one, and return what they say.

    seed: of the draw.
    folder: an existing folder; files of other seeds in it are left alone.
    algorithms: which of them may be drawn.
    longest: most queries and keys.
    for_kernels: only head sizes and tiles that the kernels are made for.
    """
    return _Draw(seed, folder, algorithms, longest, for_kernels).case()


class _Draw:
    """One draw: each method decides one table, or the numbers that belong to it."""

    def __init__(
        self, seed: int, folder: Path, algorithms: tuple[str, ...], longest: int, kernels: bool
    ) -> None:
        self.seed, self.folder, self.longest, self.kernels = seed, folder, longest, kernels
        self.pick = random.Random(seed)
        self.rng = np.random.default_rng([seed, 37])
        self.algorithm = self.pick.choice(algorithms)
        self.state = self.algorithm in STATES
        self.backward = self.algorithm.endswith("backward")
        self.attention: dict[str, Any] = {"algorithm": self.algorithm}
        self.batch: dict[str, Any] = {}
        self.scores: dict[str, Any] = {}
        self.mask: dict[str, Any] = {}
        self.position: dict[str, Any] = {}
        self.tiling: dict[str, Any] = {}
        self.input: dict[str, Any] = {}
        self.numbers: dict[str, NDArray[Any]] = {}
        self.stored: dict[str, NDArray[Any]] = {}
        self.meta: dict[str, Any] = {}

    def often(self, share: float) -> bool:
        return self.pick.random() < share

    def case(self) -> Case:
        self._shapes()
        if not self.state:
            self._mask()
            self._scores()
            self._position()
        self._tiling()
        self._batch()
        {"random": self._random, "file": self._file, "layer": self._layer}[self.source]()
        self._beside()
        self._gate()
        said = {
            "attention": dict(self.attention), "batch": dict(self.batch),
            "scores": dict(self.scores), "mask": dict(self.mask),
            "position": dict(self.position), "tiling": dict(self.tiling),
        }  # fmt: skip
        picked = self._picked()
        if self.source == "file" and not self.state and self.often(0.4):
            self._told_by_the_file()
        path = self._write()
        return Case(
            path, self.seed, self.tables, said, self.heads, self.kv_heads, picked, self.numbers
        )

    def _shapes(self) -> None:
        pick = self.pick
        self.kv_heads = pick.choice((1, 1, 2, 3))
        self.heads = self.kv_heads * pick.choice((1, 1, 2, 3, 4))
        self.nq, self.nk = pick.randint(1, self.longest), pick.randint(1, self.longest)
        if self.often(0.45):
            self.nq = self.nk
        elif self.often(0.1):
            self.nq = 1
        if self.state and (self.algorithm != "linear" or self.often(0.6)):
            self.mask["causal"] = True
            self.nq = self.nk
        sizes = (4, 8, 16, 32) if self.kernels else (1, 2, 4, 6, 8, 16, 24, 40)
        self.d = pick.choice(sizes)
        narrow = (4, 8, 16) if self.kernels else (1, 3, 8, 20)
        self.dv = self.d if self.often(0.6) else pick.choice(narrow)
        self.dtype = pick.choice(("float32", "float16", "bfloat16"))
        self.latent = self.algorithm == "mla" or (not self.state and self.often(0.05))
        self.source = pick.choice(("random", "file", "file"))
        plain = not (self.latent or self.state or self.backward)
        if plain and self.nq == self.nk and self.often(0.25):
            self.source = "layer"
        self.attention |= {"heads": self.heads, "dtype": self.dtype}
        if self.latent:
            self.kv_heads = 1
            dc, dr = pick.choice((2, 8, 16)), pick.choice((2, 4, 8))
            self.d, self.dv = dc + dr, dc
            self.attention |= {"latent_dim": dc, "rope_dim": dr}
        else:
            self.attention["kv_heads"] = self.kv_heads

    def _mask(self) -> None:
        pick, mask = self.pick, self.mask
        if self.often(0.5):
            mask["causal"] = True
        if self.often(0.45):
            mask["window"] = pick.choice((1, 2, 5, 17, 40, 1000))
            if self.often(0.5):
                mask["sinks"] = pick.choice((1, 4, 200))
            if self.often(0.35):
                mask["dilation"] = pick.choice((2, 3, 7))
            if self.often(0.35):
                mask["global_tokens"] = pick.choice((1, 3, 300))
        if self.often(0.2):
            left, documents = self.nk, []
            while left:
                documents.append(pick.randint(1, left))
                left -= documents[-1]
            mask["documents"] = documents
        aside = random.Random(f"mask of {self.seed}")  # the other draws stay as they are
        if aside.random() < 0.3:
            mask["align"] = "top-left"
        if "window" in mask and aside.random() < 0.4:
            mask["window"] = [aside.choice((-1, 0, 3, 25)), aside.choice((0, 1, 8, 50))]
        if self.source == "file" and self.often(0.25):
            size = pick.choice((1, 3, 8, 16, 100))
            table = self.rng.random((-(-self.nq // size), -(-self.nk // size))) < 0.6
            if visible(self.nq, self.nk, mask | {"block": size}, table).any():
                mask["block"] = size
                self.numbers["block_mask"] = self.stored["block_mask"] = table
        rng = np.random.default_rng([self.seed, 38])
        if self.source != "random" and rng.random() < 0.3:
            heads = (self.heads,) if rng.random() < 0.5 else ()
            pairs = rng.random((*heads, self.nq, self.nk)) < rng.choice((0.3, 0.9))
            seen = visible(self.nq, self.nk, mask, self.numbers.get("block_mask"), pairs)
            if seen.any(axis=(-2, -1)).all():
                self.numbers["mask"] = self.stored["mask"] = pairs

    def _scores(self) -> None:
        pick, scores, attention = self.pick, self.scores, self.attention
        if self.often(0.3):
            scores["softcap"] = pick.choice((0.5, 5.0, 50.0))
        if self.often(0.25):
            drawn = [round(float(x), 3) for x in self.rng.uniform(0, 0.5, self.heads)]
            scores["alibi"] = True if self.often(0.6) else drawn
        if self.often(0.3):
            logits = (self.rng.standard_normal(self.heads) * 3).astype(np.float32)
            if self.source == "file" and self.often(0.5):
                scores["sink_logits"] = "file"
                self.stored["sink_logits"] = logits
            else:
                scores["sink_logits"] = [round(float(x), 3) for x in logits]
                logits = np.array(scores["sink_logits"], dtype=np.float32)
            self.numbers["sink_logits"] = logits
        if self.source == "file" and self.often(0.2):
            scores["bias"] = True
            bias = self.rng.standard_normal((self.heads, self.nq + self.nk - 1)).astype(np.float32)
            self.numbers["bias"] = self.stored["bias"] = bias
        if self.often(0.3):
            attention["scale"] = pick.choice((1e-3, 0.177, 1.0, 2.5))
        if self.often(0.25):
            attention["temperature"] = pick.choice((0.25, 0.9, 3.0, 100.0))
        if self.algorithm in ("flash2", "split-kv", "paged", "mla") and self.often(0.35):
            attention["rescale_threshold"] = pick.choice((0.0, 1.0, 8.0, 64.0))
        if self.algorithm == "flash2-backward" and self.often(0.3):
            attention["deterministic"] = True

    def _position(self) -> None:
        if self.latent or self.d % 2 or not self.often(0.3):
            return
        pick, position = self.pick, self.position
        position["kind"] = "rope"
        if self.often(0.5):
            position["theta"] = pick.choice((10.0, 500000.0))
        if self.often(0.5):
            position["interleaved"] = True
        if self.d % 4 == 0 and self.often(0.4):
            position["fraction"] = 0.5
        if self.often(0.4):
            position["offset"] = pick.choice((-7, 1000))

    def _tiling(self) -> None:
        pick, tiling = self.pick, self.tiling
        rows = (4, 8, 16) if self.kernels else (1, 3, 8, 16, 31, 200)
        cols = (4, 8, 16) if self.kernels else (1, 2, 5, 8, 16, 200)
        tiling |= {"rows": pick.choice(rows), "cols": pick.choice(cols)}
        if self.algorithm in ("split-kv", "paged", "mla") and self.often(0.7):
            tiling["splits"] = pick.choice((1, 2, 3, 7, 256, "auto"))
        elif self.algorithm in ("split-kv", "paged", "mla") and self.often(0.7):
            tiling["split_size"] = pick.choice((1, 2, 5)) * tiling["cols"]
        if self.algorithm == "paged" and self.often(0.6):
            sizes = [n for n in (1, 2, 4, 5, 8, 16) if tiling["cols"] % n == 0]
            size = tiling["page_size"] = pick.choice(sizes)
            if self.source == "file" and self.often(0.5):
                places = -(-self.nk // size) + pick.randint(0, 4)
                self.stored["table"] = self.rng.permutation(places).astype(np.int32)
        if self.often(0.1):
            tiling |= {"devices": pick.randint(2, 8), "layout": pick.choice(("zigzag", "striped"))}

    def _batch(self) -> None:
        if self.source != "random" or self.latent or self.state or self.backward:
            return
        if not self.often(0.35):
            return
        lengths = [self.pick.randint(1, self.longest) for _ in range(self.pick.randint(1, 5))]
        sequence = self.pick.randrange(len(lengths))
        self.batch |= {"lengths": lengths, "sequence": sequence}
        self.nk = lengths[sequence]
        self.mask.pop("documents", None)

    def _random(self) -> None:
        seed = self.pick.randrange(1000)
        self.input |= {"source": "random", "seed": seed}
        self.attention["seqlen_q"] = self.nq
        if not self.batch:
            self.attention["seqlen_k"] = self.nk
        if not self.latent:
            self.attention |= {"head_dim": self.d, "value_dim": self.dv}
        own = [seed, 0, self.batch["sequence"]] if self.batch else seed
        rng = np.random.default_rng(own)

        def drawn(*shape: int) -> Array:
            return rounded(rng.standard_normal(shape), self.dtype)

        numbers = self.numbers
        numbers["q"] = drawn(self.heads, self.nq, self.d)
        numbers["k"] = drawn(self.kv_heads, self.nk, self.d)
        latent = numbers["k"][..., : self.dv]
        numbers["v"] = latent if self.latent else drawn(self.kv_heads, self.nk, self.dv)
        if self.backward:
            numbers["do"] = drawn(self.heads, self.nq, self.dv)

    def _file(self) -> None:
        size = self.pick.choice((1, 1, 1, 3, 10)) ** 0.5
        if self.algorithm.startswith("linear"):
            size = 1.0  # features of large numbers are too small for float32
        numbers, stored = self.numbers, self.stored

        def drawn(*shape: int, times: float = 1.0) -> Array:
            return rounded(self.rng.standard_normal(shape) * times, self.dtype)

        numbers["q"] = drawn(self.heads, self.nq, self.d, times=size)
        numbers["k"] = drawn(self.kv_heads, self.nk, self.d, times=size)
        if self.latent:
            numbers["v"] = numbers["k"][..., : self.dv]
            stored |= {"q": numbers["q"], "latent": numbers["k"][0]}
        else:
            numbers["v"] = drawn(self.kv_heads, self.nk, self.dv)
            if self.often(0.1):
                numbers["k"][:] = numbers["k"][:, :1]  # all keys are equal
            batch = (None,) if self.often(0.2) else ()
            stored |= {name: numbers[name][(*batch, ...)] for name in "qkv"}
        if self.backward:
            numbers["do"] = stored["do"] = drawn(self.heads, self.nq, self.dv)

    def _layer(self) -> None:
        width = self.pick.choice((3, 8, 20))
        heads, kv_heads, d, dv = self.heads, self.kv_heads, self.d, self.dv
        shapes = {"x": (self.nq, width), "wq": (width, heads * d), "wk": (width, kv_heads * d),
                  "wv": (width, kv_heads * dv), "wo": (heads * dv, width)}  # fmt: skip
        for name, shape in shapes.items():
            root = 1.0 if name == "x" else math.sqrt(shape[0])
            self.stored[name] = rounded(self.rng.standard_normal(shape) / root, self.dtype)
        for name, columns in (("q", heads * d), ("k", kv_heads * d), ("v", kv_heads * dv),
                              ("o", width)):  # fmt: skip
            if self.often(0.5):
                drawn = rounded(self.rng.standard_normal(columns), self.dtype)
                self.stored[f"b{name}"] = drawn
        self.numbers |= self.stored
        for name, count in (("q", heads), ("k", kv_heads), ("v", kv_heads)):
            made = self.stored["x"] @ self.stored[f"w{name}"] + self.stored.get(f"b{name}", 0)
            by_head = made.reshape(self.nq, count, -1).transpose(1, 0, 2)
            self.numbers[name] = rounded(by_head, self.dtype)

    def _beside(self) -> None:
        """Draw what an algorithm without a softmax takes beside Q, K and V."""
        seed = self.input.get("seed", 0)
        if self.algorithm in ("linear", "linear-recurrent"):
            if self.often(0.5):
                self._projection(seed)
            elif self.often(0.5):
                self.attention["feature_map"] = "elu1"
        if self.algorithm in ("gla", "deltanet"):
            name = "decay" if self.algorithm == "gla" else "strength"
            shape = (self.kv_heads, self.nk, self.d)[: 3 if name == "decay" else 2]
            way = self.pick.choice(("said", "file", "drawn"))
            if way == "said":
                said = self.attention[name] = self.pick.choice((0.1, 0.9, 1.0))
                self.numbers[name] = np.full(shape, said, dtype=np.float32)
            elif way == "file" and self.source == "file":
                gates = self.rng.uniform(0, 1, shape).astype(np.float32)
                self.numbers[name] = self.stored[name] = gates
            else:
                x = np.random.default_rng([seed, 1]).standard_normal(shape)
                open_by = 1 / (1 + np.exp(-x))
                gates = open_by ** (1 / 16) if name == "decay" else open_by
                self.numbers[name] = gates.astype(np.float32)

    def _projection(self, seed: int) -> None:
        features = self.pick.choice((4, 8, 16) if self.kernels else (1, 4, 16, 33))
        self.attention["feature_map"] = "performer"
        if self.source == "file" and self.often(0.6):
            drawn = self.rng.standard_normal((features, self.d)).astype(np.float32)
            self.stored["projection"] = drawn
            if self.often(0.5):
                self.attention["features"] = features
        else:
            rng = np.random.default_rng(seed)
            drawn = rng.standard_normal((features, self.d)).astype(np.float32)
            self.attention["features"] = features
        self.numbers["projection"] = drawn

    def _gate(self) -> None:
        """Draw what O is multiplied by."""
        rng = np.random.default_rng([self.seed, 39])
        plain = self.source != "random" and not (self.state or self.backward)
        if plain and rng.random() < 0.3:
            drawn = rounded(rng.standard_normal((self.heads, self.nq, self.dv)), self.dtype)
            self.numbers["gate"] = self.stored["gate"] = drawn

    def _picked(self) -> list[int]:
        """Pick the query heads of some KV heads, which every algorithm can take."""
        plain = (
            self.source == "file" and not self.latent and self.algorithm not in ("gla", "deltanet")
        )
        if not plain or not self.often(0.15):
            return list(range(self.heads))
        group = self.heads // self.kv_heads
        count = self.pick.randint(1, self.kv_heads)
        chosen = sorted(self.pick.sample(range(self.kv_heads), count))
        picked = [kv * group + n for kv in chosen for n in range(group)]
        self.input["head"] = picked
        del self.attention["heads"], self.attention["kv_heads"]
        return picked

    def _told_by_the_file(self) -> None:
        """Let the input file say some of what the scenario said."""
        attention, mask, scores, meta = self.attention, self.mask, self.scores, self.meta
        if "scale" in attention and self.often(0.7):
            meta["scale"] = attention.pop("scale")
        if mask.get("causal") and self.often(0.6):
            meta["causal"] = mask.pop("causal")
        if isinstance(mask.get("window"), int) and self.often(0.6):
            meta["window"] = mask.pop("window")
        if "softcap" in scores and self.often(0.6):
            meta["softcap"] = scores.pop("softcap")
        if isinstance(scores.get("alibi"), list) and self.often(0.6):
            meta["alibi"] = scores.pop("alibi")
        if self.often(0.3):
            meta["tokens"] = [f"t{n}" for n in range(self.nk)]
        if self.often(0.4):
            scores.pop("bias", None)
        if scores.get("sink_logits") == "file" and self.often(0.4):
            del scores["sink_logits"]

    def _write(self) -> Path:
        if self.source != "random":
            name = f"input-{self.seed}{self.pick.choice(('.npz', '.safetensors'))}"
            self.input |= {"source": self.source, "path": name}
            (self._npz if name.endswith(".npz") else self._safetensors)(self.folder / name)
        tables = {"attention": self.attention, "batch": self.batch, "scores": self.scores,
                  "mask": self.mask, "position": self.position, "tiling": self.tiling,
                  "input": self.input}  # fmt: skip
        self.tables = {"title": f"Seed {self.seed}"} | {key: t for key, t in tables.items() if t}
        path = self.folder / f"scenario-{self.seed}.toml"
        path.write_text(tomli_w.dumps(self.tables), encoding="utf-8")
        return path

    def _elements(self) -> dict[str, NDArray[Any]]:
        """Return the tensors as a file has them: elements of the dtype, and float32 beside them."""
        inputs = {
            "q",
            "k",
            "v",
            "latent",
            "do",
            "gate",
            "x",
            "wq",
            "wk",
            "wv",
            "wo",
            "bq",
            "bk",
            "bv",
            "bo",
        }
        out = {}
        for name, tensor in self.stored.items():
            out[name] = tensor
            if name in inputs and self.dtype == "float16":
                out[name] = tensor.astype(np.float16)
            elif name in inputs and self.dtype == "bfloat16":
                bits = np.ascontiguousarray(tensor).view(np.uint32) >> 16
                out[name] = bits.astype(np.uint16)
        return {name: np.ascontiguousarray(tensor) for name, tensor in out.items()}

    def _npz(self, path: Path) -> None:
        words = {key: json.dumps(value) if key == "alibi" else value
                 for key, value in self.meta.items()}  # fmt: skip
        np.savez(path, **self._elements(), **{key: np.array(word) for key, word in words.items()})

    def _safetensors(self, path: Path) -> None:
        write_safetensors(
            path, self._elements(), {key: json.dumps(word) for key, word in self.meta.items()}
        )
