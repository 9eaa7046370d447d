"""The dock that shows how exact the run is, and switches faults on."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPalette
from PySide6.QtWidgets import QCheckBox, QGridLayout, QPushButton, QScrollArea, QVBoxLayout, QWidget

from simulator.problem.scenario import with_values
from simulator.program.algorithms import algorithm_of
from simulator.program.faults import FAULTS, without_effect
from simulator.program.playback import Cursor
from simulator.run.cosimulation import Verdict
from simulator.run.exactness import Exactness, exactness, fill_errors, first_wrong_step
from simulator.run.gradient_errors import gradient_errors
from simulator.run.row_report import RowReport
from simulator.run.snapshot import Snapshot
from simulator.run.trace import Trace
from ui.look.names import op_label
from ui.look.theme import DARK, Style, palette
from ui.look.units import count_text, number_text
from ui.panels.base import Panel
from ui.panels.exactness.painter import paint_exactness, row_at, row_words
from ui.safety.overrides import guarded
from ui.session.session import Session
from ui.session.view import View
from ui.widgets.named import named
from ui.widgets.painted import Painted
from ui.widgets.parts import with_parts
from ui.widgets.sheet import set_sheet

LEAST_SCALE = 0.95
"""Text scale of the controls in the smallest panel: 11 pixels."""
_FILL = "rows against float64"
_SEARCH = "first wrong step"


def exactness_model(trace: Trace, snapshot: Snapshot, report: RowReport) -> Exactness:
    """Return the errors of O, or of the gradients of a backward pass, at a cursor."""
    if trace.program.algorithm.backward:
        return gradient_errors(trace, snapshot)
    return exactness(trace, snapshot, report)


class _Strips(Painted):
    """The picture: a click explains a row, and the pointer shows its error."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self.snapshot: Snapshot | None = None
        self.model: Exactness | None = None
        self.row: int | None = None
        self.setAccessibleName("Error of every row against float64")
        self.setMinimumHeight(72)

    def take(self, snapshot: Snapshot, model: Exactness, row: int) -> None:
        """Show a state."""
        self.snapshot, self.model, self.row = snapshot, model, row
        worst = model.now.worst
        said = "no row has an output yet" if worst is None else row_words(model, 0, worst)
        self.setAccessibleDescription(f"worst {said}")
        self.update()

    def place(self) -> QRectF:
        return QRectF(self.rect()).adjusted(8, 4, -8, -2)

    def _hit(self, point: QPointF) -> tuple[int, int] | None:
        if self.model is None:
            return None
        return row_at(self.place(), self.style_now, point, self.model)

    def tip(self, at: QPointF) -> str:
        hit = self._hit(at)
        return "" if hit is None or self.model is None else row_words(self.model, *hit)

    def press(self, at: QPointF) -> bool:
        hit = self._hit(at)
        if hit is not None and self.model is not None:
            strip, row = hit
            if not (strip and self.model.gradients[strip]):  # the strip shows rows, not keys
                self._session.choose_row(row)
        return True

    def paint(self, painter: QPainter) -> None:
        if self.snapshot is not None and self.model is not None:
            paint_exactness(
                painter, self.snapshot, self.model, self.style_now, self.place(), row=self.row
            )


@guarded
class ExactnessPanel(Panel[Exactness]):
    """Errors of all rows, the faults to switch on, and the first step that faults make wrong."""

    def __init__(self, session: Session) -> None:
        super().__init__("exactness_panel", "Exactness")
        self._session = session
        self._asked: object = None
        self._searched: Trace | None = None
        self._verdict: Verdict | None = None
        self.strips = _Strips(session)
        self.boxes: dict[str, QCheckBox] = {}
        self._faults = QWidget()
        self._grid = QGridLayout(self._faults)
        for fault in FAULTS:
            box = named(QCheckBox(fault.title), f"fault_{fault.name}", f"Fault: {fault.title}")
            box.clicked.connect(lambda on=False, name=fault.name: self._switch(name, on))
            self.boxes[fault.name] = box
        name, meaning = "first_wrong_step", "Go to the first wrong step"
        self.step = named(QPushButton(flat=True), name, meaning)
        self.step.clicked.connect(self._go)
        self._scroll = QScrollArea()
        self._scroll.setWidget(self._faults)
        self._scroll.setWidgetResizable(True)
        self._scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        with_parts(QVBoxLayout(self), (self.strips, 1), self._scroll, margin=0, gap=0)
        self.set_style(Style(DARK))

    def show_controls(self, on: bool) -> None:
        """Show the faults that can be switched on, or hide them from an audience."""
        self._scroll.setVisible(on)

    # --- how it looks -----------------------------------------------------------------------

    def set_style(self, style: Style) -> None:
        self.strips.set_style(style)
        theme = style.theme
        colours = palette(theme)
        colours.setColor(QPalette.ColorRole.Window, QColor(theme.panel))
        for widget in (self, self._scroll.viewport(), self._faults):
            widget.setPalette(colours)
        # The style draws the outline of a box only a shade darker than its window.
        colours.setColor(QPalette.ColorRole.Window, QColor(theme.muted))
        for box in self.boxes.values():
            box.setPalette(colours)
        super().set_style(style)

    def _size(self, style: Style) -> None:
        """Give the controls the text that suits the space."""
        font, edge, theme = style.text_font(12), round(style.px(6)), style.theme
        self.step.setFont(font)
        for box in self.boxes.values():
            box.setFont(font)
            # So that the box beside small text is not cut.
            box.setMinimumHeight(round(self.style_now.px(15)))
        self._grid.setContentsMargins(edge + 2, 0, edge, edge // 2)
        self._grid.setHorizontalSpacing(edge * 2)
        self._grid.setVerticalSpacing(max(1, edge // 3))
        set_sheet(
            self.step,
            f"QPushButton {{ text-align: left; padding: {edge // 3}px 0; border: none;"
            f" color: {theme.tensors['Q']}; text-decoration: underline; }}"
            f" QPushButton:disabled {{ color: {theme.muted}; text-decoration: none; }}"
            f' QPushButton[ring="true"] {{ border: 1px solid {theme.text}; }}',
        )

    def arrange(self) -> None:
        """Put the boxes into as many columns as fit; they scroll if the panel is low."""
        room_for = min(self.width() / 380, self.height() / 200)
        scale = min(self.style_now.scale, max(LEAST_SCALE, room_for))
        self._size(replace(self.style_now, scale=scale))
        widest = max(box.sizeHint().width() for box in self.boxes.values())
        margins = self._grid.contentsMargins()
        room = self.width() - margins.left() - margins.right()
        columns = max(1, min(3, room // (widest + self._grid.horizontalSpacing())))
        for widget in (*self.boxes.values(), self.step):
            self._grid.removeWidget(widget)
        for n, box in enumerate(self.boxes.values()):
            self._grid.addWidget(box, 1 + n // columns, n % columns)
        self._grid.addWidget(self.step, 0, 0, 1, columns)
        high = self._faults.sizeHint().height()
        self._scroll.setFixedHeight(min(high, round(0.42 * self.height())))

    def sizeHint(self) -> QSize:
        return QSize(560, 300)

    # --- what it shows ----------------------------------------------------------------------

    def forget(self) -> None:
        self.strips.snapshot = self.strips.model = self._searched = self._verdict = None

    def show_view(self, view: View, model: Exactness) -> None:
        trace = self._session.trace
        if trace is None:
            return
        self.strips.take(view.snapshot, model, view.report.row)
        self._show_faults(trace)
        if not trace.workload.faults.on:
            self._searched = self._verdict = None
        elif self._searched is not trace:
            self._search(trace)
        self._show_step(trace)
        self._fill(trace, view.snapshot, model)

    def _show_faults(self, trace: Trace) -> None:
        w = trace.workload
        for fault in FAULTS:
            box, why = self.boxes[fault.name], without_effect(fault, w)
            on = fault.name in w.faults.on
            box.setChecked(on)
            box.setEnabled(on or not why)
            note = f" Without effect: {why}." if why else ""
            box.setToolTip(f"{fault.words} {fault.cites}.{note}")

    def _switch(self, name: str, checked: bool) -> None:
        """Propose the scenario with one fault more or less: a step that can be undone."""
        scenario = self._session.scenario
        if scenario is not None:
            title = self.boxes[name].text()
            changed = with_values(scenario, {"faults": {name: True if checked else None}})
            self._session.propose(changed, f"fault {title}" if checked else f"no fault {title}")

    # --- rows that the cursor has jumped over -----------------------------------------------

    def _fill(self, trace: Trace, snapshot: Snapshot, model: Exactness) -> None:
        """Compute missing errors in the background, once for each place."""
        visit = snapshot.visit
        place = (
            (visit.i, visit.j) if not algorithm_of(trace.workload).stores_scores else (visit.i, 0)
        )
        key = (id(trace), visit.head, place)
        if not model.missing or key == self._asked:
            return
        self._asked = key
        self._session.tasks.start(
            _FILL, "holding rows against float64",
            lambda report: fill_errors(trace, snapshot, report),
            lambda _: self._session.go(self._session.cursor),
        )  # fmt: skip

    # --- the first wrong step ---------------------------------------------------------------

    def _search(self, trace: Trace) -> None:
        self._searched, self._verdict = trace, None

        def done(verdict: Verdict | None) -> None:
            if self._searched is trace:
                self._verdict = verdict
                self._show_step(trace)

        self._session.tasks.start(
            _SEARCH, "looking for the first wrong step",
            lambda report: first_wrong_step(trace, report), done,
        )  # fmt: skip

    def _show_step(self, trace: Trace) -> None:
        found = self._verdict.difference if self._verdict else None
        self.step.setEnabled(found is not None)
        self.step.setToolTip(str(found) if found else "")
        self.step.setText(step_words(trace, self._verdict))

    def _go(self) -> None:
        found = self._verdict.difference if self._verdict else None
        trace = self._session.trace
        # The session has a new run a moment before the panel shows it.
        if found is None or trace is None or trace is not self._searched:
            return
        names = [op.name for op in trace.program.ops(found.visit.index)]
        self._session.go(Cursor(found.visit.index, names.index(found.op)))


def step_words(trace: Trace, verdict: Verdict | None) -> str:
    """Return in words where the numbers become wrong."""
    if not trace.workload.faults.on:
        return "Faults: what a mistake in the algorithm would do"
    if verdict is None:
        return "First wrong step: not found yet"
    if verdict.difference is None:
        return f"No wrong step: {verdict}"
    found = verdict.difference
    visit = found.visit
    op = next(op for op in trace.program.ops(visit.index) if op.name == found.op)
    tile = trace.program.launches[visit.launch].where(visit.i, visit.j)
    return (
        f"First wrong step: visit {count_text(visit.index + 1)}, {tile}, "
        f"{op_label(op, trace.workload)}: {number_text(found.engine)}, "
        f"right {number_text(found.exact)}"
    )
