"""The frames of a run in a layout of the window."""

from __future__ import annotations

from collections.abc import Hashable

from simulator.run.trace import Trace
from ui.export.frames import shown_row
from ui.export.timeline import Still, Timeline
from ui.export.unseen_window import Look, UnseenWindow, WindowFactory, WindowFrames, WindowPlace


class LayoutFrames(WindowFrames):
    """A run in the panels of the window; each state is a still picture."""

    def __init__(
        self,
        trace: Trace,
        moments: Timeline | Still,
        layout: str,
        theme: str,
        size: tuple[int, int],
        new_window: WindowFactory,
        *,
        row: int | None = None,
    ) -> None:
        super().__init__(lambda: UnseenWindow(size, theme, new_window, trace=trace), size)
        self._trace = trace
        self._moments = moments
        self._layout = layout
        self._row = row

    def __len__(self) -> int:
        return self._moments.frames

    def key(self, k: int) -> Hashable:
        """Return the cursor."""
        return self._moments.moment(k).cursor

    def make_ready(self, k: int, look: Look) -> None:
        cursor = self._moments.moment(k).cursor
        row = shown_row(self._trace.program.visit(cursor.visit).rows, self._row)
        place = WindowPlace(self._trace.workload.scenario, cursor, row, self._layout)
        self.unseen.show(place, look)
