"""The dock that shows the memory traffic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QRectF, QSize
from PySide6.QtGui import QPainter

from simulator.program.playback import moved
from simulator.program.tile_program import TileProgram
from simulator.run.motion import Motion
from simulator.run.snapshot import Snapshot
from ui.panels.base import MovingPanel
from ui.panels.memory.model import MemoryState, baseline_total, memory_model
from ui.panels.memory.places import MIN_SIZE
from ui.panels.memory.scale import scale_model
from ui.panels.memory.views import CHOICE, berths_of, paint_view
from ui.session.session import Session
from ui.session.view import View
from ui.widgets.choice_bar import PlotBar

if TYPE_CHECKING:
    from simulator.lesson.tables import ChooseTable


class MemoryPanel(MovingPanel[None]):
    """HBM and SRAM, and the tiles that move between them.

    The choices are in the title of the dock, so that the picture keeps its size.
    """

    def __init__(self) -> None:
        smallest = QSize(round(MIN_SIZE.width()) + 16, round(MIN_SIZE.height()) + 12)
        super().__init__("memory_panel", "Traffic", smallest)
        self._baseline: tuple[TileProgram, int] | None = None
        self.shown = "plain"
        """The row of `VIEWS` on show."""
        self._bar = PlotBar((CHOICE,))
        self._bar.fit_button.hide()
        self._bar.show_chosen("memory", self.shown)
        self._bar.chosen.connect(self.choose)

    @property
    def title_bar(self) -> PlotBar:
        return self._bar

    def choose(self, name: str, value: str) -> None:
        """Show the memory in another way."""
        self._bar.show_chosen(name, value)
        if value == self.shown:
            return
        self.shown = value
        self._describe()
        self.update()

    def take_choices(self, choices: ChooseTable) -> None:
        """Show the memory as a lesson has chosen."""
        self.choose("memory", choices.memory or "plain")

    def chosen_now(self) -> dict[str, Any]:
        return {"memory": self.shown}

    def show_view(self, view: View, model: None = None) -> None:
        self.show_snapshot(view.snapshot, view.before)

    def show_snapshot(self, snapshot: Snapshot, before: Snapshot | None = None) -> None:
        """Show a state, with the motion from the state before."""
        self.take(snapshot, before, moves=bool(snapshot.op.moves))
        self._describe()

    def _describe(self) -> None:
        if self.snapshot is not None:
            words = memory_model(self.snapshot).words
            if self.shown == "scale":
                words = f"{scale_model(self.snapshot).words[0]}; {words}"
            self.setAccessibleDescription(words)

    def baseline_bytes(self, program: TileProgram) -> int:
        """Return the baseline's bytes on the same workload, computed once for each run."""
        if self._baseline is None or self._baseline[0] is not program:
            self._baseline = (program, baseline_total(program.workload))
        return self._baseline[1]

    def berths(self, motion: Motion) -> dict[str, tuple[QRectF, QRectF]]:
        """Return, for each tensor that an op moves, its places in HBM and on the chip."""
        return berths_of(self.shown, motion, self.style_now, self.place())

    def paint(self, painter: QPainter) -> None:
        if self.snapshot is not None:
            baseline = self.baseline_bytes(self.snapshot.program)
            state = MemoryState(self.snapshot, baseline, self.motion, moved(self.phase))
            paint_view(painter, self.shown, state, self.style_now, self.place())


def memory_panel(session: Session) -> MemoryPanel:
    """Return the panel, which needs no session."""
    return MemoryPanel()
