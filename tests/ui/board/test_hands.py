"""Positions on the board: hands of clocks beside their rows and keys, before the first tile."""

from itertools import pairwise

import pytest
from PySide6.QtCore import QRectF
from PySide6.QtGui import QImage

from simulator.base.assets import SCENARIOS
from simulator.problem.scenario import load_scenario, with_values
from simulator.run.motion import Motion
from simulator.run.row_report import row_report
from simulator.run.trace import Trace, simulate
from tests.helpers.painted import painted as picture
from ui.board.board import Marks, board_layout, paint_board, paint_moving_board
from ui.board.hands import hand_places
from ui.board.layout import BoardLayout, Viewport
from ui.look.theme import DARK, Style
from ui.panels.formula.lines import formula_lines, formula_model

pytestmark = pytest.mark.usefixtures("qapp")
RECT = QRectF(0, 0, 900, 640)
SIZES = ((420, 320), (640, 480), (1280, 720), (1920, 1080))
DEMOS = ("flash2", "causal", "split-kv", "linear")


def run(name: str, **position: object) -> Trace:
    said = load_scenario(SCENARIOS / f"{name}.toml")
    return simulate(with_values(said, {"position": {"kind": "rope", **position}}))


def drawn(trace: Trace, op: int, share: float = 1.0) -> QImage:
    """Return a board at a share of an op of the first visit."""
    style, now = Style(DARK), trace.snapshot(0, op)
    if share == 1:
        return picture(lambda painter: paint_board(painter, now, style, RECT), 900, 640)
    motion, marks = Motion(trace.snapshot(0, op - 1), now), Marks()
    return picture(
        lambda painter: paint_moving_board(painter, motion, share, lay_of(trace), marks),
        900,
        640,
    )


def lay_of(trace: Trace) -> BoardLayout:
    return board_layout(trace.workload, Style(DARK), RECT)


def part(image: QImage, box: QRectF) -> QImage:
    return image.copy(box.adjusted(4, 4, -4, -4).toRect())


@pytest.mark.parametrize("name", DEMOS)
@pytest.mark.parametrize("size", SIZES)
def test_clocks_lie_beside_their_rows_and_below_their_keys(name: str, size) -> None:
    trace = run(name)
    for op, keys in ((0, False), (1, False), (2, True)):
        turning = trace.snapshot(0, op).turned_now
        for view in (Viewport(), Viewport(3.0, 2.0, 1.0)):
            lay = board_layout(trace.workload, Style(DARK), QRectF(0, 0, *size), view)
            places, box = hand_places(turning, lay), lay.boxes["S"]
            assert places.by_key is keys
            assert places.rows
            assert places.pairs[0] == 0
            assert list(places.pairs) == sorted(set(places.pairs))
            if len(places.pairs) > 1:
                assert places.pairs[-1] == turning.rotary.width // 2 - 1
            for n, row in enumerate(places.rows):
                middle = places.middle(n, 0)
                place = middle.x() if keys else middle.y()
                start = lay.col_x if keys else lay.row_y
                assert start(row) <= place <= start(row + 1)
                for p in range(len(places.pairs)):
                    assert box.contains(places.middle(n, p))
            for apart in (places.along, places.across):
                assert all(b - a >= places.size - 1e-6 for a, b in pairwise(apart))


def test_the_explained_row_has_clocks_where_not_all_have() -> None:
    trace = run("causal")
    turning = trace.snapshot(0, 1).turned_now
    lay = board_layout(trace.workload, Style(DARK), QRectF(0, 0, 420, 320))
    assert len(hand_places(turning, lay).rows) < trace.workload.seqlen_q
    for row in range(8, 40):
        assert row in hand_places(turning, lay, row).rows


@pytest.mark.parametrize("name", DEMOS)
def test_hands_and_numbers_turn_from_one_state_to_the_next(name: str) -> None:
    trace = run(name)
    lay = lay_of(trace)
    for op, tensor, other in ((1, "Q", "K"), (2, "K", "Q")):
        before, after = drawn(trace, op - 1), drawn(trace, op)
        half, late = drawn(trace, op, 0.5), drawn(trace, op, 0.9)
        for box in (lay.boxes[tensor], lay.boxes["S"]):
            seen = [part(image, box) for image in (before, half, late, after)]
            for first, second in pairwise(seen):
                assert first != second
        rest = [part(image, lay.boxes[other]) for image in (before, half, after)]
        assert rest[0] == rest[1] == rest[2]


def test_the_board_of_the_tiles_is_that_of_turned_queries_and_keys() -> None:
    trace = run("flash2")
    bare = simulate(with_values(trace.workload.scenario, {"position": {"kind": None}}))
    assert trace.snapshot(0, 3).turned_now is None
    assert bare.snapshot(0, 0).turned_now is None
    box = lay_of(trace).boxes["S"]
    assert part(drawn(trace, 3), box) == part(drawn(bare, 0), box)
    assert part(drawn(trace, 2), box) != part(drawn(bare, 0), box)


@pytest.mark.parametrize("name", DEMOS)
@pytest.mark.parametrize("interleaved", [False, True])
def test_the_formula_has_the_numbers_of_the_fastest_pair(name: str, interleaved: bool) -> None:
    trace = run(name, interleaved=interleaved)
    for op in range(3):
        now = trace.snapshot(0, op)
        report = row_report(now, 2)
        model = formula_model(now, report)
        assert "before the tiles" in model.title[0]
        assert model.cites[0] == now.op.cites
        lines = formula_lines(now, report)
        current = [line for line in lines if line.current]
        assert len(current) == (1 if op == 0 else 3)
        turning = now.turned_now
        assert turning is not None
        row = 2
        if op == 2:
            row = int(trace.workload.mask.positions(range(2, 3))[0])
        for line in current[1:]:
            shown = [piece for piece in line.choices[0] if piece.cell is not None]
            made = turning.pair(shown[0].cell.row, shown[0].cell.col)
            assert shown[0].cell.row == row
            assert shown[-1].text.replace("−", "-").strip() == f"{made.turned:.3f}"
