"""The entries of the search, made from the tables from which the window itself is made."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices

from simulator.base.assets import ASSETS
from simulator.base.glossary import glossary
from simulator.base.references import references
from simulator.base.tables import read_toml
from simulator.exercises.made import lesson_name, raw_exercises
from simulator.lesson.course import list_lessons
from simulator.problem.hardware import gpus
from simulator.problem.models import models
from simulator.problem.scenario import with_values
from ui.look.layouts import LAYOUTS
from ui.look.units import plural
from ui.panels.scenario.blanks import blanks
from ui.panels.scenario.fields import FIELDS, FieldSpec, texts
from ui.window.actions import ACTIONS
from ui.window.file_menu import demo_paths, demo_title
from ui.window.panel_specs import GROUPED, GROUPS, PANELS

if TYPE_CHECKING:
    from ui.window.main_window import MainWindow

SYNONYMS = ASSETS / "search.toml"


class Kind(Enum):
    """The kind of an entry; among equally good entries the earlier kind comes first."""

    ACTION = "Action", "actions"
    FIELD = "Field", "fields"
    LESSON = "Lesson", "lessons"
    STEP = "Step", "steps"
    EXERCISE = "Exercise", "exercises"
    WORD = "Word", "words"
    DEMO = "Demo", "demos"
    PANEL = "Panel", "panels"
    GROUP = "Group", "groups"
    LAYOUT = "Layout", "layouts"
    MODEL = "Model", "models"
    GPU = "GPU", "gpus"
    PAPER = "Paper", "papers"

    def __init__(self, title: str, table: str) -> None:
        self.title = title
        self.table = table

    @property
    def titles(self) -> str:
        """The plural of the title."""
        return f"{self.title}s"


@dataclass(frozen=True, slots=True, eq=False)
class SearchEntry:
    """One entry that can be found.

    value: returns the entry's present value in words.
    go: does the entry's act, or goes there; None: the box itself explains the entry.
    """

    kind: Kind
    name: str  # its name in the program
    title: str
    does: str  # the entry's effect or meaning, in one sentence
    also: tuple[str, ...]  # its other names
    keys: str = ""
    value: Callable[[MainWindow], str] = lambda window: ""
    go: Callable[[MainWindow], Any] | None = None

    @property
    def id(self) -> str:
        """A name that no other entry has."""
        return f"{self.kind.table}:{self.name}"

    def said(self, window: MainWindow) -> str:
        """Return the entry as a screen reader says it."""
        parts = self.title, self.kind.title, self.does, self.keys, self.value(window)
        return ", ".join(filter(None, parts))


@cache
def entries() -> tuple[SearchEntry, ...]:
    """Return all entries that can be found, kind by kind."""
    called = read_toml(SYNONYMS)
    makers = (
        _actions, _fields, _lessons, _exercises, _words, _demos, _panels, _groups, _layouts,
        _models, _gpus, _papers,
    )  # fmt: skip
    found = [entry for make in makers for entry in make(called)]
    return tuple(sorted(found, key=lambda entry: list(Kind).index(entry.kind)))


Called = dict[str, dict[str, list[str]]]
"""Other names of a thing, by kind and name."""


def _also(called: Called, kind: Kind, name: str) -> tuple[str, ...]:
    """Return the other names of a thing; last, the words of its name in the program."""
    words = name.lstrip("0123456789-_").replace("-", " ").replace("_", " ")
    return (*called.get(kind.table, {}).get(name, ()), words)


def _saying(words: str) -> Callable[[MainWindow], str]:
    return lambda window: words


def _actions(called: Called) -> Iterator[SearchEntry]:
    for spec in ACTIONS:
        *said, own = _also(called, Kind.ACTION, spec.name)
        does, *also = said or [f"In the menu {spec.menu}."]
        yield SearchEntry(
            Kind.ACTION, spec.name, spec.text.rstrip("…"), does, (*also, own),
            keys=spec.keys[0] if spec.keys else "",
            value=partial(_action_now, name=spec.name),
            go=partial(lambda name, w: w.actions_by_name[name].trigger(), spec.name),
        )  # fmt: skip


def _action_now(window: MainWindow, name: str) -> str:
    action = window.actions_by_name[name]
    if not action.isEnabled():
        return "nothing to do it to"
    return ("now on" if action.isChecked() else "now off") if action.isCheckable() else ""


def _fields(called: Called) -> Iterator[SearchEntry]:
    for spec in FIELDS:
        yield SearchEntry(
            Kind.FIELD, spec.name, spec.label, spec.help, spec.also,
            value=partial(_field_now, spec=spec),
        )  # fmt: skip


def _field_now(window: MainWindow, spec: FieldSpec) -> str:
    trace = window.session.trace
    if trace is None:
        return ""
    said = texts(trace.workload.scenario)
    meaning = blanks(trace.workload, said)
    if not said[spec.name] and spec.name in meaning:
        return f"now {meaning[spec.name].hint}"
    text = said[spec.name] or spec.default
    text = dict(spec.choices()).get(text, text)
    return f"now {text}" if text else "not said"


def _lessons(called: Called) -> Iterator[SearchEntry]:
    for lesson in list_lessons():
        path, count = lesson.path, len(lesson.steps)
        also = _also(called, Kind.LESSON, path.stem)
        yield SearchEntry(
            Kind.LESSON, path.stem, lesson.title, lesson.summary, also,
            value=_saying(plural(count, "step")),
            go=partial(lambda path, w: w.lessons.open(path), path),
        )  # fmt: skip
        for number, title in enumerate(lesson.steps):
            yield SearchEntry(
                Kind.STEP, f"{path.stem}/{number}", title,
                f"{lesson.title}, step {number + 1} of {count}",
                (f"{lesson.title} {number + 1}", f"{lesson.title} step {number + 1}"),
                value=_saying("opens the step"),
                go=partial(lambda path, number, w: w.lessons.open(path, number), path, number),
            )  # fmt: skip


_DRAWN = re.compile(r"\{\{.*?\}\}|<\w+>")
"""Numbers of a question that a seed draws or the program computes."""


def _exercises(called: Called) -> Iterator[SearchEntry]:
    for lesson in list_lessons():
        raw = raw_exercises(lesson_name(lesson.path))
        for number, each in enumerate(raw, start=1):
            name = str(each["name"])
            yield SearchEntry(
                Kind.EXERCISE, f"{lesson.path.stem}/{name}",
                f"{lesson.title}: {name.replace('-', ' ')}", _DRAWN.sub("…", str(each["ask"])),
                (f"{lesson.title} exercise {number}",),
                value=_saying(f"exercise {number} of {len(raw)}"),
                go=partial(_practise, path=lesson.path, name=name),
            )  # fmt: skip


def _practise(window: MainWindow, path: Path, name: str) -> None:
    from ui.talk.exercises_dialog import open_exercises

    open_exercises(window, path, name)


def _words(called: Called) -> Iterator[SearchEntry]:
    for word in glossary():
        yield SearchEntry(
            Kind.WORD, word.name, word.name, word.says, word.also,
            value=_saying("glossary"),
        )  # fmt: skip


def _papers(called: Called) -> Iterator[SearchEntry]:
    for paper in references():
        yield SearchEntry(
            Kind.PAPER, paper.name, paper.name, paper.line, (paper.title, *paper.also),
            value=_saying("opens the browser"),
            go=partial(lambda link, _: QDesktopServices.openUrl(QUrl(link)), paper.link),
        )  # fmt: skip


def _demos(called: Called) -> Iterator[SearchEntry]:
    for path in demo_paths():
        title = read_toml(path).get("title", "")
        yield SearchEntry(
            Kind.DEMO, path.stem, demo_title(path), title, _also(called, Kind.DEMO, path.stem),
            value=_saying("replaces this run"),
            go=partial(lambda path, w: w.files.open_by_hand(path), path),
        )  # fmt: skip


_IN_SIGHT = "", "in sight"


def _panels(called: Called) -> Iterator[SearchEntry]:
    for spec in sorted(PANELS, key=lambda spec: spec.name in GROUPED):
        yield SearchEntry(
            Kind.PANEL, spec.name, spec.title, spec.tip, _also(called, Kind.PANEL, spec.name),
            value=partial(lambda name, w: _IN_SIGHT[w.docks.actions[name].isChecked()], spec.name),
            go=partial(lambda name, w: w.docks.open(name), spec.name),
        )  # fmt: skip


def _groups(called: Called) -> Iterator[SearchEntry]:
    for number, group in enumerate(GROUPS, start=1):
        yield SearchEntry(
            Kind.GROUP, group.name, group.title, group.tip, _also(called, Kind.GROUP, group.name),
            keys=str(number),
            value=partial(lambda group, w: _IN_SIGHT[w.docks.shows(group)], group),
            go=partial(lambda name, w: w.docks.open_group(name), group.name),
        )  # fmt: skip


def _layouts(called: Called) -> Iterator[SearchEntry]:
    for number, spec in enumerate(LAYOUTS, start=1):
        yield SearchEntry(
            Kind.LAYOUT, spec.name, spec.title, spec.tip, _also(called, Kind.LAYOUT, spec.name),
            keys=f"Ctrl+{number}",
            value=partial(lambda name, w: _IN_SIGHT[w.desk.current == name], spec.name),
            go=partial(lambda name, w: w.desk.take(name), spec.name),
        )  # fmt: skip


def _models(called: Called) -> Iterator[SearchEntry]:
    for name, model in models().items():
        size = f"{model.params_billion:g} billion parameters, " if model.params_billion else ""
        yield SearchEntry(
            Kind.MODEL, name, name,
            f"{model.kind}, {size}{plural(model.layers, 'layer')}: its cache and its heads",
            _also(called, Kind.MODEL, name),
            value=partial(_model_now, name=name), go=partial(_take_model, name=name),
        )  # fmt: skip


def _model_now(window: MainWindow, name: str) -> str:
    return "in use" if window.session.model_choice.model.name == name else "in KV cache"


def _take_model(window: MainWindow, name: str) -> None:
    window.docks.open("cache")
    window.session.model_choice.take(models()[name], by_hand=True)


def _gpus(called: Called) -> Iterator[SearchEntry]:
    for name, gpu in gpus().items():
        yield SearchEntry(
            Kind.GPU, name, name,
            f"The run on this GPU: {gpu.sms} multiprocessors, {gpu.tbps:g} TB/s, "
            f"{gpu.memory_gb} GB",
            _also(called, Kind.GPU, name),
            value=partial(_gpu_now, name=name),
            go=partial(_take_gpu, name=name),
        )  # fmt: skip


def _gpu_now(window: MainWindow, name: str) -> str:
    scenario = window.session.scenario
    return "in use" if scenario is not None and scenario.hardware.preset == name else ""


def _take_gpu(window: MainWindow, name: str) -> None:
    scenario = window.session.scenario
    if scenario is not None:
        changed = with_values(scenario, {"hardware": {"preset": name}})
        window.session.propose(changed, f"GPU preset {name}")
