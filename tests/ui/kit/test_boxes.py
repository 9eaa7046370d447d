"""Boxes find their places, paint, and know what is at a point."""

import numpy as np
import pytest
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QColor, QImage, QPainter

from tests.helpers.drawn_words import drawn_words, faults
from tests.helpers.painted import painted
from ui.kit.boxes import Box, Canvas, Column, Row, Where, scene
from ui.kit.shapes import Bar, Bars, CellGrid, GridCell, Heat, Image, Legend, Paragraph, Text
from ui.look.theme import DARK, Style

pytestmark = pytest.mark.usefixtures("qapp")
STYLE = Style(DARK)
ROOM = QRectF(10, 20, 200, 100)


def place(box: Box, name: str, rect: QRectF = ROOM) -> tuple[float, ...]:
    return scene(box, STYLE, rect).where(name).getRect()


def texts(box: Box, rect: QRectF = ROOM) -> list[str]:
    return [each.text for each in drawn_words(scene(box, STYLE, rect).paint, rect)]


def red(style: Style) -> QImage:
    image = QImage(1, 1, QImage.Format.Format_RGB32)
    image.fill(QColor("#FF0000"))
    return image


def test_what_grows_in_a_row_takes_what_the_others_leave() -> None:
    row = Row((Box(name="a", wide=30), Box(name="b", grow=1), Box(name="c", grow=3)), gap=5)
    assert place(row, "a") == (10, 20, 30, 100)
    assert place(row, "b") == (45, 20, 40, 100)
    assert place(row, "c") == (90, 20, 120, 100)


def test_a_share_is_of_all_the_room_and_lengths_follow_the_scale() -> None:
    column = Column((Box(name="a", share=0.25), Box(name="b", high=10), Box(name="c", grow=1)))
    assert place(column, "a") == (10, 20, 200, 25)
    assert place(column, "c") == (10, 67, 200, 53)
    twice = scene(column, Style(DARK, 2.0), ROOM)
    assert twice.where("b").height() == 20
    assert twice.where("b").y() == 20 + 25 + 12


def test_what_may_go_goes_from_the_last_until_the_rest_has_room() -> None:
    parts = (Box(name="a", high=60), Box(name="b", high=30, may_go=True),
             Box(name="c", high=30, may_go=True), Box(name="d", high=5))  # fmt: skip
    found = scene(Column(parts, gap=0), STYLE, ROOM)
    assert [each.box.name for each in found.placed if each.box.name] == ["a", "b", "d"]
    assert found.where("d").getRect() == (10, 110, 200, 5)


def test_where_nothing_may_go_all_give_way_and_nothing_leaves_the_room() -> None:
    row = Row((Box(name="a", wide=300), Box(name="b", wide=100)), gap=100)
    assert place(row, "a")[2] == 3 * place(row, "b")[2]
    assert abs(scene(row, STYLE, ROOM).where("b").right() - ROOM.right()) < 1e-9


def test_of_several_wordings_the_longest_that_fits_is_seen() -> None:
    long, short = "the long words of a sentence", "few words"
    assert texts(Text((long, short))) == [long]
    assert texts(Text((long, short)), QRectF(0, 0, 60, 20)) == [short]
    assert texts(Text(long), QRectF(0, 0, 60, 20))[0].endswith("…")
    assert texts(Paragraph((long, short)), QRectF(0, 0, 60, 20)) == [short]
    assert " ".join(texts(Paragraph(long), QRectF(0, 0, 60, 200))) == long


def test_a_column_gives_a_paragraph_as_many_lines_as_it_needs() -> None:
    said = Paragraph("450 GB/s of a link and 768 B in three blocks", name="said")
    column = Column((Box(name="above", grow=1), said), gap=0)
    narrow = QRectF(0, 0, 90, 200)
    lines = texts(column, narrow)
    assert len(lines) > 1
    assert "GB/s" in " ".join(lines)
    assert scene(column, STYLE, narrow).where("said").height() == 16 * len(lines)
    assert not faults(drawn_words(scene(column, STYLE, narrow).paint, narrow), narrow)


def test_a_square_takes_no_more_width_than_it_has_a_use_for() -> None:
    parts = Box(high=20), Image(red, square=True, name="square", grow=1)
    row = Row((Column(parts, gap=0, share=0.6), Box(name="rest", grow=1)), gap=0)
    assert place(row, "square") == (10, 40, 80, 80)
    assert place(row, "rest") == (90, 20, 120, 100)


def test_the_pointer_finds_the_highest_box_first_and_passes_what_has_no_id() -> None:
    lane = Bars((Bar(0, 1, "S"),), 2.0, name="lane", tip="a lane", grow=1)
    row = Row((Box(wide=50), Row((lane,), id="device", grow=1)), id="all")
    found = scene(row, STYLE, ROOM)
    assert found.at(found.where("lane").center()) == ["device", "all"]
    assert found.tip(found.where("lane").center()) == "a lane"
    assert found.at(QPointF(15, 25)) == ["all"]
    assert (found.at(QPointF(0, 0)), found.tip(QPointF(15, 25))) == ([], "")


def test_something_is_painted_over_boxes_where_they_are() -> None:
    def draw(painter: QPainter, style: Style, where: Where) -> None:
        painter.fillRect(where["b"], QColor("#FF0000"))

    ground = Canvas(lambda painter, style, rect: painter.fillRect(rect, QColor("#0000FF")),
                    name="b", grow=1)  # fmt: skip
    row = Row((Box(wide=4), Row((ground,), grow=1)), gap=0, over=draw)
    image = painted(scene(row, STYLE, QRectF(0, 0, 8, 8)).paint)
    assert [image.pixelColor(x, 4).name() for x in (2, 6)] == ["#000000", "#ff0000"]


def test_a_legend_takes_as_many_lines_as_it_needs_and_names_every_colour() -> None:
    named = tuple(("S", name) for name in ("this device", "this step", "done", "to come"))
    for wide, lines in ((400, 1), (150, 2), (90, 4)):
        rect = QRectF(0, 0, wide, 100)
        found = scene(Column((Legend(named, name="legend"),)), STYLE, rect)
        assert found.where("legend").height() == 16 * lines
        drawn = drawn_words(found.paint, rect)
        assert [each.text for each in drawn] == [name for _, name in named]
        assert not faults(drawn, rect)


def test_a_legend_is_short_where_that_takes_fewer_lines() -> None:
    named = (("S", ("a token of a sequence", "token")), ("K", "free"))
    for wide, words in ((400, "a token of a sequence"), (150, "token")):
        found = scene(Column((Legend(named, name="legend"),)), STYLE, QRectF(0, 0, wide, 100))
        assert found.where("legend").height() == 16
        assert [each.text for each in drawn_words(found.paint, QRectF(0, 0, wide, 100))] == [
            words,
            "free",
        ]


def test_a_grid_says_which_cell_the_pointer_is_on() -> None:
    cells = {(0, 0): GridCell("7"), (1, 2): GridCell("9", frame="bad")}
    heat = Heat(np.zeros((2, 4), np.float32), 0.0, 1.0, "P")
    names = "row 5", "row 6"
    grid = CellGrid((2, 4), cells, (20, 16), names, heat, id="sum", name="grid", grow=1)
    found = scene(Column((grid,)), STYLE, ROOM)
    place = found.where("grid")
    assert (place.width(), place.height()) == (80, 32)
    assert place.x() > ROOM.x() + 20  # names stand at the left
    assert found.at(place.topLeft() + QPointF(45, 20)) == [("sum", 1, 2)]
    assert found.at(place.bottomRight()) == [("sum", 1, 3)]
    assert found.at(QPointF(ROOM.right() - 1, 30)) == []
    drawn = drawn_words(found.paint, ROOM)
    assert sorted(each.text for each in drawn) == ["7", "9", *names]
    below = scene(Column((grid, Box(name="below", high=5)), gap=0), STYLE, ROOM).where("below")
    assert below.y() == place.bottom()  # of more height there is no use
    assert texts(Column((grid,)), QRectF(0, 0, 20, 100)) == []  # too narrow for words and names
    image = painted(found.paint, 200, 100)
    corner = (place.topLeft() + QPointF(41, 17)).toPoint()
    assert image.pixelColor(corner).red() > 240  # the frame of a cell


def test_words_upon_numbers_can_be_read() -> None:
    heat = Heat(np.array([[0, 1]], np.float32), 0.0, 1.0, "P")
    upon_dark, upon_light = heat.inks(STYLE)[0]
    assert upon_dark.lightness() > 200 > 50 > upon_light.lightness()
