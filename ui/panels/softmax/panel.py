"""The dock that shows the online softmax of one row."""

from __future__ import annotations

from PySide6.QtCore import QSize
from PySide6.QtGui import QPaintEvent

from simulator.program.playback import moved
from simulator.run.row_report import RowReport
from simulator.run.snapshot import Snapshot
from ui.panels.base import MovingPanel
from ui.panels.softmax.model import moves_softmax
from ui.panels.softmax.painter import error_words, paint_softmax, rescale_words
from ui.panels.softmax.places import MIN_SIZE
from ui.safety.overrides import guarded
from ui.safety.painting import painting
from ui.session.view import View


@guarded
class SoftmaxPanel(MovingPanel[None]):
    """Scores, running maximum and update of the selected row."""

    def __init__(self) -> None:
        smallest = QSize(round(MIN_SIZE.width()) + 16, round(MIN_SIZE.height()) + 12)
        super().__init__("softmax_panel", "Online softmax", smallest)
        self.report: RowReport | None = None

    def forget(self) -> None:
        super().forget()
        self.report = None

    def show_view(self, view: View, model: None = None) -> None:
        self.show_snapshot(view.snapshot, view.report, view.before)

    def dock_title(self, view: View) -> str:
        return view.snapshot.program.algorithm.row_title

    def show_snapshot(
        self, snapshot: Snapshot, report: RowReport, before: Snapshot | None = None
    ) -> None:
        """Show a state and the row chosen, and the state that it is moved to from."""
        self.report = report
        self.take(snapshot, before, moves=moves_softmax(snapshot.op))
        figures = (error_words(snapshot, report)[0], rescale_words(snapshot, report))
        self.setAccessibleDescription(", ".join(filter(None, (f"row {report.row}", *figures))))

    def paintEvent(self, event: QPaintEvent) -> None:
        with painting(self) as painter:
            place = self.cleared(painter)
            if self.snapshot is not None and self.report is not None:
                paint_softmax(
                    painter, self.snapshot, self.report, self.style_now, place,
                    motion=self.motion, share=moved(self.phase),
                )  # fmt: skip
