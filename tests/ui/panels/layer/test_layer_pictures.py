"""Pictures of a layer: numbers, slices of heads, and what slides."""

import math
import re
from dataclasses import replace
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QColor, QImage, QPainter

from simulator.base.assets import SCENARIOS
from simulator.problem.scenario import load_scenario, with_values
from simulator.problem.workload import resolve
from simulator.run.row_report import row_report
from simulator.run.trace import Trace, simulate
from simulator.run.whole_layer import LayerRun
from simulator.study.layer.heads import row_shares
from tests.helpers.drawn_words import drawn_words
from tests.helpers.layers import CASE, layer_file
from ui.kit.boxes import Scene, scene
from ui.look.theme import THEMES, Style
from ui.panels.layer.flow import FlowPicture, mixed_rows
from ui.panels.layer.matrices import Matrix
from ui.panels.layer.product import StagePicture, cell_of, items_of, words_of_stage
from ui.panels.layer.row import StackPlot, named_heads, row_picture
from ui.panels.layer.state import LayerState, heads_of, layer_found, matrix
from ui.panels.layer.study import LAYER
from ui.panels.layer.words import PLAIN, cell_words, formula_of, sum_text, title_of
from ui.session.view import View

KINDS = ("demo", "many heads", "shared")
STAGES = ("q", "k", "v", "o", "concat", "y")


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Trace]:
    folder = tmp_path_factory.mktemp("layers")
    drawn = {kind: simulate(layer_file(folder / f"{kind}.safetensors", kind)) for kind in KINDS[1:]}
    return {"demo": simulate(load_scenario(SCENARIOS / "layer.toml")), **drawn}


def state_at(trace: Trace, visit: int = -1, op: int = -1, row: int = 0, **said: Any) -> LayerState:
    """Return what the panel shows at a cursor; from the end if it is negative."""
    visit %= len(trace)
    snapshot = trace.snapshot(visit, op % len(trace.program.ops(visit)))
    state = LayerState(layer_found(trace, lambda share: None), **said)
    return LAYER.follow(state, View(snapshot, row_report(snapshot, row)))


def layer_of(trace: Trace) -> LayerRun:
    return state_at(trace).run


def scene_of(state: LayerState, size: tuple[int, int] = (1264, 538)) -> Scene:
    return scene(FlowPicture(state), Style(THEMES["dark"]), QRectF(8, 6, *size))


def painted(state: LayerState) -> QImage:
    """Return the flow as a picture."""
    image = QImage(1280, 550, QImage.Format.Format_RGB32)
    image.fill(QColor(THEMES["dark"].panel))
    with QPainter(image) as painter:
        scene_of(state).paint(painter)
    return image


def words_of(found: Scene) -> list[str]:
    """Return the words of a picture."""
    return [each.text for each in drawn_words(found.paint, QRectF(0, 0, 4000, 4000))]


def place_of(found: Scene, said: str) -> QRectF:
    """Return the place of a matrix, the first by that name."""
    return next(r for box, r in found.placed if isinstance(box, Matrix) and box.said == said)


# --- numbers ------------------------------------------------------------------------------------


def test_each_number_of_the_worked_example_is_shown(qapp, traces):
    run = layer_of(traces["demo"])
    found = scene_of(state_at(traces["demo"], stage="o"))
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
def test_cells_have_no_zeros_at_the_end(value, text):
    assert cell_words(value) == text


def test_a_stage_writes_out_a_sum_of_few_terms(qapp, traces):
    drawn = words_of(scene_of(state_at(traces["demo"], row=2, stage="q")))
    assert "Q[2, 0] = 1·0.5 + 1·0 + 0·0.5 + 0·0 = 0.5" in drawn
    many = words_of(scene_of(state_at(traces["many heads"], stage="q")))
    assert not any("·0" in words for words in many)


def test_the_formula_says_what_turns_products_into_scores(traces):
    demo = traces["demo"]
    run, said = layer_of(demo), demo.workload.scenario
    changes = ({}, {"attention": {"scale": 0.25}}, {"scores": {"softcap": 5.0}})
    found = [formula_of(run, "o", resolve(with_values(said, change))) for change in changes]
    assert ["sqrt{d}" in latex for latex in found] == [True, False, False]
    assert len(set(found)) == 3
    biased = layer_of(traces["many heads"])
    assert formula_of(biased, "y", demo.workload) == "Y = O W_O + b_O"


@pytest.mark.parametrize(
    ("kind", "size", "written"),
    [("demo", (1264, 538), True), ("demo", (640, 320), False), ("shared", (3000, 2000), False)],
)
def test_numbers_are_written_into_all_matrices_or_into_none(qapp, traces, kind, size, written):
    found = scene_of(state_at(traces[kind], stage="v"), size)
    assert {box.written for box, _ in found.placed if isinstance(box, Matrix)} == {written}


def test_rows_that_are_not_there_have_no_numbers(qapp, traces):
    early, late = (words_of(scene_of(state_at(traces["demo"], visit))) for visit in (0, -1))
    assert late.count("0.458") == early.count("0.458") + 6, "two in O of the head, O and Y each"


def test_slices_say_which_heads_they_serve(traces):
    run = layer_of(traces["shared"])
    singles = tuple(range(n, n + 1) for n in range(4))
    assert heads_of(run, "wq") == heads_of(run, "q") == heads_of(run, "wo") == singles
    assert heads_of(run, "concat") == singles
    assert heads_of(run, "wk") == heads_of(run, "v") == (range(2), range(2, 4))
    assert heads_of(run, "x") == heads_of(run, "y") == ()


def test_bands_have_the_colours_of_heads(qapp, traces):
    theme, state = THEMES["dark"], state_at(traces["shared"])
    image, found = painted(state), scene_of(state)
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
def test_a_stage_at_large_is_the_product_that_it_shows(traces, kind):
    run = layer_of(traces[kind])
    for stage in STAGES:
        items = items_of(state_at(traces[kind], stage=stage))
        values = [item.matrix.values.astype(float) for item in items]
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


def test_rows_at_large_are_there_once_the_tiles_have_made_them(traces):
    trace = traces["many heads"]
    state = state_at(trace, len(trace) // 2, stage="o")  # the third head has one row block
    made = state.finished[state.head]
    assert state.head == 2
    assert made.any()
    assert not made.all()
    items = items_of(state)
    assert [None if item.matrix.rows is None else item.matrix.rows.tolist() for item in items] == [
        None, None, made.tolist(), None, made.tolist(),
    ]  # fmt: skip
    y = items_of(replace(state, stage="y"))[-1].matrix.rows
    assert not y.any()


def test_weights_of_packed_heads_are_their_own(traces):
    said = traces["shared"].workload.scenario
    packed = simulate(with_values(said, {"attention": {"algorithm": "split-kv"}}))
    run = layer_of(packed)
    for row in (0, 23, 24, 47):  # of the two heads that are packed into the last
        state = state_at(packed, row=row)
        assert state.weights is not None
        made = state.weights @ run.arrays["v"][state.head // 2]
        np.testing.assert_allclose(made, run.arrays["o"][state.head], atol=2e-5)
    assert state.head == 3


def frames_of(state: LayerState) -> list[QRectF | None]:
    """Return which cells of each matrix are framed: column, row, and how many of both."""
    placed = scene(StagePicture(state), Style(THEMES["dark"]), QRectF(0, 0, 1264, 538)).placed
    frames = [box.frames for box, _ in placed if isinstance(box, Matrix)]
    return [QRectF(cols.start, rows.start, len(cols), len(rows)) if each else None
            for each in frames for rows, cols in each or [(range(0), range(0))]]  # fmt: skip


def test_a_stage_at_large_frames_what_goes_into_a_number(traces):
    state = state_at(traces["many heads"], stage="q", chosen_cell=(2, 3))
    x, weight, bias, q = frames_of(state)
    assert x == QRectF(0, 2, 64, 1)
    assert weight == QRectF(3, 0, 1, 64)
    assert bias == QRectF(3, 0, 1, 1)
    assert q == QRectF(3, 2, 1, 1)
    state = replace(state, stage="concat", chosen_cell=(2, 20))  # the second head's
    items = items_of(state)
    assert [each is not None for each in frames_of(state)] == [False, True, False, False, True]
    said = f"O[2, 20] = {items[-1].matrix.values[2, 20]:.6g}".replace("-", "−")
    assert total_of(state) == f"{said}, from head 1"
    assert cell_of(replace(state, chosen_cell=(2, 900)), items) == (2, 63)


def test_a_stage_at_large_says_the_sum_of_a_number(traces):
    demo, many = traces["demo"], traces["many heads"]
    v = state_at(demo, stage="v", chosen_cell=(1, 2))
    assert total_of(v) == "V[1, 2] = 0·0 + 1·0.5 + 0·0 + 1·0.5 = 1"
    o = state_at(demo, stage="o", chosen_cell=(0, 0))
    assert total_of(o) == "O[0, 0] = 0.293·1 + 0.376·0 + 0.332·0.5 = 0.458"
    y = state_at(many, stage="y", chosen_cell=(4, 5))
    assert "a sum of 64 products and a bias" in total_of(y)
    early = state_at(many, 0, 1, stage="y", chosen_cell=(4, 5))
    assert "not there yet" in total_of(early)


def total_of(state: LayerState) -> str:
    return words_of_stage(state).told


# --- motion -------------------------------------------------------------------------------------


def states_of(trace: Trace, visit: int) -> tuple[LayerState, np.ndarray, LayerState]:
    """Return the state after the last op of a visit, the rows it finishes, and the one before."""
    after = state_at(trace, visit)
    before = state_at(trace, visit, -2)
    return after, after.finished & ~before.finished, before


def test_rows_slide_into_the_concat_and_then_w_o_mixes_them(qapp, traces):
    trace = traces["many heads"]
    after, arriving, before = states_of(trace, len(trace) - 1)
    assert arriving[3].sum() == 2  # rows 48 and 49 of the last head

    def at(share: float, state: LayerState = after, rows: np.ndarray = arriving) -> LayerState:
        return replace(state, arriving=rows, share=share)

    works = [at(share).at_work for share in (0, 0.2, 0.49, 0.6, 0.99)]
    assert works == ["concat", "concat", "concat", "y", "y"]
    assert before.at_work == "o"
    assert after.at_work == "y"
    added = [at(n / 100).mixed for n in range(100)]
    assert added == sorted(added)
    assert set(added) == {0, 1, 2, 3}
    assert painted(at(1.0)) == painted(after)
    moving = [painted(at(share)) for share in (0.1, 0.3, 0.7, 0.9)]
    assert all(one != two for one, two in combinations(moving, 2))
    assert painted(at(0.3)) == moving[1], "it depends on share alone"
    assert np.array_equal(at(0.0).landed, before.finished)
    box = place_of(scene_of(after), "concat").toRect()
    leaving = painted(at(0.02)).copy(box)
    assert leaving == painted(before).copy(box), "nothing has landed yet"
    assert leaving != painted(after).copy(box)
    early, some, _ = states_of(trace, 0)
    assert at(0.5, early, some).mixing is None, "other heads have not done these rows"
    assert at(0.9, early, some).at_work == "concat"


def test_rows_of_y_under_way_are_sums_of_what_heads_give(traces):
    run = layer_of(traces["many heads"])
    rows = range(3, 8)
    for heads in range(5):
        wanted = run.shares[:heads, 3:8].sum(axis=0) + run.bias
        np.testing.assert_allclose(mixed_rows(run, rows, heads), wanted, atol=1e-6)
    np.testing.assert_allclose(mixed_rows(run, rows, 4), run.arrays["y"][3:8], atol=1e-5)


def test_where_not_all_heads_can_be_named_the_largest_are(traces):
    shares = row_shares(layer_of(traces["many heads"]), 9)
    assert named_heads(shares) == [0, 1, 2, 3]
    many = replace(shares, along=np.array([0.1, -0.9, *[0.3] * 8, 0.2]))
    assert named_heads(many) == [1, 2, 3, 4, 5, 6, 7], "the largest, whatever their sign"


def test_pieces_of_a_row_stack_up_to_y(traces):
    run = layer_of(traces["many heads"])
    plot = StackPlot(QRectF(200, 60, 800, 440), row_shares(run, 9).ends)
    assert plot.dims == 64
    low, high = plot.scale
    unit, zero = plot.rect.height() / (high - low), plot.y(0)
    for dim in range(64):
        boxes = [plot.piece(head, dim) for head in range(4)]
        assert all(plot.rect.adjusted(-1, -1, 1, 1).contains(box) for box in boxes)
        assert all(a.intersected(b).height() < 1e-6 for a, b in combinations(boxes, 2))
        up = sum(box.height() for box in boxes if box.center().y() < zero)
        down = sum(box.height() for box in boxes if box.center().y() >= zero)
        value = run.arrays["y"][9, dim] - run.bias[dim]
        assert (up - down) / unit == pytest.approx(value, abs=1e-4)


@pytest.mark.parametrize("choosing", [True, False])
def test_nobody_is_asked_to_choose_a_row_in_a_film(qapp, traces, choosing):
    picture = row_picture(state_at(traces["demo"], chosen_row=1, controls=choosing))
    words = words_of(scene(picture, Style(THEMES["dark"]), QRectF(0, 0, 1264, 538)))
    assert ("Y: choose a row" in words) is choosing
    assert ("Y, row 1 framed" in words) is not choosing


@pytest.mark.parametrize("more", [{}, {"interleaved": True}, {"fraction": 0.5, "offset": 2}])
def test_rotary_positions_are_a_part_of_their_stage(more):
    said = load_scenario(SCENARIOS / "layer.toml")
    position = {"kind": "rope", "theta": 50.0, **more}
    trace = simulate(with_values(said, {"position": position}))
    run = layer_of(trace)
    assert formula_of(run, "q", trace.workload) == r"Q = R_p \, (X W_Q)"
    assert formula_of(run, "v", trace.workload) == "V = X W_V"
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


def test_naive_attention_shows_scores_and_weights_in_the_place_of_tiles(qapp):
    """A small layer has raw scores, scaled ones and weights as numbers, and no word of memory."""
    demo = load_scenario(SCENARIOS / "layer.toml")
    state = state_at(simulate(with_values(demo, {"attention": {"algorithm": "naive"}})), stage="o")
    x, (wq, wk) = state.run.layer.x, (state.run.layer.weights[name] for name in ("wq", "wk"))
    raw = (x @ wq) @ (x @ wk).T
    weights = np.exp(raw / 2) / np.exp(raw / 2).sum(axis=1, keepdims=True)
    words = words_of(scene_of(state))
    for values in (raw, raw / 2, weights):
        assert {cell_words(float(each)) for each in values.flat} <= {*words}
    said = " ".join((*words, title_of(state.run, "o")))
    assert "attention" in words
    assert not re.search("HBM|LSE|tile|visit", said), said
