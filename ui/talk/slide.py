"""The caption on the stage: at most two lines, a sentence each where this fits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from PySide6.QtCore import QRectF, QSize
from PySide6.QtGui import QPainter

from simulator.lesson.steps import paragraphs
from ui.look.flow import Face, Flow, FlowWord, flow, paint_pieces
from ui.look.slide import BODY, LINES, MARGIN, unit
from ui.look.theme import DARK, Style
from ui.talk.caption import BODY as TEXT
from ui.talk.caption import Caption
from ui.talk.caption_text import words_of

FULL = QSize(1920, 1080)
_LEADING = 2.0
_ENDLESS = 1e6
_ENDS = (".", "?", "!", ":", ".”", "?”", ".)")
_SHORT = "al.", "e.g.", "i.e.", "vs."
"""Words whose full stop ends no sentence."""


def slide_style(style: Style, size: QSize) -> Style:
    """Return the style of a caption in a window of that size: in whole pixels, rounded down.

    So a line that fits at 1080 pixels fits at every size.
    """
    return replace(style, scale=max(int(BODY * unit(size) + 0.01), 9) / TEXT)


def slide_width(size: QSize) -> float:
    """Return the largest width of a line, in pixels."""
    return (FULL.width() - 2 * MARGIN) * unit(size)


def line_count(caption: Caption) -> int:
    """Return how many lines a caption needs on the stage, with its question, or its answer."""
    style = slide_style(Style(DARK), FULL)
    return _lines(_flow(_words(caption, paragraphs(caption.body)[0]), style, slide_width(FULL)))


def slide_body(caption: Caption) -> str:
    """Return the part of a caption for the stage: as many sentences as fit, at least one."""
    whole = paragraphs(caption.body)[0]
    style, width = slide_style(Style(DARK), FULL), slide_width(FULL)
    for part in _shorter(whole):
        if _lines(_flow(_words(caption, part), style, width)) <= LINES:
            return part
    return next(iter([*_shorter(whole)][-1:]), "")


def left_out(caption: Caption) -> str:
    """Return the part of a caption that the stage leaves out, for the speaker's notes."""
    first, rest = paragraphs(caption.body)
    more = first[len(slide_body(replace(caption, revealed=False))) :].strip()
    return "\n\n".join(filter(None, (more, rest)))


def paint_slide(painter: QPainter, caption: Caption, style: Style, rect: QRectF) -> None:
    """Draw a caption as on the stage, smaller where it does not fit."""
    words = _words(caption, slide_body(caption))
    pixels = round(style.scale * TEXT)
    for size in range(pixels, 8, -1):
        own = replace(style, scale=size / TEXT)
        laid = _flow(words, own, rect.width())
        if laid.bottom <= rect.height() + 1 and _lines(laid) <= LINES:
            break
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.translate(round(rect.x()), round(rect.y()))
    paint_pieces(painter, laid.pieces, own, style.theme.text, TEXT)
    painter.restore()


def _words(caption: Caption, body: str) -> tuple[FlowWord, ...]:
    """Return the words of the stage: the text and its question, then the answer in their place."""
    if caption.revealed and caption.answer:
        return words_of(caption.answer)
    title = words_of(f"{caption.title}.", bold=True) if not caption.count and caption.title else ()
    return (*title, *words_of(body), *words_of(caption.question, bold=True))


def _shorter(text: str) -> Iterator[str]:
    """Yield a text, then without its last sentence, and so on to its first sentence."""
    yield text
    inside = False
    ends = []
    for n, letter in enumerate(text):
        inside ^= letter == "$"
        ends_here = letter in ".?!" and not inside and text[n + 1 : n + 2] == " "
        if ends_here and not _is_short(text[: n + 1]):
            ends.append(n + 1)
    yield from (text[:end] for end in reversed(ends))


def _is_short(text: str) -> bool:
    return text.rsplit(maxsplit=1)[-1].lstrip("(") in _SHORT


def _lines(laid: Flow) -> int:
    return len({piece.baseline for piece in laid.pieces})


@lru_cache(maxsize=256)
def _flow(words: tuple[FlowWord, ...], style: Style, width: float) -> Flow:
    """Return words in lines: two break between sentences if this fits, as evenly as possible."""
    laid = flow(words, style, 0, width, 0, TEXT, leading=_LEADING)
    if _lines(laid) == LINES:
        best = None
        for n in range(1, len(words)):
            ends = words[n - 1].text.endswith(_ENDS) and words[n - 1].face is not Face.MATHS
            if words[n].glued or not ends or _is_short(words[n - 1].text):
                continue
            first = flow(words[:n], style, 0, _ENDLESS, 0, TEXT, leading=_LEADING)
            second = flow(
                words[n:], style, 0, _ENDLESS, first.bottom + style.px(_LEADING), TEXT,
                leading=_LEADING,
            )  # fmt: skip
            widest = max(first.right, second.right)
            if widest <= width and (best is None or widest < best.right):
                best = Flow((*first.pieces, *second.pieces), widest, second.bottom)
        laid = best or laid
    return laid
