"""A view becomes a step of a lesson, and comes back as it was."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator import InputError
from simulator.base.assets import LESSONS
from simulator.code.paper import PAPERS
from simulator.lesson import record as lesson_record
from simulator.lesson.places import Pointer
from simulator.lesson.reader import load_lesson, parse_lesson
from simulator.lesson.record import (
    NewStep,
    is_shipped,
    new_lesson,
    record_step,
    scenario_change,
    with_step,
    word_count,
)
from simulator.problem.scenario import Scenario, load_scenario, scenario_tables, with_values
from simulator.program.playback import Cursor, clamped, first_cursor
from simulator.run.snapshot import Cell
from tests.helpers.lesson_texts import FRONT, step
from tests.helpers.refused import refused
from tests.helpers.runs import program_of, scenario, scenarios

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


@settings(max_examples=settings.default.max_examples * 2 // 3)
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


RECORDED = """+++
title = "T"
summary = ""
order = 0
+++

## One

```toml step
change.attention.algorithm = "flash2"
change.attention.heads = 2
change.attention.kv_heads = 2
change.attention.seqlen_q = 8
change.attention.seqlen_k = 8
change.attention.head_dim = 4
change.attention.value_dim = 4
change.attention.dtype = "float32"
change.mask.window = 3
change.mask.sinks = 1
change.tiling.rows = 4
change.tiling.cols = 4
change.input.source = "random"
change.input.seed = 0
change.input.head = "all"
at = { tile = [1, 1], op = "scores" }
row = 2
layout = "steps"
point = [{ row = 2 }, { tile = [1, 1] }, { cell = ["S", 0, 3] }, { line = "5" }]
question = "Why?"
answer = "So: \\"x\\"."
notes = \"\"\"
first
second\"\"\"
```

Words

in two parts.

## Two

```toml step
change.title = "x"
play = ["first", { tile = [1, 1], head = 1, op = "mask" }]
row = 0
notes = "a\\n## b"
```

## Three

```toml step
clear = ["title", "mask"]
change.attention.algorithm = "naive"
change.attention.heads = 1
change.attention.kv_heads = 1
at = { visit = 5, op = "row max" }
row = 0
notes = "a\\n```\\nb"
```

x

## Four

```toml step
at = 5
row = 0
```
"""


def test_a_step_says_what_differs_and_no_more():
    banded = scenario(heads=2, mask={"window": 3, "sinks": 1})
    points = (Pointer(row=2), Pointer(tile=(1, 1)), Pointer(cell=Cell("S", 0, 3)), Pointer(line=4))
    text = new_lesson("T")
    for view in (
        NewStep(
            "One", banded, Cursor(3, 1), row=2, layout="steps", points=points,
            caption="Words\n\nin two parts.", question="Why?", answer='So: "x".',
            notes="first\nsecond",
        ),
        NewStep(
            "Two", with_values(banded, {"title": "x"}), Cursor(7, 2), start=Cursor(0, 0),
            notes="a\n## b",
        ),
        NewStep("Three", scenario("naive"), Cursor(5, 1), notes="a\n```\nb", caption="x"),
        NewStep("Four", scenario("naive"), Cursor(5, 5)),
    ):  # fmt: skip
        text = with_step(text, view)
    assert text == RECORDED
    assert new_lesson("T", "S", 3) == '+++\ntitle = "T"\nsummary = "S"\norder = 3\n+++\n'


def test_from_a_scenario_to_itself_there_is_nothing_to_change(sentence):
    assert scenario_change(sentence, sentence) == ((), {})


def test_a_path_is_relative_where_the_lesson_has_a_folder(tmp_path):
    before = Scenario()
    path = str(tmp_path / "x.npz")
    after = with_values(before, {"input": {"source": "file", "path": path}})
    assert scenario_change(before, after)[1]["input"]["path"] == path
    assert scenario_change(before, after, tmp_path / "a")[1]["input"]["path"] == "../x.npz"
    assert scenario_change(after, after, tmp_path) == ((), {})
    other = with_values(after, {"input": {"seed": 3}})
    assert scenario_change(after, other, tmp_path) == ((), {"input": {"seed": 3}})


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
    for name in ("new.md", "a\0b.md"):
        assert is_shipped(tmp_path / name) is False
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
    assert "a file beside a.md" in refused(record_step, here / "b.md", view, there / "a.md")
    assert not (here / "b.md").exists()
    assert record_step(there / "b.md", view, there / "a.md") == 2


def test_a_number_counts_as_one_word():
    assert word_count("It asks for {{ requested() | bytes }},\n$x^2$ in all.") == 7
    assert word_count("") == 0


def test_recording_forgets_what_the_step_before_had(sentence):
    folder = Path(__file__).resolve().parents[3] / "assets/scenarios"
    found = [
        load_scenario(folder / f"{name}.toml")
        for name in ("window-sinks", "causal", "large-logits")
    ]
    text = new_lesson("T")
    for each in (*found, sentence, *found[::-1]):
        text = with_step(text, NewStep("One", each, first_cursor()))
    lesson = parse_lesson(text, "a.md")
    assert not lesson.mistakes
    recorded = [scenario_tables(one.scenario) for one in lesson.steps]
    assert recorded == [scenario_tables(s) for s in (*found, sentence, *found[::-1])]
