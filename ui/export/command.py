"""The ``export`` command."""

from __future__ import annotations

import argparse
import os
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from kernels.devices.registry import make_engine
from simulator.base.errors import safe_text
from simulator.lesson.reader import find_lesson, load_lesson
from simulator.program.playback import Granularity
from simulator.run.trace import simulate
from ui.export.formats import FORMATS, format_of
from ui.export.options import SCENE_NAMES, THEME_NAMES, ExportOptions, picture_size, usual_theme
from ui.export.pipe import tell_made, tell_share
from ui.look.layouts import LAYOUT_PANELS
from ui.look.units import count_text
from ui.safety.signals import interrupted, put_back, take_signals
from ui.safety.streams import on_terminal

if TYPE_CHECKING:
    from ui.export.job import Export
    from ui.export.unseen_window import WindowFactory
    from ui.session.tasks import Report

_TELL_EVERY = 0.2


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's own options."""
    titles = ", ".join(f"{f.ending} {f.title}" for f in FORMATS if f.ending != "frames")
    parser.epilog = (
        f"The ending of OUT chooses the format: {titles}. A folder (frames/) or a pattern "
        "(frame-%04d.png) takes single frames."
    )
    parser.add_argument("-o", "--output", metavar="OUT.EXT", required=True, help="what to write")
    parser.add_argument("--size", default="1920x1080", metavar="1920x1080", help="in pixels")
    parser.add_argument(
        "--visits",
        type=_part,
        metavar="A:B",
        help="visits A up to, not with, B, counted from 0; a still shows the last of them. "
        "Without this a film shows the whole run, a still the middle of it",
    )
    parser.add_argument(
        "--steps",
        type=_part,
        metavar="A:B",
        help="the same of a lesson's steps; a picture shows the first, a PDF has a page for each",
    )
    parser.add_argument(
        "--theme",
        choices=THEME_NAMES,
        help="by default dark; of a handout, a PDF of a lesson, light",
    )
    parser.add_argument(
        "--scene", choices=SCENE_NAMES, default="scene",
        help="board, memory and softmax (scene), the board alone, the race of the whole runs, or a "
        "layout of the window",
    )  # fmt: skip
    parser.add_argument("--fps", type=int, default=30, metavar="30", help="frames a second")
    parser.add_argument(
        "--by", choices=[str(Granularity.OP), str(Granularity.TILE)],
        help="what one step is; by default an op while there are few",
    )  # fmt: skip
    parser.add_argument(
        "--pace", type=float, metavar="SECONDS", help="for each op or tile, or step of a lesson"
    )
    parser.add_argument(
        "--length", type=float, metavar="SECONDS",
        help="in all; by default 0.7 s an op or tile, and a minute in all at most; a "
        "race takes 8 s, a lesson as long as it takes to read it",
    )  # fmt: skip
    parser.add_argument("--op", type=int, metavar="N", help="op of a still's visit, from 0")
    parser.add_argument("--row", type=int, metavar="N", help="query row to explain, from 0")
    parser.add_argument("--transparent", action="store_true", help="without a ground")
    parser.add_argument(
        "--sound", action="store_true",
        help="a soft tick where a tile lands, with a pitch for each tensor; in .mp4 and .webm",
    )  # fmt: skip
    # What the window's exports tell the process that makes them.
    for hidden in ("--named", "--token"):
        parser.add_argument(hidden, default="", help=argparse.SUPPRESS)
    parser.add_argument("--shares", action="store_true", help=argparse.SUPPRESS)


def _part(text: str) -> tuple[int | None, int | None]:
    start, colon, stop = text.partition(":")
    if any(part and not part.isdecimal() for part in (start, stop)) or not (start or colon):
        raise argparse.ArgumentTypeError(f'"{text}": expected A:B, A: , :B or one number')
    first = int(start) if start else None
    if not colon:
        return first, int(start) + 1
    return first, int(stop) if stop else None


def run(options: argparse.Namespace, version: str, new_window: WindowFactory) -> int:
    """Write a picture or a film of a run or of a lesson, and say what was written.

    Raises
    ------
    InputError
        The scenario, the lesson, an option or the target cannot be used.
    """
    lesson = _lesson_file(options.scenario)
    wanted = ExportOptions(
        target=options.output,
        size=picture_size(options.size),
        fps=options.fps,
        visits=options.visits,
        theme=options.theme or usual_theme(format_of(options.output), lesson=lesson is not None),
        scene=options.scene,
        by=Granularity(options.by) if options.by else None,
        pace=options.pace,
        length=options.length,
        transparent=options.transparent,
        sound=options.sound,
        op=options.op,
        row=options.row,
        steps=options.steps,
        lesson=lesson is not None,
        token=options.token,
    )
    wanted.check()
    os.environ["QT_QPA_PLATFORM"] = "offscreen"  # a display may be named and not exist
    export = _prepared(options, wanted, lesson, version, new_window)
    started = time.perf_counter()
    frames = len(export.source)
    _make(export, tell_share if options.shares else _Progress(frames))
    if options.shares:
        tell_made(export.words)
    else:
        seconds = time.perf_counter() - started
        print(f"{safe_text(options.output)}: {export.words}; made in {seconds:.1f} s")
    return 0


def _lesson_file(name: str) -> Path | None:
    """Return the lesson of the command; None for a scenario file."""
    path = Path(name)
    if path.suffix.lower() != ".md" and (path.suffix or len(path.parts) > 1 or path.exists()):
        return None
    return find_lesson(name)


def _prepared(
    options: argparse.Namespace,
    wanted: ExportOptions,
    lesson_file: Path | None,
    version: str,
    new_window: WindowFactory,
) -> Export:
    named = options.named or options.scenario
    if lesson_file is None:
        # Mistakes in a scenario are reported before Qt is loaded.
        trace = simulate(options.scenario, partial(make_engine, options.engine))

    from ui.export.job import prepare, prepare_lesson
    from ui.widgets.application import application

    application()
    if lesson_file is None:
        return prepare(trace, wanted, named, version, new_window)
    lesson = load_lesson(lesson_file, LAYOUT_PANELS)
    export = prepare_lesson(lesson, wanted, named, version, new_window, options.engine)
    for mistake in lesson.mistakes:  # the steps that are left out
        print(mistake, file=sys.stderr)
    return export


def _make(export: Export, report: Report) -> None:
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
        export.make(looked)
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
        done = f"{count_text(round(share * self._frames))} of {count_text(self._frames)} frames"
        soon = f", {left:.0f} s left" if 0 < left < float("inf") else ""
        end = "\n" if share >= 1 else ""
        print(f"\r\x1b[K{done}{soon}", end=end, file=sys.stderr, flush=True)
