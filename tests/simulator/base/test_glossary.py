"""The glossary: words that newcomers ask for, each in one line."""

import pytest

from simulator.base.glossary import glossary

WORDS = {word.name: word for word in glossary()}
ASKED = (
    "HBM", "SRAM", "FLOP", "tile", "warp", "ulp", "logit", "LSE", "requested", "visit", "alpha",
    "running maximum", "normaliser", "KV cache", "GQA", "MQA", "MLA", "RoPE", "causal", "roofline",
    "occupancy", "compulsory", "launch", "register", "page", "latent", "partial",
)  # fmt: skip


@pytest.mark.parametrize("name", ASKED)
def test_a_word_of_captions_and_panels_is_explained(name):
    assert WORDS[name].says


@pytest.mark.parametrize("word", WORDS.values(), ids=WORDS)
def test_a_word_has_one_sentence_and_another_name(word):
    assert word.says[-1] == "."
    assert word.says.count(". ") == 0
    assert 15 <= len(word.says) <= 110
    assert word.also
    assert word.name.lower() not in [other.lower() for other in word.also]


def test_no_name_is_explained_twice():
    names = [word.name.lower() for word in WORDS.values()]
    assert len(set(names)) == len(names)
