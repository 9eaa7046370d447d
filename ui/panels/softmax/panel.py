"""The dock that shows the online softmax of one row."""

from __future__ import annotations

from PySide6.QtCore import QSignalBlocker, QSize, Qt
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QLabel, QSlider

from simulator.problem.scenario import with_values
from simulator.program.playback import moved
from simulator.run.rescales import rescales
from simulator.run.row_report import RowReport
from simulator.run.snapshot import Snapshot
from simulator.run.trace import Trace
from ui.look.draw import text_width
from ui.look.formula import typeset
from ui.look.lit import typeset_alpha
from ui.panels.base import MovingPanel
from ui.panels.softmax.lines import error_words, rescale_words
from ui.panels.softmax.model import moves_softmax
from ui.panels.softmax.painter import elsewhere_words, paint_softmax
from ui.panels.softmax.places import MIN_SIZE
from ui.panels.update_lines import softmax_lines
from ui.session.session import Session
from ui.session.view import View
from ui.widgets.named import named
from ui.widgets.sheet import set_sheet

MOST_THRESHOLD = 16
"""End of the slider: FlashAttention-4 takes 8, and P fits into float16 up to here."""
_LINE = 24
"""Height of the slider's line at scale 1."""


class SoftmaxPanel(MovingPanel[None]):
    """Scores, running maximum and update of the selected row.

    A run with a rescale threshold has a slider for it, if there is a session to change.
    """

    def __init__(self, session: Session | None = None) -> None:
        smallest = QSize(round(MIN_SIZE.width()) + 16, round(MIN_SIZE.height()) + 12)
        super().__init__("softmax_panel", "Online softmax", smallest)
        self.report: RowReport | None = None
        self.elsewhere: int | None = None
        """The row that was chosen, if it is in another row block."""
        self._session, self._controls = session, True
        self.slider, self.words = QSlider(Qt.Orientation.Horizontal, self), QLabel(self)
        what = "Rescale threshold, log2 of the factor that m must grow by"
        named(self.slider, "rescale_threshold", what)
        self.slider.setRange(0, MOST_THRESHOLD)
        self.slider.setPageStep(4)
        self.slider.valueChanged.connect(self._slid)
        self.slider.sliderReleased.connect(self._propose)
        self.arrange()

    def forget(self) -> None:
        super().forget()
        self.report = None

    def show_view(self, view: View, model: None = None) -> None:
        self.elsewhere = view.elsewhere
        self.show_snapshot(view.snapshot, view.report, view.before)

    def dock_title(self, view: View) -> str:
        return view.snapshot.program.algorithm.row_title

    def show_snapshot(
        self, snapshot: Snapshot, report: RowReport, before: Snapshot | None = None
    ) -> None:
        """Show a state and the chosen row, with the motion from the state before."""
        self.report = report
        self.take(snapshot, before, moves=moves_softmax(snapshot.op))
        figures = (error_words(snapshot, report)[0], rescale_words(snapshot, report))
        threshold = snapshot.program.workload.threshold
        if threshold is not None and not self.slider.isSliderDown():
            with QSignalBlocker(self.slider):  # the slider follows the run, and changes nothing
                self.slider.setValue(round(threshold))
            self._say(threshold)
        self.arrange()
        missed = "" if self.elsewhere is None else elsewhere_words(snapshot, self.elsewhere)[0]
        said = filter(None, (f"row {report.row}", *figures, missed))
        self.setAccessibleDescription(", ".join(said))

    # --- the slider ------------------------------------------------------------------------

    @property
    def _skips(self) -> bool:
        now = self.snapshot
        return now is not None and now.program.workload.threshold is not None

    def _say(self, threshold: float) -> None:
        self.words.setText(f"rescale above 2^{threshold:g}")

    def _slid(self, threshold: int) -> None:
        self._say(threshold)
        if not self.slider.isSliderDown():
            self._propose()

    def _propose(self) -> None:
        """Propose the scenario with the threshold at which the slider stands."""
        scenario = self._session.scenario if self._session else None
        if self._session is None or scenario is None:
            return
        threshold = float(self.slider.value())
        if threshold != scenario.attention.rescale_threshold:
            changed = with_values(scenario, {"attention": {"rescale_threshold": threshold}})
            self._session.propose(changed, f"threshold {threshold:g}")

    def show_controls(self, on: bool) -> None:
        self._controls = on
        self.arrange()

    def arrange(self) -> None:
        """Place the slider in a line at the bottom, if it is there."""
        shown = self._controls and self._skips and self._session is not None
        for widget in (self.slider, self.words):
            widget.setVisible(shown)
        if not shown:
            return
        style, font = self.style_now, self.style_now.text_font(12)
        set_sheet(self.words, f"color: {style.theme.muted}; background: transparent;")
        self.words.setFont(font)
        high = round(style.px(_LINE))
        wide = round(text_width(font, f"rescale above 2^{MOST_THRESHOLD}") + style.px(10))
        y, x = self.height() - high - 2, round(style.px(8))
        self.words.setGeometry(x, y, wide, high)
        self.slider.setGeometry(x + wide, y, max(self.width() - wide - 2 * x, 20), high)

    def paint(self, painter: QPainter) -> None:
        place = self.place()
        if not self.slider.isHidden():
            place.setBottom(min(place.bottom(), self.slider.y() - 2))
        if self.snapshot is not None and self.report is not None:
            paint_softmax(
                painter, self.snapshot, self.report, self.style_now, place,
                motion=self.motion, share=moved(self.phase), elsewhere=self.elsewhere,
            )  # fmt: skip


def typeset_softmax(trace: Trace, snapshot: Snapshot, report: RowReport) -> None:
    """Typeset the formulas of the view while it is made, not when it is painted."""
    lines = softmax_lines(snapshot, report)
    typeset([r"m", r"m_{\mathrm{old}}", *(line.latex for line in lines)])
    if rescales(snapshot):
        typeset(line.part for line in lines if line.part)
        typeset_alpha(line.latex for line in lines)
