"""Lessons: the format, and mistakes with file, line and key."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.base.limits import LESSON_STEPS, TEXT_LETTERS, TITLE_LETTERS
from simulator.code.paper import PAPERS
from simulator.lesson.course import course, find_lesson, lesson_after, lesson_before, list_lessons
from simulator.lesson.places import Pointer
from simulator.lesson.reader import FIRST_LAYOUT, load_lesson, parse_lesson, resolve_step
from simulator.program.playback import Cursor, first_cursor
from simulator.run.snapshot import Cell
from tests.helpers.lesson_texts import FRONT, good, opened, step
from tests.helpers.refused import refused
from tests.helpers.runs import program_of
from ui.look.lesson_text import FORMATS

# --- format -----------------------------------------------------------------------------------


def test_what_is_not_said_stays():
    lesson = good(
        step("One", 'scenario = "flash2"\nat = { tile = [2, 3] }\nrow = 8\nlayout = "memory"'),
        step("Two", 'at = { op = "row max" }'),
        step("Three", "change.tiling.rows = 5"),
        "\n## Four\nNo block at all.\n",
        step("Five", "row = 4"),
        step("Six", "row = 0"),
    )
    one, two, three, four, five, six = lesson.steps
    assert (five.row, six.row) == (4, 0)
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


def test_a_file_s_title_is_that_of_the_file_s_run_alone():
    lesson = good(
        step("One", 'scenario = "causal"'),
        step("Two", "row = 3"),
        step("Three", "change.faults.late_mask = true"),
        step("Four", 'clear = ["faults"]'),
        step("Five", 'change.title = "Mine"'),
        step("Six", "change.mask.causal = false"),
        step("Seven", 'scenario = "real-scale"\nchange.mask.window = 4096'),
        step("Eight", 'clear = ["title"]'),
    )
    file = lesson.steps[0].scenario.title
    assert file
    titles = [each.scenario.title for each in lesson.steps]
    assert titles == [file, file, "", file, "Mine", "Mine", "", ""]


def test_clear_forgets_keys_and_tables():
    lesson = good(
        step("One", 'scenario = "window-sinks"'),
        step("Two", 'clear = ["mask.window", "tiling"]\nchange.tiling.rule = "paper"'),
    )
    after = lesson.steps[1].scenario
    assert (after.mask.window, after.mask.sinks, after.tiling.rule) == (None, 4, "paper")


@pytest.mark.parametrize(
    ("place", "cursor"),
    [
        ('"first"', Cursor(0, 0)),
        ('"last"', Cursor(43, 2)),
        ("0", Cursor(0, 3)),
        ("7", Cursor(7, 2)),
        ("43", Cursor(43, 2)),
        ("{ visit = 7, op = 0 }", Cursor(7, 0)),
        ("{ visit = 7, op = 2 }", Cursor(7, 2)),
        ("{ tile = [0, 1] }", Cursor(1, 2)),
        ("{ tile = [3, 4] }", Cursor(19, 2)),
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


def test_play_may_end_where_it_starts():
    lesson = good(step("One", 'scenario = "flash2"\nplay = ["last", "last"]'))
    assert lesson.steps[0].start == lesson.steps[0].cursor


def test_points():
    keys = (
        'point = [{ tile = [1, 2] }, { row = 8 }, { cell = ["O", 8, 31] }, { line = "12" }, '
        "{ tile = [0, 0] }, { row = 12 }, { row = 0 }, { tile = [3, 4] }]"
    )
    lesson = good(step("One", f'scenario = "flash2"\n{keys}'))
    tile, row, cell, line, *others = lesson.steps[0].points
    assert others == [
        Pointer(tile=(0, 0)), Pointer(row=12), Pointer(row=0), Pointer(tile=(3, 4)),
    ]  # fmt: skip
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
    ('scenario = "flash9"', 10, 'scenario = "flash9": expected a .toml file or one of '),
    (BASE + 'at = "lst"', 11, 'at = "lst": expected "first" or "last"'),
    (BASE + "at = -1", 11, "at.visit = -1: expected at least 0"),
    (BASE + "at = 99", 11, "at.visit = 99: expected 0 to 19"),
    (BASE + "at = 20", 11, "at.visit = 20: expected 0 to 19"),
    (BASE + "at = true", 11, "at = true: expected a table"),
    (BASE + "at = { visit = 1, op = 77 }", 11, "at.op = 77"),
    (BASE + "at = { visit = 1, op = 7 }", 11, "at.op = 7: expected 0 to 6 at this visit"),
    (BASE + "at = { visit = 1, op = -1 }", 11, "at.op = -1: expected the name of an op, or its"),
    (BASE + "at = { visit = 1, op = 1.0 }", 11, "at.op = 1.0: expected the name of an op, or"),
    (BASE + "at = { visit = 1, op = true }", 11, "at.op = true: expected the name of an op, or"),
    (BASE + "at = { tile = [9, 0] }", 11, "at.tile = [9, 0]: expected a tile of 4 x 5"),
    (BASE + "at = { tile = [4, 0] }", 11, "at.tile = [4, 0]: expected a tile of 4 x 5"),
    (BASE + "at = { tile = [0, 5] }", 11, "at.tile = [0, 5]: expected a tile of 4 x 5"),
    (BASE + "at = { tile = [0, 0], head = 1 }", 11, "at.head = 1: expected 0 to 0"),
    (BASE + "at = { tile = [0, 0], launch = 1 }", 11, "at.launch = 1: expected 0 to 0"),
    ('scenario = "causal"\nat = { tile = [0, 3] }', 11, "[0, 3]: expected a tile that is visited"),
    (BASE + "at = { visit = 0, head = 1 }", 11, "expected tile beside head and launch"),
    (BASE + "at = { visit = 0, launch = 1 }", 11, "expected tile beside head and launch"),
    (BASE + 'at = { end = "last", op = 0 }', 11, "expected visit or tile beside op"),
    (BASE + 'at = { end = "last", visit = 0 }', 11, 'expected one of "first", "last", visit'),
    (BASE + "at = { tile = [1] }", 11, "expected a tile as [i, j]"),
    (BASE + "at = { tile = [1, -1] }", 11, "expected a tile as [i, j]"),
    (BASE + "at = { tile = [1, true] }", 11, "expected a tile as [i, j]"),
    (BASE + "at = { tile = 3 }", 11, "expected a tile as [i, j]"),
    (BASE + "at = { tile = [1, 1], visit = 3 }", 11, 'expected one of "first", "last", visit'),
    (BASE + 'at = { visit = 1, op = "mask" }', 11, 'at.op = "mask": expected one of load, scores'),
    (BASE + 'play = ["last", "first"]', 11, "play: expected an end that does not come before"),
    (BASE + 'play = ["last"]', 11, "expected two places, [from, to]"),
    (BASE + 'play = ["first", 1, 2]', 11, "expected two places, [from, to]"),
    (BASE + 'at = 1\nplay = ["first", "last"]', 12, "expected either at or play"),
    (BASE + "row = 13", 11, "row = 13: expected 0 to 12"),
    (BASE + "row = true", 11, "row = true: expected a whole number"),
    (BASE + 'layout = "wide"', 11, 'layout = "wide": expected one of steps, memory'),
    (BASE + "\npoint = [{ row = 1 },\n{ row = 20 }]", 12, "point.row = 20"),
    (
        BASE + "point = [{ row = 1, tile = [0, 0] }]",
        11,
        "expected one of tile, row, cell, line and barrier",
    ),
    (BASE + "point = [{ row = 13 }]", 11, "point.row = 13: expected 0 to 12"),
    (BASE + "point = [{ tile = [4, 0] }]", 11, "point.tile = [4, 0]: expected a tile of 4 x 5"),
    (BASE + "point = [{}]", 11, "expected one of tile, row, cell, line and barrier"),
    (BASE + 'point = [{ cell = ["S", -1, 0] }]', 11, 'expected a cell as ["S", row, column]'),
    (BASE + 'point = [{ cell = ["S", 0] }]', 11, 'expected a cell as ["S", row, column]'),
    (BASE + 'point = [{ cell = ["X", 0, 0] }]', 11, 'expected "Q", "K"'),
    (BASE + 'point = [{ cell = ["S", 0, 50] }]', 11, "expected a cell of 13 x 13"),
    (BASE + 'point = [{ line = "99" }]', 11, 'point.line = "99"'),
    (BASE + "point = [{ colum = 1 }]", 11, "expected one of tile, row, cell, line"),
    (BASE + "at = { vist = 1 }", 11, "at.vist = 1: expected one of end, visit, tile, head"),
    (BASE + "choose = { modl = 1 }", 11, "choose.modl = 1: expected one of "),
    (BASE + "play = [{ vist = 1 }, 1]", 11, "play.0.vist = 1: expected one of end, visit, tile"),
    (BASE + "visits = 3", 11, "visits = 3: expected one of scenario, clear, change"),
    (BASE + 'question = "Why?"', 11, 'question = "Why?": expected answer beside it'),
    (BASE + 'answer = "So."', 11, 'answer = "So.": expected question beside it'),
    (BASE + "\n\nchange.mask.window = -1", 13, "change.mask.window = -1: expected at least 0"),
    (BASE + "change.maks.window = 1", 11, "change.maks"),
    (BASE + "change.mask = 1", 11, "change.mask = 1: expected a table"),
    (BASE + 'clear = ["mask.wind"]', 11, 'clear = "mask.wind": expected a table or a key'),
    (BASE + "point = [3]", 11, "point.0 = 3: expected a table"),
    (BASE + "row = = 3", 11, "expected TOML"),
    (BASE + "row = = 3\n\n", 11, "expected TOML"),
    (BASE + 'notes = "a"\nrow =', 12, "expected TOML"),
    (BASE + 'notes = """\n\n', 13, "expected TOML"),
    (BASE + 'notes = "{{ Nk + }}"', 11, "{{ Nk + }}: expected an expression"),
    (BASE + 'row = 1\nnotes = "\\u007b{ a + }}"', 12, "{{ a + }}: expected an expression"),
    (BASE + 'row = 1\nnotes = "one\\n{{}}"', 12, "{{}}: expected an expression"),
    (BASE + 'row = 1\nnotes = "{{ad}}"', 12, "{{ad}}"),  # "Bad" has the two letters as well
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


@pytest.mark.parametrize("keys", ['clear = "title"', "clear = 3", "point = 3", "play = 3"])
def test_what_is_to_be_a_list_is_told(keys):
    lesson = opened(step("Bad", BASE + keys))
    assert [str(mistake) for mistake in lesson.mistakes] == [f"a.md:11: {keys}: expected a list"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("__import__('os')", "expected one of alpha"),
        ("Nk.real", "expected numbers, texts"),
        ("[1][0]", "expected numbers, texts"),
        ("(lambda: 1)()", "expected numbers, texts"),
        ("f'{Nk}'", "expected numbers, texts"),
        ("True", "expected numbers, texts"),
        ("Nq if Nq else 1", "expected numbers, texts"),
        ("weight(row=1, key=2)", "expected numbers, texts"),
        ("weight(*Nq)", "expected"),
        ("weight(1)", "expected its arguments"),
        ("sqrt(Nk.real)", "expected numbers, texts"),
        ("1 + Nk.real", "expected numbers, texts"),
        ("Nk.real + 1", "expected numbers, texts"),
        ("-Nk.real", "expected numbers, texts"),
        ("+Nk", "expected numbers, texts"),
        ("Nk // 2", "expected numbers, texts"),
        ("(1).real(2)", "expected numbers, texts"),
        ("sqroot(2)", "expected one of alpha"),
        ("Nq | percent 12", "expected a format"),
        ("Nq |", "expected a format"),
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
    line = refused(resolve_step, lesson, 0, FORMATS)
    assert line.startswith("a.md:7: {{ ")
    assert content[:20] in line
    assert line.isprintable()


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (step("One", BASE), 2, "title: expected front matter"),
        (step("One", BASE).lstrip(), 1, "title: expected front matter"),
        ("+++\ntitle = 'x'\n" + step("One", BASE), 1, "expected another line of +++"),
        ("+++\ntitle = 3\n+++\n" + step("One", BASE), 2, "title = 3: expected text in quotes"),
        ("+++\n\nname = 'x'\ntitle = 'x'\n+++\n" + step("One", BASE), 3, "expected one of title"),
        ("\n \n+++\ntitle = 3\n+++" + step("One", BASE), 4, "title = 3: expected text in quotes"),
        ("+++\ntitle = 'x'\npart = 5\n+++" + step("One", BASE), 3, "part = 5: expected"),
        ("+++\ntitle = 'x'\nminutes = 0\n+++" + step("One", BASE), 3, "minutes = 0: expected"),
        ("+++\ntitle = 'x'\nlevel = 'hard'\n+++" + step("One", BASE), 3, 'level = "hard": exp'),
        ("+++\n+++" + step("One", BASE), 2, "title: expected a value, but the key is missing"),
        (FRONT + "\nStray words.\n" + step("One", BASE), 7, "expected a step, which begins with"),
        (FRONT + "Stray words.\n\nMore." + step("One", BASE), 6, "expected a step, which begins"),
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
    ("fence", "line", "words"),
    [
        ("```toml step\nat = 1\n", 17, "expected a line of ```"),
        ("```toml\n```", 17, "expected ```toml step"),
        ("\n\n```toml steps\n```", 19, "expected ```toml step"),
        ("\n```toml step\n\nrow = 99\n```", 20, "row = 99: expected 0 to 12"),
    ],
)
def test_blocks_that_are_wrong(fence, line, words):
    lesson = opened(step("One", BASE), f"\n## Bad\n{fence}\n", step("Last", BASE))
    assert len(lesson.mistakes) == 1
    assert str(lesson.mistakes[0]).startswith(f"a.md:{line}: ")
    assert words in str(lesson.mistakes[0])
    assert [s.title for s in lesson.steps] == ["One", "Last"]


def test_a_block_may_be_empty_and_its_caption_follow_at_once():
    lesson = good(step("One", BASE), "\n## Two\n```toml step\n```\nWords.", "\n## Three\nMore.")
    assert [s.caption for s in lesson.steps] == ["Words.", "Words.", "More."]


def test_what_is_no_toml_is_told_without_its_place_in_the_block():
    lesson = opened(step("Bad", BASE + "row = = 3"))
    assert [str(mistake) for mistake in lesson.mistakes] == [
        "a.md:11: expected TOML (Invalid value)"
    ]


def test_as_many_steps_as_a_lesson_may_have():
    lesson = good(step("One", BASE), *["\n## More\n"] * (LESSON_STEPS - 1))
    assert len(lesson.steps) == LESSON_STEPS
    assert resolve_step(lesson, LESSON_STEPS - 1, FORMATS).number == LESSON_STEPS - 1
    for number in (-1, LESSON_STEPS):
        with pytest.raises(IndexError, match=f"step {number}: expected 0 to {LESSON_STEPS - 1}"):
            resolve_step(lesson, number, FORMATS)


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
    assert "a.md" in refused(load_lesson, path)


@given(st.text(alphabet=st.sampled_from('+#`tomlsep ="{}[]|\n\r\x00é𝄞0'), max_size=200))
def test_any_text_opens(text):
    for whole in (text, FRONT + text, FRONT + "## A\n```toml step\n" + text):
        lesson = parse_lesson(whole, "a.md")
        assert all(str(mistake).isprintable() for mistake in lesson.mistakes)


def test_lessons_are_found_by_name_with_or_without_their_number(tmp_path):
    for name in ("02-two", "10-two-more", "plain"):
        (tmp_path / f"{name}.md").write_text("## A step\n\nWords.\n", encoding="utf-8")
    (tmp_path / "03-broken.md").write_bytes(b"\xff\xfe")
    for name, stem in (
        ("02-two", "02-two"), ("two", "02-two"), ("two-more", "10-two-more"), ("plain", "plain"),
        ("10-two-more", "10-two-more"), ("broken", "03-broken"),
    ):  # fmt: skip
        assert find_lesson(name, tmp_path) == tmp_path / f"{stem}.md"
    assert find_lesson("elsewhere/x.MD", tmp_path) == Path("elsewhere/x.MD")
    assert "one of 02-two, 03-broken, 10-two-more, plain" in refused(find_lesson, "three", tmp_path)
    assert [found.path.stem for found in list_lessons(tmp_path)] == [
        "02-two", "10-two-more", "plain",
    ]  # fmt: skip


def test_lessons_are_listed_by_order_then_by_title(tmp_path):
    for name, order, title in (("a", 2, "B"), ("b", 2, "A"), ("c", 1, "Z"), ("d", 1, "")):
        front = f'+++\ntitle = "{title}"\nsummary = "of {name}"\norder = {order}\n+++\n'
        (tmp_path / f"{name}.md").write_text(front, encoding="utf-8")
    found = [(lesson.title, lesson.summary, lesson.order) for lesson in list_lessons(tmp_path)]
    assert found == [("Z", "of c", 1), ("d", "of d", 1), ("A", "of b", 2), ("B", "of a", 2)]


@pytest.mark.long
def test_each_shipped_lesson_but_the_last_is_followed_by_the_next(tmp_path):
    listed = course()
    assert [lesson_after(lesson.path) for lesson in listed] == [*listed[1:], None]
    assert [lesson_before(lesson.path) for lesson in listed] == [None, *listed[:-1]]
    beside = [lesson.path for lesson in list_lessons() if lesson not in listed]
    assert [path.stem for path in beside] == ["31-give-a-talk"]
    assert lesson_after(beside[0]) is lesson_before(beside[0]) is None
    (tmp_path / listed[0].path.name).write_text(FRONT)
    assert lesson_after(tmp_path / listed[0].path.name) is None


@pytest.mark.parametrize(
    ("part", "most", "told"),
    [("title", TITLE_LETTERS, 7), ("caption", TEXT_LETTERS, 15), ("notes", TEXT_LETTERS, 11)],
)
def test_texts_are_bounded(part, most, told):
    for length in (most, most + 1):
        said = {"title": "One", "caption": "Words.", "notes": "", part: "x" * length}
        lesson = opened(
            step(said["title"], f'{BASE}notes = "{said["notes"]}"\nrow = 1', said["caption"]),
            step("Two", BASE),
        )
        wrong = [f"{m.source}:{m.line}: {m.mistake}" for m in lesson.mistakes]
        if length == most:
            assert wrong == []
        else:
            key = f"{part} = " if part == "notes" else ""
            expected = f"{key}{length} characters: expected a text of at most {most}"
            assert wrong == [f"a.md:{told}: {expected}"]


def test_a_title_at_the_end_of_the_file_is_a_step():
    for text in ("\n## The end", "\n## The end\n\n  \n"):
        lesson = parse_lesson(FRONT + step("A", BASE) + text, "a.md")
        assert [(s.title, s.caption) for s in lesson.steps[1:]] == [("The end", "")]
        assert lesson.mistakes == ()


def test_a_panel_is_one_of_its_layout():
    layouts = {"steps": ("board", "softmax"), "memory": ("memory",), "free": ()}
    for keys, panels, mistakes in (
        ('panel = "softmax"', ["softmax"], []),
        ('layout = "memory"\npanel = "memory"', ["memory"], []),
        ('layout = "memory"\npanel = "softmax"', [], ['panel = "softmax": expected one of memory']),
        ('layout = "free"\npanel = "any"', ["any"], []),
    ):
        lesson = parse_lesson(FRONT + step("A", BASE + keys), "a.md", layouts=layouts)
        assert [s.panel for s in lesson.steps] == panels
        assert [str(m.mistake) for m in lesson.mistakes] == mistakes
    assert good(step("A", BASE + 'panel = "any"')).steps[0].panel == "any"


def test_a_panel_stays_while_the_layout_does():
    lesson = good(
        step("A", BASE + 'layout = "memory"\npanel = "memory"'), step("B"),
        step("C", 'layout = "steps"'), step("D", 'layout = "memory"'),
    )  # fmt: skip
    assert [s.panel for s in lesson.steps] == ["memory", "memory", "", ""]
    assert [s.layout for s in lesson.steps] == ["memory", "memory", "steps", "memory"]
