"""The board: geometry, what is painted where, and what it says."""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QImage, QPainter

from simulator.base.assets import ASSETS
from simulator.problem.masks import Mask
from simulator.problem.scenario import load_scenario, parse_scenario, with_values
from simulator.problem.tiling import TileGrid
from simulator.problem.workload import Workload, resolve
from simulator.run.snapshot import Cell, Snapshot
from simulator.run.trace import Trace, simulate
from tests.helpers.tile_states import tile_states
from ui.board.board import paint_board
from ui.board.layout import Viewport, board_layout
from ui.board.middle import middle_at
from ui.board.scores import TILES, tile_sheet
from ui.board.text import wrapped
from ui.board.words import caption_phrases, describe, formula, header_choices
from ui.look.draw import text_width
from ui.look.heat import KEPT, Sheet, colour_map, pooled, prefers_white
from ui.look.theme import DARK, LIGHT, THEMES, Style, load_fonts
from ui.look.units import number_text


@pytest.fixture(autouse=True)
def _fonts(qapp: object) -> None:
    load_fonts()


@cache
def demo(name: str) -> Trace:
    return simulate(ASSETS / "scenarios" / f"{name}.toml")


@cache
def passage() -> Trace:
    tables: dict[str, Any] = {
        "tiling": {"rows": 64, "cols": 64},
        "input": {"source": "capture", "name": "passage-layer1", "head": [3]},
    }
    return simulate(parse_scenario(tables))


@cache
def blocks_of_4096(algorithm: str = "flash2") -> Trace:
    tables: dict[str, Any] = {
        "attention": {"algorithm": algorithm, "seqlen_q": 4096, "head_dim": 16},
        "mask": {"causal": True},
        "tiling": {"rows": 128, "cols": 128},
    }
    return simulate(parse_scenario(tables))


def workload(Nq: int, Nk: int, d: int = 32, dv: int = 32, tile: int = 16) -> Workload:
    tables: dict[str, Any] = {
        "attention": {"seqlen_q": Nq, "seqlen_k": Nk, "head_dim": d, "value_dim": dv},
        "tiling": {"rows": tile, "cols": tile},
    }
    return resolve(parse_scenario(tables))


def painted(snapshot: Snapshot, style: Style, width: int, height: int, **more: Any) -> QImage:
    image = QImage(width, height, QImage.Format.Format_RGB32)
    image.fill(QColor(style.theme.panel))
    painter = QPainter(image)
    paint_board(painter, snapshot, style, QRectF(0, 0, width, height), **more)
    painter.end()
    return image


def colours(image: QImage, rect: QRectF) -> set[str]:
    part = image.copy(rect.toRect())
    words = np.frombuffer(part.constBits(), dtype=np.uint32)  # RGB32 has no padding
    return {QColor(int(word) & 0xFFFFFF).name() for word in np.unique(words)}


# --- what is shown ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["flash1", "flash2", "naive", "causal", "window-sinks"])
def test_past_areas_cover_exactly_the_used_tiles(name: str) -> None:
    trace = demo(name)
    grid = trace.workload.grid
    for visit in range(0, len(trace), 3):
        snapshot = trace.snapshot(visit, 0)
        used = tile_states(snapshot.program, snapshot.visit) == 3
        if snapshot.stores_scores and snapshot.visit.launch == 2:
            used[snapshot.visit.i, snapshot.visit.j] = True  # its P lies in HBM as well
        kinds = grid.kinds()
        for i, j in itertools.product(range(grid.Tr), range(grid.Tc)):
            rows, cols = grid.row_range(i), grid.col_range(j)
            covering = [
                area
                for area in middle_at(snapshot).areas(snapshot.program, snapshot.visit)
                if rows.start in area.rows and cols.start in area.cols
            ]
            assert len(covering) <= 1
            worked_on = bool(covering) and (snapshot.stores_scores or kinds[i, j] > 0)
            assert worked_on == bool(used[i, j]), (visit, i, j)


@pytest.mark.parametrize("theme", THEMES.values(), ids=lambda theme: theme.name)
def test_tiles_look_like_their_states(theme: Any) -> None:
    trace, style = demo("causal"), Style(theme)
    snapshot = trace.snapshot(4, 4)  # tile (2, 1)
    w, room = trace.workload, QRectF(0, 0, 1180, 740)
    image = painted(snapshot, style, 1180, 740)
    lay = board_layout(w, style, room)

    def tile(i: int, j: int) -> QRectF:
        return lay.tile(w.grid.row_range(i), w.grid.col_range(j))

    current = tile(2, 1)
    middle_of_edge = image.pixelColor(round(current.center().x()), round(current.top()))
    assert middle_of_edge == QColor(theme.current)
    assert colours(image, tile(3, 0).adjusted(3, 3, -3, -3)) == {QColor(theme.empty).name()}
    hatched = colours(image, tile(0, 2).adjusted(3, 3, -3, -3))
    assert QColor(theme.empty).name() in hatched
    assert len(hatched) > 1  # the lines
    dim = {QColor(int(word) & 0xFFFFFF).name() for word in colour_map(theme, "P", dim=True)[:256]}
    assert colours(image, tile(2, 0).adjusted(3, 3, -3, -3)) <= dim
    bright = {QColor(int(word) & 0xFFFFFF).name() for word in colour_map(theme, "P")[:256]}
    assert colours(image, current.adjusted(6, 6, -6, -6)) <= bright
    assert not bright & dim


def test_current_cells_have_the_colours_of_their_numbers() -> None:
    trace, style = demo("flash2"), Style(DARK)
    snapshot = trace.snapshot(7)
    image = painted(snapshot, style, 1180, 740)
    lay = board_layout(trace.workload, style, QRectF(0, 0, 1180, 740))
    words, weights = colour_map(DARK, "P"), snapshot.weights
    assert weights is not None
    for (r, c), value in np.ndenumerate(weights):
        row, key = snapshot.visit.rows[r], snapshot.visit.cols[c]
        x, y = lay.col_x(key + 0.5), lay.row_y(row + 0.5)
        seen = image.pixelColor(round(x), round(y))
        expected = QColor(int(words[int(value * 255)]) & 0xFFFFFF)
        assert seen == expected, (row, key)


def test_what_does_not_exist_yet_is_empty() -> None:
    trace, style = demo("causal"), Style(DARK)
    image = painted(trace.snapshot(0, 0), style, 1180, 740)
    lay = board_layout(trace.workload, style, QRectF(0, 0, 1180, 740))
    below = range(16, 64)
    for name in ("m", "l", "O"):
        inner = lay.row_band(name, below).adjusted(2, 4, -2, -2)
        assert colours(image, inner) == {QColor(DARK.empty).name()}


def test_naive_keeps_tiles_bright() -> None:
    trace, style = demo("naive"), Style(LIGHT)
    snapshot = trace.snapshot(7)
    assert [
        (area.name, area.dropped)
        for area in middle_at(snapshot).areas(snapshot.program, snapshot.visit)
    ] == [("S", False)] * 2
    image = painted(snapshot, style, 1180, 740)
    lay = board_layout(trace.workload, style, QRectF(0, 0, 1180, 740))
    grid = trace.workload.grid
    bright = {QColor(int(word) & 0xFFFFFF).name() for word in colour_map(LIGHT, "S")[:256]}
    inner = lay.tile(grid.row_range(0), grid.col_range(1)).adjusted(3, 3, -3, -3)
    assert colours(image, inner) <= bright


@pytest.mark.parametrize("algorithm", ["flash2", "flash1", "naive"])
def test_large_problems_colour_tiles_by_state(algorithm: str) -> None:
    trace, style = blocks_of_4096(algorithm), Style(DARK)
    index = trace.program.index(0, 20, 10)
    assert index is not None
    snapshot = trace.snapshot(index, 2)
    assert snapshot.head is None
    image = painted(snapshot, style, 1180, 740)
    lay = board_layout(trace.workload, style, QRectF(0, 0, 1180, 740))
    grid = trace.workload.grid

    def ground(i: int, j: int) -> set[str]:
        return colours(image, lay.tile(grid.row_range(i), grid.col_range(j)).adjusted(3, 3, -3, -3))

    used, pending = ground(18, 4), ground(30, 22)
    assert len(used) == 1
    assert pending == {QColor(DARK.empty).name()}
    assert used != pending
    if algorithm == "naive":
        assert len(ground(4, 18)) == 1
    else:
        assert len(ground(4, 25) | ground(5, 26)) > 1  # hatched
    middle = lay.inset.adjusted(8, 8, -8, -40)
    assert len(colours(image, middle)) > 20  # the tile's own numbers


@pytest.mark.sweep(keep=7)
@pytest.mark.parametrize("name", ["flash2", "naive", "flash1", "large-logits", "window-sinks"])
@pytest.mark.parametrize("theme", THEMES.values(), ids=lambda theme: theme.name)
def test_every_op_paints_inside_its_room(name: str, theme: Any) -> None:
    trace = demo(name)
    style = Style(theme, 1.5)
    room = QRectF(20, 30, 640, 520)
    for visit in {0, len(trace) // 2, len(trace) - 1}:
        for op in range(len(trace.program.ops(visit))):
            image = QImage(680, 580, QImage.Format.Format_RGB32)
            image.fill(QColor("#123456"))
            painter = QPainter(image)
            paint_board(
                painter, trace.snapshot(visit, op), style, room,
                view=Viewport(1.7, 3, 2), row=4, hover=Cell("S", 2, 2),
            )  # fmt: skip
            painter.end()
            for outside in (QRectF(0, 0, 680, 30), QRectF(0, 0, 20, 580), QRectF(660, 0, 20, 580)):
                assert colours(image, outside) == {"#123456"}


def test_a_tile_of_less_than_a_pixel_is_still_marked() -> None:
    w = resolve(load_scenario(ASSETS / "scenarios" / "real-scale.toml"))
    lay = board_layout(w, Style(DARK), QRectF(0, 0, 620, 480))
    tile = lay.tile(w.grid.row_range(700), w.grid.col_range(600))
    assert (tile.width(), tile.height()) == (1, 1)


# --- words ------------------------------------------------------------------------------------


def test_describe_reads_the_engines_numbers() -> None:
    trace = demo("flash2")
    snapshot = trace.snapshot(7)
    visit, tile = snapshot.visit, snapshot.tile
    row, key = visit.rows[1], visit.cols[0]
    tokens = trace.workload.tokens
    assert describe(snapshot, Cell("S", row, key)) == (
        f"S[{row}, {key}] = q{row} · k{key} / √32 = {number_text(float(tile.s[1, 0]))}"
        f"  ·  P = {number_text(float(tile.p[1, 0]))}  ·  “{tokens[row]}” → “{tokens[key]}”"
    )
    product = float(snapshot.q[row] @ snapshot.k[key]) / np.sqrt(32)
    assert number_text(product) in describe(snapshot, Cell("S", row, key))
    for name, value in (("m", tile.m[1]), ("l", tile.l[1])):
        text = f"{'ℓ' if name == 'l' else name}[{row}] = {number_text(float(value))}"
        assert describe(snapshot, Cell(name, row, 0)).startswith(text)
    assert "not divided by ℓ yet" in describe(snapshot, Cell("O", row, 2))
    assert number_text(float(tile.o[1, 2])) in describe(snapshot, Cell("O", row, 2))
    assert describe(snapshot, Cell("K", 3, 5)) == (
        f"K[3, 5] = {number_text(float(snapshot.k[3, 5]))}  ·  “{tokens[3]}”"
    )
    last = trace.workload.seqlen_q - 1
    assert describe(snapshot, Cell("S", last, 0)).startswith(f"S[{last}, 0]: tile (")
    assert describe(snapshot, Cell("O", last, 0)).startswith(f"O[{last}, 0]: not there yet")
    past = describe(snapshot, Cell("S", 0, 2))
    assert snapshot.head is not None
    assert number_text(float(snapshot.head.s[0, 2])) in past
    assert "used and dropped" in past


def test_describe_names_what_the_mask_does() -> None:
    snapshot = demo("causal").snapshot(4, 4)  # tile (2, 1), P there
    assert describe(snapshot, Cell("S", 0, 50)) == "S[0, 50]: tile (0, 3) is skipped: never loaded"
    assert describe(snapshot, Cell("S", 3, 9)) == "S[3, 9]: hidden by the mask"
    trace = demo("causal")
    names = [op.name for op in trace.program.ops(5)]
    before = trace.snapshot(5, names.index("scores"))
    after = trace.snapshot(5, names.index("mask"))
    hidden = Cell("S", after.visit.rows.start, after.visit.cols.stop - 1)
    assert describe(before, hidden).endswith("the mask will hide it")
    assert describe(after, hidden).endswith("hidden by the mask")


def test_describe_says_where_the_scale_comes_from() -> None:
    assert "q0 · k0 · 6.5 = " in describe(demo("large-logits").snapshot(0), Cell("S", 0, 0))
    tables: dict[str, Any] = {
        "attention": {"seqlen_q": 8, "head_dim": 32, "temperature": 2.0},
        "tiling": {"rows": 4, "cols": 4},
    }
    trace = simulate(parse_scenario(tables))
    text = describe(trace.snapshot(0), Cell("S", 0, 0))
    assert "q0 · k0 · 0.177 / 2 = " in text
    assert number_text(float(trace.snapshot(0).tile.s[0, 0])) in text
    assert caption_phrases(trace.snapshot(0), 40)[0] == "S = QKᵀ · 0.177 / T, T = 2"


@pytest.mark.parametrize(
    ("logits", "said"), [([1.5, 1.5], "logit 1.500"), ([0.25, -2.0], "logit 0.250")]
)
def test_a_caption_tells_of_sinks(logits: list[float], said: str) -> None:
    tables: dict[str, Any] = {
        "attention": {"heads": 2, "seqlen_q": 8, "head_dim": 16},
        "scores": {"sink_logits": logits},
        "tiling": {"rows": 4, "cols": 4},
    }
    phrases = caption_phrases(simulate(parse_scenario(tables)).snapshot(0), 40)
    assert phrases[2] == f"each ℓ has a sink: {said}"
    # Heads that share a block have one each.
    tables["attention"] |= {"algorithm": "split-kv", "seqlen_q": 1, "seqlen_k": 8, "kv_heads": 1}
    packed = caption_phrases(simulate(parse_scenario(tables)).snapshot(0), 40)
    last = "logit 1.500" if logits[0] == logits[1] else "its head's logit"
    assert f"each ℓ has a sink: {last}" in packed


def test_describe_never_makes_numbers_up_in_large_problems() -> None:
    trace = blocks_of_4096()
    index = trace.program.index(0, 20, 10)
    assert index is not None
    snapshot = trace.snapshot(index)
    assert describe(snapshot, Cell("S", 0, 0)) == (
        "S[0, 0]: tile (0, 0) was used and dropped: go there to see its numbers"
    )
    assert describe(snapshot, Cell("m", 0, 0)) == (
        "m[0]: numbers are kept for the current row block alone"
    )
    row = snapshot.visit.rows[3]
    assert describe(snapshot, Cell("m", row, 0)).startswith(
        f"m[{row}] = {number_text(float(snapshot.m[3]))}"
    )


@pytest.mark.parametrize("name", ["flash1", "flash2", "naive", "causal", "grouped-heads"])
def test_describe_and_header_have_words_for_every_cursor(name: str) -> None:
    trace = demo(name)
    w = trace.workload
    hits = [Cell("S", w.seqlen_q // 2, w.seqlen_k // 2), Cell("O", 0, 0), Cell("l", 0, 0)]
    for visit in range(0, len(trace), max(1, len(trace) // 6)):
        for op in range(len(trace.program.ops(visit))):
            snapshot = trace.snapshot(visit, op)
            assert all(describe(snapshot, hit) for hit in hits)
            widths = [len(text) for text in header_choices(snapshot)]
            assert widths == sorted(widths, reverse=True)
            assert f"i = {snapshot.visit.i} of {w.grid.Tr}" in header_choices(snapshot)[0]


def test_header_names_heads_as_the_input_does() -> None:
    assert header_choices(demo("flash2").snapshot(0))[0].startswith("head 3  ·")
    grouped = demo("grouped-heads")
    last = header_choices(grouped.snapshot(len(grouped) - 1))[0]
    assert last.startswith("head 5 (KV head 1)  ·  row block i = 4 of 5")
    assert "S and P are written to HBM" in header_choices(demo("naive").snapshot(0))[0]


def test_captions_drop_what_matters_least() -> None:
    phrases = caption_phrases(demo("causal").snapshot(4, 4), 80)
    assert phrases[:2] == ["S = QKᵀ/√d", "P = exp(S − m) of tile (2, 1) in registers"]
    dim = "dim tiles were used and dropped: exp(S − m) of now"
    assert phrases[-2:] == [dim, "hatched tiles are skipped"]
    font = Style(DARK).text_font(11.5)
    for width in (200, 300, 420, 600, 1200):
        lines = wrapped(phrases, font, width, 2)
        assert 1 <= len(lines) <= 2
        assert all(text_width(font, line) <= width for line in lines)
    assert "hatched" not in " ".join(wrapped(phrases, font, 250, 1))


@pytest.mark.long
def test_tiles_that_were_dropped_are_spoken_of_where_there_are_some() -> None:
    for name in ("flash1", "flash2", "grouped-heads", "real-scale"):
        program = demo(name).program
        heads = [program.visit(index).head for index in range(min(len(program), 60))]
        for index, head in enumerate(heads):
            snapshot = demo(name).snapshot(index)
            said = " ".join(caption_phrases(snapshot, 80))
            ended = snapshot.so_far is not None
            assert ("used and dropped" in said) == (head in heads[:index] and not ended), index
            assert ("final weights" in said) == ended, (name, index)


# --- colours ----------------------------------------------------------------------------------


@pytest.mark.parametrize("theme", THEMES.values(), ids=lambda theme: theme.name)
@pytest.mark.parametrize("name", ["S", "Q", "K", "V", "O", "m", "l"])
def test_maps_run_one_way_so_that_sign_shows(theme: Any, name: str) -> None:
    words = colour_map(theme, name)[:256]
    light = [QColor(int(word) & 0xFFFFFF).lightnessF() for word in words]
    steps = np.diff(light) * (1 if theme.dark else -1)
    assert (steps >= -0.01).all()
    assert abs(light[-1] - light[0]) > 0.25


def test_numbers_are_written_in_the_ink_that_can_be_read() -> None:
    words = np.array([[0xFF440154, 0xFFFDE725, 0xFFFFFFFF, 0xFF000000]], dtype=np.uint32)
    assert prefers_white(words).tolist() == [[True, False, False, True]]


@pytest.mark.parametrize("rows", [5, 64, 1000, 4099])
def test_pooled_rows_are_means(rows: int) -> None:
    values = np.arange(rows * 3, dtype=np.float32).reshape(rows, 3)
    out = pooled(values, 64)
    run = max(rows // 64, 1)
    assert len(out) == -(-rows // run)
    np.testing.assert_allclose(out[0], values[:run].mean(axis=0))
    np.testing.assert_allclose(out[-1], values[(len(out) - 1) * run :].mean(axis=0), rtol=1e-5)


def test_what_is_kept_goes_with_its_array() -> None:
    made: list[int] = []

    def make() -> int:
        made.append(1)
        return len(made)

    whole = np.zeros((4, 5))
    assert KEPT.get(whole[1], "test", make) == 1
    assert KEPT.get(whole[1], "test", make) == 1  # another view of the same memory
    assert KEPT.get(whole[2], "test", make) == 2
    for _ in range(5):  # new arrays at the places of dead ones are not taken for them
        fresh = np.zeros((4, 5))
        before = len(made)
        KEPT.get(fresh, "test", make)
        assert len(made) == before + 1
        del fresh


def test_sheets_of_tiles_are_few_and_go_with_their_run() -> None:
    """The largest takes 8 MiB with the sizes that it is shown in, and each run has others."""

    def sheet(grid: TileGrid) -> Sheet:
        return tile_sheet(grid, "dark", "used", (0, 0, grid.Tc, grid.Tr), grid.Tr, grid.Tc)

    grids = [TileGrid(Mask(4096, 4096, causal=True), 4, 4) for _ in range(9)]
    for grid in grids:
        assert sheet(grid) is sheet(grid)
    assert TILES.bytes < 32 * 2**20
    grids[:-1] = []
    sheet(grid)  # nothing new is made
    assert TILES.bytes < 12 * 2**20


def test_a_scale_near_the_usual_one_is_written_out() -> None:
    usual = load_scenario(ASSETS / "scenarios" / "causal.toml")
    near = with_values(usual, {"attention": {"scale": 0.177}})
    assert formula(resolve(usual)) == "S = QKᵀ/√d"
    assert formula(resolve(near)) == "S = QKᵀ · 0.177"


@pytest.mark.parametrize("size", [(712, 570), (812, 570), (940, 760), (1400, 1000)], ids=str)
def test_the_magnified_tile_leaves_the_legend_its_room(size) -> None:
    w = demo("real-scale").workload
    lay = board_layout(w, Style(DARK), QRectF(0, 0, *size))
    assert not lay.inset.isNull()
    assert lay.legend.width() >= 76
    assert not lay.legend.intersects(lay.inset)
    assert lay.rect.contains(lay.legend)


def test_no_line_to_the_magnifier_crosses_the_matrix() -> None:
    tables: dict[str, Any] = {
        "attention": {"seqlen_q": 4096, "head_dim": 16}, "tiling": {"rows": 128, "cols": 128},
    }  # fmt: skip
    snapshot, size = simulate(parse_scenario(tables)).snapshot(5, 3), (900, 640)
    lay = board_layout(snapshot.program.workload, Style(LIGHT), QRectF(0, 0, *size))
    image = painted(snapshot, Style(LIGHT), *size)
    tile, inset = lay.tile(snapshot.visit.rows, snapshot.visit.cols), lay.inset
    below = lay.boxes["S"].adjusted(0, tile.bottom() + 12 - lay.boxes["S"].top(), 0, 0)
    assert not inset.isNull()
    assert colours(image, below) <= {LIGHT.empty.lower(), LIGHT.grid.lower()}
    frames = [colours(image, box) for box in (tile.adjusted(-3, -3, 3, 3), inset)]
    assert all(LIGHT.current.lower() in found for found in frames)
