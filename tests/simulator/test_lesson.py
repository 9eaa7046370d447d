"""Lessons: the format, mistakes with file, line and key, numbers in texts, and recording."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator import InputError, lesson_record
from simulator.assets import LESSONS
from simulator.lesson import FIRST_LAYOUT, Lesson, load_lesson, parse_lesson, resolve_step
from simulator.lesson_expressions import FORMATS as FORMAT_NAMES
from simulator.lesson_expressions import fill
from simulator.lesson_numbers import FUNCTIONS, QUANTITIES, Numbers
from simulator.lesson_places import Pointer
from simulator.lesson_record import (
    NewStep,
    filled,
    is_shipped,
    new_lesson,
    record_step,
    with_step,
    word_count,
)
from simulator.lesson_tables import PlaceTable, StepTable
from simulator.paper import PAPERS
from simulator.playback import clamped, first_cursor, last_cursor
from simulator.scenario import Scenario, load_scenario, scenario_tables, with_values
from simulator.snapshot import Cell, Cursor
from simulator.trace import simulate
from tests.simulator.helpers import program_of, scenarios, textbook
from ui.lesson_text import FORMATS

DOCS = Path(__file__).resolve().parents[2] / "docs" / "writing-lessons.md"
FRONT = '+++\ntitle = "T"\nsummary = "S"\norder = 3\n+++\n'


def step(title: str, keys: str = "", caption: str = "Words.") -> str:
    return f"\n## {title}\n\n```toml step\n{keys}\n```\n\n{caption}\n"


def opened(*steps: str) -> Lesson:
    return parse_lesson(FRONT + "".join(steps), "a.md", layouts=("steps", "memory"))


def good(*steps: str) -> Lesson:
    lesson = opened(*steps)
    assert [str(mistake) for mistake in lesson.mistakes] == []
    return lesson


# --- format -----------------------------------------------------------------------------------


def test_what_is_not_said_stays():
    lesson = good(
        step("One", 'scenario = "flash2"\nat = { tile = [2, 3] }\nrow = 8\nlayout = "memory"'),
        step("Two", 'at = { op = "row max" }'),
        step("Three", "change.tiling.rows = 5"),
        "\n## Four\n\nNo block at all.\n",
    )
    one, two, three, four = lesson.steps
    assert (lesson.title, lesson.summary, lesson.order) == ("T", "S", 3)
    assert two.scenario == one.scenario
    assert two.cursor.visit == one.cursor.visit == program_of(one.scenario).index(0, 2, 3)
    assert program_of(two.scenario).ops(two.cursor.visit)[two.cursor.op].name == "row max"
    assert (two.row, two.layout) == (8, "memory")
    assert three.scenario.tiling.rows == 5
    assert three.scenario.tiling.cols == one.scenario.tiling.cols
    assert (three.cursor, three.row) == (first_cursor(), 0)
    assert (four.caption, four.cursor) == ("No block at all.", three.cursor)


def test_first_step_may_change_an_empty_scenario():
    lesson = good(step("One", "change.attention = { seqlen_q = 8, head_dim = 4 }"))
    assert lesson.steps[0].scenario.attention.seqlen_q == 8
    assert lesson.steps[0].layout == FIRST_LAYOUT


def test_clear_forgets_keys_and_tables():
    lesson = good(
        step("One", 'scenario = "window-sinks"'),
        step("Two", 'clear = ["mask.window", "tiling"]\nchange.tiling.rule = "paper"'),
    )
    after = lesson.steps[1].scenario
    assert (after.mask.window, after.mask.sinks, after.tiling.rule) == (0, 4, "paper")


@pytest.mark.parametrize(
    ("place", "cursor"),
    [
        ('"first"', Cursor(0, 0)),
        ('"last"', Cursor(43, 2)),
        ("7", Cursor(7, 2)),
        ("{ visit = 7, op = 1 }", Cursor(7, 1)),
        ("{ tile = [0, 0], launch = 2 }", Cursor(24, 2)),
        ('{ tile = [3, 4], launch = 1, op = "row sum" }', Cursor(23, 3)),
    ],
)
def test_places(place, cursor):
    lesson = good(step("One", f'scenario = "naive"\nat = {place}'))
    assert lesson.steps[0].cursor == cursor


def test_play_has_two_ends():
    lesson = good(step("One", 'scenario = "flash2"\nplay = ["first", { tile = [0, 1] }]'))
    assert (lesson.steps[0].start, lesson.steps[0].cursor.visit) == (Cursor(0, 0), 1)


def test_points():
    keys = 'point = [{ tile = [1, 2] }, { row = 8 }, { cell = ["O", 8, 31] }, { line = "12" }]'
    lesson = good(step("One", f'scenario = "flash2"\n{keys}'))
    tile, row, cell, line = lesson.steps[0].points
    assert (tile, row) == (Pointer(tile=(1, 2)), Pointer(row=8))
    assert cell == Pointer(cell=Cell("O", 8, 31))
    assert line.line is not None
    assert PAPERS["flash2"].lines[line.line].label == "12"


def test_scenarios_and_inputs_beside_the_lesson(tmp_path):
    (tmp_path / "mine.toml").write_text("[attention]\nseqlen_q = 9\nhead_dim = 2\n")
    path = tmp_path / "lesson.md"
    np.savez(tmp_path / "x.npz", **{n: np.ones((1, 3, 2), np.float32) for n in "qkv"})
    own = 'clear = ["attention"]\nchange.input = { source = "file", path = "x.npz" }'
    path.write_text(FRONT + step("One", 'scenario = "mine.toml"') + step("Two", own))
    lesson = load_lesson(path)
    assert not lesson.mistakes
    assert lesson.steps[0].scenario.attention.seqlen_q == 9
    assert lesson.steps[1].scenario.input.path == str(tmp_path / "x.npz")


def test_windows_line_ends_and_a_byte_order_mark(tmp_path):
    text = FRONT + step("One", 'scenario = "flash2"')
    (tmp_path / "a.md").write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    lesson = load_lesson(tmp_path / "a.md")
    assert not lesson.mistakes
    assert lesson.steps[0].caption == "Words."


# --- mistakes ---------------------------------------------------------------------------------

BASE = 'scenario = "flash2"\n'
MISTAKES = [
    ('scenario = "flash9"', 10, 'scenario = "flash9": expected a .toml file or one of causal'),
    (BASE + 'at = "lst"', 11, 'at = "lst": expected "first" or "last"'),
    (BASE + "at = -1", 11, "at.visit = -1: expected at least 0"),
    (BASE + "at = 99", 11, "at.visit = 99: expected 0 to 19"),
    (BASE + "at = { visit = 1, op = 77 }", 11, "at.op = 77"),
    (BASE + "at = { tile = [9, 0] }", 11, "at.tile = [9, 0]: expected a tile of 4 x 5"),
    (BASE + "at = { tile = [1] }", 11, "expected a tile as [i, j]"),
    (BASE + "at = { tile = [1, 1], visit = 3 }", 11, 'expected one of "first", "last", visit'),
    (BASE + 'at = { visit = 1, op = "mask" }', 11, 'at.op = "mask": expected one of load, scores'),
    (BASE + 'play = ["last", "first"]', 11, "play: expected an end that does not come before"),
    (BASE + 'play = ["last"]', 11, "expected two places, [from, to]"),
    (BASE + 'at = 1\nplay = ["first", "last"]', 12, "expected either at or play"),
    (BASE + "row = 13", 11, "row = 13: expected 0 to 12"),
    (BASE + "row = true", 11, "row = true: expected a whole number"),
    (BASE + 'layout = "wide"', 11, 'layout = "wide": expected one of steps, memory'),
    (BASE + "\npoint = [{ row = 1 },\n{ row = 20 }]", 12, "point.row = 20"),
    (BASE + "point = [{ row = 1, tile = [0, 0] }]", 11, "expected one of tile, row, cell and"),
    (BASE + 'point = [{ cell = ["X", 0, 0] }]', 11, 'expected "Q", "K"'),
    (BASE + 'point = [{ cell = ["S", 0, 50] }]', 11, "expected a cell of 13 x 13"),
    (BASE + 'point = [{ line = "99" }]', 11, 'point.line = "99"'),
    (BASE + "point = [{ colum = 1 }]", 11, "expected one of tile, row, cell, line"),
    (BASE + "visits = 3", 11, "visits = 3: expected one of scenario, clear, change"),
    (BASE + 'question = "Why?"', 11, 'question = "Why?": expected answer beside it'),
    (BASE + "\n\nchange.mask.window = -1", 13, "change.mask.window = -1: expected at least 0"),
    (BASE + "change.maks.window = 1", 11, "change.maks"),
    (BASE + "change.mask = 1", 11, "change.mask = 1: expected a table"),
    (BASE + 'clear = ["mask.wind"]', 11, 'clear = "mask.wind": expected a table or a key'),
    (BASE + "row = = 3", 11, "expected TOML"),
    (BASE + 'notes = "{{ Nk + }}"', 11, "{{ Nk + }}: expected an expression"),
]


@pytest.mark.parametrize(("keys", "line", "words"), MISTAKES)
def test_mistakes_name_file_line_and_key_and_the_rest_opens(keys, line, words):
    lesson = opened(step("Bad", keys), step("Good", BASE))
    # The block's first key stands on line 10: five of front matter, a blank, heading, blank, fence.
    told = [str(mistake) for mistake in lesson.mistakes]
    assert len(told) == 1, told
    assert told[0].startswith(f"a.md:{line}: "), told[0]
    assert words in told[0]
    assert told[0].isprintable()
    assert lesson.mistakes[0].step == "Bad"
    assert [s.title for s in lesson.steps] == ["Good"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("__import__('os')", "expected one of sqrt"),
        ("Nk.real", "expected numbers, texts"),
        ("[1][0]", "expected numbers, texts"),
        ("(lambda: 1)()", "expected numbers, texts"),
        ("f'{Nk}'", "expected numbers, texts"),
        ("True", "expected numbers, texts"),
        ("Nq if Nq else 1", "expected numbers, texts"),
        ("weight(row=1, key=2)", "expected numbers, texts"),
        ("weight(*Nq)", "expected"),
        ("weight(1)", "expected its arguments"),
        ("open", "expected one of heads"),
        ("Nq | hex", "expected a format: one of bytes"),
        ("Nq | bytes 3", "expected a format"),
        ("(" * 90 + "1" + ")" * 90 + "+" * 40, "expected"),
        ("1 +" * 90 + "1", "at most 200 characters"),
    ],
)
def test_expressions_are_a_closed_set(content, words):
    lesson = opened(step("Bad", BASE, f"One line.\nThen {{{{ {content} }}}}."), step("Good", BASE))
    told = [str(mistake) for mistake in lesson.mistakes]
    assert len(told) == 1
    assert told[0].startswith("a.md:15: ")
    assert words in told[0]
    assert len(lesson.steps) == 1


@pytest.mark.parametrize(
    "content",
    ["value('S', 99, 0)", "value('O', 8, 0)", "weight(8, -1)", "9 ** 9 ** 9", "1 / 0", "exp(9999)",
     "'a' + 1", "token(Nk)", "kv_cache('none', 1)", "kv_cache(3, 1)", "Nq / 2 | bytes", "alpha(0)",
     "token(1) | bytes", "Nq | text", "compute_seconds('none')", "tiles('red')", "log2(0)",
     "strongest('x')", "requested_of('X')", "score_variance(10 ** 6)",
     "model('Llama-3-8B', 'name')"],
)  # fmt: skip
def test_numbers_that_cannot_be_computed_name_file_line_and_expression(content):
    lesson = good(step("One", BASE + 'at = { tile = [2, 0], op = "load" }', f"{{{{ {content} }}}}"))
    with pytest.raises(InputError) as error:
        resolve_step(lesson, 0, FORMATS)
    assert str(error.value).startswith("a.md:7: {{ ")
    assert content[:20] in str(error.value)
    assert str(error.value).isprintable()


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (step("One", BASE), 2, "title: expected front matter"),
        ("+++\ntitle = 'x'\n" + step("One", BASE), 1, "expected another line of +++"),
        ("+++\ntitle = 3\n+++\n" + step("One", BASE), 2, "title = 3: expected text in quotes"),
        ("+++\n\nname = 'x'\ntitle = 'x'\n+++\n" + step("One", BASE), 3, "expected one of title"),
        (FRONT + "\nStray words.\n" + step("One", BASE), 7, "expected a step, which begins with"),
    ],
)
def test_front_matter_that_is_wrong_leaves_the_steps(text, line, words):
    lesson = parse_lesson(text, "a.md")
    assert len(lesson.mistakes) == 1
    assert str(lesson.mistakes[0]).startswith(f"a.md:{line}: ")
    assert words in str(lesson.mistakes[0])
    assert [s.title for s in lesson.steps] == ["One"]
    assert lesson.title


@pytest.mark.parametrize(
    ("fence", "words"),
    [
        ("```toml step\nat = 1\n", "expected a line of ```"),
        ("```toml\n```", "expected ```toml step"),
    ],
)
def test_blocks_that_are_wrong(fence, words):
    lesson = opened(step("One", BASE), f"\n## Bad\n{fence}\n", step("Last", BASE))
    assert len(lesson.mistakes) == 1
    assert words in str(lesson.mistakes[0])
    assert [s.title for s in lesson.steps] == ["One", "Last"]


def test_a_step_that_is_left_out_has_changed_the_scenario_all_the_same():
    lesson = opened(
        step("One", BASE),
        step("Bad", 'change.attention.algorithm = "flash1"\nrow = 99'),
        step("Three"),
    )
    assert [s.title for s in lesson.steps] == ["One", "Three"]
    assert lesson.steps[1].scenario.attention.algorithm == "flash1"


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_files_that_cannot_be_read(tmp_path, content):
    path = tmp_path / "a.md"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=r"a\.md"):
        load_lesson(path)


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet=st.sampled_from('+#`tomlsep ="{}[]|\n\r\x00é𝄞0'), max_size=200))
def test_any_text_opens(text):
    for whole in (text, FRONT + text, FRONT + "## A\n```toml step\n" + text):
        lesson = parse_lesson(whole, "a.md")
        assert all(str(mistake).isprintable() for mistake in lesson.mistakes)


# --- numbers ----------------------------------------------------------------------------------


def computed(expression: str, scenario: Scenario, cursor: Cursor | None = None) -> float:
    """Return an expression with all its digits."""
    at = cursor or last_cursor(program_of(scenario))
    written = {"number": lambda value, _: repr(value)}
    return float(fill(f"{{{{ {expression} | number }}}}", Numbers(scenario, at), written))


@pytest.fixture(scope="module")
def sentence() -> Scenario:
    return load_scenario(Path(__file__).resolve().parents[2] / "assets/scenarios/flash2.toml")


def test_numbers_of_the_run_are_those_of_a_textbook(sentence):
    trace = simulate(sentence)
    w = trace.workload
    scores = trace.inputs.k[0].astype(float) @ trace.inputs.q[0, 8].astype(float) * w.scale
    weights = np.exp(scores - scores.max())
    weights /= weights.sum()
    o, _ = textbook(w, trace.inputs, 0)
    assert computed("weight(8, 10)", sentence) == pytest.approx(weights[10], abs=1e-6)
    assert computed("strongest(8)", sentence) == weights.argmax()
    bits = -(weights * np.log2(weights)).sum()
    assert computed("entropy(8)", sentence) == pytest.approx(bits, abs=1e-5)
    assert computed('value("m", 8)', sentence) == pytest.approx(scores.max(), abs=1e-5)
    assert computed('value("O", 8, 3)', sentence) == pytest.approx(o[8, 3], abs=2e-3)
    assert computed("error(8)", sentence) == pytest.approx(
        np.abs(trace.output[0, 8] - o[8]).max(), rel=1e-6
    )
    jump = Cursor(13, 5)
    before, after = scores[:9].max(), scores[:12].max()
    assert computed("old_maximum(8)", sentence, jump) == pytest.approx(before, abs=1e-5)
    assert computed("alpha(8)", sentence, jump) == pytest.approx(math.exp(before - after), rel=1e-5)


@pytest.mark.parametrize("algorithm", ["naive", "flash1", "flash2"])
def test_counts_are_those_of_the_run_itself(sentence, algorithm):
    own = simulate(with_values(sentence, {"attention": {"algorithm": algorithm}}))
    summary = own.summary()["hbm"]
    total = summary["read_bytes"] + summary["write_bytes"]
    assert computed(f'requested("{algorithm}")', sentence) == total
    assert computed("requested_so_far()", own.workload.scenario) == total
    parts = sum(
        computed(f'requested_of("{tensor}", "{algorithm}")', sentence)
        for tensor in own.program.tensors
    )
    assert parts == total
    assert computed(f'visits("{algorithm}")', sentence) == len(own)
    assert computed(f'compulsory("{algorithm}")', sentence) == summary["compulsory_bytes"]
    assert computed(f'shared("{algorithm}")', sentence) == own.summary()["sram"]["peak_bytes"]


def test_other_tiles_are_those_of_another_scenario(sentence):
    other = with_values(sentence, {"tiling": {"rows": 7, "cols": 2}})
    assert computed("requested_with(7, 2)", sentence) == computed("requested()", other)
    assert computed("shared_with(7, 2)", sentence) == computed("shared()", other)


def test_formats(sentence):
    numbers = Numbers(sentence, first_cursor())
    text = (
        "{{ 2 ** 20 | bytes }}, {{ 10 ** 9 | decimal }}, {{ 10 ** 6 }}, {{ 1 / 8 }}, "
        "{{ 1 / 8 | percent 1 }}, {{ 7 / 2 | times }}, {{ 1 / 4 | number 1 }}, "
        "{{ 1 / 1000 | time }}, {{ token(8) | text }}"
    )
    thin, nb = "\u2009", "\u00a0"
    assert fill(text, numbers, FORMATS) == (
        f"1.0{nb}MiB, 1.00{nb}GB, 1{thin}000{thin}000, 0.125, 12.5{nb}%, 3.5{nb}×, 0.2, "
        f"1.0{nb}ms, it"
    )
    assert set(FORMATS) == set(FORMAT_NAMES) - {"text"}


def test_the_page_names_everything():
    page = DOCS.read_text(encoding="utf-8")
    keys = [*StepTable.model_fields, *(k for k in PlaceTable.model_fields if k != "end")]
    for name in [*QUANTITIES, *FORMAT_NAMES, *keys]:
        assert f"`{name}" in page, name
    for name in FUNCTIONS:
        assert f"`{name}(" in page, name


# --- recording --------------------------------------------------------------------------------

WORDS = st.text(
    st.characters(codec="utf-8", exclude_characters="\r{}", exclude_categories=("Cs",)), max_size=40
).map(str.strip)
CAPTIONS = WORDS.filter(lambda text: "## " not in text and "```" not in text)
TITLES = st.text(st.sampled_from("abc é$#`+"), min_size=1, max_size=12).map(str.strip).filter(bool)


@st.composite
def views(draw):
    scenario = draw(scenarios(longest=9))
    program = program_of(scenario)
    if not len(program):
        return None
    ends = sorted(
        clamped(program, Cursor(draw(st.integers(0, len(program))), draw(st.integers(0, 12))))
        for _ in range(2)
    )
    w = program.workload
    points = [
        Pointer(row=draw(st.integers(0, w.seqlen_q - 1))),
        Pointer(tile=(draw(st.integers(0, w.grid.Tr - 1)), 0)),
        Pointer(cell=Cell("S", 0, draw(st.integers(0, w.seqlen_k - 1)))),
        Pointer(line=draw(st.integers(0, len(PAPERS[w.algorithm].lines) - 1))),
    ]
    asked = draw(st.booleans())
    return NewStep(
        title=draw(TITLES),
        scenario=scenario,
        cursor=ends[1],
        start=draw(st.sampled_from([None, ends[0]])),
        row=draw(st.integers(0, w.seqlen_q - 1)),
        layout=draw(st.sampled_from(["steps", "memory"])),
        panel=draw(st.sampled_from(["sweep", "roofline"])),
        points=tuple(draw(st.lists(st.sampled_from(points), max_size=3))),
        caption=draw(CAPTIONS),
        question=draw(WORDS.filter(bool)) if asked else "",
        answer=draw(WORDS.filter(bool)) if asked else "",
        notes=draw(WORDS),
    )


@settings(max_examples=40, deadline=None)
@given(st.lists(views().filter(bool), min_size=1, max_size=3))
def test_recorded_views_come_back(found):
    text = new_lesson("T")
    for view in found:
        longer = with_step(text, view)
        assert longer.startswith(text.rstrip())
        text = longer
    lesson = parse_lesson(text, "a.md")
    assert [str(mistake) for mistake in lesson.mistakes] == []
    for one, view in zip(lesson.steps, found, strict=True):
        assert scenario_tables(one.scenario) == scenario_tables(view.scenario)
        assert (one.title, one.caption) == (view.title, view.caption)
        assert (one.start, one.cursor, one.row) == (view.start, view.cursor, view.row)
        assert (one.layout, one.panel, one.points) == (view.layout, view.panel, view.points)
        said = one.said
        assert (said.question, said.answer) == (view.question, view.answer)
        assert said.notes == view.notes


def test_recording_to_a_file(tmp_path, sentence):
    path = tmp_path / "mine.md"
    one = NewStep("One", sentence, Cursor(3, 1), row=2, caption="First.")
    assert record_step(path, one) == 1
    first = path.read_text(encoding="utf-8")
    assert record_step(path, replace(one, title="Two", cursor=Cursor(3, 2))) == 2
    assert path.read_text(encoding="utf-8").startswith(first.rstrip())
    lesson = load_lesson(path)
    assert lesson.title == "Mine"
    assert [(s.title, s.cursor) for s in lesson.steps] == [
        ("One", Cursor(3, 1)),
        ("Two", Cursor(3, 2)),
    ]
    assert lesson.steps[1].said.change == {}


def test_recorded_inputs_are_named_relative_to_the_lesson(tmp_path):
    np.savez(tmp_path / "x.npz", **{n: np.ones((1, 3, 2), np.float32) for n in "qkv"})
    scenario = with_values(
        Scenario(), {"input": {"source": "file", "path": str(tmp_path / "x.npz")}}
    )
    record_step(tmp_path / "mine.md", NewStep("One", scenario, first_cursor()))
    assert 'path = "x.npz"' in (tmp_path / "mine.md").read_text()
    assert load_lesson(tmp_path / "mine.md").steps[0].scenario == scenario


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ({"title": ""}, "title"),
        ({"title": "a\nb"}, "title"),
        ({"caption": "x\n## b"}, "caption"),
        ({"caption": "```toml step\n```"}, "caption"),
        ({"caption": "{{ Nk + }}"}, "expression"),
        ({"notes": "{{ secret }}"}, "secret"),
        ({"question": "Why?"}, "answer: expected text"),
        ({"question": " ", "answer": "So."}, "question: expected text"),
        ({"row": 99}, "row = 99"),
        ({"start": Cursor(5, 0)}, "play"),
        ({"points": (Pointer(cell=Cell("S", 0, 99)),)}, "cell"),
    ],
)
def test_steps_that_cannot_stand_in_a_lesson(tmp_path, sentence, texts, words):
    path = tmp_path / "mine.md"
    step = replace(NewStep("a", sentence, Cursor(3, 1), caption="x"), **texts)
    for content in (None, new_lesson("T") + "\n## Broken\n\n```toml step\nat = 1e9\n"):
        if content is not None:
            path.write_text(content)
        with pytest.raises(InputError, match=words):
            record_step(path, step)
        assert path.read_text() == content if content else not path.exists()


@pytest.mark.parametrize("content", ["# A page\n\nWords.\n", "+++\ntitle = 3\n+++\n", "\x00"])
def test_nothing_is_added_to_what_is_no_lesson(tmp_path, sentence, content):
    path = tmp_path / "README.md"
    path.write_text(content)
    with pytest.raises(InputError, match=r"README\.md:\d+: "):
        record_step(path, NewStep("One", sentence, first_cursor()))
    assert path.read_text() == content


def test_an_empty_file_becomes_a_lesson(tmp_path, sentence):
    path = tmp_path / "why_it-works.md"
    path.touch()
    assert record_step(path, NewStep("One", sentence, first_cursor())) == 1
    assert load_lesson(path).title == "Why it works"


def test_shipped_lessons_are_not_written_to(tmp_path, monkeypatch, sentence):
    assert is_shipped(LESSONS / "05-online-softmax.md")
    assert is_shipped(LESSONS / ".." / "lessons" / "new.md")
    assert not is_shipped(tmp_path / "new.md")
    # Should the guard be broken, what it writes to is not the real thing.
    monkeypatch.setattr(lesson_record, "ASSETS", tmp_path / "assets")
    folder = tmp_path / "assets" / "lessons"
    folder.mkdir(parents=True)
    (folder / "a.md").write_text(FRONT)
    for name in ("a.md", "new.md"):
        with pytest.raises(InputError, match="a file of yours"):
            record_step(folder / name, NewStep("One", sentence, first_cursor()))
    assert (folder / "a.md").read_text() == FRONT
    assert not (folder / "new.md").exists()


@pytest.mark.parametrize("name", ["a\x00.md", "n" * 300 + ".md", "gone/a.md"])
def test_names_that_cannot_be_are_refused(tmp_path, sentence, name):
    with pytest.raises(InputError, match="a file that can be written"):
        record_step(tmp_path / name, NewStep("One", sentence, first_cursor()))
    assert list(tmp_path.iterdir()) == []


def test_a_copy_takes_no_file_that_is_there(tmp_path, sentence):
    path = tmp_path / "mine.md"
    path.write_text("mine")
    with pytest.raises(InputError, match="a new file"):
        record_step(path, NewStep("One", sentence, first_cursor()), LESSONS / "03-causal-mask.md")
    assert path.read_text() == "mine"


def test_a_copy_that_would_mean_something_else_is_refused(tmp_path, sentence):
    there, here = tmp_path / "there", tmp_path / "here"
    there.mkdir()
    here.mkdir()
    (there / "mine.toml").write_text("[attention]\nseqlen_q = 9\nhead_dim = 2\n")
    (there / "a.md").write_text(FRONT + step("One", 'scenario = "mine.toml"'))
    view = NewStep("Two", sentence, first_cursor())
    with pytest.raises(InputError, match=r"a file beside a\.md"):
        record_step(here / "b.md", view, there / "a.md")
    assert not (here / "b.md").exists()
    assert record_step(there / "b.md", view, there / "a.md") == 2


def test_numbers_are_put_in_at_the_cursor_of_the_step(sentence):
    view = NewStep(
        "At {{ Nk }}", sentence, Cursor(13, 5), caption="{{ alpha(8) }}",
        question="{{ 1 }}?", answer="{{ 2 }}", notes="{{ 3 }}",
    )  # fmt: skip
    alpha = computed("alpha(8)", sentence, Cursor(13, 5))
    assert filled(view, FORMATS) == replace(
        view, title="At 13", caption=f"{alpha:.3f}", question="1?", answer="2", notes="3"
    )
    with pytest.raises(InputError, match=r"alpha\(0\)"):
        filled(replace(view, caption="{{ alpha(0) }}"), FORMATS)


def test_a_number_counts_as_one_word():
    assert word_count("It asks for {{ requested() | bytes }},\n$x^2$ in all.") == 7
    assert word_count("") == 0


def test_recording_forgets_what_the_step_before_had(sentence):
    folder = Path(__file__).resolve().parents[2] / "assets/scenarios"
    found = [
        load_scenario(folder / f"{name}.toml")
        for name in ("window-sinks", "causal", "large-logits")
    ]
    text = new_lesson("T")
    for scenario in (*found, sentence, *found[::-1]):
        text = with_step(text, NewStep("One", scenario, first_cursor()))
    lesson = parse_lesson(text, "a.md")
    assert not lesson.mistakes
    recorded = [scenario_tables(one.scenario) for one in lesson.steps]
    assert recorded == [scenario_tables(s) for s in (*found, sentence, *found[::-1])]
