"""The front matter of a lesson: TOML between lines of ``+++`` at its top."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import BeforeValidator, Field, ValidationError

from simulator.base.errors import Mistake, reason
from simulator.base.limits import LESSON_BYTES, TEXT_LETTERS, TITLE_LETTERS, read_utf8
from simulator.base.tables import Table, Texts, as_tuple, input_error, parse_toml
from simulator.lesson.steps import LessonMistake

FRONT = "+++"
HEADING = "## "
PARTS = (
    "What attention computes",
    "How a GPU computes it",
    "How a server uses it",
    "Longer, sparser, other",
)
"""The parts of the course, by number from 1."""
Level = Literal["linear algebra", "machine learning", "GPU", "lecturers"]
"""What readers know already, or who a lesson is for."""
MOST_MINUTES = 120
PathName = Literal["linear algebra", "ML engineer", "CUDA engineer"]
"""Whom a path through the course is for."""


class FrontTable(Table):
    """Front matter."""

    title: Annotated[
        str, Field(max_length=TITLE_LETTERS, description="its name; the one key that must be there")
    ]
    summary: Annotated[
        str, Field(max_length=TEXT_LETTERS, description="one line for the list of lessons")
    ] = ""
    order: Annotated[int, Field(description="its place in that list, a number")] = 0
    part: Annotated[
        int | None, Field(ge=1, le=len(PARTS), description="the part of the course it stands in")
    ] = None
    minutes: Annotated[
        int | None, Field(ge=1, le=MOST_MINUTES, description="how long it takes, about one a step")
    ] = None
    level: Annotated[
        Level | None, Field(description="what one knows already, or who it is for")
    ] = None
    needs: Annotated[
        Texts,
        Field(description='lessons that come before it, by name: `["soft-lookup"]`'),
    ] = ()
    paths: Annotated[
        tuple[PathName, ...], BeforeValidator(as_tuple), Field(description="paths it is a part of")
    ] = ()
    brings: Annotated[
        Texts,
        Field(description="words of the glossary, panels and ideas that no lesson before it uses"),
    ] = ()
    ahead: Annotated[
        bool, Field(description="whether it may use what later lessons bring: a trailer, a review")
    ] = False


T = TypeVar("T", bound=Table)


def read_text(path: Path) -> str:
    """Return the text of a file."""
    return read_utf8(path, LESSON_BYTES, "a lesson", "Markdown").replace("\r\n", "\n")


def front_matter(lines: list[str], source: str) -> tuple[FrontTable, int, list[LessonMistake]]:
    """Return the front matter, the line after it, and its mistakes."""
    first = next((n for n, line in enumerate(lines) if line.strip()), 0)
    if lines[first].strip() != FRONT:
        wrong = Mistake("title", "", f"front matter between lines of {FRONT} at the top")
        return FrontTable(title=""), 0, [LessonMistake(source, first + 1, "", wrong)]
    rest = range(first + 1, len(lines))
    last = next((n for n in rest if lines[n].strip() == FRONT), None)
    if last is None:
        wrong = Mistake("", FRONT, f"another line of {FRONT} after the front matter")
        begin = next((n for n in rest if lines[n].startswith(HEADING)), len(lines))
        return FrontTable(title=""), begin, [LessonMistake(source, first + 1, "", wrong)]
    try:
        return read_table(FrontTable, lines[first + 1 : last]), last + 1, []
    except LinesError as wrong:
        found = [LessonMistake(source, first + 1 + n, "", m) for n, m in wrong.found]
        return FrontTable(title=""), last + 1, found


class LinesError(Exception):
    """Mistakes with their lines in a block, counted from 1."""

    def __init__(self, found: list[tuple[int, Mistake]]) -> None:
        super().__init__(found)
        self.found = found


def read_table(model: type[T], lines: list[str]) -> T:
    """Return a table of TOML; errors are raised with their lines."""
    text = "\n".join(lines)
    try:
        return model.model_validate(parse_toml(text))
    except ValidationError as error:
        mistakes = input_error("", error, model).mistakes
    except (ValueError, RecursionError) as error:
        at = re.search(r"\(at line (\d+)", str(error))
        line = int(at[1]) if at else len(lines)
        wrong = Mistake("", "", f"TOML ({reason(error).partition(' (at ')[0]})")
        raise LinesError([(max(1, min(line, len(lines))), wrong)]) from None
    # "end" is what `place` calls a bare "first" or "last".
    found = [replace(m, key=m.key.removesuffix(".end")) for m in mistakes]
    raise LinesError([(line_of(lines, m.key), m) for m in found])


def line_of(lines: list[str], key: str) -> int:
    """Return the line of a TOML block, from 1, that sets a dotted key, or one near it."""
    found, start = 0, 0
    for part in key.split("."):
        word = re.compile(rf"(?<![\w-]){re.escape(part)}(?![\w-])")
        at = next((n for n in range(start, len(lines)) if word.search(lines[n])), None)
        if at is not None and not part.isdigit():
            found = start = at
    return found + 1
