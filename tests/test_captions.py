"""How easily lessons read: grades of captions, and what finds candidates in them."""

import pytest

from simulator.lesson.course import course
from simulator.lesson.reader import load_lesson
from ui.look.layouts import LAYOUT_PANELS

pytest.importorskip("pyphen")
from tests import captions

FIRST_PART = [lesson.path for lesson in course() if lesson.part == 1]
MOST = 8
"""Years at school that a lesson of part I may take to read."""


@pytest.mark.parametrize("path", FIRST_PART, ids=lambda path: path.stem)
def test_lessons_of_the_first_part_are_easy_to_read(path):
    assert captions.grade_of(load_lesson(path, LAYOUT_PANELS)) <= MOST


def test_a_number_a_formula_and_code_are_a_word_of_one_syllable():
    text = captions.plain(
        "$e^{q \\cdot k}$ is {{ weight(8, 2) | percent }} of “{{ token(2) }}” `m`."
    )
    assert text == "0 is 0 of 0 0."
    # Six words, six syllables, one sentence.
    assert captions.grade(text) == pytest.approx(0.39 * 6 + 11.8 - 15.59)


def test_the_grade_rises_with_long_words_and_long_sentences():
    easy = "A key has a weight. The row reads it."
    hard = "Asymptotically, unnormalised representations saturate exponentially."
    assert captions.grade(easy) < 1 < MOST < captions.grade(hard)
    assert captions.grade(easy) < captions.grade(easy.replace(". The", " and the"))


def test_a_source_is_no_part_of_a_sentence():
    assert captions.plain("It is exact (Milakov & Gimelshein 2018).") == "It is exact."


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("They must lie in HBM.", ["They"]),
        ("The scores are read. They lie in HBM.", []),
        ("Then this is exact.", ["this"]),
        ("Then this row is exact.", []),
        ("We keep a maximum, and it may rise.", []),
    ],
)
def test_a_pronoun_wants_a_noun_before_it(text, found):
    assert [line.partition(":")[0] for line in captions.pronouns(text)] == found


def test_a_word_is_known_from_the_glossary_or_the_list_in_any_form():
    assert captions.unknown("The largest tiles are skipped, and rescaled.") == []
    assert captions.unknown("A zorp of tiles in HBM") == ["zorp"]
