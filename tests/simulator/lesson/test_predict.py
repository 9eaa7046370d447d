"""Questions before their answer: what a lesson may say, the answer, and how far a guess is off."""

import math

import pytest

from simulator import InputError
from simulator.lesson.predict import Prediction, outcome, read_number
from simulator.lesson.reader import parse_lesson, resolve_step
from simulator.lesson.steps import Lesson, ResolvedStep, place_of_question, waiting
from simulator.program.playback import first_cursor
from tests.helpers.lesson_texts import FRONT, good, opened, step
from ui.look.lesson_text import FORMATS

BASE = 'scenario = "flash2"\nat = { tile = [2, 3], op = "rescale" }\nrow = 8\n'
ASKED = 'predict = { ask = "How much?", '


def resolved(keys: str, number: int = 0) -> ResolvedStep:
    return resolve_step(good(step("One", BASE + ASKED + keys + " }")), number, FORMATS)


MISTAKES = [
    ('answer = "0.3", within = 1', "predict.answer"),
    ('answer = "{{ 3 }} or {{ 4 }}", within = 1', "predict.answer"),
    ('answer = "{{ requested() | bytes }}", within = 1', "one of count, number, percent, times"),
    ('answer = "{{ 3 + }}", within = 1', "{{ 3 + }}: expected an expression"),
    ('answer = "{{ 3 }}"', "expected one of within, choices and click beside it"),
    ('answer = "{{ 3 }}", within = 1, choices = ["3", "4"]', "one of within, choices and click"),
    ('answer = "{{ 3 }}", choices = ["3"]', "predict.choices = ['3']: expected 2 to 4 different"),
    ('answer = "{{ 3 }}", choices = ["3", "3"]', "expected 2 to 4 different texts"),
    ('answer = "{{ 3 }}", choices = ["3", "4"], unit = "s"', "expected within beside unit"),
    ('answer = "{{ 3 }}", within = 0', "predict.within = 0: expected a number above 0"),
    ('answer = "{{ 3 }}", within = inf', "predict.within"),
    ('answer = "{{ 3 }}", within = 1, span = [4, 2]', "expected the ends of the scale as"),
    ('answer = "{{ 3 }}", within = 1, span = [3, 3]', "expected the ends of the scale as"),
    ('answer = "{{ 3 | percent }}", within = 1, unit = "s"', "expected no unit"),
    ('answer = "{{ 3 }}", click = ["S", 13]', "predict.click = ['S', 13]: expected a row of 13"),
    ('answer = "{{ 3 }}", click = ["X", 1]', 'expected "Q", "K"'),
    ('answer = "{{ 3 }}", within = 1, cover = ["walls"]', "predict.cover"),
    ('answer = "{{ 3 }}", within = 1, hnt = "So"', 'predict.hnt = "So": expected one of ask'),
]


@pytest.mark.parametrize(("keys", "words"), MISTAKES)
def test_a_mistake_is_told_in_one_line_and_its_step_is_left_out(keys, words):
    bad, after = step("Bad", f"{BASE}{ASKED}{keys} }}"), step("Good", BASE)
    lesson = parse_lesson(FRONT + bad + after, "a.md", layouts={"steps": ("memory",)})
    told = [str(mistake) for mistake in lesson.mistakes]
    assert len(told) == 1, told
    assert told[0].startswith("a.md:13: "), told
    assert words in told[0], told
    assert [each.title for each in lesson.steps] == ["Good"]


def test_a_step_has_a_question_or_a_prediction():
    keys = 'question = "Why?"\nanswer = "So."\n' + ASKED + 'answer = "{{ 3 }}", within = 1 }'
    told = [str(mistake) for mistake in opened(step("Bad", BASE + keys)).mistakes]
    assert len(told) == 1
    assert "expected either question or predict" in told[0]


def test_the_answer_is_computed_at_the_place_of_the_step():
    asked = resolved('answer = "{{ alpha(8) }}", within = 0.05').prediction
    # exp(m_old - m) of the caption's own numbers, to their three digits
    assert asked.truth == pytest.approx(math.exp(3.317 - 4.499), abs=1e-3)
    assert (asked.digits, asked.unit, asked.is_number) == (3, "", True)
    share = resolved('answer = "{{ alpha(8) | percent 1 }}", within = 5').prediction
    assert share.truth == pytest.approx(100 * asked.truth)
    assert (share.digits, share.unit) == (1, "%")
    words = resolved(
        "answer = \"{{ compared(alpha(8), 1, 'it shrinks', 'it stays', 'it grows') }}\", "
        'choices = ["it grows", "it stays", "it shrinks"]'
    ).prediction
    assert words.choices[int(words.truth)] == "it shrinks"
    cell = resolved('answer = "{{ strongest(8) }}", click = ["S", 8]').prediction
    assert (cell.truth, cell.click) == (10, ("S", 8))


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ('answer = "{{ token(8) }}", within = 1', "a finite number"),
        ('answer = "{{ 3 }}", choices = ["1", "2"]', "one of 1; 2"),
        ('answer = "{{ 40 }}", click = ["S", 8]', "a column of S"),
        ('answer = "{{ 3 }}", within = 1, span = [4, 5]', "ends around the answer"),
    ],
)
def test_an_answer_that_nobody_can_give_is_refused(keys, words):
    with pytest.raises(InputError, match=words):
        resolved(keys)


ASKING = ASKED + 'answer = "{{ 3 }}", within = 1 }\n'


def _three() -> Lesson:
    return good(
        step("One", BASE + ASKING),
        step("Two", 'at = { tile = [2, 4] }\nrow = 7\nlayout = "memory"\n' + ASKING),
        step("Three", 'play = [{ tile = [2, 4] }, "last"]\n' + ASKING),
    )


def test_a_question_waits_where_its_answer_is_not_seen_yet():
    lesson = _three()
    one, two, three = lesson.steps
    waits = [place_of_question(lesson, n) for n in range(3)]
    assert waits[0].cursor == first_cursor() != one.cursor
    assert (waits[1].cursor, waits[1].row, waits[1].layout) == (one.cursor, 8, "steps")
    assert (waits[2].cursor, waits[2].layout) == (three.start, "memory")
    assert three.cursor != three.start
    step_two = resolve_step(lesson, 1, FORMATS)
    moment = waiting(lesson, step_two)
    assert (moment.waits, moment.caption, moment.number) == (True, "How much?", 1)
    assert (moment.cursor, moment.scenario) == (one.cursor, one.scenario)
    assert two.caption == step_two.caption == "Words."


def test_a_guess_within_the_limit_is_right_and_the_distance_has_a_sign():
    asked = Prediction("", "", 0.3, 2, within=0.05)
    near, far, low = (outcome(asked, guess) for guess in (0.35, 0.9, 0.1))
    assert (near.right, far.right, low.right) == (True, False, False)
    assert far.apart == pytest.approx(0.6)
    assert low.apart == pytest.approx(-0.2)
    assert far.factor == pytest.approx(3) == low.factor
    assert outcome(asked, -1.0).factor == 0
    choice = Prediction("", "", 1, choices=("a", "b"))
    assert [outcome(choice, guess).right for guess in (0.0, 1.0)] == [False, True]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0.45", 0.45), ("0,45", 0.45), (" 131 072 ", 131072), ("131,072", 131072), (".5", 0.5),
        ("12 %", 12), ("64×", 64), ("−3", -3), ("1e6", 1e6), ("328 kB", 328), ("", None),
        ("many", None), ("1e999", None), ("1.2.3", None), ("nan", None), ("3 4 MB", None),
    ],
)  # fmt: skip
def test_numbers_are_read_as_people_type_them(text, number):
    assert read_number(text, "kB") == number
