"""Qt's application, in a process of its own: what Qt reads once cannot be changed afterwards."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
LINES = """
import psutil
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPainterPath, QPen
from ui.widgets.application import application

application()
image = QImage(1200, 900, QImage.Format.Format_RGB32)
before = psutil.Process().num_threads()
with QPainter(image) as painter:
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    path = QPainterPath(QPointF(10, 10))
    path.cubicTo(QPointF(1100, 20), QPointF(20, 800), QPointF(1150, 850))
    painter.setPen(QPen(QColor(200, 100, 50, 115), 7, Qt.PenStyle.DashLine))
    painter.drawPath(path)
print(psutil.Process().num_threads() - before)
"""


@pytest.mark.long
def test_a_line_is_drawn_in_one_thread():
    done = subprocess.run(
        [sys.executable, "-c", LINES], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("0\n", "")
