"""Draws the window in three sizes and three themes, and lessons, for inspection.

``python -m ui.app.pictures`` draws everything; for each lesson it draws a sheet with every step.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from simulator.base.assets import SCENARIOS
from simulator.program.algorithms import ALGORITHMS
from ui.export.options import picture_size

SIZES = ((1280, 720), (1920, 1080), (3840, 2160))
SHEET_THEME = "dark"


@dataclass(frozen=True, slots=True)
class Shot:
    """One window to draw.

    Attributes
    ----------
    scenario : str
        Demo in ``assets/scenarios``.
    share : float
        Place in the run, 0 to 1.
    back : int
        How many ops before the end of that visit.
    layout : str
        Layout of the window.
    raised : tuple of str
        Docks brought to the front of their tabs.
    """

    scenario: str
    share: float
    back: int
    layout: str = "steps"
    raised: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The beginning of its files' names."""
        return "-".join([self.scenario, self.layout, *self.raised])


OWN = [name for name in ALGORITHMS if (SCENARIOS / f"{name}.toml").is_file()]
"""Algorithms with a demo of their own."""
SHOTS = (
    *(Shot(name, 0.55, 2) for name in OWN),
    *(Shot(name, 1.0, 2, "algorithm") for name in OWN),
    *(Shot(name, 0.5, 3, "compare") for name in OWN),
    Shot("causal", 0.55, 2),
    Shot("grouped-heads", 0.4, 3),
    Shot("window-sinks", 0.7, 4),
    Shot("large-logits", 0.5, 1),
    Shot("real-scale", 0.5, 1),
    Shot("causal", 0.55, 2, "algorithm"),
    Shot("causal", 0.6, 1, "algorithm", ("values",)),
    Shot("causal", 0.55, 2, "memory"),
    Shot("real-scale", 0.5, 1, "memory", ("roofline",)),
    Shot("causal", 0.55, 2, "memory", ("schedule",)),
    Shot("real-scale", 0.5, 1, "memory", ("schedule",)),
    Shot("grouped-heads", 0.5, 1, "memory", ("pages",)),
    Shot("causal", 0.55, 2, "compare"),
    Shot("real-scale", 1.0, 0, "compare"),
    Shot("causal", 0.55, 2, "exactness"),
    Shot("causal", 0.55, 2, "exactness", ("merge",)),
    Shot("large-logits", 0.9, 0, "exactness"),
    Shot("kv-cache", 0.5, 0, "cache"),
    Shot("multi-query", 0.4, 2, "cache"),
    Shot("inspector", 0.5, 1, "inspector"),
    Shot("inspector", 0.5, 1, "inspector", ("sqrt_d",)),
    Shot("inspector", 0.5, 1, "inspector", ("kernel",)),
    Shot("inspector", 0.5, 1, "inspector", ("positions",)),
    Shot("inspector", 0.5, 1, "inspector", ("order",)),
    Shot("induction", 0.5, 1, "inspector", ("jobs",)),
    Shot("inspector", 0.5, 1, "inspector", ("jobs",)),
    Shot("real-scale", 0.5, 1, "inspector"),
    Shot("layer", 1.0, 0, "layer"),
    Shot("causal", 1.0, 0, "layer"),
)


def main(arguments: Sequence[str]) -> int:
    """Draw the pictures.

    Parameters
    ----------
    arguments : sequence of str
        What follows the module's name.
    """
    parser = argparse.ArgumentParser(prog="ui.app.pictures", description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=Path("build/pictures"))
    parser.add_argument("--only", help="pictures whose names contain this")
    parser.add_argument("--sizes", help="such as 1280x720,1920x1080")
    parser.add_argument("--themes", default="dark,light,contrast")
    parser.add_argument(
        "--lessons", metavar="NAME,...", help="only each step of these lessons, such as causal-mask"
    )
    options = parser.parse_args(arguments)
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    sizes = [picture_size(text) for text in options.sizes.split(",")] if options.sizes else SIZES
    options.output.mkdir(parents=True, exist_ok=True)
    if options.lessons:
        _draw_lessons(options.lessons.split(","), options.themes.split(","), sizes, options.output)
        return 0
    _draw_shots(options, sizes)
    _draw_sheets(options.only or "", options.output)
    return 0


def _draw_shots(options: argparse.Namespace, sizes: Sequence[tuple[int, int]]) -> None:
    for shot in SHOTS:
        if options.only and options.only not in shot.name:
            continue
        for theme in options.themes.split(","):
            for size in sizes:
                path = options.output / f"{shot.name}-{theme}-{size[0]}x{size[1]}.png"
                draw_window(shot, theme, size, path)
                print(path)


def _draw_sheets(only: str, folder: Path) -> None:
    from simulator.lesson.reader import list_lessons
    from ui.app.lesson_sheets import draw_sheet

    for lesson in list_lessons():
        path = folder / f"lesson-{lesson.path.stem}-{SHEET_THEME}.png"
        if only in path.stem:
            draw_sheet(lesson.path, SHEET_THEME, path)
            print(path)


def _draw_lessons(
    names: Sequence[str], themes: Sequence[str], sizes: Sequence[tuple[int, int]], folder: Path
) -> None:
    from simulator.lesson.reader import find_lesson
    from ui.app.lesson_sheets import draw_steps

    for name in names:
        for theme in themes:
            for size in sizes:
                for path in draw_steps(find_lesson(name), theme, size, folder):
                    print(path)


def draw_window(shot: Shot, theme: str, size: tuple[int, int], path: Path) -> None:
    """Draw a window into a file.

    Parameters
    ----------
    shot : Shot
        What it shows.
    theme : str
        Theme.
    size : tuple of int
        Window size in pixels.
    path : Path
        PNG to write.
    """
    from PySide6.QtCore import QEvent

    from simulator.program.playback import Cursor, clamped, end_of_visit
    from ui.app.start import make_window
    from ui.safety.faults import raising
    from ui.safety.settings import Settings
    from ui.widgets.application import application

    app = application()
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(Path(folder) / "settings.ini")
        settings.theme = theme
        settings.motion = False
        window = make_window(SCENARIOS / f"{shot.scenario}.toml", settings=settings)
        window.resize(*size)
        window.show()
        app.processEvents()
        window.desk.take(shot.layout)
        window.desk.reset()
        for name in shot.raised:
            window.docks[name].raise_()
        # The tabs are shown after those of the previous layout have disappeared.
        app.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        session = window.session
        session.settle()
        assert session.trace is not None
        program = session.trace.program
        at = end_of_visit(program, int(shot.share * (len(program) - 1)))
        session.go(clamped(program, Cursor(at.visit, at.op - shot.back)))
        rows = program.visit(at.visit).rows
        session.choose_row(rows.start + len(rows) // 2)
        session.settle()
        with raising():
            window.grab().save(str(path))
        window.close()
        window.deleteLater()
        app.processEvents()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
