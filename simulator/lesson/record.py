"""Writing lessons: a view is added as a step at the end of a lesson."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tomli_w

from simulator.base.assets import ASSETS
from simulator.base.errors import InputError, refuse
from simulator.base.files import write_atomically
from simulator.code.paper import PAPERS
from simulator.lesson.expressions import Formats, fill, replaced
from simulator.lesson.front import FRONT, HEADING, read_text
from simulator.lesson.places import Pointer
from simulator.lesson.reader import CLOSE, OPEN, parse_lesson
from simulator.lesson.tables import PlaceTable, PointTable, StepTable
from simulator.problem.scenario import Scenario, scenario_tables
from simulator.program.playback import Cursor, end_of_visit, first_cursor, last_cursor
from simulator.program.tile_program import TileProgram
from simulator.run.trace import Trace
from simulator.study.captions import Numbers, program_of, usual_run

MOST_WORDS = 45  # most words of a caption that people can read from the last row
TEXTS = ("title", "caption", "question", "answer", "notes")  # the texts that may contain ``{{ }}``


@dataclass(frozen=True, slots=True)
class NewStep:
    """A view and its texts, from which a step is made."""

    title: str  # its heading, one line
    scenario: Scenario  # the scenario that is shown
    cursor: Cursor  # cursor, start: the place of the step; and where it starts, if it plays
    start: Cursor | None = None
    row: int = 0  # the query row that is explained
    # layout, panel: name of the layout, and of its panel in front of others; "" for the previous
    # step's
    layout: str = ""
    panel: str = ""
    points: tuple[Pointer, ...] = ()  # things to point at
    # caption, question, answer, notes: Markdown with formulas and ``{{ }}``; question and answer,
    # or neither
    caption: str = ""
    question: str = ""
    answer: str = ""
    notes: str = ""


def new_lesson(title: str, summary: str = "", order: int = 0) -> str:
    """Return the text of a lesson without steps."""
    front: dict[str, Any] = {"title": title, "summary": summary, "order": order}
    return f"{FRONT}\n{tomli_w.dumps(front)}{FRONT}\n"


def word_count(caption: str) -> int:
    """Return how many words a caption has with its numbers filled in; each number is one word."""
    return len(replaced(caption, lambda _: "0").split())


def is_shipped(path: Path) -> bool:
    """Return whether a file is one of Tilescope's own, which are never written to."""
    try:
        return Path(os.path.realpath(path)).is_relative_to(ASSETS)
    except ValueError:  # no file can have this name
        return False


def record_step(path: Path, step: NewStep, copy_of: Path | None = None) -> int:
    """Add a view as a step at the end of a lesson's file; if there is no such file, it is made.

    Returns: how many steps the lesson has now.
    Raises InputError: the file cannot be read or written, is one of Tilescope's own, or is no
        lesson; or a text cannot be in a lesson. The file stays as it was.
    """
    text = with_step(lesson_text(path, copy_of), step, str(path), path.parent)
    write_atomically(path, lambda out: out.write(text.encode("utf-8")))
    return len(parse_lesson(text, str(path), path.parent).steps)


def lesson_text(path: Path, copy_of: Path | None = None) -> str:
    """Return the text that a step is added to: the file's, a copy's, or a new lesson's."""
    if is_shipped(path):
        raise refuse(str(path), "", "", "a file of yours: lessons that ship are not changed")
    if copy_of is not None:
        return _copied(copy_of, path)
    text = read_text(path) if os.path.exists(path) else ""
    return text if text.strip() else new_lesson(_title_of(path))


def _copied(source: Path, path: Path) -> str:
    """Return the text of a lesson; refuse a text that means something else in another folder."""
    if os.path.exists(path):
        raise refuse(str(path), "", "", "a new file for the copy: this one is there already")
    text = read_text(source)
    there, here = (parse_lesson(text, str(p), p.parent) for p in (source, path))
    if [s.scenario for s in here.steps] != [s.scenario for s in there.steps]:
        wanted = f"a file beside {source.name}, which names other files there"
        raise refuse(str(path), "", "", wanted)
    return text


def _title_of(path: Path) -> str:
    words = path.stem.replace("-", " ").replace("_", " ").strip()
    return words[:1].upper() + words[1:]


def with_step(text: str, step: NewStep, source: str = "lesson", folder: Path | None = None) -> str:
    """Return a lesson's text with one more step; the old text does not change at all.

    Of the scenario, only what differs from the previous step is written.
    """
    _check_texts(source, step)
    lesson = parse_lesson(text, source, folder)
    for wrong in lesson.mistakes:
        if not wrong.step:  # belongs to the front matter, or to words before the first step
            raise InputError(f"{source}:{wrong.line}", [wrong.mistake])
    clear, change = scenario_change(lesson.carried, step.scenario, folder)
    program = program_of(step.scenario)
    here = _place(program, step.cursor)
    said = StepTable(
        clear=clear,
        change=change,
        at=None if step.start else here,
        play=(_place(program, step.start), here) if step.start else None,
        row=step.row,
        layout=step.layout or None,
        panel=step.panel or None,
        point=tuple(_point(program, pointer) for pointer in step.points),
        question=step.question.strip(),
        answer=step.answer.strip(),
        notes=step.notes,
    )
    longer = text.rstrip() + "\n" + _step_text(step.title, said, step.caption)
    added = parse_lesson(longer, source, folder).mistakes[len(lesson.mistakes) :]
    if added:
        raise InputError(source, [wrong.mistake for wrong in added])
    return longer


def filled(
    step: NewStep, formats: Formats, run: Callable[[Scenario], Trace] = usual_run
) -> NewStep:
    """Return a step with the numbers filled into its texts, as they are at its cursor."""
    numbers = Numbers(step.scenario, step.cursor, run=run)
    title, caption, question, answer, notes = (
        fill(getattr(step, name), numbers, formats) for name in TEXTS
    )
    return replace(
        step, title=title, caption=caption, question=question, answer=answer, notes=notes
    )


def scenario_change(
    before: Scenario, after: Scenario, folder: Path | None = None
) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return the keys that a step clears and changes to get from one scenario to another."""
    old, new = scenario_tables(before), scenario_tables(after)
    path = new.get("input", {}).get("path")
    if path and folder is not None and path != old.get("input", {}).get("path"):
        try:
            new["input"]["path"] = Path(os.path.relpath(path, folder.absolute())).as_posix()
        except ValueError:  # another drive on Windows: only the absolute path reaches it
            new["input"]["path"] = path
    clear: list[str] = [table for table in old if table not in new]
    change: dict[str, Any] = {}
    for table, values in new.items():
        was = old.get(table)
        if not (isinstance(values, dict) and isinstance(was, dict)):
            change |= {table: values} if values != was else {}
            continue
        clear += [f"{table}.{key}" for key in was if key not in values]
        moved = {key: value for key, value in values.items() if was.get(key) != value}
        change |= {table: moved} if moved else {}
    return tuple(clear), change


def _place(program: TileProgram, cursor: Cursor) -> PlaceTable:
    """Return a cursor as a place that keeps its meaning after a change of the scenario."""
    for end, at in (("first", first_cursor()), ("last", last_cursor(program))):
        if cursor == at:
            return PlaceTable.model_validate({"end": end})
    visit = program.visit(cursor.visit)
    names = [op.name for op in program.ops(cursor.visit)]
    name = names[cursor.op]
    op = None if cursor == end_of_visit(program, cursor.visit) else name
    if op and names.index(name) != cursor.op:
        return PlaceTable(visit=cursor.visit, op=cursor.op)
    if program.launches[visit.launch].whole_rows:
        return PlaceTable(visit=cursor.visit, op=op)
    return PlaceTable(tile=(visit.i, visit.j), head=visit.head, launch=visit.launch, op=op)


def _point(program: TileProgram, pointer: Pointer) -> PointTable:
    if pointer.line is not None:
        return PointTable(line=PAPERS[program.workload.algorithm].lines[pointer.line].label)
    cell = pointer.cell
    return PointTable.model_validate(
        {
            "tile": pointer.tile,
            "row": pointer.row,
            "cell": (cell.tensor, cell.row, cell.col) if cell else None,
        }
    )


def _check_texts(source: str, step: NewStep) -> None:
    title, caption = step.title, step.caption
    if not title.strip() or not title.isprintable():
        raise refuse(source, "title", title, "a title of one line")
    if any(line.startswith(HEADING) for line in caption.split("\n")) or "\r" in caption:
        raise refuse(
            source, "caption", caption, f'text without a line that begins with "{HEADING}"'
        )
    if caption.lstrip().startswith("```toml"):
        raise refuse(source, "caption", caption, "text that does not begin with a block of TOML")
    for said, missing in (("question", "answer"), ("answer", "question")):
        if getattr(step, said).strip() and not getattr(step, missing).strip():
            raise refuse(source, missing, "", f"text: there is {said} without it")


def _step_text(title: str, said: StepTable, caption: str) -> str:
    data = said.model_dump(exclude_defaults=True)
    if said.at:
        data["at"] = _place_value(said.at)
    if said.play:
        data["play"] = [_place_value(place) for place in said.play]
    keys = "".join(f"{key} = {_inline(value)}\n" for key, value in _flat(data))
    return f"\n{HEADING}{title}\n\n{OPEN}\n{keys}{CLOSE}\n" + (f"\n{caption}\n" if caption else "")


def _place_value(place: PlaceTable) -> Any:
    said = place.model_dump(exclude_defaults=True)
    return next(iter(said.values())) if list(said) in (["end"], ["visit"]) else said


def _flat(data: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return the keys of a step, one for each line; keys in `change` are dotted."""
    change = data.pop("change", {})
    lines = list(data.items())
    at = [key for key, _ in lines].index("clear") + 1 if "clear" in data else 0
    dotted = [
        (f"change.{table}.{key}", value)
        for table, values in change.items()
        if isinstance(values, dict)
        for key, value in values.items()
    ]
    dotted += [(f"change.{table}", v) for table, v in change.items() if not isinstance(v, dict)]
    return lines[:at] + dotted + lines[at:]


def _inline(value: Any) -> str:
    """Return a value as TOML on one line; long texts over several."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_inline(v)}" for key, v in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_inline, value)) + "]"
    plain = isinstance(value, str) and "\n" in value and not set(value) & set('\r"\\')
    if plain and not any(line.startswith(("## ", "```")) for line in value.split("\n")):
        text = tomli_w.dumps({"x": value}, multiline_strings=True)
    else:
        text = tomli_w.dumps({"x": value})
    return text.removeprefix("x = ").rstrip("\n")
