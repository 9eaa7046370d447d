"""The inspector of a run whose keys are pieces of a picture: what is clear is what is read."""

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from safetensors.numpy import save_file

from simulator.problem.scenario import parse_scenario
from tests.helpers.painted import channels
from tests.helpers.pictures import colours, picture_file, tensors_of
from ui.look.pieces import place_of
from ui.look.theme import THEMES, Style
from ui.panels.inspector.layout import inspector_layout
from ui.panels.inspector.painter import paint_inspector

PANEL, DEMO, LAYOUT = "inspector", "inspector", "inspector"
SIDE = 4
KNOWN = colours(SIDE * SIDE).astype(float)


@pytest.fixture
def window(window, tmp_path):
    show(window, picture_file(tmp_path / "a.safetensors", SIDE, 16))
    return window


def show(window, path: Path) -> None:
    said = {"source": "file", "path": str(path)}
    window.session.start(parse_scenario({"input": said, "tiling": {"rows": 32, "cols": 8}}), None)
    window.session.settle()
    QApplication.processEvents()


def weights(path: Path, head: int, row: int) -> np.ndarray:
    """Return the weights of a row in float64, from the definition."""
    tensors = tensors_of(SIDE, 16)
    q, k = (tensors[name][head].astype(float) for name in "qk")
    scores = q[row] @ k.T / np.sqrt(q.shape[1])
    p = np.exp(scores - scores.max())
    return p / p.sum()


def middle(panel, key: int) -> QPointF:
    """Return the middle of a key's piece in the picture."""
    picture = panel.model.picture
    return place_of(picture, picture.piece(key), panel.layout_now().picture).center()


@pytest.mark.long
def test_a_piece_is_as_clear_as_it_is_read(window, panel) -> None:
    ground = np.array(QColor(panel.fitted.theme.panel).getRgb()[:3], dtype=float)
    for row in (0, 6, 16):
        window.session.choose_row(row)
        window.session.settle()
        QApplication.processEvents()
        assert panel.pointer.row == row
        pixels = channels(panel.canvas.grab().toImage())
        exact = weights(panel.model.workload.file.path, panel.head, row)
        clear = exact[1:] / exact[1:].max()  # key 0, CLS, is no piece
        for key in range(1, exact.size):
            at = middle(panel, key).toPoint()
            covered = 0.9 * (1 - clear[key - 1])
            wanted = KNOWN[key - 1] + (ground - KNOWN[key - 1]) * covered
            assert np.abs(pixels[at.y(), at.x()] - wanted).max() <= 4, (row, key)


@pytest.mark.long
def test_what_is_no_key_s_is_covered(window, panel, tmp_path) -> None:
    tensors = {name: each if name == "image" else each[..., :9, :].copy()
               for name, each in tensors_of(SIDE, 16).items()}  # fmt: skip
    save_file(tensors, tmp_path / "half.safetensors")  # CLS and the upper half
    show(window, tmp_path / "half.safetensors")
    ground = np.array(QColor(panel.fitted.theme.panel).getRgb()[:3], dtype=float)
    pixels, place = channels(panel.canvas.grab().toImage()), panel.layout_now().picture
    for n in range(9, 17):
        row, column = divmod(n - 1, SIDE)
        x = round(place.left() + (column + 0.5) * place.width() / SIDE)
        y = round(place.top() + (row + 0.5) * place.height() / SIDE)
        wanted = 0.1 * KNOWN[n - 1] + 0.9 * ground
        assert np.abs(pixels[y, x] - wanted).max() <= 3, n


def test_a_piece_under_the_pointer_is_the_row_that_reads(window, panel) -> None:
    QTest.mouseMove(panel.canvas, middle(panel, 7).toPoint())
    assert (panel.hovered.row, panel.hovered.key) == (7, None)
    assert "patch 1,2" in panel.canvas.accessibleDescription()
    QTest.mouseClick(panel.canvas, Qt.MouseButton.LeftButton, pos=middle(panel, 9).toPoint())
    window.session.settle()
    assert window.session.view.report.row == 9
    panel.canvas.leaveEvent(None)
    assert panel.pointer.row == 9


@pytest.mark.long
def test_queries_of_a_text_do_not_stand_in_the_picture_of_keys(window, panel, tmp_path) -> None:
    tensors = tensors_of(SIDE, 16)
    tensors["q"] = tensors["q"][:, :3].copy()
    save_file(tensors, tmp_path / "b.safetensors", {"query_tokens": '["a", "small", "cat"]'})
    show(window, tmp_path / "b.safetensors")
    QTest.mouseMove(panel.canvas, middle(panel, 15).toPoint())
    assert panel.hovered is None


@pytest.mark.long
def test_the_jacobian_takes_the_place_of_the_picture(panel) -> None:
    assert not panel.layout_now().picture.isEmpty()
    panel.show_jacobian(True)
    assert panel.layout_now().picture.isEmpty()


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("size", [(560, 560), (840, 830), (1680, 1660)], ids=str)
def test_labels_are_pieces_and_nothing_overlaps(panel, theme: str, size: tuple[int, int]) -> None:
    style = Style(THEMES[theme], 2.0 if size[0] > 1000 else 1.0)
    room = QRectF(0, 0, *size)
    lay = inspector_layout(panel.model, style, room)
    assert not lay.picture.isEmpty()
    assert lay.read.contains(lay.picture)
    parts = [lay.cells, lay.row_labels, lay.key_labels, lay.bar, lay.blend, lay.heads_title,
             *(box for _, box in lay.heads), lay.title]  # fmt: skip
    assert not any(lay.picture.intersects(box) for box in parts)
    image = QImage(*size, QImage.Format.Format_RGB32)
    image.fill(QColor(style.theme.panel))
    with QPainter(image) as painter:
        paint_inspector(painter, panel.model, panel.pointer, style, room)
    pixels = channels(image)
    found = set()
    for labels in (lay.row_labels, lay.key_labels):
        box = labels.toAlignedRect()
        part = pixels[box.top() : box.bottom() + 1, box.left() : box.right() + 1]
        for key, colour in enumerate(KNOWN, start=1):
            if (np.abs(part - colour).max(axis=-1) <= 6).sum() > 50 * style.scale:
                found.add((labels is lay.row_labels, key))
    step = 1 if size[0] > 560 else 2
    assert {key for rows, key in found if rows} == set(range(step, 17, step))
    low = lay.key_labels.height() < style.px(12)  # no room for any
    assert low == (size == (560, 560))
    assert low or len({key for rows, key in found if not rows}) >= 8
