"""The dock that shows the memory traffic."""

from __future__ import annotations

from PySide6.QtCore import QSize
from PySide6.QtGui import QPaintEvent

from simulator.program.playback import moved
from simulator.program.tile_program import TileProgram
from simulator.run.snapshot import Snapshot
from ui.panels.base import MovingPanel
from ui.panels.memory.model import baseline_total, memory_model
from ui.panels.memory.painter import paint_memory
from ui.panels.memory.places import MIN_SIZE
from ui.safety.overrides import guarded
from ui.safety.painting import painting
from ui.session.view import View


@guarded
class MemoryPanel(MovingPanel[None]):
    """HBM and SRAM, and the tiles that move between them."""

    def __init__(self) -> None:
        smallest = QSize(round(MIN_SIZE.width()) + 16, round(MIN_SIZE.height()) + 12)
        super().__init__("memory_panel", "Memory traffic", smallest)
        self._baseline: tuple[TileProgram, int] | None = None

    def show_view(self, view: View, model: None = None) -> None:
        self.show_snapshot(view.snapshot, view.before)

    def show_snapshot(self, snapshot: Snapshot, before: Snapshot | None = None) -> None:
        """Show a state, and the state that it is moved to from."""
        self.take(snapshot, before, moves=bool(snapshot.op.moves))
        model = memory_model(snapshot)
        self.setAccessibleDescription(model.words)

    def baseline_bytes(self, program: TileProgram) -> int:
        """Return what naive requests on the same workload, computed once for each run."""
        if self._baseline is None or self._baseline[0] is not program:
            self._baseline = (program, baseline_total(program.workload))
        return self._baseline[1]

    def paintEvent(self, event: QPaintEvent) -> None:
        with painting(self) as painter:
            place = self.cleared(painter)
            if self.snapshot is not None:
                baseline = self.baseline_bytes(self.snapshot.program)
                paint_memory(
                    painter, self.snapshot, self.style_now, place,
                    baseline_bytes=baseline, motion=self.motion, share=moved(self.phase),
                )  # fmt: skip
