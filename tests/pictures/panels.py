"""Each panel alone, in three sizes and three themes, at a few runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.pictures.windows import a_window, go
from ui.look.theme import THEMES

SIZES = ((430, 300), (640, 540), (960, 810))
RUNS = ("causal", "paged", "layer")
"""A run with tiles and scores; one in splits and pages; one of a captured layer."""


def draw_panels(folder: Path, only: str) -> Iterator[Path]:
    """Draw all panels in a window of their own; yield the files."""
    for run in RUNS:
        for theme in THEMES:
            with a_window(run, theme, (1280, 720)) as window:
                go(window, 0.55, 2)
                for spec, dock in window.docks:
                    if only not in spec.name:
                        continue
                    dock.setFloating(True)
                    dock.show()
                    for wide, high in SIZES:
                        dock.resize(wide, high)
                        window.session.settle()
                        path = folder / f"{spec.name}-{run}-{theme}-{wide}x{high}.png"
                        dock.grab().save(str(path))
                        yield path
                    dock.close()
