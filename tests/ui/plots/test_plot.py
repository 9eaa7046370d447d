"""The plot widget: ticks, labels that find a place, the pointer, zoom, keys, pictures."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QByteArray, QPoint, QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtTest import QTest

from simulator.program.algorithms import USUAL, beside
from tests.helpers.drawn_words import drawn_words, faults
from tests.helpers.pointer import wheel
from ui.export.picture import WidgetPicture
from ui.look.theme import TEXT_SCALES, THEMES, Style
from ui.look.units import bytes_text, count_text, time_text
from ui.plots.labels import Wanted, place_labels, spread
from ui.plots.layout import plot_layout
from ui.plots.model import Axis, Curve, HeatMap, Level, PlotMark, PlotModel, ink, spots
from ui.plots.painter import heat_words, paint_over, ramp, readout_box
from ui.plots.widget import PlotView

BYTES = Axis("Bytes", lambda n: bytes_text(round(n)), log=True, base=2)
SIZES = Axis("N", lambda n: count_text(round(n)), log=True, base=2, whole=True)
SECONDS = Axis("Time", time_text, log=True)
LINEAR = Axis("Br", lambda n: count_text(round(n)), base=2, whole=True)
AXES = {"bytes": BYTES, "sizes": SIZES, "seconds": SECONDS, "linear": LINEAR}


def curves_model() -> PlotModel:
    xs = tuple(2.0**n for n in range(4, 12))
    rows = {"naive": 3.0, "flash1": 2.9, "flash2": 1.0}
    curves = tuple(
        Curve(f"Curve {name}", name, name, xs, tuple(scale * x**2 for x in xs),
              picks=tuple((name, x) for x in xs))
        for name, scale in rows.items()
    )  # fmt: skip
    mark = PlotMark(64, 64**2, "here: 4.0 KiB", "here", "current", "star", pick=None)
    level = Level(2.0**15, "limit: 32 KiB", "limit", "bad")
    return PlotModel("A plot", SIZES, BYTES, curves, (mark,), (level,), summary="figures")


def heat_model() -> PlotModel:
    sizes = tuple(float(n) for n in range(16, 1025, 16))
    values = np.outer(sizes, sizes)
    heat = HeatMap(
        sizes, sizes, values, "Bytes", BYTES.text, 2, "hbm_line", values > 2.0**17,
        "hatched: over the limit", "over", lambda r, c: (f"cell {r} {c}", "value"),
    )  # fmt: skip
    marks = tuple(
        PlotMark(x, y, f"rule {n} 128 × 64", f"rule {n}", "text", "diamond", pick=(y, x))
        for n, (x, y) in enumerate([(128, 64), (128, 80), (144, 64), (128, 64), (1024, 1024)])
    )
    return PlotModel("A map", LINEAR, LINEAR, marks=marks, heat=heat)


MODELS = {"curves": curves_model, "map": heat_model}


@pytest.fixture
def plot(qtbot):
    view = PlotView()
    qtbot.addWidget(view)
    view.resize(600, 300)
    view.show()
    view.show_model(curves_model())
    return view


# --- ticks -------------------------------------------------------------------------------------


@given(st.sampled_from(sorted(AXES)), st.floats(0.0, 8.0), st.floats(0.01, 8.0))
def test_ticks_lie_between_the_ends_and_read_differently(name, low, span):
    axis = AXES[name]
    if not axis.log:
        low, span = 100 * low, 100 * span
    choices = list(axis.ticks(low, low + span))
    assert choices[-1] == ()
    for choice in choices:
        places = [place for place, _ in choice]
        assert places == sorted(places)
        assert all(low - 1e-6 <= place <= low + span + 1e-6 for place in places)
        words = [text for _, text in choice]
        assert len(set(words)) == len(words)


def test_ticks_are_round_in_their_base():
    words = [[text for _, text in choice] for choice in BYTES.ticks(math.log10(900), 7.0)]
    assert ["1 KiB", "32 KiB", "1 MiB"] in words
    decades = [[text for _, text in choice] for choice in SECONDS.ticks(-6.2, -2.8)]
    assert ["1 µs", "10 µs", "100 µs", "1 ms"] in decades
    narrow = [[text for _, text in choice] for choice in SIZES.ticks(3.0, 3.2)]
    assert any({"1\u2009024", "1\u2009280", "1\u2009536"} <= set(choice) for choice in narrow)
    assert ["0", "256", "512"] in [[t for _, t in c] for c in LINEAR.ticks(0, 600)]


# --- labels ------------------------------------------------------------------------------------

points = st.tuples(st.floats(0, 400), st.floats(0, 200))


def test_a_label_keeps_off_the_line_that_leads_to_another():
    far = Wanted((QPointF(100, 100),), (QSizeF(40, 16),), 10.0, ((1, 0),), (5.0,))
    near = Wanted((QPointF(125, 80),), (QSizeF(40, 16),), 8.0, ((0, 1), (0, -1)), (1.0,))
    inside = QRectF(0, 0, 400, 200)
    led, other = place_labels([far, near], inside, [], np.empty((0, 2)))
    assert led.far
    assert other.box.bottom() <= 80  # below it the line goes to the right
    # Nor does such a line go through a label that is there already, however thin.
    bar = QRectF(130, 60, 4, 80)
    choices = Wanted((QPointF(100, 100),), (QSizeF(40, 16),), 10.0, ((1, 0), (-1, 0)), (5.0,))
    [placed] = place_labels([choices], inside, [bar], np.empty((0, 2)))
    assert placed.box.right() <= 100


def samples(start: QPointF, box: QRectF) -> list[QPointF]:
    """Return points of the line from a point to the nearest one of a box, half a pixel apart."""
    x = min(max(start.x(), box.left()), box.right()) - start.x()
    y = min(max(start.y(), box.top()), box.bottom()) - start.y()
    count = int(2 * math.hypot(x, y)) + 2
    return [start + QPointF(x, y) * (n / (count - 1)) for n in range(count)]


@given(st.lists(st.tuples(points, st.integers(10, 150)), min_size=1, max_size=12))
def test_labels_lie_inside_and_no_line_to_one_goes_through_another(wishes):
    inside = QRectF(0, 0, 400, 200)
    dots = [QRectF(x - 5, y - 5, 10, 10) for (x, y), _ in wishes]
    wanted = [
        Wanted((QPointF(x, y),), (QSizeF(width, 16), QSizeF(width / 2, 16)), 8.0)
        for (x, y), width in wishes
    ]
    found = [p for p in place_labels(wanted, inside, dots, np.empty((0, 2))) if p is not None]
    assert found
    for place in found:
        assert inside.contains(place.box)
        assert not any(place.box.intersects(dot) for dot in dots)
        others = [p.box for p in found if p is not place]
        assert not any(place.box.intersects(box) for box in others)
        line = samples(place.anchor, place.box) if place.far else []
        assert not any(box.adjusted(-2, -2, 2, 2).contains(at) for box in others for at in line)


def only(*labels, lines=None, dots=None):
    """Return the places of labels on a small plot in which nothing else is."""
    return place_labels(
        labels, QRectF(0, 0, 400, 200), [], np.empty((0, 2)) if lines is None else lines,
        np.empty((0, 2)) if dots is None else dots,
    )  # fmt: skip


def test_a_line_to_a_label_keeps_off_curves_and_their_points():
    anchor, size = QPointF(100, 100), QSizeF(40, 16)
    far = Wanted((anchor,), (size,), 10.0, ((1, 0), (-1, 0)), (5.0,))
    down = np.stack([np.full(40, 130.0), np.linspace(20, 180, 40)], axis=1)
    for found in (
        only(far),
        only(far, lines=down + 300),
        only(far, lines=down + np.array([0, 85])),
    ):
        assert found[0].box.left() == 150
    [place] = only(far, lines=down)
    assert place.box.right() == 50
    [place] = only(far, dots=np.array([[130.0, 101.0]]))
    assert place.box.right() == 50
    # Two curves are two: nothing joins the end of one to the start of the next.
    beside = np.array([[130.0, 20.0], [130.0, 40.0], [np.nan, np.nan], [130.0, 160.0]])
    assert only(far, lines=beside)[0].box.left() == 150


def test_a_label_does_not_hide_a_little_of_a_curve_where_it_may_stand_beside_it():
    label = Wanted((QPointF(100, 100),), (QSizeF(40, 16),), 10.0, ((1, 1),), (1.0, 2.0))
    corner = np.array([[111.0, 111.0], [111.0, 90.0]])
    assert only(label)[0].box.topLeft() == QPointF(110, 110)
    assert only(label, lines=corner)[0].box.topLeft() == QPointF(120, 120)


def test_a_label_does_not_stand_beside_another_point_without_a_line():
    label = Wanted((QPointF(100, 100),), (QSizeF(40, 16),), 10.0, ((1, 1), (-1, -1)), (1.0,))
    assert only(label)[0].box.topLeft() == QPointF(110, 110)
    # The words would begin beside the point at their left.
    [place] = only(label, dots=np.array([[100.0, 118.0]]))
    assert place.box.bottomRight() == QPointF(90, 90)
    # In the very place of what it names there is no other.
    [place] = only(label, dots=np.array([[100.0, 101.0]]))
    assert place.box.topLeft() == QPointF(110, 110)


def test_a_label_makes_room_for_one_that_has_no_other_place():
    first = Wanted((QPointF(100, 100),), (QSizeF(40, 16),), 8.0, ((1, 0), (-1, 0)), (1.0,))
    alone = Wanted((QPointF(112, 118),), (QSizeF(30, 16), QSizeF(20, 16)), 8.0, ((0, -1),), (1.0,))
    assert only(first)[0].box.left() == 108
    one, other = only(first, alone)
    assert one.box.right() == 92
    assert other.wording == 0
    assert other.box.bottom() == 110


@given(st.lists(st.floats(-50, 250), max_size=12))
def test_end_labels_are_spread_in_order(middles):
    found = spread(middles, 15.0, 0.0, 200.0)
    assert found is not None
    assert all(7.5 - 1e-6 <= y <= 192.5 + 1e-6 for y in found)
    for (a, one), (b, two) in pairwise(sorted(zip(middles, found, strict=True))):
        assert two - one >= 15 - 1e-6 or a == b
    assert spread(middles, 15.0, 0.0, 15.0 * len(middles) - 1) is None


def test_wide_plots_name_every_mark_curve_and_line(qapp):
    for make in MODELS.values():
        model = make()
        layout = plot_layout(model, Style(THEMES["dark"]), QRectF(0, 0, 1200, 700), *model.fit())
        said = [label.text for label in layout.labels]
        assert {m.label for m in model.marks} | {c.name for c in model.curves} <= set(said)
        assert {level.label for level in model.levels} <= set(said)


@pytest.mark.parametrize("scale", TEXT_SCALES)
def test_a_low_plot_names_all_curves_beside_what_is_around_it(qapp, scale):
    model = curves_model()
    first = model.curves[0]
    ends = [2.0**n for n in range(7)]  # more curves than lines of the plot itself
    curves = tuple(
        replace(first, name=f"Curve {n}", short=f"{n}", ys=tuple(y * end for y in first.ys))
        for n, end in enumerate(ends)
    )
    model = replace(model, curves=curves)
    rect = QRectF(0, 0, 620, 115)
    layout = plot_layout(model, Style(THEMES["dark"], scale), rect, *model.fit())
    named = [label for label in layout.labels if label.curve is not None]
    assert [label.text for label in named] == [curve.name for curve in curves]
    height = layout.frame.plot.height()
    assert sum(label.box.height() for label in named) > height
    drawn = drawn_words(lambda painter: paint_over(painter, model, layout), rect)
    assert not faults(drawn, rect)


# --- the widget --------------------------------------------------------------------------------


def move(view: PlotView, at: QPointF) -> None:
    QTest.mouseMove(view.surface, at.toPoint())


def click(view: PlotView, at: QPointF) -> None:
    QTest.mouseClick(
        view.surface, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier,
        at.toPoint(),
    )  # fmt: skip


def test_the_pointer_reads_the_nearest_point(plot):
    move(plot, plot.where(64, 64**2 * 3.0) + QPointF(3, -4))
    assert plot.spot.details == ("Curve naive", "12.0 KiB")
    assert "12.0 KiB" in plot.accessibleDescription()
    move(plot, plot.where(16, 2.0**20))
    assert plot.spot is None
    assert plot.accessibleDescription() == "figures"


def test_a_click_tells_what_the_point_stands_for(plot, qtbot):
    with qtbot.waitSignal(plot.picked) as told:
        click(plot, plot.where(256, 256.0**2))
    assert told.args == [("flash2", 256.0)]


def test_dragging_is_no_click(plot, qtbot):
    plot.zoom(2)
    start, viewport = plot.where(256, 256.0**2), plot.surface
    with qtbot.assertNotEmitted(plot.picked):
        QTest.mousePress(viewport, Qt.MouseButton.LeftButton, pos=start.toPoint())
        for step in range(1, 6):
            QTest.mouseMove(viewport, start.toPoint() + QPoint(6 * step, 0))
        end = start.toPoint() + QPoint(30, 0)
        QTest.mouseRelease(viewport, Qt.MouseButton.LeftButton, pos=end)


def test_zooming_shows_less_and_fit_shows_all(plot, qtbot):
    whole = plot.plot_layout().frame
    with qtbot.waitSignal(plot.zoomed) as told:
        plot.zoom(4.0, plot.where(64, 64.0**2))
    assert told.args == [True]
    frame = plot.plot_layout().frame
    assert frame.x[1] - frame.x[0] == pytest.approx((whole.x[1] - whole.x[0]) / 4)
    # What is under the pointer stays there.
    assert frame.x[0] < math.log10(64) < frame.x[1]
    plot.zoom(0.01)
    assert plot.plot_layout().frame.x == pytest.approx(whole.x)  # never more than all
    plot.zoom(3.0)
    plot.fit()
    assert not plot.is_zoomed
    assert plot.plot_layout().frame.x == pytest.approx(whole.x)


def test_the_wheel_zooms(plot, qtbot):
    wheel(plot.surface, plot.plot_layout().frame.plot.center(), 1)
    assert plot.is_zoomed


def test_the_zoom_stays_while_the_axes_do(plot):
    plot.zoom(4.0)
    frame = plot.plot_layout().frame
    plot.show_model(curves_model())
    assert plot.plot_layout().frame.x == pytest.approx(frame.x)
    plot.show_model(heat_model())
    assert not plot.is_zoomed


def test_keys_go_along_a_curve_and_pick(plot, qtbot):
    plot.setFocus()
    QTest.keyClick(plot, Qt.Key.Key_PageDown)
    assert (plot.spot.series, plot.spot.x) == (0, 16)
    QTest.keyClick(plot, Qt.Key.Key_PageDown)
    QTest.keyClick(plot, Qt.Key.Key_Down)
    assert (plot.spot.series, plot.spot.x) == (1, 32)
    with qtbot.waitSignal(plot.picked) as told:
        QTest.keyClick(plot, Qt.Key.Key_Return)
    assert told.args == [("flash1", 32.0)]
    QTest.keyClick(plot, Qt.Key.Key_Up, Qt.KeyboardModifier.ShiftModifier)
    assert plot.is_zoomed
    assert plot.spot.x == 32
    QTest.keyClick(plot, Qt.Key.Key_Escape)
    assert plot.spot is None
    QTest.keyClick(plot, Qt.Key.Key_Escape)
    assert not plot.is_zoomed


def test_keys_and_pointer_go_over_a_map(plot, qtbot):
    plot.show_model(heat_model())
    plot.setFocus()
    for key in (Qt.Key.Key_Up, Qt.Key.Key_Up, Qt.Key.Key_PageDown):
        QTest.keyClick(plot, key)
    assert (plot.spot.index, plot.spot.pick) == ((1, 1), (32.0, 32.0))
    for _ in range(2):
        QTest.keyClick(plot, Qt.Key.Key_PageUp)
    assert plot.spot.index == (1, 0)
    move(plot, plot.where(128, 64))  # a mark is met before the cell under it
    assert plot.spot.series >= 0
    move(plot, plot.where(640, 320))
    assert plot.spot.details == ("cell 19 39", "value")
    heat = plot.model.heat
    places = [(16, 16), (1024, 23.9), (7.9, 16), (16, 1033)]
    assert [heat.cell_at(*each) for each in places] == [(0, 0), (0, 63), None, None]


def test_the_fence_stands_between_cells_in_and_beyond():
    heat = heat_model().heat
    for x0, y0, x1, y1 in heat.fence():
        x, y = (x0 + x1) / 2, (y0 + y1) / 2
        dx, dy = (4.0, 0.0) if x0 == x1 else (0.0, 4.0)
        one, two = heat.cell_at(x - dx, y - dy), heat.cell_at(x + dx, y + dy)
        assert heat.beyond[one] != heat.beyond[two]
    assert len(heat.fence()) >= 64


def test_readouts_stay_inside(qapp):
    model, rect, style = curves_model(), QRectF(0, 0, 400, 120), Style(THEMES["dark"], 1.5)
    for spot in spots(model):
        for at in (QPointF(0, 0), QPointF(400, 120), QPointF(200, 60)):
            assert rect.contains(readout_box(spot, at, style, rect))


@pytest.mark.parametrize("theme", sorted(THEMES))
def test_shades_grow_away_from_the_ground(theme):
    words = ramp(theme, "hbm_line")
    grey = np.array([QColor.fromRgba(int(word)).lightnessF() for word in words])
    rises = np.diff(grey) if THEMES[theme].dark else -np.diff(grey)
    assert rises.min() >= -0.01
    assert abs(grey[-1] - grey[0]) > 0.4
    heat = heat_model().heat
    assert heat_words(heat, THEMES[theme])[-1, -1] == words[-1]


# --- pictures ----------------------------------------------------------------------------------


def colours(image: QImage) -> set[str]:
    return {image.pixelColor(x, y).name()
            for x in range(image.width()) for y in range(image.height())}  # fmt: skip


def test_saved_pictures_show_the_curves(plot, tmp_path):
    plot.set_style(Style(THEMES["light"]))
    expected = {ink(THEMES["light"], name).name() for name in beside(USUAL.name)}
    WidgetPicture(plot).save(tmp_path / "plot.png")
    assert expected <= colours(QImage(str(tmp_path / "plot.png")))
    WidgetPicture(plot).save(tmp_path / "plot.svg")
    svg = (tmp_path / "plot.svg").read_text("utf-8")
    assert svg.count("<polyline") + svg.count("<path") > 20
    renderer = QSvgRenderer(QByteArray(svg.encode()))
    image = QImage(600, 300, QImage.Format.Format_RGB32)
    painter = QPainter(image)
    renderer.render(painter)
    painter.end()
    assert expected <= colours(image)


def test_a_saved_map_shows_its_colours(plot, tmp_path):
    plot.show_model(heat_model())
    WidgetPicture(plot).save(tmp_path / "map.png")
    shades = {f"#{int(word) & 0xFFFFFF:06x}" for word in ramp("dark", "hbm_line")}
    assert len(shades & colours(QImage(str(tmp_path / "map.png")))) > 100
    WidgetPicture(plot).save(tmp_path / "map.svg")
    assert "<image" in (tmp_path / "map.svg").read_text("utf-8")
