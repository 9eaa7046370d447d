"""Input files whose keys are the pieces of a picture, each of a colour of its own."""

import colorsys
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

HEADS, DIM = 2, 8


def colours(count: int) -> NDArray[np.uint8]:
    """Return that many colours, (count, 3), which no theme uses and which are far apart."""
    found = [colorsys.hsv_to_rgb(n / count, 1 - 0.4 * (n % 2), 1 - 0.25 * (n % 3 == 1))
             for n in range(count)]  # fmt: skip
    return np.rint(255 * np.array(found)).astype(np.uint8)


def tensors_of(side: int, pixels: int = 8, *, first: int = 1) -> dict[str, NDArray[Any]]:
    """Return Q, K, V, a picture of `side` × `side` pieces and their boxes.

    The `first` keys, such as CLS, are no pieces. A row reads keys that are like it.
    """
    count = side * side
    image = colours(count).reshape(side, side, 3).repeat(pixels, 0).repeat(pixels, 1)
    at = np.arange(count, dtype=np.int32)
    left, top = at % side * pixels, at // side * pixels
    boxes = np.stack([left, top, left + pixels, top + pixels], axis=1)
    rng = np.random.default_rng(5)
    shape = HEADS, first + count, DIM
    q, k, v = (rng.standard_normal(shape).astype(np.float32) for _ in range(3))
    none = np.zeros((first, 4), np.int32)
    return {"q": q, "k": k, "v": v, "image": np.ascontiguousarray(image),
            "patch_boxes": np.concatenate([none, boxes]).astype(np.float32)}  # fmt: skip


def texts_of(side: int, *, first: int = 1) -> list[str]:
    """Return the tokens of such a file."""
    return ["CLS"] * first + [f"patch {r},{c}" for r in range(side) for c in range(side)]


def picture_file(path: Path, side: int = 3, pixels: int = 8, *, first: int = 1) -> Path:
    """Write such a file with its tokens."""
    said = {"tokens": json.dumps(texts_of(side, first=first))}
    save_file(tensors_of(side, pixels, first=first), path, said)
    return path
