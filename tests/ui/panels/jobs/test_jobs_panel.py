"""The jobs dock in the window: its table, distances, training, and heads that are switched off."""

import shutil

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from simulator.base.assets import CAPTURES, SCENARIOS
from simulator.lesson.tables import ChooseTable
from simulator.problem.scenario import load_scenario, with_values
from simulator.program.playback import Cursor
from simulator.study.jobs.attention_only import figures, read_model
from simulator.study.jobs.jobs import JOBS, head_distances
from tests.helpers.by_hand import press
from tests.helpers.pointer import click
from ui.panels.jobs.words import columns, notes, pairs, title

TITLES = [job.title for job in JOBS]
PANEL, DEMO, LAYOUT = "jobs", "induction", "inspector"


@pytest.fixture(scope="module")
def model():
    return read_model(CAPTURES / "small")


def column(panel, heading):
    return next(each for each in columns(panel.state.report) if each.headings[0] == heading)


def click_row(panel, at) -> None:
    click(panel.picture, panel.picture.scene.where(("head", at)).center())
    panel.window().session.settle()


@pytest.mark.long
def test_the_table_has_the_scores_of_every_head(panel, model):
    found = figures(model, 2000)
    assert [each.headings[0] for each in columns(panel.state.report)][:6] == TITLES
    for n, job in enumerate(JOBS):
        shown = column(panel, job.title)
        for text, value in zip(shown.texts, found.jobs.scores[:, n], strict=True):
            assert text == ("–" if np.isnan(value) else f"{value:.2f}")
    assert column(panel, "Y moves").texts[7] == f"{100 * found.shares[7]:.0f} %"
    assert column(panel, "loss, sentences").after[1] == f"{found.loss['sentences']:.3f}"
    assert title(panel.state.report) == "Jobs of all 8 heads of the model after 2\u2009000 steps"
    assert "layer 1 head 3: " in panel.accessibleDescription()
    assert panel.state.current == (1, 0)  # the board's


@pytest.mark.long
def test_another_head_on_the_board_is_framed(session, panel):
    session.go(Cursor(session.trace.program.index(3, 0, 0), 0))
    session.settle()
    assert panel.state.current == (1, 3)


@pytest.mark.long
def test_a_click_switches_a_head_off_and_another_click_on(window, panel, model, qapp):
    before = column(panel, "induction").texts
    assert before[7] == "0.97"
    click_row(panel, 3)
    assert panel.state.off == (0, 3)
    without = figures(model, 2000, {(0, 3)})
    after = column(panel, "induction").texts
    assert after[7] == f"{without.jobs.of('induction')[7]:.2f}" == "0.01"
    assert after[:4] == before[:4]
    said = next(notes(panel.state.report))
    assert said.startswith("Without layer 0 head 3: induction of layer 1 head 3 from 0.97 to 0.01")
    assert said.endswith(f"to {without.loss['again']:.3f}.")
    assert panel.bar.lists["off"].currentText() == "without layer 0 head 3"
    press(panel, "show", "training")
    assert panel.plot.model.note.startswith("Without layer 0 head 3, best heads")
    press(panel, "show", "jobs")
    # What each head alone does is still compared with all heads on.
    assert column(panel, "loss, next known").after[1] == "0.003"
    click_row(panel, 3)
    assert panel.state.off is None
    assert column(panel, "induction").texts == before
    assert panel.bar.lists["off"].currentText() == "every head on"


@pytest.mark.long
def test_a_head_is_switched_off_from_the_list_by_keys(window, panel):
    box = panel.bar.lists["off"]
    box.setFocus()
    for _ in range(8):
        QTest.keyClick(box, Qt.Key.Key_Down)
    window.session.settle()
    assert panel.state.off == (1, 3)
    for _ in range(8):
        QTest.keyClick(box, Qt.Key.Key_Up)
    window.session.settle()
    assert panel.state.off is None


def test_distances_are_shown_with_the_nearest_and_the_farthest_pair(window, panel, model, qapp):
    press(panel, "show", "distances")
    apart = head_distances(figures(model, 2000).weights)
    np.testing.assert_array_equal(panel.state.report.distances, apart)
    lower = apart[np.tril_indices(8, -1)]
    near, far, _ = pairs(panel.state.report)
    assert near == (f"{lower.min():.2f}, most alike: layer 1 head 2 and layer 1 head 3")
    assert far.startswith(f"{lower.max():.2f}, least alike: layer 0 head 3 and")
    assert far in panel.accessibleDescription()


@pytest.mark.long
def test_training_shows_when_the_head_appears_and_the_loss_falls(window, panel, model, qapp):
    press(panel, "show", "training")
    assert panel.plot.isVisible()
    assert panel.losses.isVisible()
    scores = {curve.name: curve for curve in panel.plot.model.curves}
    losses = {curve.name: curve for curve in panel.losses.model.curves}
    course = [figures(model, moment.step) for moment in model.moments]
    assert scores["induction"].xs == losses["next known"].xs == tuple(each.step for each in course)
    assert scores["induction"].ys == tuple(each.jobs.of("induction").max() for each in course)
    assert losses["next known"].ys == tuple(each.loss["again"] for each in course)
    assert losses["sentences"].ys == tuple(each.loss["sentences"] for each in course)
    assert "layer 1 head 3" in scores["induction"].details[-1]
    assert [level.value for level in panel.plot.model.levels] == [2000.0]
    # Both have the same axis of steps, pixel by pixel.
    places = [plot.plot_layout().frame.plot for plot in (panel.plot, panel.losses)]
    assert (places[0].left(), places[0].right()) == (places[1].left(), places[1].right())
    for words in ("induction 0.05 to 0.97", "next known 4.077 to 0.003"):
        assert words in panel.accessibleDescription()


@pytest.mark.long
def test_a_click_on_a_moment_opens_its_layer(window, session, panel, qapp):
    press(panel, "show", "training")
    count = session.undo_stack.count()
    at = panel.losses.where(400.0, panel.losses.model.curves[0].ys[5])
    QTest.mouseClick(
        panel.losses.surface, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier,
        at.toPoint(),
    )  # fmt: skip
    session.settle()
    assert session.trace.workload.file.path.name == "step-0400-layer1.safetensors"
    assert session.undo_stack.count() == count + 1
    assert panel.state.report.training.step == 400
    assert [level.value for level in panel.plot.model.levels] == [400.0]
    session.undo_stack.undo()
    session.settle()
    assert session.trace.workload.file.path.name == "step-2000-layer1.safetensors"


@pytest.mark.long
@pytest.mark.parametrize("demo", ["induction-early"])
def test_an_early_moment_has_no_induction_head(panel):
    assert max(column(panel, "induction").values) < 0.1
    assert title(panel.state.report).endswith("after 300 steps")


@pytest.mark.parametrize("demo", ["induction-by-hand"])
def test_by_hand_every_job_is_exact_and_there_is_no_training(panel):
    assert title(panel.state.report) == "Jobs of all 4 heads of the model"
    assert column(panel, "induction").texts == ("0.00", "0.00", "1.00", "0.00")
    assert column(panel, "previous token").texts[0] == "1.00"
    assert column(panel, "Y moves").texts == ("100 %", "0 %", "100 %", "0 %")
    assert not panel.bar.buttons["show", "training"].isEnabled()


@pytest.mark.parametrize("demo", ["inspector"])
def test_a_capture_has_jobs_but_nothing_to_switch_off_and_a_click_shows_a_head(window, panel):
    assert title(panel.state.report) == "Jobs of 12 heads"
    assert [each.headings[0] for each in columns(panel.state.report)] == TITLES
    assert panel.bar.lists["off"].isHidden()
    before = panel.state.report
    click_row(panel, 2)
    assert window.session.view.snapshot.visit.head == 2  # it is on the board instead
    assert panel.state.current == (None, 2)
    assert panel.state.report is before
    assert panel.state.off is None


@pytest.mark.long
def test_another_run_forgets_what_was_shown(window, session, panel, qapp):
    press(panel, "show", "training")
    click = with_values(session.scenario, {"attention": {"temperature": 2.0}})
    session.propose(click, "temperature")
    session.settle()
    assert panel.state.report.training is None
    assert title(panel.state.report) == "Jobs of 4 heads"
    assert panel.picture.isVisible()  # there is no training to show
    assert panel.bar.buttons["show", "jobs"].isChecked()
    session.undo_stack.undo()
    session.settle()
    assert panel.state.report.training is not None


@pytest.mark.long
def test_a_lesson_chooses_the_picture_and_the_head_that_is_off(window, qapp):
    window.docks.choose("inspector", ChooseTable(jobs="distances", off=(0, 3)))
    panel = window.docks.panel(PANEL)  # the lesson's own
    window.session.settle()
    qapp.processEvents()
    assert panel.bar.buttons["show", "distances"].isChecked()
    assert panel.state.off == (0, 3)
    window.docks.choose("inspector", ChooseTable())
    window.session.settle()
    assert panel.state.shows == "jobs"
    assert panel.state.off is None


@pytest.mark.parametrize("demo", ["flash2"])
def test_a_model_that_cannot_be_read_is_told_in_one_line(window, panel, tmp_path):
    folder = tmp_path / "small"
    shutil.copytree(CAPTURES / "by-hand", folder)
    (folder / "held-out.safetensors").write_bytes(b"nothing")
    scenario = load_scenario(SCENARIOS / "induction-by-hand.toml")
    path = str(folder / "step-0000-layer1.safetensors")
    told = []
    window.session.refused.connect(told.append)
    window.session.propose(with_values(scenario, {"input": {"path": path}}), "damaged")
    window.session.settle()
    assert len(told) == 1
    assert "held-out.safetensors" in str(told[0])
    assert "\n" not in str(told[0])
    assert panel.state is None


@pytest.mark.long
@pytest.mark.parametrize("demo", ["split-kv"])
def test_heads_that_are_packed_into_one_are_told_apart(session, panel):
    w = session.trace.workload
    assert w.group > 1
    assert len(panel.state.report.heads) == w.heads * w.group
    last = len(panel.state.report.heads) - 1
    click_row(panel, last)
    view = session.view
    assert w.single(view.snapshot.visit.head, view.report.row)[0] == last
    assert panel.state.current == (None, last)
