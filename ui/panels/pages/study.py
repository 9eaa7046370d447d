"""Sequences of a server in pages of one cache (Kwon et al. 2023): the Pages dock."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from typing import Any

from PySide6.QtCore import QRectF, QSizeF, Qt
from PySide6.QtGui import QPainter

from simulator.base.choices import one_of
from simulator.run.trace import Trace
from simulator.study.pages.by_hand import FIRST, KINDS, CacheMove, may
from simulator.study.pages.choices import CHOICES, HAND, RUN, SERVER, SHARED
from simulator.study.pages.pages import Waste, filled
from simulator.study.pages.state import PagesState, hand_state, pages_state, run_state
from ui.kit.boxes import Box, Canvas, Column, Placed, Row, Tone, Where, ink
from ui.kit.shapes import LINE, Legend, Text
from ui.look.draw import LEFT, RIGHT, draw_text, hairline, outline, patterned, text_width
from ui.look.names import first_that_fits
from ui.look.theme import LABEL, Style
from ui.panels.pages.words import (
    Numbers,
    bar_words,
    parts,
    place_texts,
    places_words,
    sentences,
    sequence_name,
    stretches,
    table_words,
    title,
    waits,
)
from ui.panels.study import Act, Chosen, Slider, Study, Words
from ui.session.tasks import Report
from ui.session.view import View

_INKS = ("Q", "K", "V", "P", "O", "S")
"""Tensors whose colours tell requests apart, in turn; their numbers do so, too."""
_ACROSS, _DOWN = 8, 4
"""Places side by side, and most rows; with more places, up to twice as many side by side."""
_LETTERS = 14
"""Height of a place that has letters, at scale 1."""
_EDGES: dict[str, tuple[Tone, float]] = {"taken": ("current", 2.5), "given": ("bad", 2.0)}


def cache(state: PagesState) -> Box:
    """Return the picture of the cache in pages, and in stretches below it."""
    wastes = zip(("in pages", "contiguous"), state.wastes, strict=True)
    bars = (_strip(Text(bar_words(w, name)), partial(_bar, w)) for name, w in wastes)
    strip = _strip(Text(stretches(state), "muted"), partial(_stretches, state))
    legend = Legend(tuple((partial(_part, part), words) for part, words in (
        ("tokens", ("a token", "token")), ("inside", ("reserved but empty", "empty")),
        ("outside", ("gap too small for the next", "gap")), ("free", "free"),
        ("taken", ("taken now", "taken")), ("given", ("given back now", "given")),
    )), may_go=True)  # fmt: skip
    upper = Row(
        (_NumberedPlaces(state, share=0.62, grow=1), _tables(state)), gap=12, share=0.3, grow=1
    )
    return Column((upper, strip, *bars, legend), gap=4)


def _strip(words: Text, draw: partial[None]) -> Box:
    return Column((words, Canvas(draw, high=LINE)), gap=0, may_go=True)


class _Tables(Column):
    """Lines; the last ones are left out if there is too little room."""

    def height(self, style: Style, width: float) -> float:
        return style.px(4 * LINE)


def _tables(state: PagesState) -> Box:
    rows = tuple(
        Row((Canvas(partial(_swatch, each.request), wide=8),
             Text(table_words(state.server, each), wide=0, grow=1)),
            gap=5, id=("sequence", n), name=("sequence", n), may_go=True)
        for n, each in enumerate(state.now.running)
    )  # fmt: skip
    ends = (Text(waits(state), "muted", wide=0),) if waits(state) else ()
    heading = Text(("tables: tokens, places", "tables"), "muted", wide=0)
    return _Tables((heading, Box(high=2), *rows, *ends, Box(grow=1)), 0, partial(_chosen, state),
                   share=0.34)  # fmt: skip


def _chosen(state: PagesState, painter: QPainter, style: Style, where: Where) -> None:
    row = where.get(("sequence", state.chosen))
    if row is not None:
        outline(painter, style.inset(row, -2, 0, 0, 0), ink(style, "current"), style.px(1.5))


@dataclass(frozen=True, eq=False)
class _NumberedPlaces(Box):
    """All places below a heading; their numbers are written if there is room in all places."""

    state: PagesState

    def place(self, style: Style, rect: QRectF) -> Iterator[Placed]:
        state, px, line = self.state, style.px, style.px(LINE)
        count, room = state.server.places, rect.adjusted(0, line + px(2), 0, 0)
        across = _across(count, room.size(), style)
        down = ceil(count / across)
        wide, high = room.width() / across, max(room.height(), down) / down
        numbers = _numbers(state, style, QSizeF(wide - px(3), high - px(3)))
        heading = Text(places_words(state.server, numbers), "muted", wide=0)
        yield Placed(heading, QRectF(rect.x(), rect.y(), rect.width(), line))
        for n in range(count):
            x, y = room.x() + n % across * wide, room.y() + n // across * high
            box = _Place(state, n, numbers, id=("place", n), name=("place", n))
            yield Placed(box, QRectF(x, y, wide - px(3), high - px(3)))


def _across(places: int, room: QSizeF, style: Style) -> int:
    """Return how many places are side by side: if many, fewer where numbers then have room."""
    if places <= _ACROSS * _DOWN:
        return min(_ACROSS, places)
    px, most = style.px, 2 * _ACROSS
    wide = text_width(style.text_font(LABEL), str(places - 1)) + px(5)
    for across in (most, 3 * most // 4):
        down = ceil(places / across)
        if wide <= room.width() / across and px(_LETTERS + 3) <= room.height() / down:
            return across
    return most


def _numbers(state: PagesState, style: Style, box: QSizeF) -> Numbers:
    """Return where the numbers of places stand, the same for all of them and at every step."""
    px, font = style.px, style.text_font(LABEL)
    number = text_width(font, str(state.server.places - 1))
    if box.height() < px(_LETTERS) or box.width() < number + px(2):
        return "none"
    several = (f"{n}{'a' * (len(e.answers) > 1)}" for n, e in enumerate(state.server.requests))
    widest = max((text_width(font, name) for name in several), default=0.0)
    if widest + number + px(8) <= box.width():
        return "beside"
    return "below" if box.height() >= 2 * px(_LETTERS) else "alone"


@dataclass(frozen=True, eq=False)
class _Place(Box):
    """A page of the cache: its tokens, its readers, its number, and its change in the step."""

    state: PagesState
    n: int
    numbers: Numbers

    def paint(self, painter: QPainter, style: Style, rect: QRectF) -> None:
        px, font, now, n = style.px, style.text_font(LABEL), self.state.now, self.n
        own, slot = self.state.readers(n), rect.width() / self.state.server.page
        painter.fillRect(rect, ink(style, "field"))
        if own:
            tokens = filled(self.state.server, now)[n]
            _held(painter, own[0].request, style, rect, tokens * slot)
        for line in range(1, self.state.server.page if slot > px(4) else 0):
            x = rect.x() + line * slot
            painter.fillRect(QRectF(x, rect.y(), hairline(style), rect.height()),
                             ink(style, "panel"))  # fmt: skip
        _edge(painter, "taken" if n in now.taken else "given" if n in now.given else "", style,
              rect)  # fmt: skip
        if self.numbers == "none":
            return
        half = rect.height() / 2 if self.numbers == "below" else 0.0
        number, room = str(n), rect.width() - px(6)
        wide = text_width(font, number)
        edge = px(3) if wide <= room else px(1)
        tone = ink(style, "text" if own else "muted")
        draw_text(painter, rect.adjusted(edge, half, -edge, 0), number, font, tone, RIGHT)
        if own and self.numbers != "alone":
            texts = place_texts(self.state, own, n)
            shown = first_that_fits(texts, room - (0 if half else wide + px(2)), font)
            draw_text(painter, rect.adjusted(px(3), 0, -px(3), -half), shown, font, tone, LEFT)


def _request(request: int) -> str:
    return _INKS[request % len(_INKS)]


def _swatch(request: int, painter: QPainter, style: Style, rect: QRectF) -> None:
    place = QRectF(rect.x(), rect.center().y() - style.px(5), rect.width(), style.px(10))
    painter.fillRect(place, ink(style, _request(request)))


def _held(painter: QPainter, request: int, style: Style, rect: QRectF, used: float) -> None:
    """Paint the slots that a request holds, and the slots that have tokens."""
    over = _request(request)
    hatched = patterned(ink(style, ("field", over, 0.45)), Qt.BrushStyle.BDiagPattern, style)
    painter.fillRect(rect, hatched)
    full = QRectF(rect.x(), rect.y(), used, rect.height())
    painter.fillRect(full, ink(style, ("field", over, 0.42)))


def _edge(painter: QPainter, change: str, style: Style, rect: QRectF) -> None:
    """Draw the edge of a place, and whether the step has taken it or given it back."""
    tone, width = _EDGES.get(change, ("grid", 1.0))
    outline(painter, rect, ink(style, tone), style.px(width))


def _stretches(state: PagesState, painter: QPainter, style: Style, rect: QRectF) -> None:
    painter.fillRect(rect, ink(style, "field"))
    slot = rect.width() / state.server.slots
    for each in state.beside.running:
        most = state.server.requests[each.request].most
        box = QRectF(rect.x() + each.pages[0] * slot, rect.y(), most * slot, rect.height())
        _held(painter, each.request, style, box, each.tokens * slot)
        outline(painter, box, style.theme.panel, style.px(1))
        name, font = sequence_name(state.server, each), style.text_font(LABEL)
        draw_text(painter, style.inset(box, 3, 0, 0, 0), name, font, style.theme.text)
    outline(painter, rect, style.theme.grid, style.px(1))


def _fill(painter: QPainter, part: str, style: Style, rect: QRectF) -> None:
    patterns = {"inside": Qt.BrushStyle.BDiagPattern, "outside": Qt.BrushStyle.DiagCrossPattern}
    painter.fillRect(rect, ink(style, ("field", "good", 0.6) if part == "tokens" else "field"))
    if part in patterns:
        painter.fillRect(rect, patterned(ink(style, "bad"), patterns[part], style))


def _part(part: str, painter: QPainter, style: Style, rect: QRectF) -> None:
    _fill(painter, part, style, rect)
    _edge(painter, part, style, rect)


def _bar(waste: Waste, painter: QPainter, style: Style, rect: QRectF) -> None:
    slots, x = sum(parts(waste).values()), rect.x()
    for part, size in parts(waste).items():
        wide = rect.width() * size / slots
        _fill(painter, part, style, QRectF(x, rect.y(), wide, rect.height()))
        x += wide
    outline(painter, rect, style.theme.grid, style.px(1))


_ACTS = (
    Act("admit", "Admit", "A new sequence: it takes pages for its prompt, or waits."),
    Act("grow", "Grow", "One token more for the chosen sequence. Without room it takes a page, "
        "and it copies a page that others read."),
    Act("fork", "Fork",
        "Another sequence with the same pages: one is copied when it is written to."),
    Act("end", "End", "The chosen sequence ends; pages that nobody else reads are free again."),
    Act("undo", "Undo", "Take the last move back."),
    Act("reset", "Reset", "One sequence alone."),
)  # fmt: skip


class Pages(Study[PagesState, PagesState]):
    """A server's cache, step by step; the run's cache; or a cache that is changed by hand."""

    name, title, doing, pictured = "pages", "Pages", "pages of a cache", "Pages of a cache"
    choices, acts, room = CHOICES, _ACTS, QSizeF(460, 330)
    slider = Slider("step", "Step", "The step: each running sequence gets one token more.")

    def hidden(self, trace: Trace, chosen: Chosen) -> frozenset[str]:
        acts = frozenset(each.name for each in _ACTS)
        return {SERVER: acts, HAND: frozenset({"prompts", "step"}),
                RUN: acts | {"page", "prompts", "step"}}[_shown(trace, chosen)]  # fmt: skip

    def needs(self, trace: Trace, view: View, chosen: Chosen) -> Hashable:
        return _shown(trace, chosen), int(chosen["page"]), chosen["prompts"] == SHARED

    def compute(self, trace: Trace, needs: Any, report: Report) -> PagesState:
        shown, page, sharing = needs
        found = run_state(trace.workload) if shown == RUN else None
        if found is None and shown == HAND:
            return hand_state(page, FIRST, 0)
        return found or pages_state(page, sharing=sharing)

    def state(
        self, found: PagesState, chosen: Chosen, before: PagesState | None, changed: str
    ) -> PagesState:
        if before is None:
            return found
        # Pages of another size may have kept other sequences: old moves might name none of them.
        made = before.made if before.server.page == int(chosen["page"]) else FIRST
        if found.by_hand:
            return hand_state(found.server.page, made, before.chosen)
        return replace(found, made=made)

    def mark(self, state: PagesState) -> tuple[int, int]:
        return state.step, state.steps - 1

    def marked(self, state: PagesState, value: int) -> PagesState:
        return replace(state, step=min(value, state.steps - 1))

    def press(self, state: PagesState, at: Hashable) -> PagesState | None:
        """Choose a sequence; of several readers of a place, the one after the chosen one."""
        if not (state.by_hand and isinstance(at, tuple)):
            return None
        what, n = at
        if what == "place":
            here = state.readers(n)
            readers = [k for k, each in enumerate(state.now.running) if each in here]
            n = next((k for k in readers if k > state.chosen), next(iter(readers), None))
        return None if n is None else hand_state(state.server.page, state.moves, n)

    def act(self, state: PagesState, name: str) -> PagesState | None:
        moves, made = state.moves, tuple[CacheMove, ...]()
        if name == "reset":
            made = FIRST
        elif name == "undo":
            made = moves[:-1]
        elif state.by_hand:
            kind = one_of(KINDS, name)
            move = CacheMove(kind, 0 if kind == "admit" else state.chosen)
            made = (*moves, move) if may(state.now, move) else ()
        return hand_state(state.server.page, made, state.chosen) if made else None

    def words(self, state: PagesState) -> Words:
        return Words(title(state), "", tuple(sentences(state)))

    def picture(self, state: PagesState) -> Box:
        return cache(state)


PAGES = Pages()


def _shown(trace: Trace, chosen: Chosen) -> str:
    """Return whose cache is shown: a run without pages has none."""
    return SERVER if chosen["cache"] == RUN and trace.workload.pages is None else chosen["cache"]
