"""SVG and PDF of the window against its pixels: nothing is lost, moved or painted over."""

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path

import numpy as np
import pypdfium2
import pytest
from PySide6.QtWidgets import QApplication, QDockWidget

from simulator.base.assets import LESSONS, SCENARIOS
from simulator.lesson.reader import resolve_step
from simulator.lesson.steps import Lesson, waiting
from simulator.run.trace import simulate
from tests.helpers.shown_lessons import shipped_lessons, some_steps
from tests.ui.export.helpers import MOST, make, off, picture, still
from ui.export import storyboard
from ui.export.frames import new_image, paint_frame
from ui.export.job import prepare_lesson
from ui.export.options import ExportOptions
from ui.export.picture import WidgetPicture
from ui.export.writers.pixels import pixels_of
from ui.export.writers.vector import pdf_bytes
from ui.look.layouts import LAYOUT_NAMES
from ui.look.lesson_text import FORMATS
from ui.talk.prediction import printed
from ui.window.main_window import MainWindow

SIZE = (1280, 720)
"""At this size a window's pixels are the picture's."""
FIRST = "05-online-softmax"
"""With a page of code that is scrolled."""
OTHERS = some_steps(FIRST)
"""What it does not show, by lesson."""


def rendered_pdf(data: bytes, page: int = 0) -> np.ndarray:
    """Return a page of a PDF in pixels, as PDFium draws it."""
    document = pypdfium2.PdfDocument(data)
    try:
        return document[page].render(scale=2).to_numpy()[..., 2::-1].copy()
    finally:
        document.close()


def text_of(data: bytes, page: int) -> str:
    """Return what one can search for and copy on a page of a PDF."""
    document = pypdfium2.PdfDocument(data)
    try:
        return document[page].get_textpage().get_text_range()
    finally:
        document.close()


def rendered_svg(path: Path) -> np.ndarray:
    """Return an SVG in pixels, as librsvg draws it; Qt's reader knows no clip."""
    subprocess.run(["rsvg-convert", path, "-o", path.with_suffix(".drawn.png")], check=True)
    return picture(path.with_suffix(".drawn.png"))


reads_svg = pytest.mark.skipif(
    shutil.which("rsvg-convert") is None, reason="rsvg-convert is not here"
)


# --- handouts --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Page:
    """A page of a handout: its pixels, its PDF in pixels, and the 4 x 4 blocks outside panels.

    And what a lesson says on it beside formulas, and the text that the PDF has.
    """

    pixels: np.ndarray
    drawn: np.ndarray
    outside: np.ndarray
    said: str
    text: str


def outside_panels() -> np.ndarray:
    """Return which blocks of 4 x 4 pixels no panel of the window on show touches."""
    (window,) = (
        w for w in QApplication.topLevelWidgets() if isinstance(w, MainWindow) and w.isVisible()
    )
    free = np.ones((SIZE[1] // 4, SIZE[0] // 4), bool)
    for panel in (window.centralWidget(), *window.findChildren(QDockWidget)):
        if panel.isVisible():
            corner = panel.mapTo(window, panel.rect().topLeft())
            right, bottom = corner.x() + panel.width(), corner.y() + panel.height()
            free[corner.y() // 4 : -(-bottom // 4), corner.x() // 4 : -(-right // 4)] = False
    return free


def said_in(lesson: Lesson, k: int) -> str:
    """Return the words of a page, without formulas: these are outlines."""
    shot = storyboard.handout(lesson, range(len(lesson.steps)), questions=True).shots[k]
    step = resolve_step(lesson, shot.step, FORMATS)
    if shot.asks:
        assert step.prediction is not None
        step = replace(waiting(lesson, step), caption=printed(step.prediction))
    words = " ".join((step.lesson, step.title, step.caption, step.question, step.answer))
    return re.sub(r"\$[^$]*\$", " ", words)


def numbers(text: str) -> Counter[str]:
    """Return the numbers of a text, thousands apart, and its quotation marks."""
    return Counter(re.findall(r"\d+(?:\.\d+)?|[“”’]", text))


@pytest.fixture(scope="module", params=[*OTHERS, FIRST])
def handout(request, qapp) -> Iterator[list[Page]]:
    """Return the pages of a lesson, of others than the first those that show something else."""
    file, lesson = LESSONS / f"{request.param}.md", shipped_lessons()[request.param]
    shown = OTHERS.get(request.param, range(len(lesson.steps)))
    lesson = replace(lesson, steps=tuple(lesson.steps[n] for n in shown))
    options = ExportOptions("a.pdf", lesson=True, size=SIZE, theme="light", answers="beside")
    export = prepare_lesson(lesson, options, str(file), "1", MainWindow, "numpy")
    source, pages = export.source, []
    try:
        data = pdf_bytes(source, export.note, lambda share: None)
        for k in range(len(source._frames)):  # exercises and papers come last
            image = paint_frame(source, k, new_image(source))
            shown = pixels_of(image)[..., 2::-1].copy()
            drawn, text = rendered_pdf(data, k), text_of(data, k)
            pages.append(Page(shown, drawn, outside_panels(), said_in(lesson, k), text))
    finally:
        source.close()
    return pages


@pytest.mark.long
def test_no_panel_of_a_handout_is_painted_outside_its_place(handout):
    for k, page in enumerate(handout):
        assert page.outside.mean() > 0.1  # header and caption
        worst = (off(page.pixels, page.drawn, 4) * page.outside).max()
        assert worst <= MOST, f"page {k + 1}"
        assert off(page.pixels, page.drawn, 16).max() <= MOST, f"page {k + 1}, panels"


@pytest.mark.sweep(keep=1)
def test_the_text_of_a_handout_has_every_number_of_every_caption(handout):
    for k, page in enumerate(handout):
        assert not numbers(page.said) - numbers(page.text), f"page {k + 1}"
        lost = {c for c in page.text if c in "\ufffd\ufffe\0" or 0xE000 <= ord(c) <= 0xF8FF}
        assert not lost, f"page {k + 1}: glyphs that are no characters"


# --- layouts and panels ----------------------------------------------------------------------


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize(
    ("layout", "ending"),
    [
        pytest.param(name, ending, marks=[reads_svg] if ending == ".svg" else [])
        for name, ending in zip(LAYOUT_NAMES, cycle([".pdf", ".svg"]))
    ],
)
def test_a_layout_is_drawn_as_its_pixels_are(ending, layout, tmp_path):
    trace = simulate(SCENARIOS / "flash2.toml")
    for kind in (".png", ending):
        make(still(tmp_path / f"a{kind}", scene=layout, size=SIZE, theme="light"), trace)
    file = tmp_path / f"a{ending}"
    drawn = rendered_svg(file) if ending == ".svg" else rendered_pdf(file.read_bytes())
    assert off(picture(tmp_path / "a.png"), drawn, 16).max() <= MOST


@reads_svg
@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize(
    ("layout", "panel"), [("algorithm", "code"), ("memory", "sweep"), ("cache", "cache")]
)
def test_a_panel_is_drawn_as_its_pixels_are(layout, panel, open_window, tmp_path):
    window = open_window("flash2")
    window.desk.take(layout)
    window.session.settle()
    dock = window.findChild(QDockWidget, panel)
    for ending in (".png", ".svg"):
        WidgetPicture(dock.widget()).save(tmp_path / f"a{ending}")
    worst = off(picture(tmp_path / "a.png"), rendered_svg(tmp_path / "a.svg"), 16).max()
    assert worst <= MOST
