"""The ``export`` command."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from kernels.devices.registry import make_engine
from simulator.base.errors import refuse, safe_text
from simulator.lesson.course import find_lesson
from simulator.lesson.reader import load_lesson
from simulator.run.trace import simulate
from ui.export import options
from ui.export.formats import FORMATS
from ui.export.options import ExportOptions
from ui.export.pipe import tell_made, tell_share
from ui.look.layouts import LAYOUT_PANELS
from ui.look.units import count_text
from ui.safety.signals import interrupted, put_back, take_signals
from ui.safety.streams import on_terminal
from ui.session import shards

if TYPE_CHECKING:
    from simulator.lesson.steps import Lesson
    from simulator.problem.scenario import Scenario
    from ui.export.job import Export, PartMaker
    from ui.export.unseen_window import WindowFactory
    from ui.session.tasks import Report

    PartsOn = Callable[[Export, Scenario | Lesson, str, shards.Shards], PartMaker]

_TELL_EVERY = 0.2


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's own options."""
    titles = ", ".join(f"{f.ending} {f.title}" for f in FORMATS if f.ending != "frames")
    parser.epilog = (
        f"The ending of OUT chooses the format: {titles}. A folder (frames/) or a pattern "
        "(frame-%04d.png) takes single frames."
    )
    parser.add_argument("-o", "--output", metavar="OUT.EXT", required=True, help="what to write")
    options.add_options(parser)
    shards.add_options(parser)
    # Options by which a window tells the process that makes its export.
    for hidden in ("--named", "--token"):
        parser.add_argument(hidden, default="", help=argparse.SUPPRESS)
    parser.add_argument("--shares", action="store_true", help=argparse.SUPPRESS)


def run(
    words: argparse.Namespace, version: str, new_window: WindowFactory, parts_on: PartsOn
) -> int:
    """Write a picture or a film of a run or of a lesson, and say what was written."""
    lesson = _lesson_file(words.scenario)
    wanted = ExportOptions.asked(words, lesson=lesson is not None)
    wanted.check()
    os.environ["QT_QPA_PLATFORM"] = "offscreen"  # DISPLAY may name a screen that does not exist
    if wanted.format.folder and (words.jobs or words.cluster):
        raise refuse("export", "-o", wanted.target, "one file: a folder of slides is made here")
    with shards.asked_for(words) as places:
        export, source, engine = _prepared(words, wanted, lesson, version, new_window)
        parts = None if places is None else parts_on(export, source, engine, places)
        started = time.perf_counter()
        frames = len(export.source)
        _make(export, tell_share if words.shares else _Progress(frames), parts)
    if words.shares:
        tell_made(export.words)
    else:
        seconds = time.perf_counter() - started
        print(f"{safe_text(words.output)}: {export.words}; made in {seconds:.1f} s")
    return 0


def _lesson_file(name: str) -> Path | None:
    """Return the lesson of the command; None for a scenario file."""
    path = Path(name)
    if path.suffix.lower() != ".md" and (path.suffix or len(path.parts) > 1 or path.is_file()):
        return None
    return find_lesson(name)


def _prepared(
    words: argparse.Namespace,
    wanted: ExportOptions,
    lesson_file: Path | None,
    version: str,
    new_window: WindowFactory,
) -> tuple[Export, Scenario | Lesson, str]:
    """Return an export, its scenario or lesson, and the name of the engine."""
    named = words.named or words.scenario
    if lesson_file is None:
        # Mistakes in a scenario are reported before Qt is loaded.
        trace = simulate(words.scenario, partial(make_engine, words.engine))

    from ui.export.job import prepare, prepare_lesson
    from ui.widgets.application import application

    application()
    if lesson_file is None:
        export = prepare(trace, wanted, named, version, new_window)
        return export, trace.workload.scenario, trace.engine.name
    lesson = load_lesson(lesson_file, LAYOUT_PANELS)
    export = prepare_lesson(lesson, wanted, named, version, new_window, words.engine)
    for mistake in lesson.mistakes:  # the steps that are left out
        print(mistake, file=sys.stderr)
    return export, lesson, words.engine


def _make(export: Export, report: Report, parts: PartMaker | None) -> None:
    """Make an export; a signal ends it cleanly also inside Qt's calls, which swallow exceptions."""
    asked: list[int] = []

    def ask(number: int, frame: object) -> None:
        if asked:  # a second signal is urgent
            raise KeyboardInterrupt
        asked.append(number)

    def looked(share: float) -> None:
        if asked or interrupted():
            raise KeyboardInterrupt
        report(share)

    before = take_signals(ask) if export.source.in_gui else {}
    try:
        export.make(looked, parts)
    finally:
        put_back(before)


class _Progress:
    """Shows frames and time left on a terminal, and otherwise does nothing."""

    def __init__(self, frames: int) -> None:
        self._frames = frames
        self._shows = on_terminal() and frames > 1
        self._started = self._told = time.monotonic()

    def __call__(self, share: float) -> None:
        now = time.monotonic()
        if not self._shows or (share < 1 and now - self._told < _TELL_EVERY):
            return
        self._told = now
        left = (now - self._started) * (1 - share) / share if share else float("inf")
        done = f"{count_text(share * self._frames)} of {count_text(self._frames)} frames"
        soon = f", {left:.0f} s left" if 0 < left < float("inf") else ""
        end = "\n" if share >= 1 else ""
        print(f"\r\x1b[K{done}{soon}", end=end, file=sys.stderr, flush=True)
