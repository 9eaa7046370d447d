"""The glossary: words that newcomers ask for, each in one line."""

import numpy as np
import pytest

from simulator.base.glossary import glossary, mentions
from simulator.lesson.course import list_lessons
from simulator.lesson.reader import load_lesson

WORDS = {word.name: word for word in glossary()}
ASKED = (
    "HBM", "SRAM", "FLOP", "tile", "warp", "ulp", "logit", "LSE", "requested", "visit", "alpha",
    "running maximum", "normaliser", "KV cache", "GQA", "MQA", "MLA", "RoPE", "causal", "roofline",
    "occupancy", "minimum bytes", "launch", "register", "page", "latent", "partial",
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


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Tiles are in SRAM, not in HBM.", ["tile", "SRAM", "HBM"]),
        ("The online softmax of a softmax", ["online softmax", "softmax"]),
        ("a row block, another row block", ["row block"]),
        ("K, V and d are symbols; sram and Kernel-like are no words", []),
        ("32 warps make 5 FLOPs", ["warp", "FLOP"]),
    ],
)
def test_words_are_found_where_they_stand_first(text, found):
    said = mentions(text)
    assert [each.word.name for each in said] == found
    for each in said:
        assert text[each.start : each.stop].lower().startswith(each.word.name.lower())


def test_most_captions_of_lessons_have_words_and_few_have_many():
    counts = [
        len(mentions(step.caption))
        for title in list_lessons()
        for step in load_lesson(title.path).steps
    ]
    assert np.mean(np.array(counts) > 0) > 0.8
    assert np.mean(counts) < 5
