"""The memory to scale and tilted: true areas, tiles that land where they are drawn, tidy words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QRectF

from simulator import simulate
from simulator.base.assets import SCENARIOS
from simulator.lesson.tables import ChooseTable
from simulator.problem.hardware import gpus
from simulator.problem.scenario import load_scenario, with_values
from simulator.run.motion import Motion
from tests.helpers.demos import demo, snapshots
from tests.ui.panels.test_memory import view_painted
from ui.board.board import board_layout
from ui.board.flights import in_flight
from ui.look.theme import DARK, Style
from ui.panels.memory.model import MemoryState
from ui.panels.memory.panel import MemoryPanel
from ui.panels.memory.scale import grain, rounded_text, scale_layout, scale_model
from ui.panels.memory.tilted import block_of, rise, tilted_layout
from ui.panels.memory.views import VIEWS, berths_of

pytestmark = pytest.mark.usefixtures("qapp")

ALGORITHMS = "flash1", "flash2", "naive", "split-kv"


@pytest.mark.long
@given(
    number=st.integers(0, 10**6), width=st.floats(300, 1200), aspect=st.floats(0.4, 1.6),
    gpu=st.sampled_from(sorted(gpus())),
)  # fmt: skip
def test_areas_are_in_proportion(number: int, width: float, aspect: float, gpu: str) -> None:
    large = demo("real-scale").snapshot(2000, 1)
    now = large if number % 4 == 0 else snapshots()[number % len(snapshots())]
    model = replace(scale_model(now), gpu=gpus()[gpu])
    rect = QRectF(3, 5, width, width * aspect)
    lay = scale_layout(rect, Style(DARK), model)
    assert len(lay.cells) == model.gpu.memory_gb

    def area(box: QRectF) -> float:
        return box.width() * box.height()

    per_byte = sum(map(area, lay.cells)) / model.gpu.memory_bytes
    assert isclose(area(lay.all_desks), model.gpu.sms * model.gpu.smem_bytes * per_byte)
    nearer = area(lay.desk) / model.gpu.smem_bytes
    assert isclose(nearer / per_byte, lay.magnified**2)
    if model.gpu.register_bytes is None:
        assert lay.drawer.isNull()
    else:
        assert isclose(area(lay.drawer) / model.gpu.register_bytes, nearer)
    for name, box in lay.tensors.items():
        assert isclose(area(box) / model.stored[name], nearer)
        assert lay.lens.contains(box)
        assert box.right() < lay.desk.left()
    chips = [(chip, False) for chip in model.memory.shared]
    if not lay.drawer.isNull():
        chips += [(chip, True) for chip in model.memory.registers]
    for chip, registers in chips:
        box = grain(chip, lay, model, registers=registers)
        assert isclose(area(box) / chip.bytes, nearer)
    for box in (*lay.cells, lay.all_desks):
        assert lay.store.contains(box)
    for box in (lay.desk, lay.drawer):
        assert lay.lens.contains(box) or box.isNull()


def test_how_large_hbm_is() -> None:
    model = scale_model(demo("flash2").snapshot(0))
    assert model.desks == 80 * 10**9 // (227 * 1024) == 344162
    assert model.words[0].startswith("HBM: 344\u2009000 times the 227 KiB of SRAM")
    assert model.stored == {"Q": 832, "K": 832, "V": 832, "O": 832, "LSE": 52}
    assert model.words[0].endswith("3.3 KiB, one part in 23\u2009700\u2009000 of it")
    assert [rounded_text(n) for n in (0.5, 12, 999.6, 1000, 123456)] == [
        "0.5", "12", "1\u2009000", "1\u2009000", "123\u2009000",
    ]  # fmt: skip


def test_a_run_that_fills_much_of_hbm_is_seen_in_the_store() -> None:
    long = {"algorithm": "naive", "seqlen_q": 32768, "head_dim": 32, "heads": 1}
    trace = simulate(
        with_values(
            load_scenario(SCENARIOS / "causal.toml"),
            {"attention": long, "tiling": {"rows": 128, "cols": 128}, "hardware": {"preset": "T4"}},
        )
    )
    now, rect = trace.snapshot(0, 0), QRectF(0, 0, 460, 220)
    model = scale_model(now)
    assert model.stored["S"] == 2 * 32768**2
    lay = scale_layout(rect, Style(DARK), model)
    assert lay.tensors == {}, "they are larger than the magnifier"
    image = view_painted("scale", MemoryState(now), Style(DARK), rect, (460, 220))
    score, output = DARK.tensor("S").rgb(), DARK.tensor("O").rgb()
    pixels = [image.pixel(x, y) for x in range(160) for y in range(180)]
    filled = pixels.count(score)
    cell = lay.cells[0].width() ** 2
    assert isclose(filled / cell, model.stored["S"] / 1e9, rel_tol=0.25)  # less the lines
    assert pixels.count(output) < 0.05 * cell


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize("name", ["scale", "tilted"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_tiles_land_where_they_are_drawn(name: str, algorithm: str) -> None:
    trace = demo(algorithm)
    for rect in (QRectF(3, 5, 440, 190), QRectF(3, 5, 300, 340)):
        for visit in range(1, len(trace), 3):
            for op, each in enumerate(trace.program.ops(visit)):
                before = trace.snapshot(visit, op - 1) if op else trace.snapshot(visit - 1)
                now = trace.snapshot(visit, op)
                motion = Motion(before, now)
                berths = berths_of(name, motion, Style(DARK), rect)
                assert set(berths) == {move.tensor for move in each.moves}
                for tensor, (low, high) in berths.items():
                    assert rect.contains(low)
                    assert rect.contains(high) or name == "tilted"
                    chips = [c for c in scale_model(now).memory.shared if c.tensor == tensor]
                    if name == "scale" and chips:
                        model = scale_model(now)
                        lay = scale_layout(rect, Style(DARK), model)
                        assert high.contains(grain(chips[0], lay, model, registers=False).center())


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_tile_rises_into_its_slot(algorithm: str) -> None:
    trace = demo(algorithm)
    lay = tilted_layout(QRectF(3, 5, 440, 190), Style(DARK), trace.program.tensors)
    for visit in range(1, len(trace), 3):
        motion = Motion(trace.snapshot(visit - 1), trace.snapshot(visit, 0))
        held = {chip.tensor: chip for chip in scale_model(motion.after).memory.shared}
        for flight in motion.flights:
            low, high = rise(flight, motion, lay)
            assert lay.hbm.polygon.boundingRect().contains(low.box.center())
            if flight.move.tensor in held:
                assert high == lay.slot(held[flight.move.tensor].slot, registers=False)


def test_where_tiles_rise_the_board_sends_them_to_hbm() -> None:
    trace = demo("flash2")
    motion, style = Motion(trace.snapshot(0), trace.snapshot(1, 0)), Style(DARK)
    board = board_layout(trace.workload, style, QRectF(0, 0, 500, 400))
    berths = berths_of("tilted", motion, style, QRectF(510, 0, 400, 190))
    seen = 0
    for n in range(1, 200):
        for tile in in_flight(motion, n / 200, board, berths):
            seen += 1
            assert tile.out < 0.5
            low = berths[tile.move.tensor][0]
            if tile.out > 0.45:
                assert low.adjusted(-60, -60, 60, 60).contains(tile.box.center())
    assert 40 < seen < 200


def test_a_tile_rises_from_its_own_rows() -> None:
    trace = demo("flash2")
    w, now = trace.workload, trace.snapshot(3, 0)
    lay = tilted_layout(QRectF(0, 0, 440, 190), Style(DARK), trace.program.tensors)
    for move in now.op.moves:
        whole = lay.tensors[move.tensor]
        part = block_of(move, whole, w)
        assert isclose(part.across.x() / whole.across.x(), len(move.rows) / w.seqlen_k)
        first = (part.at.x() - whole.at.x()) / whole.across.x()
        assert isclose(first, move.rows.start / w.seqlen_k, abs_tol=1e-9)


@pytest.fixture
def panel() -> Iterator[MemoryPanel]:
    widget = MemoryPanel()
    widget.resize(420, 200)
    widget.show()
    yield widget
    widget.title_bar.deleteLater()
    widget.close()
    widget.deleteLater()


def test_the_panel_shows_what_is_chosen(panel: MemoryPanel) -> None:
    now = demo("flash2").snapshot(2, 1)
    panel.show_snapshot(now)
    pictures = {}
    for name in VIEWS:
        panel.title_bar.choose("memory", name)
        pictures[name] = panel.grab().toImage()
        said = panel.accessibleDescription()
        assert said.startswith("HBM: 344") is (name == "scale")
        assert "requested bytes" in said
    assert pictures["plain"] != pictures["scale"] != pictures["tilted"]
    for name in ("tilted", "plain"):
        panel.take_choices(ChooseTable.model_validate({"memory": name}))
        assert panel.grab().toImage() == pictures[name]
        assert panel.title_bar.buttons["memory", name].isChecked()
    panel.take_choices(ChooseTable(memory="scale"))
    panel.take_choices(ChooseTable())
    assert panel.grab().toImage() == pictures["plain"]
    motion = Motion(demo("flash2").snapshot(0), demo("flash2").snapshot(1, 0))
    places = [panel.berths(motion)]
    for name in ("scale", "tilted"):
        panel.choose("memory", name)
        places.append(panel.berths(motion))
    assert places[0] != places[1] != places[2]
