"""The masks dock: prices that follow the slider, a mask painted by hand, and using one."""

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest

from simulator.problem.hardware import LAUNCH_SECONDS
from simulator.problem.masks import Mask
from simulator.problem.scenario import with_values
from simulator.problem.tiling import TileGrid
from simulator.program.algorithms import tile_program
from simulator.study.sparse.compressed import compressed
from simulator.study.sparse.patterns import Knobs, patterns, priced
from simulator.timing.duration import duration_of
from tests.helpers.by_hand import choosing
from ui.panels.sparse.study import picture_of
from ui.session.painting import PAINTED

PANEL, DEMO, LAYOUT = "masks", "causal", "inspector"


def settle(window, qapp) -> None:
    """Wait for the prices, and then for the errors, whose task follows them."""
    for _ in range(3):
        window.session.settle()
        qapp.processEvents()


def at(panel, i: int, j: int) -> QPoint:
    box, (tall, wide) = panel.picture.scene.where("picture"), panel.state.shape
    x = box.x() + (j + 0.5) * box.width() / wide
    y = box.y() + (i + 0.5) * box.height() / tall
    return QPoint(round(x), round(y))


def click_row(panel, name: str) -> None:
    row = [each.pattern.name for each in panel.state.rows].index(name)
    place = panel.picture.scene.where(("mask", row)).center().toPoint()
    QTest.mouseClick(panel.picture, Qt.MouseButton.LeftButton, pos=place)


@pytest.mark.long
def test_the_slider_changes_every_price(window, panel, qapp):
    trace = window.session.trace
    for k in (1, 2, 4):
        panel.blocks.setValue(k)
        settle(window, qapp)
        knobs = Knobs(panel.state.knobs.block, k)
        found = patterns(trace.workload, trace.inputs, knobs)
        own = trace.workload, trace.inputs
        assert panel.state.rows == (*priced(*own, found), *compressed(*own, knobs))
        assert f"k = {k} of " in panel.label.text()
        assert "dense: tiles 10," in panel.accessibleDescription()


def test_times_are_those_of_the_model(window, panel):
    w = panel.state.workload
    dense = panel.state.rows[0]
    own = duration_of(tile_program(replace(w, mask=dense.pattern.mask).as_algorithm("flash2")))
    assert dense.modelled
    assert dense.seconds == pytest.approx(own.seconds, rel=0.05)
    assert all(each.seconds > LAUNCH_SECONDS for each in panel.state.rows)
    assert panel.state.rows[-1].seconds > 2 * LAUNCH_SECONDS  # keys are compressed in a launch
    assert "≥" not in note_of(panel)
    least = replace(panel.state, rows=(replace(dense, modelled=False), *panel.state.rows[1:]))
    assert "≥" in note_of(panel, least)


def note_of(panel, state=None) -> str:
    return panel.study.words(state or panel.state).sentences[0]


def test_a_click_shows_a_mask(window, panel):
    click_row(panel, "window")
    assert panel.state.chosen.pattern.name == "window"
    QTest.keyClick(panel.picture, Qt.Key.Key_Down)
    assert panel.state.chosen.pattern.name == "Longformer"
    assert panel.use_button.text() == "Use"
    click_row(panel, "BigBird")
    assert panel.use_button.text() == "Use…"


@pytest.mark.long
def test_a_mask_without_blocks_is_used_at_once_and_undone(window, panel, qapp):
    before = window.session.scenario
    click_row(panel, "packed documents")
    documents = panel.state.chosen.pattern.mask.documents
    QTest.mouseClick(panel.use_button, Qt.MouseButton.LeftButton)
    settle(window, qapp)
    assert window.session.trace.workload.mask.documents == documents
    window.session.undo_stack.undo()
    window.session.settle()
    assert window.session.scenario == before


@pytest.mark.long
def test_a_mask_is_painted_and_saved(window, panel, qapp, tmp_path):
    panel.blocks.setValue(1)
    settle(window, qapp)
    click_row(panel, "window")
    grid = panel.state.chosen.pattern.mask
    shape = panel.state.shape
    seen = np.tri(*shape, dtype=bool) & ~np.tri(*shape, k=-2, dtype=bool)  # two blocks of a row
    np.testing.assert_array_equal(picture_blocks(grid, panel.state.knobs.block), seen)
    last = shape[0] - 1
    QTest.mousePress(panel.picture, Qt.MouseButton.LeftButton, pos=at(panel, last, 0))
    QTest.mouseMove(panel.picture, at(panel, last, 1))
    QTest.mouseRelease(panel.picture, Qt.MouseButton.LeftButton, pos=at(panel, last, 1))
    assert panel.state.chosen.pattern.name == PAINTED
    settle(window, qapp)
    seen[last, :2] = True
    blocks = panel.state.chosen.pattern.mask.blocks
    np.testing.assert_array_equal(blocks.table, seen)
    assert panel.state.chosen.error is not None
    # The next stroke begins on what is painted, and so clears.
    QTest.mouseClick(panel.picture, Qt.MouseButton.LeftButton, pos=at(panel, last, 0))
    seen[last, 0] = False
    np.testing.assert_array_equal(panel.state.chosen.pattern.mask.blocks.table, seen)
    settle(window, qapp)
    choosing(panel.use_button.click, tmp_path / "mine.safetensors")
    settle(window, qapp)
    mask = window.session.trace.workload.mask
    np.testing.assert_array_equal(mask.blocks.table, seen)
    assert mask.causal
    assert window.session.scenario.input.path == str(tmp_path / "mine.safetensors")


@pytest.mark.long
def test_a_picture_of_the_run_before_is_not_painted_on(window, session, panel, qapp):
    before = panel.state.workload
    last = panel.state.shape[0] - 1
    corner = at(panel, last, last)
    pressed = []

    def press() -> None:
        """Press a block that the new run does not have, before its masks have been priced."""
        pressed.append(panel.state.workload is before)
        QTest.mouseClick(panel.picture, Qt.MouseButton.LeftButton, pos=corner)

    session.trace_changed.connect(press)
    tables = {"attention": {"seqlen_q": 4, "seqlen_k": 4}, "input": {"source": "random"}}
    session.propose(with_values(session.scenario, tables), "size")
    settle(window, qapp)
    assert pressed == [True]
    assert session.painting.mask is None
    QTest.mouseClick(panel.picture, Qt.MouseButton.LeftButton, pos=at(panel, 0, 0))
    assert panel.state.workload is session.trace.workload


@pytest.mark.long
def test_no_file_is_no_mask(window, panel):
    before = window.session.scenario
    click_row(panel, "BigBird")
    choosing(panel.use_button.click, None)
    assert window.session.scenario == before


def picture_blocks(mask: Mask, size: int) -> np.ndarray:
    return TileGrid(mask, size, size).kinds() > 0


def test_the_picture_is_the_mask(window, panel):
    mask = panel.state.chosen.pattern.mask
    seen = mask.visible(range(mask.seqlen_q), range(mask.seqlen_k))
    np.testing.assert_array_equal(picture_of(mask), 2 * seen)


@pytest.mark.long
def test_the_compressed_branch_has_a_price_and_is_no_mask_to_run_with(window, panel, qapp):
    names = [each.pattern.name for each in panel.state.rows]
    assert names[-1] == "NSA, compressed"
    panel.picture.setFocus()
    for _ in names[1:]:
        assert panel.use_button.isEnabled()
        QTest.keyClick(panel.picture, Qt.Key.Key_Down)
    assert panel.state.chosen.pattern.name == names[-1]
    assert not panel.use_button.isEnabled()
    assert "first branch" in panel.accessibleDescription()
