"""Every step of every lesson on the stage, with its caption."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from simulator.lesson.course import list_lessons
from simulator.lesson.reader import load_lesson
from ui.app.windows import new_window
from ui.export.frames import new_image, paint_frame
from ui.export.lesson_frames import LessonFrames
from ui.export.storyboard import handout
from ui.look.layouts import LAYOUT_PANELS
from ui.widgets.application import application


def draw_lessons(folder: Path, only: str) -> Iterator[Path]:
    """Draw all steps of all lessons on the stage, as they end; yield the files."""
    for lesson in list_lessons():
        for theme in ("dark", "light"):
            if only in lesson.path.stem:
                yield from draw_steps(lesson.path, theme, (1920, 1080), folder)


def draw_steps(lesson: Path, theme: str, size: tuple[int, int], folder: Path) -> Iterator[Path]:
    """Draw each step of a lesson, as it ends, into its own file; yield the files.

    Raises InputError: a step cannot be shown.
    """
    with _steps(lesson, theme, size) as frames:
        image = new_image(frames)
        for k in range(len(frames)):
            path = folder / f"{lesson.stem}-{k}-{theme}-{size[0]}x{size[1]}.png"
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
