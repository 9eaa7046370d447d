"""Boards of runs that know their current tile alone: every algorithm, every launch, every op."""

from __future__ import annotations

from bisect import bisect_left

import pytest
from PySide6.QtCore import QRectF
from PySide6.QtGui import QImage, QPainter

from simulator.program.algorithms import ALGORITHMS
from simulator.program.tile_program import TileProgram
from tests.helpers.runs import fitted, scenario, trace_of
from ui.board.board import paint_board
from ui.look.theme import DARK, Style

pytestmark = pytest.mark.usefixtures("qapp")
ROOMS = [QRectF(0, 0, 640, 400), QRectF(0, 0, 1280, 720)]


def some_visits(program: TileProgram) -> set[int]:
    """Return the first and last visit of each launch, and one between them."""
    out = set()
    for launch in range(len(program.launches)):
        first, after = (
            bisect_left(range(len(program)), n, key=lambda k: program.visit(k).launch)
            for n in (launch, launch + 1)
        )
        out |= {first, (first + after) // 2, after - 1}
    return out


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_launch_is_painted(algorithm: str) -> None:
    sizes = {"nq": 2048, "nk": 2048, "d": 8, "rows": 128, "cols": 128, "mask": {"causal": True}}
    trace = trace_of(scenario(algorithm, **fitted(algorithm, **sizes)))
    for visit in some_visits(trace.program):
        for op in range(len(trace.program.ops(visit))):
            now = trace.snapshot(visit, op)
            assert now.head is None
            for room in ROOMS:
                image = QImage(room.size().toSize(), QImage.Format.Format_RGB32)
                image.fill(0)
                with QPainter(image) as painter:
                    paint_board(painter, now, Style(DARK), room)
                assert image.bits().tobytes().strip(b"\xff\0")
