"""A mask that is painted by hand, block by block, on the board or in the Masks panel."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QObject, Signal

from simulator.base.errors import InputError
from simulator.problem.intervals import Bools
from simulator.problem.masked_file import check_blocks
from simulator.problem.masks import BlockMask, Mask
from simulator.problem.packing import unpacked
from simulator.problem.tiling import TileGrid
from simulator.problem.workload import Workload
from simulator.study.sparse.patterns import dense_mask, usual_knobs
from ui.safety.overrides import guarded
from ui.session.history import AtOnce

if TYPE_CHECKING:
    from ui.session.session import Session

PAINTED = "painted"  # the name of a mask that is painted by hand
Block = tuple[int, int]  # row and column of a block


@dataclass(frozen=True, slots=True)
class PaintedMask:
    """A mask that was painted."""

    mask: Mask  # the painted blocks, causal if the run is; for the rows of one head
    over: Mask  # the mask of the run that was shown


@dataclass(slots=True)
class _Stroke:
    """The cells painted while a button is down."""

    # table, open: (row blocks, key blocks) bool: blocks that are visible, and that can be
    table: Bools
    open: Bools
    shows: bool  # whether blocks are shown, not hidden
    last: Block  # the latest block
    before: PaintedMask | None  # the painted mask before the stroke


class MaskPainting(QObject):
    """The painted mask of a session, and whether it is being painted on the board.

    A stroke switches its first block, and shows or hides all others in the same way. A block stays
    hidden if the run hides all its pairs anyway, as a causal run does. The last visible block stays
    visible. Each stroke is a step of undo.
    """

    changed = Signal()  # other blocks are visible
    rested = Signal()  # a stroke has ended, or was undone
    switched = Signal(bool)  # whether the board is being painted on
    refused = Signal(object)  # the `InputError` of a run that can have no such mask

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._session = session
        self._painted: PaintedMask | None = None
        self._stroke: _Stroke | None = None
        self.on = False  # whether the board is being painted on
        session.trace_changed.connect(self._note_run)

    # --- the mask -------------------------------------------------------------------------

    @property
    def mask(self) -> Mask | None:
        """The painted mask; None if there is none, or if it does not fit the run."""
        w, found = self._workload, self._painted
        if w is None or found is None or found.mask.blocks is None:
            return None
        fits = replace(found.mask, blocks=None) == dense_mask(w)
        return found.mask if fits and found.mask.blocks.size == _size(w) else None

    @property
    def ground(self) -> Mask | None:
        """The mask under the strokes on the board: the mask painted over this run, or its own."""
        w, found = self._workload, self._painted
        if w is None:
            return None
        own = unpacked(w.mask)
        if found is not None and own in (found.mask, found.over) and self.mask is not None:
            return found.mask
        return _blocks_of(w, _table_of(own, _size(w)))

    @property
    def _workload(self) -> Workload | None:
        return self._session.trace.workload if self._session.trace else None

    # --- strokes --------------------------------------------------------------------------

    def begin(self, block: Block, ground: Mask) -> None:
        """Begin a stroke at a block of a mask."""
        w = self._workload
        if w is None:
            return
        table, visible = _table_of(ground, _size(w)), _table_of(dense_mask(w), _size(w))
        self._stroke = _Stroke(table, visible, not table[block], block, self._painted)
        self._paint(block)

    def go_on(self, block: Block) -> None:
        """Paint all blocks on the way to another one."""
        if self._stroke is not None and block != self._stroke.last:
            self._paint(block)

    def _paint(self, block: Block) -> None:
        w, stroke = self._workload, self._stroke
        assert w is not None
        assert stroke is not None
        old = stroke.table.copy()
        for each in _way(stroke.last, block):
            last = not stroke.shows and stroke.table[each] and stroke.table.sum() == 1
            if stroke.open[each] and not last:
                stroke.table[each] = stroke.shows
        stroke.last = block
        if not np.array_equal(old, stroke.table):
            self._painted = PaintedMask(_blocks_of(w, stroke.table), unpacked(w.mask))
            self.changed.emit()

    def end(self) -> None:
        """End the stroke: it can be undone from now on."""
        stroke, self._stroke = self._stroke, None
        if stroke is not None and self._painted is not stroke.before:
            step = _Step(self, stroke.before, self._painted)
            self._session.undo_stack.push(step)
            self.rested.emit()

    def take(self, painted: PaintedMask | None) -> None:
        """Show the painted mask before or after a stroke, for undo and redo."""
        self._stroke = None
        if painted is not self._painted:
            self._painted = painted
            self.changed.emit()
            self.rested.emit()

    # --- on the board ---------------------------------------------------------------------

    def switch(self, on: bool) -> None:
        """Let the board be painted on or not; a run that can have no such mask is refused."""
        if on and not self.on and not self.fits():
            on = False
        if not on:
            self.end()
        self.on = on
        self.switched.emit(on)

    def fits(self) -> bool:
        """Return whether the run can have a mask of blocks; if not, `refused` says why."""
        w = self._workload
        if w is None:
            return False
        try:
            check_blocks(w, _size(w))
        except InputError as error:
            self.refused.emit(error)
            return False
        return True

    def stop(self, cause: object = None) -> None:
        """Stop painting on the board; the painted mask stays."""
        if self.on:
            self.switch(False)

    def _note_run(self) -> None:
        """Stop painting if the run now has the painted mask, or can have no such mask."""
        w = self._workload
        self._stroke = None
        if self.on and w is not None and (unpacked(w.mask) == self.mask or not self.fits()):
            self.stop()


@guarded
class _Step(AtOnce):
    """A stroke that can be undone."""

    def __init__(
        self, painting: MaskPainting, before: PaintedMask | None, after: PaintedMask | None
    ) -> None:
        super().__init__("painting of a mask")
        self._painting, self._before, self._after = painting, before, after

    def redo(self) -> None:
        self._painting.take(self._after)

    def undo(self) -> None:
        self._painting.take(self._before)


def _size(w: Workload) -> int:
    """Return the rows and keys of a block, as in the Masks panel."""
    return usual_knobs(w).block


def _table_of(mask: Mask, size: int) -> Bools:
    """Return which blocks of a mask have a visible pair."""
    table: Bools = TileGrid(mask, size, size).kinds() > 0
    return table


def _blocks_of(w: Workload, table: Bools) -> Mask:
    return replace(dense_mask(w), blocks=BlockMask(_size(w), table.copy()))


def _way(start: Block, stop: Block) -> list[Block]:
    """Return the blocks from `start` to `stop`: a quick pointer does not report them all."""
    steps = max(abs(stop[0] - start[0]), abs(stop[1] - start[1]))
    rows, columns = np.linspace(start, stop, steps + 1).round().astype(int).T.tolist()
    return list(zip(rows, columns, strict=True))
