"""The slide at the end of a run: its cost beside the cost of other algorithms."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainter

from simulator.program.algorithms import TENSORS, baseline_of
from simulator.program.tile_program import TileProgram
from simulator.study.compare import Totals, at_scale, comparison_of
from simulator.study.sweep import unmasked
from ui.kit.boxes import Box, Column, Row, scene
from ui.kit.shapes import Bar, Bars, Paragraph, Text
from ui.look.draw import CENTRE, RIGHT
from ui.look.durations import duration_text, limit_text
from ui.look.theme import LABEL, Style
from ui.look.units import bytes_text, count_text, factor_text
from ui.panels.compare.words import mask_words, title


@dataclass(frozen=True, slots=True)
class CostLine:
    """One algorithm's line on the slide."""

    name: str  # its title
    asked: str  # bytes that it has requested of HBM
    share: float  # these bytes, as a share of the largest on the slide
    shown: bool  # whether it is the run that has ended
    notes: tuple[str, ...]  # other costs, the most important first


@dataclass(frozen=True, slots=True)
class Costs:
    """The contents of the slide."""

    rows: tuple[CostLine, ...]  # the algorithms, in the order in which they are shown elsewhere
    factor: str  # bytes of the baseline over bytes of this run; "" for the baseline itself
    meaning: str = ""  # what the factor compares
    mask: str = ""  # the factor's part from skipped tiles; empty if none
    long: str = ""  # the factor in a long run; empty if this run is long enough


def costs_of(program: TileProgram) -> Costs:
    """Return the contents of the slide for a run that has ended."""
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
        return Costs(rows, "")
    meaning = f"as many bytes asked of HBM by {base_of.label}, for the same {base_of.result}"
    times, of_it = base.counters.bytes / own.counters.bytes, ""
    if program.workload.mask.hides:
        first, last = (
            unmasked(comparison.programs[name].workload).bytes for name in (base_of.name, shown)
        )
        of_it = mask_words(first / last, times * last / first)
    scale, long = at_scale(program), ""
    if scale is not None and shown != scale.baseline:
        tiles = f"{count_text(scale.rows)} × {count_text(scale.cols)} tiles"
        factor = factor_text(scale.times(shown))
        long = f"At N = {count_text(scale.keys)} in {tiles} it is {factor}"
    return Costs(rows, factor_text(times), meaning, of_it, long)


def _notes(total: Totals) -> tuple[str, ...]:
    spent = f"{duration_text(total.duration)}: {limit_text(total.duration)}"
    pairs = [name for name, n in total.counters.write.items() if n and TENSORS[name].of_pairs]
    square = f"{' and '.join(pairs)} in HBM: {bytes_text(total.square)}"
    square = square if pairs else "S stays on chip"
    return square, spent, f"{count_text(total.counters.flops)} FLOPs"


def paint_costs(painter: QPainter, costs: Costs, style: Style, rect: QRectF) -> None:
    """Draw the slide; the place is at least about 500 × 260 times the scale."""
    place = style.inset(rect, 22, 11, 22, 11)
    painter.save()
    scene(_slide(costs), style, place).paint(painter)
    painter.restore()


def _slide(costs: Costs) -> Box:
    """Return lines with bars, and beside them the factor in large digits."""
    told = [(costs.meaning, "text"), (costs.mask, "text"), (costs.long, "muted")]
    beside = Column((
        Text(costs.factor, "current", CENTRE, 38, bold=True, high=50),
        *(Paragraph(words, tone, CENTRE, LABEL + 1, high=18) for words, tone in told if words),
    ), gap=10, share=0.36)  # fmt: skip
    rows = Column(tuple(map(_row, costs.rows)), gap=8, grow=1)
    return Column((
        Text("What it cost: bytes asked of HBM", bold=True, size=17, high=29),
        Row((rows, beside) if costs.factor else (rows,), gap=12, grow=1),
    ), gap=12)  # fmt: skip


def _row(row: CostLine) -> Box:
    notes = tuple("  ·  ".join(row.notes[:count]) for count in range(len(row.notes), 0, -1))
    bar = Bar(0, row.share, "current" if row.shown else "faint")
    return Column((
        Row((
            Text(row.name, bold=row.shown, size=13, grow=1, wide=0, high=20),
            Text(row.asked, "text", RIGHT, 13, bold=row.shown),
        )),
        Bars((bar,), 1.0, high=18),
        Text(notes, "muted", wide=0),
    ), gap=2)  # fmt: skip
