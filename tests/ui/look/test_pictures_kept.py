"""What is kept of a picture is its pixels, not what its painter has needed."""

import sys
from collections.abc import Callable

import pytest
from PySide6.QtCore import QSize
from PySide6.QtGui import QImage, QPainter

from tests.soak.memory import MIB, parts
from ui.look.formula import formula
from ui.look.icons import icon

TYPESET = r"\ell_{new} = e^{m - m_{new}} \ell + \sum_j e^{S_{ij} - m_{new}}"
MANY = 160


def taken(keep: Callable[[int], object]) -> float:
    """Return how many MiB of small pieces `MANY` things take."""
    found = [keep(0)]
    before = parts()["used"]
    found += [keep(n) for n in range(1, MANY + 1)]
    return parts()["used"] - before


@pytest.mark.usefixtures("qapp")
@pytest.mark.skipif(sys.platform != "linux", reason="asks the C library of Linux")
def test_pictures_of_formulas_take_their_pixels() -> None:
    typeset = formula(TYPESET, 14.0)
    height = round(typeset.ascent + typeset.descent) + 4
    pixels = 4 * (round(typeset.width) + 3) * height / MIB
    page = QImage(600, 80, QImage.Format.Format_RGB32)

    def paint(colour: int) -> None:
        with QPainter(page) as painter:
            typeset.draw(painter, 10, 40, f"#{colour:06x}")

    assert taken(paint) < 1.5 * MANY * pixels


@pytest.mark.usefixtures("qapp")
@pytest.mark.skipif(sys.platform != "linux", reason="asks the C library of Linux")
def test_icons_take_their_pixels() -> None:
    sizes = [16, 24, 32, 48, 64]
    pixels = sum(4 * size * size for size in sizes) / MIB
    assert icon("play", "#102030").availableSizes() == [QSize(size, size) for size in sizes]
    # Made anew each time: those of other colours are kept with their program.
    assert taken(lambda n: icon.__wrapped__("play", f"#{n:06x}")) < 1.5 * MANY * pixels
