"""The caption of a lesson's step: title, text with formulas, the question and its answer."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from PySide6.QtCore import QRectF
from PySide6.QtGui import QFontMetricsF, QPainter

from simulator.lesson.places import NumberPlace
from simulator.lesson.steps import ResolvedStep
from ui.look.draw import RIGHT, card, draw_text, mixed, text_width
from ui.look.flow import Face, Flow, Piece, flow, paint_pieces, width_of
from ui.look.names import first_that_fits
from ui.look.terms import TermSpot, paint_dots, term_boxes, with_terms
from ui.look.theme import DARK, Style
from ui.talk.caption_text import TextBlock, blocks, with_numbers, words_of

BODY = 17.0
"""Letters of a caption, in pixels at scale 1."""
SMALLEST = 11
"""The smallest letters of a caption, in pixels."""
_TITLE = _COUNT = 15.0
_LONGEST = 64.0
"""Widest column of text, in sizes of its letters: longer lines are hard to read."""
_SIDE = 44.0
"""Width, in sizes of letters, from which the question is beside the text."""
_SPLITS = (0.5, 0.45, 0.55, 0.4, 0.6, 0.35, 0.65, 0.3, 0.7)
"""Shares of the width that the text may get beside a question."""
_LEADING = 2.0
_ENDLESS = 1e6
_GAP, _PARAGRAPH, _INDENT = 20.0, 5.0, 18.0
_PAD = (12.0, 5.0)
_BAR = 4.0
_PARAGRAPHS = re.compile(r"\n\n+(?![ \t]*([-*+]|\d+[.)])[ \t])")
"""The gap between two paragraphs, if the second is no list."""


@dataclass(frozen=True, slots=True)
class Caption:
    """The texts of a step."""

    title: str  # its heading
    body: str  # Markdown with formulas between dollar signs
    # number, count: the step's number, from 0, and the count of steps; not shown if `count` is 0
    number: int = 0
    count: int = 0
    question: str = ""  # question, answer: also Markdown; "" if there is none
    answer: str = ""
    revealed: bool = False  # whether the answer is shown. Its place is kept free until then
    # title of the whole lesson, which is shown before the number of the step if there is space
    lesson: str = ""
    flows: bool = False  # whether its paragraphs follow each other on one line
    numbers: tuple[NumberPlace, ...] = ()  # numbers of body and answer that have an origin

    @property
    def place(self) -> str:
        """The step's number in words."""
        return f"{self.number + 1} of {self.count}" if self.count else ""

    @property
    def places(self) -> tuple[str, ...]:
        """The step's number in words, longest first: with the lesson's title, and without it."""
        whole = f"{self.lesson}  ·  {self.place}" if self.lesson and self.place else ""
        return (whole, self.place) if whole else (self.place,)


def caption_of(step: ResolvedStep, revealed: bool) -> Caption:
    """Return the caption of a step of a lesson."""
    return Caption(
        step.title, step.caption, step.number, step.count, step.question, step.answer, revealed,
        step.lesson, flows=True, numbers=step.places,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class LessonEnd:
    """The end of a lesson, after its last step."""

    lesson: str  # title of the lesson
    following: str  # title of the lesson after it; "" if there is none
    last: bool  # whether it was the last of Tilescope's own lessons
    film: bool = False  # whether a film shows this end: no key works there


def end_caption(end: LessonEnd) -> Caption:
    """Return the caption of the strip after the last step of a lesson."""
    if end.film:
        return Caption(end.lesson, f"Next: **{end.following}**" if end.following else "")
    keys = "PgUp goes back to the last step. Ctrl+W leaves the lesson."
    said = "This was the last lesson." if end.last else ""
    if end.following:
        said, keys = f"Next: **{end.following}**", "PgDn opens it. PgUp goes back to the last step."
    said = "\n\n".join(filter(None, (said, keys)))
    return Caption(f"End of lesson: {end.lesson}", said)


@dataclass(frozen=True, slots=True)
class CaptionLayout:
    """The places of all parts, from the upper left corner of the caption."""

    scale: float  # text scale
    place: str  # the step's number, in the form that fits beside the title
    title: tuple[Piece, ...]  # title, body, question, answer: words and formulas
    body: tuple[Piece, ...]
    question: tuple[Piece, ...]
    answer: tuple[Piece, ...]
    card: QRectF  # background of the question; null without a question
    right: float  # right, height: right and lower end, in pixels
    height: float


def caption_height(caption: Caption, style: Style, width: float) -> float:
    """Return the height of a caption at full size, in pixels, with its answer, shown or not."""
    return _extent(_unrevealed(caption), style.scale, width)[1]


def caption_layout(caption: Caption, style: Style, width: float, height: float) -> CaptionLayout:
    """Return the places of a caption's parts; its text is only as small as it must be.

    width, height: space, in pixels.
    """
    caption = _unrevealed(caption)

    def fits(scale: float) -> bool:
        right, bottom = _extent(caption, scale, width)
        return bottom <= height and right <= width

    if fits(style.scale):
        return _laid_out(caption, style.scale, width)
    sizes = range(SMALLEST, round(BODY * style.scale))  # whole pixels, as fonts are
    fitting = bisect(sizes, 0, key=lambda size: not fits(size / BODY))
    size = sizes[max(fitting - 1, 0)] if sizes else SMALLEST
    return _laid_out(caption, min(size / BODY, style.scale), width)


def paint_caption(
    painter: QPainter,
    caption: Caption,
    style: Style,
    rect: QRectF,
    *,
    terms: bool = False,
    lit: NumberPlace | None = None,
) -> None:
    """Draw a caption.

    style: colours and the size of the text, which gets smaller if there is too little space.
    rect: the space. Text that does not fit it at 11 pixels is replaced by an ellipsis.
    terms: whether words of the glossary are marked, each at its first place, and numbers that
        have an origin.
    lit: the number under the pointer.
    """
    laid = caption_layout(caption, style, rect.width(), rect.height())
    theme, own = style.theme, replace(style, scale=laid.scale)
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setClipRect(rect.adjusted(-1, -1, 1, 1))
    painter.translate(round(rect.x()), round(rect.y()))
    low = rect.height() if laid.height > rect.height() else laid.height
    if not laid.card.isNull():
        box = QRectF(laid.card.intersected(QRectF(0, 0, rect.width(), low)).toRect())
        card(painter, box, mixed(theme.panel, theme.current, 0.14), theme.current, own.px(4))
        box.setWidth(round(own.px(_BAR)))
        painter.fillRect(box, theme.current)
    place = _place_rect(laid, rect.width())
    draw_text(painter, place, laid.place, own.text_font(_COUNT), theme.muted, RIGHT)
    paint_pieces(painter, laid.title, own, theme.text, _TITLE)
    said = laid.question + (laid.answer if caption.revealed else ())
    numbers = list(_numbers(caption, laid, own, rect.height())) if terms else []
    for number, box in numbers:
        if number == lit:
            card(painter, box, mixed(theme.panel, theme.current, 0.3), theme.current, own.px(3))
    for pieces in (laid.body, said):
        shown = lines_above(pieces, rect.height(), own)
        paint_pieces(painter, shown, own, theme.text, BODY)
    for _, box in _terms(caption, laid, own, rect.height()) if terms else ():
        paint_dots(painter, box, own)
    for number, box in numbers:
        if number != lit:
            paint_dots(painter, box, own)
    painter.restore()


def _terms(
    caption: Caption, laid: CaptionLayout, own: Style, low: float
) -> list[tuple[TermSpot, QRectF]]:
    """Return the visible words of the glossary, each at its first place."""
    first: dict[TermSpot, list[QRectF]] = {}
    closed: set[TermSpot] = set()
    for pieces in (laid.body, laid.question, laid.answer if caption.revealed else ()):
        found = list(term_boxes(lines_above(pieces, low, own), own, BODY))
        for spot, box in found:
            if spot not in closed:
                first.setdefault(spot, []).append(box)
        closed.update(spot for spot, _ in found)
    return [(spot, box) for spot, boxes in first.items() for box in boxes]


def caption_terms(
    caption: Caption, style: Style, width: float, height: float
) -> list[tuple[TermSpot, QRectF]]:
    """Return the words of the glossary with their places, from the caption's upper left corner."""
    laid = caption_layout(caption, style, width, height)
    return _terms(caption, laid, replace(style, scale=laid.scale), height)


def _numbers(
    caption: Caption, laid: CaptionLayout, own: Style, low: float
) -> Iterator[tuple[NumberPlace, QRectF]]:
    """Yield the visible numbers that have an origin, with their places."""
    for pieces in (laid.body, laid.answer if caption.revealed else ()):
        for piece in lines_above(pieces, low, own):
            if 0 <= piece.number < len(caption.numbers):
                metrics = QFontMetricsF(own.text_font(BODY))
                wide = width_of(piece.text, piece.face, own, BODY)
                top = piece.baseline - metrics.ascent()
                yield caption.numbers[piece.number], QRectF(piece.x, top, wide, metrics.height())


def caption_numbers(
    caption: Caption, style: Style, width: float, height: float
) -> list[tuple[NumberPlace, QRectF]]:
    """Return the numbers with an origin and their places, from the caption's upper left corner."""
    laid = caption_layout(caption, style, width, height)
    return list(_numbers(caption, laid, replace(style, scale=laid.scale), height))


def place_rect(caption: Caption, style: Style, width: float, height: float) -> QRectF:
    """Return the place of the step's number, from the caption's upper left corner."""
    return _place_rect(caption_layout(caption, style, width, height), width)


def _place_rect(laid: CaptionLayout, width: float) -> QRectF:
    own = Style(DARK, laid.scale)
    wide = text_width(own.text_font(_COUNT), laid.place)
    high = QFontMetricsF(own.text_font(_TITLE, bold=True)).height()
    return QRectF(width - wide, 0, wide, high)


def lines_above(pieces: tuple[Piece, ...], low: float, style: Style) -> tuple[Piece, ...]:
    """Return the pieces of lines that end above `low`; an ellipsis replaces the other lines."""
    under = QFontMetricsF(style.text_font(BODY)).descent()
    kept = tuple(piece for piece in pieces if piece.baseline + under <= low + 1)
    if len(kept) == len(pieces) or not kept:
        return kept
    return (*kept[:-1], replace(kept[-1], text="…", face=Face.TEXT))


def _unrevealed(caption: Caption) -> Caption:
    """Return a caption whose answer is hidden: the layout is the same."""
    return replace(caption, revealed=False)


# --- layout -----------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _extent(caption: Caption, scale: float, width: float) -> tuple[float, float]:
    """Return the width and the height of a caption, in pixels.

    A window that changes its size asks for these in many sizes again and again.
    """
    laid = _laid_out(caption, scale, width)
    return laid.right, laid.height


@lru_cache(maxsize=16)
def _laid_out(caption: Caption, scale: float, width: float) -> CaptionLayout:
    style = Style(DARK, scale)  # places do not depend on colours
    px = style.px
    body = with_numbers(caption.body, caption.numbers, "caption")
    body = _PARAGRAPHS.sub(" ", body) if caption.flows else body
    words = words_of(caption.title, bold=True)
    across = flow(words, style, 0, _ENDLESS, 0, _TITLE).right
    place = first_that_fits(caption.places, width - across - px(_GAP), style.text_font(_COUNT))
    aside = text_width(style.text_font(_COUNT), place)
    room = max(width - aside - px(_GAP), px(BODY))
    title = flow(words, style, 0, room, 0, _TITLE)
    top = title.bottom + px(3)
    longest = px(_LONGEST * BODY)
    if not caption.question:
        text = text_flow(body, style, min(width, longest), top)
        return CaptionLayout(
            scale, place, title.pieces, text.pieces, (), (), QRectF(),
            max(title.right + aside, text.right), text.bottom,
        )  # fmt: skip
    if width < px(_SIDE * BODY):
        text = text_flow(body, style, min(width, longest), top)
        box = QRectF(0, text.bottom + px(_PARAGRAPH), min(width, longest), 0)
        return _with_card(caption, style, place, title, text, box)
    wide = min(width, 2 * longest)
    best: tuple[float, Flow, QRectF] | None = None
    for share in _SPLITS:
        own = min(share * wide, longest) - px(_GAP) / 2
        text = text_flow(body, style, own, top)
        if best is not None and text.bottom >= best[0]:
            continue  # this layout is no lower, whatever the card's height
        box = QRectF(own + px(_GAP), top, min(wide - own - px(_GAP), longest), 0)
        low = max(text.bottom, _in_card(caption, style, box)[1])
        if best is None or low < best[0]:
            best = low, text, box
    assert best is not None
    return _with_card(caption, style, place, title, *best[1:])


def _in_card(
    caption: Caption, style: Style, box: QRectF, *, whole: bool = True
) -> tuple[Flow, float]:
    """Return question and answer, or the question alone, on a card, and the card's lower end."""
    across, down = style.px(_PAD[0]), style.px(_PAD[1])
    left, right, top = box.left() + across, box.right() - across, box.top() + down
    words = with_terms(words_of(caption.question, bold=True))
    # The answer continues where the question ends.
    told = with_numbers(caption.answer, caption.numbers, "answer")
    answer = with_terms(words_of(told)) if whole else ()
    said = flow((*words, *answer), style, left, right, top, BODY, leading=_LEADING)
    return said, said.bottom + down


def _with_card(
    caption: Caption, style: Style, place: str, title: Flow, text: Flow, box: QRectF
) -> CaptionLayout:
    """Return the layout with the question on a card as wide as `box` and as high as it needs."""
    both, bottom = _in_card(caption, style, box)
    box.setBottom(bottom)
    count = len(_in_card(caption, style, box, whole=False)[0].pieces)
    return CaptionLayout(
        style.scale, place, title.pieces, text.pieces,
        both.pieces[:count], both.pieces[count:], box,
        max(text.right, both.right + style.px(_PAD[0])), max(text.bottom, bottom),
    )  # fmt: skip


def text_flow(markdown: str, style: Style, width: float, top: float) -> Flow:
    """Return paragraphs and lists one under the other."""
    pieces: list[Piece] = []
    right, y = 0.0, top
    before: TextBlock | None = None
    for block in blocks(markdown):
        if before is not None:
            y += style.px(_LEADING if block.level and before.level else _PARAGRAPH)
        left = block.level * style.px(_INDENT)
        laid = flow(with_terms(block.words), style, left, width, y, BODY, leading=_LEADING)
        if block.mark and laid.pieces:
            wide = width_of(block.mark, Face.TEXT, style, BODY)
            at = left - wide - style.px(5)
            pieces.append(Piece(at, laid.pieces[0].baseline, block.mark, Face.TEXT))
        pieces += laid.pieces
        right, y, before = max(right, laid.right), laid.bottom, block
    return Flow(tuple(pieces), right, y)
