"""A typed text as input: Q, K and V of a layer of a language model that reads it."""

from __future__ import annotations

from functools import lru_cache

from simulator.base.dtypes import F32, DType, round_to
from simulator.base.errors import SCENARIO, refuse
from simulator.language.model import Computed, LanguageModel
from simulator.language.models import MODELS, KnownModel, opened
from simulator.problem.file_texts import FileTexts
from simulator.problem.input_files import InputFile, StoredTensor
from simulator.problem.scenario import Input, Scenario

Turned = tuple[F32, F32, F32]


def sentence_file(scenario: Scenario) -> InputFile:
    """Return the layer as the header of a file: shapes, tokens, scale, and causal."""
    said, known, model = scenario.input, MODELS[scenario.input.model], sentence_model(scenario)
    layers, tokens = model.shape.layers, model.tokenizer.encode(said.text or "")
    if said.layer >= layers:
        raise refuse(SCENARIO, "input.layer", said.layer, f"a number from 0 to {layers - 1}")
    if len(tokens) > known.most:
        expected = f"a text of at most {known.most} tokens: this one has {len(tokens)}"
        raise refuse(SCENARIO, "input.text", said.text, expected)
    s, dtype = model.shape, scenario.attention.dtype or "float32"
    longer = f"The model learned from texts of {s.learned} tokens: it knows no later places."
    labels = tuple(map(model.tokenizer.label, tokens))
    q, k = (StoredTensor((n, len(tokens), s.dim), dtype) for n in (s.heads, s.kv_heads))
    texts = FileTexts(
        tokens=labels, model=known.title, layer=str(said.layer), scale=s.dim**-0.5, causal=True
    )
    notes = (longer,) if len(tokens) > s.learned else ()
    return InputFile(known.path, q, k, k, texts, notes=notes, computed=True)


def sentence_model(scenario: Scenario) -> LanguageModel:
    """Return the model that reads a scenario's text."""
    said, known = scenario.input, MODELS[scenario.input.model]
    key, value = ("model", said.model) if said.model != "own" else ("source", "sentence")
    if not known.path.exists():
        raise refuse(str(known.path), f"input.{key}", value, known.expected)
    try:
        return opened(known)
    except (OSError, ValueError) as error:
        expected = f"{known.expected} ({error})"
        raise refuse(str(known.path), f"input.{key}", value, expected) from error


def read_sentence(said: Input, dtype: DType) -> Turned:
    """Return Q, K and V of all heads, (heads, n, d), turned by RoPE and rounded to `dtype`."""
    return layer_of(computed(said), said.layer, dtype)


def layer_of(found: Computed, layer: int, dtype: DType) -> Turned:
    """Return Q, K and V of a layer, rounded to a dtype."""
    q, k, v = (round_to(each[layer], dtype).copy() for each in (found.q, found.k, found.v))
    return q, k, v


def computed(said: Input) -> Computed:
    """Return everything that the model computes from a scenario's text."""
    return _computed(MODELS[said.model], said.text or "")


@lru_cache(maxsize=4)
def _computed(known: KnownModel, text: str) -> Computed:
    model = opened(known)
    return model.run(model.tokenizer.encode(text))
