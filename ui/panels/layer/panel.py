"""The dock of the whole layer, which offers to run what is not there."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QSizeF

from simulator.base.assets import SCENARIOS
from simulator.problem.scenario import with_values
from simulator.run.whole_layer import EXAMPLE
from ui.panels.layer.state import LayerFound, LayerState
from ui.panels.layer.study import LAYER
from ui.panels.study import Act
from ui.panels.study_panel import StudyPanel
from ui.safety.overrides import guarded
from ui.session.session import Session
from ui.session.view import View

_ROOM = QSizeF(430, 320)
"""Room at scale 1 in which the demo's layer can be read below what is said of a run without one."""


@guarded
class LayerPanel(StudyPanel[LayerFound, LayerState]):
    """The study of a layer; rows slide while an op of the run is shown."""

    def __init__(self, session: Session) -> None:
        super().__init__(session, LAYER)
        self.stopped = False
        """Whether a layer that takes long has not been run to its end."""
        session.tasks.rested.connect(self._rest)

    def show_view(self, view: View, model: None = None) -> None:
        """Show a view; of another run as many heads are supposed as it has."""
        if self._asked is not None and self._asked[0] is not self._session.trace:
            self._mark, self.stopped = -1, False
        super().show_view(view, model)

    def completed(self, state: LayerState) -> LayerState:
        return replace(super().completed(state), roomy=self._roomy)

    def arrange(self) -> None:
        super().arrange()
        if self.state is not None and self.state.roomy != self._roomy:
            self._draw(self.state)

    @property
    def _roomy(self) -> bool:
        """Whether the demo's layer can be read in the picture's place."""
        px, size = self.style_now.px, self.picture.size()
        return size.width() >= px(_ROOM.width()) and size.height() >= px(_ROOM.height())

    def show_share(self, share: float) -> None:
        if self.state is not None:
            state = LAYER.under_way(self.state, share)
            if state is not self.state:
                self.picture.state = state
                self.picture.update()

    def _rest(self) -> None:
        """Say that a layer was not run, if no work is under way any more."""
        asked, trace = self._asked, self._session.trace
        if asked is not None and asked[0] is trace and self._found is None:
            self.stopped = True
            self._draw(LayerState(LayerFound(None, "The whole layer was not run.")))
            self._show_parts()

    def _show_parts(self) -> None:
        super()._show_parts()
        self.buttons["again"].setVisible(self.stopped and self._controls)
        self.arrange()

    def _act(self, act: Act) -> None:
        """Open the demo, run all heads, or run the layer that was stopped."""
        scenario = self._session.scenario
        if act.name == "demo":
            self._session.open_wanted.emit(SCENARIOS / EXAMPLE)
        elif act.name == "all" and scenario is not None:
            changed = with_values(scenario, {"input": {"head": "all"}})
            self._session.propose(changed, "all heads")
        else:
            self.stopped = False
            super()._act(act)
            self._show_parts()
