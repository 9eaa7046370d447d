"""A lesson that has been read: its steps, and a step with its numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from simulator.base.errors import InputError, Mistake
from simulator.lesson.places import Framing, NumberPlace, Pointer
from simulator.lesson.predict import Prediction
from simulator.problem.scenario import Scenario
from simulator.program.playback import Cursor, first_cursor

if TYPE_CHECKING:
    from simulator.lesson.tables import ChooseTable, StepTable


@dataclass(frozen=True, slots=True)
class Step:
    """One good step of a lesson; its numbers are not computed yet."""

    # title, caption: its heading, and Markdown with formulas between dollar signs and ``{{ }}``
    title: str
    caption: str
    line: int  # line of its heading in the file, from 1
    said: StepTable  # the author's keys, including notes, question and answer
    scenario: Scenario  # complete
    start: Cursor | None  # where playing starts; None: the step does not play
    cursor: Cursor  # the place of the step, or where playing ends
    row: int  # the query row that is explained
    layout: str  # name of the window's layout
    # name of the panel that is in front of others in its place; "" for the layout's first
    panel: str
    choices: ChooseTable  # choices in panels
    points: tuple[Pointer, ...]  # things that the step points at
    pace: float  # how many times as fast as usual the step plays
    camera: Framing  # the part of the score matrix in sight

    @property
    def slide(self) -> str:
        """The first paragraph of the caption: what the stage says."""
        return paragraphs(self.caption)[0]


def paragraphs(caption: str) -> tuple[str, str]:
    """Return the first paragraph of a caption, and the others."""
    first, _, rest = caption.strip().partition("\n\n")
    return first, rest.strip()


@dataclass(frozen=True, slots=True)
class LessonMistake:
    """A part of a lesson that cannot be used."""

    source: str  # the file
    line: int  # line in it, from 1
    step: str  # title of the step, which is left out; "" for the front matter
    mistake: Mistake  # key, value and what was expected

    def __str__(self) -> str:
        return str(InputError(f"{self.source}:{self.line}", [self.mistake]))


@dataclass(frozen=True, slots=True)
class Lesson:
    """A lesson as far as it can be used."""

    source: str  # its file
    title: str  # title, summary: of the whole lesson
    summary: str
    order: int  # its place in the list of lessons
    steps: tuple[Step, ...]  # the steps that can be shown
    mistakes: tuple[LessonMistake, ...]  # mistakes in the rest of the file
    carried: Scenario  # the scenario that a further step would change


@dataclass(frozen=True, slots=True)
class ResolvedStep(Step):
    """A step with all numbers in its title and caption: what a player shows."""

    lesson: str  # title of the whole lesson
    number: int  # number, count: which step, from 0, of how many
    count: int
    notes: str  # notes, question, answer: for the speaker; "" where there is none
    question: str
    answer: str
    places: tuple[NumberPlace, ...] = ()  # numbers of caption and answer that have an origin
    prediction: Prediction | None = None  # the question before the step is shown
    waits: bool = False  # whether the step's question waits: the caption is the question alone

    @property
    def covered(self) -> tuple[str, ...]:
        """Names of the panels that are covered, because they would tell the answer."""
        return self.said.predict.cover if self.waits and self.said.predict is not None else ()


@dataclass(frozen=True, slots=True)
class LessonTitle:
    """One line of the list of lessons."""

    path: Path
    title: str
    summary: str
    order: int
    steps: tuple[str, ...]  # their titles
    part: int = 0  # the lesson's part of the course, from 1; 0 for none
    minutes: int = 0  # how long the lesson takes; 0 if its author does not say
    level: str = ""  # what readers know already; "" if its author does not say
    needs: tuple[str, ...] = ()  # names of lessons that come before it
    paths: tuple[str, ...] = ()  # paths that it is a part of
    brings: tuple[str, ...] = ()  # words, panels and ideas that no lesson before it uses
    ahead: bool = False  # whether it may use what later lessons bring

    @property
    def name(self) -> str:
        """The lesson's name without its number."""
        return self.path.stem.lstrip("0123456789-")


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the course, or the lessons beside the course."""

    number: int  # from 1; 0: beside the course
    title: str
    lessons: tuple[LessonTitle, ...]

    @property
    def numeral(self) -> str:
        """The part's number in Roman numerals; empty beside the course."""
        return ("", "I", "II", "III", "IV")[self.number]

    @property
    def minutes(self) -> int:
        """How long its lessons take together."""
        return sum(lesson.minutes for lesson in self.lessons)


def place_of_question(lesson: Lesson, number: int) -> Step:
    """Return the step that is shown while the question before a step waits.

    A step that plays waits where its playing starts. Any other step waits at the picture of the
    step before; the first step waits at the beginning of its own run.
    """
    step = lesson.steps[number]
    if step.start is not None:
        return replace(step, cursor=step.start, start=None, points=())
    if number == 0:
        return replace(step, cursor=first_cursor(), points=())
    return replace(lesson.steps[number - 1], start=None, points=())


def waiting(lesson: Lesson, step: ResolvedStep) -> ResolvedStep:
    """Return the moment before a step, in which its question waits: the question is its caption."""
    assert step.prediction is not None
    place = place_of_question(lesson, step.number)
    names = ("scenario", "cursor", "row", "layout", "panel", "choices", "camera", "points", "start")
    kept = {name: getattr(place, name) for name in names}
    return replace(
        step, **kept, caption=step.prediction.ask, question="", answer="", waits=True, places=()
    )
