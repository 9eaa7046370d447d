"""The race in the Compare panel: its words, its bars and units, and the session's clock."""

import re
from collections.abc import Callable
from functools import cache
from itertools import pairwise

import pytest
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QImage
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from simulator.base.assets import SCENARIOS
from simulator.problem.scenario import load_scenario, with_values
from simulator.study.compare import comparison_of
from simulator.study.race import RUN_SECONDS, Race, race_of
from tests.helpers.painted import painted
from tests.helpers.runs import program_of
from ui.kit.boxes import Scene, scene
from ui.look.theme import DARK, Style
from ui.look.units import bytes_of_text, clock_text
from ui.panels.compare.panel import ComparePanel
from ui.panels.compare.race import idle_words, race_notes, verdict
from ui.panels.compare.study import COMPARE, CompareFound, CompareState
from ui.panels.compare.words import SAME
from ui.panels.study_panel import whole
from ui.window.main_window import MainWindow

pytestmark = pytest.mark.usefixtures("qapp")
NAMES = ("causal", "flash1", "split-kv", "real-scale", "large-logits", "window-sinks", "kv-cache")
LEFT = Qt.MouseButton.LeftButton


@cache
def race(name: str) -> Race:
    return race_of(program_of(load_scenario(SCENARIOS / f"{name}.toml")))


def seen(run: Race, share: float) -> tuple[Scene, QImage]:
    """Return the boxes of a race, and their picture, at a share of its time."""
    state = CompareState(CompareFound(run.comparison, run), chosen="race", share=share)
    boxes = scene(whole(COMPARE, state), Style(DARK), QRectF(0, 0, 1200, 620))
    return boxes, painted(boxes.paint, 1200, 620)


# --- words -------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_a_factor_says_what_of_it_is_the_mask(name):
    """Naive attention computes hidden scores, too: that is no gain of tiles."""
    run = race(name)
    w = run.workload
    said = verdict(run)[2][0]
    found = re.search(r"([\d.]+)× by tiles on chip, and ([\d.]+)× because", said)
    assert (found is not None) == (w.mask.hides and run.mask_factor > SAME)
    if found:
        tiles, mask = map(float, found.groups())
        assert tiles * mask == pytest.approx(run.time_factor, rel=0.01)
        assert mask > 1


@pytest.mark.long
def test_the_rest_of_the_factor_is_that_of_a_run_without_a_mask():
    chosen = load_scenario(SCENARIOS / "causal.toml")
    masked = race("causal")
    assert masked.mask_factor > SAME
    dense = race_of(program_of(with_values(chosen, {"mask": {"causal": False}})))
    assert masked.tiles_factor == dense.tiles_factor == dense.time_factor
    assert dense.mask_factor == 1
    naive, same = (each.lanes[0].total.counters.bytes for each in (masked, dense))
    assert naive == same  # it skips nothing


def test_a_part_has_the_unit_of_the_whole():
    assert bytes_of_text(1, 2**20) == "0.0 of 1.0 MiB"
    assert bytes_of_text(7, 12) == "7 of 12 B"
    assert clock_text(5e-9, 7.2e-4) == "0.0 µs"
    assert clock_text(1.5e-6, 7.2e-4) == "1.5 µs"


def test_all_of_the_time_is_said_only_of_all_of_the_time():
    run = race("kv-cache")
    lane, end = run.lanes[2], run.at(run.seconds)[2]
    assert 0.995 < end.idle < 1
    said = "limited by too few blocks: matrix units idle >\u202f99\u202f%"
    assert idle_words(run, lane, end)[0] == said
    scores, softmax, _ = run.lanes[0].launches
    in_the_softmax = run.at((scores.end + softmax.end) / 2)[0]
    assert idle_words(run, run.lanes[0], in_the_softmax)[-1].endswith("100\u202f% idle")


def test_a_run_without_a_model_is_not_in_a_race_of_others_and_is_named():
    run = race("split-kv")
    assert [lane.algorithm for lane in run.lanes] == ["naive", "flash1", "flash2"]
    assert "their time is not modelled: split-kv" in " ".join(race_notes(run))


def count(image, colour: QColor, box: QRectF) -> int:
    inside = box.toAlignedRect().intersected(image.rect())
    return sum(
        image.pixel(x, y) == colour.rgb()
        for x in range(inside.left(), inside.right() + 1)
        for y in range(inside.top(), inside.bottom() + 1)
    )


@pytest.mark.long
def test_as_many_units_are_grey_as_are_idle():
    run = race("real-scale")
    boxes, image = seen(run, 1.0)
    roles = "bad", "text", "good"
    lit = [count(image, DARK.role(role), boxes.where(("units", n))) for n, role in enumerate(roles)]
    sms = run.workload.gpu.sms
    each = [round((1 - (standing.idle or 0)) * sms) for standing in run.at(run.seconds)]
    # All squares have the same size, within a pixel at their edges.
    assert lit[0] / each[0] == pytest.approx(lit[1] / each[1], rel=0.12)
    assert lit[1] / each[1] == pytest.approx(lit[2] / each[2], rel=0.12)


@pytest.mark.long
def test_bars_reach_as_far_as_the_run():
    run = race("real-scale")
    boxes, image = seen(run, 0.3)
    ends = []
    for n in range(3):
        box = boxes.where(("bar", n))
        y = round(box.center().y())
        xs = [x for x in range(round(box.left()), round(box.right()))
              if image.pixel(x, y) == QColor(DARK.text).rgb()]  # fmt: skip
        ends.append((xs[-1] + 1 - box.left()) / box.width() if xs else 1.0)
    assert ends[0] == pytest.approx(0.3, abs=0.01)
    assert ends[1] == pytest.approx(0.3 * run.seconds / run.lanes[1].seconds, abs=0.01)
    assert ends[2] == 1, "finished"


# --- panel -------------------------------------------------------------------------------------


class Watch:
    """A window on the Compare layout, with a clock that goes only when a test says so."""

    def __init__(self, window: MainWindow) -> None:
        self.window, self.session = window, window.session
        window.desk.take("compare")
        window.session.settle()
        panel = window.docks.panel("compare")
        assert isinstance(panel, ComparePanel)
        self.panel, self.clock = panel, panel.clock
        self.time = 100.0
        self.session.clock.now = lambda: self.time
        self.session.motion = True

    def start(self, qtbot: QtBot, *, forgotten: bool = False) -> None:
        if forgotten:
            comparison_of.cache_clear()
        qtbot.mouseClick(self.panel.bar.buttons["view", "race"], LEFT)
        self.session.settle()

    def wait(self, seconds: float) -> None:
        self.time += seconds
        self.clock.tick()


@pytest.fixture
def watch(open_window: Callable[..., MainWindow]) -> Watch:
    return Watch(open_window("causal", (1280, 720)))


@pytest.mark.long
@pytest.mark.parametrize("forgotten", [False, True])
def test_a_press_starts_it_and_another_starts_it_again(watch, qtbot, forgotten):
    clock = watch.clock
    assert (clock.running, clock.watched) == (False, 0)
    watch.start(qtbot, forgotten=forgotten)
    assert watch.panel.view == "race"
    assert clock.running
    watch.wait(2.0)
    assert clock.watched == 2.0
    watch.session.set_speed(2.0)
    watch.wait(1.0)
    assert clock.watched == 4.0
    watch.start(qtbot)
    assert clock.watched == 0
    assert clock.running
    watch.wait(3.5)
    assert clock.watched == RUN_SECONDS
    assert not clock.running, "it ticks only while something moves"
    assert "1st" in watch.panel.accessibleDescription()
    qtbot.keyClick(watch.panel.picture, Qt.Key.Key_Return)
    assert clock.running
    assert clock.watched == 0


@pytest.mark.long
def test_it_starts_though_it_was_asked_for_before_anything_was_seen(open_window, qtbot):
    window = open_window("causal", (1280, 720))
    window.session.motion = True
    window.desk.take("compare")
    panel = window.docks.panel("compare")
    assert panel.state is None
    qtbot.mouseClick(panel.bar.buttons["view", "race"], LEFT)
    window.session.settle()
    assert panel.view == "race"
    assert panel.clock.running


@pytest.mark.long
def test_space_plays_the_race_where_it_alone_is_shown(watch, qtbot):
    clock, window, session = watch.clock, watch.window, watch.session
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    watch.start(qtbot)
    watch.wait(2.0)
    qtbot.keyClick(window, Qt.Key.Key_Space)
    watch.time += 3.0
    QApplication.processEvents()
    assert (clock.watched, clock.running) == (2.0, False)  # it is paused
    qtbot.keyClick(window, Qt.Key.Key_Space)
    watch.wait(1.0)
    assert (clock.watched, clock.running) == (3.0, True)
    watch.wait(RUN_SECONDS)
    assert clock.watched == RUN_SECONDS
    qtbot.keyClick(window, Qt.Key.Key_Space)  # again, from the start
    assert (clock.watched, clock.running) == (0.0, True)
    assert not session.playing
    assert not window.actions_by_name["play"].isChecked()
    watch.wait(1.0)
    qtbot.keyClick(window, Qt.Key.Key_Space)
    session.step()
    session.settle()
    assert clock.watched == RUN_SECONDS  # a step of the run ends a paused one, too
    qtbot.mouseClick(watch.panel.bar.buttons["view", "columns"], LEFT)
    qtbot.keyClick(window, Qt.Key.Key_Space)
    assert session.playing  # columns show the run
    session.play(False)


@pytest.mark.long
def test_it_is_seen_to_run(watch, qtbot):
    panel = watch.panel
    watch.start(qtbot)
    pictures = []
    for _ in range(3):
        watch.wait(1.0)
        pictures.append(panel.picture.grab().toImage())
    assert all(one != two for one, two in pairwise(pictures))
    said = panel.state.pace
    watch.session.set_speed(2.0)
    assert panel.state.pace == said / 2


@pytest.mark.long
def test_a_step_of_the_run_ends_it_at_the_finish(watch, qtbot):
    watch.start(qtbot)
    watch.wait(1.0)
    watch.session.choose_row(3)
    watch.session.settle()
    assert watch.clock.running, "another row is no step"
    watch.session.step()
    watch.session.settle()
    assert not watch.clock.running
    assert watch.clock.watched == RUN_SECONDS
    assert watch.panel.view == "race"


@pytest.mark.long
def test_another_run_waits_at_the_start(watch, qtbot):
    watch.start(qtbot)
    watch.wait(1.0)
    watch.panel.show_algorithm("naive")
    watch.session.settle()
    assert not watch.clock.running
    assert watch.panel.state.share == 0
    assert watch.panel.state.found.race.comparison.shown == "naive"


@pytest.mark.long
def test_a_run_that_plays_is_paused(watch, qtbot):
    watch.session.play(True)
    watch.start(qtbot)
    assert not watch.session.playing
    assert watch.clock.running


@pytest.mark.long
def test_without_motion_the_finish_is_shown_at_once(watch, qtbot):
    watch.start(qtbot)
    watch.wait(1.0)
    watch.session.motion = False
    watch.wait(0.1)
    assert (watch.clock.watched, watch.clock.running) == (RUN_SECONDS, False)
    watch.start(qtbot)
    assert (watch.clock.watched, watch.clock.running) == (RUN_SECONDS, False)


@pytest.mark.long
@pytest.mark.parametrize("leave", ["columns", "table", "hide"])
def test_nothing_ticks_when_it_is_not_seen(watch, qtbot, leave):
    watch.start(qtbot)
    watch.wait(1.0)
    if leave == "hide":
        watch.window.desk.take("steps")
    else:
        qtbot.mouseClick(watch.panel.bar.buttons["view", leave], LEFT)
    assert not watch.clock.running
