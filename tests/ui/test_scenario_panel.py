"""The scenario dock: every field, every mistake, and a draft that is never lost."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pydantic import BaseModel
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QScrollArea, QWidget
from pytestqt.qtbot import QtBot

from simulator import simulate
from simulator.errors import InputError, Mistake, refuse
from simulator.scenario import Scenario, parse_scenario, scenario_tables
from simulator.workload import capture_names, resolve
from ui.panels.scenario_editors import ChoiceEditor, LineEditor
from ui.panels.scenario_fields import (
    FIELDS,
    GROUPS,
    OWN,
    Kind,
    change_words,
    edited,
    tables,
    texts,
    with_input,
)
from ui.panels.scenario_panel import ScenarioPanel
from ui.session import Session
from ui.theme import TEXT_SCALES, THEMES, Style

RANDOM = {
    "attention": {"heads": 6, "kv_heads": 2, "seqlen_q": 70, "head_dim": 32},
    "tiling": {"rows": 16, "cols": 24},
}
CAPTURE = {"input": {"source": "capture", "name": "cat-because-layer2"}}


class Desk:
    """A panel, and what its window would do: answer every proposal at once."""

    def __init__(self, qtbot: QtBot, data: dict[str, object]) -> None:
        self.panel = ScenarioPanel()
        qtbot.addWidget(self.panel)
        self.panel.resize(300, 900)
        self.proposals: list[Scenario] = []
        self.words: list[str] = []
        self.answers = True
        self.panel.proposed.connect(self._take)
        self.shown = resolve(parse_scenario(data))
        self.panel.show_workload(self.shown)
        self.panel.show()

    def _take(self, scenario: Scenario, words: str) -> None:
        self.proposals.append(scenario)
        self.words.append(words)
        if self.answers:
            self.answer(scenario)

    def answer(self, scenario: Scenario) -> None:
        try:
            self.shown = resolve(scenario)
        except InputError as error:
            self.panel.show_refusal(error)
        else:
            self.panel.show_workload(self.shown)

    def line(self, name: str) -> LineEditor:
        editor = self.panel.fields[name].editor
        assert isinstance(editor, LineEditor)
        return editor

    def choice(self, name: str) -> ChoiceEditor:
        editor = self.panel.fields[name].editor
        assert isinstance(editor, ChoiceEditor)
        return editor

    def type(self, name: str, text: str, enter: bool = True) -> None:
        editor = self.line(name)
        editor.selectAll()
        if text:
            QTest.keyClicks(editor, text)
        else:
            QTest.keyClick(editor, Qt.Key.Key_Delete)
        if enter:
            QTest.keyClick(editor, Qt.Key.Key_Return)

    def choose(self, name: str, text: str) -> None:
        """Open the list with the mouse and choose with the keys."""
        editor = self.choice(name)
        place = editor.findData(text)
        assert place >= 0
        QTest.mouseClick(editor, Qt.MouseButton.LeftButton)
        view = editor.view()
        assert view.isVisible()
        QTest.keyClick(view, Qt.Key.Key_Home)
        for _ in range(place):
            QTest.keyClick(view, Qt.Key.Key_Down)
        QTest.keyClick(view, Qt.Key.Key_Return)
        assert editor.currentData() == text

    def put(self, name: str, text: str) -> None:
        if isinstance(self.panel.fields[name].editor, LineEditor):
            self.type(name, text)
        else:
            self.choose(name, text)

    def wrong(self) -> dict[str, str]:
        """What stands beside the fields; the frame and the words always go together."""
        return {
            name: field.message.text
            for name, field in self.panel.fields.items()
            if field.message.isVisibleTo(self.panel)
        }


@pytest.fixture
def desk(qtbot: QtBot) -> Desk:
    return Desk(qtbot, RANDOM)


@pytest.fixture
def capture_desk(qtbot: QtBot) -> Desk:
    return Desk(qtbot, CAPTURE)


def save_npz(folder: Path, heads: int = 2, tokens: int = 9) -> Path:
    path = folder / "mine.npz"
    rng = np.random.default_rng(0)
    np.savez(path, **{name: rng.random((heads, tokens, 4), np.float32) for name in "qkv"})
    return path


# --- the table ----------------------------------------------------------------------------


def test_the_table_has_every_key_of_a_scenario_file_and_no_other() -> None:
    names = set()
    for table, info in Scenario.model_fields.items():
        model = info.annotation
        if isinstance(model, type) and issubclass(model, BaseModel):
            names |= {f"{table}.{key}" for key in model.model_fields}
        else:
            names.add(table)
    assert [spec.name for spec in FIELDS if spec.name not in names] == []
    assert len(FIELDS) == len(names)


def test_sections_come_in_order_and_every_field_is_explained() -> None:
    groups = list(dict.fromkeys(spec.group for spec in FIELDS))
    assert groups == ["", *GROUPS]
    assert [spec.name for spec in FIELDS if not spec.help or not spec.label] == []
    for spec in FIELDS:
        assert bool(spec.choices()) == (spec.kind in (Kind.CHOICE, Kind.TRI_STATE))


@pytest.mark.parametrize(
    "data",
    [
        RANDOM,
        CAPTURE,
        {
            "title": " own ",
            "attention": {
                "algorithm": "naive", "heads": 4, "kv_heads": 2, "seqlen_q": 3, "seqlen_k": 5,
                "head_dim": 8, "value_dim": 16, "dtype": "bfloat16", "scale": 0.1767766952966369,
                "temperature": 1e-3,
            },
            "mask": {"causal": False, "window": 7, "sinks": 2},
            "tiling": {"rule": "paper"},
            "input": {"source": "random", "seed": 2**63 - 1, "head": [3, 0]},
            "hardware": {"preset": "T4"},
        },
        {"input": {"source": "file", "path": "/a folder/q=1 .npz", "head": "all"}},
    ],
)  # fmt: skip
def test_texts_lose_nothing(data: dict[str, object]) -> None:
    scenario = parse_scenario(data)
    assert tables(texts(scenario)) == scenario_tables(scenario)


# --- every field --------------------------------------------------------------------------

VALID = {
    "title": ("Two heads", "Two heads"),
    "attention.algorithm": ("flash1", "flash1"),
    "attention.dtype": ("float16", "float16"),
    "attention.scale": ("0.25", 0.25),
    "attention.temperature": ("2", 2.0),
    "attention.heads": ("4", 4),
    "attention.kv_heads": ("3", 3),
    "attention.seqlen_q": ("128", 128),
    "attention.seqlen_k": ("1 024", 1024),
    "attention.head_dim": ("64", 64),
    "attention.value_dim": ("8", 8),
    "mask.causal": ("true", True),
    "mask.window": ("24", 24),
    "mask.sinks": ("4", 4),
    "tiling.rule": ("paper", "paper"),
    "tiling.rows": ("32", 32),
    "tiling.cols": ("8", 8),
    "input.source": ("capture", "capture"),
    "input.seed": ("7", 7),
    "input.path": ("mine.npz", "mine.npz"),
    "input.name": ("passage-layer1", "passage-layer1"),
    "input.head": ("0, 3, 5", (0, 3, 5)),
    "hardware.preset": ("T4", "T4"),
}


def test_valid_values_are_tried_for_every_field() -> None:
    assert list(VALID) == [spec.name for spec in FIELDS]


@pytest.mark.parametrize("name", VALID)
def test_a_valid_value_is_proposed(
    qtbot: QtBot, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk(qtbot, CAPTURE if name == "input.name" else RANDOM)
    before = desk.shown.scenario
    text, value = VALID[name]
    if name == "input.path":
        save_npz(tmp_path)
        monkeypatch.chdir(tmp_path)
        desk.choose("input.source", "file")
        assert desk.proposals == []
    desk.put(name, text)
    assert len(desk.proposals) == 1
    [after] = desk.proposals
    table, _, key = name.rpartition(".")
    assert getattr(getattr(after, table) if table else after, key) == value
    assert desk.shown.scenario == after
    assert desk.wrong() == {}
    if name not in ("input.source", "input.path", "input.name", "tiling.rule"):
        changed = {n for n, t in texts(after).items() if t != texts(before)[n]}
        assert changed == {name}


INVALID = {
    "attention.scale": [("0", "expected a number above 0"), ("-1", "above 0"),
                        ("nan", "finite"), ("one", "expected a number")],
    "attention.temperature": [("0", "above 0"), ("1,5", "expected a number")],
    "attention.heads": [("0", "at least 1"), ("5000", "at most 4096"),
                        ("six", "expected a whole number"), ("1.5", "a whole number")],
    "attention.kv_heads": [("4", "expected a divisor of attention.heads = 6"), ("-1", "at least")],
    "attention.seqlen_q": [("0", "at least 1"), ("99999999999", "at most 16777216")],
    "attention.seqlen_k": [("0", "at least 1")],
    "attention.head_dim": [("0", "at least 1"), ("9" * 30, "at most 4096")],
    "attention.value_dim": [("0", "at least 1")],
    "mask.window": [("-1", "expected at least 0")],
    "mask.sinks": [("-3", "expected at least 0")],
    "tiling.rows": [("0", "expected at least 1")],
    "tiling.cols": [("", "expected tiling.cols beside it")],
    "input.seed": [("-1", "at least 0"), ("9223372036854775808", "at most")],
    "input.head": [("1, 1", "distinct head numbers"), ("first", "head numbers"),
                   ("-1", "head numbers"), ("[]", "distinct head numbers")],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [(name, text, words) for name, cases in INVALID.items() for text, words in cases],
)
def test_an_invalid_value_says_why_beside_its_field_and_loses_nothing(
    desk: Desk, name: str, text: str, expected: str
) -> None:
    shown = desk.shown
    desk.type(name, text)
    assert desk.proposals == []
    [(field, words)] = desk.wrong().items()
    # Tile sizes go together: the one that is left asks for the one that is missing.
    assert field == ("tiling.rows" if name == "tiling.cols" else name)
    assert expected in words
    assert desk.line(name).text() == text
    assert desk.shown is shown
    assert words in desk.panel.fields[field].editor.accessibleDescription()
    # The value in effect again: all is well, and there is nothing to propose.
    desk.type(name, texts(shown.scenario)[name])
    assert desk.wrong() == {}
    assert desk.proposals == []
    assert words not in desk.panel.fields[field].editor.accessibleDescription()


def test_an_invalid_value_gives_way_to_a_valid_one(desk: Desk) -> None:
    desk.type("attention.kv_heads", "4")
    assert list(desk.wrong()) == ["attention.kv_heads"]
    desk.type("attention.kv_heads", "3")
    assert desk.wrong() == {}
    assert [s.attention.kv_heads for s in desk.proposals] == [3]


def test_two_fields_are_made_consistent_one_after_the_other(desk: Desk) -> None:
    desk.type("attention.heads", "5")
    assert desk.wrong() == {"attention.kv_heads": "expected a divisor of attention.heads = 5"}
    assert desk.proposals == []
    desk.type("attention.kv_heads", "5")
    assert desk.wrong() == {}
    assert [(s.attention.heads, s.attention.kv_heads) for s in desk.proposals] == [(5, 5)]
    assert desk.words == ["heads 6 → 5, kv_heads 2 → 5"]


def test_each_mistake_stands_beside_its_own_field(desk: Desk) -> None:
    desk.type("mask.window", "-1")
    desk.type("attention.scale", "x")
    assert set(desk.wrong()) == {"mask.window", "attention.scale"}
    desk.type("mask.window", "3")
    assert set(desk.wrong()) == {"attention.scale"}
    assert desk.proposals == []
    desk.type("attention.scale", "0.5")
    assert len(desk.proposals) == 1


@pytest.mark.parametrize("name", ["attention.seqlen_k", "attention.kv_heads", "mask.window"])
def test_a_blank_field_means_the_default(desk: Desk, name: str) -> None:
    desk.type(name, "8" if name == "mask.window" else "6")
    desk.type(name, "")
    assert desk.line(name).placeholderText() != ""
    assert name not in {f"{t}.{k}" for t, v in scenario_tables(desk.shown.scenario).items()
                        if isinstance(v, dict) for k in v}  # fmt: skip


# --- how it is typed ----------------------------------------------------------------------


def test_a_pause_in_typing_is_enough(desk: Desk, qtbot: QtBot) -> None:
    with qtbot.waitSignal(desk.panel.proposed, timeout=2000):
        desk.type("attention.seqlen_q", "71", enter=False)
        assert desk.proposals == []
    assert [s.attention.seqlen_q for s in desk.proposals] == [71]
    QTest.keyClick(desk.line("attention.seqlen_q"), Qt.Key.Key_Return)
    assert len(desk.proposals) == 1


def test_an_emptied_field_waits_for_what_comes(desk: Desk) -> None:
    desk.type("attention.seqlen_q", "", enter=False)
    QTest.qWait(400)
    assert desk.proposals == []
    assert desk.wrong() == {}


def test_leaving_a_field_is_enough(desk: Desk, qtbot: QtBot) -> None:
    with qtbot.waitExposed(desk.panel):
        desk.panel.activateWindow()
    line = desk.line("attention.seqlen_q")
    line.setFocus()
    desk.type("attention.seqlen_q", "72", enter=False)
    QTest.keyClick(line, Qt.Key.Key_Tab)
    assert [s.attention.seqlen_q for s in desk.proposals] == [72]
    assert QApplication.focusWidget() is desk.line("attention.seqlen_k")


def test_arrow_keys_step_whole_numbers(desk: Desk) -> None:
    line = desk.line("mask.window")
    for key in (Qt.Key.Key_Up, Qt.Key.Key_Up, Qt.Key.Key_Up, Qt.Key.Key_Down):
        QTest.keyClick(line, key)
    assert line.text() == "2"
    QTest.keyClick(line, Qt.Key.Key_Return)
    assert [s.mask.window for s in desk.proposals] == [2]
    for _ in range(4):
        QTest.keyClick(line, Qt.Key.Key_Down)
    assert line.text() == "0"


def test_steps_start_from_what_a_blank_field_stands_for(desk: Desk) -> None:
    line = desk.line("attention.seqlen_k")
    assert line.text() == ""
    QTest.keyClick(line, Qt.Key.Key_Up)
    assert line.text() == "71"


def test_a_flood_of_digits_is_a_mistake_like_any_other(desk: Desk) -> None:
    line = desk.line("attention.head_dim")
    for digits, expected in ((4300, "expected at most 4096"), (9999, "expected a whole number")):
        line.selectAll()
        QApplication.clipboard().setText("9" * digits)
        QTest.keyClick(line, Qt.Key.Key_V, Qt.KeyboardModifier.ControlModifier)
        QTest.keyClick(line, Qt.Key.Key_Up)
        QTest.keyClick(line, Qt.Key.Key_Return)
        assert line.text() == "9" * digits
        assert desk.wrong() == {"attention.head_dim": expected}
    assert desk.proposals == []


def test_steps_leave_alone_what_is_no_number(desk: Desk) -> None:
    desk.type("attention.heads", "six", enter=False)
    QTest.keyClick(desk.line("attention.heads"), Qt.Key.Key_Up)
    assert desk.line("attention.heads").text() == "six"


def wheel(widget: QWidget, up: bool) -> QWheelEvent:
    spot = QPointF(widget.rect().center())
    event = QWheelEvent(
        spot, widget.mapToGlobal(spot), QPoint(), QPoint(0, 120 if up else -120),
        Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(widget, event)
    return event


def test_the_wheel_steps_only_the_field_that_has_the_focus(desk: Desk, qtbot: QtBot) -> None:
    with qtbot.waitExposed(desk.panel):
        desk.panel.activateWindow()
    line = desk.line("attention.seqlen_q")
    desk.line("title").setFocus()
    wheel(line, True)
    assert line.text() == "70"
    line.setFocus()
    wheel(line, True)
    assert line.text() == "71"
    wheel(line, False)
    assert line.text() == "70"
    algorithm = desk.choice("attention.algorithm")
    algorithm.setFocus()
    wheel(algorithm, False)
    assert algorithm.currentData() == "flash2"


def test_escape_puts_back_what_is_in_effect(desk: Desk) -> None:
    before = {name: field.editor.property("text") for name, field in desk.panel.fields.items()}
    desk.choose("input.source", "file")
    desk.type("attention.kv_heads", "4")
    desk.type("tiling.rows", "0")
    desk.type("title", "half a ti", enter=False)
    assert desk.proposals == []
    QTest.keyClick(desk.line("attention.kv_heads"), Qt.Key.Key_Escape)
    after = {name: field.editor.property("text") for name, field in desk.panel.fields.items()}
    assert after == before
    assert desk.choice("input.source").currentData() == "random"
    assert desk.wrong() == {}
    assert desk.proposals == []


def test_choices_follow_the_keyboard(desk: Desk) -> None:
    QTest.keyClick(desk.choice("attention.algorithm"), Qt.Key.Key_Up)
    assert [s.attention.algorithm for s in desk.proposals] == ["flash1"]
    assert desk.words == ["algorithm default → flash1"]


def test_tab_goes_through_the_fields_in_order(desk: Desk, qtbot: QtBot) -> None:
    with qtbot.waitExposed(desk.panel):
        desk.panel.activateWindow()
    visible = [spec.name for spec in FIELDS if spec.only_for in ("", "random")]
    desk.line("title").setFocus()
    for name in visible:
        assert QApplication.focusWidget() is desk.panel.fields[name].editor
        assert QApplication.focusWidget().accessibleName()
        QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)


# --- tiling -------------------------------------------------------------------------------


def test_a_rule_replaces_sizes_and_own_sizes_replace_the_rule(desk: Desk) -> None:
    desk.choose("tiling.rule", "paper")
    assert scenario_tables(desk.proposals[-1])["tiling"] == {"rule": "paper"}
    assert desk.line("tiling.rows").text() == ""
    assert desk.line("tiling.rows").placeholderText() == f"{desk.shown.rows} by paper"
    rows, cols = desk.shown.rows, desk.shown.cols
    desk.choose("tiling.rule", OWN)
    assert scenario_tables(desk.proposals[-1])["tiling"] == {"rows": rows, "cols": cols}
    assert desk.words == ["tiles by paper", f"tiles {rows} × {cols}"]


def test_typing_one_size_under_a_rule_keeps_the_other(desk: Desk) -> None:
    desk.choose("tiling.rule", "fa3")
    cols = desk.shown.cols
    desk.type("tiling.rows", "8")
    assert scenario_tables(desk.shown.scenario)["tiling"] == {"rows": 8, "cols": cols}
    assert desk.choice("tiling.rule").currentData() == OWN
    desk.type("tiling.rows", "")
    assert list(desk.wrong()) == ["tiling.cols"]
    desk.type("tiling.cols", "")
    assert "tiling" not in scenario_tables(desk.shown.scenario)
    assert desk.choice("tiling.rule").currentData() == "fa2"


# --- input --------------------------------------------------------------------------------


def test_from_random_to_a_capture_and_back_in_one_step(desk: Desk) -> None:
    desk.choose("input.source", "capture")
    assert desk.shown.scenario.input.name == capture_names()[0]
    assert desk.shown.scenario.attention.heads is None
    assert desk.line("attention.heads").placeholderText() == "12 from input"
    assert desk.panel.fields["input.name"].isVisibleTo(desk.panel)
    assert not desk.panel.fields["input.seed"].isVisibleTo(desk.panel)
    capture = desk.shown
    desk.choose("input.source", "random")
    assert (desk.shown.heads, desk.shown.seqlen_q) == (capture.heads, capture.seqlen_q)
    assert desk.shown.dtype == capture.dtype
    assert "name" not in scenario_tables(desk.shown.scenario)["input"]
    assert len(desk.proposals) == 2
    assert desk.words == [f"input {capture_names()[0]}", "input random"]


def test_a_file_is_asked_for_and_browsed(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save_npz(tmp_path)
    desk.choose("input.source", "file")
    assert desk.wrong() == {"input.path": 'expected input.path with source = "file"'}
    assert desk.proposals == []
    browse = desk.panel.fields["input.path"].browse
    assert browse is not None
    monkeypatch.setattr(ScenarioPanel, "choose_file", lambda self, folder: "")
    QTest.mouseClick(browse, Qt.MouseButton.LeftButton)
    assert desk.proposals == []
    monkeypatch.setattr(ScenarioPanel, "choose_file", lambda self, folder: str(path))
    QTest.mouseClick(browse, Qt.MouseButton.LeftButton)
    assert desk.wrong() == {}
    assert desk.line("input.path").text() == str(path)
    assert (desk.shown.heads, desk.shown.seqlen_q) == (2, 9)
    assert desk.words == ["input mine.npz"]


def test_heads_stay_from_capture_to_capture(capture_desk: Desk) -> None:
    capture_desk.type("input.head", "3")
    capture_desk.choose("input.name", "passage-layer1")
    assert capture_desk.shown.picked == (3,)


def test_a_value_that_the_input_contradicts_is_refused_beside_its_field(
    capture_desk: Desk,
) -> None:
    shown = capture_desk.shown
    capture_desk.type("attention.seqlen_q", "14")
    assert len(capture_desk.proposals) == 1
    name = "cat-because-layer2.safetensors"
    assert capture_desk.wrong() == {"attention.seqlen_q": f"expected 13 as in {name}"}
    assert capture_desk.shown is shown
    assert capture_desk.line("attention.seqlen_q").text() == "14"
    capture_desk.type("attention.seqlen_q", "13")
    assert capture_desk.wrong() == {}
    assert capture_desk.shown.scenario.attention.seqlen_q == 13


def test_a_file_that_cannot_be_read_is_named_at_the_top(desk: Desk, tmp_path: Path) -> None:
    desk.choose("input.source", "file")
    desk.type("input.path", str(tmp_path / "none.npz"))
    assert desk.panel.banner.isVisibleTo(desk.panel)
    assert desk.panel.banner.text.startswith("none.npz: expected a readable file")
    assert desk.shown.file is None
    desk.type("input.path", str(save_npz(tmp_path)))
    assert not desk.panel.banner.isVisibleTo(desk.panel)


def test_with_input_drops_what_only_the_old_input_made_true(tmp_path: Path) -> None:
    scenario = parse_scenario(RANDOM | {"mask": {"causal": True, "window": 9}})
    path = save_npz(tmp_path)
    changed = with_input(scenario, {"source": "file", "path": str(path)}, resolve(scenario))
    assert scenario_tables(changed) == {
        "mask": {"window": 9},
        "tiling": RANDOM["tiling"],
        "input": {"source": "file", "path": str(path)},
    }
    assert resolve(changed).heads == 2


def test_with_input_says_for_random_numbers_what_nobody_said() -> None:
    scenario = parse_scenario(CAPTURE | {"attention": {"algorithm": "naive", "temperature": 2.0}})
    workload = resolve(scenario)
    changed = with_input(scenario, {"source": "random", "seed": 3}, workload)
    assert scenario_tables(changed) == {
        "attention": {
            "algorithm": "naive", "temperature": 2.0, "heads": 12, "seqlen_q": 13,
            "head_dim": 32, "dtype": "float16",
        },
        "input": {"source": "random", "seed": 3},
    }  # fmt: skip
    again = resolve(changed)
    assert (again.heads, again.kv_heads, again.seqlen_k) == (12, 12, 13)


def test_with_input_refuses_what_is_no_scenario() -> None:
    scenario = parse_scenario(RANDOM)
    with pytest.raises(InputError, match=r"input\.path"):
        with_input(scenario, {"source": "file"}, resolve(scenario))


# --- answers ------------------------------------------------------------------------------


def test_undo_sets_every_field_back_without_proposing(desk: Desk) -> None:
    before = desk.shown
    desk.type("attention.seqlen_q", "71")
    desk.type("mask.window", "-1")
    desk.choose("hardware.preset", "T4")
    desk.proposals.clear()
    desk.panel.show_workload(before)
    assert desk.proposals == []
    assert desk.wrong() == {}
    assert desk.line("attention.seqlen_q").text() == "70"
    assert desk.line("mask.window").text() == ""
    assert desk.choice("hardware.preset").currentData() == "H100-SXM"


def test_an_answer_leaves_the_cursor_and_newer_typing_alone(desk: Desk, qtbot: QtBot) -> None:
    with qtbot.waitExposed(desk.panel):
        desk.panel.activateWindow()
    line = desk.line("attention.seqlen_q")
    line.setFocus()
    desk.answers = False
    desk.type("attention.seqlen_q", "712")
    line.setCursorPosition(1)
    desk.answer(desk.proposals[0])
    assert (line.text(), line.cursorPosition(), line.hasFocus()) == ("712", 1, True)
    desk.type("attention.seqlen_q", "713")
    desk.type("attention.seqlen_q", "7134", enter=False)
    desk.answer(desk.proposals[1])
    assert line.text() == "7134"
    QTest.keyClick(line, Qt.Key.Key_Return)
    assert desk.proposals[-1].attention.seqlen_q == 7134
    desk.type("attention.seqlen_q", "", enter=False)
    desk.answer(desk.proposals[2])
    assert line.text() == ""


def test_an_answer_that_came_too_late_does_not_undo_what_was_typed_since(desk: Desk) -> None:
    desk.answers = False
    desk.type("attention.seqlen_q", "71")
    desk.type("attention.seqlen_q", "72")
    first, second = desk.proposals
    desk.answer(first)
    assert desk.line("attention.seqlen_q").text() == "72"
    desk.answer(second)
    assert len(desk.proposals) == 2
    # Back at what is on show while another answer is under way: asked for again after it.
    desk.type("attention.seqlen_q", "73")
    desk.type("attention.seqlen_q", "72")
    assert len(desk.proposals) == 3
    desk.answer(desk.proposals[2])
    assert [s.attention.seqlen_q for s in desk.proposals] == [71, 72, 73, 72]


def test_a_refusal_of_something_else_touches_no_field(desk: Desk) -> None:
    desk.panel.show_refusal(refuse("/a/b.npz", "attention.heads", 6, "12 as in b.npz"))
    assert desk.wrong() == {}
    assert desk.panel.banner.text == "b.npz: attention.heads = 6: expected 12 as in b.npz"
    assert desk.proposals == []
    desk.type("attention.heads", "4")
    assert not desk.panel.banner.isVisibleTo(desk.panel)


def test_a_first_scenario_that_cannot_be_used_is_told(qtbot: QtBot) -> None:
    panel = ScenarioPanel()
    qtbot.addWidget(panel)
    panel.show_refusal(refuse("/a/bad.toml", "", "", "TOML"))
    assert panel.banner.text == "bad.toml: expected TOML"
    assert not panel.isEnabled()


def test_a_refusal_is_shown_and_not_proposed_again(desk: Desk) -> None:
    desk.answers = False
    desk.type("attention.heads", "4")
    mistakes = [Mistake("attention.heads", "4", "fewer"), Mistake("tensor k", "", "tensors")]
    desk.panel.show_refusal(InputError("scenario", mistakes))
    assert desk.wrong() == {"attention.heads": "expected fewer"}
    assert desk.panel.banner.text == "tensor k: expected tensors"
    assert len(desk.proposals) == 1
    desk.type("mask.window", "5")  # the refused value is still part of the draft
    assert desk.proposals[-1].attention.heads == 4
    assert desk.wrong() == {"attention.heads": "expected fewer"}


def test_with_a_session(qtbot: QtBot) -> None:
    session = Session("numpy")
    panel = ScenarioPanel()
    qtbot.addWidget(panel)
    panel.proposed.connect(session.propose)
    session.trace_changed.connect(panel.show_trace)
    session.refused.connect(panel.show_refusal)
    assert not panel.isEnabled()
    try:
        session.start(parse_scenario(RANDOM), None)
        session.settle()
        assert panel.isEnabled()
        line = panel.fields["attention.kv_heads"].editor
        assert isinstance(line, LineEditor)
        line.selectAll()
        QTest.keyClicks(line, "3")
        QTest.keyClick(line, Qt.Key.Key_Return)
        session.settle()
        assert session.scenario is not None
        assert session.scenario.attention.kv_heads == 3
        assert session.undo_stack.undoText() == "kv_heads 2 → 3"
        session.undo_stack.undo()
        session.settle()
        assert line.text() == "2"
    finally:
        session.close()


# --- looks --------------------------------------------------------------------------------


def test_the_summary_counts_tiles_visits_and_heads(desk: Desk) -> None:
    scenario = parse_scenario(RANDOM | {"input": {"head": [0]}})
    desk.panel.show_trace(simulate(scenario, engine="numpy"))
    assert desk.panel.summary.text().replace("\u00a0", " ") == "5 × 3 tiles · 15 visits · 1 head"


def test_blank_fields_say_what_they_stand_for(capture_desk: Desk) -> None:
    hints = {
        "attention.seqlen_q": "13 from input",
        "attention.scale": "0.1768 from input",
        "attention.temperature": "1 by default",
        "tiling.rows": "128 by fa2",
        "input.head": "all",
    }
    for name, hint in hints.items():
        assert capture_desk.line(name).placeholderText() == hint
    assert capture_desk.choice("mask.causal").currentText() == "no, from input"
    assert capture_desk.choice("attention.dtype").currentText() == "float16 from input"
    capture_desk.choose("input.source", "random")
    assert capture_desk.line("attention.scale").placeholderText() == "1/√32 = 0.1768"
    assert capture_desk.line("attention.seqlen_k").placeholderText() == "13 as seqlen_q"


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("scale", [TEXT_SCALES[0], TEXT_SCALES[2], TEXT_SCALES[-1]])
@pytest.mark.parametrize("width", [230, 300, 480])
def test_everything_fits_in_the_width(
    capture_desk: Desk, theme: str, scale: float, width: int
) -> None:
    panel = capture_desk.panel
    panel.set_style(Style(THEMES[theme], scale))
    panel.resize(width, 600)
    capture_desk.type("mask.window", "-1")
    capture_desk.choose("input.source", "file")
    QApplication.processEvents()
    scroll = panel.findChild(QScrollArea, "scenario_scroll")
    assert scroll.widget().width() <= scroll.viewport().width()
    for field in panel.fields.values():
        if not field.isVisible():
            continue
        label, editor = field.label.geometry(), field.editor.geometry()
        assert not label.intersects(editor)
        assert field.label.width() >= field.label.sizeHint().width()
        assert field.rect().contains(editor)
        if isinstance(field.editor, LineEditor) and scale * 230 <= width:
            words = field.editor.text() or field.editor.placeholderText()
            needed = field.editor.fontMetrics().horizontalAdvance(words)
            margins = field.editor.textMargins()
            assert needed + margins.left() + margins.right() + 4 <= editor.width()


def test_changes_are_named() -> None:
    before = parse_scenario(RANDOM)
    after = parse_scenario(RANDOM | {"mask": {"causal": True}, "title": "A"})
    assert change_words(before, after) == "title default → A, causal default → true"


def test_editing_is_pure() -> None:
    scenario = parse_scenario(RANDOM)
    said = texts(scenario)
    kept = dict(said)
    edited(said, "tiling.rule", "fa2", resolve(scenario))
    assert said == kept
