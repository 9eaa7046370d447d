"""The dock of the comparison, with its table, its race by the session's clock, and engines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import isnan, nan
from typing import NamedTuple

from simulator.problem.scenario import with_values
from simulator.program.playback import Cursor
from simulator.run.trace import Trace
from simulator.study.compare import Comparison, EngineRun, Totals, same_numbers_key
from simulator.study.race import RUN_SECONDS
from ui.look.durations import duration_text, limit_text
from ui.look.theme import Style
from ui.look.units import bytes_text, count_text, factor_text, flops_text, time_text
from ui.panels.compare.study import COMPARE, CompareFound, CompareState
from ui.panels.compare.words import SAME, title
from ui.panels.study import Act
from ui.panels.study_panel import StudyPanel
from ui.safety.overrides import guarded
from ui.session.session import Session
from ui.session.view import View
from ui.widgets.figures_table import Figure, FiguresTable


class TableRow(NamedTuple):
    """One figure of all algorithms."""

    name: str  # of the figure
    texts: tuple[str, ...]  # one for each algorithm
    # amounts that rank algorithms, NaN for one without a rank; empty if less is not better
    amounts: tuple[float, ...] = ()


def table_rows(
    comparison: Comparison, runs: Mapping[str, EngineRun] | None = None
) -> tuple[TableRow, ...]:
    """Return the rows of the table.

    runs: the results of engines, by algorithm; without it these cells say ``not run``.
    """
    totals, alike = comparison.totals, comparison.alike
    gpu = comparison.programs[comparison.shown].workload.gpu

    def row(
        name: str, amount: Callable[[Totals], float], text: Callable[[Totals], str]
    ) -> TableRow:
        amounts = tuple(amount(t) if t.algorithm in alike else nan for t in totals)
        return TableRow(name, tuple(map(text, totals)), amounts)

    def size(name: str, amount: Callable[[Totals], int]) -> TableRow:
        return row(name, amount, lambda total: bytes_text(amount(total)))

    def note(name: str, text: Callable[[Totals], str]) -> TableRow:
        return TableRow(name, tuple(map(text, totals)))

    modelled = any(total.duration.model for total in totals if total.algorithm in alike)
    found = [runs.get(name) if runs else None for name in comparison.programs]
    engine = next((f"{r.engine} engine" for r in found if r), "engine")
    return (
        size("requested, read", lambda t: t.counters.read_bytes),
        size("requested, written", lambda t: t.counters.write_bytes),
        size("requested, total", lambda t: t.counters.bytes),
        size("minimum (each launch, once)", lambda t: t.compulsory),
        row("matmul FLOPs", lambda t: t.counters.flops, lambda t: flops_text(t.counters.flops)),
        note("FLOPs for each requested byte", lambda t: f"{t.intensity:.1f}"),
        note(
            "DRAM, by model",
            lambda t: limit_text(t.duration) if t.duration.dram_bytes is None else
            bytes_text(t.duration.dram_bytes),
        ),
        row(
            f"time on {gpu.name}",
            lambda t: t.duration.seconds if t.duration.model or not modelled else nan,
            lambda t: duration_text(t.duration),
        ),
        note("limited by", lambda t: limit_text(t.duration)),
        size(f"shared memory at most (limit {bytes_text(gpu.smem_bytes)})", lambda t: t.peak),
        size("written to HBM for each pair (N²)", lambda t: t.square),
        note("visits", lambda t: count_text(t.visits)),
        TableRow("largest error of O from float64",
                 tuple(_error_text(r.max_abs_error) if r else "not run" for r in found)),
        TableRow(f"seconds of the {engine}",
                 tuple(time_text(r.seconds) if r else "not run" for r in found)),
    )  # fmt: skip


def _error_text(error: float) -> str:
    return "NaN or ∞" if isnan(error) else f"{error:.1e}".replace("-", "−")


def heads(comparison: Comparison) -> list[Figure]:
    """Return the names of the columns."""
    names = [
        Figure(title(name), "current" if name == comparison.shown else "text")
        for name in comparison.programs
    ]
    return [Figure(""), *names]


def figures(row: TableRow) -> list[Figure]:
    """Return a row's cells: the least stands out, the others say how many times as much."""
    ranked = [amount for amount in row.amounts if not isnan(amount)]
    least, most = min(ranked, default=0), max(ranked, default=0)
    cells = [Figure(row.name, "muted")]
    for n, words in enumerate(row.texts):
        amount = row.amounts[n] if most > least else nan
        if amount <= least * SAME:
            cells.append(Figure(f"least   {words}", "good"))
        elif least and not isnan(amount):
            cells.append(Figure(f"{factor_text(amount / least)}   {words}"))
        else:
            cells.append(Figure(words))
    return cells


@guarded
class ComparePanel(StudyPanel[CompareFound, CompareState]):
    """The study of the algorithms; a step of the run ends the race at its finish."""

    def __init__(self, session: Session) -> None:
        self._runs: tuple[Trace, dict[str, EngineRun]] | None = None
        self._start: Cursor | None = None
        """The session's cursor when the race was started."""
        self._early = False
        super().__init__(session, COMPARE)
        self.chosen["view"] = ""  # columns until the runs are over
        self.table = FiguresTable(self.picture, "compare_table", "Figures of the whole runs")
        self.table.hide()
        session.settings_changed.connect(self._take_speed)

    @property
    def view(self) -> str:
        """Columns, table, race or recompute."""
        return "columns" if self.state is None else self.state.view

    @property
    def runs(self) -> dict[str, EngineRun] | None:
        """The results of engines on exactly these numbers; None: not run."""
        shown = self._session.trace
        if self._runs is None or shown is None:
            return None
        trace, runs = self._runs
        return runs if same_numbers_key(trace) == same_numbers_key(shown) else None

    def forget(self) -> None:
        super().forget()
        self._runs = None

    def show_view(self, view: View, model: None = None) -> None:
        if self._session.cursor != self._start:
            self.clock.finish()
        super().show_view(view, model)

    def completed(self, state: CompareState) -> CompareState:
        self.bar.show_chosen("view", state.view)
        return replace(state, asked="", pace=RUN_SECONDS / self._session.speed)

    def change(self, state: CompareState) -> None:
        super().change(state)
        if state.asked:
            self.show_algorithm(state.asked)

    def show_algorithm(self, name: str) -> None:
        """Show another algorithm on the same scenario."""
        scenario = self._session.scenario
        if scenario is not None and name != scenario.attention.algorithm:
            changed = with_values(scenario, {"attention": {"algorithm": name}})
            self._session.propose(changed, f"algorithm {name}")

    def play_race(self) -> None:
        """Pause, resume or start the race: the Space key calls this if no other run is shown."""
        if self.clock.running or self.clock.paused:
            self.clock.pause(self.clock.running)
        else:
            self.bar.choose("view", "race")

    def _act(self, act: Act) -> None:
        """Run all algorithms on their engines, then show the table with their results."""
        trace = self._session.trace

        def done(runs: dict[str, EngineRun]) -> None:
            assert trace is not None
            self._runs = trace, runs
            if self.runs is not None:  # otherwise another scenario has been opened in the meantime
                self.bar.choose("view", "table")

        self._session.run_all(done)

    def choose(self, name: str, value: str) -> None:
        self._early = self.state is None and (name, value) == ("view", "race")
        super().choose(name, value)

    def _go(self, state: CompareState) -> None:
        if self._early and self.state is None:  # the race was asked for before anything was seen
            super()._go(state)
            state = replace(state, started=state.started + (state.view == "race"))
        if self.state is not None and self.study.moves(self.state, state):
            self._session.play(False)
            self._start = self._session.cursor
            state = replace(state, share=0.0 if self._session.motion else 1.0)
        super()._go(state)

    def _take_speed(self) -> None:
        if self.state is not None:
            self.picture.state = self.completed(self.state)
            self.picture.update()

    def _draw(self, state: CompareState) -> None:
        super()._draw(state)
        self._show_table()

    def arrange(self) -> None:
        super().arrange()
        self._show_table()

    def set_style(self, style: Style) -> None:
        super().set_style(style)
        self._show_table()

    def _show_table(self) -> None:
        """Set the table in its place in the picture."""
        state, scene = self.state, self.picture.scene
        on = state is not None and state.view == "table"
        self.table.setVisible(on)
        if state is not None and scene is not None and on:
            comparison = state.found.comparison
            self.table.set_style(scene.style)
            self.table.setGeometry(scene.where("table").toAlignedRect())
            rows = table_rows(comparison, self.runs)
            self.table.show_figures(heads(comparison), [figures(row) for row in rows])
