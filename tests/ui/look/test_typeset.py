"""Formulas are typeset in the engine's thread and in the window's, which share one font file."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import ziamath
from PySide6.QtGui import QColor, QImage, QPainter

from tests.helpers.painted import channels
from ui.look.formula import formula, typeset


def test_two_threads_typeset_one_after_the_other(qapp, monkeypatch):
    real: Any = ziamath.Latex
    inside, overlaps = threading.Semaphore(1), []

    def watched(*args: Any, **options: Any) -> Any:
        overlaps.append(not inside.acquire(blocking=False))
        time.sleep(0.002)  # lets another thread in, if any may come
        found = real(*args, **options)
        inside.release()
        return found

    monkeypatch.setattr(ziamath, "Latex", watched)
    latex = [rf"\mathfrak{{{letter}}}_{{77}}" for letter in "ABCDEFGH"]
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(typeset, [latex[:4], latex[4:]]))
    assert overlaps == [False] * 8


@pytest.mark.parametrize("ratio", [1.0, 1.35, 2.0])
def test_a_formula_has_the_pixels_of_the_screen_not_of_the_window(qapp, ratio):
    drawn = formula(r"m \leftarrow \max(m_{\mathrm{old}}, \max S)", 15.0)

    def painted(direct: bool) -> np.ndarray:
        image = QImage(400, 80, QImage.Format.Format_RGB32)
        image.fill(QColor("#101418"))
        if not direct:
            image.setDevicePixelRatio(ratio)
        with QPainter(image) as painter:
            if direct:
                painter.setRenderHint(QPainter.RenderHint.Antialiasing)
                painter.translate(round(11 * ratio), round(27 * ratio))
                painter.scale(ratio, ratio)
                painter.fillPath(drawn.path, QColor("white"))
            else:
                drawn.draw(painter, 11.2, 26.8, "white")
        return channels(image)

    there, wanted = painted(direct=False), painted(direct=True)
    assert np.ptp(wanted) > 150
    assert np.abs(there - wanted).max() <= 2
