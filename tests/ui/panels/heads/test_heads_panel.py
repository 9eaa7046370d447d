"""The head sharing dock in the window: figures, the slider that changes the scenario, undo."""

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QColor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QStyle, QStyleOptionSlider

from simulator.base.assets import LESSONS
from simulator.problem.models import models
from simulator.problem.scenario import parse_scenario, with_values
from simulator.problem.workload import resolve
from simulator.study.heads.sharing import all_sharings, head_sharing, kv_head_counts
from tests.helpers.changes import change
from tests.helpers.scenario_desk import CAPTURE
from ui.board.words import sharing_choices
from ui.look.theme import THEMES
from ui.look.units import count_text, decimal_bytes_text
from ui.panels.heads.painter import (
    UNKNOWN,
    group_colour,
    model_state,
    notes,
    read_bytes,
    rows,
    scenario_state,
    state_words,
    token_bytes,
    way_name,
)

PANEL, DEMO, LAYOUT = "heads", "grouped-heads", "cache"


def handle(slider) -> QPoint:
    option = QStyleOptionSlider()
    slider.initStyleOption(option)
    part = QStyle.SubControl.SC_SliderHandle
    control = QStyle.ComplexControl.CC_Slider
    return slider.style().subControlRect(control, option, part, slider).center()


def drag(slider, share: float) -> None:
    start = handle(slider)
    end = QPoint(round(share * (slider.width() - 1)), start.y())
    QTest.mousePress(slider, Qt.MouseButton.LeftButton, pos=start)
    QTest.mouseMove(slider, end)
    QTest.mouseRelease(slider, Qt.MouseButton.LeftButton, pos=end)


def test_dragging_the_slider_changes_the_scenario_and_undo_brings_it_back(session, panel):
    assert [way_name(way) for way in panel.state.ways] == ["MHA 6", "GQA 3", "GQA 2", "MQA 1"]
    assert panel.slider.value() == 2
    count = session.undo_stack.count()
    drag(panel.slider, 1.0)
    session.settle()
    assert session.trace.workload.kv_heads == 1
    assert session.undo_stack.count() == count + 1  # one step, however far it was dragged
    assert "KV heads 1" in session.undo_stack.undoText()
    assert "caches 1/6 of what MHA does" in notes(panel.state)
    drag(panel.slider, 0.0)
    session.settle()
    assert "caches as much as MHA" in notes(panel.state)
    assert (session.trace.workload.heads, session.trace.workload.kv_heads) == (6, 6)
    session.undo_stack.undo()
    session.settle()
    assert panel.slider.value() == 3
    session.undo_stack.undo()
    session.settle()
    assert session.trace.workload.kv_heads == 2
    assert panel.slider.value() == 2
    assert way_name(panel.state.way) == "GQA 2"


def test_keys_change_it_and_the_board_follows(session, panel):
    panel.slider.setFocus()
    QTest.keyClick(panel.slider, Qt.Key.Key_PageDown)
    session.settle()
    assert session.trace.workload.kv_heads == 3
    words = {
        sharing_choices(session.trace.snapshot(session.trace.program.index(head, 0, 0), 0))[0]
        for head in range(6)
    }
    assert words == {
        "KV head 0 of 3: query heads 0, 1", "KV head 1 of 3: query heads 2, 3",
        "KV head 2 of 3: query heads 4, 5",
    }  # fmt: skip


def test_a_scenario_change_moves_the_slider(session, panel):
    changed = with_values(session.scenario, {"attention": {"heads": 8, "kv_heads": 4}})
    session.propose(changed, "heads")
    session.settle()
    assert [len(way.shared_by) for way in panel.state.ways] == [8, 4, 2, 1]
    assert panel.slider.value() == 1


def test_the_figures_of_a_scenario_are_the_simulators(window, panel):
    w = window.session.trace.workload
    for way, row in zip(panel.state.ways, rows(panel.state), strict=True):
        groups = len(way.shared_by)
        assert row.token == decimal_bytes_text(2 * groups * w.head_dim * 2)
        assert row.read == decimal_bytes_text(2 * groups * w.head_dim * 2 * w.seqlen_k)
        assert set(row.weights) == {"not known"}
    assert "weights not known: a scenario has no hidden width" in notes(panel.state)
    assert "not known" in panel.picture.accessibleDescription()


def test_values_of_another_width_are_counted(open_window, qapp):
    window = open_window("grouped-heads")
    session = window.session
    change(session, {"attention": {"value_dim": 48}}, "dv")
    state = scenario_state(session.trace.workload, "")
    assert token_bytes(state, state.way) == 2 * (32 + 48) * 2
    assert read_bytes(state, state.way) == 2 * (32 + 48) * 2 * 70
    assert not any("of what MHA does" in note for note in notes(state))


def state_of(**tables):
    sizes = {"heads": 6, "seqlen_q": 53, "head_dim": 20}
    chosen = {"attention": sizes, **tables}
    return scenario_state(resolve(parse_scenario(chosen)), "")


def test_a_window_caps_what_a_token_reads():
    window = {"causal": True, "window": 17, "sinks": 3}
    state = state_of(mask=window)
    whole = token_bytes(state, state.way)
    assert read_bytes(state, state.way) == (17 + 3) * whole
    assert "a token without, reads with the window's cap" in notes(state)


def test_a_latent_is_cached_once():
    latent = {"heads": 6, "seqlen_q": 3, "seqlen_k": 53, "latent_dim": 20, "rope_dim": 6}
    state = state_of(attention={"algorithm": "mla", "dtype": "float16", **latent})
    assert [way_name(way) for way in state.ways] == ["MLA 20 + 6"]
    assert token_bytes(state, state.way) == 2 * (20 + 6)
    assert read_bytes(state, state.way) == 2 * (20 + 6) * 53
    assert set(rows(state)[0].weights) == {UNKNOWN}
    assert not any("of what MHA does" in note for note in notes(state))


def test_without_a_softmax_no_keys_are_said_to_be_kept():
    linear = {"algorithm": "linear", "heads": 6, "seqlen_q": 53, "head_dim": 20}
    assert notes(state_of(attention=linear))[0].endswith("a state in the place of K and V")


@pytest.mark.long
def test_the_lesson_on_sharing_shows_groups_and_the_head_on_the_board(open_window, qapp):
    window = open_window("causal", (1280, 720))
    session = window.session
    window.lessons.open(LESSONS / "10-sharing-heads.md")
    player = window.lessons.player
    titles = [step.title for step in player.lesson.steps]
    for title, groups in (("A head of one's own", 8), ("GQA: groups share", 2)):
        player.go(titles.index("What that keeps"))  # a model is chosen there
        session.settle()
        panel = window.docks.panel("heads")  # the lesson's own
        assert panel.of == "model"
        player.go(titles.index(title))
        session.settle()
        qapp.processEvents()
        assert panel.of == "scenario"
        assert panel.isVisible()
        assert window.board.isVisible()
        assert session.view.snapshot.weights is not None, "the board is not empty"
        assert [len(each) for each in panel.state.way.shared_by] == [8 // groups] * groups
        assert panel.state.current == session.view.snapshot.visit.head == 5
        assert "board shows query head 5" in panel.picture.accessibleDescription()
    image = panel.picture.grab().toImage()
    current = QColor(window.style_now.theme.current)
    heads = range(image.height() // 3)  # below, the table marks its row in the same colour
    marked = [x for x in range(image.width()) if any(image.pixelColor(x, y) == current
                                                     for y in heads)]  # fmt: skip
    assert 0.6 < min(marked) / image.width() < 0.65
    assert 0.74 < max(marked) / image.width() < 0.78


@pytest.mark.long
def test_where_the_heads_are_those_of_a_file_it_says_why(open_window, qapp):
    window = open_window("causal")
    session = window.session
    session.start(parse_scenario(CAPTURE), None)
    window.desk.take("cache")
    session.settle()
    panel = window.docks.panel("heads")
    before = session.scenario
    assert not panel.slider.isEnabled()
    assert "fixed" in notes(panel.state)[0]
    assert session.trace.workload.file.path.name in panel.slider.toolTip()
    drag(panel.slider, 0.9)
    session.settle()
    assert session.scenario is before


@pytest.mark.long
def test_a_model_is_drawn_and_changes_nothing(window, panel):
    before = window.session.scenario
    QTest.mouseClick(panel.bar.buttons["of", "model"], Qt.MouseButton.LeftButton)
    model, choice = models()["DeepSeek-V3"], window.session.model_choice
    choice.take(model, 4096, by_hand=True)
    assert way_name(panel.state.way) == "MLA 512 + 64"
    assert panel.slider.value() == panel.slider.maximum()
    found = rows(panel.state)[-1]
    own = head_sharing(model)
    assert found.token == decimal_bytes_text(own.bytes_per_token()) == "70.27 kB"
    assert found.read == decimal_bytes_text(own.read_bytes(4096))
    parts = [own.parameters(part) for part in ("W_Q", "W_K", "W_V", "W_O")]
    assert list(found.weights) == [count_text(n) for n in (*parts, own.parameters())]
    drag(panel.slider, 0.0)
    window.session.settle()
    assert way_name(panel.state.way) == "MHA 128"
    assert window.session.scenario is before
    choice.take(model, 32768, by_hand=True)
    assert way_name(panel.state.way) == "MHA 128"  # another length keeps the way
    assert panel.state.tokens == 32768
    QTest.mouseClick(panel.bar.buttons["of", "scenario"], Qt.MouseButton.LeftButton)
    assert way_name(panel.state.way) == "GQA 2"


@pytest.mark.parametrize("name", models())
def test_every_model_shows_all_its_ways(name):
    model = models()[name]
    state = model_state(model, None, 4096, "float16")
    assert head_sharing(model).shared_by == state.way.shared_by
    counts = [way.model.kv_heads for way in state.ways if way.kind != "MLA"]
    assert counts == list(kv_head_counts(model.heads))
    assert len(rows(state)) == len(all_sharings(model))
    assert name in state_words(state)


@pytest.mark.long
def test_one_head_has_nothing_to_share(open_window):
    window = open_window("grouped-heads")
    window.desk.take("cache")
    single = {"heads": 1, "kv_heads": 1}
    change(window.session, {"attention": single}, "one")
    panel = window.docks.panel("heads")
    assert not panel.slider.isEnabled()
    assert "one head: nothing to share" in notes(panel.state)


@pytest.mark.parametrize("theme", THEMES.values(), ids=lambda theme: theme.name)
def test_k_and_v_of_shared_heads_have_their_own_colours(qapp, theme):
    def hue_distance(colour, name):
        away = abs(colour.hsvHue() - theme.tensor(name).hsvHue())
        return min(away, 360 - away)

    for tensor in "QKV":
        one, other = (group_colour(theme, tensor, group) for group in (0, 1))
        assert one == theme.tensor(tensor)
        assert one.lightness() != other.lightness()
        for name in "QKV":
            assert (hue_distance(other, name) < 15) == (name == tensor)
