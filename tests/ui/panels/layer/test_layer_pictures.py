"""Pictures of a layer: places, numbers, slices of heads, and what slides."""

import math
import re
from collections.abc import Callable, Iterator
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import QPointF, QRectF, QSizeF
from PySide6.QtGui import QColor, QImage, QPainter

from simulator.base.assets import SCENARIOS
from simulator.problem.scenario import load_scenario, with_values
from simulator.problem.workload import resolve
from simulator.run.row_report import row_report
from simulator.run.trace import Trace, simulate
from simulator.run.whole_layer import LayerRun
from tests.helpers.drawn_words import drawn_words, faults
from tests.helpers.layers import CASE, layer_file
from ui.kit.boxes import Box, Scene, scene
from ui.look.names import fitting
from ui.look.theme import TEXT_SCALES, THEMES, Style
from ui.panels.layer.circuits import circuit_picture, circuit_state
from ui.panels.layer.counts import count_picture, count_state
from ui.panels.layer.flow import FlowPicture, mixed_rows
from ui.panels.layer.matrices import Matrix, MatrixName
from ui.panels.layer.model import FlowState, LayerModel, heads_of, layer_model, matrix
from ui.panels.layer.panel import ROOMS
from ui.panels.layer.places import flow_room
from ui.panels.layer.product import (
    ProductState,
    head_weights,
    mark_box,
    product_picture,
    product_state,
    total_words,
)
from ui.panels.layer.row import RowPicture, legend_heads, piece_box, row_state, scale_of
from ui.panels.layer.words import LATEX, PLAIN, cell_words, formula_of, sum_text, title_of

SIZES = [(1264, 538), (1904, 870), (620, 540), (420, 700), (430, 300)]
KINDS = ("demo", "many heads", "shared")


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
    def paint(painter: QPainter, style: Style, rect: QRectF) -> None:
        fitted = fitting(style, rect, flow_room(rect))
        scene(FlowPicture(state), fitted, rect).paint(painter)

    return painted(paint, size)


def flow_scene(trace: Trace, rect: QRectF, selected: str | None = None) -> Scene:
    style = fitting(Style(THEMES["dark"]), rect, flow_room(rect))
    return scene(FlowPicture(FlowState(model_at(trace), selected=selected)), style, rect)


def words_of(found: Scene) -> list[str]:
    """Return the words of a picture."""
    return [each.text for each in drawn_words(found.paint, QRectF(0, 0, 4000, 4000))]


def place_of(found: Scene, said: str) -> QRectF:
    """Return the place of a matrix, the first by that name."""
    return next(r for box, r in found.placed if isinstance(box, Matrix) and box.said == said)


STAGES = ("q", "k", "v", "o", "concat", "y")


def pictures_of(trace: Trace) -> Iterator[tuple[Box, QSizeF | None]]:
    """Yield all pictures of a layer, with what they need at scale 1; of the flow None."""
    model, run = model_at(trace), layer_of(trace)
    for selected in STAGES:
        yield FlowPicture(FlowState(model, selected=selected)), None
        yield product_picture(product_state(model, selected, 1)), ROOMS["stage"]
    yield FlowPicture(FlowState(model_at(trace, 0, 1))), None
    yield RowPicture(row_state(model, 1)), ROOMS["row"]
    yield RowPicture(row_state(model_at(trace, 0), 1), choosing=False), ROOMS["row"]
    yield circuit_picture(circuit_state(run, 0)), ROOMS["head"]
    yield count_picture(count_state(run)), ROOMS["heads"]


@pytest.mark.parametrize("scale", TEXT_SCALES[::2])
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_overlaps_or_is_cut(
    qapp: Any, traces: dict[str, Trace], kind: str, size: tuple[int, int], scale: float
) -> None:
    rect = QRectF(8, 6, *size)
    for picture, room in pictures_of(traces[kind]):
        style = fitting(Style(THEMES["dark"], scale), rect, room or flow_room(rect))
        found = scene(picture, style, rect)
        wrong = faults(drawn_words(found.paint, rect), rect)
        assert not wrong, (picture, wrong)
        named = [
            (box, place) for box, place in found.placed if isinstance(box, Matrix | MatrixName)
        ]
        assert all(rect.adjusted(-1, -1, 1, 1).contains(place) for _, place in named), picture
        for (one, a), (two, b) in combinations(named, 2):
            if not (isinstance(one, Matrix) and isinstance(two, Matrix)):
                shared = a.intersected(b)
                assert min(shared.width(), shared.height()) <= 1, (picture, one, two)


# --- numbers ------------------------------------------------------------------------------------


def test_each_number_of_the_worked_example_is_shown(qapp: Any, traces: dict[str, Trace]) -> None:
    run = layer_of(traces["demo"])
    found = flow_scene(traces["demo"], QRectF(8, 6, 1264, 538), "o")
    matrices = {box.said: box for box, _ in found.placed if isinstance(box, Matrix)}
    assert {"m", "ℓ", "LSE"} < set(matrices)
    drawn = words_of(found)
    with np.load(CASE) as case:
        for name, wanted in case.items():
            values = (
                matrices[PLAIN[name]].values if name in ("m", "l", "lse") else matrix(run, name)
            )
            texts = [cell_words(float(value)) for value in values.flat]
            assert texts == [cell_words(float(value)) for value in wanted.ravel()], name
            assert set(texts) <= set(drawn)
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
    rect = QRectF(0, 0, 1264, 538)
    drawn = words_of(flow_scene(traces["demo"], rect, "q"))
    assert "Q[2, 0] = 1·0.5 + 1·0 + 0·0.5 + 0·0 = 0.5" in drawn
    assert not any("·0" in words for words in words_of(flow_scene(traces["many heads"], rect, "q")))


def test_the_formula_says_what_turns_products_into_scores(traces: dict[str, Trace]) -> None:
    demo = traces["demo"]
    run, said = layer_of(demo), demo.workload.scenario
    changes = ({}, {"attention": {"scale": 0.25}}, {"scores": {"softcap": 5.0}})
    found = [formula_of(run, "o", resolve(with_values(said, change))) for change in changes]
    assert found[0] == formula_of(run, "o")
    assert ["sqrt{d}" in latex for latex in found] == [True, False, False]
    assert len(set(found)) == 3
    assert set(found) <= set(LATEX)
    biased = layer_of(traces["many heads"])
    assert formula_of(biased, "y") == "Y = O W_O + b_O"
    for each in (run, biased):
        assert {formula_of(each, stage.name) for stage in each.stages} <= set(LATEX)


@pytest.mark.parametrize(
    ("kind", "size", "written"),
    [("demo", (1264, 538), True), ("demo", (640, 320), False), ("shared", (3000, 2000), False)],
)
def test_numbers_are_written_into_all_matrices_or_into_none(
    qapp: Any, traces: dict[str, Trace], kind: str, size: tuple[int, int], written: bool
) -> None:
    found = flow_scene(traces[kind], QRectF(0, 0, *size), "v")
    parts = [box.part for box, _ in found.placed if isinstance(box, Matrix)]
    assert {part.written for part in parts if part.rows is None or part.rows.any()} == {written}


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
    found = flow_scene(traces["shared"], QRectF(8, 6, 1248, 526))
    for name in ("W_Q", "Q", "W_K", "V", "concat"):
        box = place_of(found, name)
        for head in range(4):
            at = QPointF(box.x() + (head + 0.5) * box.width() / 4, box.y() - 3)
            assert image.pixelColor(at.toPoint()) == theme.head(head), (name, head)
    box = place_of(found, "W_O")
    for head in range(4):
        at = QPointF(box.x() - 3, box.y() + (head + 0.5) * box.height() / 4)
        assert image.pixelColor(at.toPoint()) == theme.head(head)


@pytest.mark.parametrize("kind", KINDS)
def test_a_stage_at_large_is_the_product_that_it_shows(traces: dict[str, Trace], kind: str) -> None:
    model, run = model_at(traces[kind]), layer_of(traces[kind])
    for stage in STAGES:
        items = product_state(model, stage, 2, 3).items
        values = [item.values.astype(float) for item in items]
        if stage == "concat":
            made = np.concatenate(values[:-1], axis=1)
        elif stage == "o":
            shown = [item.before for item in items]
            assert shown == ["", "×", "→", "×", "="]
            made = values[2] @ values[3]
            scores = values[0] @ values[1]
            seen = np.tril(np.ones_like(scores)) if kind != "demo" else np.ones_like(scores)
            expected = np.exp(scores * traces[kind].workload.logit_scale) * seen
            expected /= expected.sum(axis=1, keepdims=True)
            np.testing.assert_allclose(values[2], expected, atol=1e-5)
        else:
            made = values[0] @ values[1] + (values[2] if len(values) == 4 else 0)
        np.testing.assert_allclose(made, values[-1], atol=2e-5)
        assert len(items) == (run.heads + 1 if stage == "concat" else 5 if stage == "o" else
                              3 + bool(run.layer.weights.get(f"b{stage}") is not None)
                              if stage != "y" else 3 + ("bo" in run.layer.weights))  # fmt: skip


def test_rows_at_large_are_there_once_the_tiles_have_made_them(traces: dict[str, Trace]) -> None:
    trace = traces["many heads"]
    model = model_at(trace, len(trace) // 2)  # the third head has one row block
    made = model.finished[model.head]
    assert model.head == 2
    assert made.any()
    assert not made.all()
    items = product_state(model, "o").items
    assert [None if item.rows is None else item.rows.tolist() for item in items] == [
        None, None, made.tolist(), None, made.tolist(),
    ]  # fmt: skip
    assert not any(product_state(model, "y").items[-1].rows)


def test_weights_of_packed_heads_are_their_own(traces: dict[str, Trace]) -> None:
    said = traces["shared"].workload.scenario
    packed = simulate(with_values(said, {"attention": {"algorithm": "split-kv"}}))
    run = layer_of(packed)
    last = packed.snapshot(len(packed) - 1)
    for row in (0, 23, 24, 47):  # of the two heads that are packed into the last
        model = layer_model(packed, last, row_report(last, row))
        weights = head_weights(model, run)
        assert weights is not None
        made = weights @ run.arrays["v"][model.head // 2]
        np.testing.assert_allclose(made, run.arrays["o"][model.head], atol=2e-5)
    assert model.head == 3


def test_a_stage_at_large_frames_what_goes_into_a_number(traces: dict[str, Trace]) -> None:
    model = model_at(traces["many heads"])
    box = QRectF(0, 0, 640, 500)
    state = product_state(model, "q", 2, 3)
    x, weight, bias, q = (mark_box(state, item, box) for item in state.items)
    assert x == QRectF(0, 20, 640, 10)
    assert weight == bias == QRectF(30, 0, 10, 500)
    assert q == QRectF(30, 20, 10, 10)
    state = product_state(model, "concat", 2, 20)  # the second head's
    framed = [not mark_box(state, item, box).isNull() for item in state.items]
    assert framed == [False, True, False, False, True]
    assert (
        product_total(state)
        == f"O[2, 20] = {state.items[-1].values[2, 20]:.6g}".replace("-", "−") + ", from head 1"
    )


def test_a_stage_at_large_says_the_sum_of_a_number(traces: dict[str, Trace]) -> None:
    model = model_at(traces["demo"])
    assert product_total(product_state(model, "v", 1, 2)) == (
        "V[1, 2] = 0·0 + 1·0.5 + 0·0 + 1·0.5 = 1"
    )
    assert product_total(product_state(model, "o", 0, 0)) == (
        "O[0, 0] = 0.293·1 + 0.376·0 + 0.332·0.5 = 0.458"
    )
    large = model_at(traces["many heads"])
    assert "a sum of 64 products and a bias" in product_total(product_state(large, "y", 4, 5))
    early = model_at(traces["many heads"], 0, 1)
    assert "not there yet" in product_total(product_state(early, "y", 4, 5))


def product_total(state: ProductState) -> str:
    return total_words(state)[0]


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
    box = place_of(flow_scene(trace, QRectF(8, 6, 1248, 526)), "concat").toRect()
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
    plot = QRectF(200, 60, 800, 440)
    scale, ends = scale_of(state.shares, 64), state.shares.ends
    unit = plot.height() / (scale[1] - scale[0])
    zero = plot.bottom() + scale[0] * unit
    for dim in range(64):
        boxes = [piece_box(plot, ends, scale, 64, head, dim) for head in range(4)]
        assert all(plot.adjusted(-1, -1, 1, 1).contains(box) for box in boxes)
        assert all(a.intersected(b).height() < 1e-6 for a, b in combinations(boxes, 2))
        up = sum(box.height() for box in boxes if box.center().y() < zero)
        down = sum(box.height() for box in boxes if box.center().y() >= zero)
        value = run.arrays["y"][9, dim] - run.bias[dim]
        assert (up - down) / unit == pytest.approx(value, abs=1e-4)


@pytest.mark.parametrize("choosing", [True, False])
def test_nobody_is_asked_to_choose_a_row_in_a_film(
    qapp: Any, traces: dict[str, Trace], choosing: bool
) -> None:
    picture = RowPicture(row_state(model_at(traces["demo"]), 1), choosing)
    words = words_of(scene(picture, Style(THEMES["dark"]), QRectF(0, 0, 1264, 538)))
    assert ("Y: choose a row" in words) is choosing
    assert ("Y, row 1 framed" in words) is not choosing


@pytest.mark.parametrize("more", [{}, {"interleaved": True}, {"fraction": 0.5, "offset": 2}])
def test_rotary_positions_are_a_part_of_their_stage(more: dict[str, Any]) -> None:
    said = load_scenario(SCENARIOS / "layer.toml")
    position = {"kind": "rope", "theta": 50.0, **more}
    run = layer_of(simulate(with_values(said, {"position": position})))
    assert formula_of(run, "q") == r"Q = R_p \, (X W_Q)"
    assert formula_of(run, "v") == "V = X W_V"
    assert {formula_of(run, stage.name) for stage in run.stages} <= set(LATEX)
    assert "turned by their places" in title_of(run, "k")
    assert "turned" not in title_of(run, "v")
    for stage, row, col in product(("q", "k"), range(3), range(4)):
        words = sum_text(run, stage, row, col)
        made = float(run.flat[stage][row, col])
        assert words.endswith((f" = {cell_words(made)}", "which is not turned"))
        written = re.search(r"= (\S+)·cos (\S+) ([−+]) (\S+)·sin (\S+) =", words)
        if written:
            a, angle, sign, b, again = (part.replace("−", "-") for part in written.groups())
            assert angle == again
            turned = float(a) * math.cos(float(angle)) + float(f"{sign}1") * float(b) * math.sin(
                float(angle)
            )
            assert turned == pytest.approx(made, abs=3e-3)
        else:
            assert col >= 2
            assert more.get("fraction") == 0.5
