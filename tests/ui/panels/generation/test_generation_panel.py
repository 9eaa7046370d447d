"""The generation dock in the window: a step as a picture, all steps as a plot."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from simulator.lesson.tables import ChooseTable


@pytest.fixture
def window(open_window, qapp):
    window = open_window("inspector", (1280, 720))
    QTest.keyClick(window, Qt.Key.Key_Q)
    qapp.processEvents()
    window.session.settle()
    return window


def panel_of(window):
    return window.docks.panel("generation")


def pixels(picture):
    return picture.grab().toImage()


def test_the_key_opens_it_with_the_first_step(window):
    panel = panel_of(window)
    assert window.docks["generation"].isVisible()
    assert panel.picture.state.at == panel.slider.value() == 1
    assert [len(step.rows) for step in panel.found.steps] == [9] + [1] * 9
    assert "one query, 10 keys" in panel.picture.state.words[0]


def test_curves_are_the_steps(window):
    panel = panel_of(window)
    for quantity in ("flops", "time", "bytes"):
        QTest.mouseClick(panel.bar.buttons["shows", quantity], Qt.MouseButton.LeftButton)
        for cached, curve in zip((True, False), panel.plot.model.curves, strict=True):
            assert curve.xs == tuple(step.keys for step in panel.found.steps)
            assert curve.ys == tuple(step.of(quantity, cached=cached) for step in panel.found.steps)


def test_a_click_on_a_point_and_the_slider_show_a_step(window):
    panel = panel_of(window)
    before = pixels(panel.picture)
    panel.take(panel.plot.model.curves[0].picks[5])
    assert panel.slider.value() == panel.picture.state.at == 5
    assert panel.plot.model.levels[0].label == "step 5"
    assert pixels(panel.picture) != before
    panel.slider.setValue(0)
    assert panel.picture.state.words[0].startswith("The prompt")


def test_several_queries_at_once(window):
    panel = panel_of(window)
    panel.choose("at once", "4")
    window.session.settle()
    assert [len(step.rows) for step in panel.found.steps] == [9, 4, 4, 1]
    assert "4 queries at once" in panel.picture.state.words[0]


def test_rows_are_those_of_one_pass(window):
    panel = panel_of(window)
    panel.take_choices(ChooseTable(generation="equal"))
    unmasked, apart = panel.plot.model.curves
    assert max(apart.ys) < 1e-5 < min(unmasked.ys)
    assert unmasked.xs == apart.xs[1:]
    assert "those of one pass" in panel.plot.model.note


def test_a_run_that_was_not_generated_is_replaced_by_a_layer(open_window, qapp):
    window = open_window("kv-cache", (1280, 720))
    QTest.keyClick(window, Qt.Key.Key_Q)
    qapp.processEvents()
    window.session.settle()
    assert panel_of(window).found.workload.file is not None
