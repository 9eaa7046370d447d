"""The memory card as boxes: a sentence, one large number, GPUs to scale, ways to share heads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QFont, QFontMetricsF, QPaintEngine, QPainter, QPainterPath

from simulator.problem.hardware import gpus
from simulator.problem.models import models
from simulator.study.kv_cache.counts import bytes_per_token
from simulator.study.kv_cache.memory import MemoryNeed, sharings
from ui.kit.boxes import Box, Placed, Tone, ink
from ui.kit.shapes import Text, Wordings
from ui.look.draw import CENTRE, RIGHT, draw_text
from ui.look.theme import Style
from ui.look.units import count_text, decimal_bytes_text, plural
from ui.panels.kv_cache.details import put_details
from ui.panels.kv_cache.page import GREY, Divider, Page, Plate
from ui.panels.kv_cache.plot import shape_words
from ui.panels.kv_cache.sentence import CHEVRON
from ui.panels.kv_cache.state import CURVE, DECODING, FORMULA, TABLE, TYPE_NAMES, CacheChoice
from ui.panels.kv_cache.words import bar_tip, conversation_words, figures, product_words, rate_words

LESS = "less"
LINKS = {
    CURVE: "Curve", TABLE: "Table", FORMULA: "Formula", DECODING: "Decoding", LESS: "Keep less",
}  # fmt: skip
BAR, BARRED = "bar", (CURVE, FORMULA, DECODING)
"""The place of choices, and the views that have some."""
_ONE_LINE = 700.0
MOST_BOXES = 12
"""GPUs beyond which there is one box for all."""
_SHADES = (0.62, 0.46, 0.34)
_LARGEST, _ROOMY = 152.0, 1500.0
"""Height of the number's letters, and the width from which headings are whole, units."""


@dataclass(frozen=True, eq=False)
class SentenceWord(Box):
    """A word that can be changed; a control covers the word while controls are on show."""

    words: str
    font: QFont
    held: bool = False

    def paint(self, painter: QPainter, style: Style, rect: QRectF) -> None:
        if not self.held:
            draw_text(painter, rect, self.words, self.font, style.theme.text)


class LargeNumber(Text):
    """A number in letters too large for glyph images: drawn as a shape, always the same."""

    def paint(self, painter: QPainter, style: Style, rect: QRectF) -> None:
        if painter.paintEngine().type() is not QPaintEngine.Type.Raster:
            super().paint(painter, style, rect)  # text in vector files
            return
        font, path = self.font(style), QPainterPath()
        metrics = QFontMetricsF(font)
        middle = rect.center().y() + (metrics.ascent() - metrics.descent()) / 2
        path.addText(round(rect.x()), round(middle), font, self.lines(style, rect.width())[0])
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.fillPath(path, ink(style, self.tone))


@dataclass(frozen=True, eq=False)
class BarLine(Box):
    """The line of a bar; a click takes the bar's way and element type."""

    choice: CacheChoice
    kind: str
    dtype: str

    def tip_at(self, rect: QRectF, at: QPointF) -> str:
        return bar_tip(self.choice, self.kind, self.dtype)


@dataclass(frozen=True, eq=False)
class CardPicture(Box):
    """The card of a choice."""

    choice: CacheChoice

    def place(self, style: Style, rect: QRectF) -> Iterator[Placed]:
        page, found = Page(style, rect), self.choice.needed()
        gap = 14 * page.u
        low = rect.bottom() - page.line(15)
        top = _sentence(page, self.choice, rect) + gap
        if self.choice.slide and self.choice.opened == CURVE:
            page.put(Box(name=CURVE), QRectF(rect.x(), top, rect.width(), rect.bottom() - top))
            yield Placed(self, rect)
            yield from page.placed
            return
        high = max(256 * page.u, _LARGEST * page.u + page.line(21) + page.line(17))
        half = QRectF(rect.x(), top, 0.385 * rect.width(), high)
        _number(page, self.choice, found, half)
        right = QRectF(half.right() + 0.02 * rect.width(), top, 0, half.height())
        right.setRight(rect.right())
        _gpus(page, self.choice, found, right)
        area = QRectF(rect.x(), half.bottom() + gap, rect.width(), 0)
        area.setBottom(low - gap / 2)
        page.put(Divider(), area)
        area.setTop(area.top() + gap)
        opened = self.choice.opened
        if opened in BARRED and self.choice.controls:
            bar = QRectF(area)
            lines = 1 if area.width() >= style.px(_ONE_LINE) else 2
            bar.setHeight(style.px(27) * lines)
            page.put(Box(name=BAR), bar)
            area.setTop(bar.bottom() + gap / 2)
        if opened == CURVE:
            page.put(Box(name=CURVE), area)
        elif opened:
            put_details(page, self.choice, area)
        else:
            _rows(page, self.choice, area)
        _foot(page, self.choice, QRectF(rect.x(), low, rect.width(), page.line(15)))
        yield Placed(self, rect)
        yield from page.placed


def _sentence(page: Page, c: CacheChoice, rect: QRectF) -> float:
    """Put the sentence, in lines if it is too long for one; return where the sentence ends."""
    withal = f"as {c.kind} with" if c.kind else "with"
    parts = (
        (c.base.name, "model"), (withal, ""), (count_text(c.tokens), "tokens"), ("tokens in", ""),
        (TYPE_NAMES[c.dtype], "cache type"), ("on", ""), (c.gpu.name, "GPU"),
    )  # fmt: skip

    def widths(size: float) -> list[float]:
        mark = CHEVRON * page.letters(size) if c.controls else 0.0
        return [page.width(words, size, bold=bool(key)) + mark * bool(key) for words, key in parts]

    size = 44.0
    while sum(widths(size)) + 6 * 0.4 * page.letters(size) > rect.width() and (
        page.letters(size) > 1.5 * page.letters(0)
    ):
        size -= 1
    letters, x, y = page.letters(size), rect.x(), rect.y()
    for (words, key), wide in zip(parts, widths(size), strict=True):
        if x > rect.x() and x + wide > rect.right() + 1:
            x, y = rect.x(), y + page.line(size)
        place = QRectF(x, y, min(wide + 1, rect.right() - x), page.line(size))
        _word(page, c, place, words, key, size)
        x += wide + 0.4 * letters
    y += page.line(size)
    if c.controls and page.u * 15 >= page.letters(0):
        hint = (
            "↑ ↓ or the wheel change the word under the pointer; type to search "
            f"{len(models())} models or {len(gpus())} GPUs"
        )
        page.say(QRectF(rect.x(), y, rect.width(), page.line(15)), hint, 15, "faint")
        y += page.line(15)
    return y


def _word(page: Page, c: CacheChoice, place: QRectF, words: str, key: str, size: float) -> None:
    """Put a word; a word that can be changed is the place of its control."""
    if key:
        page.put(
            SentenceWord(words, page.font(size, bold=True), c.controls, name=("word", key)), place
        )
    else:
        page.say(place, words, size, "muted")


def _number(page: Page, c: CacheChoice, found: MemoryNeed, rect: QRectF) -> None:
    """Put the large number, the words on its bytes, and the bytes of a token."""
    number, unit = decimal_bytes_text(found.cache).split(" ")
    size = _LARGEST
    while page.width(number, size, bold=True) + page.width(unit, 0.4 * size) > 0.94 * rect.width():
        size -= 2
    line, low = page.letters(size), rect.bottom() - page.line(21) - page.line(17)
    top = QRectF(rect.x(), low - 1.12 * line, rect.width(), 1.12 * line)
    scaled = page.letters(size) / page.style.scale
    page.put(LargeNumber(number, size=scaled, bold=True), top)
    end = top.x() + page.width(number, size, bold=True)
    beside = QRectF(end + 0.1 * line, low - 0.72 * line, rect.right() - end, 0.6 * line)
    page.say(beside, unit, 0.4 * size, "muted", bold=True)
    m, whose = c.model, "one conversation" if c.batch == 1 else f"{c.batch} conversations"
    kept = "the latent" if m.is_latent else "keys and values"
    words: tuple[str, ...] = (
        f"all tokens of {whose}, {kept} of {plural(m.layers, 'layer')}",
        f"{whose}, {kept} of {plural(m.layers, 'layer')}",
    )
    if m.windowed_layers:
        window = f"{m.windowed_layers} of {m.layers} layers keep {count_text(m.window)} tokens"
        words = (f"{whose}, {kept}; {window}", window)
    page.say(QRectF(rect.x(), low, rect.width(), page.line(21)), (*words, whose), 21)
    below = QRectF(rect.x(), low + page.line(21), rect.width(), page.line(17))
    token = f"{count_text(bytes_per_token(m, c.dtype))} bytes"
    below.setLeft(page.say(below, token, 17, bold=True, code=True) + 0.6 * page.letters(17))
    product = product_words(m, c.dtype)
    page.say(
        below, (f"a token  =  {product}", f"a token = {_bare(product)}", "a token"), 17, "muted"
    )


def _bare(product: str) -> str:
    """Return a product without the names of its factors."""
    return re.sub(r" [A-Za-z]+", "", product)


def _gpus(page: Page, c: CacheChoice, found: MemoryNeed, rect: QRectF) -> None:
    """Put the GPUs as boxes, with weights and cache to scale, and the sum below."""
    head = QRectF(rect.x(), rect.y(), rect.width(), page.line(24))
    known, about = found.weights is not None, "≈ " * bool(c.kind)
    shown = found if known else replace(found, weights=0)
    many = shown.gpus or 1
    name = f"{count_text(many)} × {c.gpu.name}"
    title = f"needs {about}{name}" if known else f"cache alone: {name}"
    x = page.say(head, title, 24, bold=True) + page.letters(16)
    if known:
        said, word = "weights in", TYPE_NAMES[c.weights_dtype]
        key, after = "weights type", (f"and cache in boxes of {c.gpu.memory_gb} GB, to scale",
                                      f"and cache, {c.gpu.memory_gb} GB each", "")  # fmt: skip
    else:
        said, word, key, after = (
            "weights in 10⁹, not known:",
            "00 000.0",
            "parameters",
            ("", "", ""),
        )
    wide = page.width(word, 16, bold=True) + CHEVRON * page.letters(16)
    if x + page.width(said, 16) + wide + page.letters(16) > rect.right():
        said = ""
    x = page.say(QRectF(x, head.y(), rect.right() - x, head.height()), said, 16, "muted")
    x += 0.35 * page.letters(16)
    if known or c.controls:
        _word(page, c, QRectF(x, head.y(), wide, head.height()), word, key, 16)
    x += wide + 0.35 * page.letters(16)
    page.say(QRectF(x, head.y(), max(rect.right() - x, 0), head.height()), after, 16, "muted")
    below = QRectF(rect.x(), rect.bottom() - page.line(15), rect.width(), page.line(15))
    gap = 8 * page.u
    row = QRectF(rect.x(), head.bottom() + gap / 2, rect.width(), 0)
    row.setBottom(below.top() - gap / 2)
    filled, x = list(shown.filled()), row.x()
    if many > MOST_BOXES:
        weights, cache = (sum(each) for each in zip(*filled, strict=True))
        filled = [(weights // many, cache // many)]
        x = page.say(row, f"{count_text(many)} ×", 44, bold=True) + 2 * gap
    wide = min(300 * page.u, (row.right() - x - 2.5 * gap * (len(filled) - 1)) / len(filled))
    for weights, cache in filled:
        _gpu(page, c, QRectF(x, row.y(), wide, row.height()), weights, cache)
        x += wide + 2.5 * gap
    free = many * c.gpu.memory_bytes - (shown.weights or 0) - found.cache
    parts = [n / 1e9 for n in ((shown.weights or 0), found.cache)]
    total = f"{parts[0]:.1f} + {parts[1]:.2f} = {sum(parts):.2f} GB" if known else (
        f"{parts[1]:.2f} GB")  # fmt: skip
    page.say(below, (f"{total}, {free / 1e9:.2f} GB free", total), 15, "muted", code=True)


def _gpu(page: Page, c: CacheChoice, rect: QRectF, weights: int, cache: int) -> None:
    """Put a GPU with weights and cache in it."""
    page.put(Plate(ground="field", border="border", thick=2 * page.u, radius=8 * page.u), rect)
    edge = max(4 * page.u, 2.0)
    inner = rect.adjusted(edge, edge, -edge, -edge)
    x = inner.x()
    for name, size, ground in (("weights", weights, GREY), ("cache", cache, "amber")):
        wide = inner.width() * size / c.gpu.memory_bytes
        if not wide:
            continue
        part = QRectF(x, inner.y(), wide, inner.height())
        page.put(Plate(ground=ground, radius=min(4 * page.u, wide / 2), thick=0), part)
        upon = ("window" if page.style.theme.dark else "text") if name == "cache" else "text"
        figure = f"{size / 1e9:.2f}"
        room, line = wide - 12 * page.u, page.line(16)
        needs = max(page.width(name, 16, bold=True), page.width(figure, 16, code=True))
        if needs <= room and part.height() >= 2 * line:
            at = part.y() + 8 * page.u if name == "weights" else (
                part.bottom() - 2 * line - 4 * page.u)  # fmt: skip
            left = part.x() + min(14 * page.u, (wide - needs) / 2)
            place = QRectF(left, at, part.right() - left, line)
            page.say(place, name, 16, upon, bold=True)
            page.say(place.translated(0, line), (f"{figure} GB", figure), 16, upon, code=True)
        x += wide


def _rows(page: Page, c: CacheChoice, rect: QRectF) -> None:
    """Put a row for each way to share heads, with a bar for each element type."""
    ways, u = sharings(c.base), page.u
    head = page.line(16) + page.line(13)
    axis = page.line(13)
    # columns from the right: weights against cache, tokens a second, GPUs; bars take the rest
    pad = max(24 * u, 10.0)
    rate = max(page.width("≈ 8 888.8", 17, code=True), page.width("tokens / s", 16)) + pad
    on_these = "on these GPUs, at most"
    if rect.width() > _ROOMY * page.letters(13) / 13:
        rate = max(rate, page.width(on_these, 13) + pad)
    square = max(14 * u, 5.0)
    count = page.width("≈ 888", 17, code=True)
    gpus = count + pad + square * MOST_BOXES
    against = max(page.width("cache larger from 88 conversations on", 14.5), 270 * u) + pad
    names = max(page.width("latent 512 + 64", 14), page.width("as published", 14), 120 * u) + pad
    bars = rect.width() - names - rate - gpus - against
    if bars < 0.34 * rect.width():
        bars, against = bars + against, 0.0
    if bars < 0.34 * rect.width():
        bars, gpus = bars + square * MOST_BOXES, count + pad
    high = min((rect.height() - head - axis) / len(ways), 132 * u)
    if high < page.line(14):  # room for the chosen way only
        ways = {c.model.kind: ways[c.model.kind]}
        high = min(max(rect.height() - head - axis, 0), page.line(24))
    pitch = max(33 * u, page.line(16.5))
    three = high >= 3 * pitch + 4 * u
    types = c.types if three else (c.dtype,)
    top, x = rect.y() + head, rect.x() + names
    largest = max(c.needed(kind, each).cache for kind in ways for each in c.types)
    shown = largest if three else max(c.needed(kind, c.dtype).cache for kind in ways)
    scale = bars * 0.98 / max(shown * 1.04, 1)
    columns = x + bars, x + bars + gpus, x + bars + gpus + rate
    about_rows = ("The same length, other ways to share heads", "Other ways to share heads", "")
    page.say(QRectF(rect.x(), rect.y(), names + bars, page.line(20)), about_rows, 20, bold=True)
    heads: tuple[tuple[float, float, Wordings, Wordings], ...] = (
        (columns[0], gpus, "GPUs", ("with weights", "")),
        (columns[1], rate, "tokens / s", (on_these, "at most")),
        (columns[2], against, "weights against cache", ""),
    )
    for left, wide, one, two in heads:
        place = QRectF(left - pad / 2, rect.y(), wide + pad / 2, page.line(16))
        if wide:
            page.say(place, one, 16, "muted", CENTRE, bold=True)
            below = place.translated(0, place.height())
            page.say(below, two, 13, "muted", CENTRE)
    bottom = top + high * len(ways)
    _gpu_lines(page, c, QRectF(x, top, bars, bottom - top), scale)
    for n, (kind, model) in enumerate(ways.items()):
        row = QRectF(rect.x(), top + n * high, rect.width(), high - max(6 * u, 2.0))
        current = kind == c.model.kind
        if current:
            page.put(Plate(ground="accent", border="Q", thick=1.5, radius=8 * u), row)
        title = QRectF(row.x() + 8 * u, row.y(), names - 8 * u, row.height())
        own = "as published" if kind == c.base.kind and c.changed is None else "if built so"
        _way(page, kind, (shape_words(model), own), title, linked=kind == c.base.kind)
        step = min(pitch, row.height() / len(types))
        above = max((row.height() - step * len(types)) / 2, 0)
        for at, dtype in enumerate(types):
            line = QRectF(x, row.y() + above + at * step, rect.right() - x, step)
            chosen = current and dtype == c.dtype
            found = c.needed(kind, dtype)
            ground: Tone = "amber" if chosen else ("panel", "amber", _SHADES[c.types.index(dtype)])
            label = figures(found.cache, largest), TYPE_NAMES[dtype]
            _bar(page, line, found.cache * scale, bars, ground, label, chosen=chosen)
            name = ("bar", kind, dtype)
            page.put(BarLine(c, kind, dtype, id=name, name=name), line)
            about = "" if kind == c.base.kind else "≈ "
            tone = "text" if chosen else "muted"
            cell = QRectF(columns[0], line.y(), gpus, step)
            _count(page, cell, found, about, count, square, tone, chosen=chosen)
            cell = QRectF(columns[1], line.y(), rate - pad, step)
            page.say(cell, rate_words(found, about), 17, "text", RIGHT, bold=chosen, code=True)
        if against:
            place = QRectF(columns[2], row.y() + above, against - pad, row.height() - above)
            _against(page, place, c.needed(kind), current=current)


def _gpu_lines(page: Page, c: CacheChoice, rect: QRectF, scale: float) -> None:
    """Put lines where whole numbers of GPUs are full, as many as have room for their words."""
    page.put(Divider(down=True), rect)
    one = c.gpu.memory_bytes * scale
    words = f"888 GB = 8 {c.gpu.name}"
    step = max(int((page.width(words, 13) + 12) // one) + 1, 1)
    for n in range(step, int(rect.width() / one) + 1, step):
        x = rect.x() + n * one
        page.put(Divider(down=True, dashed=True), QRectF(x, rect.y(), 1, rect.height()))
        said = f"{count_text(n * c.gpu.memory_gb)} GB = {n} {c.gpu.name}"
        wide = page.width(said, 13) + 2
        left = min(x - wide / 2, rect.right() - wide)
        page.say(QRectF(left, rect.bottom(), wide, page.line(13)), said, 13, "muted", CENTRE)


def _way(page: Page, kind: str, below: tuple[str, str], rect: QRectF, *, linked: bool) -> None:
    """Put the name of a way, and as much of its description as has room."""
    lines = [(kind, 24.0, "text", True), (below[0], 14.0, "muted", False)]
    lines += [(below[1], 14.0, "Q" if linked else "muted", False)]
    highs = list(accumulate(page.line(size) for _, size, _, _ in lines))
    many = max(sum(high <= rect.height() + 1 for high in highs), 1)
    y = rect.y() + (rect.height() - highs[many - 1]) / 2
    for (words, size, tone, bold), high in zip(lines[:many], highs, strict=False):
        line = page.line(size)
        page.say(
            QRectF(rect.x(), y + high - line, rect.width(), line), words, size, tone, bold=bold
        )


def _bar(
    page: Page, line: QRectF, wide: float, room: float, ground: Tone, label: tuple[str, str],
    *, chosen: bool,
) -> None:  # fmt: skip
    """Put a bar and its words: behind it, or inside where there is no room."""
    high = min(24 * page.u, line.height() - 3) if 24 * page.u > 8 else 8.0
    high = min(max(high, 0.62 * line.height()), line.height() - 2)
    bar = QRectF(line.x(), line.center().y() - high / 2, max(wide, 2.0), high)
    page.put(Plate(ground=ground, thick=0, radius=min(3 * page.u, bar.width() / 2)), bar)
    if chosen:
        page.put(Plate(border="text", thick=2, radius=5 * page.u), bar.adjusted(-3, -3, 3, 3))
    figure, name = label
    needs = page.width(figure, 16.5, code=True) + page.width(f"  {name}", 16.5) + 12 * page.u + 6
    inside = bar.width() + needs > room
    upon: Tone = "text"
    if inside and (chosen or not page.style.theme.dark):
        upon = "window" if page.style.theme.dark else "text"
    left = bar.right() - needs if inside else bar.right() + max(10 * page.u, 6)
    x = page.say(QRectF(left, line.y(), needs, line.height()), figure, 16.5, upon, code=True,
                 bold=True) + max(8 * page.u, 6)  # fmt: skip
    tone = upon if inside else "muted"
    page.say(QRectF(x, line.y(), needs, line.height()), name, 16.5, tone)


def _count(
    page: Page, cell: QRectF, found: MemoryNeed, about: str, count: float, square: float,
    tone: Tone, *, chosen: bool,
) -> None:  # fmt: skip
    """Put the number of GPUs, and as many squares if they can be counted."""
    many = found.gpus
    words = "–" if many is None else f"{about}{count_text(many)}"
    place = QRectF(cell.x(), cell.y(), count, cell.height())
    page.say(place, words, 17, "text", RIGHT, bold=chosen, code=True)
    fits = int((cell.right() - place.right() - 8) // square)
    if many is None or fits < 1:
        return
    side = 0.78 * square
    for n in range(many if many <= fits else 1):
        x = place.right() + 8 + n * square
        y = cell.center().y() - side * 0.6
        page.put(Plate(ground=tone, thick=0, radius=side / 6), QRectF(x, y, side, 1.2 * side))


def _against(page: Page, rect: QRectF, found: MemoryNeed, *, current: bool) -> None:
    """Put weights and cache as parts of one bar, and the words on when the cache is larger."""
    high = max(18 * page.u, 8.0)
    bar = QRectF(rect.x(), rect.y() + 3 * page.u, rect.width(), high)
    if found.weights is not None:
        split = bar.width() * found.weights / (found.weights + found.cache)
        page.put(Plate(ground=GREY, thick=0, radius=2), QRectF(bar.x(), bar.y(), split, high))
        rest = QRectF(bar.x() + split, bar.y(), bar.width() - split, high)
        page.put(Plate(ground="amber", thick=0, radius=min(2, rest.width() / 2)), rest)
    below = QRectF(bar.x(), bar.bottom() + 4 * page.u, bar.width(), page.line(14.5))
    if below.bottom() <= rect.bottom() + 1:
        tone = "text" if current else "muted"
        page.say(below, conversation_words(found), 14.5, tone, bold=current)


def _foot(page: Page, c: CacheChoice, rect: QRectF) -> None:
    """Put the links at the right, and at the left a note on what the figures leave out."""
    right = rect.right()
    for name, title in reversed(LINKS.items() if c.controls else ()):
        words = f"{'▾' if c.opened == name else '▸'} {title}"
        wide = page.width(words, 15) + 2
        place = QRectF(right - wide, rect.y(), wide, rect.height())
        page.say(place, words, 15, "Q")
        page.put(Box(id=("open", name), name=("open", name)), place)
        right -= wide + max(16 * page.u, 10)
    experts = c.model.active_params_billion is not None
    read = "cache and the weights of one token's experts" if experts else "weights and cache"
    note = "Nothing else in memory"
    page.say(
        QRectF(rect.x(), rect.y(), right - rect.x(), rect.height()),
        (f"{note}; tokens / s: {read} read once a token. ≈ weights changed by the known sizes of "
         "the projections.", f"{note}; tokens / s: {read} read once a token.", f"{note}.", ""),
        13.5, "faint",
    )  # fmt: skip
