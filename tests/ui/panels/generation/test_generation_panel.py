"""The generation dock in the window: a step as a picture, all steps as a plot."""

import time
from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from simulator.lesson.tables import ChooseTable
from simulator.problem.hardware import LAUNCH_SECONDS
from simulator.problem.masks import Mask
from simulator.program.algorithms import tile_program
from simulator.timing.duration import duration_of
from tests.helpers.painted import record_texts
from tests.ui.panels.conftest import in_front
from ui.plots import painter

PANEL = "generation"


@pytest.fixture(scope="module")
def shared(open_for_all, qapp):
    return in_front(open_for_all("inspector", (1280, 720)), PANEL)


@pytest.fixture
def window(shared):
    """One window for all tests; each begins with what the panel shows at first."""
    shared.set_motion(False)
    shared.session.clock.now = time.monotonic
    panel = shared.docks.panel(PANEL)
    panel.play(False)
    panel.take_choices(ChooseTable())
    shared.session.settle()
    return shared


def pixels(picture):
    return picture.grab().toImage()


def test_it_is_made_when_it_is_opened_with_the_first_step(window, panel):
    assert window.docks["generation"].isVisible()
    assert panel.state.at == panel.slider.value() == 1
    assert [len(step.rows) for step in panel.state.found.steps] == [9] + [1] * 9
    assert "one query, 10 keys" in panel.state.words


def test_curves_are_the_steps(panel):
    for quantity in ("flops", "time", "bytes"):
        QTest.mouseClick(panel.bar.buttons["shows", quantity], Qt.MouseButton.LeftButton)
        for cached, curve in zip((True, False), panel.plot.model.curves, strict=True):
            assert curve.xs == tuple(step.keys for step in panel.state.found.steps)
            assert curve.ys == tuple(
                step.of(quantity, cached=cached) for step in panel.state.found.steps
            )


def test_times_are_those_of_the_model(panel):
    step = panel.state.found.steps[3]
    w = panel.state.found.workload
    for cached, rows in ((True, len(step.rows)), (False, step.keys)):
        mask = Mask(rows, step.keys, causal=True)
        own = replace(w, seqlen_q=rows, seqlen_k=step.keys, mask=mask)
        exact = duration_of(tile_program(own))
        assert exact.model
        assert step.of("time", cached=cached) == pytest.approx(exact.seconds, rel=0.05)
        assert step.of("time", cached=cached) > LAUNCH_SECONDS
    panel.bar.choose("shows", "time")
    assert panel.plot.model.y.title == "time of a step, by model"


def test_a_click_on_a_point_and_the_slider_show_a_step(panel):
    before = pixels(panel.picture)
    panel.pick(panel.plot.model.curves[0].picks[5])
    assert panel.slider.value() == panel.state.at == 5
    assert panel.plot.model.levels[0].label == "step 5"
    assert pixels(panel.picture) != before
    panel.slider.setValue(0)
    assert panel.state.words.startswith("The prompt")


def test_several_queries_at_once(window, panel):
    panel.choose("at once", "4")
    window.session.settle()
    assert [len(step.rows) for step in panel.state.found.steps] == [9, 4, 4, 1]
    assert "4 queries at once" in panel.state.words


def test_rows_are_those_of_one_pass(panel):
    panel.take_choices(ChooseTable(generation="equal"))
    unmasked, apart = panel.plot.model.curves
    assert max(apart.ys) < 1e-5 < min(unmasked.ys)
    assert unmasked.xs == apart.xs[1:]
    assert "those of one pass" in panel.plot.model.note


@pytest.mark.parametrize(("way", "answer"), [
    ("cache", "With the causal mask the rows of all steps are those of one pass, up to "),
    ("again", "With the causal mask the rows of all steps are those of one pass, up to "),
    ("no mask", "Without the causal mask a new key moves old rows by up to "),
])  # fmt: skip
def test_a_low_panel_keeps_the_answer_longest(window, panel, monkeypatch, way, answer):
    panel.take_choices(ChooseTable(generation="equal", way=way))
    drawn = record_texts(monkeypatch, painter)
    panel.plot.grab()
    shown = " ".join(one.text for one in drawn)
    assert answer in shown
    assert panel.plot.model.note.startswith(answer)
    assert panel.plot.model.note.endswith(f" {window.session.trace.workload.file.title}.")
    for words in ("one pass, up to", "a new key moves old rows", "K and V can be kept"):
        assert words in panel.plot.model.note  # where there is room all is told


def test_sums_are_those_of_all_steps_so_far(panel):
    panel.bar.choose("sums", "summed")
    for cached, curve in zip((True, False), panel.plot.model.curves, strict=True):
        assert curve.ys == panel.state.found.so_far("bytes", cached=cached)
        assert curve.picks[-1] == panel.slider.maximum()
    assert "all steps so far" in panel.plot.model.y.title
    panel.slider.setValue(0)  # the prompt has no sum, and no line where it would be
    assert panel.plot.model.levels == ()


def test_ways_say_what_a_step_computes(panel):
    panel.pick(5)
    state, kept = panel.state, pixels(panel.picture)
    assert state.fresh == state.step.rows
    panel.bar.choose("way", "again")
    assert panel.state.fresh == range(14)
    assert "K and V of 14 tokens" in panel.accessibleDescription()
    again = pixels(panel.picture)
    panel.bar.choose("way", "no mask")
    assert "old rows of O move by up to" in panel.accessibleDescription()
    assert kept != again != pixels(panel.picture) != kept


def test_a_step_docks_and_its_row_comes_down(window, panel, session, qapp):
    panel.pick(3)
    rest = pixels(panel.picture)
    window.set_motion(True)
    panel.slider.setValue(4)
    assert panel.clock.running
    assert panel.state.share == 0
    begun = pixels(panel.picture)
    assert panel.state.docked == panel.state.down == 0
    at = session.clock.now()
    session.clock.now = lambda: at + panel.clock.seconds / 2
    panel.clock.tick()
    assert panel.state.docked == 1
    assert 0 < panel.state.down < 1
    half = pixels(panel.picture)
    session.clock.now = lambda: at + 2 * panel.clock.seconds
    panel.clock.tick()
    assert not panel.clock.running
    assert panel.state.share == 1
    assert begun != rest
    assert half not in (begun, pixels(panel.picture))
    panel.slider.setValue(3)  # back, and by more than one, a step is there at once
    assert not panel.clock.running
    panel.slider.setValue(5)
    assert panel.state.share == 1


def test_generate_goes_to_the_last_step_and_begins_again_with_the_prompt(window, panel, session):
    window.set_motion(True)
    panel.pick(7)
    QTest.mouseClick(panel.play_button, Qt.MouseButton.LeftButton)
    assert (panel.playing, panel.state.at) == (True, 8)
    at = session.clock.now()
    for n in (1, 2):
        session.clock.now = lambda n=n: at + 2 * n * panel.clock.seconds
        panel.clock.tick()
    assert (panel.playing, panel.state.at) == (False, 9)
    assert "that of one causal pass" in panel.state.words
    panel.play_button.click()
    assert panel.state.at == 1
    window.set_motion(False)
    panel.clock.tick()
    assert not panel.playing
    panel.play_button.click()  # without motion the last step is there at once
    assert (panel.playing, panel.state.at) == (False, 9)


def test_a_lesson_chooses_a_step_of_a_run_that_is_not_there_yet(window, panel):
    panel.take_choices(ChooseTable(step=3, way="again", summed=True, at_once=2))
    assert panel.state.at == 3
    window.session.settle()
    assert (panel.state.at, panel.state.found.at_once, panel.state.summed) == (3, 2, True)
    panel.take_choices(ChooseTable(step=9))
    window.session.settle()
    assert (panel.state.at, panel.state.found.at_once, panel.state.way) == (9, 1, "cache")


@pytest.mark.long
def test_a_run_that_was_not_generated_is_replaced_by_a_layer(open_window, qapp):
    window = open_window("kv-cache", (1280, 720))
    window.docks.open("generation")
    qapp.processEvents()
    window.session.settle()
    assert window.docks.panel(PANEL).state.found.workload.file is not None
