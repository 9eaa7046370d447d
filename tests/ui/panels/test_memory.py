"""The memory picture says the counters' and the ops' figures, and nothing in it collides."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from types import ModuleType

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QImage, QPainter

from simulator import simulate
from simulator.base.assets import SCENARIOS
from simulator.problem.scenario import load_scenario, with_values
from simulator.program.algorithms import ALGORITHMS, USUAL, beside
from simulator.run.motion import Motion
from simulator.run.snapshot import Snapshot
from simulator.run.trace import Trace
from simulator.study.compare import at_scale
from ui.look.draw import CENTRE, LEFT, RIGHT, text_width
from ui.look.theme import DARK, THEMES, Style
from ui.look.units import bytes_text, factor_text
from ui.panels.memory import painter as memory
from ui.panels.memory import scale, tilted
from ui.panels.memory.model import MemoryState, baseline_total, comparison, memory_model
from ui.panels.memory.panel import MemoryPanel
from ui.panels.memory.places import MIN_SIZE, memory_layout
from ui.panels.memory.views import VIEWS, berths_of, paint_view

pytestmark = pytest.mark.usefixtures("qapp")


@cache
def demo(name: str) -> Trace:
    return simulate(SCENARIOS / f"{name}.toml")


def every_op(trace: Trace) -> Iterator[Snapshot]:
    for visit in range(len(trace)):
        for op in range(len(trace.program.ops(visit))):
            yield trace.snapshot(visit, op)


@cache
def snapshots() -> tuple[Snapshot, ...]:
    """Every op of a few visits of every small demo: first, middle ones, last."""
    out = []
    for path in sorted(SCENARIOS.glob("*.toml")):
        if path.stem == "real-scale":
            continue
        trace = demo(path.stem)
        n = len(trace)
        for visit in {0, n // 3, n // 2, n - 1}:
            out += [trace.snapshot(visit, op) for op in range(len(trace.program.ops(visit)))]
    return tuple(out)


# --- texts as they are drawn: shared with the tests of the other painters ----------------------


@dataclass(frozen=True)
class DrawnText:
    """A text, its ink, whether it had to be cut, and how high its capitals are."""

    text: str
    ink: QRectF
    cut: bool
    high: float


def painted(paint: Callable[[QPainter], None], width: int = 8, height: int = 8) -> QImage:
    """Return a black picture on which `paint` has painted."""
    image = QImage(width, height, QImage.Format.Format_ARGB32_Premultiplied)
    image.fill(QColor("#000000"))
    painter = QPainter(image)
    try:
        paint(painter)
    finally:
        painter.end()
    return image


def colours(picture: QImage) -> set[int]:
    """Return the colours in a picture."""
    places = ((x, y) for x in range(picture.width()) for y in range(picture.height()))
    return {picture.pixel(x, y) for x, y in places}


def record_texts(monkeypatch: pytest.MonkeyPatch, module: ModuleType) -> list[DrawnText]:
    """Note what a painter writes, where, instead of drawing it."""
    drawn: list[DrawnText] = []

    def note(
        _: QPainter, rect: QRectF, text: str, font: QFont, colour: object, align: object = LEFT
    ) -> None:
        ink = QFontMetricsF(font).tightBoundingRect(text)
        width = text_width(font, text)
        x = {LEFT: rect.x(), RIGHT: rect.right() - width, CENTRE: rect.center().x() - width / 2}
        middle = rect.center().y() - ink.height() / 2
        place = QRectF(x[align], middle, width, ink.height())  # type: ignore[index]
        high = QFontMetricsF(font).capHeight()
        drawn.append(DrawnText(text, place, width > rect.width() + 0.5, high))

    monkeypatch.setattr(module, "draw_text", note)
    return drawn


def assert_tidy(drawn: list[DrawnText], rect: QRectF) -> None:
    """No text is cut, outside, or on another."""
    room = rect.adjusted(-1, -1, 1, 1)
    for n, one in enumerate(drawn):
        assert not one.cut, one
        assert room.contains(one.ink), (one, rect)
        for other in drawn[:n]:
            shared = one.ink.intersected(other.ink)
            assert shared.width() < 1 or shared.height() < 1, (one, other)


# --- figures -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALGORITHMS)
def test_figures_are_those_of_the_run(name: str) -> None:
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


def test_tiles_are_named_by_their_blocks() -> None:
    trace = demo("flash2")
    visit = trace.program.index(0, 2, 3)
    assert visit is not None
    names = {chip.tensor: chip.names[0] for now in
             (trace.snapshot(visit, op) for op in range(len(trace.program.ops(visit))))
             for chip in (*memory_model(now).shared, *memory_model(now).registers)}  # fmt: skip
    assert names == {"Q": "Q₂", "K": "K₃", "V": "V₃", "S": "S₂₃", "P": "P₂₃", "O": "O₂", "m": "m ℓ"}
    load = memory_model(trace.snapshot(visit, 0)).lanes[0]
    assert load.labels[0] == f"K₃  {bytes_text(load.bytes)} →"


@pytest.mark.parametrize("name", beside(USUAL.name))
def test_naive_of_the_same_workload(name: str) -> None:
    # The three demos are one sentence with one tiling.
    assert baseline_total(demo(name).workload) == demo("naive").program.totals.bytes


def test_comparison_is_of_whole_runs() -> None:
    assert comparison(66 * 2**20, 194 * 2**20)[0] == (
        "whole run 66.0 MiB  ·  naive 194.0 MiB, 2.94× as much"
    )
    scale = at_scale(demo("flash2").program)
    assert scale is not None
    long, short = comparison(8192, 9626, scale, "flash2"), comparison(8192, 9626)
    there = f"at N = 16\u2009384 in 128 × 128 tiles {factor_text(scale.times('flash2'))}"
    brief = "run 8.0 KiB  ·  naive 9.4 KiB, 1.18×"
    assert long == (*(f"{each}; {there}" for each in (short[0], brief, short[1])), *short)
    assert comparison(1024, 1024) == comparison(1024, None) == ("whole run 1.0 KiB",)


# --- picture -----------------------------------------------------------------------------------


def view_painted(
    name: str, state: MemoryState, style: Style, rect: QRectF, size: tuple[int, int] = (8, 8)
) -> QImage:
    """Return a view as it is painted."""
    return painted(lambda p: paint_view(p, name, state, style, rect), *size)


def drawn_texts(name: str, state: MemoryState, style: Style, rect: QRectF) -> list[DrawnText]:
    """Return what is written in a view, which is tidy."""
    with pytest.MonkeyPatch.context() as patch:
        found = [record_texts(patch, module) for module in (memory, scale, tilted)]
        view_painted(name, state, style, rect)
    drawn = [one for each in found for one in each]
    assert_tidy(drawn, rect)
    return drawn


@pytest.mark.parametrize("name", VIEWS)
@given(
    number=st.integers(0, 10**6), width=st.floats(MIN_SIZE.width(), 1500),
    height=st.floats(MIN_SIZE.height(), 700), text=st.floats(1, 2), with_naive=st.booleans(),
)  # fmt: skip
# Two partial results in one narrow slot.
@example(number=25849, width=300.0, height=170.0, text=1.0, with_naive=False)
@example(number=143, width=300.0, height=170.0, text=1.0, with_naive=False)
def test_no_text_collides(
    name: str, number: int, width: float, height: float, text: float, with_naive: bool
) -> None:
    now = snapshots()[number % len(snapshots())]
    naive = baseline_total(now.program.workload) if with_naive else None
    rect = QRectF(3, 5, width, height)
    drawn = drawn_texts(name, MemoryState(now, naive), Style(DARK, text), rect)
    assert any("requested" in one.text for one in drawn)


@pytest.mark.parametrize("size", [(300, 170), (335, 205), (452, 190), (640, 330), (300, 400)])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_bars_are_explained_and_behind_no_words(name: str, size: tuple[int, int]) -> None:
    """Before the word for what is read is its filling, and before that for what is written."""
    now, rect = demo(name).snapshot(len(demo(name)) // 2), QRectF(0, 0, *size)
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
def test_a_tall_place_shows_all_figures(
    number: int, width: float, aspect: float, text: float
) -> None:
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
def test_tiles_land_where_they_are_drawn(
    name: str, number: int, width: float, aspect: float
) -> None:
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
def test_more_than_the_limit_turns_red_and_says_so(
    theme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
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
def test_tiles_travel_while_the_op_is_done(name: str) -> None:
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


def test_no_byte_is_counted_before_its_tile_has_landed() -> None:
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


def test_it_moves_from_the_state_before_and_only_then(panel: MemoryPanel) -> None:
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


def test_scenarios_change_under_the_panel(panel: MemoryPanel) -> None:
    scenario = load_scenario(SCENARIOS / "flash2.toml")
    panel.show_snapshot(demo("flash2").snapshot(0, 0))
    before = panel.baseline_bytes(demo("flash2").program)
    other = simulate(with_values(scenario, {"tiling": {"rows": 2, "cols": 2}}))
    panel.show_snapshot(other.snapshot(0, 1))
    assert panel.baseline_bytes(other.program) == baseline_total(other.workload) != before
    panel.grab()
