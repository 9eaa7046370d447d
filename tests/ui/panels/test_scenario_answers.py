"""The scenario form: tiling, inputs, what comes back from the session, looks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QScrollArea, QToolButton

from simulator import simulate
from simulator.base.errors import InputError, Mistake, refuse
from simulator.language.models import MODELS
from simulator.problem.filling import capture_names
from simulator.problem.scenario import parse_scenario, scenario_tables, with_values
from simulator.problem.workload import read_inputs, resolve
from simulator.study.attention_map import HeadScores
from tests.helpers.by_hand import choosing
from tests.helpers.scenario_desk import CAPTURE, RANDOM, Desk, save_npz
from tests.helpers.small_language_model import put_in_place
from ui.look.theme import DARK, TEXT_SCALES, Style
from ui.panels.scenario.blanks import blanks
from ui.panels.scenario.editors import LineEditor
from ui.panels.scenario.fields import OWN, SENTENCE, change_words, edited, texts, with_input
from ui.panels.scenario.panel import ScenarioPanel
from ui.panels.scenario.pictures import TwoPictures, head_weights
from ui.session.session import Session

# --- tiling -------------------------------------------------------------------------------


def test_a_rule_replaces_sizes_and_own_sizes_replace_the_rule(desk):
    desk.choose("tiling.rule", "paper")
    assert scenario_tables(desk.proposals[-1])["tiling"] == {"rule": "paper"}
    assert desk.line("tiling.rows").text() == ""
    assert desk.line("tiling.rows").placeholderText() == f"{desk.shown.rows} by paper"
    rows, cols = desk.shown.rows, desk.shown.cols
    desk.choose("tiling.rule", OWN)
    assert scenario_tables(desk.proposals[-1])["tiling"] == {"rows": rows, "cols": cols}
    assert desk.words == ["tiles by paper", f"tiles {rows} × {cols}"]


def test_typing_one_size_under_a_rule_keeps_the_other(desk):
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


@pytest.mark.parametrize(
    "scores", [{}, {"softcap": 1.0}, {"alibi": True}, {"sink_logits": [1.0] * 12}]
)
def test_maps_of_heads_are_those_of_the_run(scores):
    said = {"input": {**CAPTURE["input"], "what_if": True}, "scores": scores}
    w = resolve(parse_scenario({**said, "attention": {"temperature": 2.0}}))
    maps = HeadScores(w, read_inputs(w)).maps()
    for head, shown in enumerate(head_weights(w.scenario)):
        np.testing.assert_allclose(shown, maps.of(head), atol=1e-6)


def test_from_random_to_a_capture_and_back_in_one_step(desk):
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


def test_a_text_is_typed_and_run(desk, tmp_path, monkeypatch):
    put_in_place(tmp_path, monkeypatch)
    desk.choose("input.source", "sentence")
    assert desk.shown.scenario.input.text == SENTENCE
    assert desk.line("attention.heads").placeholderText() == "6 from input"
    desk.type("input.text", "the mat")
    assert desk.shown.tokens == ("<s>", " ", "the", " ", "m", "a", "t")
    desk.type("input.layer", "2")
    assert desk.shown.file.said.layer == "2"
    desk.type("input.layer", "3")
    assert "from 0 to 2" in desk.wrong()["input.layer"]


def test_a_text_without_a_model_is_refused_where_it_was_chosen(desk, tmp_path, monkeypatch):
    none = replace(MODELS["own"], path=tmp_path / "none.safetensors")
    monkeypatch.setitem(MODELS, "own", none)
    shown = desk.shown
    desk.choose("input.source", "sentence")
    assert "make sentence-model" in desk.wrong()["input.source"]
    assert desk.shown is shown


def test_a_file_is_asked_for_and_browsed(desk, tmp_path):
    path = save_npz(tmp_path)
    desk.choose("input.source", "file")
    assert desk.wrong() == {"input.path": 'expected input.path with source = "file"'}
    assert desk.proposals == []
    browse = desk.panel.fields["input.path"].browse
    assert choosing(browse.click, None)
    assert desk.proposals == []
    assert choosing(browse.click, path)
    assert desk.wrong() == {}
    assert desk.line("input.path").text() == str(path)
    assert (desk.shown.heads, desk.shown.seqlen_q) == (2, 9)
    assert desk.words == ["input mine.npz"]


def test_heads_stay_from_capture_to_capture(capture_desk):
    capture_desk.type("input.head", "3")
    capture_desk.choose("input.name", "passage-layer1")
    assert capture_desk.shown.picked == (3,)


def test_a_value_that_the_input_contradicts_is_refused_beside_its_field(capture_desk):
    shown = capture_desk.shown
    capture_desk.type("attention.seqlen_k", "14")
    assert len(capture_desk.proposals) == 1
    name = "cat-because-layer2.safetensors"
    assert capture_desk.wrong() == {"attention.seqlen_k": f"expected 13 as in {name}"}
    assert capture_desk.shown is shown
    assert capture_desk.line("attention.seqlen_k").text() == "14"
    button = remedy(capture_desk, "attention.seqlen_k")
    assert button.isVisibleTo(capture_desk.panel)
    capture_desk.type("attention.seqlen_k", "13")
    assert capture_desk.wrong() == {}
    assert not button.isVisibleTo(capture_desk.panel)
    assert capture_desk.shown.scenario.attention.seqlen_k == 13


def remedy(desk: Desk, name: str) -> QToolButton:
    button = desk.panel.fields[name].findChild(QToolButton, "remedy")
    assert isinstance(button, QToolButton)
    return button


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("attention.head_dim", "128", ""),
        ("attention.seqlen_q", "64", ""),
        ("attention.seqlen_k", "20", "Random Q, K, V with Nk = 20"),
        ("attention.kv_heads", "3", "Random Q, K, V with kv_heads = 3"),
        ("attention.dtype", "bfloat16", 'What if: dtype = "bfloat16"'),
        ("mask.causal", "true", ""),
    ],
)
def test_what_the_input_contradicts_can_be_had_as_a_what_if(capture_desk, qtbot, name, text, words):
    """Of the first fields at once, of the others by a button; a badge says it below the field."""
    before = capture_desk.shown
    capture_desk.put(name, text)
    if words:
        assert list(capture_desk.wrong()) == [name]
        assert capture_desk.shown is before
        button = remedy(capture_desk, name)
        assert button.accessibleName() == words
        qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
        qtbot.waitUntil(lambda: capture_desk.wrong() == {})
    after = capture_desk.shown
    assert after.scenario.input.what_if
    assert after.what_if == (name,)
    badges = [n for n, field in capture_desk.panel.fields.items() if field.badge.text()]
    assert badges == [name]
    badge = capture_desk.panel.fields[name].badge
    assert badge.isVisibleTo(capture_desk.panel)
    assert badge.text().startswith("what if: ")
    assert (after.file is None) == (name.startswith("attention") and "dtype" not in name)
    assert texts(after.scenario)[name] == text
    same = {
        "attention.seqlen_q": before.queries,
        "attention.head_dim": before.head_dim,
        "attention.heads": before.input_heads[0],
        "attention.dtype": before.dtype,
    }
    shown = {
        "attention.seqlen_q": after.queries,
        "attention.head_dim": after.head_dim,
        "attention.heads": after.input_heads[0],
        "attention.dtype": after.dtype,
    }
    changed = {name} & same.keys()
    assert {key for key in same if same[key] != shown[key]} == changed


def test_no_remedy_is_offered_that_would_be_refused_as_well(capture_desk):
    capture_desk.type("mask.documents", "6, 7")
    capture_desk.type("attention.seqlen_q", "64")
    button = capture_desk.panel.fields["attention.seqlen_q"].findChild(QToolButton, "remedy")
    assert button is None or not button.isVisibleTo(capture_desk.panel)
    assert capture_desk.shown.queries == 13
    assert capture_desk.wrong()


def test_a_file_that_cannot_be_read_is_named_at_the_top(desk, tmp_path):
    desk.choose("input.source", "file")
    desk.type("input.path", str(tmp_path / "none.npz"))
    assert desk.panel.banner.isVisibleTo(desk.panel)
    assert desk.panel.banner.text.startswith("none.npz: expected a readable file")
    assert desk.shown.file is None
    desk.type("input.path", str(save_npz(tmp_path)))
    assert not desk.panel.banner.isVisibleTo(desk.panel)


def test_with_input_drops_what_only_the_old_input_made_true(tmp_path):
    scenario = parse_scenario(RANDOM | {"mask": {"causal": True, "window": 9}})
    path = save_npz(tmp_path)
    changed = with_input(scenario, {"source": "file", "path": str(path)}, resolve(scenario))
    assert scenario_tables(changed) == {
        "title": "mine",
        "mask": {"window": 9},
        "tiling": RANDOM["tiling"],
        "input": {"source": "file", "path": str(path)},
    }
    assert resolve(changed).heads == 2


def test_with_input_says_for_random_numbers_what_nobody_said():
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


def test_with_input_refuses_what_is_no_scenario():
    scenario = parse_scenario(RANDOM)
    with pytest.raises(InputError, match=r"input\.path"):
        with_input(scenario, {"source": "file"}, resolve(scenario))


# --- answers ------------------------------------------------------------------------------


def test_undo_sets_every_field_back_without_proposing(desk):
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


def test_an_answer_leaves_the_cursor_and_newer_typing_alone(desk, qtbot):
    with qtbot.waitExposed(desk.panel):
        desk.panel.activateWindow()
    line = desk.line("attention.seqlen_q")
    line.setFocus()
    desk.answers = False
    desk.type("attention.seqlen_q", "712", enter=False)
    line.commit()  # as after a pause: Enter leaves the field
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


def test_an_answer_that_came_too_late_does_not_undo_what_was_typed_since(desk):
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


def test_a_refusal_of_something_else_touches_no_field(desk):
    desk.panel.show_refusal(refuse("/a/b.npz", "attention.heads", 6, "12 as in b.npz"))
    assert desk.wrong() == {}
    assert desk.panel.banner.text == "b.npz: attention.heads = 6: expected 12 as in b.npz"
    assert desk.proposals == []
    desk.type("attention.heads", "4")
    assert not desk.panel.banner.isVisibleTo(desk.panel)


def test_a_first_scenario_that_cannot_be_used_is_told(qtbot):
    panel = ScenarioPanel()
    qtbot.addWidget(panel)
    panel.show_refusal(refuse("/a/bad.toml", "", "", "TOML"))
    assert panel.banner.text == "bad.toml: expected TOML"
    assert not panel.isEnabled()


def test_a_refusal_is_shown_and_not_proposed_again(desk):
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


def test_with_a_session(qtbot):
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
        assert session.scenario.attention.kv_heads == 3
        assert session.undo_stack.undoText() == "kv_heads 2 → 3"
        session.undo_stack.undo()
        session.settle()
        assert line.text() == "2"
    finally:
        session.close()


# --- looks --------------------------------------------------------------------------------


def test_the_summary_counts_tiles_visits_and_heads(desk):
    scenario = parse_scenario(RANDOM | {"input": {"head": [0]}})
    desk.panel.show_trace(simulate(scenario, engine="numpy"))
    assert desk.panel.summary.text().replace("\u00a0", " ") == "5 × 3 tiles · 15 visits · 1 head"


def test_blank_fields_say_what_they_stand_for(capture_desk):
    hints = {
        "attention.seqlen_q": "13 from input",
        "attention.scale": "0.1768 from input",
        "attention.temperature": "1 by default",
        "tiling.rows": "128 by fa2",
        "input.head": "all",
    }
    for name, hint in hints.items():
        assert capture_desk.line(name).placeholderText() == hint
    causal = capture_desk.field("mask.causal").editor
    assert isinstance(causal, TwoPictures)
    assert [text for text, each in causal.buttons.items() if each.isChecked()] == ["false"]
    assert capture_desk.choice("attention.dtype").currentText() == "float16 from input"
    capture_desk.choose("input.source", "random")
    assert capture_desk.line("attention.scale").placeholderText() == "1/√32 = 0.1768"
    assert capture_desk.line("attention.seqlen_k").placeholderText() == "13 as seqlen_q"


@pytest.mark.sweep(keep=4)
@pytest.mark.parametrize("scale", [TEXT_SCALES[0], TEXT_SCALES[2], TEXT_SCALES[-1]])
@pytest.mark.parametrize("width", [230, 300, 480])
def test_everything_fits_in_the_width(capture_desk, scale, width):
    panel = capture_desk.panel
    panel.set_style(Style(DARK, scale))
    panel.resize(width, 600)
    capture_desk.type("mask.window", "-1")
    capture_desk.choose("input.source", "file")
    QApplication.processEvents()
    scroll = panel.findChild(QScrollArea, "scenario_scroll")
    assert scroll.widget().width() <= scroll.viewport().width()
    for field in panel.fields.values():
        if not field.editor.isVisible():
            continue
        label, editor = field.names.geometry(), field.editor.geometry()
        assert field.names.isHidden() or not label.intersects(editor)
        assert (
            field.names.isHidden() or field.label.width() >= field.label.minimumSizeHint().width()
        )
        assert field.rect().contains(editor)
        if isinstance(field.editor, LineEditor) and scale * 230 <= width:
            words = field.editor.text() or field.editor.placeholderText()
            needed = field.editor.fontMetrics().horizontalAdvance(words)
            margins = field.editor.textMargins()
            assert needed + margins.left() + margins.right() + 4 <= editor.width()


def test_changes_are_named():
    before = parse_scenario(RANDOM)
    after = parse_scenario(RANDOM | {"mask": {"causal": True}, "title": "A"})
    assert change_words(before, after) == "title default → A, causal default → true"


def test_editing_is_pure():
    scenario = parse_scenario(RANDOM)
    said = texts(scenario)
    kept = dict(said)
    edited(said, "tiling.rule", "fa2", resolve(scenario))
    assert said == kept


def test_splits_have_a_number_or_a_size():
    """What a user says last holds; a field that is emptied changes no other."""
    w = resolve(with_values(parse_scenario(RANDOM), {"attention": {"algorithm": "split-kv"}}))
    number, size = "tiling.splits", "tiling.split_size"
    said = edited(texts(w.scenario) | {number: "3"}, size, "64", w)
    assert (said[number], said[size]) == ("", "64")
    said = edited(said, number, "5", w)
    assert (said[number], said[size]) == ("5", "")
    said = edited(said, size, "", w)
    assert (said[number], said[size]) == ("5", "")
    assert blanks(w, said | {number: "", size: "64"})[number].hint.endswith(" by split size")


def test_the_title_follows_what_is_done_to_the_run(qtbot):
    session = Session("numpy")
    panel = ScenarioPanel()
    qtbot.addWidget(panel)
    panel.proposed.connect(session.propose)
    session.trace_changed.connect(panel.show_trace)
    try:
        session.start(parse_scenario({**RANDOM, "title": "Seventy tokens"}), None)
        session.settle()
        length, title = (panel.fields[name].editor for name in ("attention.seqlen_q", "title"))
        assert isinstance(length, LineEditor)
        assert isinstance(title, LineEditor)

        def typed(line: LineEditor, text: str) -> None:
            line.selectAll()
            QTest.keyClicks(line, text)
            QTest.keyClick(line, Qt.Key.Key_Return)
            session.settle()

        typed(length, "60")
        assert title.text() == "Seventy tokens (changed)"
        assert session.scenario.title == title.text()
        typed(length, "70")
        assert title.text() == session.scenario.title == "Seventy tokens"
        typed(length, "60")
        typed(title, "Sixty tokens")
        assert session.scenario.title == "Sixty tokens"
        typed(panel.fields["attention.head_dim"].editor, "16")  # type: ignore[arg-type]
        assert title.text() == session.scenario.title == "Sixty tokens (changed)"
        assert session.scenario.attention.seqlen_q == 60
    finally:
        session.close()
