"""The slide at the end of a run: what it has cost, beside the algorithms it is compared with."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QPainter

from simulator.program.algorithms import TENSORS, baseline_of
from simulator.program.tile_program import TileProgram
from simulator.study.compare import Totals, at_scale, comparison_of
from simulator.study.sweep import unmasked
from ui.look.draw import CENTRE, LEFT, RIGHT, draw_text, fitted, text_width, wrapped
from ui.look.names import first_that_fits
from ui.look.theme import LABEL, Style
from ui.look.units import LAUNCH, bytes_text, count_text, factor_text, time_text
from ui.panels.compare.words import mask_words, title

_HEAD, _NAME, _FACTOR = 17.0, 13.0, 38.0
_BAR, _ROW, _PAD, _GAP = 22.0, 76.0, 22.0, 12.0


@dataclass(frozen=True, slots=True)
class CostLine:
    """One algorithm's line on the slide."""

    name: str  # its title
    asked: str  # bytes that it has requested of HBM
    share: float  # these bytes, as a share of the largest on the slide
    shown: bool  # whether it is the run that has ended
    notes: tuple[str, ...]  # what else it took, the most important first


@dataclass(frozen=True, slots=True)
class Costs:
    """What the slide says."""

    rows: tuple[CostLine, ...]  # the algorithms, in the order in which they are shown elsewhere
    factor: str  # bytes of the baseline over those of this run; "" for the baseline itself
    meaning: tuple[str, ...]  # what the factor compares, longest first
    mask: tuple[str, ...]  # what of it is skipped tiles, longest first; empty if there are none
    # what it would be in a long run, longest first; empty if this one is long enough
    long: tuple[str, ...]


def costs_of(program: TileProgram) -> Costs:
    """Return what the slide says about a run that has ended."""
    comparison = comparison_of(program)
    shown, base_of = comparison.shown, baseline_of(comparison.shown)
    totals = [total for total in comparison.totals if total.algorithm in comparison.alike]
    most = max(total.counters.bytes for total in totals)
    rows = tuple(
        CostLine(
            title(total.algorithm), bytes_text(total.counters.bytes), total.counters.bytes / most,
            total.algorithm == shown, _notes(total),
        )
        for total in totals
    )  # fmt: skip
    own = next(total for total in totals if total.algorithm == shown)
    base = next(total for total in totals if total.algorithm == base_of.name)
    if own is base:
        return Costs(rows, "", (), (), ())
    name, made = base_of.label, "the same gradients" if base_of.backward else "the same O"
    meaning = (
        f"as many bytes asked of HBM by {name}, for {made}",
        f"as many bytes asked by {name}",
        f"by {name}",
    )
    times = base.counters.bytes / own.counters.bytes
    of_it: tuple[str, ...] = ()
    if program.workload.mask.hides:
        seen = [
            unmasked(comparison.programs[name].workload).bytes for name in (base_of.name, shown)
        ]
        tiles = seen[0] / seen[1]
        of_it = mask_words(tiles, times / tiles)
    return Costs(rows, factor_text(times), meaning, of_it, _long(program))


def _notes(total: Totals) -> tuple[str, ...]:
    seconds = LAUNCH if total.time.below_launch else time_text(total.time.seconds)
    spent = f"less than a launch, {seconds}" if total.time.below_launch else f"≈ {seconds}"
    pairs = [name for name, n in total.counters.write.items() if n and TENSORS[name].of_pairs]
    square = f"{' and '.join(pairs)} in HBM: {bytes_text(total.square)}"
    square = square if pairs else "S stays on chip"
    return square, spent, f"{count_text(total.counters.flops)} FLOPs"


def _long(program: TileProgram) -> tuple[str, ...]:
    scale, shown = at_scale(program), program.workload.algorithm
    if scale is None or shown == scale.baseline:
        return ()
    times = factor_text(scale.times(shown))
    where = f"At N = {count_text(scale.keys)}"
    tiles = f"in {count_text(scale.rows)} × {count_text(scale.cols)} tiles"
    return f"{where} {tiles} it is {times}", f"{where} it is {times}", f"{where}: {times}"


def paint_costs(painter: QPainter, costs: Costs, style: Style, rect: QRectF) -> None:
    """Draw the slide.

    Parameters
    ----------
    rect : QRectF
        The place; from about 500 × 260 times the scale.
    """
    px, theme = style.px, style.theme
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    place = rect.adjusted(px(_PAD), px(_PAD) / 2, -px(_PAD), -px(_PAD) / 2)
    head = QRectF(place.x(), place.y(), place.width(), px(_HEAD * 1.7))
    draw_text(
        painter,
        head,
        "What it cost: bytes asked of HBM",
        style.text_font(_HEAD, bold=True),
        theme.text,
        LEFT,
    )
    body = place.adjusted(0, head.height() + px(_GAP), 0, 0)
    if costs.factor:
        right = QRectF(
            body.right() - 0.36 * body.width(), body.y(), 0.36 * body.width(), body.height()
        )
        _paint_factor(painter, costs, style, right)
        body.setRight(right.left() - px(_GAP))
    row_high = min(px(_ROW), body.height() / len(costs.rows))
    for n, row in enumerate(costs.rows):
        at = QRectF(body.x(), body.y() + n * row_high, body.width(), row_high)
        _paint_row(painter, row, style, at)
    painter.restore()


def _paint_row(painter: QPainter, row: CostLine, style: Style, rect: QRectF) -> None:
    px, theme = style.px, style.theme
    name = style.text_font(_NAME, bold=row.shown)
    high = rect.height() / 3.2
    line = QRectF(rect.x(), rect.y(), rect.width(), high)
    figures = style.code_font(_NAME, bold=row.shown)
    draw_text(painter, line, row.asked, figures, theme.text, RIGHT)
    room = line.width() - text_width(figures, row.asked) - px(_GAP)
    draw_text(painter, line, fitted(name, row.name, room), name, theme.text, LEFT)
    bar = QRectF(rect.x(), line.bottom() + px(1), rect.width() * row.share, min(px(_BAR), high))
    painter.fillRect(bar, QColor(theme.current if row.shown else theme.faint))
    notes = QRectF(rect.x(), bar.bottom() + px(1), rect.width(), high)
    font = style.text_font(LABEL)
    choices = tuple("  ·  ".join(row.notes[:count]) for count in range(len(row.notes), 0, -1))
    words = first_that_fits(choices, notes.width(), font)
    draw_text(painter, notes, words, font, theme.muted, LEFT)


def _paint_factor(painter: QPainter, costs: Costs, style: Style, rect: QRectF) -> None:
    """Draw the factor in large digits, what it compares, and what it is in a long run."""
    px, theme = style.px, style.theme
    large, small = style.text_font(_FACTOR, bold=True), style.text_font(LABEL + 1)
    digits = QRectF(rect.x(), rect.y(), rect.width(), px(_FACTOR * 1.3))
    draw_text(painter, digits, costs.factor, large, theme.current, CENTRE)
    top = digits.bottom()
    for choices, colour in (
        (costs.meaning, theme.text), (costs.mask, theme.text), (costs.long, theme.muted),
    ):  # fmt: skip
        if not choices:
            continue
        words = first_that_fits(choices, 1.9 * rect.width(), small)
        for part in wrapped(words, small, rect.width()):
            line = QRectF(rect.x(), top, rect.width(), px(18))
            if line.bottom() <= rect.bottom():
                draw_text(painter, line, part, small, colour, CENTRE)
            top += px(18)
        top += px(_GAP)
