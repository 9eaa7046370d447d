"""Heads of all layers in the jobs dock, of the model that reads a typed text."""

import pytest

from simulator.problem.scenario import parse_scenario
from tests.helpers.small_language_model import put_in_place
from tests.ui.panels.conftest import in_front
from tests.ui.panels.jobs.test_jobs_panel import click_row


@pytest.fixture
def window(open_window, tmp_path, monkeypatch):
    put_in_place(tmp_path, monkeypatch)
    window = open_window("flash2", (1280, 720))
    said = {"source": "sentence", "text": "the cat, the cat", "layer": 1}
    window.session.propose(parse_scenario({"input": said}), "a text")
    return in_front(window, "jobs")


def test_a_head_of_the_same_layer_comes_on_the_board_and_another_brings_its_layer(window):
    panel = window.docks.panel("jobs")
    assert panel.state.current == (1, 0)
    assert len(panel.state.report.heads) == 18
    assert panel.accessibleDescription().startswith("Jobs of all 18 heads of the model.")
    assert "The largest scores: previous token" in panel.accessibleDescription()
    click_row(panel, 6 + 4)
    window.session.settle()
    assert panel.state.current == (1, 4)
    click_row(panel, 12 + 2)
    window.session.settle()
    assert window.session.scenario.input.layer == 2
    assert panel.state.current[0] == 2
    window.session.undo_stack.undo()
    window.session.settle()
    assert window.session.scenario.input.layer == 1
