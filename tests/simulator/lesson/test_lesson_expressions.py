"""Numbers in a lesson's text that are none, or would take all day: refused in one line."""

import inspect

import pytest

from simulator import InputError
from simulator.base.limits import LESSON_STEPS, PLACEHOLDERS, TEXT_LETTERS
from simulator.lesson.expressions import fill, placeholders, replaced
from simulator.lesson.reader import parse_lesson, resolve_step
from simulator.lesson.record import word_count
from simulator.lesson.steps import Lesson
from simulator.program.playback import first_cursor
from simulator.study.captions import FUNCTIONS, Numbers
from tests.helpers.refused import refused
from ui.look.lesson_text import FORMATS

FRONT = '+++\ntitle = "T"\n+++\n'
STEP = '\n## One\n\n```toml step\nscenario = "flash2"\n```\n\n{}\n'


def lesson_of(caption: str) -> Lesson:
    return parse_lesson(FRONT + STEP.format(caption), "a.md")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("(-1)**0.5", "a broken power of a negative number is not a real one"),
        ("1000000**64", "a number of more than 60 digits"),
        ("1000000**9 * 1000000**9", "a number of more than 60 digits"),
        ("1e300 * 1e300", "a number of more than 60 digits"),
        ("(1e300 * 1) ** 3", "a power of numbers this large"),
        ("0 ** -1", "what can be computed"),
        ("1 / 0.0", "what can be computed"),
        ("exp(800)", "what can be computed"),
        ("((-1)**0.5) | count", "not a real one"),
        ("10**60 | bytes", "a number of more than 60 digits"),
        ("score_variance(4.5)", "expected"),
        ("sqrt(0 - 4)", "what can be computed"),
        ("1000001 ** 2", "a power of numbers this large"),
        ("2 ** 65", "a power of numbers this large"),
        ("2 ** -65", "a power of numbers this large"),
        ("10**30 * 10**30", "a number of more than 60 digits"),
        ("Nq | text", "13: expected a text, to be written as text"),
        ("Nq / 2 | bytes", "6.5: expected a whole number, to be written as bytes"),
        ("Nq / 2 | decimal", "6.5: expected a whole number, to be written as decimal"),
        ("token(1) | bytes", "expected a number, to be written as bytes"),
        ("-token(1)", "is a text"),
    ],
)
def test_what_is_no_number_is_one_line(content: str, words: str) -> None:
    told = refused(resolve_step, lesson_of(f"{{{{ {content} }}}}"), 0, FORMATS)
    assert told.startswith("a.md:5: {{ ")
    assert words in told
    assert told.isprintable()
    assert len(told) < 300


@pytest.mark.parametrize("content", ["1e999", "9" * 61, "'a' if 1 else " + "-" * 50 + "1"])
def test_what_never_can_be_one_is_told_as_the_lesson_is_read(content: str) -> None:
    lesson = lesson_of(f"{{{{ {content} }}}}")
    assert not lesson.steps
    assert str(lesson.mistakes[0]).startswith("a.md:11: {{ ")


def test_a_format_is_given_the_number_and_its_digits() -> None:
    scenario = lesson_of("x").steps[0].scenario
    formats = {name: lambda n, digits: f"{n!r}/{digits}" for name in FORMATS}
    for content, written in (
        ("1.5", "1.5/3"), ("2.0", "2.0/3"), ("2", "2/0"), ("2.0 | count", "2/0"),
        ("2.0 | bytes", "2/0"), ("2.0 | decimal", "2/0"), ("0.5 | time", "0.5/0"),
        ("0.5 | percent", "0.5/0"), ("0.5 | percent 2", "0.5/2"), ("2 | times", "2/1"),
        ("2 | times 0", "2/0"), ("2 | number", "2/3"), ("10**59 * 9 | count", f"{9 * 10**59}/0"),
        ("2 ** 64", f"{2**64}/0"), ("1000000 ** 2", "1000000000000/0"), ("1 - 3", "-2/0"),
        ("7 - 2 * 3", "1/0"), ("-3", "-3/0"), ("1 / 4", "0.25/3"), ("4 ** -0.5", "0.5/3"),
        ("9" * 60, "9" * 60 + "/0"), ("'a'", "a"), ("'a' | text", "a"),
    ):  # fmt: skip
        assert fill(f"{{{{ {content} }}}}", Numbers(scenario, first_cursor()), formats) == written


def test_expressions_have_at_most_200_characters() -> None:
    longest = "1" + "+1" * 99 + " "
    assert resolve_step(lesson_of(f"{{{{{longest}}}}}"), 0, FORMATS).caption == "100"
    told = [str(m) for m in lesson_of(f"{{{{{longest} }}}}").mistakes]
    assert told == ["a.md:11: {{ }}: expected an expression of at most 200 characters"]


@pytest.mark.parametrize("depth", [20, 90])
@pytest.mark.parametrize("nest", [("(", ")"), ("-", ""), ("sqrt(", ")")])
def test_deep_expressions_are_computed_or_refused(depth: int, nest: tuple[str, str]) -> None:
    caption = f"{{{{ {nest[0] * depth}1{nest[1] * depth} }}}}"
    lesson = lesson_of(caption)
    if lesson.mistakes:
        assert "at most 200 characters" in str(lesson.mistakes[0])
    else:
        assert resolve_step(lesson, 0, FORMATS).caption in ("1", "1.000")


def test_tiles_without_end_are_not_counted() -> None:
    caption = "{{ requested_with(1, 1) | bytes }}"
    change = "change.attention = { seqlen_q = 1000000, seqlen_k = 1000000 }\n"
    text = FRONT + STEP.format(caption).replace("```toml step\n", f"```toml step\n{change}")
    text = text.replace('"flash2"', '"real-scale"')
    with pytest.raises(InputError, match="into at most 262144 blocks"):
        resolve_step(parse_lesson(text, "a.md"), 0, FORMATS)


def test_the_end_of_a_large_run_is_not_computed_for_a_word() -> None:
    text = FRONT + STEP.format("{{ error(0) }}").replace('"flash2"', '"real-scale"')
    with pytest.raises(InputError, match="a run of at most 268435456 scores"):
        resolve_step(parse_lesson(text, "a.md"), 0, FORMATS)


def test_braces_that_never_end_are_passed_once() -> None:
    text = "{{" * 100_000
    assert not list(placeholders(text))
    assert list(placeholders("a {{ b }} {{c}} {{ d")) == [(" b ", 2), ("c", 10)]
    assert list(placeholders("{{}}{{a}}}}{{b")) == [("", 0), ("a", 4)]
    assert replaced("a {{ b }} {{c}} {{ d", str.upper) == "a  B  C {{ d"
    assert word_count("one {{ a + b }} {{ c") == 4


def test_a_lesson_is_read_as_far_as_it_is_of_use() -> None:
    told = [str(m) for m in lesson_of("{{ 1 }}" * (PLACEHOLDERS + 1)).mistakes]
    assert [f"a text with at most {PLACEHOLDERS} numbers" in line for line in told] == [True]
    told = [str(m) for m in lesson_of("x" * (TEXT_LETTERS + 1)).mistakes]
    assert [f"a text of at most {TEXT_LETTERS}" in line for line in told] == [True]
    many = parse_lesson(FRONT + "## A\n" * (LESSON_STEPS + 5), "a.md")
    assert f"steps = {LESSON_STEPS + 5}: expected at most {LESSON_STEPS}" in str(many.mistakes[0])
    assert many.mistakes[0].line == 4 + LESSON_STEPS  # the first that is not read
    assert {mistake.line for mistake in many.mistakes[1:]} == {*range(5, 5 + LESSON_STEPS)}


@pytest.mark.long
@pytest.mark.parametrize("demo", ["gla", "deltanet", "split-kv", "flash2-backward", "mla"])
def test_every_function_answers_or_refuses_every_run(demo: str) -> None:
    """Whatever the run cannot answer is one line with the lesson, its line and the expression."""
    step = '## One\n```toml step\nscenario = "{}"\nat = "first"\n```\n{{{{ {}() }}}}\n'
    refused = {}
    for name, function in FUNCTIONS.items():
        _, *more = inspect.signature(function).parameters.values()
        if all(parameter.default is not parameter.empty for parameter in more):
            try:
                resolve_step(parse_lesson(FRONT + step.format(demo, name), "a.md"), 0, FORMATS)
            except InputError as error:
                refused[name] = str(error)
    for name, told in refused.items():
        assert told.startswith("a.md:4: ")
        assert f"{{{{ {name}() }}}}: expected what can be computed" in told
        assert told.isprintable()
    if demo in ("gla", "deltanet"):
        assert refused["largest_weight"].endswith(
            "visit = 0: expected a visit that makes weights P"
        )
