"""The race in the Compare panel: tidy at every moment, and run by the session's clock."""

import re
from collections.abc import Callable
from functools import cache
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PySide6.QtCore import QEvent, QObject, QRectF, Qt
from PySide6.QtGui import QColor, QPainter
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from simulator.base.assets import SCENARIOS
from simulator.problem.scenario import load_scenario, with_values
from simulator.study.compare import comparison_of
from simulator.study.race import RUN_SECONDS, Race, race_of
from tests.helpers.runs import program_of
from tests.ui.panels.test_memory import assert_tidy, painted, record_texts
from ui.look.theme import DARK, THEMES, Style
from ui.look.units import bytes_of_text, clock_text
from ui.panels.compare import race as race_painter
from ui.panels.compare.panel import ComparePanel
from ui.panels.compare.race import paint_race, race_layout, unit_grid
from ui.panels.compare.race_words import pace_words_of, race_title, waiting_words
from ui.window.main_window import MainWindow

pytestmark = pytest.mark.usefixtures("qapp")
NAMES = ("causal", "flash1", "split-kv", "real-scale", "large-logits", "window-sinks", "kv-cache")
LEFT = Qt.MouseButton.LeftButton


@cache
def race(name: str) -> Race:
    return race_of(program_of(load_scenario(SCENARIOS / f"{name}.toml")))


def texts_of(run: Race, share: float, style: Style, rect: QRectF) -> list[str]:
    """Return what is written at a share of the race's time, after a look at whether it is tidy."""
    pace = pace_words_of(run, RUN_SECONDS, "of the film")

    def paint(painter: QPainter) -> None:
        paint_race(painter, run, share * run.seconds, style, rect, pace=pace)

    with pytest.MonkeyPatch.context() as patch:
        drawn = record_texts(patch, race_painter)
        painted(paint)
    assert_tidy(drawn, rect)
    return [one.text for one in drawn]


# --- picture -----------------------------------------------------------------------------------


@settings(deadline=None)
@given(
    st.sampled_from(NAMES), st.floats(0, 1), st.floats(544, 3840), st.floats(225, 2160),
    st.floats(1, 2),
)  # fmt: skip
def test_no_text_of_the_race_collides(
    name: str, share: float, width: float, height: float, scale: float
) -> None:
    run = race(name)
    said = texts_of(run, share, Style(DARK, scale), QRectF(3, 5, width, height))
    assert any(text.startswith(("Estimates by", "Roofline estimates")) for text in said)
    assert any(run.workload.gpu.name in text or "N = 16" in text for text in said)
    finished = sum(standing.finished for standing in run.at(share * run.seconds))
    assert sum(" · ≈ " in text for text in said) == finished


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("share", [0.0, 0.02, 0.3, 0.9, 1.0])
def test_a_lecture_hall_can_read_all_of_it(name: str, share: float) -> None:
    style, rect = Style(DARK, 1.64), QRectF(16, 16, 1248, 688)
    run = race(name)
    lay = race_layout(rect, style, run)
    assert lay.style.text_font(11).pixelSize() >= 0.025 * 720
    said = texts_of(run, share, style, rect)
    assert len([text for text in said if "requested from HBM" in text]) >= len(run.lanes)
    assert any("matrix units" in text or "no matrix rate" in text for text in said) or share == 0
    assert any(text.startswith("Estimates by the roofline") for text in said)


@pytest.mark.parametrize("size", [(700, 225), (1280, 720)], ids=str)
def test_what_is_grey_is_said_at_every_size(size: tuple[int, int]) -> None:
    said = texts_of(race("causal"), 0.5, Style(DARK), QRectF(0, 0, *size))
    assert any("roofline" in text.lower() for text in said)
    assert any("rey: " in text for text in said)


def test_the_finish_says_by_how_much() -> None:
    run, style, rect = race("causal"), Style(DARK, 1.64), QRectF(16, 16, 1248, 688)
    said = texts_of(run, 1.0, style, rect)
    assert "17.6×" in said
    assert "as fast: FlashAttention-2 in ≈ 41.0 µs, naive attention in ≈ 721.8 µs" in said
    assert "8.94× by tiles on chip, and 1.97× because hidden tiles are skipped" in said
    assert {"1st · ≈ 41.0 µs", "2nd · ≈ 107.3 µs", "3rd · ≈ 721.8 µs"} <= set(said)
    assert "2.62× as long as FlashAttention-2" in said
    under_way = texts_of(run, 0.5, style, rect)
    assert "17.6×" not in under_way
    assert {"≈ 360.9 µs", "launch 2 of 3: softmax", "1.1 of 2.3 GiB requested from HBM"} <= set(
        under_way
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_factor_says_what_of_it_is_the_mask(name: str) -> None:
    """Naive attention computes hidden scores, too: that is no gain of tiles."""
    run = race(name)
    w = run.workload
    for style, size in ((Style(DARK), (700, 225)), (Style(DARK, 1.64), (1280, 720))):
        said = " ".join(texts_of(run, 1.0, style, QRectF(0, 0, *size)))
        found = re.search(
            r"([\d.]+)× (?:by tiles|tiles).*?([\d.]+)× (?:because|by skip|mask)", said
        )
        hidden = w.mask.hides and w.seqlen_q > w.group  # one query sees all keys
        assert (found is not None) == hidden
        if found:
            tiles, mask = map(float, found.groups())
            assert tiles * mask == pytest.approx(run.time_factor, rel=0.01)
            assert mask > 1


def test_the_rest_of_the_factor_is_that_of_a_run_without_a_mask() -> None:
    chosen = load_scenario(SCENARIOS / "real-scale.toml")
    masked = race_of(program_of(chosen))
    dense = race_of(program_of(with_values(chosen, {"mask": {"causal": False}})))
    assert masked.tiles_factor == dense.tiles_factor == dense.time_factor
    assert dense.mask_factor == 1
    naive, same = (each.lanes[0].total.counters.bytes for each in (masked, dense))
    assert naive == same  # it skips nothing


def test_a_part_has_the_unit_of_the_whole() -> None:
    assert bytes_of_text(1, 2**20) == "0.0 of 1.0 MiB"
    assert bytes_of_text(7, 12) == "7 of 12 B"
    assert clock_text(5e-9, 7.2e-4) == "0.0 µs"
    assert clock_text(1.5e-6, 7.2e-4) == "1.5 µs"


def test_nothing_is_said_of_units_whose_rate_is_not_known() -> None:
    run = race("large-logits")
    assert "no matrix rate for float32" in waiting_words(run, run.at(0.5 * run.seconds)[0])
    said = texts_of(run, 0.5, Style(DARK, 1.64), QRectF(0, 0, 1280, 720))
    assert not any("wait" in text for text in said)


def test_all_of_the_time_is_said_only_of_all_of_the_time() -> None:
    run = race("kv-cache")
    end = run.at(run.seconds)[0]
    assert end.waits is not None
    assert 0.995 < end.waits < 1
    assert waiting_words(run, end)[-1] == ">\u202f99\u202f%"
    scores, softmax, _ = run.lanes[0].launches
    in_the_softmax = run.at((scores.end + softmax.end) / 2)[0]
    assert waiting_words(run, in_the_softmax)[-1] == "100\u202f%"


def test_lanes_stay_together_in_a_tall_picture() -> None:
    lay = race_layout(QRectF(0, 0, 600, 2000), Style(DARK), race("causal"))
    assert all(box.height() <= lay.style.px(130) + 1e-6 for box in lay.lanes)
    above = lay.lanes[0].top() - lay.caption.bottom()
    assert above == pytest.approx(lay.band.top() - lay.lanes[-1].bottom(), abs=1)


def test_a_shorter_run_on_show_is_named() -> None:
    run = race("causal")
    short = program_of(load_scenario(SCENARIOS / "causal.toml"))
    assert race_title(run, comparison_of(short))[0].endswith("the run on show has 64 keys")
    assert "on show" not in race_title(run, run.comparison)[0]


def count(image, colour: QColor, box: QRectF) -> int:
    inside = box.toAlignedRect().intersected(image.rect())
    return sum(
        image.pixel(x, y) == colour.rgb()
        for x in range(inside.left(), inside.right() + 1)
        for y in range(inside.top(), inside.bottom() + 1)
    )


@pytest.mark.parametrize("theme", THEMES)
def test_as_many_units_are_grey_as_wait(theme: str) -> None:
    run, style, rect = race("real-scale"), Style(THEMES[theme]), QRectF(0, 0, 1200, 620)
    image = painted(lambda p: paint_race(p, run, run.seconds, style, rect), 1200, 620)
    lay = race_layout(rect, style, run)
    lit = [
        count(image, style.theme.role(role), lay.units[n])
        for n, role in enumerate(("bad", "text", "good"))
    ]
    sms = run.workload.gpu.sms
    waits = [standing.waits or 0.0 for standing in run.at(run.seconds)]
    each = [round((1 - share) * sms) for share in waits]
    # All squares have the same size, within a pixel at their edges.
    assert lit[0] / each[0] == pytest.approx(lit[1] / each[1], rel=0.12)
    assert lit[1] / each[1] == pytest.approx(lit[2] / each[2], rel=0.12)


def test_bars_reach_as_far_as_the_run() -> None:
    run, style, rect = race("real-scale"), Style(DARK), QRectF(0, 0, 1200, 620)
    lay = race_layout(rect, style, run)
    image = painted(lambda p: paint_race(p, run, 0.3 * run.seconds, style, rect), 1200, 620)
    ends = []
    for box in lay.lanes:
        y = round(box.center().y())
        xs = [x for x in range(round(box.left()), round(box.right()))
              if image.pixel(x, y) == QColor(DARK.text).rgb()]  # fmt: skip
        ends.append((xs[-1] + 1 - box.left()) / box.width() if xs else 1.0)
    assert ends[0] == pytest.approx(0.3, abs=0.01)
    assert ends[1] == pytest.approx(0.3 * run.seconds / run.lanes[1].seconds, abs=0.01)
    assert ends[2] == 1, "finished"


@given(st.integers(1, 300), st.floats(20, 400), st.floats(5, 200))
def test_units_fill_their_place_and_stay_inside(sms: int, width: float, height: float) -> None:
    columns, side = unit_grid(sms, width, height)
    rows = -(-sms // columns)
    assert side > 0
    assert columns * side <= width + 1e-6
    assert rows * side <= height + 1e-6


# --- panel -------------------------------------------------------------------------------------


class Watch:
    """A window on the Compare layout, with a clock that goes only when a test says so."""

    def __init__(self, window: MainWindow) -> None:
        self.window, self.session = window, window.session
        window.desk.take("compare")
        window.session.settle()
        panel = window.docks.panel("compare")
        assert isinstance(panel, ComparePanel)
        self.panel, self.clock = panel, panel.race_clock
        self.time = 100.0
        self.session.clock.now = lambda: self.time
        self.session.motion = True

    def wait(self, seconds: float) -> None:
        self.time += seconds
        self.clock.tick()


class Paints(QObject):
    """Notes when a widget is painted."""

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        self.seen: list[QEvent.Type] = []
        widget.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Paint:
            self.seen.append(event.type())
        return False


@pytest.fixture
def watch(open_window: Callable[..., MainWindow]) -> Watch:
    return Watch(open_window("causal", (1280, 720)))


def test_a_press_starts_it_and_another_starts_it_again(watch: Watch, qtbot: QtBot) -> None:
    clock = watch.clock
    assert not clock.started
    qtbot.mouseClick(watch.panel.buttons["race"], LEFT)
    assert watch.panel.view == "race"
    assert clock.running
    watch.wait(2.0)
    assert clock.watched == 2.0
    watch.session.set_speed(2.0)
    watch.wait(1.0)
    assert clock.watched == 4.0
    qtbot.mouseClick(watch.panel.buttons["race"], LEFT)
    assert clock.watched == 0
    assert clock.running
    watch.wait(3.5)
    assert clock.watched == RUN_SECONDS
    assert not clock.running, "it ticks only while something moves"
    assert "1st" in watch.panel.accessibleDescription()
    watch.panel.setFocus()
    qtbot.keyClick(watch.panel, Qt.Key.Key_Return)
    assert clock.running
    assert clock.watched == 0


def test_space_plays_the_race_where_it_alone_is_shown(watch: Watch, qtbot: QtBot) -> None:
    clock, window, session = watch.clock, watch.window, watch.session
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    qtbot.mouseClick(watch.panel.buttons["race"], LEFT)
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
    qtbot.mouseClick(watch.panel.buttons["columns"], LEFT)
    qtbot.keyClick(window, Qt.Key.Key_Space)
    assert session.playing  # columns show the run
    session.play(False)


def test_it_is_seen_to_run(watch: Watch, qtbot: QtBot) -> None:
    panel = watch.panel
    qtbot.mouseClick(panel.buttons["race"], LEFT)
    pictures = []
    QApplication.processEvents()
    painted_events = Paints(panel)
    for n in range(4):
        watch.wait(1.0)
        QApplication.processEvents()
        assert len(painted_events.seen) > n, "each tick is shown"
    for _ in range(2):
        pictures.append(panel.grab().toImage())
        watch.wait(0.5)
    assert all(one != two for one, two in pairwise(pictures))


def test_a_step_of_the_run_ends_it_at_the_finish(watch: Watch, qtbot: QtBot) -> None:
    qtbot.mouseClick(watch.panel.buttons["race"], LEFT)
    watch.wait(1.0)
    watch.session.choose_row(3)
    watch.session.settle()
    assert watch.clock.running, "another row is no step"
    watch.session.step()
    watch.session.settle()
    assert not watch.clock.running
    assert watch.clock.watched == RUN_SECONDS
    assert watch.panel.view == "race"


def test_another_run_waits_at_the_start(watch: Watch, qtbot: QtBot) -> None:
    qtbot.mouseClick(watch.panel.buttons["race"], LEFT)
    watch.wait(1.0)
    watch.panel.show_algorithm("naive")
    watch.session.settle()
    assert not watch.clock.running
    assert not watch.clock.started
    assert watch.panel.race is not None
    assert watch.panel.race.comparison.shown == "naive"


def test_a_run_that_plays_is_paused(watch: Watch, qtbot: QtBot) -> None:
    watch.session.play(True)
    qtbot.mouseClick(watch.panel.buttons["race"], LEFT)
    assert not watch.session.playing
    watch.session.settle()
    assert watch.clock.running


def test_without_motion_the_finish_is_shown_at_once(watch: Watch, qtbot: QtBot) -> None:
    qtbot.mouseClick(watch.panel.buttons["race"], LEFT)
    watch.wait(1.0)
    watch.session.motion = False
    watch.wait(0.1)
    assert (watch.clock.watched, watch.clock.running) == (RUN_SECONDS, False)
    qtbot.mouseClick(watch.panel.buttons["race"], LEFT)
    assert (watch.clock.watched, watch.clock.running) == (RUN_SECONDS, False)


@pytest.mark.parametrize("leave", ["columns", "table", "hide"])
def test_nothing_ticks_when_it_is_not_seen(watch: Watch, qtbot: QtBot, leave: str) -> None:
    qtbot.mouseClick(watch.panel.buttons["race"], LEFT)
    watch.wait(1.0)
    if leave == "hide":
        watch.window.desk.take("steps")
    else:
        qtbot.mouseClick(watch.panel.buttons[leave], LEFT)
    assert not watch.clock.running
