"""The scenario dock: every field, every mistake, and a draft that is never lost."""

from __future__ import annotations

import pytest
from pydantic import BaseModel
from PySide6.QtCore import QPoint, QPointF, Qt, qInstallMessageHandler
from PySide6.QtGui import QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QScrollArea, QWidget

from simulator.base.assets import SCENARIOS
from simulator.problem.scenario import Scenario, load_scenario, parse_scenario, scenario_tables
from simulator.problem.workload import resolve
from simulator.program.algorithms import ALGORITHMS
from simulator.program.playback import Cursor
from simulator.run.snapshot import Cell
from tests.helpers.scenario_desk import CAPTURE, RANDOM, Desk, save_npz
from tests.helpers.small_language_model import put_in_place
from tests.helpers.waiting import wait_until
from ui.panels.scenario.blanks import blanks
from ui.panels.scenario.fields import FIELDS, GROUPS, FieldKind, tables, texts
from ui.panels.scenario.panel import ScenarioPanel

# --- the table ----------------------------------------------------------------------------


def test_the_table_has_every_key_of_a_scenario_file_and_no_other():
    names = set()
    for table, info in Scenario.model_fields.items():
        model = info.annotation
        if isinstance(model, type) and issubclass(model, BaseModel):
            names |= {f"{table}.{key}" for key in model.model_fields}
        else:
            names.add(table)
    assert [spec.name for spec in FIELDS if spec.name not in names] == []
    assert len(FIELDS) == len(names)


def test_sections_come_in_order_and_every_field_is_explained():
    groups = list(dict.fromkeys(spec.group for spec in FIELDS))
    assert groups == ["", *GROUPS]
    assert [spec.name for spec in FIELDS if not spec.help or not spec.label] == []
    for spec in FIELDS:
        assert bool(spec.choices()) == (spec.kind in (FieldKind.CHOICE, FieldKind.TRI_STATE))
        assert len(spec.brief) <= 110, spec.brief


def test_the_field_of_the_algorithm_explains_each_that_it_offers(desk):
    offered = desk.choice("attention.algorithm")
    words = [
        (offered.itemText(n), offered.itemData(n, Qt.ItemDataRole.ToolTipRole))
        for n in range(offered.count())
    ]
    assert [text for text, _ in words] == [own.title for own in ALGORITHMS.values()]
    assert [tip for _, tip in words] == [own.about for own in ALGORITHMS.values()]


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
                "temperature": 1e-3, "p_dtype": "storage", "rescale_threshold": 8.0,
                "deterministic": True,
            },
            "scores": {
                "softcap": 50.0, "alibi": [0.5, 0.25, 1.0, 0.0], "sink_logits": [1.5, -2.0, 0, 8],
            },
            "mask": {"causal": False, "align": "top-left", "window": [7, -1],
                     "sinks": 2, "dilation": 3, "global_tokens": 4, "documents": [5, 9],
                     "block": 4},
            "batch": {"lengths": [7, 9], "sequence": 1},
            "position": {"kind": "rope", "theta": 1e6, "interleaved": True, "offset": -2},
            "tiling": {"rule": "paper"},
            "input": {"source": "random", "seed": 2**63 - 1, "head": [3, 0]},
            "hardware": {"preset": "T4"},
            "faults": {"forget_alpha": False, "late_mask": True},
        },
        {"input": {"source": "file", "path": "/a folder/q=1 .npz", "head": "all"}},
    ],
)  # fmt: skip
def test_texts_lose_nothing(data):
    scenario = parse_scenario(data)
    assert tables(texts(scenario)) == scenario_tables(scenario)


# --- every field --------------------------------------------------------------------------

VALID = {
    "title": ("Two heads", "Two heads"),
    "attention.algorithm": ("flash1", "flash1"),
    "attention.dtype": ("float16", "float16"),
    "attention.p_dtype": ("storage", "storage"),
    "attention.scale": ("0.25", 0.25),
    "attention.temperature": ("2", 2.0),
    "attention.rescale_threshold": ("8", 8.0),
    "attention.deterministic": ("true", True),
    "attention.feature_map": ("performer", "performer"),
    "attention.features": ("24", 24),
    "attention.decay": ("0.95", 0.95),
    "attention.strength": ("0.5", 0.5),
    "attention.heads": ("4", 4),
    "attention.kv_heads": ("3", 3),
    "attention.seqlen_q": ("128", 128),
    "attention.seqlen_k": ("1 024", 1024),
    "batch.lengths": ("38, 13, 61", (38, 13, 61)),
    "batch.queries": ("38, 0, 1", (38, 0, 1)),
    "batch.sequence": ("0", 0),
    "attention.head_dim": ("64", 64),
    "attention.value_dim": ("8", 8),
    "attention.latent_dim": ("16", 16),
    "attention.rope_dim": ("0", 0),
    "scores.softcap": ("30", 30.0),
    "scores.alibi": ("0.5, 0.25, 1, 0, 2, 3", (0.5, 0.25, 1.0, 0.0, 2.0, 3.0)),
    "scores.bias": ("false", False),
    "scores.sink_logits": ("1, -2, 0.5, 0, 3, 9", (1.0, -2.0, 0.5, 0.0, 3.0, 9.0)),
    "mask.causal": ("true", True),
    "mask.align": ("top-left", "top-left"),
    "mask.window": ("5, -1", (5, -1)),
    "mask.sinks": ("4", 4),
    "mask.dilation": ("2", 2),
    "mask.global_tokens": ("3", 3),
    "mask.documents": ("23, 30, 17", (23, 30, 17)),
    "mask.block": ("3", 3),
    "position.kind": ("rope", "rope"),
    "position.theta": ("500000", 500000.0),
    "position.interleaved": ("true", True),
    "position.fraction": ("0.5", 0.5),
    "position.offset": ("-3", -3),
    "tiling.rule": ("paper", "paper"),
    "tiling.rows": ("32", 32),
    "tiling.cols": ("8", 8),
    "tiling.splits": ("3", 3),
    "tiling.split_size": ("96", 96),
    "tiling.page_size": ("4", 4),
    "tiling.devices": ("8", 8),
    "tiling.layout": ("zigzag", "zigzag"),
    "input.source": ("capture", "capture"),
    "input.seed": ("7", 7),
    "input.path": ("mine.npz", "mine.npz"),
    "input.layout": ("nhd", "nhd"),
    "input.name": ("passage-layer1", "passage-layer1"),
    "input.text": ("A dog.", "A dog."),
    "input.layer": ("2", 2),
    "input.what_if": ("true", True),
    "input.head": ("0, 3, 5", (0, 3, 5)),
    "hardware.preset": ("T4", "T4"),
    "hardware.kernel": ("fa2", "fa2"),
    "faults.forget_alpha": ("true", True),
    "faults.no_maximum": ("true", True),
    "faults.drop_previous_maximum": ("true", True),
    "faults.late_scale": ("true", True),
    "faults.late_mask": ("true", True),
    "faults.half_accumulator": ("true", True),
    "faults.stale_frame": ("true", True),
    "faults.fp8_saturation": ("true", True),
    "faults.unconverted_sink": ("true", True),
    "faults.lse_base_2": ("true", True),
    "faults.early_mask": ("true", True),
    "faults.finite_mask": ("true", True),
    "faults.repeated_sink": ("true", True),
    "faults.forget_tile_sum": ("true", True),
    "faults.wide_window": ("true", True),
    "faults.forget_dots": ("true", True),
    "faults.weights_of_maximum": ("true", True),
    "faults.unscaled_queries": ("true", True),
    "faults.one_head_of_group": ("true", True),
}


def test_valid_values_are_tried_for_every_field():
    names = [spec.name for spec in FIELDS if spec.name != "input.model"]  # the other is not here
    assert VALID.keys() == {*names}
    assert len(names) == len(VALID)


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize("name", VALID)
def test_a_valid_value_is_proposed(qtbot, name, tmp_path, monkeypatch):
    data = CAPTURE if name == "input.name" else RANDOM
    if name in ("mask.block", "input.layout"):
        data = {"input": {"source": "file", "path": str(save_npz(tmp_path))}}
    if name in ("attention.latent_dim", "attention.rope_dim"):
        data = {"attention": {"seqlen_q": 8, "latent_dim": 4, "rope_dim": 2}}
    if name in ("input.text", "input.layer"):
        put_in_place(tmp_path, monkeypatch)
        data = {"input": {"source": "sentence", "text": "A cat."}}
    if name == "batch.queries":
        data = {**RANDOM, "batch": {"lengths": [7, 9, 4]}}
    desk = Desk(qtbot, data)
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
        assert changed == {name} | ({"attention.seqlen_q"} if name == "batch.queries" else set())


INVALID = {
    "attention.scale": [("0", "expected a number above 0"), ("-1", "above 0"),
                        ("nan", "finite"), ("one", "expected a number")],
    "attention.temperature": [("0", "above 0"), ("1,5", "expected a number")],
    "attention.features": [("0", "at least 1"), ("x", "a whole number")],
    "attention.heads": [("0", "at least 1"), ("5000", "at most 4096"),
                        ("six", "expected a whole number"), ("1.5", "a whole number")],
    "attention.kv_heads": [("4", "expected a divisor of attention.heads = 6"), ("-1", "at least")],
    "attention.seqlen_q": [("0", "at least 1"), ("99999999999", "at most 16777216")],
    "attention.seqlen_k": [("0", "at least 1")],
    "attention.head_dim": [("0", "at least 1"), ("9" * 30, "at most 4096")],
    "attention.value_dim": [("0", "at least 1")],
    "scores.softcap": [("-1", "expected at least 0"), ("high", "expected a number")],
    "scores.alibi": [("steep", "expected true, false, or a list of slopes"),
                     ("1, -1", "none below 0")],
    "attention.rescale_threshold": [("-1", "at least 0"), ("65", "at most 64")],
    "scores.sink_logits": [("gpt", 'expected "file", false, or numbers')],
    "mask.window": [("-1", "expected at least 0"), ("5, -2", "expected a number of keys"),
                    ("5, 2, 3", "a pair [left, right]"), ("5,", "a number of keys")],
    "mask.sinks": [("-3", "expected at least 0")],
    "mask.dilation": [("0", "expected at least 1")],
    "mask.global_tokens": [("-1", "expected at least 0")],
    "mask.documents": [("3, x", "expected"), ("3, 0", "each at least 1")],
    "batch.lengths": [("3, x", "expected"), ("0, 0", "a sequence that has keys")],
    "batch.queries": [("3, -1", "each at least 0"), ("3", "for each of the 0 of batch.lengths")],
    "batch.sequence": [("-1", "at least 0"), ("1", "expected batch.lengths beside it")],
    "tiling.rows": [("0", "expected at least 1")],
    "tiling.cols": [("", "expected tiling.cols beside it")],
    "tiling.devices": [("1", "at least 2"), ("9", "at most 8"), ("two", "a whole number")],
    "input.seed": [("-1", "at least 0"), ("9223372036854775808", "at most")],
    "input.head": [("1, 1", "distinct head numbers"), ("first", "head numbers"),
                   ("-1", "head numbers"), ("[]", "distinct head numbers")],
}  # fmt: skip


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [(name, text, words) for name, cases in INVALID.items() for text, words in cases],
)
def test_an_invalid_value_says_why_beside_its_field_and_loses_nothing(desk, name, text, expected):
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


def test_an_invalid_value_gives_way_to_a_valid_one(desk):
    desk.type("attention.kv_heads", "4")
    assert list(desk.wrong()) == ["attention.kv_heads"]
    desk.type("attention.kv_heads", "3")
    assert desk.wrong() == {}
    assert [s.attention.kv_heads for s in desk.proposals] == [3]


def test_two_fields_are_made_consistent_one_after_the_other(desk):
    desk.type("attention.heads", "5")
    assert desk.wrong() == {"attention.kv_heads": "expected a divisor of attention.heads = 5"}
    assert desk.proposals == []
    desk.type("attention.kv_heads", "5")
    assert desk.wrong() == {}
    assert [(s.attention.heads, s.attention.kv_heads) for s in desk.proposals] == [(5, 5)]
    assert desk.words == ["heads 6 → 5, kv_heads 2 → 5"]


def test_each_mistake_stands_beside_its_own_field(desk):
    desk.type("mask.window", "-1")
    desk.type("attention.scale", "x")
    assert set(desk.wrong()) == {"mask.window", "attention.scale"}
    desk.type("mask.window", "3")
    assert set(desk.wrong()) == {"attention.scale"}
    assert desk.proposals == []
    desk.type("attention.scale", "0.5")
    assert len(desk.proposals) == 1


@pytest.mark.parametrize("name", ["attention.seqlen_k", "attention.kv_heads", "mask.window"])
def test_a_blank_field_means_the_default(desk, name):
    desk.type(name, "8" if name == "mask.window" else "6")
    desk.type(name, "")
    assert desk.line(name).placeholderText() != ""
    assert name not in {f"{t}.{k}" for t, v in scenario_tables(desk.shown.scenario).items()
                        if isinstance(v, dict) for k in v}  # fmt: skip


# --- how it is typed ----------------------------------------------------------------------


def test_a_pause_in_typing_is_enough(desk, qtbot):
    with qtbot.waitSignal(desk.panel.proposed, timeout=2000):
        desk.type("attention.seqlen_q", "71", enter=False)
        assert desk.proposals == []
    assert [s.attention.seqlen_q for s in desk.proposals] == [71]
    QTest.keyClick(desk.line("attention.seqlen_q"), Qt.Key.Key_Return)
    assert len(desk.proposals) == 1


def test_an_emptied_field_waits_for_what_comes(desk):
    desk.type("attention.seqlen_q", "", enter=False)
    QTest.qWait(400)
    assert desk.proposals == []
    assert desk.wrong() == {}


def test_leaving_a_field_is_enough(desk, qtbot):
    with qtbot.waitExposed(desk.panel):
        desk.panel.activateWindow()
    line = desk.line("attention.seqlen_q")
    line.setFocus()
    desk.type("attention.seqlen_q", "72", enter=False)
    QTest.keyClick(line, Qt.Key.Key_Tab)
    assert [s.attention.seqlen_q for s in desk.proposals] == [72]
    assert QApplication.focusWidget() is desk.line("attention.head_dim")


def test_arrow_keys_step_whole_numbers(desk):
    line = desk.line("mask.window")
    for key in (Qt.Key.Key_Up, Qt.Key.Key_Up, Qt.Key.Key_Up, Qt.Key.Key_Down):
        QTest.keyClick(line, key)
    assert line.text() == "2"
    QTest.keyClick(line, Qt.Key.Key_Return)
    assert [s.mask.window for s in desk.proposals] == [2]
    for _ in range(4):
        QTest.keyClick(line, Qt.Key.Key_Down)
    assert line.text() == "0"


def test_every_field_that_may_be_blank_says_what_it_stands_for():
    """Other fields always hold a value."""
    filled = {
        "attention.algorithm", "tiling.rule", "input.source", "input.name", "input.model",
        "hardware.preset",
    }  # fmt: skip
    for path in sorted(SCENARIOS.glob("*.toml")):
        w = resolve(load_scenario(path))
        found = blanks(w, texts(w.scenario))
        assert {spec.name for spec in FIELDS} - {*found} == filled, path.stem
        assert all(blank.hint or blank.value for blank in found.values())


def test_steps_start_from_what_a_blank_field_stands_for(desk):
    line = desk.line("attention.seqlen_k")
    assert line.text() == ""
    QTest.keyClick(line, Qt.Key.Key_Up)
    assert line.text() == "71"


def test_a_flood_of_digits_is_a_mistake_like_any_other(desk):
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


def test_steps_leave_alone_what_is_no_number(desk):
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


def test_the_wheel_steps_only_the_field_that_has_the_focus(desk, qtbot):
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


def test_escape_puts_back_what_is_in_effect(desk):
    lines = {n: desk.line(n) for n in ("attention.kv_heads", "tiling.rows", "title")}
    before = {name: line.text() for name, line in lines.items()}
    desk.choose("input.source", "file")
    desk.type("attention.kv_heads", "4")
    desk.type("tiling.rows", "0")
    desk.type("title", "half a ti", enter=False)
    assert desk.proposals == []
    QTest.keyClick(desk.line("attention.kv_heads"), Qt.Key.Key_Escape)
    assert {name: line.text() for name, line in lines.items()} == before
    assert desk.choice("input.source").currentData() == "random"
    assert desk.wrong() == {}
    assert desk.proposals == []


def form(open_window):
    """Return a window with its form, and where docks stand that keys would toggle."""
    window = open_window("causal", (1440, 900))
    window.docks["scenario"].show()
    window.activateWindow()
    QApplication.processEvents()
    panel = window.docks.panel("scenario")
    return window, panel, {name: dock.isHidden() for name, dock in window.docks.by_name.items()}


def test_enter_gives_the_keys_back_to_the_board(open_window):
    window, panel, _ = form(open_window)
    session = window.session
    editor = panel.fields["attention.seqlen_q"].editor
    editor.setFocus()
    editor.selectAll()
    QTest.keyClicks(editor, "32")
    QTest.keyClick(editor, Qt.Key.Key_Return)
    session.settle()
    assert session.scenario.attention.seqlen_q == 32
    for key, cursor in ((Qt.Key.Key_Right, Cursor(0, 1)), (Qt.Key.Key_Home, Cursor(0, 0))):
        QTest.keyClick(QApplication.focusWidget() or window, key)
        session.settle()
        assert session.cursor == cursor
    QTest.keyClick(QApplication.focusWidget() or window, Qt.Key.Key_Space)
    assert session.playing
    session.play(False)
    assert editor.text() == "32"


def test_enter_stays_in_a_field_that_is_wrong(open_window):
    _, panel, _ = form(open_window)
    editor = panel.fields["attention.seqlen_q"].editor
    editor.setFocus()
    editor.selectAll()
    QTest.keyClicks(editor, "0")
    QTest.keyClick(editor, Qt.Key.Key_Return)
    assert panel.fields["attention.seqlen_q"].message.text
    assert editor.hasFocus()


def test_escape_leaves_the_field_and_ends_no_more(open_window):
    window, panel, _ = form(open_window)
    window.session.select(Cell("S", 0, 0))
    window.session.settle()
    editor = panel.fields["attention.heads"].editor
    for text in ("7x", ""):  # with something to put back, and without
        editor.setFocus()
        QTest.keyClicks(editor, text)
        QTest.keyClick(editor, Qt.Key.Key_Escape)
        window.session.settle()
        assert not editor.hasFocus()
        assert "x" not in editor.text()
        assert window.session.view.cell is not None
    QTest.keyClick(QApplication.focusWidget() or window, Qt.Key.Key_Escape)
    window.session.settle()
    assert window.session.view.cell is None


def test_what_is_typed_beside_a_field_toggles_no_dock(open_window):
    window, panel, before = form(open_window)
    theme = window.settings.theme
    heading = panel.findChild(QScrollArea)
    QTest.mouseClick(heading.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(3, 3))
    for place in (heading, panel.fields["attention.algorithm"].editor):
        place.setFocus()
        for typed in "2", "7", "T", "k":
            QTest.keyClicks(QApplication.focusWidget(), typed)
    assert {name: dock.isHidden() for name, dock in window.docks.by_name.items()} == before
    assert window.settings.theme == theme
    panel.fields["attention.seqlen_q"].editor.setFocus()
    QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Escape)
    QTest.keyClick(QApplication.focusWidget() or window, Qt.Key.Key_2)
    assert window.docks["memory"].isHidden() is not before["memory"]


def test_a_click_on_the_name_of_a_field_goes_into_it(desk):
    field = desk.panel.fields["attention.seqlen_q"]
    QTest.mouseClick(field.label, Qt.MouseButton.LeftButton)
    assert QApplication.focusWidget() is field.editor


def test_choices_follow_the_keyboard(desk):
    QTest.keyClick(desk.choice("attention.algorithm"), Qt.Key.Key_Up)
    assert [s.attention.algorithm for s in desk.proposals] == ["flash1"]
    assert desk.words == ["algorithm default → flash1"]


def test_tab_goes_through_the_fields_in_order(desk, qtbot):
    with qtbot.waitExposed(desk.panel):
        desk.panel.activateWindow()
    visible = [spec.name for spec in FIELDS if spec.only_for in ("", "random")]
    desk.line("title").setFocus()
    for name in visible:
        assert QApplication.focusWidget() is desk.panel.fields[name].editor
        assert QApplication.focusWidget().accessibleName()
        QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)


def test_qt_takes_the_order_of_the_fields(qtbot):
    """It refuses one between fields that are not in one window yet."""
    said: list[str] = []
    before = qInstallMessageHandler(lambda kind, context, text: said.append(text))
    try:
        qtbot.addWidget(ScenarioPanel())
    finally:
        qInstallMessageHandler(before)
    assert said == []


def test_another_scenario_leaves_nothing_of_the_one_before(open_window) -> None:
    window = open_window("causal")
    for name in ("scenario", "inspector"):
        window.docks.open(name)
        window.session.settle()
    assert window.docks.panel("inspector").settings.causal
    window.files.open_path(SCENARIOS / "flash2.toml")
    wait_until(lambda: "sentence" in window.session.scenario.title, QTest.qWait)
    window.session.settle()
    assert not window.docks.panel("inspector").settings.causal  # nobody has chosen it there
    maps = window.docks.panel("scenario").fields["input.head"].maps
    last = maps.list.rows.index(11, 0)
    wait_until(lambda: not maps.list.visualRect(last).isEmpty(), QTest.qWait)
    assert maps.list.viewport().rect().contains(maps.list.visualRect(last))
    window.files.open_path(SCENARIOS / "window-sinks.toml")
    wait_until(lambda: "Sliding" in window.session.scenario.title, QTest.qWait)
    window.session.settle()
    sentences = window.docks.panel("scenario").fields["input.name"].editor.list.rows
    assert sentences.item(sentences.rowCount() - 1).accessibleText() == "random numbers, seed 2"
    assert window.docks.panel("inspector").settings.causal
