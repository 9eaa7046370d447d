"""The dock in which partial results of a row are merged by hand."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QWidget

from simulator.base.choices import Choice, Option
from simulator.lesson.tables import ChooseTable
from simulator.run.trace import Trace
from simulator.study.merge.gradient_sums import ORDERS as SUM_ORDERS
from simulator.study.merge.gradient_sums import adds_to_rows
from simulator.study.merge.merging import ORDERS
from ui.panels.base import StatePicture
from ui.panels.merge.model import MergeState, merge_state
from ui.panels.merge.painter import MIN_SIZE, merge_layout, paint_merge, summary
from ui.panels.merge.sums import REVERSED, SumsState, sums_state
from ui.panels.merge.sums_painter import paint_sums, sums_layout, sums_summary
from ui.panels.picture_panel import PicturePanel
from ui.safety.overrides import guarded
from ui.session.session import Session
from ui.session.tasks import Report
from ui.session.view import View

APART = "apart"
PARTIALS, SUMS = "partials", "sums"
CHOICES = (
    Choice("subject", (
        Option(PARTIALS, "Partials", "Partials", "Partial (m, ℓ, O) of the row."),
        Option(SUMS, "Sums of gradients", "Sums", "What column blocks add to the gradient of the "
               "queries, in orders that leave other bits."),
    )),
    Choice("sums", tuple(
        Option(name, name[0].upper() + name[1:], name[0].upper() + name[1:], tip)
        for name, tip in zip(SUM_ORDERS, (
            "In the order of column blocks, as with deterministic = True of FlashAttention.",
            "The same from the last column block to the first.",
            "Neighbours in pairs, then neighbours of those.",
            "As atomic additions come: press again for another draw.",
        ), strict=True)
    )),
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
class SumsPicture(StatePicture[SumsState]):
    """The sums of a row block; a number that is pressed has its bits shown."""

    changed = Signal(object)
    """The state after what was done."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, "Sums of gradients", paint_sums)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if self.state is None:
            return
        lay = sums_layout(self.state, self.style_now, QRectF(self.rect()))
        found = lay.number_at(self.state, event.position())
        if found is not None:
            self.changed.emit(replace(self.state, chosen=found))


@guarded
class MergePanel(PicturePanel):
    """Partials of the selected row, merged in an order that has a name or by hand.

    Of a run whose tiles add to sums of their rows in HBM it also shows these sums, in any order.

    Parameters
    ----------
    session : Session
        Whose run and row it shows.
    """

    def __init__(self, session: Session) -> None:
        super().__init__("merge_panel", "Merge", CHOICES, MIN_SIZE)
        self._session = session
        self.order, self.sum_order = APART, REVERSED
        self.subject = SUMS
        self._adds = False
        self._asked: tuple[Trace, int, int] | None = None
        for name, value in (
            ("order", self.order), ("sums", self.sum_order), ("subject", self.subject),
        ):  # fmt: skip
            self.bar.show_chosen(name, value)
        self.merging, self.adding = MergePicture(self), SumsPicture(self)
        self.picture = self.merging
        self.merging.changed.connect(self._by_hand)
        self.adding.changed.connect(self._draw_sums)
        self._show_subject()

    @property
    def state(self) -> MergeState | None:
        """The partials that are shown, if they are."""
        return self.merging.state

    @property
    def sums(self) -> SumsState | None:
        """The sums that are shown, if they are."""
        return self.adding.state

    def forget(self) -> None:
        self._asked = self.merging.state = self.adding.state = None

    def show_view(self, view: View, model: None = None) -> None:
        """Show a view: each run, head and row has partials and sums of its own."""
        trace = self._session.trace
        if trace is None or view.snapshot.program is not trace.program:
            return
        if adds_to_rows(trace) != self._adds:
            self._adds = not self._adds
            self._show_subject()
        row = view.report.row
        asked = trace, view.snapshot.visit.head, row
        if asked == self._asked:
            return
        self._asked = asked
        adds = self._adds
        block = row // trace.workload.rows

        def job(report: Report) -> tuple[MergeState, SumsState | None]:
            sums = sums_state(trace, asked[1], block) if adds else None
            return merge_state(*asked), sums

        def done(found: tuple[MergeState, SumsState | None]) -> None:
            if self._asked != asked:
                return
            state, sums = found
            self._draw(state.ordered(self.order))
            if sums is not None:
                self._draw_sums(sums.ordered(self.sum_order))

        self._session.tasks.start("merge", "partials of a row", job, done)

    def choose(self, name: str, value: str) -> None:
        """Accept a choice of what is shown, or of the order."""
        if name == "subject":
            self.subject = value
            self._show_subject()
        elif name == "sums":
            self.sum_order = value
            if self.sums is not None:
                self._draw_sums(self.sums.ordered(value))
        else:
            self.order = value
            if self.state is not None:
                self._draw(self.state.ordered(value))

    def take_choices(self, choices: ChooseTable) -> None:
        """Show what a lesson has chosen."""
        self.bar.choose("order", choices.merge or APART)
        self.bar.choose("subject", PARTIALS if choices.merge else SUMS)
        self.bar.choose("sums", choices.sums or REVERSED)

    def _show_subject(self) -> None:
        """Show partials, or sums if the run has any and they are chosen."""
        sums = self._adds and self.subject == SUMS
        self.picture = self.adding if sums else self.merging
        self.picture.style_now = self.style_now
        self.adding.setVisible(sums)
        self.merging.setVisible(not sums)
        for name, shown in (("subject", self._adds), ("sums", sums), ("order", not sums)):
            self.bar.show_choice(name, shown)
        self.arrange()
        self._describe()

    def _by_hand(self, state: MergeState) -> None:
        if self.state is not None and state.forest != self.state.forest:
            self.order = APART
            self.bar.show_chosen("order", "")
        self._draw(state)

    def _draw(self, state: MergeState) -> None:
        self.merging.state = state
        self._describe()

    def _draw_sums(self, state: SumsState) -> None:
        self.adding.state = state
        self._describe()

    def _describe(self) -> None:
        if self.picture is self.adding:
            self.describe(sums_summary(self.sums) if self.sums is not None else "")
        else:
            self.describe(summary(self.state) if self.state is not None else "")
