"""The transport bar shows where the run is and says what the user chose."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter
from PySide6.QtTest import QTest

from simulator.base.assets import SCENARIOS
from simulator.problem.scenario import load_scenario, with_values
from simulator.program.algorithms import ALGORITHMS
from simulator.program.algorithms import ALGORITHMS as ALL
from simulator.program.partial_visits import partial_before
from simulator.program.playback import SPEEDS, Cursor, Granularity, end_of_visit
from simulator.study.compare import comparison_of
from tests.helpers.demos import demo, snapshots
from tests.helpers.painted import assert_tidy, channels, painted, record_texts
from tests.helpers.runs import trace_of
from ui.look.boundaries import boundaries
from ui.look.draw import text_width
from ui.look.durations import duration_text
from ui.look.names import op_label
from ui.look.theme import DARK, Style
from ui.panels.transport import painter as transport
from ui.panels.transport.bar import TransportBar
from ui.panels.transport.painter import (
    ScrubberLayout,
    chip_layout,
    paint_chips,
    paint_scrubber,
    position_words,
    time_words,
)

pytestmark = pytest.mark.usefixtures("qapp")


@pytest.fixture
def bar() -> Iterator[TransportBar]:
    widget = TransportBar()
    widget.resize(1280, 96)
    widget.show_snapshot(demo("flash2").snapshot(3, 2))
    widget.show()
    yield widget
    widget.close()
    widget.deleteLater()


def heard(bar: TransportBar) -> list[object]:
    out: list[object] = []
    bar.cursor_chosen.connect(out.append)
    return out


def pressed(widget: object, place: QPointF) -> None:
    QTest.mouseClick(widget, Qt.MouseButton.LeftButton, pos=place.toPoint())  # type: ignore[call-overload]


# --- layout ------------------------------------------------------------------------------------


@pytest.mark.long
@given(
    st.sampled_from((*ALGORITHMS, "causal", "grouped-heads", "real-scale")),
    st.floats(300, 3400), st.floats(1, 2), st.integers(0, 10**6),
)  # fmt: skip
def test_places_in_the_scrubber_lead_back_to_their_visits(name, width, scale, visit):
    program = demo(name).program
    layout = ScrubberLayout(program, Style(DARK, scale), QRectF(7, 2, width, 30))
    assert layout.cells == (width / len(program) >= 12 * scale)
    visit %= len(program)
    assert layout.visit_at(layout.cell(visit).center().x()) == visit
    assert layout.visit_at(-100) == 0
    assert layout.visit_at(1e6) == len(program) - 1
    if visit:
        assert layout.cell(visit).x() == pytest.approx(layout.cell(visit - 1).right())


@pytest.mark.parametrize("name", ALGORITHMS)
def test_chips_are_the_ops_of_every_visit(name):
    trace = demo(name)
    for visit in range(len(trace)):
        now = trace.snapshot(visit, 0)
        layout = chip_layout(now, Style(DARK), QRectF(0, 0, 1400, 30))
        words = [op_label(op, trace.workload) for op in trace.program.ops(visit)]
        assert [chip.text for chip in layout.chips] == words
        assert [chip.op for chip in layout.chips] == list(range(len(words)))
        assert layout.chips[-1].rect.right() == pytest.approx(1400)


@given(st.integers(0, 10**6), st.floats(620, 3400), st.floats(1, 2))
def test_chips_are_tidy_and_found_again(number, width, scale):
    now = snapshots()[number % len(snapshots())]
    # The bar takes less scale in a narrow window, as `TransportBar` does.
    style, rect = Style(DARK, min(scale, width / 500)), QRectF(3, 4, width, 40)
    layout = chip_layout(now, style, rect)
    for one, other in zip(layout.chips, layout.chips[1:], strict=False):
        assert one.rect.right() < other.rect.x()
    for chip in layout.chips:
        assert layout.op_at(chip.rect.center().x(), chip.rect.center().y()) == chip.op
    assert layout.op_at(rect.right() + 5, 10) is None
    with pytest.MonkeyPatch.context() as patch:
        drawn = record_texts(patch, transport)
        painted(lambda p: paint_chips(p, now, style, rect))
    assert len(drawn) == len(now.ops)
    assert_tidy(drawn, rect)


def moved(painter: QPainter) -> None:
    """Paint a pixel further down: what is moved is painted cell by cell."""
    painter.translate(0, 1)


def test_cells_too_narrow_for_labels_name_the_heads():
    now, rect = demo("grouped-heads").snapshot(26, 0), QRectF(3, 4, 819, 30)
    assert ScrubberLayout(now.program, Style(DARK), rect).cells
    with pytest.MonkeyPatch.context() as patch:
        drawn = record_texts(patch, transport)
        painted(lambda p: paint_scrubber(p, now, Style(DARK), rect))
    assert [one.text for one in drawn] == [f"head {n}" for n in range(6)]
    assert_tidy(drawn, rect)
    here = ScrubberLayout(now.program, Style(DARK), rect).cell(26)
    assert not any(one.ink.intersects(here) for one in drawn)


@given(
    st.sampled_from(("naive-backward", "flash2-backward", "grouped-heads", "inspector")),
    st.integers(0, 10**6), st.floats(300, 1900),
)  # fmt: skip
def test_what_is_played_is_named_beside_the_cursor(name, at, width):
    """Its words are left out only if neither what has been done of it nor the rest has room."""
    trace, style, rect = demo(name), Style(DARK), QRectF(3, 4, width, 30)
    now = trace.snapshot(at % len(trace), 0)
    with pytest.MonkeyPatch.context() as patch:
        drawn = record_texts(patch, transport)
        painted(lambda p: moved(p) or paint_scrubber(p, now, style, rect))
    assert_tidy(drawn, rect)
    layout, visit = ScrubberLayout(now.program, style, rect), at % len(trace)
    edges = boundaries(now.program, int(width / 64))
    begun = [edge for edge in edges if edge.visit <= visit][-1]
    end = next((edge.visit for edge in edges if edge.visit > visit), len(trace))
    here = [layout.left_of(visit), layout.left_of(visit + 1)]
    if not layout.cells:
        here = [layout.left_of(visit + 0.5) - 2, layout.left_of(visit + 0.5) + 2]
    elif not any(one.text == edges[0].label for one in drawn):
        return  # numbers of tiles are written there
    needs = text_width(style.text_font(11), begun.label) + 12
    room = here[0] - layout.left_of(begun.visit), layout.left_of(end) - here[1]
    shown = [one for one in drawn if one.text == begun.label]
    if max(room) >= needs:
        assert len(shown) == 1
        assert shown[0].ink.right() < here[0] or shown[0].ink.left() > here[1] + 3
        assert layout.left_of(begun.visit) < shown[0].ink.left()
        assert shown[0].ink.right() < layout.left_of(end)


@given(
    st.sampled_from((*ALGORITHMS, "causal", "grouped-heads")), st.integers(0, 10**6),
    st.floats(0, 12), st.floats(500, 1500), st.floats(1, 2), st.booleans(),
)  # fmt: skip
def test_cells_cut_from_a_picture_look_as_if_painted(name, at, x, width, scale, smooth):
    trace = demo(name)
    now, rect = trace.snapshot(at % len(trace), 0), QRectF(x, 5.4, width, 28.2)

    def paint(painter: QPainter) -> None:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, smooth)
        paint_scrubber(painter, now, Style(DARK, scale), rect)

    cut = channels(painted(paint, 1530, 44))
    whole = np.roll(channels(painted(lambda p: moved(p) or paint(p), 1530, 44)), -1, axis=0)
    assert np.abs(cut - whole).max() <= 2
    assert len(np.unique(whole)) > 3


@pytest.mark.parametrize("name", [*ALGORITHMS, "causal", "grouped-heads", "window-sinks"])
def test_partial_visits_are_counted_block_by_block(name):
    program = demo(name).program
    at, before = partial_before(program)
    kinds = [program.visit(n).kind.name == "PARTIAL" for n in range(len(program))]
    assert at[-1] == len(program)
    assert before[-1] == sum(kinds)
    for visit, count in zip(at.astype(int).tolist(), before.tolist(), strict=True):
        assert sum(kinds[:visit]) == count
        assert visit == len(program) or program.visit(visit).first


@pytest.mark.long
def test_boundaries_name_heads_launches_and_blocks():
    heads = boundaries(demo("grouped-heads").program, 20)
    assert [edge.label for edge in heads] == [f"head {n}" for n in range(6)]
    assert all(demo("grouped-heads").program.visit(edge.visit).opens for edge in heads)
    program = demo("naive").program
    launches = boundaries(program, 20)
    assert [edge.label for edge in launches] == ["scores", "softmax", "output"]
    blocks = boundaries(demo("real-scale").program, 12)
    assert [edge.label for edge in blocks][:2] == ["i = 0", "i = 128"]
    assert len(blocks) == 8
    assert demo("real-scale").program.visit(blocks[1].visit).i == 128


@pytest.mark.parametrize("name", [name for name, own in ALL.items() if own.backward])
def test_what_heads_share_is_named_after_their_kv_head(name):
    program = demo(name).program
    w, edges = program.workload, boundaries(program, 20)
    assert len({*w.kv_head_of}) < w.heads
    ends = [*(edge.visit for edge in edges[1:]), len(program)]
    for edge, end in zip(edges, ends, strict=True):
        heads = {program.visit(n).head for n in range(edge.visit, end)}
        number = int(edge.label.rpartition(" ")[2])
        if "KV" in edge.label:
            assert {w.kv_head_of[head] for head in heads} == {number}
        else:
            assert heads == {number}
    assert any("KV" in edge.label for edge in edges)


@pytest.mark.long
def test_the_current_visit_is_marked_in_the_strip():
    rect = QRectF(0, 4, 600, 30)
    style = Style(DARK)
    current = QColor(style.theme.current).rgb()
    for visit in (0, 300_000, 524_799):
        now = demo("real-scale").snapshot(visit, 0)
        image = painted(lambda p, now=now: paint_scrubber(p, now, style, rect), 600, 40)
        marked = [x for x in range(600) if image.pixel(x, 20) == current]
        assert marked[0] - 4 <= 600 * visit / 524_800 <= marked[-1] + 4


# --- the bar -----------------------------------------------------------------------------------


def test_clicking_a_chip_goes_to_its_op(bar):
    chosen = heard(bar)
    now = bar.chips.snapshot
    assert now is not None
    for chip in chip_layout(now, bar.chips.style_now, bar.chips.place()).chips:
        pressed(bar.chips, chip.rect.center())
    assert chosen == [Cursor(3, op) for op in range(len(now.ops))]


def test_clicking_and_dragging_goes_to_the_ends_of_visits(bar):
    chosen = heard(bar)
    program = demo("flash2").program
    layout = ScrubberLayout(program, bar.scrubber.style_now, bar.scrubber.place())
    assert layout.cells
    for visit in range(len(program)):
        pressed(bar.scrubber, layout.cell(visit).center())
    assert chosen == [end_of_visit(program, visit) for visit in range(len(program))]
    chosen.clear()
    button = Qt.MouseButton.LeftButton
    QTest.mousePress(bar.scrubber, button, pos=layout.cell(2).center().toPoint())
    for visit in (2, 3, 3, 5):
        QTest.mouseMove(bar.scrubber, layout.cell(visit).center().toPoint())
    QTest.mouseRelease(bar.scrubber, button, pos=QPoint(-50, 5))
    assert [cursor.visit for cursor in chosen] == [2, 3, 5]  # type: ignore[attr-defined]


def test_arrow_keys_move_what_has_the_focus(bar):
    chosen = heard(bar)
    QTest.keyClick(bar.chips, Qt.Key.Key_Right)
    QTest.keyClick(bar.chips, Qt.Key.Key_Left)
    QTest.keyClick(bar.scrubber, Qt.Key.Key_Right)
    program = demo("flash2").program
    assert chosen == [Cursor(3, 3), Cursor(3, 1), end_of_visit(program, 4)]


def test_buttons_and_choices_say_what_the_user_wants(bar):
    out: list[object] = []
    bar.first_asked.connect(lambda: out.append("first"))
    bar.last_asked.connect(lambda: out.append("last"))
    bar.step_asked.connect(out.append)
    bar.play_toggled.connect(lambda on: out.append(("play", on)))
    for name in ("first", "back", "play", "forward", "last"):
        bar.buttons[name].click()
    assert out == ["first", False, ("play", True), True, "last"]
    bar.set_playing(True)
    bar.buttons["play"].click()
    assert out[-1] == ("play", False)

    out.clear()
    bar.granularity_chosen.connect(out.append)
    bar.speed_chosen.connect(out.append)
    bar.set_granularity(Granularity.TILE)
    bar.set_speed(5.0)
    assert out == [], "shown from outside is not chosen"
    assert bar.step_box.currentText() == "by tile"
    assert bar.speed_box.currentText() == "5×"
    bar.step_box.activated.emit(2)
    bar.speed_box.activated.emit(0)
    assert out == [Granularity.ROW_BLOCK, SPEEDS[0]]


@pytest.mark.parametrize(("name", "tip"), [
    ("flash2", "limited by launch. Times are of a model"),
    ("flash2-backward", "The time of backward passes is not modelled."),
])  # fmt: skip
def test_the_time_is_that_of_compare_and_its_tip_says_what_limits_it(bar, name, tip):
    trace = demo(name)
    end = trace.snapshot(len(trace) - 1, len(trace.program.ops(len(trace) - 1)) - 1)
    bar.show_snapshot(end)
    totals = comparison_of(trace.program).totals
    whole = next(t.duration for t in totals if t.algorithm == trace.workload.algorithm)
    said = duration_text(whole)
    assert bar.time.text() == f"{said} on H100-SXM"
    assert bar.time.toolTip().startswith(f"The whole run: {said}")
    assert tip in bar.time.toolTip()
    half = trace.snapshot(len(trace) // 2)
    assert 0 < half.seconds < whole.seconds


def test_words_are_those_of_the_snapshot(bar):
    now = demo("flash2").snapshot(4, 1)
    bar.show_snapshot(now)
    assert bar.place.text() == position_words(now) == "visit 5 of 20"
    assert bar.time.text() == time_words(now)
    first = QPointF(bar.scrubber.place().x() + 1, 5)
    assert bar.scrubber.tip(first) == "visit 1: tile (0, 0), full"
    chip = chip_layout(now, bar.chips.style_now, bar.chips.place()).chips[0].rect.center()
    assert "line 7" in bar.chips.tip(chip)


def test_outer_loop_of_flash1_goes_over_column_blocks(bar):
    index = bar.step_box.findData(Granularity.ROW_BLOCK)
    assert bar.step_box.itemText(index) == "by row block"
    bar.show_snapshot(demo("flash1").snapshot(0, 0))
    assert bar.step_box.itemText(index) == "by column block"


def test_every_control_has_a_name_a_tooltip_and_the_focus(bar):
    for control in (*bar.buttons.values(), bar.step_box, bar.speed_box):
        assert control.accessibleName()
        assert control.toolTip()
        assert control.focusPolicy() & Qt.FocusPolicy.TabFocus
    for part in (bar.scrubber, bar.chips):
        assert part.accessibleName()
        assert part.accessibleDescription()
        assert part.focusPolicy() & Qt.FocusPolicy.TabFocus


@pytest.mark.parametrize(("width", "scale"), [(1280, 2), (3840, 2)])
def test_bar_fits_every_window(bar, width, scale):
    bar.set_style(Style(DARK, scale))
    for name in ("causal", "flash1", "real-scale"):
        bar.show_snapshot(demo(name).snapshot(0, 0))
        bar.resize(width, 96)
        assert bar.minimumSizeHint().width() <= width
        bar.resize(width, bar.sizeHint().height())
        bar.grab()
        layout = chip_layout(demo(name).snapshot(0, 0), bar.chips.style_now, bar.chips.place())
        # A tenth of the screen, at most.
        assert bar.sizeHint().height() <= max(128, width / 19)
        assert layout.chips[-1].rect.right() <= bar.chips.width()


def test_a_sequence_of_a_batch_can_be_chosen(bar):
    assert bar.sequence_box.isHidden()
    roomy = bar.place.width()
    chosen: list[int] = []
    bar.sequence_chosen.connect(chosen.append)
    batch = with_values(load_scenario(SCENARIOS / "batch.toml"), {"batch": {"sequence": 1}})
    bar.show_snapshot(trace_of(batch).snapshot(0, 0))
    box = bar.sequence_box
    assert box.isVisible()
    assert [box.itemText(n) for n in range(box.count())] == [
        "sequence 0: 38 keys", "sequence 1: 13 keys", "sequence 2: 61 keys",
    ]  # fmt: skip
    assert box.currentIndex() == 1
    assert chosen == []
    box.setFocus()
    QTest.keyClick(box, Qt.Key.Key_Down)
    assert chosen == [2]
    for width in (700, 900, 1280):
        bar.resize(width, 96)
        QTest.qWait(1)
        assert bar.sequence_box.geometry().right() < bar.scrubber.geometry().left()
        assert bar.place.geometry().right() <= bar.width()
    bar.show_snapshot(demo("flash2").snapshot(3, 2))
    assert box.isHidden()
    assert bar.place.width() == roomy
