"""The dock in which partial results of a row are merged by hand."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QWidget

from simulator.lesson.tables import ChooseTable
from simulator.run.trace import Trace
from simulator.study.merge.merging import ORDERS
from ui.panels.base import StatePicture
from ui.panels.merge.model import MergeState, merge_state
from ui.panels.merge.painter import MIN_SIZE, merge_layout, paint_merge, summary
from ui.panels.picture_panel import PicturePanel
from ui.safety.overrides import guarded
from ui.session.session import Session
from ui.session.tasks import Report
from ui.session.view import View
from ui.widgets.choice_bar import Choice, Option

APART = "apart"
CHOICES = (
    Choice("order", (
        Option(APART, "Apart", "Apart", "Nothing is merged yet."),
        *(
            Option(name, name[0].upper() + name[1:], name[0].upper() + name[1:], tip)
            for name, tip in zip(ORDERS, (
                "Each is merged with all before it, as in a running update.",
                "The same from the last to the first.",
                "Neighbours in pairs, then neighbours of those.",
                "All together, as split-KV's second kernel does (Dao et al. 2023).",
            ), strict=True)
        ),
    )),
)  # fmt: skip


@guarded
class MergePicture(StatePicture[MergeState]):
    """The tree; boxes are dragged onto each other, or merged with keys."""

    changed = Signal(object)
    """The state after what was done."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, "Partials of a row", paint_merge)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def tree_at(self, at: QPointF) -> int | None:
        """Return the tree whose root is at a point of the widget."""
        if self.state is None:
            return None
        return merge_layout(self.state, self.style_now, QRectF(self.rect())).tree_at(at)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        found = self.tree_at(event.position())
        if self.state is not None and found is not None:
            self.changed.emit(replace(self.state, selected=found, dragged=found))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        state = self.state
        if state is None or state.dragged is None:
            return
        found = self.tree_at(event.position())
        onto = state.dragged if found is None else found
        self.changed.emit(state.merge(state.dragged, onto))

    def event(self, event: QEvent) -> bool:
        """Keep its keys from the run while it has the keyboard focus."""
        asks = event.type() is QEvent.Type.ShortcutOverride
        if asks and isinstance(event, QKeyEvent) and self._after(event) is not None:
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        after = self._after(event)
        if after is None:
            super().keyPressEvent(event)
        else:
            self.changed.emit(after)

    def _after(self, event: QKeyEvent) -> MergeState | None:
        """Return the state after a key; None if it is not one of these."""
        state, key = self.state, Qt.Key(event.key())
        if state is None or state.parts is None:
            return None
        turn = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(key)
        if turn is not None:
            moves = event.modifiers() & Qt.KeyboardModifier.ControlModifier
            return state.shift(turn) if moves else state.select(turn)
        if key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            return state.merge(state.selected + 1, state.selected)
        return state.take_back() if key is Qt.Key.Key_Backspace else None


@guarded
class MergePanel(PicturePanel):
    """Partials of the selected row, merged in an order that has a name or by hand.

    Parameters
    ----------
    session : Session
        Whose run and row it shows.
    """

    def __init__(self, session: Session) -> None:
        super().__init__("merge_panel", "Merge", CHOICES, MIN_SIZE)
        self._session = session
        self.order = APART
        self._asked: tuple[Trace, int, int] | None = None
        self.bar.show_chosen("order", self.order)
        self.picture = MergePicture(self)
        self.picture.changed.connect(self._by_hand)

    @property
    def state(self) -> MergeState | None:
        """What is shown."""
        return self.picture.state

    def forget(self) -> None:
        self._asked = self.picture.state = None

    def show_view(self, view: View, model: None = None) -> None:
        """Show a view: another run, head or row has other partials."""
        trace = self._session.trace
        if trace is None or view.snapshot.program is not trace.program:
            return
        asked = trace, view.snapshot.visit.head, view.report.row
        if asked == self._asked:
            return
        self._asked = asked

        def job(report: Report) -> MergeState:
            return merge_state(*asked)

        def done(state: MergeState) -> None:
            if self._asked == asked:
                self._draw(state.ordered(self.order))

        self._session.tasks.start("merge", "partials of a row", job, done)

    def choose(self, name: str, value: str) -> None:
        """Accept a choice of the order."""
        self.order = value
        if self.state is not None:
            self._draw(self.state.ordered(value))

    def take_choices(self, choices: ChooseTable) -> None:
        """Show what a lesson has chosen."""
        self.bar.choose("order", choices.merge or APART)

    def _by_hand(self, state: MergeState) -> None:
        if self.state is not None and state.forest != self.state.forest:
            self.order = APART
            self.bar.show_chosen("order", "")
        self._draw(state)

    def _draw(self, state: MergeState) -> None:
        self.picture.state = state
        self.describe(summary(state))
