"""Lessons: Markdown files of steps, each with a caption and a state of the simulator.

A lesson starts with TOML front matter between lines of ``+++``. Each ``## `` heading begins a step:
a block ```` ```toml step ```` that says the state, then the caption. Scenarios are TOML, so
everything in a lesson that is not prose is TOML, too, and a step changes a scenario with the keys
of a scenario file.

When the file is read, each step is completed from the steps before, so steps can be shown in any
order. docs/writing-lessons.md has the format.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import fields, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from simulator.base.assets import SCENARIOS
from simulator.base.errors import InputError, Mistake, refuse, shortened, shown
from simulator.base.limits import (
    LESSON_STEPS,
    TEXT_LETTERS,
    TITLE_LETTERS,
)
from simulator.lesson.front import (
    HEADING,
    LinesError,
    front_matter,
    line_of,
    read_table,
    read_text,
)
from simulator.lesson.places import cursor_of, framing_of, pointer_of, whole
from simulator.lesson.predict import Prediction
from simulator.lesson.steps import Lesson, LessonMistake, ResolvedStep, Step
from simulator.lesson.tables import ChooseTable, PredictTable, StepTable
from simulator.problem.scenario import (
    Scenario,
    load_scenario,
    merged,
    parse_scenario,
    scenario_tables,
    with_values,
)
from simulator.program.playback import first_cursor
from simulator.program.tile_program import TileProgram
from simulator.run.cell_values import cell_shape, exists
from simulator.run.snapshot import Cell
from simulator.run.trace import Trace
from simulator.study.barrier import Watch, recorded_race

if TYPE_CHECKING:
    from simulator.lesson.expressions import Formats
    from simulator.study.captions import Numbers

OPEN, CLOSE = "```toml step", "```"
FIRST_LAYOUT = "steps"
_TEXTS = ("notes", "question", "answer")

R = TypeVar("R")


# --- reading ----------------------------------------------------------------------------------


def load_lesson(path: str | os.PathLike[str], layouts: Collection[str] = ()) -> Lesson:
    """Read a lesson; a broken step is left out and told in `Lesson.mistakes`.

    path: the file; scenarios and inputs that it names are looked up in its folder.
    layouts: names that a step's `layout` may have; any if empty. A mapping gives the names of the
        panels that each has.
    """
    return parse_lesson(read_text(Path(path)), str(path), Path(path).parent, layouts)


def parse_lesson(
    text: str, source: str = "lesson", folder: Path | None = None, layouts: Collection[str] = ()
) -> Lesson:
    """Return the lesson in a text; paths start in `folder`, or in the working folder."""
    lines = text.split("\n")
    front, begin, mistakes = front_matter(lines, source)
    reader = _Reader(source, folder or Path(), layouts)
    starts = [n for n in range(begin, len(lines)) if lines[n].startswith(HEADING)]
    for n in range(begin, starts[0] if starts else len(lines)):
        if lines[n].strip():
            expected = f'a step, which begins with "{HEADING}" and its title'
            mistakes.append(
                LessonMistake(source, n + 1, "", Mistake("", shown(lines[n]), expected))
            )
            break
    for n, stop in pairwise([*starts, len(lines)][: LESSON_STEPS + 1]):
        reader.read(lines[n:stop], n + 1)
    if len(starts) > LESSON_STEPS:
        n = starts[LESSON_STEPS]
        wrong = Mistake("steps", str(len(starts)), f"at most {LESSON_STEPS} steps")
        mistakes.append(LessonMistake(source, n + 1, "", wrong))
    return Lesson(
        source=source,
        title=front.title or Path(source).stem,
        summary=front.summary,
        order=front.order,
        steps=tuple(reader.steps),
        mistakes=(*mistakes, *reader.mistakes),
        carried=reader.scenario,
    )


class _Reader:
    """Reads steps in their order and keeps what the next step starts from."""

    def __init__(self, source: str, folder: Path, layouts: Collection[str]) -> None:
        self._source = source
        self._folder = folder
        self._layouts = layouts
        self.scenario = Scenario()
        self._file: Scenario | None = None
        """The scenario in the file whose title still holds; None once the lesson sets a title."""
        self.steps: list[Step] = []
        self.mistakes: list[LessonMistake] = []

    def read(self, lines: list[str], line: int) -> None:
        """Read the lines of one step, the first of them at `line` of the file."""
        title = lines[0][len(HEADING) :].strip()
        try:
            first, block, caption = _split(lines)
        except LinesError as wrong:
            self._tell(wrong.found, line, title)
            return
        try:
            said = read_table(StepTable, block)
            self._add(said, title, caption, line)
        except LinesError as wrong:
            self._tell(wrong.found, line + first, title)
        except InputError as error:
            found = [(line_of(block, m.key), m) for m in error.mistakes]
            self._tell(found, line + first, title)
        except _TextError as wrong:
            above, there, _ = "\n".join(lines).partition(wrong.piece)
            # A text of the block may contain the piece in other letters, as \u007b for a brace.
            at = above.count("\n") + 1 if there else first + line_of(block, wrong.key)
            self._tell([(at, wrong.mistake)], line, title)

    def _tell(self, found: list[tuple[int, Mistake]], line: int, title: str) -> None:
        """Note mistakes whose lines are counted from 1 at `line`."""
        self.mistakes += [LessonMistake(self._source, line + n - 1, title, m) for n, m in found]

    def _add(self, said: StepTable, title: str, caption: str, line: int) -> None:
        from simulator.study.captions import program_of

        before = self.steps[-1] if self.steps else None
        scenario = self.scenario = self._changed(said)
        # A step whose cursor is wrong has still changed the scenario.
        program = _keyed("change", lambda: program_of(scenario))
        same = before is not None and before.scenario == scenario
        here = before.cursor if before and same else first_cursor()
        start = None
        if said.play:
            start, cursor = (cursor_of(program, place, here, "play") for place in said.play)
            if cursor < start:
                raise refuse("", "play", "", "an end that does not come before the start")
        else:
            cursor = cursor_of(program, said.at, here, "at") if said.at else here
        row = said.row if said.row is not None else before.row if before and same else 0
        if row >= program.workload.seqlen_q:
            raise refuse("", "row", row, f"0 to {program.workload.seqlen_q - 1}")
        layout = said.layout or (before.layout if before else FIRST_LAYOUT)
        if self._layouts and layout not in self._layouts:
            raise refuse("", "layout", layout, f"one of {', '.join(self._layouts)}")
        stays = before is not None and before.layout == layout
        panel = said.panel or (before.panel if before and stays else "")
        panels = self._layouts.get(layout, ()) if isinstance(self._layouts, Mapping) else ()
        if said.panel and panels and panel not in panels:
            raise refuse("", "panel", panel, f"one of {', '.join(panels)}")
        chosen = said.choose.model_dump(exclude_none=True)
        choices = (before.choices if before else ChooseTable()).model_copy(update=chosen)
        points = tuple(pointer_of(program, point) for point in said.point)
        camera = before.camera if before and same else whole(program)
        if said.camera is not None:
            camera = framing_of(program, said.camera)
        _check_texts(title, caption, said)
        if said.predict is not None:
            _check_predict(program, said.predict)
            waits = layout if start is not None or before is None else before.layout
            known = self._layouts.get(waits, ()) if isinstance(self._layouts, Mapping) else ()
            for name in said.predict.cover:
                if known and name not in known:
                    raise refuse("", "predict.cover", name, f"one of {', '.join(known)}")
        self.steps.append(
            Step(
                title, caption, line, said, scenario, start, cursor, row, layout, panel,
                choices, points, said.pace, camera,
            )
        )  # fmt: skip

    def _changed(self, said: StepTable) -> Scenario:
        """Return the scenario of a step."""
        base = self.scenario
        if said.scenario:
            base = self._file = self._named(said.scenario)
        if "title" in said.change or "title" in said.clear:
            self._file = None
        data = scenario_tables(base)
        for name in said.clear:
            table, _, key = name.partition(".")
            field = Scenario.model_fields.get(table)
            inner = getattr(field.annotation, "model_fields", {}) if field else {}
            if field is None or (key and key not in inner):
                raise refuse("", "clear", name, "a table or a key of a scenario, as mask.window")
            if key:
                data.get(table, {}).pop(key, None)
            else:
                data.pop(table, None)
        scenario = _keyed("change", lambda: parse_scenario(merged(data, said.change)))
        path = said.change.get("input", {}).get("path")
        if path:
            absolute = os.path.normpath((self._folder / path).absolute())
            scenario = with_values(scenario, {"input": {"path": absolute}})
        if self._file is None:
            return scenario
        own = with_values(scenario, {"title": self._file.title})
        return own if own == self._file else with_values(scenario, {"title": ""})

    def _named(self, name: str) -> Scenario:
        """Return a demo, or the scenario in a file in the lesson's folder."""
        if name.endswith(".toml"):
            try:
                return load_scenario(self._folder / name)
            except InputError as error:
                raise refuse("", "scenario", name, f"a scenario that opens: {error}") from None
        demos = {path.stem: path for path in sorted(SCENARIOS.glob("*.toml"))}
        if name not in demos:
            raise refuse("", "scenario", name, f"a .toml file or one of {', '.join(demos)}")
        return load_scenario(demos[name])


def _keyed(prefix: str, make: Callable[[], R]) -> R:
    """Return the result of `make`; keys in its errors get `prefix` before them."""
    try:
        return make()
    except InputError as error:
        mistakes = [
            replace(m, key=f"{prefix}.{m.key}" if m.key else prefix) for m in error.mistakes
        ]
        raise InputError("", mistakes, error.others) from None


def _split(lines: list[str]) -> tuple[int, list[str], str]:
    """Return where the TOML block of a step begins, the block, and the caption."""
    first = next((n for n in range(1, len(lines)) if lines[n].strip()), len(lines))
    opening = lines[first].strip() if first < len(lines) else ""
    if not opening.startswith("```toml"):
        return first, [], "\n".join(lines[1:]).strip()
    if opening != OPEN:
        raise LinesError([(first + 1, Mistake("", shown(opening), OPEN))])
    last = next((n for n in range(first, len(lines)) if lines[n].strip() == CLOSE), None)
    if last is None:
        raise LinesError([(first + 1, Mistake("", OPEN, f"a line of {CLOSE} after its keys"))])
    return first + 1, lines[first + 1 : last], "\n".join(lines[last + 1 :]).strip()


# --- texts ------------------------------------------------------------------------------------


class _TextError(Exception):
    """A text that is too long, or the part of a text that can never be a number."""

    def __init__(self, key: str, piece: str, mistake: Mistake) -> None:
        super().__init__(key, piece, mistake)
        self.key = key
        self.piece = piece
        self.mistake = mistake


def _check_texts(title: str, caption: str, said: StepTable) -> None:
    from simulator.lesson.expressions import first_mistake

    for key, text in _texts(title, caption, said):
        most = TITLE_LETTERS if text is title else TEXT_LETTERS
        if len(text) > most:
            wrong = Mistake(key, f"{len(text)} characters", f"a text of at most {most}")
            raise _TextError(key, text, wrong)
        if found := first_mistake(text):
            content, error = found
            raise _TextError(key, f"{{{{{content}}}}}", error.mistakes[0])


def _texts(title: str, caption: str, said: StepTable) -> Iterator[tuple[str, str]]:
    yield "", title
    yield "", caption
    yield from ((key, getattr(said, key)) for key in _TEXTS)
    if (asked := said.predict) is not None:
        yield from (("predict", text) for text in (asked.ask, asked.answer, asked.hint))
        yield from (("predict", text) for text in asked.choices)


def _check_predict(program: TileProgram, asked: PredictTable) -> None:
    """Refuse an answer that nobody could give."""
    from simulator.lesson.expressions import number_asked, the_expression

    key = "predict.answer"
    if asked.within is not None:
        unit = _keyed("predict", lambda: number_asked(asked.answer))
        if unit and asked.unit:
            raise refuse("", "predict.unit", asked.unit, f"no unit, as the format gives {unit}")
    elif the_expression(asked.answer) is None:
        expected = "one {{ expression | format }} and nothing else"
        raise refuse("", key, asked.answer, expected)
    if asked.click is not None:
        tensor, row = asked.click
        if not exists(program.workload, Cell(tensor, row, 0)):
            rows, _ = cell_shape(program.workload, tensor)
            raise refuse("", "predict.click", list(asked.click), f"a row of {rows}")


def _prediction(asked: PredictTable, numbers: Numbers, formats: Formats) -> Prediction:
    """Return a question with its answer computed at the place of the step."""
    from simulator.lesson.expressions import computed_number, fill, number_asked

    ask, hint = (fill(text, numbers, formats) for text in (asked.ask, asked.hint))
    if asked.choices:
        choices = tuple(fill(text, numbers, formats) for text in asked.choices)
        right = fill(asked.answer, numbers, formats)
        if choices.count(right) != 1 or len(set(choices)) < len(choices):
            expected = f"one of {'; '.join(choices)}, which all differ"
            raise refuse("", "predict.answer", right, expected)
        return Prediction(ask, hint, choices.index(right), choices=choices)
    truth, digits = computed_number(asked.answer, numbers)
    if asked.click is not None:
        tensor, row = asked.click
        column = int(truth) if truth == int(truth) else -1
        if not exists(numbers.workload, Cell(tensor, row, column)):
            raise refuse("", "predict.answer", truth, f"a column of {tensor}")
        return Prediction(ask, hint, column, click=asked.click)
    assert asked.within is not None
    low, high = asked.span or (truth, truth)
    if not low <= truth <= high:
        raise refuse("", "predict.span", [low, high], f"ends around the answer, {truth:g}")
    unit = asked.unit or number_asked(asked.answer)
    return Prediction(ask, hint, truth, digits, unit, asked.within, asked.span)


def resolve_step(
    lesson: Lesson,
    number: int,
    formats: Formats,
    watch: Watch = recorded_race,
    run: Callable[[Scenario], Trace] | None = None,
) -> ResolvedStep:
    """Return a step with its numbers computed.

    The result depends only on the lesson, the number and `watch`: going back gives the same state.

    number: which of the lesson's good steps, from 0.
    watch: shows a race of a kernel; by default, the recorded race.
    run: gives the run of a scenario, for the numbers; by default, a run on NumPy.
    """
    from simulator.lesson.expressions import fill
    from simulator.lesson.origins import fill_placed
    from simulator.study.captions import Numbers, usual_run

    if not 0 <= number < len(lesson.steps):
        raise IndexError(f"step {number}: expected 0 to {len(lesson.steps) - 1}")
    step = lesson.steps[number]
    numbers = Numbers(step.scenario, step.cursor, watch=watch, run=run or usual_run)
    try:
        title = fill(step.title, numbers, formats)
        caption, places = fill_placed(step.caption, numbers, formats, "caption")
        others = {key: fill(getattr(step.said, key), numbers, formats) for key in _TEXTS}
        asked = step.said.predict
        prediction = _prediction(asked, numbers, formats) if asked is not None else None
        places += fill_placed(step.said.answer, numbers, formats, "answer")[1]
    except InputError as error:
        where = f"{lesson.source}:{step.line}"
        raise InputError(
            where, [replace(m, value=shortened(m.value)) for m in error.mistakes], error.others
        ) from None
    said: dict[str, Any] = {each.name: getattr(step, each.name) for each in fields(step)}
    said |= {
        "title": title,
        "caption": caption,
        "prediction": prediction,
        "places": places,
        **others,
    }
    return ResolvedStep(**said, lesson=lesson.title, number=number, count=len(lesson.steps))
