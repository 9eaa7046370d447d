"""The plan of a lesson's frames: its steps laid out in time, with nothing computed."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise
from pathlib import Path

from simulator.base.assets import LESSONS
from simulator.exercises.made import lesson_name, raw_exercises
from simulator.lesson.record import word_count
from simulator.lesson.steps import Lesson, Step, place_of_question
from simulator.program.playback import SECONDS_PER_OP, Cursor, follows, path_between, seconds_along
from simulator.run.rescales import rescale_seconds_at
from simulator.study.captions import program_of, usual_run
from ui.export.options import ExportOptions
from ui.export.timeline import frames_in
from ui.look.units import plural
from ui.talk.lesson_player import PLAY_STEPS, WALK_SECONDS, WALK_STEPS

READING = 2.7  # words that are read in a second
SHORTEST = 3.0  # least seconds that a caption, or an answer, is shown
REST = 1.6  # least seconds that the place of a step is shown after the motion to it
BETWEEN = 0.5  # the same where the next step goes on from there, so that the motion does not wait
THINKING = 2.0  # seconds that a question stays after the time to read it
END_SECONDS = 5.0  # how long the slide is shown after the last step


@dataclass(frozen=True, slots=True)
class Shot:
    """One picture of a lesson."""

    step: int  # the step's number
    cursor: Cursor  # the state
    arrived: bool  # whether the state is at the place of the step, and not on the way there
    revealed: bool  # whether the answer is shown
    seconds: float  # how long the picture is shown
    # the state one op earlier, from which the picture moves in this time; None: it stands still
    before: Cursor | None = None
    ended: bool = False  # whether this is the slide after the lesson's last step
    asks: bool = False  # whether this is the moment before the step, in which a question waits


@dataclass(frozen=True, slots=True)
class LessonFrame:
    """The content of a frame."""

    shot: Shot  # the picture
    phase: float  # the share of the shot's time that has passed, 0 to 1
    since: float  # seconds of the film since the step, or the slide after the last step, began


@dataclass(frozen=True)
class Storyboard:
    """The frames of a lesson."""

    shots: tuple[Shot, ...]  # one after another
    ends: tuple[float, ...]  # seconds at which each shot ends
    fps: int  # fps, frames: frames a second, and in all
    frames: int
    steps: int  # how many steps are shown
    stills: bool = False  # whether each frame is a picture by itself: the end of its shot

    def moment(self, k: int) -> LessonFrame:
        """Return the content of frame `k`."""
        if self.stills:
            return LessonFrame(self.shots[k], 1.0, math.inf)
        if k + 1 == self.frames:
            return LessonFrame(self.shots[-1], 1.0, self.frames / self.fps)
        now = (k + 0.5) / self.frames * self.ends[-1]
        place = bisect_right(self.ends, now)
        shot = self.shots[place]
        first = self._first[shot.step, shot.ended]
        begin = self.ends[first - 1] if first else 0.0
        since = (now - begin) / self.ends[-1] * self.frames / self.fps
        phase = (now - (self.ends[place - 1] if place else 0.0)) / shot.seconds
        return LessonFrame(shot, phase, since)

    def shot_before(self, shot: Shot) -> Shot | None:
        """Return the last picture before a shot's step, or before the slide; None for the first."""
        first = self._first[shot.step, shot.ended]
        return self.shots[first - 1] if first else None

    @cached_property
    def _first(self) -> dict[tuple[int, bool], int]:
        """The place of the first picture of each step, and of the slide."""
        places = reversed(list(enumerate(self.shots)))
        return {(shot.step, shot.ended): place for place, shot in places}

    @property
    def words(self) -> str:
        """Frames, seconds and steps, for users."""
        seconds = self.frames / self.fps
        frames, steps = plural(self.frames, "frame"), plural(self.steps, "step")
        return f"{frames}, {seconds:.1f} s at {self.fps} fps, {steps}"


def make_storyboard(
    lesson: Lesson,
    steps: range,
    *,
    fps: int,
    pace: float | None = None,
    length: float | None = None,
) -> Storyboard:
    """Return the frames of some steps of a lesson.

    pace, length: seconds for each step on average, or in all; by default the time to read the
        captions.
    """
    shots = [shot for n in steps for shot in _shots(lesson, n, n == steps.start)]
    if steps.stop == len(lesson.steps):
        shots.append(replace(shots[-1], seconds=END_SECONDS, ended=True))
    ends = tuple(accumulate(shot.seconds for shot in shots))
    wanted = length or (pace * len(steps) if pace else ends[-1])
    key, value = ("--pace", pace) if pace else ("--length", length)
    frames = frames_in(wanted, fps, key, value, "--steps, --length or a lower --fps")
    return Storyboard(tuple(shots), ends, fps, frames, len(steps))


def _question(lesson: Lesson, number: int) -> Shot | None:
    """Return the picture of a step's question, which waits a moment; None without a question."""
    step = lesson.steps[number]
    asked = step.said.predict
    if asked is None:
        return None
    seconds = _reading(asked.ask, *asked.choices) + THINKING
    return Shot(number, place_of_question(lesson, number).cursor, False, False, seconds, asks=True)


def handout(
    lesson: Lesson, steps: Sequence[int], *, revealed: bool = True, questions: bool = False
) -> Storyboard:
    """Return a picture of each step's end; `questions`: before it, a picture of the question."""
    shots = []
    for n in steps:
        if questions and (question := _question(lesson, n)) is not None:
            shots.append(replace(question, seconds=1.0))
        shots.append(Shot(n, lesson.steps[n].cursor, True, revealed, 1.0))
    ends = tuple(accumulate(shot.seconds for shot in shots))
    return Storyboard(tuple(shots), ends, 1, len(shots), len(shots), stills=True)


def handout_words(lesson: Lesson, steps: range, options: ExportOptions) -> str:
    """Return the size and parts of a handout in words, for users."""
    pictures = handout(lesson, steps, questions=options.per_page == 1).frames
    pages = plural(-(-pictures // options.per_page), "page")
    if options.notes or options.per_page > 1:
        pages += " of A4"
    file, answers = Path(lesson.source), options.answers or "end"
    ours = options.steps is None and file.parent == LESSONS
    exercises = ours and bool(raw_exercises(lesson_name(file)))
    asked = any(lesson.steps[n].said.question for n in steps)
    answered = (asked and answers == "end") or (exercises and answers != "none")
    after = ["exercises"] * exercises + ["answers"] * answered
    return f"{pages}, then {' and '.join(after)}" if after else pages


def _shots(lesson: Lesson, number: int, first: bool) -> list[Shot]:
    """Return the pictures of a step: the way to its place, and the rest of the time to read it."""
    step = lesson.steps[number]
    out = []
    before = None if first else lesson.steps[number - 1]
    start, most = step.start, PLAY_STEPS
    later = lesson.steps[number + 1 : number + 2]
    least = BETWEEN if later and not step.said.question and _goes_on(step, later[0]) else REST
    if start is None and before is not None and before.scenario == step.scenario:
        start, most = before.cursor, WALK_STEPS
    if start is not None and start != step.cursor:
        program = program_of(step.scenario)
        path = path_between(program, start, step.cursor, most)
        opening, *lasts = seconds_along(
            program, start, path, step.pace,
            lambda at: rescale_seconds_at(usual_run(step.scenario), at, step.pace),
        )  # fmt: skip
        goes_on = before is not None and _goes_on(before, step)
        if goes_on:
            opening = 0.0  # the start has been seen already
        if step.start is None:
            # The way begins when the previous step has been shown for long enough; the last op of
            # the way is seen to happen.
            pace = min(WALK_SECONDS / len(path), SECONDS_PER_OP / 2)
            lasts[:-1] = [pace] * (len(path) - 1)
        else:
            out = [Shot(number, start, False, False, opening)] if opening else []
        for (here, there), seconds in zip(pairwise((start, *path)), lasts, strict=True):
            by_op = follows(program, here, there)
            if by_op or there != step.cursor:
                out.append(Shot(number, there, False, False, seconds, here if by_op else None))
    if (question := _question(lesson, number)) is not None:
        out.insert(0, question)
    asked = step.said.question
    # The caption is there from the beginning: it is read while something plays.
    spent = sum(shot.seconds for shot in out if not shot.asks)
    rest = max(_reading(step.slide, asked) - spent, least if spent else SHORTEST)
    out.append(Shot(number, step.cursor, True, False, rest))
    if asked:
        out.append(Shot(number, step.cursor, True, True, _reading(step.said.answer)))
    return out


def _goes_on(step: Step, later: Step) -> bool:
    """Return whether the next step plays on from the end of a step."""
    return later.scenario == step.scenario and later.start == step.cursor


def _reading(*texts: str) -> float:
    """Return the seconds that it takes to read some texts; a number counts as a word."""
    words = sum(word_count(text) for text in texts)
    return max(SHORTEST, words / READING)
