"""A typed text as input: Q, K and V of a layer of the language model that ships."""

from __future__ import annotations

from functools import lru_cache

from simulator.base.dtypes import F32, DType, round_to
from simulator.base.errors import SCENARIO, refuse
from simulator.base.limits import SENTENCE_TOKENS
from simulator.language.model import WEIGHTS, Computed, LanguageModel, own_model
from simulator.problem.file_texts import FileTexts
from simulator.problem.input_files import InputFile, StoredTensor
from simulator.problem.scenario import Input, Scenario

MODEL = "sentence model"
"""What ships, as titles name it."""


def sentence_file(scenario: Scenario) -> InputFile:
    """Return what a file would say that held the layer: shapes, tokens, scale, and causal.

    Raises InputError: the model has no such layer, or the text is too long for a run.
    """
    said, model = scenario.input, _model()
    layers, tokens = model.shape.layers, model.tokenizer.encode(said.text or "")
    if said.layer >= layers:
        raise refuse(SCENARIO, "input.layer", said.layer, f"a number from 0 to {layers - 1}")
    if len(tokens) > SENTENCE_TOKENS:
        expected = f"a text of at most {SENTENCE_TOKENS} tokens: this one has {len(tokens)}"
        raise refuse(SCENARIO, "input.text", said.text, expected)
    s, dtype = model.shape, scenario.attention.dtype or "float32"
    q = StoredTensor((s.heads, len(tokens), s.dim), dtype)
    k = StoredTensor((s.kv_heads, len(tokens), s.dim), dtype)
    texts = FileTexts(
        tokens=tuple(map(model.tokenizer.label, tokens)),
        model=MODEL,
        layer=str(said.layer),
        scale=s.dim**-0.5,
        causal=True,
    )
    longer = f"The model learned from texts of {s.learned} tokens: it knows no later places."
    notes = (longer,) if len(tokens) > s.learned else ()
    return InputFile(WEIGHTS, q, k, k, texts, notes=notes)


def read_sentence(said: Input, dtype: DType) -> tuple[F32, F32, F32]:
    """Return Q, K and V of all heads, (heads, n, d), turned by RoPE and rounded to `dtype`."""
    found = computed(said.text or "")
    layer = (each[said.layer] for each in (found.q, found.k, found.v))
    q, k, v = (round_to(values, dtype).copy() for values in layer)
    return q, k, v


@lru_cache(maxsize=4)
def computed(text: str) -> Computed:
    """Return all that the model computes of a text."""
    model = _model()
    return model.run(model.tokenizer.encode(text))


def _model() -> LanguageModel:
    if not WEIGHTS.exists():
        expected = "a model: make sentence-model trains it"
        raise refuse(str(WEIGHTS), "input.source", "sentence", expected)
    return own_model()
