"""A lesson on paper: its steps on sheets, notes below them, and sections after the last step."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QImage, QPainter, QPen

from simulator.base.assets import LESSONS
from simulator.base.references import citations
from simulator.exercises.made import Exercise, exercises_of
from simulator.lesson.steps import Lesson, ResolvedStep
from ui.export.frames import new_image, paint_frame
from ui.export.lesson_frames import LessonFrames
from ui.export.options import ExportOptions
from ui.export.unseen_window import Look
from ui.look.draw import LEFT, RIGHT, draw_text
from ui.look.flow import Flow, paint_pieces
from ui.look.lesson_text import FORMATS
from ui.look.theme import THEMES, Style
from ui.talk.caption import BODY, lines_above, text_flow

A4 = (1190, 1684)  # a sheet, upright, in pixels of 1/144 inch
_LETTERS = 64
"""Letters in the height of a square sheet of the same area: for words outside of pictures."""
_LEAST_PICTURE = 0.6
"""Least size of a picture above long notes, as a share of the largest that has room."""
_TITLE = 1.4  # size of a title's letters, as a multiple of the text's
_COLUMN = 36  # least width of a column of text, in letters


@dataclass(frozen=True, slots=True)
class PrintedSection:
    """A section after the steps: a title, and texts that are cut only if they must be."""

    title: str
    texts: tuple[str, ...]  # Markdown, as in captions
    apart: bool = False  # whether the section begins on a page of its own


@dataclass(frozen=True, slots=True)
class _Set:
    """A text in its place on a page."""

    flow: Flow
    x: float  # x, y: its upper left corner
    y: float
    size: float = 1.0  # size of its letters, as a multiple of other texts'


class Handout:
    """The pages of a lesson; the sections after the steps are known when the last step is."""

    transparent = False
    in_gui = True

    def __init__(self, lesson: Lesson, frames: LessonFrames, options: ExportOptions) -> None:
        self._lesson, self._frames = lesson, frames
        self._notes, self._count = options.notes, options.per_page
        self._answers, self._whole = options.answers, options.steps is None
        self._theme = THEMES[options.theme]
        self._plain = self._count == 1 and not self._notes
        """Whether a page is a picture and nothing else."""
        upright = self._count > 1
        self.size = frames.size if self._plain else A4 if upright else (A4[1], A4[0])
        self._said: dict[int, ResolvedStep] = {}
        self._after: tuple[tuple[_Set, ...], ...] | None = None

    @property
    def _sheets(self) -> int:
        """The number of pages with pictures."""
        return -(-len(self._frames) // self._count)

    def __len__(self) -> int:
        """Return the number of pages, as far as it is known."""
        return self._sheets + (len(self._after) if self._after is not None else 0)

    def key(self, k: int) -> Hashable:
        """Return the page's number."""
        return k

    def make_ready(self, k: int, look: Look) -> None:
        """Compute the steps of a page; for the last page with pictures, compute all steps."""
        for n in self._pictures(k):
            self._ready(n, look)
        if k + 1 == self._sheets and self._after is None:
            for n in range(len(self._frames)):
                if n not in self._said:
                    self._ready(n, look)
            steps = {step.number: step for step in self._said.values()}
            sections = after_steps(
                [steps[n] for n in sorted(steps)],
                exercises_in(self._lesson) if self._whole else (),
                questions=self._answers in (None, "end"), answers=self._answers != "none",
                notes=self._notes,
            )  # fmt: skip
            self._after = tuple(self._laid_out(sections))

    def _ready(self, n: int, look: Look) -> None:
        self._frames.make_ready(n, look)
        self._said[n] = self._frames.step

    def close(self) -> None:
        """End the window."""
        self._frames.close()

    def _pictures(self, k: int) -> range:
        return range(k * self._count, min((k + 1) * self._count, len(self._frames)))

    # --- painting -------------------------------------------------------------------------

    @property
    def _em(self) -> float:
        """Size of letters outside of pictures, in pixels."""
        return math.sqrt(self.size[0] * self.size[1]) / _LETTERS

    def _style(self, share: float = 1.0) -> Style:
        return Style(self._theme, share * self._em / BODY)

    @property
    def _page(self) -> QRectF:
        """The page without its margins."""
        edge = 2.2 * self._em
        return QRectF(0, 0, *self.size).adjusted(edge, edge, -edge, -edge)

    def paint(self, painter: QPainter, k: int) -> None:
        """Draw a page."""
        self.make_ready(k, lambda: None)
        if self._plain and k < self._sheets:
            self._frames.paint(painter, k)
            return
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.fillRect(QRectF(0, 0, *self.size), QColor(self._theme.panel))
        if k < self._sheets:
            self._paint_sheet(painter, k)
        else:
            self._paint_after(painter, k)
        self._paint_number(painter, k)

    def _paint_number(self, painter: QPainter, k: int) -> None:
        em, page, style = self._em, self._page, self._style()
        line = QRectF(page.left(), page.bottom(), page.width(), 1.6 * em)
        font = style.text_font(0.8 * BODY)
        draw_text(painter, line, self._lesson.title, font, self._theme.muted, LEFT)
        draw_text(painter, line, f"{k + 1}", font, self._theme.muted, RIGHT)

    def _paint_sheet(self, painter: QPainter, k: int) -> None:
        page, em = self._page, self._em
        high = (page.height() - (self._count - 1) * em) / self._count
        for place, n in enumerate(self._pictures(k)):
            slot = QRectF(page.left(), page.top() + place * (high + em), page.width(), high)
            notes = self._notes_below(n)
            picture, share = self._picture_rect(slot, notes)
            self._paint_picture(painter, n, picture)
            if notes:
                top = picture.bottom() + 0.5 * em
                style = self._style(share)
                text = text_flow(f"**Notes.** {notes}", style, slot.width(), 0)
                seen = lines_above(text.pieces, slot.bottom() - top, style)
                painter.save()
                painter.translate(slot.left(), top)
                paint_pieces(painter, seen, style, self._theme.text, BODY)
                painter.restore()

    def _notes_below(self, n: int) -> str:
        """Return the notes of a picture's step, if the picture is the last of this step."""
        number, later = self._frames.step_number, n + 1
        ends = later == len(self._frames) or number(later) != number(n)
        return self._said[n].notes if self._notes and ends else ""

    def _picture_rect(self, slot: QRectF, notes: str) -> tuple[QRectF, float]:
        """Return the place of a picture, and the size of its notes' letters."""
        wide, high = self._frames.size
        fits = min(slot.width() / wide, slot.height() / high)
        largest = 1.0 if self._count == 1 else 0.9  # captions beside it are small
        sizes = tuple(largest * times for times in (1.0, 0.9, 0.8)) if notes else (1.0,)
        for times in (1.0, 0.95, 0.9, 0.8, 0.7, _LEAST_PICTURE):
            scale = fits * times
            picture = QRectF(0, slot.top(), scale * wide, scale * high)
            picture.moveLeft(slot.left() + (slot.width() - picture.width()) / 2)
            for share in sizes:
                needed = text_flow(f"**Notes.** {notes}", self._style(share), slot.width(), 0)
                room = slot.bottom() - picture.bottom() - 0.5 * self._em
                if not notes or needed.bottom <= room:
                    return picture, share
        return picture, share

    def _paint_picture(self, painter: QPainter, n: int, rect: QRectF) -> None:
        wide = self._frames.size[0]
        if isinstance(painter.device(), QImage):  # widgets draw with their own whole pixels
            painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
            painter.drawImage(rect, paint_frame(self._frames, n, new_image(self._frames)))
        else:
            painter.save()
            painter.translate(rect.topLeft())
            painter.scale(rect.width() / wide, rect.width() / wide)
            self._frames.paint(painter, n)
            painter.restore()
        painter.setPen(QPen(QColor(self._theme.border), max(1.0, 0.05 * self._em)))
        painter.drawRect(rect)

    # --- after the steps ------------------------------------------------------------------

    def _paint_after(self, painter: QPainter, k: int) -> None:
        assert self._after is not None
        for placed in self._after[k - self._sheets]:
            style = self._style(placed.size)
            painter.save()
            painter.translate(placed.x, placed.y)
            paint_pieces(painter, placed.flow.pieces, style, self._theme.text, BODY)
            painter.restore()

    def _laid_out(self, sections: Iterable[PrintedSection]) -> Iterator[tuple[_Set, ...]]:
        """Yield pages of texts in columns."""
        page, em = self._page, self._em
        columns = max(1, int(page.width() // (_COLUMN * em)))
        gap = 2 * em
        wide = (page.width() - (columns - 1) * gap) / columns
        out: list[_Set] = []
        column, y = 0, page.top()
        for section in sections:
            if section.apart and out:
                yield tuple(out)
                out, column, y = [], 0, page.top()
            texts = (f"**{section.title}**", *section.texts)
            for n, text in enumerate(texts):
                size = 1.0 if n else _TITLE
                laid = text_flow(text, self._style(size), wide, 0)
                after = 0.0 if n else text_flow(texts[1], self._style(), wide, 0).bottom + em
                for part in _cut(laid, page.height()):
                    if y > page.top() and y + part.bottom + after > page.bottom():
                        column, y = column + 1, page.top()
                        if column == columns:
                            yield tuple(out)
                            out, column = [], 0
                    out.append(_Set(part, page.left() + column * (wide + gap), y, size))
                    y += part.bottom + 0.8 * em
            y += em
        if out:
            yield tuple(out)


def _cut(laid: Flow, high: float) -> Iterator[Flow]:
    """Yield the lines of a text in parts of at most this height."""
    lines = list(dict.fromkeys(piece.baseline for piece in laid.pieces))
    start = 0
    while start < len(lines):
        up, under, stop = lines[start] - lines[0], laid.bottom - lines[-1], start + 1
        while stop < len(lines) and lines[stop] - up + under <= high:
            stop += 1
        kept = [piece for piece in laid.pieces if lines[start] <= piece.baseline <= lines[stop - 1]]
        moved = tuple(replace(piece, baseline=piece.baseline - up) for piece in kept)
        yield Flow(moved, laid.right, lines[stop - 1] - up + under)
        start = stop


def exercises_in(lesson: Lesson) -> tuple[Exercise, ...]:
    """Return the exercises of a lesson of Tilescope, with the numbers of seed 0."""
    file = Path(lesson.source)
    return exercises_of(file.stem, 0, FORMATS) if file.parent == LESSONS else ()


def after_steps(
    steps: Sequence[ResolvedStep],
    exercises: Sequence[Exercise] = (),
    *,
    questions: bool = True,
    answers: bool = True,
    notes: bool = False,
) -> Iterator[PrintedSection]:
    """Yield the sections after the steps; answers last, on a page of their own.

    questions, answers: whether answers to the questions of steps, and to exercises, are given.
    notes: whether papers that only the notes cite are named, too.
    """
    if exercises:
        asked = (_asked(each, n) for n, each in enumerate(exercises, start=1))
        yield PrintedSection("Exercises", tuple(asked), apart=True)
    said = "\n".join(
        "\n".join((step.caption, step.question, step.answer, step.notes if notes else ""))
        for step in steps
    )
    papers = sorted((cited.paper for cited in citations(said)), key=lambda paper: paper.name)
    if papers:
        texts = tuple(f"**{paper.name}.** {paper.line} {paper.link}" for paper in papers)
        yield PrintedSection("References", texts)
    told = [
        f"**Step {step.number + 1}. {step.title}**\n\n*{step.question}*\n\n{step.answer}"
        for step in steps
        if step.question and questions
    ]
    if answers:
        solved = enumerate(exercises, start=1)
        told += [f"**Exercise {n}.** {_answered(each)}" for n, each in solved]
    if told:
        yield PrintedSection("Answers", tuple(told), apart=True)


def _asked(exercise: Exercise, number: int) -> str:
    """Return an exercise as Markdown: the question, and the choices."""
    parts = [f"**{number}.** {exercise.ask}"]
    if exercise.options:
        parts.append("\n".join(f"- {option.text}" for option in exercise.options))
    if exercise.tiles:
        rows, cols = (sorted({tile[n] for tile in exercise.tiles}) for n in (0, 1))
        parts.append(f"Rows {', '.join(map(str, rows))}; columns {', '.join(map(str, cols))}.")
    if exercise.op is not None:
        parts += [exercise.op.says, _code(exercise.op.head)]
    return "\n\n".join(parts)


def _answered(exercise: Exercise) -> str:
    """Return the answer to an exercise as Markdown."""
    if exercise.op is not None:
        return f"{exercise.why}\n\n{_code(exercise.answer_text)}"
    return f"{exercise.answer_text.rstrip('.')}. {exercise.why}"


def _code(text: str) -> str:
    """Return lines of code as Markdown, each a line of its own."""
    return "\n\n".join(f"`{line.replace(' ', chr(0xA0))}`" for line in text.splitlines())
