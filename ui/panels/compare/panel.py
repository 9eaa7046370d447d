"""The dock that shows the algorithms side by side on the same numbers, or lets them race."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPointF, QRectF, Qt
from PySide6.QtGui import (
    QHelpEvent,
    QHideEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import QToolButton, QToolTip

from simulator.problem.scenario import with_values
from simulator.program.algorithms import ALGORITHMS
from simulator.program.playback import Cursor
from simulator.run.row_report import RowReport
from simulator.run.snapshot import Snapshot
from simulator.run.trace import Trace
from simulator.study.compare import (
    SCALE_N,
    Comparison,
    EngineRun,
    Lockstep,
    Position,
    comparison_of,
    same_numbers_key,
)
from simulator.study.race import RUN_SECONDS, Race, race_of, seconds_after
from simulator.study.recompute import trade_of
from ui.look.draw import text_width
from ui.look.names import fitting
from ui.look.theme import Style
from ui.look.units import bytes_text, count_text
from ui.panels.base import Panel
from ui.panels.compare.painter import MIN_SIZE, compare_layout, paint_compare
from ui.panels.compare.race import paint_race
from ui.panels.compare.race_words import pace_words_of, race_description
from ui.panels.compare.recompute import paint_recompute, trade_sentences
from ui.panels.compare.table import paint_table
from ui.panels.compare.words import place_words, title, verdicts
from ui.safety.overrides import guarded
from ui.safety.painting import painting
from ui.session.panel_clock import PanelClock
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
    ("columns", "Columns", "Columns", "The runs beside each other, up to the cursor."),
    ("table", "Table", "Table",
     "The whole runs in figures: requested bytes as Dao et al. 2022, Theorem 2, count them."),
    ("race", "Race", "Race",
     f"Starts a race of the whole runs in simulated time, by the roofline; a shorter run races at "
     f"N = {count_text(SCALE_N)}. Its speed is that of playing; again: from the start. "
     "Space lets it pause and go on where the board is not shown."),
    ("recompute", "Store or recompute", "Recompute",
     "Forward and backward pass together: P stored and read back, or computed again from Q, K and "
     "LSE; what that saves and costs, here and over N."),
    ("run", "Compute errors and seconds", "Compute",
     "Computes all of them from end to end and holds each O against float64: the table then has "
     "their errors and seconds. With progress and Cancel in the header."),
)  # fmt: skip
_GROUPS = (("tiles", "time"), ("columns", "table", "race", "recompute"), ("run",))
_SIDE = 8
"""Pixels between the dock's edge and what is in it."""
_COLUMNS, _TABLE, _RACE, _RECOMPUTE = _VIEWS = ("columns", "table", "race", "recompute")
_READY = ("Race, or Enter, starts it", "Enter starts it", "")


CompareModel = tuple[Comparison, Lockstep]
"""The runs, and where all of them are, for both ways to compare them."""


def compare_model(trace: Trace, snapshot: Snapshot, report: RowReport) -> CompareModel:
    """Return where all of them are, for both ways to compare them."""
    comparison = comparison_of(trace.program)
    return comparison, comparison.at(snapshot)


@guarded
class ComparePanel(Panel[CompareModel]):
    """Columns side by side, the table of the whole runs or their race; a click shows an algorithm.

    A race runs by the session's clock and speed. A step of the run ends it at its finish.
    """

    def __init__(self, session: Session) -> None:
        super().__init__("compare_panel", "Compare")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.by_time = False
        self._session = session
        self._view: str | None = None
        self._marked = ""
        self.comparison: Comparison | None = None
        self._lockstep: Lockstep | None = None
        self._runs: tuple[Trace, dict[str, EngineRun]] | None = None
        self._trace: Trace | None = None
        self._start: Cursor | None = None
        """The session's cursor when the race was started."""
        self.race_clock = PanelClock(session, self, RUN_SECONDS)
        self.race_clock.moved.connect(self.update)
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
    def view(self) -> str:
        """Columns, table, race or recompute: as chosen, or the table when all are finished."""
        if self._view is not None:
            return self._view
        finished = bool(self.positions) and all(p.finished for p in self.positions)
        return _TABLE if finished else _COLUMNS

    @property
    def race(self) -> Race | None:
        """The race of the whole runs."""
        return None if self._trace is None else race_of(self._trace.program)

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
        elif name in _VIEWS:
            self._view = name
            if name == "race":
                self.start_race()
            else:
                self.race_clock.finish()
        else:
            self.run_all()
        self._check()
        self.update()

    def start_race(self) -> None:
        """Start the race, also if one is under way."""
        if self.race is not None:
            self._session.play(False)
            self._start = self._session.cursor
            self.race_clock.start()
            self._describe()

    def play_race(self) -> None:
        """Let the race pause or go on, or start it: Space does so if no other run is shown."""
        clock = self.race_clock
        if clock.running or clock.paused:
            clock.pause(clock.running)
        else:
            self.start_race()

    def run_all(self) -> None:
        """Run all of them on their engines, then show the table with their results."""
        trace = self._session.trace
        if trace is None:
            return

        def done(runs: dict[str, EngineRun]) -> None:
            self._runs = trace, runs
            if self.runs is not None:  # otherwise another scenario has been opened in the meantime
                self._view = _TABLE
                self.race_clock.finish()
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
        on = {"tiles": not self.by_time, "time": self.by_time}
        on |= {name: name == self.view for name in _VIEWS}
        for name, checked in on.items():
            self.buttons[name].setChecked(checked)

    # --- showing --------------------------------------------------------------------------

    def set_style(self, style: Style) -> None:
        super().set_style(style)
        self._arrange()

    def forget(self) -> None:
        self.comparison = self._lockstep = self._trace = self._runs = None

    def show_view(self, view: View, model: CompareModel) -> None:
        self.comparison, self._lockstep = model
        if self._trace is not self._session.trace:
            self.race_clock.reset()
        elif self._session.cursor != self._start:
            self.race_clock.finish()
        self._trace = self._session.trace
        self._check()
        self._describe()
        self.update()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.race_clock.finish()

    def _describe(self) -> None:
        if self.comparison is not None:
            self.setAccessibleDescription(self._words(self.comparison))

    def _words(self, comparison: Comparison) -> str:
        """Return the figures for screen readers."""
        if self.view == "race" and self.race is not None:
            return race_description(self.race)
        if self.view == _RECOMPUTE:
            w = comparison.programs[comparison.shown].workload
            return " ".join(texts[0] for texts in trade_sentences(trade_of(w)))
        parts = [
            f"{title(p.algorithm)}: {place_words(comparison, p)[0]}, "
            f"{bytes_text(p.counters.bytes)} requested"
            for p in self.positions
        ]
        return "; ".join((*parts, *(texts[0] for texts in verdicts(comparison))))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def show_controls(self, on: bool) -> None:
        for button in self.buttons.values():
            button.setVisible(on)
        self.update()

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
            if sum(widths.values()) + 2 * gap + 2 * group_gap <= self.width() - 2 * px(_SIDE):
                break
        x, height = px(_SIDE), round(px(24))
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
        first = self.buttons["tiles"]
        top = 5 if first.isHidden() else first.geometry().bottom() + 5
        side = self._fitted().px(_SIDE)
        return QRectF(self.rect()).adjusted(side, top, -side, -5)

    def paintEvent(self, event: QPaintEvent) -> None:
        with painting(self) as painter:
            self.clear(painter)
            if self.comparison is not None:
                if self.view == "race" and self.race is not None:
                    self._paint_race(painter, self.race, self.comparison)
                elif self.view == _RECOMPUTE:
                    w = self.comparison.programs[self.comparison.shown].workload
                    paint_recompute(painter, w, self.style_now, self.place())
                elif self.view == _TABLE:
                    paint_table(
                        painter, self.comparison, self.style_now, self.place(), runs=self.runs
                    )
                else:
                    paint_compare(
                        painter, self.comparison, self.positions, self.style_now, self.place(),
                        by_time=self.by_time, marked=self.marked if self.hasFocus() else None,
                    )  # fmt: skip

    def _paint_race(self, painter: QPainter, race: Race, shown: Comparison) -> None:
        clock = self.race_clock
        pace = pace_words_of(race, RUN_SECONDS / self._session.speed, "here")
        paint_race(
            painter, race, seconds_after(race, clock.watched), self.style_now, self.place(),
            shown=shown, pace=pace if clock.started else _READY,
        )  # fmt: skip

    # --- pointer and keys -----------------------------------------------------------------

    def column_at(self, place: QPointF) -> str | None:
        """Return the algorithm whose column is at a place of the panel."""
        if self.view != "columns" or self.comparison is None:
            return None
        lay = compare_layout(self.place(), self.style_now, len(self._names))
        column = lay.column_at(place)
        return None if column is None else self._names[column]

    @property
    def _names(self) -> tuple[str, ...]:
        return () if self.comparison is None else tuple(self.comparison.programs)

    @property
    def marked(self) -> int:
        """Column that Enter shows: the first if the algorithm marked last is not compared here."""
        return self._names.index(self._marked) if self._marked in self._names else 0

    def mousePressEvent(self, event: QMouseEvent) -> None:
        name = self.column_at(event.position())
        if event.button() == Qt.MouseButton.LeftButton and name is not None:
            self._marked = name
            self.show_algorithm(name)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        over = self.column_at(event.position()) is not None
        self.setCursor(Qt.CursorShape.PointingHandCursor if over else Qt.CursorShape.ArrowCursor)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}.get(Qt.Key(event.key()))
        enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        names = self._names
        if step is not None and names:
            self._marked = names[(self.marked + step) % len(names)]
            self.update()
        elif enter and self.view == "race":
            self.start_race()
        elif enter and names and self.view == "columns":
            self.show_algorithm(names[self.marked])
        else:
            super().keyPressEvent(event)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            name = self.column_at(event.pos().toPointF())
            tip = "" if name is None else f"Show {title(name)} ({ALGORITHMS[name].source})"
            QToolTip.showText(event.globalPos(), tip, self)
            return True
        return super().event(event)
