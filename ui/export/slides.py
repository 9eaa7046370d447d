"""Slides for PowerPoint: a step each, with text, a picture, notes, and a film where it moves."""

from __future__ import annotations

import importlib
import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from PySide6.QtCore import QPoint, QRect
from PySide6.QtGui import QImage, QPainter

from simulator.base.errors import refuse
from ui.export.film import Film
from ui.export.frames import FrameSource
from ui.export.stepping import FPS, PageSource, PageStep
from ui.export.writers.metadata import Note
from ui.export.writers.pixels import pixels_of
from ui.export.writers.png import write_png
from ui.look.flow import Face
from ui.look.theme import TEXT_FAMILY, THEMES, Theme
from ui.safety.program import with_extra
from ui.session.tasks import Report
from ui.talk.caption_text import blocks, plain_text

MOST_FILMS = 29
"""Films of a file: with more, PowerPoint stalls."""
_INCH = 914_400
_WIDE, _HIGH = 13.333, 7.5
"""A slide of 16 : 9, in inches."""
_MARGIN, _TITLE, _TEXT = 0.4, 0.8, 1.35
_SIGNS = {
    "leftarrow": "←", "rightarrow": "→", "top": "ᵀ", "ell": "ℓ", "alpha": "α", "cdot": "·",
    "times": "×", "infty": "∞", "Sigma": "Σ", "sum": "Σ", "sqrt": "√", "le": "≤", "ge": "≥",
    "approx": "≈", "phi": "φ", "theta": "θ", "pi": "π", "beta": "β", "gamma": "γ", "odot": "⊙",
    "in": "∈", "dots": "…", "ldots": "…", "cdots": "…", "Delta": "Δ", "delta": "δ", "lambda": "λ",
}  # fmt: skip
_SPACES = re.compile(r"\\[;,:! ]|\\quad|\\qquad|~")
_NAMED = re.compile(r"\\(?:mathrm|text|operatorname|mathbf|mathit)\{([^{}]*)\}")
_FRACTION = re.compile(r"\\[dt]?frac\{([^{}]*)\}\{([^{}]*)\}")
_COMMAND = re.compile(r"\\([A-Za-z]+)")
_BRACES = re.compile(r"\\(?:left|right)(?![a-z])")


class FilmedPages(PageSource, Protocol):
    """Steps of which there are films."""

    def film(self, n: int, theme: str) -> FrameSource | None:
        """Return what is seen on the way to step `n`; None where nothing moves."""


def written(markdown: str) -> str:
    """Return a text as a slide has it: formulas in signs of Unicode, on one line."""
    out = ""
    for block in blocks(markdown):
        out += " " if out else ""
        for word in block.words:
            text = formula_text(word.text) if word.face is Face.MATHS else word.text
            out += text if word.glued or not out else f" {text}"
    return " ".join(out.split())


def formula_text(latex: str) -> str:
    """Return a formula on one line."""
    text = _SPACES.sub(" ", latex)
    for pattern, by in ((_NAMED, r"\1"), (_FRACTION, r"(\1) / (\2)")):
        text = pattern.sub(by, text)
    text = _BRACES.sub("", text.replace("^{\\top}", "ᵀ").replace("^\\top", "ᵀ"))
    text = _COMMAND.sub(lambda found: _SIGNS.get(found[1], found[1]), text)
    return " ".join(text.replace("{", "").replace("}", "").replace("\\", "").split())


def pptx_bytes(source: FilmedPages, note: Note, report: Report, theme: str, target: str) -> bytes:
    """Return slides: one for each step, and one for each answer.

    Raises InputError: the library is not installed.
    """
    deck = _Deck(THEMES[theme], target)
    films = 0
    for n in range(len(source)):
        share = n / len(source)
        report(share)
        look = partial(report, share)
        step = source.step(n, theme, look)
        source.make_ready(n, step.pictures - 1, theme, look)
        image = QImage(*source.size, QImage.Format.Format_RGB32)
        with QPainter(image) as painter:
            source.paint(painter, n, step.pictures - 1, theme)
        image = image.copy(_whole(source))
        png = io.BytesIO()
        write_png(png, pixels_of(image), alpha=False, note="")
        film = source.film(n, theme) if films < MOST_FILMS else None
        packed = None
        if film is not None:
            packed = _packed(film, _whole(source), note, look)
            films += 1
        last = n + 1 == len(source)
        told = f"{note.command}\n{note.text}" if last else ""
        asked = step.question
        if step.prediction is not None:
            asked = " · ".join(step.prediction.choices)
        deck.add(step, asked, png.getvalue(), image, packed, told)
        if step.answer:
            deck.add(step, step.answer, png.getvalue(), image, None, told)
    return deck.bytes(note)


def _whole(source: PageSource) -> QRect:
    """Return the part of a picture that is seen, of even sides, as films need them."""
    left, top, width, height = map(round, source.view)
    return QRect(left, top, width - width % 2, height - height % 2)


@dataclass
class _Part:
    """A part of the frames of a source."""

    whole: FrameSource
    rect: QRect

    transparent = False

    @property
    def size(self) -> tuple[int, int]:
        return self.rect.width(), self.rect.height()

    @property
    def in_gui(self) -> bool:
        return self.whole.in_gui

    def __len__(self) -> int:
        return len(self.whole)

    def key(self, k: int) -> Any:
        return self.whole.key(k)

    def make_ready(self, k: int, look: Callable[[], None]) -> None:
        self.whole.make_ready(k, look)

    def paint(self, painter: QPainter, k: int) -> None:
        image = QImage(*self.whole.size, QImage.Format.Format_RGB32)
        with QPainter(image) as inner:
            self.whole.paint(inner, k)
        painter.drawImage(QPoint(), image, self.rect)

    def close(self) -> None:
        self.whole.close()


def _packed(film: FrameSource, rect: QRect, note: Note, look: Callable[[], None]) -> bytes:
    """Return a film as MP4."""
    from ui.export.writers.video import VideoWriter

    part, out = _Part(film, rect), io.BytesIO()
    try:
        writer = VideoWriter(out, ".mp4", part.size, FPS, note.text)
        Film(part, writer).make(lambda _: look())
    finally:
        part.close()
    return out.getvalue()


class _Deck:
    """A file of slides that is being made."""

    def __init__(self, theme: Theme, target: str) -> None:
        try:
            self._library: Any = importlib.import_module("pptx")
            self._colour: Any = importlib.import_module("pptx.dml.color")
        except ImportError:
            wanted = f"the library python-pptx: {with_extra('slides')}"
            raise refuse("export", "-o", target, wanted) from None
        self._theme = theme
        self._deck = self._library.Presentation()
        self._deck.slide_width, self._deck.slide_height = _emu(_WIDE), _emu(_HIGH)
        self._title_only = self._deck.slide_layouts[5]

    def add(
        self,
        step: PageStep,
        asked: str,
        png: bytes,
        image: QImage,
        film: bytes | None,
        told: str,
    ) -> None:
        """Add a slide: of a step, with its question or its answer."""
        slide = self._deck.slides.add_slide(self._title_only)
        slide.background.fill.solid()
        slide.background.fill.fore_color.rgb = self._rgb(self._theme.window)
        wide = _WIDE - 2 * _MARGIN
        title = slide.shapes.title
        title.left, title.top = _emu(_MARGIN), _emu(0.15)
        title.width, title.height = _emu(wide), _emu(_TITLE)
        self._write(title.text_frame, [written(step.title)], 28, bold=True)
        room = _HIGH - 0.15 - _TITLE - _TEXT - _MARGIN
        scale = min(wide / image.width(), room / image.height())
        w, h = image.width() * scale, image.height() * scale
        place = [_emu(side) for side in ((_WIDE - w) / 2, 0.15 + _TITLE, w, h)]
        if film is None:
            picture = slide.shapes.add_picture(io.BytesIO(png), *place)
        else:
            picture = slide.shapes.add_movie(
                io.BytesIO(film), *place, poster_frame_image=io.BytesIO(png), mime_type="video/mp4"
            )
        # What screen readers say of it.
        picture._element._nvXxPr.cNvPr.set("descr", f"{written(step.title)}: the run at this step")
        box = slide.shapes.add_textbox(
            _emu(_MARGIN), _emu(_HIGH - _TEXT - _MARGIN / 2), _emu(wide), _emu(_TEXT)
        )
        box.text_frame.word_wrap = True
        lines = [written(part) for part in step.text.split("\n\n") if part.strip()]
        self._write(box.text_frame, [*lines, *([written(asked)] if asked else [])], 16)
        notes = [plain_text(part) for part in step.notes.split("\n\n") if part.strip()]
        slide.notes_slide.notes_text_frame.text = "\n".join([*notes, *([told] if told else [])])

    def _write(self, frame: Any, lines: list[str], points: int, *, bold: bool = False) -> None:
        for n, line in enumerate(lines):
            paragraph = frame.paragraphs[0] if n == 0 else frame.add_paragraph()
            run = paragraph.add_run()
            run.text = line
            run.font.size, run.font.bold, run.font.name = _emu(points / 72), bold, _FONT
            run.font.color.rgb = self._rgb(self._theme.text)

    def _rgb(self, colour: str) -> Any:
        return self._colour.RGBColor.from_string(colour.lstrip("#").upper())

    def bytes(self, note: Note) -> bytes:
        """Return the file."""
        about = self._deck.core_properties
        about.title, about.author = note.title[:255], f"Tilescope {note.version}"
        about.comments = note.command[:255]
        out = io.BytesIO()
        self._deck.save(out)
        return out.getvalue()


_FONT = TEXT_FAMILY.removesuffix(" Tabular")


def _emu(inches: float) -> int:
    return round(inches * _INCH)
