"""The dock of a whole attention layer around the tiles (Vaswani et al. 2017, section 3.2.2)."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

from PySide6.QtCore import QSizeF, Qt

from simulator.base.assets import SCENARIOS
from simulator.problem.scenario import with_values
from simulator.program.playback import moved
from simulator.run.trace import Trace
from simulator.run.whole_layer import EXAMPLE, finished_rows
from simulator.study.layer.choices import AT_WORK, CHOICES, FLOW, HEAD, HEADS, ROW, STAGE
from ui.kit.boxes import Box, Column
from ui.kit.shapes import Text
from ui.panels.layer.circuits import HEAD_VIEW
from ui.panels.layer.counts import HEADS_VIEW, count_at, counts_of
from ui.panels.layer.flow import FLOW_VIEW
from ui.panels.layer.product import STAGE_VIEW
from ui.panels.layer.row import ROW_VIEW
from ui.panels.layer.state import LayerFound, LayerState, Pictured, layer_found
from ui.panels.study import Act, Chosen, Slider, Study, Words
from ui.panels.study_panel import StudyPanel
from ui.safety.overrides import guarded
from ui.session.session import Session
from ui.session.tasks import Report
from ui.session.view import View

_BELOW = "Below is another run, the demo of a whole layer."


class LayerStudy(Study[LayerFound, LayerState]):
    """The flow of the layer, a stage, one row of Y, one head, or how many heads there might be."""

    name, title, doing = "layer", "Layer", "running the whole layer"
    pictured, choices, room, share = "The whole layer", CHOICES, QSizeF(540, 300), 0.75
    slider = Slider("layer_heads", "Heads that divide the width",
                    "How many heads divide the width.", first=-1)  # fmt: skip
    acts = (
        Act("demo", "Open the demo of a whole layer", "Run three tokens from X to Y."),
        Act("all", "Run all heads", "Run all heads of the layer in the file."),
        Act("again", "Run it", "Run the whole layer beside the window.", anew=True),
    )

    def hidden(self, trace: Trace, chosen: Chosen) -> frozenset[str]:
        bare = trace.inputs.layer is None
        some = not bare and trace.whole_layer is None
        gone = {
            "layer_heads": some or chosen["layer"] != HEADS, "demo": not bare, "all": not some,
            "again": True, "stage": chosen["layer"] not in (FLOW, STAGE),
        }  # fmt: skip
        return frozenset(name for name, off in gone.items() if off)

    def needs(self, trace: Trace, view: View, chosen: Chosen) -> Hashable:
        return ()

    def compute(self, trace: Trace, needs: Any, report: Report) -> LayerFound:
        return layer_found(trace, report)

    def state(
        self, found: LayerFound, chosen: Chosen, before: LayerState | None, changed: str
    ) -> LayerState:
        before = before or LayerState(found)
        if changed == "stage":  # a lesson chooses the stage in every step, and a row with it
            before = replace(before, chosen_row=None, chosen_head=None, chosen_cell=None)
        return replace(before, found=found, shows=chosen["layer"], stage=chosen["stage"])

    def follow(self, state: LayerState, view: View) -> LayerState:
        end, run, now = state.found.end, state.found.run, view.snapshot
        if run is None or end is not None:
            done = state.finished if end is None else finished_rows(end)
            return replace(state, now=end, head=0, row=0, finished=done, arriving=None)
        head, row = now.program.workload.single(now.visit.head, view.report.row)
        done = finished_rows(now)
        arriving = None if view.before is None else done & ~finished_rows(view.before)
        return replace(state, now=now, head=head, row=row, finished=done, arriving=arriving,
                       share=1.0 if arriving is None else 0.0)  # fmt: skip

    def seen(self, state: LayerState, *, controls: bool) -> LayerState:
        return replace(state, controls=controls)

    def under_way(self, state: LayerState, share: float) -> LayerState:
        """Return the state with a share of the op done."""
        same = state.arriving is None or state.share == moved(share)
        return state if same else replace(state, share=moved(share))

    # --- what a user does ---------------------------------------------------------------------

    def key(self, state: LayerState, key: Qt.Key, *, ctrl: bool) -> LayerState | None:
        step = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}.get(key)
        if step is None or state.found.run is None:
            return None
        if state.shows == ROW:
            row = min(max(state.shown_row + step, 0), state.run.shapes["y"][0] - 1)
            return replace(state, chosen_row=row)
        if state.shows == HEAD:
            return replace(state, chosen_head=(state.shown_head + step) % state.run.heads)
        if state.shows == HEADS:
            return self.marked(state, max(count_at(state) + step, 0))
        names = [stage.name for stage in state.run.stages]
        stage = names[(names.index(state.shown) + step) % len(names)]
        return replace(state, stage=stage, chosen_cell=None)

    def press(self, state: LayerState, at: Hashable) -> LayerState | None:
        match at:
            case ("stage", str(stage)):
                return replace(state, stage=AT_WORK if stage == state.stage else stage)
            case ("cell", int(row), int(col)):
                return replace(state, chosen_cell=(row, col))
            case ("row", int(row), _):
                return replace(state, chosen_row=row)
            case ("head", int(head)):
                return replace(state, chosen_head=head)
        return None

    def act(self, state: LayerState, name: str) -> LayerState | None:
        return state

    def takes(self, before: LayerState, after: LayerState) -> Chosen:
        return {"stage": after.stage} if after.stage != before.stage else {}

    def mark(self, state: LayerState) -> tuple[int, int]:
        if state.found.run is None:
            return 0, 0
        return count_at(state), len(counts_of(state)) - 1

    def marked(self, state: LayerState, value: int) -> LayerState:
        return replace(state, supposed=None if value < 0 else value)

    # --- what is seen -------------------------------------------------------------------------

    def words(self, state: LayerState) -> Words:
        why, own = state.found.why, self._own(state)
        if own is None:
            return Words(why)
        return own.words(state)._replace(title=why) if why else own.words(state)

    def described(self, state: LayerState) -> tuple[str, ...]:
        own, (title, *said) = self._own(state), super().described(state)
        if own is None:
            return (title,)
        demo = (_BELOW, Text(own.words(state).title).wordings[0]) if state.found.why else ()
        return title, *demo, *own.more(state), *said

    def picture(self, state: LayerState) -> Box | None:
        own = self._own(state)
        picture = None if own is None else own.picture(state)
        if own is None or picture is None or not state.found.why:
            return picture
        above = Text(_BELOW, "muted"), Text(own.words(state).title, bold=True, wide=0)
        return Column((*above, replace(picture, grow=1)))

    def _own(self, state: LayerState) -> Pictured | None:
        """Return the picture of the layer; None: no layer, or no room for the demo's."""
        off = state.found.run is None or (state.found.why and not state.roomy)
        return None if off else _VIEWS[state.shows]


_VIEWS = {FLOW: FLOW_VIEW, STAGE: STAGE_VIEW, ROW: ROW_VIEW, HEAD: HEAD_VIEW, HEADS: HEADS_VIEW}
LAYER = LayerStudy()


_ROOM = QSizeF(430, 320)
"""Room at scale 1 in which the demo's layer can be read below the words on a run without one."""


@guarded
class LayerPanel(StudyPanel[LayerFound, LayerState]):
    """The study of a layer; rows slide while an op of the run is shown."""

    def __init__(self, session: Session) -> None:
        super().__init__(session, LAYER)
        self.stopped = False
        """Whether a layer that takes long has not been run to its end."""
        session.tasks.rested.connect(self._rest)

    def show_view(self, view: View, model: None = None) -> None:
        """Show a view; another run starts with its own number of heads."""
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
