"""Slides: a step each, with text, a picture, notes, and a film if the step moves."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from PySide6.QtCore import QPoint, QRect
from PySide6.QtGui import QImage, QPainter

from ui.export.film import Film
from ui.export.frames import FrameSource
from ui.export.stepping import FPS, PageSource
from ui.export.writers.metadata import Note
from ui.export.writers.pixels import pixels_of
from ui.export.writers.png import write_png
from ui.session.tasks import Report


class FilmedPages(PageSource, Protocol):
    """Steps that also have films."""

    def film(self, n: int, theme: str) -> FrameSource | None:
        """Return the film of the way to step `n`; None where nothing moves."""


@dataclass(frozen=True, slots=True)
class Slide:
    """One slide; its texts are Markdown with formulas."""

    title: str
    text: str
    asked: str  # its question, the choices, or its answer; "" where there is none
    notes: str  # the speaker's
    told: str  # how the file was made, at the end of the last slide's notes
    picture: bytes  # PNG
    size: tuple[int, int]  # of the picture, in pixels
    film: bytes | None = None  # MP4, which ends with the picture


def slides_of(
    source: FilmedPages, note: Note, report: Report, theme: str, most_films: int
) -> Iterator[Slide]:
    """Yield slides: one for each step, and one for each answer, after its question's slide."""
    films = 0
    for n in range(len(source)):
        share = n / len(source)
        report(share)
        look = partial(report, share)
        step = source.step(n, theme, look)
        source.make_ready(n, step.pictures - 1, theme, look)
        image = QImage(*source.size, QImage.Format.Format_RGB32)
        with QPainter(image) as painter:
            for layer in source.layers(n, step.pictures - 1, theme):
                layer.paint(painter)
        image = image.copy(_whole(source))
        png = io.BytesIO()
        write_png(png, pixels_of(image), alpha=False, note="")
        film = source.film(n, theme) if films < most_films else None
        packed = None
        if film is not None:
            packed = _packed(film, _whole(source), note, look)
            films += 1
        told = f"{note.command}\n{note.text}" if n + 1 == len(source) else ""
        asked = step.question
        if step.prediction is not None:
            asked = " · ".join(step.prediction.choices)
        size = image.width(), image.height()
        first = Slide(
            step.title, step.text, asked, step.notes, told, png.getvalue(), size, packed
        )  # fmt: skip
        yield first
        if step.answer:
            yield replace(first, asked=step.answer, film=None)


def _whole(source: PageSource) -> QRect:
    """Return the visible part of a picture, with even sides, as films need them."""
    left, top, width, height = map(round, source.view)
    return QRect(left, top, width - width % 2, height - height % 2)


@dataclass
class _FilmPart:
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

    part, out = _FilmPart(film, rect), io.BytesIO()
    try:
        writer = VideoWriter(out, ".mp4", part.size, FPS, note.text)
        Film(part, writer).make(lambda _: look())
    finally:
        part.close()
    return out.getvalue()
