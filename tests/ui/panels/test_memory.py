"""The memory picture says the counters' and the ops' figures, and nothing in it collides."""

from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QImage

from simulator import simulate
from simulator.base.assets import SCENARIOS
from simulator.problem.scenario import load_scenario, with_values
from simulator.program.algorithms import ALGORITHMS, USUAL, beside
from simulator.run.motion import Motion
from tests.helpers.demos import demo, every_op, snapshots
from tests.helpers.painted import DrawnText, assert_tidy, colours, painted, record_texts
from ui.kit import shapes
from ui.look.theme import DARK, THEMES, Style
from ui.look.units import bytes_text
from ui.panels.memory import painter as memory
from ui.panels.memory import scale, tilted
from ui.panels.memory.model import MemoryState, baseline_total, memory_model
from ui.panels.memory.panel import MemoryPanel
from ui.panels.memory.places import memory_layout
from ui.panels.memory.views import VIEWS, berths_of, paint_view

pytestmark = pytest.mark.usefixtures("qapp")


# --- figures -----------------------------------------------------------------------------------


@pytest.mark.sweep(keep=3)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_figures_are_those_of_the_run(name):
    trace = demo(name)
    totals = trace.program.totals
    for now in every_op(trace):
        model = memory_model(now)
        assert (model.read, model.written) == (now.counters.read_bytes, now.counters.write_bytes)
        assert model.run == totals.bytes
        assert [t.tensor for t in model.tensors] == list(trace.program.tensors)
        for traffic in model.tensors:
            assert traffic.read == now.counters.read[traffic.tensor]
            assert traffic.written == now.counters.write[traffic.tensor]
            assert traffic.total == totals.read[traffic.tensor] + totals.write[traffic.tensor]
        assert [lane.bytes for lane in model.lanes] == [move.bytes for move in now.op.moves]
        assert all(lane.loads == now.op.loads for lane in model.lanes)
        held = {place: sum(t.bytes for t in now.on_chip if t.place == place)
                for place in ("shared", "registers")}  # fmt: skip
        assert model.shared_bytes == held["shared"] == sum(chip.bytes for chip in model.shared)
        assert model.register_bytes == held["registers"]
        assert model.register_bytes == sum(chip.bytes for chip in model.registers)
        slots = [chip.slot for chip in model.shared]
        assert len(set(slots)) == len(slots)
        slots = [chip.slot for chip in model.registers]
        assert len(set(slots)) == len(slots)
    last = memory_model(now)
    assert last.read + last.written == last.run


@pytest.mark.parametrize("name", beside(USUAL.name))
def test_naive_of_the_same_workload(name):
    # The three demos are one sentence with one tiling.
    assert baseline_total(demo(name).workload) == demo("naive").program.totals.bytes


# --- picture -----------------------------------------------------------------------------------


def view_painted(
    name: str, state: MemoryState, style: Style, rect: QRectF, size: tuple[int, int] = (8, 8)
) -> QImage:
    """Return a view as it is painted."""
    return painted(lambda p: paint_view(p, name, state, style, rect), *size)


def drawn_texts(name: str, state: MemoryState, style: Style, rect: QRectF) -> list[DrawnText]:
    """Return what is written in a view, which is tidy."""
    with pytest.MonkeyPatch.context() as patch:
        found = [record_texts(patch, module) for module in (memory, scale, shapes, tilted)]
        view_painted(name, state, style, rect)
    drawn = [one for each in found for one in each]
    assert_tidy(drawn, rect)
    return drawn


@pytest.mark.parametrize("size", [(300, 170), (640, 330), (300, 400)])
def test_bars_are_explained_and_behind_no_words(size):
    """Before the word for what is read is its filling, and before that for what is written."""
    now, rect = demo("flash1").snapshot(len(demo("flash1")) // 2), QRectF(0, 0, *size)
    model = memory_model(now)
    with pytest.MonkeyPatch.context() as patch:
        drawn = record_texts(patch, memory)
        picture = view_painted("plain", MemoryState(now), Style(DARK), rect, size)
    lay = memory_layout(rect, Style(DARK), len(model.lanes), len(model.tensors))
    words = [one for one in drawn if any(row.contains(one.ink.center()) for row in lay.tensors)]
    assert len(words) == 2 * len(model.tensors)
    for one in words:
        behind = picture.copy(one.ink.toAlignedRect().adjusted(1, 1, -1, -1))
        assert len(colours(behind)) == 1, one
    for word, hatched in (("read", False), ("written", True)):
        (one,) = (each for each in drawn if each.text.startswith(word))
        x, y = round(one.ink.left() - lay.style.px(8)), round(one.ink.center().y())
        before = colours(picture.copy(x - 2, y - 2, 5, 5))
        assert len(before) > 1 if hatched else before == {QColor(DARK.muted).rgb()}


@given(st.integers(0, 10**6), st.floats(300, 700), st.floats(0.9, 2), st.floats(1, 2))
@example(1060, 300.0, 1.0, 1.0)  # a short name leaves room for the bytes
def test_a_tall_place_shows_all_figures(number, width, aspect, text):
    now = snapshots()[number % len(snapshots())]
    rect = QRectF(3, 5, width, width * aspect)
    drawn = drawn_texts("plain", MemoryState(now), Style(DARK, text), rect)
    model, texts = memory_model(now), [one.text for one in drawn]
    assert f"HBM  {model.tbps:g} TB/s" in texts
    sizes = {text.replace(".0 ", " ") for text in texts}
    for each in (*model.shared, *model.registers, *model.lanes):
        assert bytes_text(each.bytes).replace(".0 ", " ") in sizes


@given(
    st.sampled_from(["flash1", "flash2", "naive", "split-kv"]), st.integers(0, 10**6),
    st.floats(300, 900), st.floats(0.4, 1.6),
)  # fmt: skip
def test_tiles_land_where_they_are_drawn(name, number, width, aspect):
    trace = demo(name)
    visit = 1 + number % (len(trace) - 1)
    style, rect = Style(DARK), QRectF(3, 5, width, width * aspect)
    for op, each in enumerate(trace.program.ops(visit)):
        before = trace.snapshot(visit, op - 1) if op else trace.snapshot(visit - 1)
        berths = berths_of("plain", Motion(before, trace.snapshot(visit, op)), style, rect)
        assert set(berths) == {move.tensor for move in each.moves}
        model = memory_model(trace.snapshot(visit, op))
        lay = memory_layout(rect, style, len(model.lanes), len(model.tensors))
        for tensor, (row, slot) in berths.items():
            assert rect.contains(row)
            assert lay.hbm.contains(row), tensor
            assert lay.sram.contains(slot), tensor


@pytest.mark.parametrize("theme", THEMES)
def test_more_than_the_limit_turns_red_and_says_so(theme, monkeypatch):
    style, rect = Style(THEMES[theme]), QRectF(10, 5, 400, 190)
    bad = QColor(style.theme.bad).rgb()
    now = demo("flash2").snapshot(3, 1)
    taken = memory_model(now).shared_bytes
    assert taken > 0
    for limit, over in ((taken, False), (taken - 1, True)):
        monkeypatch.setattr("simulator.problem.hardware.Gpu.smem_bytes", limit)
        assert memory_model(now).over is over
        image = view_painted("plain", MemoryState(now), style, rect, (420, 200))
        assert (bad in colours(image.copy(0, 120, 420, 60))) is over
        drawn = drawn_texts("plain", MemoryState(now), style, rect)
        assert any(one.text == "over the limit" for one in drawn) is over


@pytest.mark.parametrize("name", VIEWS)
def test_tiles_travel_while_the_op_is_done(name):
    trace = demo("flash2")
    motion = Motion(trace.snapshot(0), trace.snapshot(1, 0))
    rect, style = QRectF(10, 5, 400, 190), Style(DARK)
    pictures = [
        view_painted(name, MemoryState(motion.after, None, motion, n / 24), style, rect, (420, 200))
        for n in range(25)
    ]
    assert sum(one != two for one, two in pairwise(pictures)) > 12  # then on the way to the board
    for now, moved in ((motion.before, pictures[0]), (motion.after, pictures[-1])):
        assert view_painted(name, MemoryState(now), style, rect, (420, 200)) == moved


def test_no_byte_is_counted_before_its_tile_has_landed():
    trace = demo("flash2")
    for share in (0.01, 0.3, 0.6, 0.9, 0.999):
        motion = Motion(trace.snapshot(0), trace.snapshot(1, 0))  # of which nothing is kept yet
        landed = sum(f.move.bytes for f in motion.flights if f.landed(share))
        state = MemoryState(motion.after, None, motion, share)
        drawn = drawn_texts("plain", state, Style(DARK), QRectF(10, 5, 560, 190))
        read = bytes_text(motion.before.counters.read_bytes + landed)
        assert any(one.text == f"read {read}" for one in drawn)


# --- panel -------------------------------------------------------------------------------------


@pytest.fixture
def panel() -> Iterator[MemoryPanel]:
    widget = MemoryPanel()
    widget.resize(420, 200)
    widget.show()
    yield widget
    widget.close()
    widget.deleteLater()


def test_it_moves_from_the_state_before_and_only_then(panel):
    trace = demo("flash2")
    assert trace.program.ops(1)[0].loads
    before, now = trace.snapshot(0), trace.snapshot(1, 0)
    panel.show_snapshot(before)
    panel.show_share(0.5)
    assert panel.phase == 1, "a state that is shown at once is whole"
    whole = panel.grab().toImage()
    panel.show_snapshot(now, before)
    assert panel.phase == 0
    pictures = []
    for share in (0.3, 0.6, 1.0):
        panel.show_share(share)
        assert panel.phase == share
        pictures.append(panel.grab().toImage())
    assert pictures[0] != pictures[1] != pictures[2]
    panel.show_snapshot(now)
    assert panel.grab().toImage() == pictures[2]
    panel.show_snapshot(before)
    assert panel.grab().toImage() == whole
    assert "requested bytes" in panel.accessibleDescription()


def test_scenarios_change_under_the_panel(panel):
    scenario = load_scenario(SCENARIOS / "flash2.toml")
    panel.show_snapshot(demo("flash2").snapshot(0, 0))
    before = panel.baseline_bytes(demo("flash2").program)
    other = simulate(with_values(scenario, {"tiling": {"rows": 2, "cols": 2}}))
    panel.show_snapshot(other.snapshot(0, 1))
    assert panel.baseline_bytes(other.program) == baseline_total(other.workload) != before
    panel.grab()
