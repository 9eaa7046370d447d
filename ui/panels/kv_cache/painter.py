"""Decoding token by token: what the cache of each layer group contains, and what a token moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter

from simulator.study.kv_cache.counts import CacheBytes, DecodeStep, Fit, GroupStep, decode_step, fit
from simulator.study.kv_cache.formula import CacheFormula, cache_formula, gpus_for
from ui.look.draw import CENTRE, LEFT, RIGHT, draw_text, mixed, outline, patterned, text_width
from ui.look.names import first_that_fits
from ui.look.theme import Style
from ui.look.units import count_text, decimal_bytes_text, time_text
from ui.panels.kv_cache.formula_line import formula_height, formula_text, paint_formula
from ui.panels.kv_cache.plot import CacheChoice, count_name, counted

_NARROW, _WIDE, _GROWTH = 300.0, 700.0, 1.35
"""Widths from which text keeps its size, and grows, and by how much."""
_LINE, _BAR, _CELL, _GAP = 18.0, 10.0, 22.0, 4.0
_SMALLEST = 0.95
_LEAST_CONTEXT = 16


@dataclass(frozen=True, slots=True)
class CacheState:
    """Everything that the picture shows."""

    choice: CacheChoice  # what it is counted for
    step: DecodeStep  # what the newest token does
    counts: CacheBytes  # the whole cache by the three conventions
    fit: Fit  # how many sequences fit the GPU
    formula: CacheFormula  # the chosen count as a product


def cache_state(choice: CacheChoice) -> CacheState:
    """Return the figures of a choice."""
    c = choice
    return CacheState(
        c,
        decode_step(c.model, c.tokens, c.dtype, c.batch, c.weights_dtype),
        c.counts,
        fit(c.model, c.tokens, c.gpu, c.dtype, c.page_size, c.weights_dtype),
        cache_formula(c.model, c.tokens, c.dtype, c.batch, c.page_size, c.convention),
    )


# --- words ------------------------------------------------------------------------------------


def fit_words(state: CacheState) -> list[str]:
    """Return how many sequences fit, longest first."""
    c, count = state.choice, state.fit.sequences
    if count is None:
        return [
            "how many sequences fit: not known, as the weights are not",
            "sequences that fit: not known",
        ]
    if state.fit.weights is not None and state.fit.weights > c.gpu.memory_bytes:
        return [
            f"no sequence fits one {c.gpu.name}: the weights alone take "
            f"{decimal_bytes_text(state.fit.weights)} of {c.gpu.memory_gb} GB",
            f"no sequence fits: weights of {decimal_bytes_text(state.fit.weights)}",
            "no sequence fits",
        ]
    many = f"{count_text(count)} sequence{'' if count == 1 else 's'}"
    each = f"{count_text(c.tokens)} tokens"
    verb = "fits" if count == 1 else "fit"
    return [
        f"{many} of {each} {verb} one {c.gpu.name} beside the weights (allocated, pages of "
        f"{c.page_size}; nothing else in memory)",
        f"{many} of {each} {verb} one {c.gpu.name} beside the weights (allocated)",
        f"{many} of {each} {verb} {c.gpu.name} (allocated)",
        f"{many} {verb} (allocated)",
        many,
    ]


def gpu_words(state: CacheState) -> list[str]:
    """Return how many GPUs the whole cache needs, alone and beside the weights, longest first."""
    c, weights = state.choice, state.fit.weights
    alone = gpus_for(state.counts.allocated, c.gpu)
    holds = "holds" if alone == 1 else "hold"
    many = f"{count_text(alone)} × {c.gpu.name}"
    both = "weights not known"
    if weights is not None:
        both = f"{count_text(gpus_for(state.counts.allocated + weights, c.gpu))} with the weights"
    return [
        f"{c.model.name}: {many} {holds} this cache alone, {both} (allocated, dealt out evenly, "
        "nothing else in memory)",
        f"{c.model.name}: {many} {holds} this cache alone, {both} (allocated)",
        f"{c.model.name}: {many} {holds} it alone, {both}",
        f"{c.model.name}: {many} alone, {both}",
        f"{c.model.name}: {many}",
        many,
    ]


def count_words(state: CacheState) -> list[tuple[str, bool]]:
    """Return the counts by name, and whether each is the one that the plot shows."""
    c = state.choice
    out = []
    for name, keys in counted(c.model).items():
        size = decimal_bytes_text(getattr(state.counts, keys[0]))
        out.append((f"{name}: {size}", c.convention in keys))
    return out


def step_words(state: CacheState) -> list[str]:
    """Return what the newest token moves, longest first."""
    step = state.step
    many = f"{count_text(step.batch)} tokens" if step.batch > 1 else "token"
    number = f"{many} number {count_text(step.tokens)}" if step.batch == 1 else f"a step of {many}"
    written, read = decimal_bytes_text(step.written), decimal_bytes_text(step.read)
    once = "all heads" if state.choice.model.is_latent else "each KV head"
    capped = "window-capped, " if state.choice.model.windowed_layers else ""
    return [
        f"{number}: {written} written to the cache, {read} read ({capped}once for {once})",
        f"{number}: {written} written, {read} read{' (window-capped)' if capped else ''}",
        f"{written} written, {read} read",
        f"{read} read",
    ]


def time_words(state: CacheState) -> list[str]:
    """Return how long the reading takes, and the tokens a second that it allows, longest first.

    The bound is that of as many GPUs as hold cache and weights: on fewer nothing runs.
    """
    gpu, step = state.choice.gpu, state.step
    if state.fit.weights is None:
        cache = f"{time_text(step.cache_seconds(gpu))} at {gpu.tbps:g} TB/s"
        return [
            f"reading the cache takes {cache}; tokens/s: no bound, as the weights are not known",
            f"cache {cache}; weights not known",
            f"cache {cache}",
        ]
    many = gpus_for(state.counts.allocated + state.fit.weights, gpu)
    seconds, rate = step.seconds(gpu, many), step.tokens_per_second(gpu, many)
    assert seconds is not None
    assert rate is not None
    cache, both = time_text(step.cache_seconds(gpu, many)), time_text(seconds)
    mixture = state.choice.model.active_params_billion is not None
    weights = "the weights of one token's experts" if mixture else "the weights"
    each = f"{gpu.tbps:g} TB/s" if many == 1 else f"{count_text(many)} × {gpu.tbps:g} TB/s"
    on = f"one {gpu.name}" if many == 1 else f"the {count_text(many)} × {gpu.name} that hold both"
    most = f"at most {_rate(rate)}"
    return [
        f"reading the cache takes {cache} at {each}, with {weights} {both}: {most} on {on} (upper "
        "bound: bandwidth alone)",
        f"cache {cache}, with weights {both} at {each}: {most} on {on} (upper bound)",
        f"cache {cache}, with weights {both}: {most} on {on} (upper bound)",
        f"{most} on {on} (upper bound)",
        f"{most} on {count_text(many)} × {gpu.name}",
        f"{most} at {each}",
    ]


def _rate(rate: float) -> str:
    return f"{count_text(round(rate)) if rate >= 100 else f'{rate:.3g}'} tokens/s"


def group_words(group: GroupStep) -> tuple[list[str], list[str]]:
    """Return which layers a group has, and what it contains and moves; both longest first."""
    layers, window = group.group.layers, group.group.window
    name = f"{layers} layer{'' if layers == 1 else 's'}"
    kept = f"window {count_text(window)}" if window else "all tokens"
    held = f"holds {count_text(group.held)} tokens"
    written, read = decimal_bytes_text(group.written), decimal_bytes_text(group.read)
    said = [
        f"{held} · + {written} written · {read} read",
        f"+ {written} · {read} read",
        f"{read} read",
    ]
    return [f"{name}, {kept}", name], said


def state_words(state: CacheState) -> str:
    """Return the whole picture in words, for screen readers."""
    return ". ".join(
        (
            f"{state.choice.model.name}, {count_text(state.choice.tokens)} tokens",
            fit_words(state)[0],
            gpu_words(state)[0],
            formula_text(state.formula, count_name(state.choice)),
            ", ".join(text for text, _ in count_words(state)),
            step_words(state)[0],
            time_words(state)[0],
        )
    )


# --- the picture ------------------------------------------------------------------------------


def grown(state: CacheState, style: Style, width: float, height: float) -> Style:
    """Return the style, a little larger if all parts still fit then."""
    room = min(height / wanted_height(state, style), width / style.px(_WIDE), _GROWTH)
    return replace(style, scale=style.scale * max(room, 1.0))


def _suited(state: CacheState, style: Style, rect: QRectF) -> Style:
    """Return the style at the text scale that suits a place; smaller if the last line needs it."""
    words = style.px(5 * _LINE + 2 * _GAP + len(state.step.groups) * (_LINE + _GAP))
    room = min(rect.height() / words, rect.width() / style.px(_NARROW), 1.0)
    return replace(style, scale=max(style.scale * room, min(style.scale, _SMALLEST)))


def wanted_height(state: CacheState, style: Style) -> float:
    """Return the height that all parts of the picture take."""
    groups = len(state.step.groups)
    parts = style.px(5 * _LINE + groups * (_LINE + _BAR + _CELL + 3 * _GAP) + 3 * _GAP)
    return parts + formula_height(style)


def paint_cache(painter: QPainter, state: CacheState, style: Style, rect: QRectF) -> None:
    """Draw the cache of each layer group and what the newest token moves.

    rect: place; if it is low, parts are left out, first cells, then bars, then the formula.
    """
    style, groups = _suited(state, style, rect), state.step.groups
    line, gap = style.px(_LINE), style.px(_GAP)
    words = 5 * line + 2 * gap + len(groups) * (line + gap)
    whole = words + formula_height(style) + gap
    bars = whole + len(groups) * (style.px(_BAR) + gap)
    cells = bars + len(groups) * (style.px(_CELL) + gap)
    with_cells, with_bars = cells <= rect.height() + 1, bars <= rect.height() + 1
    place = QRectF(rect.left(), rect.top(), rect.width(), line)
    font, strong = style.text_font(12), style.text_font(13, bold=True)

    def says(choices: Sequence[str], bold: bool = False) -> None:
        used = strong if bold else font
        if place.bottom() <= rect.bottom() + 1:
            text = first_that_fits(choices, place.width(), used)
            colour = style.theme.text if bold else style.theme.muted
            draw_text(painter, place, text, used, colour, LEFT)
        place.translate(0, line)

    if whole <= rect.height() + 1:
        paint_formula(painter, state.formula, count_name(state.choice), style, place)
        place.translate(0, formula_height(style) + gap)
    says(gpu_words(state), bold=True)
    says(fit_words(state))
    _paint_counts(painter, state, style, place, rect)
    place.translate(0, line + gap)
    for group in groups:
        if place.bottom() > rect.bottom() + 1:
            return
        _paint_group_words(painter, group, style, place)
        place.translate(0, line)
        if with_bars:
            bar = QRectF(place.left(), place.top(), place.width(), style.px(_BAR))
            _paint_bar(painter, state, group, style, bar)
            place.translate(0, style.px(_BAR) + gap)
        if with_cells:
            row = QRectF(place.left(), place.top(), place.width(), style.px(_CELL))
            _paint_cells(painter, state, group, style, row)
            place.translate(0, style.px(_CELL) + gap)
        place.translate(0, gap)
    says(step_words(state))
    says(time_words(state))


def _paint_counts(
    painter: QPainter, state: CacheState, style: Style, place: QRectF, rect: QRectF
) -> None:
    """Write the counts in columns, the chosen one in bold."""
    if place.bottom() > rect.bottom() + 1:
        return
    words = count_words(state)
    for size in (12.0, 11.0):
        font, strong = style.text_font(size), style.text_font(size, bold=True)
        widths = [text_width(strong if on else font, text) for text, on in words]
        if sum(widths) + 2 * style.px(10) <= place.width():
            break
    else:  # the only one that is used
        words = [pair for pair in words if pair[1]]
        widths = [place.width()]
    x, room = place.left(), place.width() - sum(widths)
    step = min(room / max(len(words) - 1, 1), style.px(28))
    for (text, on), width in zip(words, widths, strict=True):
        box = QRectF(x, place.top(), width + 1, place.height())
        colour = style.theme.text if on else style.theme.muted
        draw_text(painter, box, text, strong if on else font, colour, LEFT)
        x += width + step


def _paint_group_words(painter: QPainter, group: GroupStep, style: Style, place: QRectF) -> None:
    names, said = group_words(group)
    font, strong = style.text_font(12), style.text_font(12, bold=True)
    name = first_that_fits(names, 0.5 * place.width(), strong)
    used = min(text_width(strong, name), 0.6 * place.width())
    draw_text(painter, place, name, strong, style.theme.tensor("K"), LEFT)
    room = place.adjusted(used + style.px(12), 0, 0, 0)
    draw_text(
        painter, room, first_that_fits(said, room.width(), font), font, style.theme.text, RIGHT
    )


def context_of(tokens: int) -> int:
    """Return how many tokens a whole bar stands for: the next power of two."""
    return max(_LEAST_CONTEXT, 1 << (tokens - 1).bit_length())


def _paint_bar(
    painter: QPainter, state: CacheState, group: GroupStep, style: Style, bar: QRectF
) -> None:
    """Draw the tokens that each layer of a group holds, oldest first; those dropped hatched."""
    theme, tokens = style.theme, state.step.tokens
    context = context_of(tokens)
    label = f"of {count_text(context)}"
    font = style.text_font(11)
    room = text_width(font, f"of {count_text(state.choice.most)}") + style.px(6)
    bar = bar.adjusted(0, 0, -room, 0)
    place = QRectF(bar.right() + style.px(6), bar.top() - style.px(3), room, bar.height())
    place.setHeight(bar.height() + style.px(6))
    draw_text(painter, place, label, font, theme.muted, LEFT)
    painter.fillRect(bar, QColor(theme.empty))
    one = bar.width() / context
    gone = tokens - group.held
    if gone:
        left = QRectF(bar.left(), bar.top(), gone * one, bar.height())
        painter.fillRect(left, patterned(theme.hatch, Qt.BrushStyle.BDiagPattern, style))
    held = QRectF(bar.left() + gone * one, bar.top(), group.held * one, bar.height())
    painter.fillRect(held, mixed(theme.panel, theme.tensor("K"), 0.55))
    newest = max(one, 2.0)
    painter.fillRect(
        QRectF(held.right() - newest, bar.top(), newest, bar.height()), QColor(theme.current)
    )
    outline(painter, bar, theme.border)


def shown_tokens(tokens: int, held: int, dropped: bool, places: int) -> list[int | None]:
    """Return the numbers of tokens that have a cell; None where some are left out.

    A token that has just left the window comes first, then the oldest one in the cache, then those
    left out, and then the newest ones.

    tokens, held: tokens so far, counted from 1, and how many of them the layer keeps.
    places: how many cells there is space for, at least 4.
    """
    oldest = tokens - held + 1
    first: list[int | None] = [oldest - 1] if dropped else []
    room = places - len(first)
    if held <= room:
        return [*first, *range(oldest, tokens + 1)]
    return [*first, oldest, None, *range(tokens - (room - 2) + 1, tokens + 1)]


def _paint_cells(
    painter: QPainter, state: CacheState, group: GroupStep, style: Style, row: QRectF
) -> None:
    """Draw single tokens: the new one is written and read, the others are read."""
    theme, tokens = style.theme, state.step.tokens
    font, strong = style.text_font(11), style.text_font(11, bold=True)
    width = max(text_width(strong, count_text(tokens)) + style.px(10), style.px(26))
    places = max(4, int(row.width() // width))
    width = min(width, row.width() / places)
    dropped = group.dropped and bool(group.group.window)
    cells = shown_tokens(tokens, group.held, dropped, places)
    for n, token in enumerate(cells):
        box = QRectF(row.left() + n * width, row.top(), width - style.px(2), row.height())
        if token is None:
            draw_text(painter, box, "…", font, theme.muted, CENTRE)
            continue
        gone, new = dropped and n == 0, token == tokens
        if gone:
            painter.fillRect(box, patterned(theme.hatch, Qt.BrushStyle.BDiagPattern, style))
        else:
            ground = theme.current if new else theme.tensor("K")
            painter.fillRect(box, mixed(theme.panel, ground, 0.3 if new else 0.25))
        colour = theme.current if new else theme.border if gone else theme.tensor("K")
        outline(painter, box, colour, style.px(2) if new else 1.0)
        words = QColor(theme.muted if gone else theme.text)
        draw_text(painter, box, count_text(token), strong if new else font, words, CENTRE)
        if gone:
            painter.setPen(QColor(theme.muted))
            middle = box.center().y()
            painter.drawLine(QPointF(box.left(), middle), QPointF(box.right(), middle))
