"""The dock that shows naive and both FlashAttentions side by side."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPointF, QRectF, Qt
from PySide6.QtGui import (
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPaintEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import QToolButton, QToolTip

from simulator.problem.scenario import with_values
from simulator.program.algorithms import ALGORITHMS
from simulator.run.row_report import RowReport
from simulator.run.snapshot import Snapshot
from simulator.run.trace import Trace
from simulator.study.compare import (
    Comparison,
    EngineRun,
    Lockstep,
    Position,
    comparison_of,
    same_numbers_key,
)
from ui.look.draw import text_width
from ui.look.names import fitting
from ui.look.theme import Style
from ui.look.units import bytes_text
from ui.panels.base import Panel
from ui.panels.compare.painter import MIN_SIZE, compare_layout, paint_compare
from ui.panels.compare.table import paint_table
from ui.panels.compare.words import place_words, title, verdicts
from ui.safety.overrides import guarded
from ui.safety.painting import painting
from ui.session.session import Session
from ui.session.view import View
from ui.widgets.choice_bar import Button, bar_sheet
from ui.widgets.sheet import set_sheet

_BUTTONS = (
    ("tiles", "Same number of tiles", "Same tiles",
     "All have done as many visits as the one on show: how often each works on a tile."),
    ("time", "Same simulated time", "Same time",
     "All as far as the GPU's data sheet lets them come in the same time, by the roofline "
     "(Williams et al. 2009)."),
    ("race", "Race", "Race", "The runs beside each other, up to the cursor."),
    ("table", "Table", "Table",
     "The whole runs in figures: requested bytes as Dao et al. 2022, Theorem 2, count them."),
    ("run", "Compute errors and seconds", "Compute",
     "Computes all of them from end to end and holds each O against float64: the table then has "
     "their errors and seconds. With progress and Cancel in the header."),
)  # fmt: skip
_GROUPS = (("tiles", "time"), ("race", "table"), ("run",))


CompareModel = tuple[Comparison, Lockstep]
"""The runs, and where all three are, for both ways to compare them."""


def compare_model(trace: Trace, snapshot: Snapshot, report: RowReport) -> CompareModel:
    """Return where all three are, for both ways to compare them."""
    comparison = comparison_of(trace.program)
    return comparison, comparison.at(snapshot)


@guarded
class ComparePanel(Panel[CompareModel]):
    """Three columns side by side, or the table of the whole runs; a click shows an algorithm."""

    def __init__(self, session: Session) -> None:
        super().__init__("compare_panel", "Compare")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.by_time = False
        self._session = session
        self._view: str | None = None
        self._marked = 0
        self.comparison: Comparison | None = None
        self._lockstep: Lockstep | None = None
        self._runs: tuple[Trace, dict[str, EngineRun]] | None = None
        self._trace: Trace | None = None
        self.buttons = {name: self._button(name) for name, *_ in _BUTTONS}
        self._check()

    def _button(self, name: str) -> QToolButton:
        _, text, _, tip = next(row for row in _BUTTONS if row[0] == name)
        button = Button(self)
        button.setObjectName(f"compare_{name}")
        button.setAccessibleName(text)
        button.setAccessibleDescription(tip)
        button.setToolTip(tip)
        button.setCheckable(name != "run")
        button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        button.clicked.connect(lambda _=False: self._press(name))
        return button

    # --- state ----------------------------------------------------------------------------

    @property
    def shows_table(self) -> bool:
        """Whether the table is shown: as chosen, or when all three are finished."""
        if self._view is not None:
            return self._view == "table"
        return bool(self.positions) and all(p.finished for p in self.positions)

    @property
    def positions(self) -> tuple[Position, ...]:
        """How far each has come."""
        if self._lockstep is None:
            return ()
        return self._lockstep.by_time if self.by_time else self._lockstep.by_tile

    @property
    def runs(self) -> dict[str, EngineRun] | None:
        """The results of engines on exactly these numbers; None: not run."""
        if self._runs is None or self._trace is None:
            return None
        trace, runs = self._runs
        same = same_numbers_key(trace) == same_numbers_key(self._trace)
        return runs if same else None

    def _press(self, name: str) -> None:
        if name in ("tiles", "time"):
            self.by_time = name == "time"
        elif name in ("race", "table"):
            self._view = name
        else:
            self.run_all()
        self._check()
        self.update()

    def run_all(self) -> None:
        """Run all three on their engines, then show the table with their results."""
        trace = self._session.trace
        if trace is None:
            return

        def done(runs: dict[str, EngineRun]) -> None:
            self._runs = trace, runs
            if self.runs is not None:  # otherwise another scenario has been opened in the meantime
                self._view = "table"
            self._check()
            self.update()

        self._session.run_all(done)

    def show_algorithm(self, name: str) -> None:
        """Show another algorithm on the same scenario."""
        scenario = self._session.scenario
        if scenario is not None and name != scenario.attention.algorithm:
            changed = with_values(scenario, {"attention": {"algorithm": name}})
            self._session.propose(changed, f"algorithm {name}")

    def _check(self) -> None:
        table = self.shows_table
        on = {"tiles": not self.by_time, "time": self.by_time, "race": not table, "table": table}
        for name, checked in on.items():
            self.buttons[name].setChecked(checked)

    # --- showing --------------------------------------------------------------------------

    def set_style(self, style: Style) -> None:
        super().set_style(style)
        self._arrange()

    def show_view(self, view: View, model: CompareModel) -> None:
        self.comparison, self._lockstep = model
        self._trace = self._session.trace
        self._check()
        self.setAccessibleDescription(self._words())
        self.update()

    def _words(self) -> str:
        """Return the figures for screen readers."""
        assert self.comparison is not None
        parts = [
            f"{title(p.algorithm)}: {place_words(self.comparison, p)[0]}, "
            f"{bytes_text(p.counters.bytes)} requested"
            for p in self.positions
        ]
        return "; ".join((*parts, *(texts[0] for texts in verdicts(self.comparison))))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _fitted(self) -> Style:
        return fitting(self.style_now, QRectF(self.rect()), MIN_SIZE)

    def _arrange(self) -> None:
        """Place the buttons in one row: with long words, or with short ones if it is narrow."""
        style = self._fitted()
        font, px = style.text_font(12), style.px
        gap, group_gap, pad = px(2), px(12), px(16)
        for long in (True, False):
            texts = {name: words if long else short for name, words, short, _ in _BUTTONS}
            widths = {name: text_width(font, text) + pad for name, text in texts.items()}
            if sum(widths.values()) + 2 * gap + 2 * group_gap <= self.width() - 16:
                break
        x, height = 8.0, round(px(24))
        for group in _GROUPS:
            for name in group:
                button = self.buttons[name]
                button.setText(texts[name])
                button.setFont(font)
                button.setGeometry(round(x), 5, round(widths[name]), height)
                x += widths[name] + gap
            x += group_gap - gap
        set_sheet(self, bar_sheet(style))

    def place(self) -> QRectF:
        """Return the place of the picture, below the buttons."""
        top = self.buttons["tiles"].geometry().bottom() + 5
        return QRectF(self.rect()).adjusted(8, top, -8, -5)

    def paintEvent(self, event: QPaintEvent) -> None:
        with painting(self) as painter:
            self.clear(painter)
            if self.comparison is not None:
                if self.shows_table:
                    paint_table(
                        painter, self.comparison, self.style_now, self.place(), runs=self.runs
                    )
                else:
                    paint_compare(
                        painter, self.comparison, self.positions, self.style_now, self.place(),
                        by_time=self.by_time, marked=self._marked if self.hasFocus() else None,
                    )  # fmt: skip

    # --- pointer and keys -----------------------------------------------------------------

    def column_at(self, place: QPointF) -> str | None:
        """Return the algorithm whose column is at a place of the panel."""
        if self.shows_table or self.comparison is None:
            return None
        lay = compare_layout(self.place(), self.style_now, len(self._names))
        column = lay.column_at(place)
        return None if column is None else self._names[column]

    @property
    def _names(self) -> tuple[str, ...]:
        return () if self.comparison is None else tuple(self.comparison.programs)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        name = self.column_at(event.position())
        if event.button() == Qt.MouseButton.LeftButton and name is not None:
            self._marked = self._names.index(name)
            self.show_algorithm(name)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        over = self.column_at(event.position()) is not None
        self.setCursor(Qt.CursorShape.PointingHandCursor if over else Qt.CursorShape.ArrowCursor)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}.get(Qt.Key(event.key()))
        names = self._names
        if step is not None and names:
            self._marked = (self._marked + step) % len(names)
            self.update()
        elif (
            event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and names and not self.shows_table
        ):
            self.show_algorithm(names[self._marked])
        else:
            super().keyPressEvent(event)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            name = self.column_at(event.pos().toPointF())
            tip = "" if name is None else f"Show {title(name)} ({ALGORITHMS[name].source})"
            QToolTip.showText(event.globalPos(), tip, self)
            return True
        return super().event(event)
