"""The figures of the whole runs as a table: the smallest is marked, whichever it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isnan, nan
from typing import NamedTuple

from simulator.study.compare import Comparison, EngineRun, Totals
from ui.look.durations import duration_text, limit_text
from ui.look.units import bytes_text, count_text, factor_text, flops_text, time_text
from ui.panels.compare.words import SAME, title
from ui.widgets.figures_table import Figure


class TableRow(NamedTuple):
    """One figure of all of them."""

    name: str  # what it is
    texts: tuple[str, ...]  # one for each algorithm
    # the amounts by which they are ranked, NaN of those that are not; empty if less is not better
    amounts: tuple[float, ...] = ()


def table_rows(
    comparison: Comparison, runs: Mapping[str, EngineRun] | None = None
) -> tuple[TableRow, ...]:
    """Return the rows of the table.

    runs: the results of engines, by algorithm; without it these cells say ``not run``.
    """
    totals, alike = comparison.totals, comparison.alike
    gpu = comparison.programs[comparison.shown].workload.gpu

    def row(
        name: str, amount: Callable[[Totals], float], text: Callable[[Totals], str]
    ) -> TableRow:
        amounts = tuple(amount(t) if t.algorithm in alike else nan for t in totals)
        return TableRow(name, tuple(map(text, totals)), amounts)

    def size(name: str, amount: Callable[[Totals], int]) -> TableRow:
        return row(name, amount, lambda total: bytes_text(amount(total)))

    def note(name: str, text: Callable[[Totals], str]) -> TableRow:
        return TableRow(name, tuple(map(text, totals)))

    modelled = any(total.duration.model for total in totals if total.algorithm in alike)
    found = [runs.get(name) if runs else None for name in comparison.programs]
    engine = next((f"{r.engine} engine" for r in found if r), "engine")
    return (
        size("requested, read", lambda t: t.counters.read_bytes),
        size("requested, written", lambda t: t.counters.write_bytes),
        size("requested, total", lambda t: t.counters.bytes),
        size("minimum (each launch, once)", lambda t: t.compulsory),
        row("matmul FLOPs", lambda t: t.counters.flops, lambda t: flops_text(t.counters.flops)),
        note("FLOPs for each requested byte", lambda t: f"{t.intensity:.1f}"),
        note(
            "DRAM, by model",
            lambda t: limit_text(t.duration) if t.duration.dram_bytes is None else
            bytes_text(t.duration.dram_bytes),
        ),
        row(
            f"time on {gpu.name}",
            lambda t: t.duration.seconds if t.duration.model or not modelled else nan,
            lambda t: duration_text(t.duration),
        ),
        note("limited by", lambda t: limit_text(t.duration)),
        size(f"shared memory at most (limit {bytes_text(gpu.smem_bytes)})", lambda t: t.peak),
        size("written to HBM for each pair (N²)", lambda t: t.square),
        note("visits", lambda t: count_text(t.visits)),
        TableRow("largest error of O from float64",
                 tuple(_error_text(r.max_abs_error) if r else "not run" for r in found)),
        TableRow(f"seconds of the {engine}",
                 tuple(time_text(r.seconds) if r else "not run" for r in found)),
    )  # fmt: skip


def _error_text(error: float) -> str:
    return "NaN or ∞" if isnan(error) else f"{error:.1e}".replace("-", "−")


def heads(comparison: Comparison) -> list[Figure]:
    """Return the names of the columns."""
    names = [
        Figure(title(name), "current" if name == comparison.shown else "text")
        for name in comparison.programs
    ]
    return [Figure(""), *names]


def figures(row: TableRow) -> list[Figure]:
    """Return a row's cells: the least stands out, of the others is said how many times as much."""
    ranked = [amount for amount in row.amounts if not isnan(amount)]
    least, most = min(ranked, default=0), max(ranked, default=0)
    cells = [Figure(row.name, "muted")]
    for n, words in enumerate(row.texts):
        amount = row.amounts[n] if most > least else nan
        if amount <= least * SAME:
            cells.append(Figure(f"least   {words}", "good"))
        elif least and not isnan(amount):
            cells.append(Figure(f"{factor_text(amount / least)}   {words}"))
        else:
            cells.append(Figure(words))
    return cells
