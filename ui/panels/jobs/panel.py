"""The dock that shows what heads do, how unlike they are, and what goes without one of them."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPointF, Qt, Signal
from PySide6.QtGui import QMouseEvent, QResizeEvent
from PySide6.QtWidgets import QWidget

from simulator.base.choices import Choice, Option
from simulator.lesson.tables import ChooseTable
from simulator.problem.scenario import with_values
from simulator.program.playback import end_of_visit
from simulator.run.trace import Trace
from simulator.study.attention_part import fitting_part
from simulator.study.jobs.attention_only import Head
from simulator.study.jobs.report import HeadReport, head_report, model_place
from ui.look.theme import Style
from ui.panels.base import StatePicture
from ui.panels.jobs.model import JobsState, head_name
from ui.panels.jobs.painter import paint_distances, paint_jobs, table_places
from ui.panels.jobs.plot import course_plots
from ui.panels.plot_panel import PlotPanel
from ui.plots.widget import PlotView, load_plots
from ui.safety.overrides import guarded
from ui.session.session import Session
from ui.session.tasks import Report
from ui.session.view import View

_ALL_ON = "every head on"
CHOICES = (
    Choice("show", (
        Option("jobs", "Jobs", "Jobs",
               "What each head reads: the token before, the first, the same one before, the one "
               "after that (Elhage et al. 2021, Olsson et al. 2022)."),
        Option("distances", "Distances", "Dist.",
               "How unlike the maps of heads are: Jensen–Shannon divergence (Lin 1991)."),
        Option("training", "Training", "Train",
               "When heads take up their jobs, and what the loss does then (Olsson et al. 2022)."),
    )),
    Choice("off", (
        Option("", _ALL_ON, "", "Switch off a head: it gives zeros to the concat."),
        Option("widest", "without layer 00 head 00", "", ""),  # the list's width
    ), listed=True),
)  # fmt: skip


@guarded
class JobsTable(StatePicture[JobsState]):
    """The table; a click on a head is told."""

    clicked = Signal(int)
    """The head of the report that was clicked."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, "Jobs of heads", paint_jobs)
        self.setMouseTracking(True)

    def head_at(self, point: QPointF) -> int | None:
        """Return which head's row is at a point of the widget."""
        if self.state is None:
            return None
        rect = self.rect().toRectF().adjusted(8, 0, -8, -2)
        return table_places(self.state, self.style_now, rect).head_at(point)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        at = self.head_at(event.position())
        if at is not None and event.button() == Qt.MouseButton.LeftButton:
            self.clicked.emit(at)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        over = self.head_at(event.position()) is not None
        self.setCursor(Qt.CursorShape.PointingHandCursor if over else Qt.CursorShape.ArrowCursor)

    def leaveEvent(self, event: QEvent) -> None:
        self.unsetCursor()


@guarded
class JobsPanel(PlotPanel[None]):
    """Jobs of the heads of a run, or of the whole model whose layer it is."""

    def __init__(self, session: Session) -> None:
        super().__init__("jobs_panel", "Jobs of heads", CHOICES)
        self._session = session
        self._trace: Trace | None = None
        self._head = self._row = 0
        self.show_now = "jobs"
        self.off: Head | None = None
        self.state: JobsState | None = None
        self.bar.show_chosen("show", self.show_now)
        self.bar.show_choice("off", False)
        self.table = JobsTable(self)
        self.table.clicked.connect(self._press)
        self.distances: StatePicture[JobsState] = StatePicture(
            self, "Distances of heads", paint_distances
        )
        self.losses = PlotView()
        self.losses.setParent(self)
        self.bar.fit_pressed.connect(self.losses.fit)
        self.losses.zoomed.connect(self.bar.fit_button.setEnabled)
        for plot in (self.plot, self.losses):
            plot.picked.connect(self._open_moment)
        self._arrange_pictures()

    # --- what is shown --------------------------------------------------------------------

    def forget(self) -> None:
        self._trace = None
        self._show_nothing()

    def show_view(self, view: View, model: None = None) -> None:
        """Show a view: another run, or another head of it on the board."""
        trace = self._session.trace
        if trace is None or view.snapshot.program is not trace.program:
            return
        head, self._row = trace.workload.single(view.snapshot.visit.head, view.report.row)
        if trace is not self._trace:
            self._trace, self._head = trace, head
            self._show_nothing()
            self._compute()
        elif head != self._head:
            self._head = head
            if self.state is not None and self._name(head) in self.state.report.heads:
                self._take(self.state.report)
            else:
                self._compute()

    def _show_nothing(self) -> None:
        """Show nothing until there is something of this run."""
        self.state = self.table.state = self.distances.state = None
        self._arrange_pictures()

    def choose(self, name: str, value: str) -> None:
        """Accept a choice: which picture, or which head is off."""
        if name == "show":
            self.show_now = value
            self._arrange_pictures()
            if self.state is None:  # after Cancel
                self._compute()
        else:
            layer, _, head = value.partition(" ")
            self.off = (int(layer), int(head)) if head else None
            self._compute()

    def take_choices(self, choices: ChooseTable) -> None:
        """Show what a lesson has chosen: a picture, and which head is off."""
        self.bar.show_chosen("show", choices.jobs or "jobs")
        self.show_now = choices.jobs or "jobs"
        off = choices.off or ()
        before, self.off = self.off, (off[0], off[1]) if off else None
        if self.off != before:
            self._compute()
        self._arrange_pictures()

    def _press(self, at: int) -> None:
        """Switch a head of a model off, or on if it is off; show another run's on the board."""
        if self.state is None:
            return
        (layer, head), training = self.state.report.heads[at], self.state.report.training
        if training is None or layer is None:
            self._show_head(head)
            return
        self.off = None if training.off == (layer, head) else (layer, head)
        self._compute()

    def _show_head(self, number: int) -> None:
        """Let the board show a head of the run, in the row where it is."""
        trace = self._trace
        assert trace is not None
        w, program = trace.workload, trace.program
        head, row = w.packed(w.picked.index(number), self._row)
        visits = (program.index(head, row // w.rows, j) for j in range(w.grid.Tc))
        found = next((visit for visit in visits if visit is not None), None)
        if found is not None:  # else the row sees nothing
            self._session.go(end_of_visit(program, found))
            self._session.choose_row(row)

    def _compute(self) -> None:
        """Make the figures beside the window."""
        trace, off = self._trace, self.off
        if trace is None:
            return
        part = fitting_part(trace.single_heads[0], self._head, self._row)

        def job(report: Report) -> HeadReport:
            load_plots()
            return head_report(*trace.single_heads, part, off, report)

        def done(found: HeadReport) -> None:
            if trace is self._trace:
                self._take(found)

        self._session.tasks.start("jobs", "what heads do", job, done)

    def _name(self, head: int) -> tuple[int | None, int]:
        """Return how a report names a head of the run."""
        assert self._trace is not None
        w = self._trace.single_heads[0]
        place = model_place(w)
        return (None if place is None else place[2]), w.picked[head]

    def _take(self, found: HeadReport) -> None:
        training = found.training
        state = self.state = JobsState(found, self._name(self._head))
        self.table.state = self.distances.state = state
        self.table.setAccessibleDescription(state.summary)
        self.distances.setAccessibleDescription(state.distance_summary)
        trained = training is not None and training.trained
        if not trained and self.show_now == "training":
            self.show_now = "jobs"
            self.bar.show_chosen("show", "jobs")
        self.bar.buttons["show", "training"].setEnabled(trained)
        self._fill_heads(found)
        if training is not None and trained:
            scores, losses = course_plots(found, training)
            self.show_plot(scores)
            self.losses.show_model(losses)
        self._arrange_pictures()

    def _fill_heads(self, found: HeadReport) -> None:
        """List the heads that can be switched off."""
        box = self.bar.lists["off"]
        box.clear()
        box.addItem(_ALL_ON, "")
        if found.training is not None:
            for head in found.heads:
                box.addItem(f"without {head_name(head)}", f"{head[0]} {head[1]}")
        off = None if found.training is None else found.training.off
        self.bar.show_chosen("off", f"{off[0]} {off[1]}" if off else "")
        self.bar.show_choice("off", found.training is not None)

    def _open_moment(self, pick: object) -> None:
        """Propose the same layer at another moment of training."""
        trace = self._trace
        file = trace.workload.file if trace is not None else None
        if trace is None or file is None or self.state is None or not isinstance(pick, int):
            return
        training = self.state.report.training
        if training is not None and pick != training.step:
            path = file.path.with_name(f"step-{pick:04}-layer{training.layer}{file.path.suffix}")
            changed = with_values(trace.workload.scenario, {"input": {"path": str(path)}})
            self._session.propose(changed, f"step {pick} of training")

    # --- where it is ----------------------------------------------------------------------

    def set_style(self, style: Style) -> None:
        for picture in (self.table, self.distances):
            picture.style_now = style
            picture.update()
        with self.losses.laid_out_once():
            self.losses.set_style(style)
            super().set_style(style)

    def arrange(self) -> None:
        """Place the choices, and below them one picture, or two plots above each other."""
        super().arrange()
        whole = self.plot.geometry()
        self.table.setGeometry(0, whole.top(), self.width(), whole.height())
        self.distances.setGeometry(self.table.geometry())
        # Of one size, so that text and axes are the same in both.
        half = whole.height() // 2
        self.plot.setGeometry(whole.x(), whole.y(), whole.width(), half)
        self.losses.setGeometry(whole.x(), whole.y() + half, whole.width(), half)

    def resizeEvent(self, event: QResizeEvent) -> None:
        with self.losses.laid_out_once():
            super().resizeEvent(event)

    def _arrange_pictures(self) -> None:
        """Show the picture that is chosen."""
        shown, made = self.show_now, self.state is not None
        self.table.setVisible(shown == "jobs")
        self.distances.setVisible(shown == "distances")
        for plot in (self.plot, self.losses):
            plot.setVisible(shown == "training" and made)
        self.bar.fit_button.setVisible(shown == "training")
        self.arrange()
        for picture in (self.table, self.distances):
            picture.update()
        if self.state is not None:
            words = {
                "jobs": self.state.title,
                "distances": self.state.distance_summary,
                "training": f"{_said(self.plot)} {_said(self.losses)}",
            }
            self.setAccessibleDescription(words[shown])


def _said(plot: PlotView) -> str:
    return plot.model.summary if plot.model is not None else ""
