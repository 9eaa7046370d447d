"""Contact sheets of lessons for inspection: every step with its caption."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PySide6.QtCore import QPoint
from PySide6.QtGui import QColor, QImage, QPainter

from simulator.lesson.reader import load_lesson
from ui.app.windows import new_window
from ui.export.frames import new_image, paint_frame
from ui.export.lesson_frames import LessonFrames
from ui.export.storyboard import handout
from ui.look.layouts import LAYOUT_PANELS
from ui.look.theme import THEMES
from ui.widgets.application import application

COLUMNS = 3
CELL = (960, 540)
"""Size of a step on a sheet."""
_GAP = 12


def draw_sheet(lesson: Path, theme: str, path: Path) -> None:
    """Draw all steps of a lesson, as they end, on one sheet.

    Parameters
    ----------
    lesson : Path
        Its file.
    theme : str
        Theme.
    path : Path
        PNG to write.

    Raises
    ------
    InputError
        A step cannot be shown.
    """
    with _steps(lesson, theme, CELL) as frames:
        count, (width, height) = len(frames), CELL
        rows = -(-count // COLUMNS)
        size = (COLUMNS * (width + _GAP) + _GAP, rows * (height + _GAP) + _GAP)
        sheet = QImage(*size, QImage.Format.Format_RGB32)
        sheet.fill(QColor(THEMES[theme].border))
        painter, image = QPainter(sheet), new_image(frames)
        try:
            for k in range(count):
                row, column = divmod(k, COLUMNS)
                corner = QPoint(_GAP + column * (width + _GAP), _GAP + row * (height + _GAP))
                painter.drawImage(corner, paint_frame(frames, k, image))
        finally:
            painter.end()
    sheet.save(str(path))


def draw_steps(lesson: Path, theme: str, size: tuple[int, int], folder: Path) -> Iterator[Path]:
    """Draw each step of a lesson, as it ends, into its own file; yield the files.

    Raises
    ------
    InputError
        A step cannot be shown.
    """
    with _steps(lesson, theme, size) as frames:
        image = new_image(frames)
        for k in range(len(frames)):
            path = folder / f"lesson-{lesson.stem}-{k}-{theme}-{size[0]}x{size[1]}.png"
            paint_frame(frames, k, image).save(str(path))
            yield path


@contextmanager
def _steps(path: Path, theme: str, size: tuple[int, int]) -> Iterator[LessonFrames]:
    application()
    lesson = load_lesson(path, LAYOUT_PANELS)
    frames = LessonFrames(
        lesson, handout(lesson, range(len(lesson.steps))), theme, size, new_window
    )
    try:
        yield frames
    finally:
        frames.close()
