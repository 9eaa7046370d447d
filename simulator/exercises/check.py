"""Checks of answers: whether an answer is right, and its mistake; results as a file."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simulator.base.errors import InputError, refuse
from simulator.base.files import write_atomically
from simulator.base.limits import read_bounded
from simulator.base.tables import read_toml
from simulator.base.version import version
from simulator.exercises.made import Answer, Exercise, Pair, same
from simulator.exercises.ops import calls_of
from simulator.exercises.process import SOURCE, judge
from simulator.exercises.tables import KINDS
from simulator.lesson.predict import read_number

FORMAT = 1  # number of the format of result files
_FACTORS = (2, 3, 4, 8, 10, 16, 32, 64, 100, 128, 1000, 1024)
_PAIR = re.compile(r"\s*\(?\[?\s*(\d{1,9})\s*[,x×;\s]\s*(\d{1,9})\s*\)?\]?\s*")
_PYTHON = ".py"


@dataclass(frozen=True, slots=True)
class ExerciseVerdict:
    """The verdict on an answer."""

    right: bool
    says: str


def check(exercise: Exercise, given: object) -> ExerciseVerdict:
    """Return whether an answer is right, and its mistake in words."""
    answer = read_answer(exercise, given)
    if exercise.op is not None:
        wrong = judge(exercise.op, str(answer), calls_of(exercise.op, exercise.scenario))
        return ExerciseVerdict(not wrong, wrong or exercise.why)
    if exercise.kind == "tile":
        assert isinstance(answer, tuple)
        return _tile(exercise, answer)
    if same(answer, exercise.answer, exercise.within):
        return ExerciseVerdict(True, exercise.why)
    for mistake, says in exercise.mistakes:
        if same(answer, mistake, exercise.within):
            return ExerciseVerdict(False, says)
    return ExerciseVerdict(False, _in_general(exercise, answer))


def read_answer(exercise: Exercise, given: object) -> Answer:
    """Return the answer in a text or in a value of TOML."""
    expected = KINDS[exercise.kind]
    if exercise.kind == "number":
        found = _number(given)
        if found is not None:
            return found
    elif exercise.kind in ("cell", "tile"):
        if isinstance(given, list | tuple):
            given = ", ".join(map(str, given))
        if pair := _PAIR.fullmatch(str(given)):
            return int(pair[1]), int(pair[2])
    elif exercise.options:
        texts = [option.text for option in exercise.options]
        number = _number(given)
        if number is not None and number in range(1, len(texts) + 1):
            return texts[int(number) - 1]
        if isinstance(given, str) and given.strip() in texts:
            return given.strip()
        expected = f"{expected}, 1 to {len(texts)}"
    elif isinstance(given, str):
        return given
    raise refuse("answers", exercise.name, given if given != "" else "nothing", expected)


def _number(given: object) -> float | None:
    if isinstance(given, bool):
        return None
    if isinstance(given, str):
        number = read_number(given)
        return number if number is None or not given.rstrip().endswith("%") else number / 100
    if isinstance(given, int | float) and math.isfinite(given):
        return given
    return None


def _in_general(exercise: Exercise, answer: Answer) -> str:
    right = exercise.answer
    if isinstance(right, str):
        says = next((o.says for o in exercise.options if o.text == answer), "")
        if exercise.kind == "fault":
            return f"That fault would look otherwise: {says}"
        return says or "Not this one."
    if isinstance(answer, tuple) and isinstance(right, tuple):
        if answer == right[::-1]:
            return "Row and column are the wrong way round."
        wrong = [word for word, a, b in zip(("row", "column"), answer, right, strict=True)
                 if a != b]  # fmt: skip
        return f"Wrong {' and '.join(wrong)}."
    assert isinstance(answer, int | float)
    assert isinstance(right, int | float)
    if right and answer == -right:
        return "The sign is wrong."
    for factor in _FACTORS:
        if right and same(answer, right * factor, exercise.within):
            return f"Too large, {factor} times the answer."
        if right and same(answer * factor, right, exercise.within):
            return f"Too small, the answer is {factor} times as much."
    return "Too large." if answer > right else "Too small."


def _tile(exercise: Exercise, answer: Pair) -> ExerciseVerdict:
    if answer not in exercise.tiles:
        rows = sorted({tile[0] for tile in exercise.tiles})
        cols = sorted({tile[1] for tile in exercise.tiles})
        raise refuse(
            "answers", exercise.name, f"{answer[0]} x {answer[1]}",
            f"rows of {', '.join(map(str, rows))}, columns of {', '.join(map(str, cols))}",
        )  # fmt: skip
    cost = exercise.tiles[answer]
    if cost.shared > exercise.limit:
        return ExerciseVerdict(
            False,
            f"It does not fit: it takes {_bytes(cost.shared)} of shared memory, a block may take "
            f"{_bytes(exercise.limit)}.",
        )
    assert isinstance(exercise.answer, tuple)
    least = exercise.tiles[exercise.answer].requested
    if cost.requested > least:
        return ExerciseVerdict(
            False,
            f"It fits, but requests {_bytes(cost.requested)} of HBM; another that fits requests "
            f"{_bytes(least)}.",
        )
    return ExerciseVerdict(True, exercise.why)


def _bytes(count: int) -> str:
    return f"{count:,} bytes".replace(",", " ")


# --- files ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Answers:
    """A file of answers."""

    path: Path
    lesson: str  # "" if the file does not say
    seed: int | None
    student: str
    given: Mapping[str, object]  # by the name of the exercise


def load_answers(path: Path) -> Answers:
    """Read a file of answers."""
    data = read_toml(path)
    kinds: dict[str, tuple[type, str]] = {
        "lesson": (str, "the name of a lesson"), "seed": (int, "a whole number"),
        "student": (str, "text in quotes"), "answers": (dict, "a table"),
    }  # fmt: skip
    for key, value in data.items():
        if key not in kinds:
            raise refuse(str(path), key, "", f"one of {', '.join(kinds)}")
        kind, words = kinds[key]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise refuse(str(path), key, value, words)
    given = data.get("answers", {}).items()
    answers = {name: _file_text(path, name, value) for name, value in given}
    return Answers(path, data.get("lesson", ""), data.get("seed"), data.get("student", ""), answers)


def _file_text(path: Path, name: str, value: object) -> object:
    """Return the text of a Python file that an answer names, or any other answer unchanged."""
    if not isinstance(value, str) or not value.endswith(_PYTHON) or "\n" in value:
        return value
    beside = path.parent / value
    try:
        return read_bounded(beside, SOURCE, "Python").decode("utf-8-sig")
    except InputError:
        raise
    except (OSError, ValueError):
        raise refuse(str(path), f"answers.{name}", value, "a readable file in UTF-8") from None


def results(
    exercises: Sequence[Exercise], answers: Answers
) -> tuple[list[tuple[Exercise, ExerciseVerdict | None]], dict[str, Any]]:
    """Return the verdict on each exercise, None without an answer, and the result as JSON."""
    names = [exercise.name for exercise in exercises]
    for name in answers.given:
        if name not in names:
            raise refuse(str(answers.path), f"answers.{name}", "", f"one of {', '.join(names)}")
    judged: list[tuple[Exercise, ExerciseVerdict | None]] = []
    for exercise in exercises:
        given = answers.given.get(exercise.name, "")
        try:
            judged.append((exercise, None if given == "" else check(exercise, given)))
        except InputError as error:
            raise InputError(str(answers.path), error.mistakes, error.others) from None
    return judged, {
        "format": FORMAT,
        "tilescope": version(),
        "lesson": exercises[0].lesson if exercises else "",
        "seed": exercises[0].seed if exercises else 0,
        "student": answers.student,
        "right": sum(verdict is not None and verdict.right for _, verdict in judged),
        "of": len(judged),
        "exercises": [
            {
                "name": exercise.name,
                "kind": exercise.kind,
                "ask": exercise.ask,
                "given": answers.given.get(exercise.name),
                "answer": list(exercise.answer)
                if isinstance(exercise.answer, tuple) else exercise.answer,
                "answered": verdict is not None,
                "right": verdict is not None and verdict.right,
                "says": verdict.says if verdict else "",
            }
            for exercise, verdict in judged
        ],
    }  # fmt: skip


def write_results(path: Path, found: Mapping[str, Any]) -> None:
    """Write a result file."""
    text = json.dumps(found, indent=1, ensure_ascii=True) + "\n"
    write_atomically(path, lambda out: out.write(text.encode()))


def printed(exercise: Exercise, number: int) -> str:
    """Return an exercise as lines for paper or a terminal, with its choices, without its answer."""
    lines = [f"{number}. {exercise.ask}"]
    lines += [f"   {n}) {option.text}" for n, option in enumerate(exercise.options, start=1)]
    if exercise.tiles:
        rows = sorted({tile[0] for tile in exercise.tiles})
        cols = sorted({tile[1] for tile in exercise.tiles})
        lines.append(f"   rows {', '.join(map(str, rows))}; columns {', '.join(map(str, cols))}")
    if exercise.op is not None:
        lines += [f"   {exercise.op.says}", f"   {exercise.op.head}"]
    return "\n".join(lines)
