"""A typed text that goes on in the generation dock: the text so far, and the next tokens."""

import pytest
from PySide6.QtCore import QRectF, Qt
from PySide6.QtTest import QTest

from simulator.problem.scenario import parse_scenario
from simulator.study.generation.steps import TOKENS, generation_of
from simulator.study.generation.typed import GREEDY
from tests.helpers.drawn_words import drawn_words
from tests.helpers.runs import scenario
from tests.helpers.small_language_model import put_in_place
from tests.ui.panels.conftest import in_front
from ui.panels.generation.next_token import chance_text, quoted

PANEL, TEXT = "generation", "the cat"


@pytest.fixture
def window(open_window, tmp_path, monkeypatch):
    put_in_place(tmp_path, monkeypatch)
    window = open_window("flash2", (1280, 720))
    typed = parse_scenario({"input": {"source": "sentence", "text": TEXT}})
    window.session.propose(typed, "a text")
    return in_front(window, PANEL)


@pytest.mark.long
def test_a_typed_text_shows_what_may_come_next(panel):
    said = panel.state.found.continuation
    assert panel.bar.buttons["shows", "next"].isChecked()
    assert panel.plot.isHidden()
    assert panel.bar.lists["way"].isHidden()
    first = said.tokens[0]
    title = f"Token 1 of {TOKENS}: {quoted(first.text)} was drawn"
    assert panel.accessibleDescription().startswith(title)
    assert "It shows mechanisms, not knowledge." in panel.accessibleDescription()
    assert f"has {chance_text(first.warmer[0])} at T = 1, " in panel.accessibleDescription()
    words = drawn_words(panel.picture.scene.paint, QRectF(panel.picture.rect()))
    painted = [each.text for each in words]
    assert {quoted(text) for text, _ in first.top} & set(painted)
    assert chance_text(first.chance) in painted


@pytest.mark.long
def test_the_slider_goes_through_the_text(panel):
    panel.slider.setValue(0)
    assert panel.accessibleDescription().startswith("Your text, 7 tokens: what may come next")
    panel.slider.setValue(TOKENS)
    said = panel.state.found.continuation
    assert panel.accessibleDescription().startswith(f"Token {TOKENS} of {TOKENS}: ")
    QTest.mouseClick(panel.buttons["play"], Qt.MouseButton.LeftButton)
    assert panel.slider.maximum() == len(said.tokens)


@pytest.mark.long
def test_another_draw_is_another_text(window, panel):
    before = panel.state.found.continuation
    for value in ("1", GREEDY):
        panel.choose("draw", value)
        window.session.settle()
        after = panel.state.found.continuation
        assert after.draw == value
        expected = generation_of(window.session.trace, 0, draw=value).continuation
        assert after.tokens == expected.tokens
        assert after.tokens != before.tokens
    assert "The most probable token each time" in panel.accessibleDescription()


@pytest.mark.long
def test_its_steps_cost_what_those_of_other_runs_do(panel):
    QTest.mouseClick(panel.bar.buttons["shows", "bytes"], Qt.MouseButton.LeftButton)
    assert not panel.plot.isHidden()
    assert not panel.bar.lists["way"].isHidden()
    assert "sentence model, layer 0" in panel.plot.model.note
    assert "one query, 8 keys" in panel.state.words


@pytest.mark.long
def test_without_a_typed_text_there_are_no_next_tokens(window, panel):
    window.session.propose(scenario("flash2", nq=12, d=8), "random numbers")
    window.session.settle()
    assert panel.chosen["shows"] == "bytes"
    assert panel.bar.lists["draw"].isHidden()
    assert not panel.plot.isHidden()


@pytest.mark.parametrize(
    ("chance", "words"),
    [(1, "100 %"), (0.9997, "> 99.9 %"), (0.1049, "10 %"), (0.0312, "3.1 %"), (1e-4, "< 0.1 %")],
)
def test_small_chances_are_said_to_be_small(chance, words):
    assert chance_text(chance) == words
