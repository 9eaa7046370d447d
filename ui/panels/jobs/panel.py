"""The dock of the jobs of heads, with the losses over training below their scores."""

from __future__ import annotations

from PySide6.QtGui import QResizeEvent

from ui.look.theme import Style
from ui.panels.jobs.study import JOBS_STUDY, JobsState
from ui.panels.study_panel import StudyPanel
from ui.plots.widget import PlotView
from ui.safety.overrides import guarded
from ui.session.session import Session
from ui.session.view import View

_BOTH = 170
"""Height below which there is no room for the losses."""


@guarded
class JobsPanel(StudyPanel[JobsState, JobsState]):
    """The study of jobs; two plots of one size have the same axis of steps."""

    def __init__(self, session: Session) -> None:
        self.losses = PlotView()
        self.losses.hide()
        super().__init__(session, JOBS_STUDY)
        self.losses.setParent(self)
        self.losses.picked.connect(self.pick)
        self.bar.fit_pressed.connect(self.losses.fit)
        self.losses.zoomed.connect(self.bar.fit_button.setEnabled)

    def forget(self) -> None:
        super().forget()
        self.plot.hide()
        self.losses.hide()
        self.picture.show()

    def show_view(self, view: View, model: None = None) -> None:
        """Show a view; heads of another run are not shown until its own are known."""
        if self._asked is not None and self._asked[0] is not self._session.trace:
            self.forget()
        super().show_view(view, model)

    def completed(self, state: JobsState) -> JobsState:
        if state.plots is not None:
            self.losses.show_model(state.plots[1])
        return state

    def set_style(self, style: Style) -> None:
        with self.losses.laid_out_once():
            self.losses.set_style(style)
            super().set_style(style)

    def resizeEvent(self, event: QResizeEvent) -> None:
        with self.losses.laid_out_once():
            super().resizeEvent(event)

    def arrange(self) -> None:
        super().arrange()
        whole = self.plot.geometry()
        both = not self.plot.isHidden() and whole.height() >= self.style_now.px(_BOTH)
        if both:
            whole.setHeight(whole.height() // 2)
            self.plot.setGeometry(whole)
            self.losses.setGeometry(whole.translated(0, whole.height()))
        self.losses.setVisible(both)
