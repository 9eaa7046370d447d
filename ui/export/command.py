"""The ``export`` command."""

from __future__ import annotations

import argparse
import os
import sys
import time
from functools import partial

from kernels.registry import make_engine
from simulator.playback import Granularity
from simulator.trace import simulate
from ui.export.formats import FORMATS
from ui.export.options import SCENE_NAMES, THEME_NAMES, ExportOptions, picture_size
from ui.units import count_text

_TELL_EVERY = 0.2


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's own options."""
    titles = ", ".join(f"{f.ending} {f.title}" for f in FORMATS if f.ending != "frames")
    parser.epilog = (
        f"The ending of OUT chooses the format: {titles}. A folder (frames/) or a pattern "
        "(frame-%04d.png) takes single frames."
    ).replace("%", "%%")
    parser.add_argument("-o", "--output", metavar="OUT.EXT", required=True, help="what to write")
    parser.add_argument("--size", default="1920x1080", metavar="1920x1080", help="in pixels")
    parser.add_argument(
        "--visits",
        type=_visits,
        metavar="A:B",
        help="visits A up to, not with, B, counted from 0; a still shows the last of them. "
        "Without this an animation shows the whole run, a still the middle of it",
    )
    parser.add_argument("--theme", choices=THEME_NAMES, default="dark")
    parser.add_argument(
        "--scene", choices=SCENE_NAMES, default="scene",
        help="board, memory and softmax (scene), or the board alone",
    )  # fmt: skip
    parser.add_argument("--fps", type=int, default=30, metavar="30", help="frames a second")
    parser.add_argument(
        "--by", choices=[str(Granularity.OP), str(Granularity.TILE)],
        help="what one step is; by default an op while there are few",
    )  # fmt: skip
    parser.add_argument("--pace", type=float, metavar="SECONDS", help="for each op or tile")
    parser.add_argument(
        "--length", type=float, metavar="SECONDS",
        help="in all; by default half a second a step, and a minute in all at most",
    )  # fmt: skip
    parser.add_argument("--op", type=int, metavar="N", help="op of a still's visit, from 0")
    parser.add_argument("--row", type=int, metavar="N", help="query row to explain, from 0")
    parser.add_argument("--transparent", action="store_true", help="without a ground")


def _visits(text: str) -> tuple[int | None, int | None]:
    start, colon, stop = text.partition(":")
    if any(part and not part.isdecimal() for part in (start, stop)) or not (start or colon):
        raise argparse.ArgumentTypeError(f'"{text}": expected A:B, A: , :B or one number')
    first = int(start) if start else None
    if not colon:
        return first, int(start) + 1
    return first, int(stop) if stop else None


def run(options: argparse.Namespace, version: str) -> int:
    """Write a picture or a film of a run, and say what was written.

    Raises
    ------
    InputError
        The scenario, an option or the target cannot be used.
    """
    wanted = ExportOptions(
        target=options.output,
        size=picture_size(options.size),
        fps=options.fps,
        visits=options.visits,
        theme=options.theme,
        scene=options.scene,
        by=Granularity(options.by) if options.by else None,
        pace=options.pace,
        length=options.length,
        transparent=options.transparent,
        op=options.op,
        row=options.row,
    )
    wanted.check()
    trace = simulate(options.scenario, partial(make_engine, options.engine))
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    from ui.app import application
    from ui.export.job import prepare

    application()
    export = prepare(trace, wanted, options.scenario, version)
    started = time.perf_counter()
    export.make(_Progress(len(export.source)))
    print(f"{options.output}: {export.words}; made in {time.perf_counter() - started:.1f} s")
    return 0


class _Progress:
    """Shows frames and time left on a terminal, and nothing elsewhere."""

    def __init__(self, frames: int) -> None:
        self._frames = frames
        self._shows = sys.stderr.isatty() and frames > 1
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
