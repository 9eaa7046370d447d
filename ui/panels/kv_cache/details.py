"""The views below the card: all figures as a table, the bytes as a product, decoding by token."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QLineF, QRectF, Qt
from PySide6.QtGui import QPainter, QPen

from simulator.study.kv_cache.counts import DecodeStep, GroupStep, bytes_per_token, decode_step, fit
from simulator.study.kv_cache.formula import CacheFormula, cache_formula
from simulator.study.kv_cache.memory import sharings
from ui.kit.boxes import Box, Tone, ink
from ui.kit.shapes import Wordings
from ui.look.draw import CENTRE, LEFT, RIGHT, patterned
from ui.look.theme import Style
from ui.look.units import count_text, decimal_bytes_text, plural, time_text
from ui.panels.kv_cache.page import Page, Plate
from ui.panels.kv_cache.state import (
    DECODING,
    FORMULA,
    HEAD_SIZE,
    KV_HEADS,
    LAYERS,
    TABLE,
    TYPE_NAMES,
    CacheChoice,
    count_name,
    counted,
)
from ui.panels.kv_cache.words import conversation_words, figures, rate_words

DECODE, OWN = "decode", "own"
_LEAST_CONTEXT = 16


def put_details(page: Page, c: CacheChoice, rect: QRectF) -> None:
    """Put the open view; the curve is a widget of its own."""
    {TABLE: _table, FORMULA: _formula, DECODING: _decoding}[c.opened](page, c, rect)


# --- table ------------------------------------------------------------------------------------

_HEADS = ("", "cache", "a token", "weights", "GPUs", "tokens / s", "cache larger from")


def table_rows(c: CacheChoice) -> list[tuple[tuple[str, str], tuple[str, ...]]]:
    """Return for each way and element type its figures, in powers of ten."""
    ways = sharings(c.base)
    largest = max(c.needed(kind, dtype).cache for kind in ways for dtype in c.types)
    out = list[tuple[tuple[str, str], tuple[str, ...]]]()
    for kind, model in ways.items():
        about = "" if kind == c.base.kind else "≈ "
        for dtype in c.types:
            found = c.needed(kind, dtype)
            weights = "–" if found.weights is None else (
                f"{about}{decimal_bytes_text(found.weights)}")  # fmt: skip
            gpus = "–" if found.gpus is None else f"{about}{count_text(found.gpus)}"
            out.append((
                (kind, dtype),
                (f"{kind} {TYPE_NAMES[dtype]}", figures(found.cache, largest),
                 decimal_bytes_text(bytes_per_token(model, dtype)), weights, gpus,
                 rate_words(found, about),
                 "–" if found.larger_from is None else count_text(found.larger_from)),
            ))  # fmt: skip
    return out


def _table(page: Page, c: CacheChoice, rect: QRectF) -> None:
    """Put the figures of all ways; with little room, only the rows around the chosen one."""
    rows, size = table_rows(c), 16.0
    line = page.line(size)
    fits = max(min(int(rect.height() // line) - 1, len(rows)), 1)
    line = min(rect.height() / (fits + 1), 1.3 * line)
    keys = [key for key, _ in rows]
    here = c.model.kind, c.dtype
    at = keys.index(here)
    first = min(max(at - fits // 2, 0), len(rows) - fits)
    widths = [
        max(page.width(head, size), *(page.width(cells[n], size, code=True) for _, cells in rows))
        for n, head in enumerate(_HEADS)
    ]
    shown = len(_HEADS)
    while shown > 2 and sum(widths[:shown]) + 16 * shown * page.u > rect.width():
        shown -= 1
    gap = min((rect.width() - sum(widths[:shown])) / shown, 60 * page.u)
    for n, (key, cells) in enumerate([(None, _HEADS), *rows[first : first + fits]]):
        row = QRectF(rect.x(), rect.y() + n * line, sum(widths[:shown]) + gap * shown, line)
        if key == here:
            page.put(Plate(ground="accent", border="Q", thick=1.5, radius=4), row)
        if key is not None:
            page.put(Box(id=("bar", *key), name=("row", *key)), row)
        x = row.x() + gap / 2
        for place, (text, wide) in enumerate(zip(cells[:shown], widths[:shown], strict=True)):
            cell = QRectF(x, row.y(), wide + 1, line)
            tone = "muted" if key is None else "text"
            page.say(cell, text, size, tone, RIGHT if place else LEFT, code=key is not None)
            x += wide + gap


# --- formula ----------------------------------------------------------------------------------


def formula_of(c: CacheChoice) -> CacheFormula:
    """Return the chosen count as a product."""
    return cache_formula(c.model, c.tokens, c.dtype, c.batch, c.page_size, c.convention)


def formula_columns(c: CacheChoice) -> list[tuple[str, str]]:
    """Return values and signs from left to right, and the name below each value."""
    formula, out = formula_of(c), list[tuple[str, str]]()
    for term in formula.terms:
        out += [("+", ""), (count_text(term.layers), LAYERS), ("×", ""),
                (count_text(term.tokens), "tokens")]  # fmt: skip
    out = out[1:]
    if len(formula.terms) > 1:
        out = [("(", ""), *out, (")", "")]
    for factor in formula.factors:
        value = f"{float(factor.value):g} B" if factor.bytes else count_text(int(factor.value))
        name = TYPE_NAMES.get(factor.name, factor.name)
        out += [("×", ""), (value, name)]
    return [*out, ("=", ""), (decimal_bytes_text(formula.total), count_name(c))]


def gpu_lines(c: CacheChoice) -> tuple[Wordings, ...]:
    """Return how GPUs, tokens a second and conversations are computed, and the counts."""
    found, gpu = c.needed(), c.gpu
    counts = "; ".join(
        f"{name} {decimal_bytes_text(getattr(c.counts, keys[0]))}"
        for name, keys in counted(c.model).items()
    )
    counted_words = f"{counts}, in pages of {plural(c.page_size, 'token')}"
    if found.weights is None or found.gpus is None or found.read is None:
        return "GPUs and tokens a second are not known, as the weights are not.", counted_words
    both = f"({found.weights / 1e9:.1f} + {found.cache / 1e9:.2f}) GB"
    read = f"({found.read / 1e9:.1f} + {found.cache / 1e9:.2f}) GB"
    many = found.gpus
    one = fit(c.model, c.tokens, gpu, c.dtype, c.page_size, c.weights_dtype)
    times = "" if c.batch == 1 else f"{c.batch} × "
    return (
        f"GPUs = ⌈{both} / {gpu.memory_gb} GB⌉ = {count_text(many)}",
        f"tokens / s ≤ {times}{count_text(many)} × {gpu.tbps:g} TB/s / {read} = "
        f"{rate_words(found, '')}",
        f"{conversation_words(found)[0]}: {found.weights / 1e9:.1f} GB of weights / "
        f"{found.cache / c.batch / 1e9:.2f} GB",
        f"one {gpu.name} holds {plural(one, 'conversation')} beside the weights" if one else
        f"no conversation fits one {gpu.name} beside the weights",
        counted_words,
    )  # fmt: skip


def _formula(page: Page, c: CacheChoice, rect: QRectF) -> None:
    """Put the product; shapes can be changed under their factor."""
    columns, size = formula_columns(c), 26.0
    gap = 10 * page.u

    def widths(size: float) -> list[float]:
        return [max(page.width(text, size, bold=True),
                    max(page.width(name, 14), 44) if named and name else 0)
                for text, name in columns]  # fmt: skip

    named = True
    while sum(widths(size)) + gap * len(columns) > rect.width() and (size > 8 or named):
        named = named and size > 8
        size = max(size - 1, 8)
    x, y, line = rect.x(), rect.y(), page.line(size)
    steps = c.controls and not c.kind and named
    for (text, name), wide in zip(columns, widths(size), strict=True):
        place = QRectF(x, y, wide + 1, line)
        page.say(place, text, size, "text" if name else "muted", CENTRE, bold=True)
        below = QRectF(x, y + line, wide + 1, page.line(14))
        page.say(below, name * named, 14, "muted", CENTRE)
        if name in (LAYERS, KV_HEADS, HEAD_SIZE) and steps:
            foot = QRectF(x, below.bottom(), wide + 1, page.line(18))
            for sign, more, at in (("−", -1, foot.x()), ("+", 1, foot.center().x())):
                press = QRectF(at, foot.y(), foot.width() / 2, foot.height())
                page.say(press, sign, 18, "Q", CENTRE, bold=True)
                word = "One step less" if more < 0 else "One step more"
                page.put(Box(id=("shape", name, more), name=("shape", name, more), tip=word), press)
        x += wide + gap
    y += line + page.line(14) + 1.2 * page.line(18)
    if c.changed is not None and c.controls:
        place = QRectF(rect.x(), y, page.width("as published", 15) + 2, page.line(15))
        page.say(place, "as published", 15, "Q")
        page.put(Box(id=(OWN,), name=(OWN,)), place)
        y += page.line(15)
    _lines(page, gpu_lines(c), QRectF(rect.x(), y, rect.width(), rect.bottom() - y))


def _lines(page: Page, lines: tuple[Wordings, ...], rect: QRectF, size: float = 19.0) -> None:
    """Put lines of words, as many as have room."""
    line = page.line(size)
    for n, words in enumerate(lines):
        if (n + 1) * line <= rect.height() + 1:
            place = QRectF(rect.x(), rect.y() + n * line, rect.width(), line)
            page.say(place, words, size, "text" if n < 1 else "muted")


# --- decoding ---------------------------------------------------------------------------------


def step_words(c: CacheChoice, step: DecodeStep) -> tuple[str, ...]:
    """Return the bytes of the newest tokens in words, longest first."""
    many = plural(step.batch, "token")
    number = f"token {count_text(step.tokens)}" if step.batch == 1 else f"a step of {many}"
    written, read = decimal_bytes_text(step.written), decimal_bytes_text(step.read)
    once = "all heads" if c.model.is_latent else "each KV head"
    return (
        f"{number}: {written} written to the cache, {read} read (once for {once})",
        f"{number}: {written} written, {read} read",
        f"{read} read",
    )


def time_words(c: CacheChoice, step: DecodeStep) -> tuple[str, ...]:
    """Return how long the step reads, on the GPUs that are needed; longest first."""
    found = c.needed()
    if found.gpus is None or found.read is None:
        cache = time_text(step.seconds(c.gpu))
        return (f"reading the cache takes {cache} at {c.gpu.tbps:g} TB/s; weights not known",)
    band = found.gpus * c.gpu.tbps * 1e12
    cache, both = (time_text(n / band) for n in (found.cache, found.cache + found.read))
    on = f"{count_text(found.gpus)} × {c.gpu.name}"
    return (
        f"on {on} reading the cache takes {cache}, with the weights {both}: at most "
        f"{rate_words(found, '')} tokens/s (bandwidth alone)",
        f"cache {cache}, with the weights {both} on {on}",
        f"{both} on {on}",
    )


def group_words(group: GroupStep) -> tuple[str, tuple[str, ...]]:
    """Return the layers of a group, and the tokens it holds and bytes it moves, longest first."""
    layers, window = group.group.layers, group.group.window
    kept = f"window {count_text(window)}" if window else "all tokens"
    written, read = decimal_bytes_text(group.written), decimal_bytes_text(group.read)
    return f"{plural(layers, 'layer')}, {kept}", (
        f"holds {count_text(group.held)} tokens · + {written} written · {read} read",
        f"+ {written} · {read} read",
        f"{read} read",
    )


def context_of(tokens: int) -> int:
    """Return how many tokens a whole bar stands for: the next power of two."""
    return max(_LEAST_CONTEXT, 1 << (tokens - 1).bit_length())


def shown_tokens(tokens: int, held: int, dropped: bool, places: int) -> list[int | None]:
    """Return the numbers of tokens that have a cell; None where some are left out.

    A token that has just left the window comes first, then the oldest one in the cache, then the
    ones left out, and then the newest ones.

    tokens, held: tokens so far, counted from 1, and how many of them the layer keeps.
    places: how many cells there is space for, at least 4.
    """
    oldest = tokens - held + 1
    first: list[int | None] = [oldest - 1] if dropped else []
    room = places - len(first)
    if held <= room:
        return [*first, *range(oldest, tokens + 1)]
    return [*first, oldest, None, *range(tokens - (room - 2) + 1, tokens + 1)]


@dataclass(frozen=True, eq=False)
class Gone(Box):
    """The hatched place of tokens that have left the window."""

    def paint(self, painter: QPainter, style: Style, rect: QRectF) -> None:
        hatch = patterned(style.theme.hatch, Qt.BrushStyle.BDiagPattern, style)
        painter.fillRect(rect, hatch)
        painter.setPen(QPen(ink(style, "muted"), 1))
        painter.drawLine(QLineF(rect.x(), rect.center().y(), rect.right(), rect.center().y()))


def _decoding(page: Page, c: CacheChoice, rect: QRectF) -> None:
    """Put the tokens that the layers keep, and the bytes that the newest token moves."""
    step = decode_step(c.model, c.tokens, c.dtype, c.batch)
    y, size = rect.y(), 17.0
    if c.controls:
        words = "■ stop" if c.decodes else "▸ decode token by token"
        place = QRectF(rect.x(), y, page.width(words, size) + 2, page.line(size))
        page.say(place, words, size, "Q")
        page.put(Box(id=(DECODE,), name=(DECODE,)), place)
        y += page.line(size)
    below = 2 * page.line(size)
    words_high, bar, cell = page.line(size), max(16 * page.u, page.line(13)), page.line(15) * 1.25
    groups = step.groups
    room = (rect.bottom() - y - below) / len(groups)
    for group in groups:
        top = QRectF(rect.x(), y, rect.width(), words_high)
        name, said = group_words(group)
        x = page.say(top, name, size, "K", bold=True) + 12
        page.say(QRectF(x, y, rect.right() - x, words_high), said, size, "text", RIGHT)
        if room >= words_high + bar:
            _held(page, step, group, QRectF(rect.x(), top.bottom(), rect.width(), bar))
        if room >= words_high + bar + cell + 8:
            _cells(page, step, group, QRectF(rect.x(), top.bottom() + bar + 4, rect.width(), cell))
        y += min(room, words_high + bar + cell + 20 * page.u + 8)
    _lines(page, (step_words(c, step), time_words(c, step)),
           QRectF(rect.x(), y, rect.width(), rect.bottom() - y))  # fmt: skip


def _held(page: Page, step: DecodeStep, group: GroupStep, rect: QRectF) -> None:
    """Put a bar of the tokens that each layer holds, oldest first; dropped ones are hatched."""
    context = context_of(step.tokens)
    words = f"of {count_text(context)}"
    wide = page.width(words, 13) + 6
    one = (rect.width() - wide) / context
    gone = step.tokens - group.held
    page.say(QRectF(rect.right() - wide + 6, rect.center().y() - page.line(13) / 2, wide,
                    page.line(13)), words, 13, "muted")  # fmt: skip
    page.put(Plate(ground="empty", border="border", radius=0),
             QRectF(rect.x(), rect.y(), one * context, rect.height()))  # fmt: skip
    if gone:
        page.put(Gone(), QRectF(rect.x(), rect.y(), gone * one, rect.height()))
    held = QRectF(rect.x() + gone * one, rect.y(), group.held * one, rect.height())
    page.put(Plate(ground="amber", radius=0, thick=0), held)
    newest = max(one, 2.0)
    new = QRectF(held.right() - newest, rect.y(), newest, rect.height())
    page.put(Plate(ground="current", radius=0, thick=0), new)


def _cells(page: Page, step: DecodeStep, group: GroupStep, rect: QRectF) -> None:
    """Put single tokens: the new one is written and read, the others are read."""
    tokens, size = step.tokens, 14.0
    wide = max(page.width(count_text(tokens), size, bold=True) + 12, 26.0)
    places = max(4, int(rect.width() // wide))
    wide = min(wide, rect.width() / places)
    dropped = group.dropped and bool(group.group.window)
    for n, token in enumerate(shown_tokens(tokens, group.held, dropped, places)):
        box = QRectF(rect.x() + n * wide, rect.y(), wide - 2, rect.height())
        if token is None:
            page.say(box, "…", size, "muted", CENTRE)
            continue
        new, gone = token == tokens, dropped and n == 0
        border: Tone = "current" if new else "border" if gone else "amber"
        ground: Tone = ("panel", "current" if new else "amber", 0.0 if gone else 0.28)
        page.put(Plate(ground=ground, border=border, thick=2 if new else 1, radius=2), box)
        if gone:
            page.put(Gone(), box)
        tone = "muted" if gone else "text"
        page.say(box, count_text(token), size, tone, CENTRE, bold=new)
