"""The dock that shows what attention reads: maps of all heads, one row, its output."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from PySide6.QtCore import QPointF, QRectF, QSizeF, Qt

from simulator.base.dtypes import F32
from simulator.base.errors import InputError
from simulator.problem.scenario import with_values
from simulator.problem.workload import Workload
from simulator.run.trace import Trace
from simulator.study.attention_map import (
    AttentionMaps,
    HeadScores,
    MapSettings,
    pooled_maps,
    settings_of,
)
from simulator.study.attention_part import MapPart, fitting_part
from ui.look.names import fitting, readable
from ui.panels.base import Panel
from ui.panels.inspector.bar import InspectorBar
from ui.panels.inspector.blend import blend_words
from ui.panels.inspector.canvas import STOPPED, InspectorCanvas
from ui.panels.inspector.jacobian import jacobian_of, jacobian_words
from ui.panels.inspector.layout import LABEL, InspectorLayout, inspector_layout
from ui.panels.inspector.model import (
    InspectorModel,
    MapPointer,
    entropy_words,
    mask_of,
    reading,
    with_hidden,
)
from ui.panels.inspector.painter import pointed
from ui.session.session import Session
from ui.session.tasks import Report
from ui.session.view import View

if TYPE_CHECKING:
    from simulator.lesson.tables import ChooseTable


def same_scores(one: Trace, other: Trace) -> bool:
    """Return whether two traces have the same scores, whatever their temperature and mask."""
    a, b = one.workload, other.workload
    same = one.inputs.q is other.inputs.q and one.inputs.k is other.inputs.k
    alike = replace(a.scoring, temperature=1.0) == replace(b.scoring, temperature=1.0)
    return same and alike and a.biases == b.biases and a.heads == b.heads


def bound_by_file(w: Workload, settings: MapSettings) -> str:
    """Return why the scenario cannot have all of these settings; empty if it can."""
    if w.file is None or w.file.said.causal is None or w.file.said.causal == settings.causal:
        return ""
    word = "causal" if w.file.said.causal else "not causal"
    return f"{w.file.path.name} says that its attention is {word}, and a scenario cannot differ"


def changes_of(w: Workload, settings: MapSettings) -> dict[str, dict[str, object]]:
    """Return which settings differ from the scenario's, by table and key."""
    said = settings_of(w)
    out: dict[str, dict[str, object]] = {}
    if settings.temperature != said.temperature:
        out["attention"] = {"temperature": settings.temperature}
    mask: dict[str, object] = {
        key: getattr(settings, key)
        for key in ("causal", "window", "sinks")
        if getattr(settings, key) != getattr(said, key)
        and not (key == "causal" and bound_by_file(w, settings))
    }
    if mask:
        out["mask"] = mask
    return out


_SIDE = 8
_ROOM = QSizeF(520, 400)
"""A dock smaller than this at scale 1 has smaller words, down to the least readable size."""
_SMALLEST = 0.9
_SMALL_MAP = 96
"""Most rows and columns of a small map."""

_TIP = (
    "Attention weights softmax(QKᵀ·scale) of a head (Vaswani et al. 2017, eq. 1). Point at a cell, "
    "or at a patch of the picture that a model was given, to read it; a click sends the board "
    "there. The wheel zooms the map, a drag moves it, Ctrl+0 shows all of it. Keys: Up and Down "
    "another row, Page Up and Page "
    "Down another key, [ and ] another head, Enter sends the board there."
)


class _Scores(NamedTuple):
    """Scores, and the trace that they were made from."""

    trace: Trace
    scores: HeadScores


class InspectorPanel(Panel[None]):
    """Weights of the scenario's Q and K with separate settings.

    Scores are made once in the background. When a slider moves, the shown heads are computed at
    once, the small maps in the background.
    """

    def __init__(self, session: Session) -> None:
        super().__init__("inspector_panel", "Attention inspector")
        self.setWhatsThis(_TIP)
        self.fitted = self.style_now
        self.model: InspectorModel | None = None
        self.settings = MapSettings()
        self.head = 0
        self.other: int | None = None
        self.hovered: MapPointer | None = None
        self._session = session
        self._view: View | None = None
        self.trace: Trace | None = None
        self._workload: Workload | None = None
        """The workload of the last trace."""
        self._made: _Scores | None = None
        self._small: F32 | None = None
        self._small_why = ""
        self.stopped = False
        """Whether the scores are missing and nobody is making them, after Cancel or a failure."""
        self._board_head = -1
        self._jacobian = self._blend = False
        self.bar = InspectorBar(self)
        self.canvas = InspectorCanvas(self)
        self.canvas.setWhatsThis(_TIP)
        self.bar.changed.connect(self.take_settings)
        self.bar.compared.connect(self.compare)
        self.bar.jacobian_asked.connect(self.show_jacobian)
        self.bar.blend_asked.connect(self.show_blend)
        self.bar.reset_pressed.connect(self.reset)
        self.bar.put_pressed.connect(self.put)
        session.tasks.rested.connect(self._show_stop)

    # --- what is shown --------------------------------------------------------------------

    @property
    def pointer(self) -> MapPointer:
        """The cell under the pointer, or the row that the board explains."""
        if self.hovered is not None:
            return self.hovered
        assert self._view is not None
        assert self.model is not None
        rows = self.model.rows
        return MapPointer(min(max(self._row, rows.start), rows.stop - 1))

    @property
    def _row(self) -> int:
        """The row that the board explains, as a row of its own head."""
        view = self._view
        assert view is not None
        return view.snapshot.program.workload.single(view.snapshot.visit.head, view.report.row)[1]

    def forget(self) -> None:
        """Forget the run, unless the next has the same scores, which take long to make."""
        shown = self._session.trace
        if self._made is None or shown is None or not same_scores(self._made.trace, shown):
            self.trace = self._made = self._view = None
            self.model = self.hovered = self._small = None

    def show_view(self, view: View, model: None = None) -> None:
        """Show a view: follow the board's row and head, keep the settings."""
        trace = self._session.trace
        if trace is None or view.snapshot.program is not trace.program:
            return
        before, self._view = self._view, view
        head, _ = trace.workload.single(view.snapshot.visit.head, view.report.row)
        if head != self._board_head:
            self._board_head = self.head = head
            if self.other == head:
                self.other = None
        if trace is not self.trace:
            self._take_trace(trace)
        elif self._made is not None and not self._covers(self._made.scores.part):
            self._compute()
        elif self.model is None or self.model.head != self.head:
            self._remap()
        elif before is None or before.report.row != view.report.row:
            self._tell()
            self.canvas.reveal(self.pointer.row)

    def _take_trace(self, trace: Trace) -> None:
        w, old = trace.single_heads[0], self._workload
        self.trace, self._workload = trace, trace.workload
        if old is None or _shape(old) != _shape(trace.workload):
            self.canvas.fit()
        said = settings_of(w)
        # Settings put into the scenario come back as its own; then only causal may differ.
        # Unchanged settings follow the scenario.
        before = None if old is None else settings_of(old)
        alike = replace(said, causal=self.settings.causal) == self.settings
        if said != before and (before in (None, self.settings) or not alike):
            self.settings = said
        self.head = min(self.head, w.heads - 1)
        if self.other is not None and self.other >= w.heads:
            self.compare(False)
        self.bar.show_settings(self.settings, w.seqlen_k)
        self.arrange()
        made = self._made
        if made is not None and same_scores(made.trace, trace) and self._covers(made.scores.part):
            self._remap()
            self._shrink()
        else:  # show nothing until the scores are there: the old ones belong to another run
            self.model = self.hovered = self._small = None
            self._small_why = ""
            self._tell()
            self._compute()

    def _covers(self, part: MapPart) -> bool:
        assert self._view is not None
        heads = {self.head} if self.other is None else {self.head, self.other}
        return heads <= set(part.heads) and self._row in part.rows

    def _compute(self) -> None:
        """Make the scores in the background; of several requests only the last counts."""
        trace = self.trace
        assert trace is not None
        part = fitting_part(trace.single_heads[0], self.head, self._row)
        if self.other is not None and self.other not in part.heads:
            self.other = None
            self.bar.buttons["compare"].setChecked(False)
        self._made = None
        self.stopped = False

        def job(report: Report) -> _Scores:
            return _Scores(trace, HeadScores(*trace.single_heads, part))

        def done(made: _Scores) -> None:
            if made.trace is self.trace:
                self._made = made
                self.hovered = None
                if self._covers(made.scores.part):
                    self._remap()
                    self._shrink()
                else:
                    self._compute()

        self._session.tasks.start("inspector", "attention scores", job, done)

    def _show_stop(self) -> None:
        """Say that the scores are missing, if so: the old picture is of other rows."""
        if self._made is None and self.trace is not None:
            self.stopped = True
            self.model = self.hovered = None
            self._tell()

    def _shrink(self) -> None:
        """Make the small maps of all heads in the background."""
        made, trace, settings = self._made, self.trace, self.settings
        if made is None or trace is None:
            return
        size, (workload, inputs) = (_SMALL_MAP, _SMALL_MAP), trace.single_heads
        whole = not made.scores.part.reason

        def job(report: Report) -> tuple[F32 | None, str]:
            try:
                if whole:
                    small = made.scores.maps(settings).pooled(*size)
                else:
                    small = pooled_maps(workload, inputs, settings, size, report)
                return with_hidden(small, mask_of(workload, settings), size), ""
            except InputError:
                return None, "There are too many weights for small maps of all heads."

        def done(found: tuple[F32 | None, str]) -> None:
            if trace is self.trace:
                self._small, self._small_why = found
                if self.model is not None:
                    self._show(self.model.maps)

        self._session.tasks.start("inspector heads", "small maps of all heads", job, done)

    def _remap(self) -> None:
        """Compute the weights of the shown heads."""
        if self._made is None:
            return
        heads = (self.head,) if self.other is None else (self.head, self.other)
        try:
            self._show(self._made.scores.maps(self.settings, heads))
        except InputError as error:
            self.canvas.setAccessibleDescription(str(error))

    def _show(self, maps: AttentionMaps) -> None:
        trace, made = self.trace, self._made
        assert trace is not None
        if made is None:
            return
        w, inputs = trace.single_heads
        v, notes = inputs.v[w.kv_head_of[self.head]], self._notes(made.scores.part)
        self.model = InspectorModel(
            w, maps, self.head, self.other, v, self._small, notes, self._jacobian, self._blend
        )
        self._tell()

    def _notes(self, part: MapPart) -> tuple[str, ...]:
        assert self.trace is not None
        w = self.trace.single_heads[0]
        bound, said = bound_by_file(w, self.settings), ""
        differs, can = self.settings != settings_of(w), bool(changes_of(w, self.settings))
        if differs:
            said = "Settings of the inspector alone: the scenario has others."
        self.bar.show_put(can, "" if can else bound or "It has them already.")
        self.bar.buttons["reset"].setEnabled(differs)
        notes = (
            f"{part.reason}." if part.reason else "", self._small_why,
            f"Here alone: {bound}." if bound else said,
        )  # fmt: skip
        return tuple(each for each in notes if each)

    def _tell(self) -> None:
        words = more = STOPPED if self.stopped else ""
        if self.model is not None:
            row, words = self.pointer.row, reading(self.model, self.pointer)
            rest = entropy_words(self.model, row)
            if self.model.jacobian:
                rest = jacobian_words(self.model, jacobian_of(self.model, row), row)[0]
            elif self.model.blend:
                rest = blend_words(self.model, row)[0]
            more = f"{words}. {rest}."
        self.setAccessibleDescription(words)
        self.canvas.setAccessibleDescription(more)
        self.canvas.update()

    # --- controls -------------------------------------------------------------------------

    def take_settings(self, settings: MapSettings) -> None:
        """Show the maps with other settings."""
        self.settings = settings
        self._remap()
        self._shrink()

    def reset(self) -> None:
        """Use the scenario's settings."""
        if self.trace is not None:
            w = self.trace.workload
            self.bar.show_settings(settings_of(w), w.seqlen_k)
            self.take_settings(settings_of(w))

    def put(self) -> None:
        """Propose the settings for the scenario, except for settings that its file determines."""
        if self.trace is None:
            return
        w = self.trace.workload
        changes = changes_of(w, self.settings)
        if changes:
            words = ", ".join(key for table in changes.values() for key in table)
            self._session.propose(with_values(w.scenario, changes), f"{words} of the inspector")

    def compare(self, on: bool) -> None:
        """Compare the head with the next one, or stop comparing."""
        trace, made = self.trace, self._made
        self.other = None
        if on and trace is not None and made is not None:
            heads = made.scores.part.heads
            if len(heads) > 1:
                self.other = heads[(heads.index(self.head) + 1) % len(heads)]
        self.bar.buttons["compare"].setChecked(self.other is not None)
        self._remap()

    def take_choices(self, choices: ChooseTable) -> None:
        """Show the Jacobian or the blend if a lesson asks for it."""
        self._instead(jacobian=bool(choices.jacobian), blend=bool(choices.blend))

    def chosen_now(self) -> dict[str, Any]:
        return {"jacobian": True} if self._jacobian else {}

    def show_jacobian(self, on: bool) -> None:
        """Show the row's Jacobian in place of the keys that the row reads, or no longer."""
        self._instead(jacobian=on, blend=False)

    def show_blend(self, on: bool) -> None:
        """Show how the output adds up in place of the keys that the row reads, or no longer."""
        self._instead(jacobian=False, blend=on)

    def _instead(self, *, jacobian: bool, blend: bool) -> None:
        self._jacobian, self._blend = jacobian, blend
        self.bar.buttons["jacobian"].setChecked(jacobian)
        self.bar.buttons["blend"].setChecked(blend)
        if self.model is not None:
            self.model = replace(self.model, jacobian=jacobian, blend=blend)
            self._tell()

    def choose_head(self, head: int) -> None:
        """Show a head; while two are compared, make it the second."""
        if self.other is not None:
            made = self._made
            if head != self.head and made is not None and head in made.scores.part.heads:
                self.other = head
                self._remap()
            return
        self.head = head
        if self._made is not None and not self._covers(self._made.scores.part):
            self._compute()
        else:
            self._remap()

    # --- pointer and keys -----------------------------------------------------------------

    def layout_now(self) -> InspectorLayout:
        """Return the places of everything that is painted."""
        assert self.model is not None
        return inspector_layout(self.model, self.fitted, self.canvas.place(), self.canvas.view)

    def read(self, at: QPointF) -> None:
        """Read the place at a point."""
        if self.model is None:
            return
        layout = self.layout_now()
        self.point_at(pointed(self.model, layout, at, self.pointer.row))
        hand = layout.head_at(at) is not None or layout.grid_cell(at) is not None
        hand = hand or layout.picture.contains(at)
        shape = Qt.CursorShape.PointingHandCursor if hand else Qt.CursorShape.ArrowCursor
        self.canvas.setCursor(shape)

    def point_at(self, pointer: MapPointer | None) -> None:
        """Read a cell, a row or a dimension; None: the row that the board explains."""
        if pointer != self.hovered:
            self.hovered = pointer
            self._tell()

    def click(self, at: QPointF) -> None:
        """Move to the place of a click."""
        if self.stopped:
            self._compute()
            self.canvas.update()
        if self.model is None:
            return
        layout = self.layout_now()
        head = layout.head_at(at)
        if head is not None:
            self.choose_head(head)
            return
        self.point_at(pointed(self.model, layout, at, self.pointer.row))
        if self.hovered is not None and self.hovered.dim is None:
            self.go()

    def go(self) -> None:
        """Show on the board the head, row and key that are read."""
        session, trace, pointer = self._session, self.trace, self.pointer
        if trace is not None and session.view is not None and trace is session.trace:
            session.explain(self.head, pointer.row, pointer.key)

    def show_controls(self, on: bool) -> None:
        self.bar.setVisible(on)
        self.arrange()

    def take_key(self, key: int) -> bool:
        """Handle a key; return whether it means anything here."""
        if self.stopped and key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._compute()
            self.canvas.update()
            return True
        if self.model is None:
            return False
        down = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}.get(Qt.Key(key), 0)
        across = {Qt.Key.Key_PageUp: -1, Qt.Key.Key_PageDown: 1}.get(Qt.Key(key), 0)
        turn = {Qt.Key.Key_BracketLeft: -1, Qt.Key.Key_BracketRight: 1}.get(Qt.Key(key), 0)
        model, now = self.model, self.pointer
        if down or across:
            row, at = min(max(now.row + down, model.rows.start), model.rows.stop - 1), now.key
            if across:
                at = 0 if at is None else min(max(at + across, 0), model.keys - 1)
            self.point_at(MapPointer(row, at))
            self.canvas.reveal(row)
        elif turn:
            count = model.workload.heads
            shown = self.head if self.other is None else self.other
            step = (shown + turn) % count
            if self.other is not None and step == self.head:
                step = (step + turn) % count
            self.choose_head(step)
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.go()
        elif key == Qt.Key.Key_Escape and self.hovered is not None:
            self.point_at(None)
        else:
            return False
        return True

    # --- looks ----------------------------------------------------------------------------

    def arrange(self) -> None:
        width, height = self.width() - 2 * _SIDE, self.height()
        fitted = fitting(self.style_now, QRectF(self.rect()), _ROOM)
        self.fitted = readable(replace(fitted, scale=max(fitted.scale, _SMALLEST)), LABEL)
        self.canvas.set_style(self.fitted)
        self.bar.set_style(self.fitted)
        deep = 0 if self.bar.isHidden() else self.bar.arrange(width)
        self.bar.setGeometry(_SIDE, 5, width, deep)
        top = 5 + deep + 2
        self.canvas.setGeometry(_SIDE, top, width, max(height - top - 2, 30))


def _shape(w: Workload) -> tuple[int, int]:
    return w.seqlen_q, w.seqlen_k
