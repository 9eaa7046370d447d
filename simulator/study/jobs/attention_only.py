"""A transformer of attention layers alone at several moments of its training, in float64.

x is an embedding plus a position, each layer adds its Y to x, and the last x times the unembedding
gives the logits of the next token (Elhage et al. 2021: no MLP, no norm). assets/captures/README.md
describes the files. Heads can be switched off: they give zeros to the concat.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from simulator.base.dtypes import F64, frozen
from simulator.base.errors import refuse
from simulator.base.matmul import matmul
from simulator.problem.input_files import read_tensor, stored_tensors
from simulator.problem.layer import BIASES, WEIGHTS, Layer, read_layer, read_layer_header
from simulator.problem.masks import Mask
from simulator.problem.scenario import Attention
from simulator.study.jobs.jobs import HeadJobs, head_jobs, shares_of_y

Words = NDArray[np.intp]
Head = tuple[int, int]
"""A layer and a head in this layer, both counted from 0."""

_LAYER = re.compile(r"(step-\d+)-layer(\d+)")
_HELD_OUT = "held-out.safetensors"
_KINDS = ("sentences", "repeated")
_REST = ("embed", "positions", "unembed", "bias", "heads", "step")
_MOST_MOMENTS, _MOST_LAYERS, _MOST_HEADS = 64, 16, 256
_MOST_NUMBERS = 2**24
"""Most weights of attention, or logits, of one forward pass: more would take too long."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The weights after some steps of training."""

    step: int  # how many
    heads: int  # query heads of each layer
    layers: tuple[Layer, ...]  # x of the text and the weights
    # embed, positions, unembed, bias: (words, D), (N, D), (D, words), (words,), float64
    embed: F64
    positions: F64
    unembed: F64
    bias: F64


@dataclass(frozen=True, slots=True)
class Model:
    """A transformer, the text that it reads, and the sequences on which the loss is measured."""

    vocabulary: tuple[str, ...]  # its words
    text: Words  # (N,) int, the words of the files' x
    # sequences that it was not trained on, (sequences, N) int, by kind
    held_out: Mapping[str, Words]
    moments: tuple[Checkpoint, ...]  # ascending

    @property
    def tokens(self) -> tuple[str, ...]:
        """The words of the text."""
        return tuple(self.vocabulary[n] for n in self.text)

    @property
    def heads(self) -> tuple[Head, ...]:
        """All heads, layer by layer."""
        first = self.moments[0]
        return tuple((n, head) for n in range(len(first.layers)) for head in range(first.heads))

    def at(self, step: int) -> Checkpoint:
        """Return the moment after so many steps."""
        return next(moment for moment in self.moments if moment.step == step)


@dataclass(frozen=True, slots=True)
class Pass:
    """The results of a forward pass on some sequences."""

    weights: tuple[F64, ...]  # of each layer, (sequences, heads, N, N) float64
    # of each layer, (sequences, heads, N, dv) float64, zeros for a head that is off
    o: tuple[F64, ...]
    logits: F64  # (sequences, N, words) float64


@dataclass(frozen=True, slots=True)
class TrainingFigures:
    """Loss and jobs of heads at a checkpoint."""

    step: int  # which moment
    jobs: HeadJobs  # of all heads, in the order of `Model.heads`, on the text
    weights: F64  # (heads, N, N) float64, of all heads on the text
    shares: F64  # (heads,) float64, by how much Y of a head's layer moves without it
    # mean −log of the probability of the next token in held-out sequences, in nats: of
    # ``sentences``, of ``repeated`` sequences, and at the places in these whose token was there
    # before, so that the next one is known (``again``)
    loss: Mapping[str, float]


def layer_place(path: Path | None) -> tuple[Path, int, int] | None:
    """Return folder, step and layer of a file of a layer of such a model; None for other files."""
    found = _LAYER.fullmatch(path.stem) if path is not None else None
    if path is None or found is None:
        return None
    beside = (path.with_name(_HELD_OUT), path.with_name(f"{found[1]}-rest.safetensors"))
    if not all(file.is_file() for file in beside):
        return None
    return path.parent, int(found[1].removeprefix("step-")), int(found[2])


def read_model(folder: Path) -> Model:
    """Read a model at all its moments.

    Raises InputError: a file cannot be read or does not fit to the others.
    """
    rests = sorted(folder.glob("step-*-rest.safetensors"))
    if not 0 < len(rests) <= _MOST_MOMENTS:
        raise refuse(str(folder), "moments", len(rests), f"1 to {_MOST_MOMENTS} files step-*-rest")
    moments = tuple(sorted((_moment(path) for path in rests), key=lambda moment: moment.step))
    first = moments[0]
    for path, moment in zip(rests, moments, strict=True):
        if _shapes(moment) != _shapes(first) or len(moment.layers) != len(first.layers):
            raise refuse(str(path), "heads, shapes", _shapes(moment), f"{_shapes(first)} as before")
    vocabulary = _texts(rests[0], stored_tensors(rests[0], _REST)[1])
    if len(vocabulary) != len(first.embed):
        raise refuse(str(rests[0]), "tokens", len(vocabulary), f"{len(first.embed)}, as in embed")
    shown = rests[0].with_name(rests[0].name.replace("-rest", "-layer0"))
    numbers = {word: n for n, word in enumerate(vocabulary)}
    tokens = _texts(shown, stored_tensors(shown, ("x",))[1])
    if not tokens or not set(tokens) <= set(numbers) or len(tokens) > len(first.positions):
        raise refuse(str(shown), "tokens", len(tokens), "words of the vocabulary, one a place")
    text = np.array([numbers[token] for token in tokens])
    return Model(vocabulary, frozen(text), _held_out(folder / _HELD_OUT, first), moments)


def _shapes(moment: Checkpoint) -> tuple[object, ...]:
    return moment.heads, moment.embed.shape, moment.positions.shape


def _texts(path: Path, said: Mapping[str, str]) -> tuple[str, ...]:
    try:
        found = json.loads(said.get("tokens", ""))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise refuse(str(path), "tokens", "", "a JSON list of texts")
    return tuple(found)


def _moment(path: Path) -> Checkpoint:
    stored, _ = stored_tensors(path, _REST)
    if len(stored) < len(_REST):
        have = ", ".join(sorted(stored))
        raise refuse(str(path), "tensors", "", f"{', '.join(_REST)} (of these it has {have})")
    found = {name: read_tensor(path, name, stored[name]).astype(np.float64) for name in _REST}
    for name in _REST:
        if not found[name].size or not np.isfinite(found[name]).all():
            raise refuse(str(path), f"tensor {name}", "", "finite numbers, at least one")
    heads, step = (int(found.pop(name).flat[0]) for name in ("heads", "step"))
    if not (1 <= heads <= _MOST_HEADS and step >= 0):
        raise refuse(
            str(path), "heads, step", (heads, step), f"1 to {_MOST_HEADS} heads, step 0 up"
        )
    stem = path.stem.removesuffix("-rest")
    layers: list[Layer] = []
    while (file := path.with_name(f"{stem}-layer{len(layers)}.safetensors")).is_file():
        if len(layers) == _MOST_LAYERS:
            raise refuse(str(path), "layers", len(layers) + 1, f"at most {_MOST_LAYERS}")
        layers.append(read_layer(read_layer_header(file, Attention(heads=heads))))
    embed, positions, unembed, bias = (found[name] for name in _REST[:4])
    words, wide = embed.shape if embed.ndim == 2 else (0, 0)
    fits = (
        layers
        and positions.ndim == 2 == unembed.ndim
        and positions.shape[1] == wide == unembed.shape[0]
        and unembed.shape[1:] == bias.shape == (words,)
        and all(layer.x.shape[1] == wide == layer.weights["wo"].shape[1] for layer in layers)
    )
    if not fits:
        raise refuse(
            str(path), "shape of embed", embed.shape, "those of one model, with its layers"
        )
    for tensor in (embed, positions, unembed, bias):
        frozen(tensor)
    return Checkpoint(step, heads, tuple(layers), embed, positions, unembed, bias)


def _held_out(path: Path, moment: Checkpoint) -> dict[str, Words]:
    stored, _ = stored_tensors(path, _KINDS)
    out: dict[str, Words] = {}
    for kind, tensor in stored.items():
        words = read_tensor(path, kind, tensor)
        whole = words.ndim == 2 and 1 < words.shape[1] <= len(moment.positions)
        if not whole or not np.isin(words, np.arange(len(moment.embed))).all():
            raise refuse(str(path), f"tensor {kind}", "", "numbers of words, at most N in a row")
        per_word = max(moment.heads * words.shape[1], len(moment.embed))
        if words.size * per_word > _MOST_NUMBERS:
            raise refuse(str(path), f"tensor {kind}", words.shape, f"{_MOST_NUMBERS} numbers")
        out[kind] = frozen(words.astype(np.intp))
    if not out:
        raise refuse(str(path), "tensors", "", " or ".join(_KINDS))
    return out


def forward(moment: Checkpoint, words: Words, off: Collection[Head] = ()) -> Pass:
    """Return the forward pass of a model on some sequences.

    words: (sequences, N) int.
    off: heads that give zeros to the concat.
    """
    count, length = words.shape
    x = moment.embed[words] + moment.positions[:length]
    hidden = np.triu(np.full((length, length), -np.inf), 1)
    weights, outputs = [], []
    for n, layer in enumerate(moment.layers):
        own = {name: values.astype(np.float64) for name, values in layer.weights.items()}
        made = (
            matmul(x, own[weight]) + own.get(bias, 0.0)
            for weight, bias in zip(WEIGHTS[:3], BIASES, strict=False)
        )
        sizes = (layer.shapes[at] for at in range(3))
        q, k, v = (
            each.reshape(count, length, size[0], size[2]).transpose(0, 2, 1, 3)
            for each, size in zip(made, sizes, strict=True)
        )
        group = q.shape[1] // k.shape[1]
        k, v = (np.repeat(each, group, axis=1) for each in (k, v))
        scores = matmul(q, k.swapaxes(-1, -2)) * q.shape[-1] ** -0.5 + hidden
        p = np.exp(scores - scores.max(axis=-1, keepdims=True))
        p /= p.sum(axis=-1, keepdims=True)
        o = matmul(p, v)
        o[:, [head for at, head in off if at == n]] = 0.0
        flat = o.transpose(0, 2, 1, 3).reshape(count, length, -1)
        x = x + matmul(flat, own["wo"]) + own.get("bo", 0.0)
        weights.append(frozen(p))
        outputs.append(frozen(o))
    return Pass(tuple(weights), tuple(outputs), frozen(matmul(x, moment.unembed) + moment.bias))


def losses(logits: F64, words: Words) -> F64:
    """Return −log of the probability of each next word in nats, (sequences, N − 1)."""
    logits = logits[:, :-1] - logits[:, :-1].max(axis=-1, keepdims=True)
    total = np.log(np.exp(logits).sum(axis=-1))
    return frozen(total - np.take_along_axis(logits, words[:, 1:, None], axis=-1)[..., 0])


def said_before(words: Words) -> NDArray[np.bool_]:
    """Return at which places, but the last, the word was there before, (sequences, N − 1).

    In a sequence that repeats itself the next word is known there.
    """
    same = words[:, :-1, None] == words[:, None, :-1]
    before = np.tri(words.shape[1] - 1, k=-1, dtype=np.bool_)
    found: NDArray[np.bool_] = (same & before).any(axis=2)
    return found


def figures(model: Model, step: int, off: Collection[Head] = ()) -> TrainingFigures:
    """Return the figures of a moment, maybe with some heads switched off."""
    moment = model.at(step)
    own = forward(moment, model.text[None], off)
    weights = frozen(np.concatenate([each[0] for each in own.weights]))
    length = len(model.text)
    jobs = head_jobs(weights, Mask(length, length, causal=True), range(length), model.tokens)
    shares = [
        shares_of_y(o[0], layer.weights["wo"], layer.weights.get("bo", np.zeros(1)))
        for o, layer in zip(own.o, moment.layers, strict=True)
    ]
    loss = {}
    for kind, words in model.held_out.items():
        found = losses(forward(moment, words, off).logits, words)
        loss[kind] = float(found.mean())
        if kind == "repeated":
            loss["again"] = float(found[said_before(words)].mean())
    return TrainingFigures(step, jobs, weights, frozen(np.concatenate(shares)), loss)
