"""A lesson that has been read: its steps, and a step with its numbers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from simulator.base.errors import InputError, Mistake
from simulator.lesson.places import Framing, Pointer
from simulator.lesson.tables import ChooseTable, StepTable
from simulator.problem.scenario import Scenario
from simulator.program.playback import Cursor


@dataclass(frozen=True, slots=True)
class Step:
    """One good step of a lesson; its numbers are not computed yet.

    Attributes
    ----------
    title, caption : str
        Its heading, and Markdown with formulas between dollar signs and ``{{ }}``.
    line : int
        Line of its heading in the file, from 1.
    said : StepTable
        What its author wrote, including notes, question and answer.
    scenario : Scenario
        Complete.
    start : Cursor or None
        Where playing starts; None: the step does not play.
    cursor : Cursor
        The place of the step, or where playing ends.
    row : int
        The query row that is explained.
    layout : str
        Name of the window's layout.
    panel : str
        Name of the panel that is in front of others in its place; "" for the layout's first.
    choices : ChooseTable
        What is chosen in panels.
    points : tuple of Pointer
        What it points at.
    pace : float
        How many times as fast as usual it plays.
    camera : Framing
        What of the score matrix is in sight.
    """

    title: str
    caption: str
    line: int
    said: StepTable
    scenario: Scenario
    start: Cursor | None
    cursor: Cursor
    row: int
    layout: str
    panel: str
    choices: ChooseTable
    points: tuple[Pointer, ...]
    pace: float
    camera: Framing


@dataclass(frozen=True, slots=True)
class LessonMistake:
    """Something in a lesson that cannot be used.

    Attributes
    ----------
    source : str
        The file.
    line : int
        Line in it, from 1.
    step : str
        Title of the step, which is left out; "" for the front matter.
    mistake : Mistake
        Key, value and what was expected.
    """

    source: str
    line: int
    step: str
    mistake: Mistake

    def __str__(self) -> str:
        return str(InputError(f"{self.source}:{self.line}", [self.mistake]))


@dataclass(frozen=True, slots=True)
class Lesson:
    """A lesson as far as it can be used.

    Attributes
    ----------
    source : str
        Its file.
    title, summary : str
        What it is about.
    order : int
        Its place in the list of lessons.
    steps : tuple of Step
        Those that can be shown.
    mistakes : tuple of LessonMistake
        What is wrong with the others.
    carried : Scenario
        The scenario that a further step would change.
    """

    source: str
    title: str
    summary: str
    order: int
    steps: tuple[Step, ...]
    mistakes: tuple[LessonMistake, ...]
    carried: Scenario


@dataclass(frozen=True, slots=True)
class ResolvedStep:
    """A step with its numbers computed: what a player shows.

    Attributes
    ----------
    lesson : str
        Title of the whole lesson.
    number, count : int
        Which step, from 0, of how many.
    title, caption : str
        Heading, and Markdown with formulas between dollar signs; all numbers are in it.
    notes, question, answer : str
        For the speaker; "" where there is none.
    scenario, start, cursor, row, layout, panel, choices, points, pace, camera
        As in `Step`.
    """

    lesson: str
    number: int
    count: int
    title: str
    caption: str
    notes: str
    question: str
    answer: str
    scenario: Scenario
    start: Cursor | None
    cursor: Cursor
    row: int
    layout: str
    panel: str
    choices: ChooseTable
    points: tuple[Pointer, ...]
    pace: float
    camera: Framing


@dataclass(frozen=True, slots=True)
class LessonTitle:
    """One line of the list of lessons."""

    path: Path
    title: str
    summary: str
    order: int
