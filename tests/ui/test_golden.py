"""Pictures of the board and of the whole scene against ones that were looked at and kept.

``TILESCOPE_GOLDEN=write`` draws them anew; look at them before you commit them.
"""

import os
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QImage, QPainter

from simulator.base.assets import SCENARIOS
from simulator.run.row_report import row_report
from simulator.run.trace import simulate
from tests.helpers.painted import channels
from ui.board.board import paint_board
from ui.export.scenes import scene_moment
from ui.look.theme import THEMES, Style

GOLDEN = Path(__file__).resolve().parent.parent / "golden"
BOARDS = [
    # scenario, visit, op, theme
    ("causal", 4, 3, "dark"),
    ("flash1", 11, 6, "light"),
    ("naive", 7, 2, "dark"),
    ("naive", 22, 3, "contrast"),
    ("window-sinks", 20, 3, "contrast"),
    ("grouped-heads", 30, 2, "light"),
    ("split-kv", 5, 5, "light"),
    ("split-kv", 18, 4, "dark"),
]
TOLERANCE = 8
"""Difference of a colour channel, 0 to 255, that nobody sees."""


def check_golden(image: QImage, name: str, tmp_path: Path) -> None:
    kept = GOLDEN / f"{name}.png"
    if os.environ.get("TILESCOPE_GOLDEN") == "write":
        image.save(str(kept))
    image.save(str(tmp_path / f"{name}.png"))
    assert kept.exists(), f"{kept} is missing: TILESCOPE_GOLDEN=write draws it"
    ours, theirs = channels(image), channels(QImage(str(kept)))
    assert ours.shape == theirs.shape
    off = (np.abs(ours - theirs) > TOLERANCE).any(axis=2)
    assert off.mean() < 1e-3, f"{off.sum()} pixels differ from {kept}; now in {tmp_path}"


def painted(size: tuple[int, int], theme: str, paint) -> QImage:
    image = QImage(*size, QImage.Format.Format_RGB32)
    image.fill(QColor(THEMES[theme].panel))
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    paint(painter)
    painter.end()
    return image


@pytest.mark.parametrize(("name", "visit", "op", "theme"), BOARDS)
def test_board(qapp, tmp_path, name, visit, op, theme):
    snapshot = simulate(SCENARIOS / f"{name}.toml").snapshot(visit, op)
    size = (520, 400)

    def paint(painter):
        style = Style(THEMES[theme])
        paint_board(painter, snapshot, style, QRectF(0, 0, *size), row=snapshot.visit.rows.start)

    check_golden(painted(size, theme, paint), f"board-{name}-{visit}-{op}-{theme}", tmp_path)


def test_scene(qapp, tmp_path):
    snapshot = simulate(SCENARIOS / "flash2.toml").snapshot(8, 4)
    report, size = row_report(snapshot, 7), (1280, 720)
    moment = scene_moment("scene", snapshot, report, THEMES["dark"], size)
    check_golden(painted(size, "dark", moment.paint), "scene-flash2", tmp_path)


def test_a_changed_picture_is_noticed(qapp, tmp_path, monkeypatch):
    monkeypatch.delenv("TILESCOPE_GOLDEN", raising=False)  # or it would be kept
    snapshot = simulate(SCENARIOS / "causal.toml").snapshot(5, 3)

    def paint(painter):
        paint_board(painter, snapshot, Style(THEMES["dark"]), QRectF(0, 0, 520, 400), row=32)

    with pytest.raises(AssertionError, match="pixels differ"):
        check_golden(painted((520, 400), "dark", paint), "board-causal-4-3-dark", tmp_path)
