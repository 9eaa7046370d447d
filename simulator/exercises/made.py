"""An exercise with its numbers: the question, the answer by the program, and usual mistakes."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter, ValidationError

from simulator.base.assets import ASSETS, SCENARIOS
from simulator.base.errors import InputError, refuse
from simulator.base.tables import input_error, read_toml
from simulator.exercises.draws import MOST, Drawn, drawn, put_in
from simulator.exercises.ops import OPS, OpTask
from simulator.exercises.tables import ExercisesTable, ExerciseTable, Kind
from simulator.lesson.course import find_lesson
from simulator.lesson.expressions import Formats, computed, fill
from simulator.lesson.places import cursor_of
from simulator.lesson.tables import Place
from simulator.problem.scenario import (
    Scenario,
    load_scenario,
    merged,
    parse_scenario,
    scenario_tables,
)
from simulator.program.faults import FAULTS
from simulator.program.playback import Cursor, first_cursor
from simulator.study.captions import Numbers, program_of

FILES = ASSETS / "exercises"
Pair = tuple[int, int]
Answer = float | int | str | Pair
"""A number; the text of a choice, a fault or an op; a cell or a tile."""
_SLACK = 1e-9  # how far, relatively, rounding may move a right number
_BEFORE = ("draw", "let", "seen", "seen_at")  # keys that give the names in the other keys
_EXPRESSION = re.compile(r"\{\{(.*)\}\}")


@dataclass(frozen=True, slots=True)
class ExerciseOption:
    """One of the answers that can be chosen."""

    text: str
    says: str  # why it is wrong; "" where nothing is said


@dataclass(frozen=True, slots=True)
class TileCost:
    """The cost of a tile."""

    shared: int  # bytes of shared memory
    requested: int  # bytes of HBM that the run requests with this tile


@dataclass(frozen=True, slots=True)
class Exercise:
    """An exercise whose numbers are drawn and computed."""

    lesson: str  # name of the lesson, without its number
    name: str
    kind: Kind
    seed: int
    scenario: Scenario  # scenario, cursor: the place in the run that is asked about
    cursor: Cursor
    ask: str
    answer: Answer
    answer_text: str  # the answer as it is printed
    unit: str
    within: float
    options: tuple[ExerciseOption, ...]  # in the order in which they are shown
    mistakes: tuple[tuple[Answer, str], ...]  # wrong answers, and the words for each
    tiles: Mapping[Pair, TileCost]  # the tiles that can be chosen
    limit: int  # bytes of shared memory that a tile may take
    op: OpTask | None  # the op to write
    why: str
    drawn: Mapping[str, Drawn]  # what the seed has drawn, by name


def lesson_name(path: Path) -> str:
    """Return the name of a lesson's file without its number."""
    return path.stem.lstrip("0123456789-")


def exercises_of(lesson: str, seed: int, formats: Formats) -> tuple[Exercise, ...]:
    """Return the exercises of a lesson, in their order; none for a lesson that has none.

    lesson: one of Tilescope's, by its name with its number or without.
    """
    name = lesson_name(find_lesson(lesson))
    if not 0 <= seed <= MOST:
        raise refuse("exercises", "--seed", seed, f"0 to {MOST}")
    return tuple(made(raw, name, seed, formats) for raw in raw_exercises(name))


@cache
def raw_exercises(lesson: str) -> tuple[dict[str, Any], ...]:
    """Return the tables in the file of a lesson's exercises, one for each exercise."""
    path = FILES / f"{lesson}.toml"
    if not path.exists():
        return ()
    try:
        return ExercisesTable.model_validate(read_toml(path)).exercise
    except ValidationError as error:
        raise input_error(str(path), error, ExercisesTable) from None


def made(raw: Mapping[str, Any], lesson: str, seed: int, formats: Formats) -> Exercise:
    """Return an exercise with the values that a seed draws."""
    source = f"{lesson}, exercise {raw.get('name', '')}"
    try:
        return _made(raw, lesson, seed, formats)
    except ValidationError as error:
        raise input_error(source, error, ExerciseTable) from None
    except InputError as error:
        raise InputError(source, error.mistakes, error.others) from None


def _made(raw: Mapping[str, Any], lesson: str, seed: int, formats: Formats) -> Exercise:
    name, said = str(raw.get("name", "")), dict(raw)
    names = drawn(said.get("draw", {}), seed, f"{lesson}/{name}")
    rest = {key: value for key, value in said.items() if key not in _BEFORE}
    scenario = _scenario(put_in(said.get("scenario", "flash2"), names),
                         put_in(said.get("change", {}), names))  # fmt: skip
    if faults := said.get("faults"):
        rng = np.random.default_rng([seed, len(name)])
        planted = str(faults[int(rng.integers(len(faults)))])
        scenario = _with(scenario, {"faults": {planted: True}})
    for key, expression in said.get("let", {}).items():
        first = Numbers(scenario, first_cursor())
        names[key] = _value(put_in(expression, names), first)
    if seen := said.get("seen"):
        there = Numbers(scenario, _place(scenario, put_in(said.get("seen_at", "first"), names)))
        found = {key: _value(put_in(text, names), there) for key, text in seen.items()}
        names |= {key: _shown(value) for key, value in found.items()}
    table = ExerciseTable.model_validate(put_in(rest, names))
    place = first_cursor()
    if table.at is not None:
        place = cursor_of(program_of(scenario), table.at, place, "at")
    numbers = Numbers(scenario, place)

    def text(words: str) -> str:
        return fill(words, numbers, formats)

    def answer(words: tuple[str, ...] | str) -> Answer:
        if isinstance(words, str):
            return _value(words, numbers)
        row, col = (int(_whole(_value(each, numbers))) for each in words)
        return row, col

    right: Answer
    options: tuple[ExerciseOption, ...] = ()
    tiles: dict[Pair, TileCost] = {}
    limit, op, mistakes = 0, None, [(answer(m.answer), text(m.says)) for m in table.wrong]
    if table.kind == "choice":
        right, options = _choice(table, seed, numbers, text)
    elif table.kind == "fault":
        titles = {fault.name: fault for fault in FAULTS}
        right = titles[planted].title
        options = tuple(
            ExerciseOption(titles[each].title, titles[each].words) for each in table.faults
        )
    elif table.kind == "tile":
        limit = int(_whole(_value(table.limit, numbers)))
        tiles = {
            (rows, cols): TileCost(
                int(_whole(computed(f"shared_with({rows}, {cols})", numbers))),
                int(_whole(computed(f"requested_with({rows}, {cols})", numbers))),
            )
            for rows in table.rows
            for cols in table.cols
        }
        fits = {tile: cost for tile, cost in tiles.items() if cost.shared <= limit}
        if not fits:
            raise refuse("", "limit", limit, "a limit that some tile keeps")
        right = min(fits, key=lambda tile: (fits[tile].requested, fits[tile].shared))
    elif table.kind == "op":
        op = OPS.get(table.op)
        if op is None:
            raise refuse("", "op", table.op, f"one of {', '.join(OPS)}")
        right = op.name
    else:
        right = answer(table.answer)
        if isinstance(right, float) and not table.within and right == int(right):
            right = int(right)
        if table.kind == "number" and isinstance(right, float) and not math.isfinite(right):
            raise refuse("", "answer", right, "a finite number")
    mistakes = [each for each in mistakes if not same(each[0], right, table.within)]
    return Exercise(
        lesson, table.name, table.kind, seed, scenario, place, text(table.ask), right,
        _written(right, table.unit, table.within, op), table.unit, table.within, options,
        tuple(mistakes), tiles, limit, op, text(table.why), names,
    )  # fmt: skip


def _place(scenario: Scenario, said: Any) -> Cursor:
    """Return the place in a run that a value of TOML names."""
    place = TypeAdapter(Place).validate_python(said)
    return cursor_of(program_of(scenario), place, first_cursor(), "seen_at")


def _shown(value: float | int | str) -> float | int | str:
    """Return a number of a run as a text shows it."""
    return float(f"{value:.4f}") if isinstance(value, float) else value


def same(one: Answer, right: Answer, within: float) -> bool:
    """Return whether an answer counts as the right one."""
    if isinstance(one, int | float) and isinstance(right, int | float):
        return abs(one - right) <= within + _SLACK * abs(right)
    return one == right


def _choice(
    table: ExerciseTable, seed: int, numbers: Numbers, text: Any
) -> tuple[str, tuple[ExerciseOption, ...]]:
    values = [float(_value(each.value, numbers)) for each in table.choices]
    best = max(values) if table.best == "largest" else min(values)
    if not table.choices or values.count(best) != 1:
        raise refuse("", "choices", str(values), "one right choice")
    found = [ExerciseOption(text(each.text), text(each.says)) for each in table.choices]
    order = np.random.default_rng([seed, len(table.name)]).permutation(len(found))
    return found[values.index(best)].text, tuple(found[n] for n in order)


def _scenario(name: str, change: Mapping[str, Any]) -> Scenario:
    demos = {path.stem: path for path in SCENARIOS.glob("*.toml")}
    if name not in demos:
        raise refuse("", "scenario", name, f"one of {', '.join(sorted(demos))}")
    return _with(_demo(demos[name]), change)


_demo = cache(load_scenario)


def _with(scenario: Scenario, change: Mapping[str, Any]) -> Scenario:
    return parse_scenario(merged(scenario_tables(scenario), change))


def _value(text: Any, numbers: Numbers) -> float | int | str:
    """Return the value of a text that is one expression between braces."""
    found = _EXPRESSION.fullmatch(str(text).strip())
    if found is None:
        raise refuse("", "", str(text), "one expression between {{ and }}")
    return computed(found[1].partition("|")[0], numbers)


def _whole(value: float | int | str) -> float:
    if isinstance(value, str) or value != int(value):
        raise refuse("", "", value, "a whole number")
    return value


def _written(right: Answer, unit: str, within: float, op: OpTask | None) -> str:
    """Return an answer as it is printed."""
    if op is not None:
        return op.solution
    if isinstance(right, tuple):
        return f"{right[0]}, {right[1]}"
    if isinstance(right, str):
        return right
    digits = max(0, 1 - math.floor(math.log10(within))) if 0 < within < 1 else 0
    whole = right == int(right)
    number = f"{int(right):,}".replace(",", " ") if whole else f"{right:.{digits or 4}f}"
    return f"{number} {unit}".strip()
