"""The numbers under the pointer of a page, from the trace: each block is written once."""

from __future__ import annotations

from typing import Any

from simulator.problem.workload import Workload
from simulator.program.algorithms import TENSORS
from simulator.program.tensors import symbol
from simulator.run.cell_values import cell_shape, cell_value, exists
from simulator.run.snapshot import Cell, Snapshot
from simulator.run.trace import is_detailed
from ui.board.layout import BoardLayout
from ui.look.units import number_text

MOST_CELLS = 40_000  # cells of all matrices up to which a page has their numbers
Place = dict[str, Any]  # the places of cells in a picture, for the page's script


class CellSheets:
    """The numbers of every step: blocks of cells; equal blocks are stored once.

    small: whether the run is small enough.
    blocks: texts; rows of a block are between semicolons, its cells between commas.
    words: words for cells without a number, in the order of the numbers after ``~``.
    steps: for each step, by tensor, the numbers of its blocks, row by row.
    """

    def __init__(self, w: Workload) -> None:
        self.blocks: list[str] = []
        self.words: list[str] = []
        self.steps: list[dict[str, list[int]]] = []
        self._known: dict[str, int] = {}
        self._now: dict[tuple[str, int, int], int] = {}
        self._last: Snapshot | None = None
        self._shapes: dict[str, tuple[int, int]] = {}
        self._w = w
        if not is_detailed(w):
            self.small = False
            return
        for name, spec in TENSORS.items():
            seen = not spec.of_pairs or name == "S"  # pictures show no other pairs
            if seen and "split" not in spec.axes and exists(w, Cell(name, 0, 0)):
                self._shapes[name] = cell_shape(w, name)
        self.small = sum(rows * cols for rows, cols in self._shapes.values()) <= MOST_CELLS

    def take(self, snapshot: Snapshot) -> int:
        """Take the numbers of the next step of a small run, and return the step's number."""
        found: dict[str, list[int]] = {}
        for name, (rows, cols) in self._shapes.items():
            high, wide = self._block(name)
            found[name] = [
                self._number(snapshot, name, i, j)
                for i in range(-(-rows // high))
                for j in range(-(-cols // wide))
            ]
        self.steps.append(found)
        self._last = snapshot
        return len(self.steps) - 1

    def _block(self, name: str) -> tuple[int, int]:
        """Return rows and columns of a block: a tile, or all numbers of a block of rows or keys."""
        spec, w = TENSORS[name], self._w
        if spec.of_pairs:
            return w.rows, w.cols
        return (w.cols if "key" in spec.axes else w.rows), self._shapes[name][1]

    def _number(self, snapshot: Snapshot, name: str, i: int, j: int) -> int:
        key = name, i, j
        if key not in self._now or self._changes(snapshot, name, i, j):
            text = self._text(snapshot, name, i, j)
            known = self._known.setdefault(text, len(self.blocks))
            if known == len(self.blocks):
                self.blocks.append(text)
            self._now[key] = known
        return self._now[key]

    def _changes(self, snapshot: Snapshot, name: str, i: int, j: int) -> bool:
        """Return whether numbers of a block may have changed since the step before."""
        last, spec = self._last, TENSORS[name]
        assert last is not None
        if last.visit.launch != snapshot.visit.launch or last.visit.head != snapshot.visit.head:
            return True
        if abs(last.visit.index - snapshot.visit.index) > 1:
            return name not in snapshot.inputs
        for visit in (last.visit, snapshot.visit):
            if spec.of_pairs and (i, j) == (visit.i, visit.j):
                return True
            if not spec.of_pairs and i == (visit.j if "key" in spec.axes else visit.i):
                return True
        return False

    def _text(self, snapshot: Snapshot, name: str, i: int, j: int) -> str:
        (high, wide), (rows, cols) = self._block(name), self._shapes[name]
        return ";".join(
            ",".join(
                self._cell(snapshot, Cell(name, row, col))
                for col in range(j * wide, min((j + 1) * wide, cols))
            )
            for row in range(i * high, min((i + 1) * high, rows))
        )

    def _cell(self, snapshot: Snapshot, cell: Cell) -> str:
        found = cell_value(snapshot, cell)
        if found.value is None:
            if found.state not in self.words:
                self.words.append(found.state)
            return f"~{self.words.index(found.state)}"
        called = found.called or found.tensor
        text = number_text(found.value)
        return text if called == cell.tensor else f"{symbol(called)}={text}"

    def told(self) -> dict[str, Any]:
        """Return all sheets as the page's script reads them."""
        tensors = {
            name: {"name": symbol(name), "size": shape, "block": self._block(name)}
            for name, shape in self._shapes.items()
        }
        return {
            "tensors": tensors, "blocks": self.blocks, "words": self.words, "steps": self.steps
        }  # fmt: skip


def place_of(lay: BoardLayout, corner: tuple[float, float] = (0, 0), scale: float = 1) -> Place:
    """Return the places of cells in a picture; `corner`: the board's corner in the picture."""
    boxes = []
    for name, box in lay.boxes.items():
        spec = TENSORS[name]
        kind = "pair" if spec.of_pairs else "key" if "key" in spec.axes else "row"
        left, top = corner[0] + box.x() * scale, corner[1] + box.y() * scale
        sides = (left, top, box.width() * scale, box.height() * scale)
        boxes.append([name, kind, *(round(side, 2) for side in sides), lay.depth(name)])
    return {
        "boxes": boxes,
        "view": [lay.view.x, lay.view.y],
        "cell": [lay.cell[0] * scale, lay.cell[1] * scale],
        "size": lay.shape[:2],
    }
