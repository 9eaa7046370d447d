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
from ui.panels.memory.model import MemoryState, baseline_total, comparison, memory_model
from ui.panels.memory.painter import paint_memory
from ui.panels.memory.panel import MemoryPanel
from ui.panels.memory.places import MIN_SIZE, memory_berths, memory_layout

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
        "whole run: 66.0 MiB requested  ·  naive 194.0 MiB, 2.94× as much"
    )
    assert comparison(17 * 2**10, 10 * 2**10)[1].endswith("naive 10.0 KiB, 0.588× as much")
    assert "3\u2009257× as much" in comparison(2**10, 3257 * 2**10)[0]
    scale = at_scale(demo("flash2").program)
    assert scale is not None
    long = comparison(8192, 9626, scale, "flash2")
    there = f"at N = 16\u2009384 in 128 × 128 tiles {factor_text(scale.times('flash2'))}"
    assert all(text.endswith(there) for text in long[:4])
    assert long[4:] == comparison(8192, 9626)
    assert comparison(1024, 1024)[0] == comparison(1024, None)[0] == "whole run 1.0 KiB requested"


# --- picture -----------------------------------------------------------------------------------


@given(
    st.integers(0, 10**6), st.floats(MIN_SIZE.width(), 1500), st.floats(MIN_SIZE.height(), 700),
    st.floats(1, 2), st.booleans(),
)  # fmt: skip
def test_no_text_collides(
    number: int, width: float, height: float, scale: float, with_naive: bool
) -> None:
    now = snapshots()[number % len(snapshots())]
    rect = QRectF(3, 5, width, height)
    naive = baseline_total(now.program.workload) if with_naive else None
    with pytest.MonkeyPatch.context() as patch:
        drawn = record_texts(patch, memory)
        painted(lambda p: paint_memory(p, MemoryState(now, naive), Style(DARK, scale), rect))
    assert_tidy(drawn, rect)
    assert any("requested" in one.text for one in drawn)


@pytest.mark.parametrize("size", [(300, 170), (335, 205), (640, 330), (300, 400)])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_no_bar_lies_behind_the_words_of_a_tensor(name: str, size: tuple[int, int]) -> None:
    now = demo(name).snapshot(len(demo(name)) // 2)
    model, rect = memory_model(now), QRectF(0, 0, *size)
    with pytest.MonkeyPatch.context() as patch:
        drawn = record_texts(patch, memory)
        # All but the words.
        picture = painted(lambda p: paint_memory(p, MemoryState(now), Style(DARK), rect), *size)
    lay = memory_layout(rect, Style(DARK), len(model.lanes), len(model.tensors))
    words = [one for one in drawn if any(row.contains(one.ink.center()) for row in lay.tensors)]
    assert len(words) == 2 * len(model.tensors)
    for one in words:
        inner = one.ink.toAlignedRect().adjusted(1, 1, -1, -1)
        behind = picture.copy(inner)
        colours = {behind.pixel(x, y) for x in range(inner.width()) for y in range(inner.height())}
        assert len(colours) == 1, one


@pytest.mark.parametrize("size", [(300, 170), (335, 205), (452, 190), (640, 330), (300, 400)])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_it_is_always_said_how_bars_are_filled(name: str, size: tuple[int, int]) -> None:
    """Before the word for what is read is its filling, and before that for what is written.

    In the smallest places the longest lists have no bars.
    """
    now, rect = demo(name).snapshot(len(demo(name)) // 2), QRectF(0, 0, *size)
    with pytest.MonkeyPatch.context() as patch:
        drawn = record_texts(patch, memory)
        picture = painted(lambda p: paint_memory(p, MemoryState(now), Style(DARK), rect), *size)
    assert_tidy(drawn, rect)
    colours = {picture.pixel(x, y) for x in range(size[0] // 3) for y in range(size[1])}
    tensors = [each.tensor for each in memory_model(now).tensors]
    bars = QColor(DARK.tensor(tensors[0])).rgb() in colours
    assert bars or (len(tensors) > 6 and size[0] < 400)
    for word, hatched in (("read", False), ("written", True)) if bars else ():
        found = []
        for one in (each for each in drawn if each.text.startswith(word)):
            x, y = round(one.ink.left()) - 7, round(one.ink.center().y())
            before = {
                picture.pixelColor(x + across, y + down).name()
                for across in (range(-2, 3) if hatched else (0,))
                for down in range(-2, 3)
            }
            found.append(len(before) > 1 if hatched else before == {QColor(DARK.muted).name()})
        assert any(found), word


@given(st.integers(0, 10**6), st.floats(300, 700), st.floats(0.9, 2), st.floats(1, 2))
@example(1060, 300.0, 1.0, 1.0)  # a short name leaves room for the bytes
def test_a_tall_place_shows_all_figures(
    number: int, width: float, aspect: float, scale: float
) -> None:
    now = snapshots()[number % len(snapshots())]
    rect = QRectF(3, 5, width, width * aspect)
    with pytest.MonkeyPatch.context() as patch:
        drawn = record_texts(patch, memory)
        painted(lambda p: paint_memory(p, MemoryState(now), Style(DARK, scale), rect))
    assert_tidy(drawn, rect)
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
        berths = memory_berths(Motion(before, trace.snapshot(visit, op)), style, rect)
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
        image = painted(lambda p: paint_memory(p, MemoryState(now), style, rect), 420, 200)
        red = any(image.pixel(x, y) == bad for x in range(420) for y in range(150, 200))
        assert red is over
        with monkeypatch.context() as patch:
            drawn = record_texts(patch, memory)
            painted(lambda p: paint_memory(p, MemoryState(now), style, rect))
        assert any(one.text == "over the limit" for one in drawn) is over
        assert_tidy(drawn, rect)


def test_tiles_travel_while_the_op_is_done() -> None:
    trace = demo("flash2")
    motion = Motion(trace.snapshot(0), trace.snapshot(1, 0))
    assert motion.after.op.loads
    rect = QRectF(10, 5, 400, 190)

    def picture(share: float) -> QImage:
        state = MemoryState(motion.after, None, motion, share)
        return painted(lambda p: paint_memory(p, state, Style(DARK), rect), 420, 200)

    pictures = [picture(n / 24) for n in range(25)]
    assert sum(one != two for one, two in pairwise(pictures)) > 12  # then on the way to the board
    before, after = (
        painted(lambda p, now=now: paint_memory(p, MemoryState(now), Style(DARK), rect), 420, 200)
        for now in (motion.before, motion.after)
    )
    assert pictures[0] == before
    assert pictures[-1] == after


def test_no_byte_is_counted_before_its_tile_has_landed(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = demo("flash2")
    for share in (0.01, 0.3, 0.6, 0.9, 0.999):
        motion = Motion(trace.snapshot(0), trace.snapshot(1, 0))  # of which nothing is kept yet
        landed = sum(f.move.bytes for f in motion.flights if f.landed(share))
        with monkeypatch.context() as patch:
            drawn = record_texts(patch, memory)
            rect = QRectF(10, 5, 560, 190)
            painted(lambda p, share=share, rect=rect, motion=motion: paint_memory(
                p, MemoryState(motion.after, None, motion, share), Style(DARK), rect
            ))  # fmt: skip
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
