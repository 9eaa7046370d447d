"""The layer panel: from X to Y, what heads give, and what more of them would cost."""

from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtTest import QTest
from safetensors.numpy import save_file

from simulator.base.assets import SCENARIOS
from simulator.problem.scenario import Scenario, load_scenario, parse_scenario, with_values
from simulator.program.playback import Cursor
from simulator.run.row_report import row_report
from simulator.run.trace import Trace, simulate
from simulator.run.whole_layer import LayerRun, compute_layer, finished_rows
from ui.look.draw import text_width
from ui.look.theme import TEXT_SCALES, THEMES, Style
from ui.panels.layer.circuits import asymmetry_words, circuit_layout, circuit_state, paint_circuit
from ui.panels.layer.counts import count_layout, count_state, lines, paint_counts
from ui.panels.layer.detail import detail_layout
from ui.panels.layer.flow import mixed_rows, name_parts, paint_flow, tile_words
from ui.panels.layer.matrices import number_font
from ui.panels.layer.model import COLOURS, FlowState, LayerModel, heads_of, layer_model, matrix
from ui.panels.layer.panel import NO_LAYER, LayerPanel
from ui.panels.layer.places import TILES, flow_layout
from ui.panels.layer.row import (
    legend_heads,
    paint_row,
    piece_box,
    row_layout,
    row_state,
    scale_of,
)
from ui.panels.layer.words import LATEX, cell_words, facts, formula_of
from ui.window.main_window import MainWindow

CASE = Path(__file__).parents[2] / "conformance" / "layer-essay.expected.npz"
SIZES = [(1264, 538), (1904, 870), (620, 540), (420, 700), (430, 300)]
KINDS = ("demo", "many heads", "shared")


def layer_file(path: Path, kind: str) -> Scenario:
    """Write a layer and return its scenario: 4 heads with biases, or 4 heads on 2 KV heads."""
    rng, shared = np.random.default_rng(0), kind == "shared"
    rows, wide, kv = (24, 20, 10) if shared else (50, 64, 64)
    shapes = {"x": (rows, wide), "wq": (wide, wide), "wk": (wide, kv), "wv": (wide, kv),
              "wo": (wide, wide)}  # fmt: skip
    if not shared:
        shapes |= {"bq": (wide,), "bk": (kv,), "bv": (kv,), "bo": (wide,)}
    made = {n: (rng.standard_normal(s) / 4).astype(np.float32) for n, s in shapes.items()}
    save_file(made, path)
    tables = {
        "attention": {"heads": 4}, "tiling": {"rows": 16, "cols": 16}, "mask": {"causal": True},
        "input": {"source": "layer", "path": str(path)},
    }  # fmt: skip
    return parse_scenario(tables)


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Trace]:
    folder = tmp_path_factory.mktemp("layers")
    drawn = {kind: simulate(layer_file(folder / f"{kind}.safetensors", kind)) for kind in KINDS[1:]}
    return {"demo": simulate(load_scenario(SCENARIOS / "layer.toml")), **drawn}


def model_at(trace: Trace, visit: int = -1, op: int = -1) -> LayerModel:
    """Return the panel's model at a cursor; from the end if it is negative."""
    visit %= len(trace)
    snapshot = trace.snapshot(visit, op % len(trace.program.ops(visit)))
    return layer_model(trace, snapshot, row_report(snapshot, 0))


def layer_of(trace: Trace) -> LayerRun:
    run = model_at(trace).run
    assert run is not None
    return run


def painted(
    paint: Callable[[QPainter, Style, QRectF], None], size: tuple[int, int], theme: str = "dark"
) -> QImage:
    image = QImage(*size, QImage.Format.Format_RGB32)
    image.fill(QColor(THEMES[theme].panel))
    with QPainter(image) as painter:
        paint(painter, Style(THEMES[theme]), QRectF(8, 6, size[0] - 16, size[1] - 12))
    return image


def flow_picture(state: FlowState, size: tuple[int, int] = (1264, 538)) -> QImage:
    return painted(lambda p, s, r: paint_flow(p, state, s, r), size)


def overlapping(boxes: dict[str, QRectF], most: float = 1.0) -> list[tuple[str, str]]:
    """Return which boxes share more than a line."""
    return [
        (one, two)
        for (one, a), (two, b) in combinations(boxes.items(), 2)
        if min(a.intersected(b).width(), a.intersected(b).height()) > most
    ]


# --- places -------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", TEXT_SCALES[::2])
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_in_the_flow_overlaps_or_is_cut(
    qapp: Any, traces: dict[str, Trace], kind: str, size: tuple[int, int], scale: float
) -> None:
    run, rect = layer_of(traces[kind]), QRectF(8, 6, *size)
    lay = flow_layout(run, Style(THEMES["dark"], scale), rect)
    room = rect.adjusted(-1, -1, 1, 1)
    assert set(lay.boxes) == {*COLOURS.keys() - {"m", "l", "lse"}, "x", "y", TILES}
    assert overlapping(lay.boxes) == []
    assert all(room.contains(box) for box in (*lay.boxes.values(), *lay.slots, lay.detail))
    assert all(min(box.width(), box.height()) >= 6 for box in lay.boxes.values())
    for name, place in lay.names.items():
        assert room.contains(place), name
        others = {other: box for other, box in lay.boxes.items() if other != name}
        assert not any(min(place.intersected(box).width(), place.intersected(box).height()) > 1
                       for box in others.values()), name  # fmt: skip
        if name != TILES:
            latex, wide, shape = name_parts(run, lay.style, name, place.width())
            assert latex
            assert wide + text_width(lay.style.text_font(11), shape) <= place.width()
    assert overlapping(lay.names) == []
    flat = {f"{stage} {n}": place for stage, places in lay.cards.items()
            for n, place in enumerate(places)}  # fmt: skip
    assert overlapping(flat) == []
    assert all(room.contains(place) for place in flat.values())
    below = lay.cards["o"][0].bottom() - lay.boxes[TILES].bottom()
    assert below >= 3 * lay.style.px(16)
    state = FlowState(model_at(traces[kind], 0, 1))
    for text in tile_words(state, lay.style, lay.cards["o"][0].width()):
        assert text_width(lay.style.text_font(11), text) <= lay.cards["o"][0].width()
    painted(lambda p, s, r: paint_flow(p, state, s, r), size)


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_said_of_a_stage_fits_its_place(
    qapp: Any, traces: dict[str, Trace], kind: str, size: tuple[int, int]
) -> None:
    run = layer_of(traces[kind])
    lay = flow_layout(run, Style(THEMES["dark"]), QRectF(0, 0, *size))
    for stage in run.stages:
        found = detail_layout(run, stage.name, 0, lay.style, lay.detail)
        boxes = {word.text: word.box for word in found.words if word.text}
        boxes |= {"formula": found.formula, **{name: box for name, _, box in found.tables}}
        assert overlapping(boxes) == []
        for name, box in boxes.items():
            assert lay.detail.adjusted(-1, -1, 1, 1).contains(box), (stage.name, name)
        for word in found.words:
            assert text_width(word.font, word.text) <= word.box.width() + 0.5
        said = " ".join(word.text for word in found.words)
        assert facts(run, stage.name)[0] in said or size[0] < 700


@pytest.mark.parametrize("scale", TEXT_SCALES[::2])
@pytest.mark.parametrize("size", [*SIZES, (320, 150)], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_the_other_pictures_keep_to_their_places(
    qapp: Any, traces: dict[str, Trace], kind: str, size: tuple[int, int], scale: float
) -> None:
    model, rect = model_at(traces[kind]), QRectF(8, 6, *size)
    run, style = layer_of(traces[kind]), Style(THEMES["light"], scale)
    room = rect.adjusted(-1, -1, 1, 1)
    row = row_layout(run, style, rect)
    parts = {"title": row.title, "notes": row.notes, "rows": row.rows, "plot": row.plot}
    parts |= {str(n): box for n, box in enumerate(row.legend)}
    assert overlapping(parts) == []
    assert all(room.contains(box) for box in parts.values())
    head = circuit_layout(run, style, rect)
    parts = {"line": head.line, "scale": head.scale}
    for name, boxes in (("chip", head.chips), ("box", head.boxes), ("name", head.names),
                        ("words", head.words)):  # fmt: skip
        parts |= {f"{name} {n}": box for n, box in enumerate(boxes)}
    assert overlapping(parts, 2.5) == []
    assert all(room.contains(box) for box in parts.values())
    count = count_layout(style, rect)
    parts = {"title": count.title, "weight": count.weight, "maps": count.maps}
    parts |= {str(n): box for n, box in enumerate(count.lines)}
    assert overlapping(parts) == []
    assert all(room.contains(box) for box in parts.values())
    painted(lambda p, s, r: paint_row(p, row_state(model, 1), s, r), size)
    painted(lambda p, s, r: paint_circuit(p, circuit_state(run, 0), s, r), size)
    painted(lambda p, s, r: paint_counts(p, count_state(run), s, r), size)


# --- numbers ------------------------------------------------------------------------------------


def test_each_number_of_the_worked_example_is_shown(qapp: Any, traces: dict[str, Trace]) -> None:
    run, rect = layer_of(traces["demo"]), QRectF(8, 6, 1264, 538)
    lay = flow_layout(run, Style(THEMES["dark"]), rect)
    for name in lay.boxes.keys() - {TILES}:
        assert number_font(matrix(run, name), lay.style, lay.boxes[name]) is not None, name
    said = detail_layout(run, "o", 0, lay.style, lay.detail)
    shown = {name: values for name, values, _ in said.tables}
    assert set(shown) == {"m", "l", "lse"}
    shown |= {name: matrix(run, name) for name in ("q", "k", "v", "o", "y")}
    with np.load(CASE) as case:
        assert set(case) == set(shown)
        for name, wanted in case.items():
            texts = [cell_words(float(value)) for value in shown[name].flat]
            assert texts == [cell_words(float(value)) for value in wanted.ravel()], name
            assert all(abs(float(text) - value) <= 5e-4
                       for text, value in zip(texts, wanted.flat, strict=True))  # fmt: skip


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.458441, "0.458"), (0.5, "0.5"), (1.0, "1"), (-0.25, "−0.25"), (-0.0, "0"), (100.0, "100"),
     (1.5e-5, "1.5e−5"), (0.0, "0")],
)  # fmt: skip
def test_cells_have_no_zeros_at_the_end(value: float, text: str) -> None:
    assert cell_words(value) == text


def test_a_stage_writes_out_a_sum_of_few_terms(qapp: Any, traces: dict[str, Trace]) -> None:
    run = layer_of(traces["demo"])
    lay = flow_layout(run, Style(THEMES["dark"]), QRectF(0, 0, 1264, 538))
    found = detail_layout(run, "q", 2, lay.style, lay.detail)
    assert found.words[-1].text == "Q[2, 0] = 1·0.5 + 1·0 + 0·0.5 + 0·0 = 0.5"
    large = layer_of(traces["many heads"])
    found = detail_layout(large, "q", 2, lay.style, lay.detail)
    assert not any("·0" in word.text for word in found.words)


def test_a_scale_of_its_own_stands_in_the_formula(traces: dict[str, Trace]) -> None:
    run = layer_of(traces["demo"])
    assert formula_of(run, "o") == formula_of(run, "o", 0.5)
    assert "sqrt{d}" in formula_of(run, "o", 0.5)
    assert "sqrt{d}" not in formula_of(run, "o", 0.25)
    assert {formula_of(run, stage.name, 0.25) for stage in run.stages} <= set(LATEX)
    biased = layer_of(traces["many heads"])
    assert formula_of(biased, "y") == "Y = O W_O + b_O"
    assert {formula_of(biased, stage.name) for stage in biased.stages} <= set(LATEX)


def test_numbers_are_written_into_all_matrices_or_into_none(
    qapp: Any, traces: dict[str, Trace]
) -> None:
    style = Style(THEMES["dark"])
    run = layer_of(traces["demo"])
    assert flow_layout(run, style, QRectF(0, 0, 1264, 538)).written
    small = flow_layout(run, style, QRectF(0, 0, 640, 320))
    some = [number_font(matrix(run, name), small.style, box)
            for name, box in small.boxes.items() if name != TILES]  # fmt: skip
    assert not small.written
    assert not all(some)
    assert not flow_layout(layer_of(traces["shared"]), style, QRectF(0, 0, 3000, 2000)).written


def test_slices_say_which_heads_they_serve(traces: dict[str, Trace]) -> None:
    run = layer_of(traces["shared"])
    singles = tuple(range(n, n + 1) for n in range(4))
    assert heads_of(run, "wq") == heads_of(run, "q") == heads_of(run, "wo") == singles
    assert heads_of(run, "concat") == singles
    assert heads_of(run, "wk") == heads_of(run, "v") == (range(2), range(2, 4))
    assert heads_of(run, "x") == heads_of(run, "y") == ()


def test_bands_have_the_colours_of_heads(qapp: Any, traces: dict[str, Trace]) -> None:
    theme, state = THEMES["dark"], FlowState(model_at(traces["shared"]))
    image = flow_picture(state)
    run = layer_of(traces["shared"])
    lay = flow_layout(run, Style(theme), QRectF(8, 6, 1248, 526))
    for name in ("wq", "q", "wk", "v", "concat"):
        box = lay.boxes[name]
        for head in range(4):
            at = QPointF(box.x() + (head + 0.5) * box.width() / 4, box.y() - 3)
            assert image.pixelColor(at.toPoint()) == theme.head(head), (name, head)
    box = lay.boxes["wo"]
    for head in range(4):
        at = QPointF(box.x() - 3, box.y() + (head + 0.5) * box.height() / 4)
        assert image.pixelColor(at.toPoint()) == theme.head(head)


# --- motion -------------------------------------------------------------------------------------


def states_of(trace: Trace, visit: int) -> tuple[LayerModel, np.ndarray, LayerModel]:
    """Return the state after the last op of a visit, the rows it finishes, and the one before."""
    after = model_at(trace, visit)
    before = model_at(trace, visit, -2)
    return after, after.finished & ~before.finished, before


def test_rows_slide_into_the_concat_and_then_w_o_mixes_them(
    qapp: Any, traces: dict[str, Trace]
) -> None:
    trace = traces["many heads"]
    after, arriving, before = states_of(trace, len(trace) - 1)
    assert arriving[3].sum() == 2  # rows 48 and 49 of the last head
    works = [FlowState(after, arriving, share).at_work for share in (0, 0.2, 0.49, 0.6, 0.99)]
    assert works == ["concat", "concat", "concat", "y", "y"]
    assert FlowState(before).at_work == "o"
    assert FlowState(after).at_work == "y"
    added = [FlowState(after, arriving, n / 100).mixed for n in range(100)]
    assert added == sorted(added)
    assert set(added) == {0, 1, 2, 3}
    assert flow_picture(FlowState(after, arriving, 1.0)) == flow_picture(FlowState(after))
    moving = [flow_picture(FlowState(after, arriving, share)) for share in (0.1, 0.3, 0.7, 0.9)]
    assert all(one != two for one, two in combinations(moving, 2))
    assert flow_picture(FlowState(after, arriving, 0.3)) == moving[1], "it depends on share alone"
    start = FlowState(after, arriving, 0.0)
    assert np.array_equal(start.landed, before.finished)
    lay = flow_layout(layer_of(trace), Style(THEMES["dark"]), QRectF(8, 6, 1248, 526))
    box = lay.boxes["concat"].toRect()
    leaving = flow_picture(FlowState(after, arriving, 0.02)).copy(box)
    assert leaving == flow_picture(FlowState(before)).copy(box), "nothing has landed yet"
    assert leaving != flow_picture(FlowState(after)).copy(box)
    early, some, _ = states_of(trace, 0)
    assert FlowState(early, some, 0.5).mixing is None, "other heads have not done these rows"
    assert FlowState(early, some, 0.9).at_work == "concat"


def test_rows_of_y_under_way_are_sums_of_what_heads_give(traces: dict[str, Trace]) -> None:
    run = layer_of(traces["many heads"])
    rows = np.zeros(50, dtype=np.bool_)
    rows[[3, 7]] = True
    for heads in range(5):
        wanted = run.shares[:heads, rows].sum(axis=0) + run.bias
        np.testing.assert_allclose(mixed_rows(run, rows, heads), wanted, atol=1e-6)
    np.testing.assert_allclose(mixed_rows(run, rows, 4), run.arrays["y"][rows], atol=1e-5)


def test_where_not_all_heads_can_be_named_the_largest_are(traces: dict[str, Trace]) -> None:
    state = row_state(model_at(traces["many heads"]), 9)
    assert legend_heads(state, 4) == ([0, 1, 2, 3], 0)
    named, others = legend_heads(state, 3)
    assert others == 2
    assert named == sorted(np.argsort(np.abs(state.shares.along))[-2:])


def test_pieces_of_a_row_stack_up_to_y(qapp: Any, traces: dict[str, Trace]) -> None:
    trace = traces["many heads"]
    state, run = row_state(model_at(trace), 9), layer_of(trace)
    lay = row_layout(run, Style(THEMES["dark"]), QRectF(0, 0, 1264, 538))
    assert lay.dims == 64
    scale, ends = scale_of(state.shares, lay.dims), state.shares.ends
    unit = lay.plot.height() / (scale[1] - scale[0])
    zero = lay.plot.bottom() + scale[0] * unit
    for dim in range(lay.dims):
        boxes = [piece_box(lay.plot, ends, scale, lay.dims, head, dim) for head in range(4)]
        assert all(lay.plot.adjusted(-1, -1, 1, 1).contains(box) for box in boxes)
        assert overlapping({str(n): box for n, box in enumerate(boxes)}, 1e-6) == []
        up = sum(box.height() for box in boxes if box.center().y() < zero)
        down = sum(box.height() for box in boxes if box.center().y() >= zero)
        value = run.arrays["y"][9, dim] - run.bias[dim]
        assert (up - down) / unit == pytest.approx(value, abs=1e-4)


# --- in the window ------------------------------------------------------------------------------


@pytest.fixture
def window(open_window: Callable[..., MainWindow]) -> MainWindow:
    window = open_window("layer", (1280, 720))
    window.desk.take("layer")
    window.session.settle()
    return window


@pytest.fixture
def large(window: MainWindow, tmp_path: Path) -> LayerPanel:
    """Return the panel on a layer of four heads."""
    window.session.start(layer_file(tmp_path / "a.safetensors", "many heads"), None)
    window.session.settle()
    return window.docks.panel(LayerPanel)


def click(panel: LayerPanel, at: QPointF) -> None:
    QTest.mouseClick(panel, Qt.MouseButton.LeftButton, pos=at.toPoint())


def test_a_click_explains_a_stage_and_keys_the_next(window: MainWindow) -> None:
    panel = window.docks.panel(LayerPanel)
    assert panel.run is not None
    lay = flow_layout(panel.run, panel.style_now, panel.place)
    assert panel.stage is None
    for stage, places in lay.cards.items():
        for place in places:
            panel.stage = None
            click(panel, place.topLeft() + QPointF(6, 6))
            assert panel.flow is not None
            assert panel.stage == panel.flow.shown == stage
            assert facts(panel.run, stage)[0] in panel.accessibleDescription()
    click(panel, lay.cards["y"][1].center())
    assert panel.stage is None, "the same stage again"
    panel.setFocus()
    seen = []
    for _ in range(6):
        QTest.keyClick(panel, Qt.Key.Key_Down)
        seen.append(panel.stage)
    assert seen == ["concat", "y", "q", "k", "v", "o"], "the tiles are at work"
    QTest.keyClick(panel, Qt.Key.Key_Up)
    assert panel.stage == "v"


def test_the_pointer_reads_every_number(window: MainWindow) -> None:
    panel = window.docks.panel(LayerPanel)
    run = panel.run
    assert run is not None
    lay = flow_layout(run, panel.style_now, panel.place)
    with np.load(CASE) as case:
        for name, plain in (("q", "Q"), ("v", "V"), ("y", "Y"), ("o", "O of each head")):
            box, wanted = lay.boxes[name], case[name].reshape(3, 4)
            for row, col in np.ndindex(3, 4):
                at = QPointF(box.x() + (col + 0.5) * box.width() / 4,
                             box.y() + (row + 0.5) * box.height() / 3)  # fmt: skip
                said, _, value = panel.reading(run, at).partition(" = ")
                assert said == f"{plain}[{row}, {col}]"
                assert float(value) == pytest.approx(wanted[row, col], abs=1e-6)
    assert panel.reading(run, QPointF(1, 1)) == ""


def test_a_row_of_y_is_chosen_by_pointer_and_keys(window: MainWindow, large: LayerPanel) -> None:
    button = large.title_bar.buttons["layer", "row"]
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)
    assert large.shown == "row"
    run = large.run
    assert run is not None
    lay = row_layout(run, large.style_now, large.place)
    click(large, QPointF(lay.rows.center().x(), lay.rows.y() + 20.5 * lay.rows.height() / 50))
    assert large.row_now is not None
    assert large.row_now.row == 20
    large.setFocus()
    QTest.keyClick(large, Qt.Key.Key_Up)
    assert large.row_now.row == 19
    assert "row 19" in large.accessibleDescription()
    window.session.last()
    window.session.settle()
    said = large.reading(run, QPointF(lay.plot.x() + 32.5 * lay.plot.width() / 64, lay.plot.y()))
    assert said.splitlines()[0] == "dimension 32"
    given = [float(line.partition(": ")[2].replace("−", "-")) for line in said.splitlines()[1:]]
    assert sum(given) == pytest.approx(float(run.arrays["y"][19, 32] - run.bias[32]), abs=1e-5)


def test_a_row_says_which_heads_have_not_given_yet(window: MainWindow, large: LayerPanel) -> None:
    large.choose("layer", "row")
    window.session.go(Cursor(len(window.session.trace) // 2, 0))  # type: ignore[arg-type]
    window.session.settle()
    large.row = 49
    assert large.row_now is not None
    assert large.row_now.done == [0, 1]
    assert not large.row_now.whole
    assert "head 2: not yet" in large.words


def test_a_head_is_chosen_and_its_matrices_are_its_own(large: LayerPanel) -> None:
    large.choose("layer", "head")
    run = large.run
    assert run is not None
    lay = circuit_layout(run, large.style_now, large.place)
    click(large, lay.chips[2].center())
    assert large.circuit is not None
    assert large.circuit.head == 2
    w = run.layer.weights
    wanted = w["wq"][:, 32:48].astype(float) @ w["wk"][:, 32:48].T.astype(float)
    np.testing.assert_allclose(large.circuit.matrices[0], wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(large.circuit.matrices[1], wanted - wanted.T, atol=1e-6)
    said, _, value = large.reading(run, lay.boxes[0].topLeft() + QPointF(1, 1)).partition(" = ")
    assert said == "A[0, 0]"
    assert float(value.replace("−", "-")) == pytest.approx(wanted[0, 0], rel=1e-4)
    apart = np.linalg.norm(wanted - wanted.T) / np.linalg.norm(wanted)
    assert f"{apart:.3f}".rstrip("0") in asymmetry_words(large.circuit)[0]
    assert "not symmetric" in large.accessibleDescription()
    large.setFocus()
    QTest.keyClick(large, Qt.Key.Key_Down)
    assert large.circuit.head == 3
    QTest.keyClick(large, Qt.Key.Key_Down)
    assert large.circuit.head == 0


def test_the_slider_supposes_more_heads_and_changes_no_run(
    window: MainWindow, large: LayerPanel
) -> None:
    scenario = window.session.scenario
    large.choose("layer", "heads")
    assert large.slider.isVisible()
    assert large.counts is not None
    assert [count.heads for count in large.counts.counts] == [1, 2, 4, 8, 16, 32, 64]
    assert large.counts.now.heads == large.counts.own == 4
    large.slider.setFocus()
    for _ in range(4):
        QTest.keyClick(large.slider, Qt.Key.Key_PageUp)
    found = {line.names[0]: line for line in lines(large.counts)}
    assert large.counts.now.heads == 64
    assert [line.factor for line in found.values()] == [1, 1, 1, 64, 64]
    assert found["parameters of the four weights"].value == 4 * 64**2
    assert found["exponentials"].value == 64 * 50**2
    large.setFocus()
    QTest.keyClick(large, Qt.Key.Key_Up)
    assert large.counts.now.heads == 32
    assert "32 heads of 2" in large.accessibleDescription()
    assert window.session.scenario is scenario
    high = large.place.height()
    large.show_controls(False)
    assert not large.slider.isVisible(), "in a film nobody can move it"
    assert large.place.height() > high
    assert large.counts.now.heads == 32
    large.show_controls(True)
    assert large.slider.isVisible()
    large.choose("layer", "flow")
    assert not large.slider.isVisible()


def test_the_flow_follows_the_run(window: MainWindow, large: LayerPanel) -> None:
    session, trace = window.session, window.session.trace
    assert trace is not None
    for visit in (0, 5, len(trace) - 1):
        session.go(Cursor(visit, 2))
        session.settle()
        assert large.flow is not None
        assert large.flow.at_work == "o"
        assert np.array_equal(large.flow.model.finished, finished_rows(trace.snapshot(visit, 2)))
    session.last()
    session.settle()
    assert large.flow is not None
    assert large.flow.at_work == "y"
    assert large.flow.moving is None, "motion is off"


def test_a_step_that_stores_rows_slides_them_if_motion_is_on(
    window: MainWindow, large: LayerPanel
) -> None:
    window.set_motion(True)
    session, trace = window.session, window.session.trace
    assert trace is not None
    visit = 2  # the end of the second row block
    last = len(trace.program.ops(visit)) - 1
    session.go(Cursor(visit, last - 1))
    session.settle()
    session.step()
    session.settle()
    assert large.flow is not None
    assert large.flow.arriving is not None
    assert large.flow.arriving.sum() == 16
    large.show_share(0.3)
    assert large.flow.moving is not None
    assert large.flow.at_work == "concat"
    large.show_share(1.0)
    assert large.flow.moving is None


# --- without a layer ----------------------------------------------------------------------------


def test_a_run_without_a_layer_says_so_and_offers_the_demo(
    open_window: Callable[..., MainWindow],
) -> None:
    window = open_window("causal", (1280, 720))
    window.desk.take("layer")
    window.session.settle()
    panel = window.docks.panel(LayerPanel)
    assert panel.run is None
    assert panel.accessibleDescription() == NO_LAYER
    assert panel.button.isVisible()
    assert panel.rect().contains(panel.button.geometry())
    QTest.mouseClick(panel.button, Qt.MouseButton.LeftButton)
    window.session.settle()
    assert window.session.path == SCENARIOS / "layer.toml"
    assert panel.run is not None
    assert not panel.button.isVisible()


def test_a_run_of_some_heads_offers_the_others(window: MainWindow, large: LayerPanel) -> None:
    session = window.session
    assert session.scenario is not None
    session.propose(with_values(session.scenario, {"input": {"head": [0, 2]}}), "some")
    session.settle()
    assert large.run is None
    assert large.words == "Only heads 0, 2 of 4 run, and Y needs all of them."
    large.button.setFocus()
    QTest.keyClick(large.button, Qt.Key.Key_Return)
    session.settle()
    assert large.run is not None
    assert large.run.heads == 4


def test_a_long_layer_is_run_beside_the_window(window: MainWindow, tmp_path: Path) -> None:
    rows, path = 1200, tmp_path / "long.safetensors"
    rng = np.random.default_rng(0)
    shapes = {"x": (rows, 8), "wq": (8, 32), "wk": (8, 32), "wv": (8, 32), "wo": (32, 8)}
    save_file({n: rng.standard_normal(s).astype(np.float32) for n, s in shapes.items()}, path)
    tables = {"attention": {"heads": 2}, "input": {"source": "layer", "path": str(path)}}
    session, panel = window.session, window.docks.panel(LayerPanel)
    session.start(parse_scenario(tables), None)
    session.settle()
    assert session.trace is not None
    assert panel.run is compute_layer(session.trace)
    assert panel.run is not None
    assert panel.run.shapes["y"] == (rows, 8)


def test_a_lesson_chooses_what_is_shown(window: MainWindow) -> None:
    from simulator.lesson.tables import ChooseTable

    panel = window.docks.panel(LayerPanel)
    panel.take_choices(ChooseTable(layer="heads"))
    assert panel.shown == "heads"
    assert panel.slider.isVisible()
    panel.take_choices(ChooseTable())
    assert panel.shown == "flow"


def test_tool_tips_stand_where_the_pointer_is(window: MainWindow) -> None:
    panel = window.docks.panel(LayerPanel)
    assert panel.run is not None
    box = flow_layout(panel.run, panel.style_now, panel.place).boxes["wq"]
    assert panel.reading(panel.run, QPointF(QPoint(round(box.x()) + 2, round(box.y()) + 2)))
