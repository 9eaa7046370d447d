"""The algorithms on the same numbers: side by side, as a table, in a race, and P stored or not."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from PySide6.QtCore import QSizeF, Qt

from simulator.program.algorithms import ALGORITHMS
from simulator.run.trace import Trace
from simulator.study.compare import Comparison, Lockstep, Position, at_scale, comparison_of
from simulator.study.compare_choices import CHOICES
from simulator.study.race import RUN_SECONDS, Race, race_of
from simulator.study.recompute import over_lengths, trade_of
from ui.kit.boxes import Box
from ui.look.units import bytes_text
from ui.panels.compare.columns import columns
from ui.panels.compare.race import (
    RaceMoment,
    pace_words_of,
    race_boxes,
    race_notes,
    race_results,
    race_title,
)
from ui.panels.compare.recompute import recompute_boxes, trade_sentences
from ui.panels.compare.words import legend_words, pace_words, place_words, title, verdicts
from ui.panels.study import Act, Chosen, Study, Words
from ui.session.tasks import Report
from ui.session.view import View

RUN = Act(
    "run", "Compute errors and seconds",
    "Computes all of them from end to end and holds each O against float64: the table then has "
    "their errors and seconds. With progress and Cancel in the header.",
)  # fmt: skip


class CompareFound(NamedTuple):
    """The runs, and their race."""

    comparison: Comparison
    race: Race | None  # None until it is asked for


@dataclass(frozen=True, slots=True, eq=False)
class CompareState:
    """The runs with the choices made; `places` is None until the run has a place."""

    found: CompareFound
    places: Lockstep | None = None
    by_time: bool = False
    chosen: str = ""  # the view; empty: columns, and the table when all are finished
    marked: str = ""  # the algorithm that Enter shows
    asked: str = ""  # the algorithm that a user wants to see
    started: int = 0  # how often the race was started
    share: float = 0.0  # the part of the race that has been seen
    pace: float = RUN_SECONDS  # seconds of watching in which the last lane finishes
    where: str = "here"  # where one watches

    @property
    def positions(self) -> tuple[Position, ...]:
        """How far each run has come."""
        if self.places is None:
            return ()
        return self.places.by_time if self.by_time else self.places.by_tile

    @property
    def view(self) -> str:
        """The view on show."""
        over = bool(self.positions) and all(each.finished for each in self.positions)
        return self.chosen or ("table" if over else "columns")


class CompareStudy(Study[CompareFound, CompareState]):
    """The algorithms beside each other up to the cursor, or as whole runs."""

    name, title, doing = "compare", "Compare", "the algorithms side by side"
    pictured = "The algorithms side by side"
    choices, acts, seconds = CHOICES, (RUN,), RUN_SECONDS
    room, share = QSizeF(540, 300), 0.7

    def hidden(self, trace: Trace, chosen: Chosen) -> frozenset[str]:
        view = chosen["view"]
        if view == "table":
            return frozenset({"match"})
        return frozenset({"run"} if view in ("", "columns") else {"run", "match"})

    def needs(self, trace: Trace, view: View, chosen: Chosen) -> Hashable:
        return chosen["view"] if chosen["view"] in ("race", "recompute") else ""

    def compute(self, trace: Trace, needs: Any, report: Report) -> CompareFound:
        comparison = comparison_of(trace.program)
        at_scale(trace.program)
        comparison.totals  # noqa: B018 - computed here, not while the window waits
        if needs == "recompute":
            over_lengths(trace.workload)
        return CompareFound(comparison, race_of(trace.program) if needs == "race" else None)

    def state(
        self, found: CompareFound, chosen: Chosen, before: CompareState | None, changed: str
    ) -> CompareState:
        old = before or CompareState(found)
        racing = chosen["view"] == "race" and found.race is not None
        again = racing and (changed == "view" or old.found.race is None)
        if old.found.comparison is not found.comparison:
            old = replace(old, found=found, places=None, share=0.0)
        return replace(
            old, found=found, by_time=chosen["match"] == "time", chosen=chosen["view"],
            started=old.started + again,
        )  # fmt: skip

    def follow(self, state: CompareState, view: View) -> CompareState:
        if (
            view.snapshot.program
            is not state.found.comparison.programs[state.found.comparison.shown]
        ):
            return state
        return replace(state, places=state.found.comparison.at(view.snapshot))

    def key(self, state: CompareState, key: Qt.Key, *, ctrl: bool) -> CompareState | None:
        names = tuple(state.found.comparison.programs)
        here = state.marked if state.marked in names else state.found.comparison.shown
        step = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}.get(key)
        enter = key in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if step is not None and state.view == "columns":
            return replace(state, marked=names[(names.index(here) + step) % len(names)])
        if enter and state.view == "race":
            return replace(state, started=state.started + 1)
        return replace(state, asked=here) if enter and state.view == "columns" else None

    def press(self, state: CompareState, at: Hashable) -> CompareState | None:
        if isinstance(at, str) and at in state.found.comparison.programs:
            return replace(state, marked=at, asked=at)
        return None

    def hand(self, at: Hashable) -> bool:
        return at in ALGORITHMS

    def act(self, state: CompareState, name: str) -> CompareState | None:
        return state

    def moves(self, before: CompareState, after: CompareState) -> bool:
        return after.started != before.started

    def on_the_way(self, state: CompareState, share: float) -> CompareState:
        return replace(state, share=share)

    def picture(self, state: CompareState) -> Box | None:
        comparison, race = state.found
        if state.view == "race" and race is not None:
            pace = "Race, or Enter, starts it"
            if state.started:
                pace = pace_words_of(race, state.pace, state.where)
            return race_boxes(RaceMoment(race, state.share * race.seconds, pace))
        if state.view == "table":
            return Box(name="table", grow=1)
        if state.view == "recompute":
            return recompute_boxes(comparison.programs[comparison.shown].workload)
        return columns(comparison, state.positions, state.marked)

    def words(self, state: CompareState) -> Words:
        comparison, race = state.found
        if state.view == "race" and race is not None:
            return Words(race_title(race, comparison), "", race_notes(race))
        if state.view == "recompute":
            w = comparison.programs[comparison.shown].workload
            return Words("P stored, or computed again", "", trade_sentences(trade_of(w)))
        said = verdicts(comparison)
        if state.view == "table":
            return Words("The whole runs", "", said)
        if state.places is None:
            return Words("The runs beside each other")
        pace, why = pace_words(comparison, state.places, by_time=state.by_time)
        return Words(pace, "", (*said[:2], legend_words(comparison), *said[2:], why))

    def described(self, state: CompareState) -> tuple[str, ...]:
        first, *others = super().described(state)
        race = state.found.race
        if state.view == "race" and race is not None:
            return first, *race_results(race), *others
        parts = [
            f"{title(p.algorithm)}: {place_words(state.found.comparison, p)[0]}, "
            f"{bytes_text(p.counters.bytes)} requested"
            for p in state.positions
        ]
        return first, *(["; ".join(parts)] if state.view == "columns" else []), *others


COMPARE = CompareStudy()
