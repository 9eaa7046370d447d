"""The texts of an input file: tokens, the source of its numbers, changes of its scores."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from simulator.base.errors import refuse
from simulator.base.limits import TITLE_LETTERS

NAMES = (
    "tokens",
    "query_tokens",
    "model",
    "layer",
    "scale",
    "causal",
    "window",
    "softcap",
    "alibi",
    "after",
)
"""Names of the texts, in the metadata of a .safetensors file or as arrays of an .npz."""
MOST_WINDOW = 2**24  # the longest window, which is as long as the longest sequence
_HALF = re.compile("[\ud800-\udfff]")
"""Half a letter: JSON can contain one, but a text that is shown may not."""


@dataclass(frozen=True, slots=True)
class FileTexts:
    """The texts of a file, as values."""

    tokens: tuple[str, ...] = ()  # one for each key, or empty
    # one for each query if queries come from another text than keys; else empty
    query_tokens: tuple[str, ...] = ()
    # model, layer: where the numbers come from; empty when the file does not say
    model: str = ""
    layer: str = ""
    scale: float | None = None  # softmax scale; None when the file does not say
    causal: bool | None = None  # whether the layer is causal; None when the file does not say
    window: int = 0  # of the layer's mask; 0 for none
    softcap: float = 0.0  # of the layer's scores; 0 for none
    alibi: tuple[float, ...] = ()  # a slope for each query head; empty for none
    # how the layer changes O before its output projection, such as ``gates O``; empty: not at all
    after: str = ""


def read_texts(
    path: Path, texts: Mapping[str, str], heads: int, queries: int, keys: int
) -> FileTexts:
    """Return the texts of a file as values, checked."""
    return FileTexts(
        tokens=_tokens(path, texts, "tokens", keys),
        query_tokens=_tokens(path, texts, "query_tokens", queries),
        model=_line(path, "model", texts.get("model", "")),
        layer=_line(path, "layer", texts.get("layer", "")),
        scale=_above_0(path, texts, "scale"),
        causal=_causal(path, texts),
        window=_window(path, texts),
        softcap=_above_0(path, texts, "softcap") or 0.0,
        alibi=_slopes(path, texts, heads),
        after=_words(path, "after", texts.get("after", "")),
    )


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _tokens(path: Path, texts: Mapping[str, str], name: str, count: int) -> tuple[str, ...]:
    if name not in texts:
        return ()
    tokens = _json(texts[name])
    if not isinstance(tokens, list) or len(tokens) != count:
        raise refuse(str(path), name, texts[name], f"a JSON list of {count} texts")
    return tuple(_line(path, name, str(token)) for token in tokens)


def _line(path: Path, key: str, text: str) -> str:
    """Return a text that can be painted in one line."""
    if len(text) > TITLE_LETTERS:
        raise refuse(str(path), f"characters of {key}", len(text), f"at most {TITLE_LETTERS}")
    return _HALF.sub("\ufffd", text)


def _words(path: Path, key: str, text: str) -> str:
    """Return words that become a part of a sentence."""
    words = _line(path, key, text).strip().rstrip(".")
    if not words.isprintable():
        raise refuse(str(path), key, text, "words in one line, such as gates O")
    return words


def _above_0(path: Path, texts: Mapping[str, str], name: str) -> float | None:
    if name not in texts:
        return None
    try:
        number = float(texts[name])
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number > 0):
        raise refuse(str(path), name, texts[name], "a number above 0")
    return number


def _causal(path: Path, texts: Mapping[str, str]) -> bool | None:
    if "causal" not in texts:
        return None
    causal = {"true": True, "1": True, "false": False, "0": False}.get(texts["causal"].lower())
    if causal is None:
        raise refuse(str(path), "causal", texts["causal"], "true or false")
    return causal


def _window(path: Path, texts: Mapping[str, str]) -> int:
    said = texts.get("window", "0")
    if not (said.isascii() and said.isdigit() and len(said) < 20 and int(said) <= MOST_WINDOW):
        expected = f"a whole number from 0, no window, to {MOST_WINDOW}"
        raise refuse(str(path), "window", said, expected)
    return int(said)


def _slopes(path: Path, texts: Mapping[str, str], heads: int) -> tuple[float, ...]:
    if "alibi" not in texts:
        return ()
    slopes = _json(texts["alibi"])
    listed = slopes if isinstance(slopes, list) else []
    numbers = [
        float(slope) for slope in listed if isinstance(slope, int | float) and 0 <= slope < 1e30
    ]
    if not len(numbers) == len(listed) == heads:
        expected = f"a JSON list of {heads} slopes, one for each query head, none below 0"
        raise refuse(str(path), "alibi", texts["alibi"], expected)
    return tuple(numbers)


def is_no_text(value: NDArray[np.generic]) -> bool:
    """Whether a text has codes beyond Unicode: NumPy makes broken strings of such codes."""
    codes = np.frombuffer(value.tobytes(), dtype=f"{value.dtype.str[0]}u4")
    return bool((codes > sys.maxunicode).any())
