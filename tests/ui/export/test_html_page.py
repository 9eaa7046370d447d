"""A page that steps: read back by a parser that shares no code with the writer."""

import json
import re
from html.parser import HTMLParser

import hypothesis.strategies as st
import pytest
from hypothesis import example, given
from PySide6.QtGui import QImage, QPainter

from simulator.lesson.reader import load_lesson
from simulator.problem.scenario import load_scenario, with_values
from simulator.program.op import Gesture
from simulator.program.playback import MOVING, Granularity, end_of_visit, moved
from simulator.run.cell_values import cell_value
from simulator.run.motion import Motion
from simulator.run.row_report import row_report
from simulator.run.snapshot import Cell
from simulator.run.trace import simulate
from tests.ui.export.helpers import DEMO, make, still
from ui.export.job import prepare_lesson
from ui.export.options import ExportOptions
from ui.export.scenes import scene_moment
from ui.export.stepping import BETWEEN, MOST, RunPages, stops_of
from ui.export.writers.fragments import edits
from ui.export.writers.metadata import read_scenario
from ui.look.layouts import LAYOUT_PANELS
from ui.look.theme import THEMES
from ui.look.units import number_text
from ui.widgets.application import application
from ui.window.main_window import MainWindow

_VOID = {"meta", "input", "br", "link", "img"}
PART = (1, 2)


class Page(HTMLParser):
    """The elements of a page, and what its script reads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self.feed(text)
        self.close()
        self.data = json.loads(self.texts["data"])

    def handle_starttag(self, tag, attrs):
        said = dict(attrs)
        self.elements.append((tag, said))
        if "id" in said:
            self.ids.append(said["id"])
        if tag not in _VOID:
            self.open.append(said.get("id") or tag)

    def handle_endtag(self, tag):
        assert tag not in _VOID
        self.open.pop()

    def handle_data(self, data):
        for name in {*self.open}:
            self.texts[name] = self.texts.get(name, "") + data

    def drawings(self, theme: str) -> list[list[str]]:
        """Return the SVG of every picture of every step."""
        out, last = [], []
        for step in self.data["pictures"][theme]:
            out.append([])
            for change in step:
                now = []
                for edit in change:
                    now += [edit] if isinstance(edit, int) else last[edit[0] : edit[0] + edit[1]]
                last = now
                out[-1].append("".join(self.data["pieces"][n] for n in now))
        return out

    def number(self, step: int, cell: Cell) -> str:
        """Return what the page says of a cell."""
        _, run, sheet = self.data["values"][step]
        about = self.data["runs"][run]
        high, wide = about["tensors"][cell.tensor]["block"]
        across = -(-about["tensors"][cell.tensor]["size"][1] // wide)
        block = about["steps"][sheet][cell.tensor][cell.row // high * across + cell.col // wide]
        return about["blocks"][block].split(";")[cell.row % high].split(",")[cell.col % wide]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    target = tmp_path_factory.mktemp("page") / "run.html"
    make(still(target, visits=PART))
    return target, Page(target.read_text("utf-8"))


@pytest.mark.long
def test_each_op_is_a_step_with_its_words_and_pictures(page):
    _, found = page
    program = simulate(DEMO).program
    ops = [op for visit in range(*PART) for op in program.ops(visit)]
    articles = [said["id"] for tag, said in found.elements if tag == "article"]
    assert articles == [str(n + 1) for n in range(len(ops))]
    assert not found.open, "every element is closed"
    assert len({*found.ids}) == len(found.ids)
    for theme in ("dark", "light"):
        drawings = found.drawings(theme)
        assert all(drawing.count("<text") > 40 for step in drawings for drawing in step)
        ends = [step[-1] for step in drawings]
        assert len({*ends}) == len(ends), "every op changes the picture"
        moving = [step for step in drawings if len(step) > 1]
        assert len(moving) > len(ops) / 2
        assert sum(len({*step}) == len(step) for step in moving) > len(ops) / 2
    assert "exp" in found.texts["6"]
    assert all("row block i = " in seen for seen in found.data["seen"])
    labels = [said.get("aria-label", "") for tag, said in found.elements if tag == "svg"]
    assert any("leftarrow" in (label or "") for label in labels), "formulas are read aloud"
    used = [(said["href"] or "")[1:] for tag, said in found.elements if tag == "use"]
    assert len(used) > len({*used}), "a formula's outlines are stored once"
    assert {*used} <= {*found.ids}


@pytest.mark.long
def test_nothing_in_a_page_is_asked_of_anybody(page):
    target, found = page
    text = target.read_text("utf-8")
    pieces = "".join(found.data["pieces"]) + found.data["shared"]
    for part in (text, pieces):
        assert not re.search(r"https?:|//www|@import|src=\"(?!data:)", part)
        links = re.findall(r"(?:href|src|url)[=(]\\?[\"']?([^\"')\s]*)", part)
        assert all(link.startswith(("#", "data:")) for link in links)
    used = {*re.findall(r"url\(#(\w+)\)", pieces)}
    assert used
    assert used <= {*re.findall(r'id="(\w+)"', found.data["shared"])}
    policy = [said["content"] for tag, said in found.elements if said.get("http-equiv")]
    assert "default-src 'none'" in policy[0]


def test_values_under_the_pointer_are_those_of_the_trace(page):
    _, found = page
    trace = simulate(DEMO)
    steps = [(visit, n) for visit in range(*PART) for n in range(len(trace.program.ops(visit)))]
    cells = [Cell("S", 3, 1), Cell("S", 20, 9), Cell("S", 60, 60), Cell("Q", 5, 7),
             Cell("K", 40, 3), Cell("V", 9, 31), Cell("m", 2, 0), Cell("l", 17, 0),
             Cell("O", 1, 4), Cell("O", 18, 30)]  # fmt: skip
    for number in (0, 3, 5, len(steps) - 1):
        snapshot = trace.snapshot(*steps[number])
        for cell in cells:
            value, said = cell_value(snapshot, cell), found.number(number, cell)
            if value.value is None:
                assert said.startswith("~")
                assert found.data["runs"][0]["words"][int(said[1:])] == value.state
            else:
                assert said.rpartition("=")[2] == number_text(value.value)
                assert ("P=" in said) == (value.tensor == "P")


def test_a_page_opens_as_its_scenario(page):
    target, _ = page
    assert read_scenario(target) == simulate(DEMO).workload.scenario


def test_a_long_run_goes_by_tile_and_a_longer_one_by_row_block():
    def long(length):
        change = {"attention": {"seqlen_q": length, "head_dim": 8}, "mask": {"causal": False},
                  "tiling": {"rows": 64, "cols": 64}}  # fmt: skip
        return simulate(with_values(load_scenario(DEMO), change)).program

    program = long(512)
    stops, by = stops_of(program, range(len(program)), None)
    assert by is Granularity.TILE
    assert [stop.cursor for stop in stops] == [end_of_visit(program, n) for n in range(64)]
    program = long(2048)
    stops, by = stops_of(program, range(len(program)), None)
    assert by is Granularity.ROW_BLOCK
    ends = [stop.cursor.visit for stop in stops]
    assert ends == [32 * n + 31 for n in range(32)]
    program = long(65536)
    stops, by = stops_of(program, range(len(program)), None)
    assert len(stops) == MOST
    assert stops[-1].cursor == end_of_visit(program, len(program) - 1)


@given(st.lists(st.integers(0, 3)), st.lists(st.lists(st.integers(0, 3)), max_size=4))
@example([1, 2, 3, 4, 5], [[1, 9, 3, 4, 7, 5, 1]])
def test_a_list_is_found_again_from_its_changes(before, parts):
    after = [number for part in parts for number in (*part, *before[len(part) :])]
    assert _changed(before, edits(before, after)) == after


def test_changes_of_a_long_list_of_equal_parts_are_found_at_once():
    before, after = [9, *[1] * 10_000, 8], [7, *[1, 1, 1, 2] * 2_500, 3]
    change = edits(before, after)  # in a time that grows as the square this would take minutes
    assert _changed(before, change) == after
    assert len(edits(before, [7, *before[1:-5], 6])) == 3


def _changed(before, change):
    out = []
    for edit in change:
        out += [edit] if isinstance(edit, int) else before[edit[0] : edit[0] + edit[1]]
    return out


LESSON = """+++
title = "Two steps"
+++

## The first tile

```toml step
scenario = "causal"
at = { tile = [1, 0], op = "scores" }
row = 20
layout = "steps"
notes = "Say *this*."
```

The row sees {{ visible(20) }} keys of $K^{\\top}$.

## The maximum

```toml step
at = { tile = [1, 0], op = "row max" }
question = "What is it for?"
answer = "For **safety**."
```

It is there.
"""


@pytest.mark.long
def test_a_lesson_is_a_page_of_its_steps(tmp_path):
    application()
    source = tmp_path / "two.md"
    source.write_text(LESSON, "utf-8")
    lesson = load_lesson(source, LAYOUT_PANELS)
    assert not lesson.mistakes
    target = tmp_path / "two.html"
    wanted = ExportOptions(str(target), lesson=True)
    prepare_lesson(lesson, wanted, str(source), "0.1.0", MainWindow).make(lambda share: None)
    found = Page(target.read_text("utf-8"))
    assert [said["id"] for tag, said in found.elements if tag == "article"] == ["1", "2"]
    assert "The row sees 21 keys of" in found.texts["1"]
    assert "Say" in found.texts["1"]
    assert "For safety." in found.texts["2"]
    hidden = [said for _, said in found.elements if said.get("class") == "answer"]
    assert [("hidden" in said) for said in hidden] == [True]
    light, dark = found.drawings("light"), found.drawings("dark")
    assert [len(step) for step in light] == [len(step) for step in dark]
    assert len(dark[1]) > 1, "the maximum is seen to move"
    words = re.findall(r"<text[^>]*>([^<]*)</text>", dark[0][0])
    assert "SRAM" in " ".join(words)
    assert all("column block j = " in seen for seen in found.data["seen"])
    assert not {"row", "sees"} & {*words}, "the caption is text below the picture"
    snapshot = simulate(DEMO).snapshot(1, 3)
    assert found.number(0, Cell("S", 20, 9)) == number_text(float(snapshot.scores[4, 9]))
    boxes = {box[0]: box for box in found.data["places"][0]["boxes"]}
    left, top, wide, high = found.data["view"]
    for _, _, x, y, w, h, _ in boxes.values():
        assert left <= x < x + w <= left + wide
        assert top <= y < y + h <= top + high


ASKED = """
## The sum

```toml step
at = { tile = [1, 0], op = "row sum" }
predict = { ask = "How many keys?", answer = "{{ visible(20) }}", within = 1 }
```

They are 21.
"""


@pytest.mark.long
def test_what_is_asked_before_a_step_waits_in_a_step_of_its_own(tmp_path):
    application()
    source = tmp_path / "three.md"
    source.write_text(LESSON + ASKED, "utf-8")
    lesson = load_lesson(source, LAYOUT_PANELS)
    assert not lesson.mistakes
    target = tmp_path / "three.html"
    wanted = ExportOptions(str(target), lesson=True, steps=(2, 3))
    prepare_lesson(lesson, wanted, str(source), "0.1.0", MainWindow).make(lambda share: None)
    found = Page(target.read_text("utf-8"))
    assert "How many keys?" in found.texts["1"]
    assert "They are 21." not in found.texts["1"]
    assert "They are 21." in found.texts["2"]
    assert [said.get("class") for tag, said in found.elements].count("guess") == 1
    truth = [said["data-truth"] for _, said in found.elements if "data-truth" in said]
    assert truth == ["21.0"]
    hidden = [said for _, said in found.elements if said.get("class") == "answer"]
    assert [("hidden" in said) for said in hidden] == [True]


@pytest.mark.parametrize("scene", ["scene", "board"])
def test_layers_of_a_picture_show_what_a_film_shows(scene):
    application()
    trace, size, visit, k = simulate(DEMO), (960, 540), 2, 2
    pages = RunPages(trace, range(visit, visit + 1), scene, size)
    ops = trace.program.ops(visit)
    assert any(op.gesture is Gesture.SHRINK for op in ops), "the camera moves"
    for n in range(1, len(ops)):
        if pages.step(n, "dark", lambda: None).pictures == 1:
            continue
        layers, reached = pages.layers(n, k, "dark"), pages.layers(n, BETWEEN, "dark")
        assert layers[0].key == reached[0].key is not None
        after = trace.snapshot(visit, n)
        report = row_report(after, after.visit.rows.start + len(after.visit.rows) // 2)
        motion, share = Motion(trace.snapshot(visit, n - 1), after), moved(MOVING * 2.5 / BETWEEN)
        shown, film = (QImage(*size, QImage.Format.Format_RGB32) for _ in range(2))
        with QPainter(shown) as painter:
            for layer in layers:
                layer.paint(painter)
        with QPainter(film) as painter:
            moment = scene_moment(scene, after, report, THEMES["dark"], size)
            moment.paint_kept(painter, ground=True)
            moment.paint_moving(painter, motion, share)
        assert shown == film, ops[n].name
