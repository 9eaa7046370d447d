"""A language model with random weights, small."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from simulator.language.model import read_model, write_model
from simulator.language.models import MODELS
from simulator.language.shape import Shape
from simulator.language.tokenizer import Tokenizer

SHAPE = Shape(vocabulary=260, width=24, layers=3, heads=6, kv_heads=2, dim=8, hidden=20)
MERGES = ((84, 72), (257, 69), (32, 10))


def weights_of(shape: Shape) -> dict[str, np.ndarray]:
    """Random weights of a shape, by the names in a file."""
    rng, s = np.random.default_rng(3), shape
    shapes = {"embed": (s.vocabulary, s.width), "norm": (s.width,)}
    for n in range(s.layers):
        own = {
            "norm1": (s.width,), "norm2": (s.width,), "q": (s.heads * s.dim, s.width),
            "k": (s.kv_heads * s.dim, s.width), "v": (s.kv_heads * s.dim, s.width),
            "o": (s.width, s.heads * s.dim), "gate": (s.hidden, s.width),
            "up": (s.hidden, s.width), "down": (s.width, s.hidden),
        }  # fmt: skip
        shapes |= {f"blocks.{n}.{name}": each for name, each in own.items()}
    drawn = {name: rng.standard_normal(each).astype(np.float16) for name, each in shapes.items()}
    return {name: value.astype(np.float32) for name, value in drawn.items()}


def put_in_place(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let typed texts be computed by the small model until the test is over."""
    path = folder / "sentence-model.safetensors"
    write_model(path, SHAPE, weights_of(SHAPE), Tokenizer(MERGES))
    for name in ("own", "smollm2"):
        monkeypatch.setitem(MODELS, name, replace(MODELS[name], path=path, read=read_model))
