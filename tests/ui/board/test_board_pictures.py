"""Pieces of a picture on the board: beside its rows, above its keys, and the picture itself."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor
from safetensors.numpy import save_file

from simulator.engines.numpy_engine import numpy_engine
from simulator.run.snapshot import Snapshot
from simulator.run.trace import Trace, trace_of
from tests.helpers.painted import channels, painted_board
from tests.helpers.pictures import colours, picture_file, tensors_of
from tests.helpers.written_files import read
from ui.board.board import board_layout
from ui.board.corner import board_picture
from ui.board.layout import BoardLayout, Viewport
from ui.look.draw import text_width
from ui.look.pieces import key_piece, place_of, query_piece
from ui.look.theme import CONTRAST, DARK, LIGHT, Style

pytestmark = pytest.mark.usefixtures("qapp")
Pixels = NDArray[np.int16]
SIZES = {(1280, 720): 1.0, (1920, 1080): 1.5, (3840, 2160): 3.0}
"""Of pictures, each with the scale of its letters."""
NEAR = 12
"""Levels by which a colour may be off where a piece is drawn smaller than it is."""


def opened(path: Path, tile: int = 4, **tables: dict[str, object]) -> Trace:
    tiling = {"rows": tile, "cols": tile}
    return trace_of(*read(path, tiling=tiling, **tables), numpy_engine)


def painted(
    now: Snapshot, style: Style, size: tuple[int, int], view: Viewport | None = None
) -> tuple[Pixels, BoardLayout]:
    """Return a board in pixels, and where everything on it lies."""
    lay = board_layout(now.program.workload, style, QRectF(0, 0, *size), view)
    return channels(painted_board(now, style, size, view=view)), lay


def is_colour(pixels: Pixels, colour: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Return where pixels have a colour."""
    return (np.abs(pixels - colour.astype(np.int16)) <= NEAR).all(axis=-1)


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize(("size", "theme"), [*zip(SIZES, (DARK, LIGHT, CONTRAST), strict=True)])
@pytest.mark.parametrize("side", [3, 7], ids=["numbers in cells", "cells lower than letters"])
def test_each_label_is_the_piece_of_its_row_and_key(theme, size, side, tmp_path):
    trace = opened(picture_file(tmp_path / "a.safetensors", side, 32), 16)
    pixels, lay = painted(trace.snapshot(0), Style(theme, SIZES[size]), size)
    assert lay.tokens
    known, scale, step = colours(side * side), SIZES[size], lay.token_step
    rows = range(-(-1 // step) * step, 1 + side * side, step)
    x, y = round(lay.row_margin.right() - 3 * scale), round(lay.key_margin.bottom() - 3 * scale)
    for token in rows:
        beside = pixels[round(lay.row_y(token + 0.5)), x]
        above = pixels[y, round(lay.col_x(token + 0.5))]
        assert is_colour(beside, known[token - 1])
        assert is_colour(above, known[token - 1])
        # Nowhere else in the margin, so pieces lie apart, and none over a label or the matrix.
        margin = lay.row_margin.toAlignedRect()
        strip = pixels[margin.top() : margin.bottom(), margin.left() : margin.right() + 1]
        found = np.argwhere(is_colour(strip, known[token - 1]).sum(axis=1) > 2)[:, 0] + margin.top()
        middle, half = lay.row_y(token + 0.5), lay.cell[1] * step / 2 + 1
        assert middle - half <= found.min() <= found.max() <= middle + half
        assert found.max() - found.min() >= 5 * scale
    first = pixels[round(lay.row_y(0.5)), x - round(2 * scale) : x + 1]  # CLS has letters
    assert not any(is_colour(first, each).all() for each in known)


def test_a_tile_is_seen_in_the_picture(tmp_path):
    trace = opened(picture_file(tmp_path / "a.safetensors", 7, 32), 8)
    program, w = trace.program, trace.workload
    visit = next(
        n for n in range(len(program)) if (program.visit(n).i, program.visit(n).j) == (1, 4)
    )
    now, style = trace.snapshot(visit), Style(DARK)
    pixels, lay = painted(now, style, (1280, 720))
    place = board_picture(now, lay)
    assert place is not None
    q, k = (np.array(QColor(DARK.tensor(name)).getRgb()[:3]) for name in "QK")
    for key, colour in enumerate(colours(49), start=1):
        own = place_of(w.file.picture, key_piece(w, key), place).toRect()
        part = pixels[own.top() : own.bottom() + 1, own.left() : own.right() + 1]
        assert is_colour(part[part.shape[0] // 2, part.shape[1] // 2], colour)
    for pieces, colour in (
        ([query_piece(w, row) for row in now.visit.rows], q),
        ([key_piece(w, key) for key in now.visit.cols], k),
    ):
        area = QRectF()
        for box in pieces:
            area = area.united(place_of(w.file.picture, box, place))
        seen = np.argwhere((np.abs(pixels - colour) <= 2).all(axis=-1))
        near = area.adjusted(-2, -2, 2, 2)
        picture = place.adjusted(-3, -3, 3, 3)
        inside = [(x, y) for y, x in seen if picture.contains(x, y)]
        assert len(inside) > 40
        assert all(near.contains(x, y) for x, y in inside)


@pytest.mark.sweep(keep=6)
@pytest.mark.parametrize("size", [*SIZES][::2], ids=str)
@pytest.mark.parametrize("side", [3, 14, 24])
@pytest.mark.parametrize("heads", ["alone", "shared"])
def test_the_picture_lies_in_room_that_nothing_else_has(size, side, heads, tmp_path):
    tensors = tensors_of(side)
    if heads == "shared":
        tensors |= {name: tensors[name][:1].copy() for name in "kv"}
    path, style = tmp_path / "a.safetensors", Style(DARK, SIZES[size])
    save_file(tensors, path)
    now = opened(path, 16).snapshot(0)
    for room in (size, (round(0.4 * size[0]), round(0.82 * size[1]))):
        lay = board_layout(now.program.workload, style, QRectF(0, 0, *room))
        place = board_picture(now, lay)
        if place is None and heads == "shared" and room != size:
            continue  # the words about shared heads have its room
        assert lay.rect.contains(place)
        taken = [*lay.boxes.values(), lay.row_margin, lay.key_margin, lay.header, lay.caption]
        assert not any(place.intersects(box) for box in taken)
        titles = {name: box for name, box in lay.labels.items() if name != "Q"}
        assert not any(place.intersects(box) for box in titles.values())
        width = text_width(style.text_font(13 * lay.growth, bold=True), "Q 577×8")
        title = QRectF(lay.labels["Q"])
        title.setLeft(min(lay.boxes["Q"].left(), lay.boxes["Q"].right() - width))
        assert not place.intersects(title)
