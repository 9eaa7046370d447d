"""Paints the places of a cache, the block table of each sequence, and where the slots go."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Literal

from PySide6.QtCore import QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QColor, QPainter

from simulator.study.serving.pages import CacheStep, Running, Waste, filled
from simulator.study.serving.state import PagesState
from ui.look.draw import (
    LEFT,
    RIGHT,
    draw_text,
    hairline,
    mixed,
    outline,
    patterned,
    text_width,
    wrapped,
)
from ui.look.names import first_that_fits, fitting, readable
from ui.look.theme import LABEL, Style
from ui.look.units import plural
from ui.panels.pages.words import sentences, sequence_name, stretches, title, waits

MIN_SIZE = QSizeF(460, 330)
"""Below this the text shrinks."""
_INKS = ("Q", "K", "V", "P", "O", "S")
"""Tensors whose colours tell requests apart, in turn; their numbers do so, too."""
_TABLES = 0.36
"""Share of the width that the block tables have."""
_PLACES_ACROSS, _DOWN = 8, 4
"""Places side by side; more, at most twice as many, if they would be more than so many below each
other."""
_LETTERS = 14
"""Height of a place that has letters, at scale 1."""
_LINE = 16
"""Height of a line of the tables, at scale 1."""
_STRIP = 16
"""Height of a strip of slots, at scale 1."""


@dataclass(frozen=True, slots=True)
class PagesLayout:
    """Places of cache, stretches and curves."""

    places: tuple[QRectF, ...]  # a box for each place
    tables: QRectF  # the block tables, beside the places
    strip: QRectF  # the stretches
    bars: tuple[QRectF, QRectF]  # where the slots go: in pages, in stretches
    legend: QRectF  # legend, words: below them
    words: QRectF


def pages_layout(state: PagesState, style: Style, rect: QRectF) -> PagesLayout:
    """Return where the parts of the picture stand; `style` is fitted already."""
    px = style.px
    line, gap, strip = px(16), px(6), px(_STRIP)
    font = style.text_font(LABEL)
    lines = sum(len(wrapped(text, font, rect.width())) for text in sentences(state))
    words = QRectF(rect.x(), rect.bottom() - lines * line, rect.width(), lines * line)
    legend = QRectF(rect.x(), words.y() - gap - line, rect.width(), line)
    two = QRectF(rect.x(), legend.y() - gap - strip, rect.width(), strip)
    one = two.translated(0, -(line + strip + px(2)))
    above = one.translated(0, -(line + strip + px(2) + gap))
    top = rect.y() + 2 * line + gap
    bottom = above.y() - line - gap
    wide = rect.width() * (1 - _TABLES) - gap
    across = _across(state.server.places, QSizeF(wide, bottom - top), style)
    down = ceil(state.server.places / across)
    size = QSizeF(wide / across, max(bottom - top, down) / down)
    boxes = tuple(
        QRectF(
            rect.x() + n % across * size.width(), top + n // across * size.height(),
            size.width() - px(3), size.height() - px(3),
        )
        for n in range(state.server.places)
    )  # fmt: skip
    left = rect.x() + wide + 2 * gap
    tables = QRectF(left, top, rect.right() - left, bottom - top)
    return PagesLayout(boxes, tables, above, (one, two), legend, words)


def _across(places: int, room: QSizeF, style: Style) -> int:
    """Return how many places are side by side: of many fewer, if so their numbers have room."""
    if places <= _PLACES_ACROSS * _DOWN:
        return min(_PLACES_ACROSS, places)
    px, most = style.px, 2 * _PLACES_ACROSS
    wide = text_width(style.text_font(LABEL), str(places - 1)) + px(5)
    for across in (most, 3 * most // 4):
        down = ceil(places / across)
        if wide <= room.width() / across and px(_LETTERS + 3) <= room.height() / down:
            return across
    return most


def paint_pages(painter: QPainter, state: PagesState, style: Style, rect: QRectF) -> None:
    """Paint a server's cache at a step."""
    style = readable(fitting(style, rect, MIN_SIZE))
    px, theme, font = style.px, style.theme, style.text_font(LABEL)
    bold = style.text_font(12.5, bold=True)
    lay = pages_layout(state, style, rect)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    line = px(16)
    head = QRectF(rect.x(), rect.y(), rect.width(), line)
    draw_text(painter, head, first_that_fits(title(state), rect.width(), bold), bold, theme.text)
    now = state.now
    heads = (
        (lay.places[0].x(), _places_words(state, _numbers_of(state, style, lay))),
        (lay.tables.x(), ("tables: tokens, places", "tables")),
    )
    for (x, texts), end in zip(heads, (lay.tables.x(), rect.right()), strict=True):
        place = QRectF(x, lay.places[0].y() - line - px(2), end - x - px(6), line)
        text = first_that_fits(texts, place.width(), font)
        draw_text(painter, place, text, font, theme.muted)
    _paint_places(painter, state, now, style, lay)
    _paint_tables(painter, state, now, style, lay.tables)
    _paint_stretches(painter, state, style, lay.strip)
    wastes = state.wastes
    for box, waste, name in zip(lay.bars, wastes, ("in pages", "in stretches"), strict=True):
        _paint_bar(painter, waste, name, style, box)
    _paint_legend(painter, style, lay.legend)
    y = lay.words.y()
    for text in sentences(state):
        for words in wrapped(text, font, rect.width()):
            draw_text(painter, QRectF(rect.x(), y, rect.width(), line), words, font, theme.muted)
            y += line


def _rows_kept(tables: QRectF, count: int, style: Style) -> int:
    """Return how many sequences the tables have a line for; the last line is for words."""
    most = max(int(tables.height() // style.px(_LINE)), 1)
    return min(count, most - 1)


def _table_row(tables: QRectF, n: int, style: Style) -> QRectF:
    line = style.px(_LINE)
    return QRectF(tables.x(), tables.y() + n * line, tables.width(), line)


def sequence_at(state: PagesState, style: Style, rect: QRectF, at: QPointF) -> int | None:
    """Return which running sequence a point is on: its line of the tables, or a page of it.

    Of several that read a page it is the one after the chosen one, so that clicks go round.
    """
    style = readable(fitting(style, rect, MIN_SIZE))
    lay, running = pages_layout(state, style, rect), state.now.running
    for n in range(_rows_kept(lay.tables, len(running), style)):
        if _table_row(lay.tables, n, style).contains(at):
            return n
    for place, box in enumerate(lay.places):
        if box.contains(at):
            readers = [n for n, each in enumerate(running) if place in each.pages]
            return next((n for n in readers if n > state.chosen), next(iter(readers), None))
    return None


def ink_of(style: Style, request: int) -> QColor:
    """Return the colour of a request."""
    return QColor(style.theme.tensor(_INKS[request % len(_INKS)]))


Numbers = Literal["beside", "below", "alone", "none"]
"""Where the number of a place stands in its box: beside the sequence, below it, alone, nowhere."""


def _numbers_of(state: PagesState, style: Style, lay: PagesLayout) -> Numbers:
    """Return where the numbers of places stand, the same for all of them and at every step."""
    px, font, box = style.px, style.text_font(LABEL), lay.places[0]
    number = text_width(font, str(state.server.places - 1))
    if box.height() < px(_LETTERS) or box.width() < number + px(2):
        return "none"
    names = (
        f"{n}{'a' if len(each.answers) > 1 else ''}" for n, each in enumerate(state.server.requests)
    )
    widest = max((text_width(font, name) for name in names), default=0.0)
    if widest + number + px(8) <= box.width():
        return "beside"
    return "below" if box.height() >= 2 * px(_LETTERS) else "alone"


def _places_words(state: PagesState, numbers: Numbers) -> tuple[str, ...]:
    """Return what the places are, and what the numbers in them say, longest first."""
    places = f"{plural(state.server.places, 'place')} of {state.server.page} tokens"
    if numbers in ("none", "alone"):
        return (places,)
    one, other = ("left", "right") if numbers == "beside" else ("above", "below")
    return (
        f"{places}, with their sequence ({one}) and number ({other})",
        f"{places}: sequence, number",
        places,
    )


def _paint_places(
    painter: QPainter, state: PagesState, now: CacheStep, style: Style, lay: PagesLayout
) -> None:
    px, theme, font = style.px, style.theme, style.text_font(LABEL)
    tokens, counts = filled(state.server, now), now.counts
    owners: dict[int, list[Running]] = {}
    for each in now.running:
        for place in each.pages:
            owners.setdefault(place, []).append(each)
    numbers = _numbers_of(state, style, lay)
    for place, box in enumerate(lay.places):
        painter.fillRect(box, QColor(theme.field))
        own = owners.get(place, [])
        slot = box.width() / state.server.page
        if own:
            ink = ink_of(style, own[0].request)
            painter.fillRect(
                box, patterned(mixed(theme.field, ink, 0.45), Qt.BrushStyle.BDiagPattern, style)
            )
            full = QRectF(box.x(), box.y(), slot * tokens[place], box.height())
            painter.fillRect(full, mixed(theme.field, ink, 0.42))
        for n in range(1, state.server.page):
            if slot > px(4):
                x = box.x() + n * slot
                painter.fillRect(
                    QRectF(x, box.y(), hairline(style), box.height()), QColor(theme.panel)
                )
        change = "taken" if place in now.taken else "given" if place in now.given else ""
        _paint_edge(painter, change, style, box)
        if numbers == "none":
            continue
        half = box.height() / 2 if numbers == "below" else 0.0
        number, room = str(place), box.width() - px(6)
        wide = text_width(font, number)
        edge = px(3) if wide <= room else px(1)
        place_of = box.adjusted(edge, half, -edge, 0)
        draw_text(painter, place_of, number, font, theme.text if own else theme.muted, RIGHT)
        if numbers != "below":
            room -= wide + px(2)
        if own:
            name = sequence_name(state.server, own[0]) if len(own) == 1 else str(own[0].request)
            name = "" if numbers == "alone" else name
            texts: tuple[str, ...] = (name, "")
            if place in now.copied:
                texts = (f"{name} copy", *texts)
            elif counts[place] > 1:
                texts = (f"{name} ×{counts[place]}", f"×{counts[place]}", "")
            shown = first_that_fits(texts, room, font).strip()
            if shown:
                at = box.adjusted(px(3), 0, -px(3), -half)
                draw_text(painter, at, shown, font, theme.text, LEFT)


def _paint_edge(painter: QPainter, change: str, style: Style, box: QRectF) -> None:
    """Draw the edge of a place, and whether the step has taken it or given it back."""
    theme, px = style.theme, style.px
    edge, width = {"taken": (theme.current, px(2.5)), "given": (theme.bad, px(2))}.get(
        change, (theme.grid, px(1))
    )
    outline(painter, box, edge, width)


def _table_words(state: PagesState, each: Running) -> tuple[str, ...]:
    """Return the block table of a sequence, and what is left of it where it is too long."""
    begins = f"{sequence_name(state.server, each)}: {each.tokens}"
    return (
        f"{begins}, {' '.join(map(str, each.pages))}",
        f"{begins}, {plural(len(each.pages), 'page')}",
        begins,
    )  # fmt: skip


def _paint_tables(
    painter: QPainter, state: PagesState, now: CacheStep, style: Style, rect: QRectF
) -> None:
    px, theme, font = style.px, style.theme, style.text_font(LABEL)
    rows = [(each.request, _table_words(state, each)) for each in now.running]
    waiting = waits(state)
    kept = rows[: _rows_kept(rect, len(rows), style)]
    for n, (request, texts) in enumerate(kept):
        box = _table_row(rect, n, style)
        if n == state.chosen:
            outline(painter, box.adjusted(-px(2), 0, 0, 0), theme.current, px(1.5))
        painter.fillRect(QRectF(box.x(), box.y() + px(3), px(8), px(10)), ink_of(style, request))
        place = box.adjusted(px(13), 0, 0, 0)
        text = first_that_fits(texts, place.width(), font)
        draw_text(painter, place, text, font, theme.text)
    box = _table_row(rect, len(kept), style)
    if waiting:
        draw_text(painter, box, first_that_fits(waiting, rect.width(), font), font, theme.muted)


def _paint_stretches(painter: QPainter, state: PagesState, style: Style, rect: QRectF) -> None:
    px, theme, font = style.px, style.theme, style.text_font(LABEL)
    line, beside, slots = px(16), state.beside, state.server.slots
    said = first_that_fits(stretches(state), rect.width(), font)
    head = QRectF(rect.x(), rect.y() - line, rect.width(), line)
    draw_text(painter, head, said, font, theme.muted)
    painter.fillRect(rect, QColor(theme.field))
    slot = rect.width() / slots
    for each in beside.running:
        (start,), ink = each.pages, ink_of(style, each.request)
        most = state.server.requests[each.request].most
        box = QRectF(rect.x() + start * slot, rect.y(), most * slot, rect.height())
        painter.fillRect(
            box, patterned(mixed(theme.field, ink, 0.45), Qt.BrushStyle.BDiagPattern, style)
        )
        painter.fillRect(
            QRectF(box.x(), box.y(), each.tokens * slot, box.height()),
            mixed(theme.field, ink, 0.42),
        )
        outline(painter, box, theme.panel, px(1))
        draw_text(
            painter,
            box.adjusted(px(3), 0, 0, 0),
            sequence_name(state.server, each),
            font,
            theme.text,
        )
    outline(painter, rect, theme.grid, px(1))


def _parts(waste: Waste) -> tuple[tuple[str, int], ...]:
    return (
        ("tokens", waste.used), ("inside", waste.inside), ("outside", waste.outside),
        ("free", waste.free),
    )  # fmt: skip


def _paint_part(painter: QPainter, name: str, style: Style, box: QRectF) -> None:
    theme = style.theme
    painter.fillRect(box, QColor(theme.field))
    if name == "tokens":
        painter.fillRect(box, mixed(theme.field, theme.good, 0.6))
    elif name == "inside":
        painter.fillRect(box, patterned(theme.bad, Qt.BrushStyle.BDiagPattern, style))
    elif name == "outside":
        painter.fillRect(box, patterned(theme.bad, Qt.BrushStyle.DiagCrossPattern, style))


_SAID = (
    {"tokens": "tokens", "inside": "held without a token", "outside": "in holes too small for the "
     "next", "free": "free"},
    {"tokens": "tokens", "inside": "held", "outside": "in holes", "free": "free"},
)  # fmt: skip
"""The parts of a bar in the words of the legend, longest first."""


def _paint_bar(painter: QPainter, waste: Waste, name: str, style: Style, rect: QRectF) -> None:
    px, theme, font = style.px, style.theme, style.text_font(LABEL)
    line, slots = px(16), sum(size for _, size in _parts(waste))
    said = []
    for words in _SAID:
        sizes = [f"{size} {words[part]}" for part, size in _parts(waste) if size]
        shared = [f"{waste.saved} shared"] if waste.saved else []
        said.append(f"{name}: {', '.join(sizes + shared)}")
    head = QRectF(rect.x(), rect.y() - line, rect.width(), line)
    draw_text(painter, head, first_that_fits(said, head.width(), font), font, theme.text)
    x = rect.x()
    for part, size in _parts(waste):
        wide = rect.width() * size / slots
        _paint_part(painter, part, style, QRectF(x, rect.y(), wide, rect.height()))
        x += wide
    outline(painter, rect, theme.grid, px(1))


def _paint_legend(painter: QPainter, style: Style, rect: QRectF) -> None:
    px, theme, font = style.px, style.theme, style.text_font(LABEL)
    names = (
        ("tokens", "a token", "token"), ("inside", "held without a token", "held"),
        ("outside", "hole too small for the next", "hole"), ("free", "free", "free"),
        ("taken", "taken now", "taken"), ("given", "given back now", "given"),
    )  # fmt: skip
    wide = rect.width() / len(names)
    for n, (part, long, short) in enumerate(names):
        box = QRectF(rect.x() + n * wide, rect.y() + px(3), px(18), px(10))
        _paint_part(painter, part, style, box)
        _paint_edge(painter, part, style, box)
        place = QRectF(box.right() + px(4), rect.y(), wide - px(26), rect.height())
        text = first_that_fits((long, short), place.width(), font)
        draw_text(painter, place, text, font, theme.muted)
