"""Draws the window in three sizes and three themes, to be looked at: ``python -m ui.pictures``."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ui.cli import picture_size

SIZES = ((1280, 720), (1920, 1080), (3840, 2160))
SCENES = {
    # scenario, share of the run at which it is shown, op from the end of the visit
    "flash2": (0.55, 2),
    "naive": (0.45, 0),
    "flash1": (0.6, 0),
    "causal": (0.55, 2),
    "grouped-heads": (0.4, 3),
    "window-sinks": (0.7, 4),
    "large-logits": (0.5, 1),
    "real-scale": (0.5, 1),
}


def main(arguments: Sequence[str]) -> int:
    """Draw the pictures.

    Parameters
    ----------
    arguments : sequence of str
        What follows the module's name.
    """
    parser = argparse.ArgumentParser(prog="ui.pictures", description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=Path("build/pictures"))
    parser.add_argument("--only", help="scenarios whose names contain this")
    parser.add_argument("--sizes", help="such as 1280x720,1920x1080")
    parser.add_argument("--themes", default="dark,light,contrast")
    options = parser.parse_args(arguments)
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    sizes = [picture_size(text) for text in options.sizes.split(",")] if options.sizes else SIZES
    options.output.mkdir(parents=True, exist_ok=True)
    for name, (share, back) in SCENES.items():
        if options.only and options.only not in name:
            continue
        for theme in options.themes.split(","):
            for size in sizes:
                path = options.output / f"{name}-{theme}-{size[0]}x{size[1]}.png"
                draw_window(name, share, back, theme, size, path)
                print(path)
    return 0


def draw_window(
    name: str, share: float, back: int, theme: str, size: tuple[int, int], path: Path
) -> None:
    """Draw a window with a demo scenario into a file.

    Parameters
    ----------
    name : str
        Scenario in ``assets/scenarios``.
    share : float
        Where in the run, 0 to 1.
    back : int
        How many ops before the end of that visit.
    theme : str
        Theme.
    size : tuple of int
        Window size in pixels.
    path : Path
        PNG to write.
    """
    from simulator.assets import SCENARIOS
    from simulator.playback import clamped, end_of_visit
    from simulator.snapshot import Cursor
    from ui.app import application, make_window
    from ui.settings import Settings

    app = application()
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(Path(folder) / "settings.ini")
        settings.theme = theme
        settings.motion = False
        window = make_window(SCENARIOS / f"{name}.toml", settings=settings)
        window.resize(*size)
        window.show()
        window.reset_layout()
        session = window.session
        session.settle()
        assert session.trace is not None
        program = session.trace.program
        at = end_of_visit(program, int(share * (len(program) - 1)))
        session.go(clamped(program, Cursor(at.visit, at.op - back)))
        rows = program.visit(at.visit).rows
        session.choose_row(rows.start + len(rows) // 2)
        session.settle()
        window.grab().save(str(path))
        window.close()
        window.deleteLater()
        app.processEvents()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
