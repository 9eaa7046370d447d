"""The header: what it leaves out where there is no room."""

from __future__ import annotations

import pytest

from simulator.problem.scenario import with_values
from simulator.problem.workload import resolve
from simulator.program.algorithms import ALGORITHMS, BASELINE
from tests.helpers.runs import scenario
from ui.look.run_words import scenario_words
from ui.look.theme import TEXT_SCALES


def with_fault(window):
    """Show a run whose header says most: a fault as a chip and in the badge."""
    changed = with_values(window.session.scenario, {"faults": {"forget_alpha": True}})
    window.session.propose(changed, "fault")
    window.session.settle()


@pytest.mark.parametrize(
    ("heads", "kv_heads", "head", "words"),
    [
        (12, 4, [3], "GQA 12:4 · head 3"),
        (12, 4, [0, 3, 11], "GQA 12:4 · heads 0, 3, 11"),
        (12, 1, [0, 1, 2, 3, 4], "MQA 12:1 · 5 of the heads"),
        (12, 4, None, "GQA 12:4"),
        (12, 12, [0], "MHA 12:12 · head 0"),
        (1, 1, None, "MHA 1:1"),
    ],
)
def test_a_chip_tells_how_the_heads_share_whichever_of_them_run(heads, kv_heads, head, words):
    chosen = scenario(heads=heads, kv_heads=kv_heads, head=head)
    assert words in scenario_words(resolve(chosen))


@pytest.mark.parametrize("scale", TEXT_SCALES)
def test_a_fault_and_long_work_make_no_window_wider(open_window, settings, qapp, qtbot, scale):
    settings.text_scale = scale
    width = 1024 if scale == 1 else 1280
    window = open_window("flash2", (width, 720))
    with_fault(window)
    qapp.processEvents()
    assert window.header.minimumSizeHint().width() <= width
    assert window.width() == width
    assert window.header.engine.isVisible()
    assert "faults on" in window.header.engine.toolTip()
    window.header.progress.show_progress("random vectors", 0.2, 12.0)
    qtbot.waitUntil(window.header.progress.isVisible)
    qapp.processEvents()
    assert window.width() == width


def test_the_brand_goes_before_the_badge_loses_letters(open_window, settings, qapp):
    settings.text_scale = 2.0
    window = open_window("flash2", (860, 720))
    header = window.header
    assert header.brand.isVisible()
    with_fault(window)
    qapp.processEvents()
    assert not header.brand.isVisible()
    assert header.engine.width() >= header.engine.width_of(header.engine.text())
    settings.text_scale = 1.0
    window.resize(1900, 720)
    qapp.processEvents()
    assert header.brand.isVisible()


def test_a_window_with_large_text_gets_as_small_as_a_small_screen(open_window, settings, qapp):
    settings.text_scale = 2.0
    window = open_window("flash2", (1280, 720))
    window.resize(1024, 720)
    qapp.processEvents()
    assert window.width() == 1024


def test_where_the_buttons_have_no_room_one_stands_for_all(open_window, settings, qapp):
    settings.text_scale = 1.5
    window = open_window("flash2", (1280, 720))
    chooser, row = window.header.algorithms.chooser, window.header.algorithms.row
    assert chooser.isVisible()
    assert not row.isVisible()
    assert chooser.text().startswith(ALGORITHMS["flash2"].short_title[:5])
    actions = chooser.menu().actions()
    assert [action.text() for action in actions] == [each.title for each in ALGORITHMS.values()]
    actions[0].trigger()
    window.session.settle()
    assert window.session.scenario.attention.algorithm == BASELINE.name
    assert chooser.text().startswith(BASELINE.short_title)
    window.resize(3840, 720)
    qapp.processEvents()
    assert row.isVisible()
    assert not chooser.isVisible()


def test_the_tool_tip_of_the_chips_says_what_they_mean(open_window, qapp):
    window = open_window("batch", (1920, 1080))
    chips = next(
        w for w in window.header.children() if getattr(w, "accessibleName", str)() == "Scenario"
    )
    words = scenario_words(window.session.trace.workload, asked=False)
    lines = chips.toolTip().splitlines()
    assert "rows (Br): Query rows of a tile." in lines
    assert "cols (Bc): Keys of a tile." in lines
    assert not set(words[:2]) & set(lines)
    left_out = [word for word in words if word in lines]
    assert left_out  # there is no space for them
    assert lines[: len(left_out)] == left_out == words[-len(left_out) :]
    assert "rows (Br): Query rows of a tile." in lines
