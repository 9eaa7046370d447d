"""A run with a rescale threshold: the slider that changes it, and what the board says of skips."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from simulator.run.rescales import skips
from tests.helpers.changes import change
from ui.board.words import caption_phrases, skip_phrase


@pytest.fixture
def threshold(open_window):
    """Return the session with the demo, and the panel with the slider."""
    window = open_window("rescale-threshold", (1280, 720))
    window.session.settle()
    return window.session, window.docks.panel("softmax")


def test_the_slider_changes_the_threshold_and_undo_brings_it_back(threshold):
    session, panel = threshold
    assert not panel.slider.isHidden()
    assert (panel.slider.value(), panel.words.text()) == (8, "rescale above 2^8")
    panel.slider.setFocus()
    QTest.keyClick(panel.slider, Qt.Key.Key_PageDown)
    session.settle()
    assert session.trace.workload.threshold == panel.slider.value() == 4
    assert panel.words.text() == "rescale above 2^4"
    session.undo_stack.undo()
    session.settle()
    assert session.trace.workload.threshold == 8.0
    assert panel.slider.value() == 8


def test_there_is_no_slider_where_nothing_can_be_skipped(threshold):
    session, panel = threshold
    for changes in ({"algorithm": "flash1"}, {"rescale_threshold": None}):
        change(session, {"attention": changes}, "other")
        assert panel.slider.isHidden()
        session.undo_stack.undo()
        session.settle()
        assert not panel.slider.isHidden()
    panel.show_controls(False)  # a film
    assert panel.slider.isHidden()


def test_the_caption_counts_rows_and_warps(threshold):
    session, _ = threshold
    trace = session.trace
    tile = trace.tile(1)
    moved = int((tile.alpha != 1).sum())
    kept = int(((tile.m == tile.m_prev) & (tile.m_tile > tile.m_prev)).sum())
    ops = [op.name for op in trace.program.ops(1)]
    assert skip_phrase(trace.snapshot(1, ops.index("scores"))) == ""
    now = trace.snapshot(1, ops.index("exponentials"))
    warps = sum((tile.alpha[n : n + 32] != 1).any() for n in (0, 32))
    words = f"{kept} rows skip a rescale, {moved} rescale: {warps} of 2 warps; a dot: P above 1"
    assert caption_phrases(now, 30.0)[0] == skip_phrase(now) == words
    found = skips(now)
    assert (found.moved.sum(), found.skipped.sum()) == (moved, kept)
    assert min(moved, kept) > 0
