"""Sweeps as plots: a curve for each algorithm, or a map over the tile sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from simulator.problem.hardware import LAUNCH_SECONDS
from simulator.problem.workload import Workload
from simulator.program.algorithms import ALGORITHMS
from simulator.study.sweep import Axis as SweepAxis
from simulator.study.sweep import Figures, Sweep, TilingMap, tiles_of
from simulator.timing.duration import Duration
from ui.look.curves import LOOKS
from ui.look.durations import MODEL, duration_text, limit_text
from ui.look.run_words import pattern_words
from ui.look.units import (
    LAUNCH,
    bound_text,
    bytes_text,
    count_text,
    estimate_text,
    flops_text,
    launch_words,
    plural,
    queries_text,
    time_text,
)
from ui.plots.model import Axis, Curve, HeatMap, Level, PlotMark, PlotModel, Words

Quantity = Literal["bytes", "held", "flops", "time", "shared"]
QUANTITIES: tuple[Quantity, ...] = get_args(Quantity)

AXIS_TITLES: dict[SweepAxis, str] = {
    "N": "N, tokens",
    "Br": "Br, query rows of a tile",
    "Bc": "Bc, keys of a tile",
    "d": "d, head dimension",
}
_RULES = {"paper": "paper", "fa2": "FA-2", "fa3": "FA-3"}
_RULE_WORDS = {
    "paper": "Dao et al. 2022, Algorithm 1, line 1: Bc = ⌈M/4d⌉, Br = min(Bc, d)",
    "fa2": "as flash-attention ships for FlashAttention-2",
    "fa3": "as flash-attention ships for FlashAttention-3: Hopper, 16 bit",
}


@dataclass(frozen=True, slots=True)
class CurvePick:
    """A point of a curve."""

    algorithm: str  # of the curve
    value: int  # place along the axis


@dataclass(frozen=True, slots=True)
class _Measure:
    """One quantity: title, words, the base of its ticks."""

    title: str
    text: Words
    base: int
    role: str


_MEASURES: dict[Quantity, _Measure] = {
    "bytes": _Measure("Requested bytes", bytes_text, 2, "hbm_line"),
    "held": _Measure("Held in HBM", bytes_text, 2, "hbm_line"),
    "flops": _Measure("Matmul FLOPs", flops_text, 10, "S"),
    "time": _Measure("Least time by the data sheet", time_text, 10, "l"),
    "shared": _Measure("Shared memory of a block", bytes_text, 2, "sram_line"),
}

_BY_MODEL = _Measure("Time by model", time_text, 10, "l")


def amount(figures: Figures, quantity: Quantity) -> float:
    """Return one quantity of some figures, in bytes, FLOPs or seconds."""
    value: float = getattr(figures, "seconds" if quantity == "time" else quantity)
    return value


def figure_lines(
    heading: str, figures: Figures, w: Workload, duration: Duration | None = None
) -> tuple[str, ...]:
    """Return all figures in words, the first line a heading.

    duration: the time by model; without it, the least time by the data sheet is said.
    """
    limit = w.gpu.smem_bytes
    room = f"{'over' if figures.shared > limit else 'of'} the {bytes_text(limit)} of a block"
    bound = "" if figures.time.compute is None else f", {bound_text(figures.time)}"
    spent = f"{estimate_text(figures.seconds, w.gpu.name)}{bound}"
    if duration is not None:
        spent = f"{duration_text(duration)} on {w.gpu.name}: limited by {limit_text(duration)}"
    return (
        heading,
        f"requested {_exact(figures.bytes)}",
        f"read {bytes_text(figures.read)}, written {bytes_text(figures.write)}",
        f"minimum {_exact(figures.compulsory)}",
        f"held in HBM {_exact(figures.held)}",
        f"{count_text(figures.flops)} FLOPs",
        spent,
        f"shared memory {bytes_text(figures.shared)}, {room}",
    )


def _exact(count: int) -> str:
    short = bytes_text(count)
    return short if count < 1024 else f"{short} = {count_text(count)} B"


def _title(name: str) -> str:
    return ALGORITHMS[name].title


def sweep_plot(found: Sweep, w: Workload, quantity: Quantity) -> PlotModel:
    """Return a sweep's curves; a click on a point makes it the scenario, unless a file fixes it."""
    axis, here = found.axis, found.values.index(found.here)
    modelled = quantity == "time" and bool(found.durations)
    measure = _BY_MODEL if modelled else _MEASURES[quantity]
    fixed = w.file is not None and axis not in ("Br", "Bc")
    last = "click: make it the scenario"
    if w.file is not None and fixed:
        last = f"{axis} is that of {w.file.path.name}"
    curves = []
    for name, figures in found.figures.items():
        (_, dash, marker), title = LOOKS[name], _title(name)
        times = found.durations.get(name) or (None,) * len(figures)
        details = tuple(
            (*figure_lines(f"{title}, {axis} = {count_text(value)}", each, w, time), last)
            for value, each, time in zip(found.values, figures, times, strict=True)
        )
        ys = tuple(
            time.seconds if modelled and time else float(amount(each, quantity))
            for each, time in zip(figures, times, strict=True)
        )
        picks = () if fixed else tuple(CurvePick(name, value) for value in found.values)
        xs, width = tuple(map(float, found.values)), 2.6 if name == w.algorithm else 1.7
        curves.append(Curve(title, name, name, xs, ys, dash, marker, width, details, picks))
    own, at = found.figures[w.algorithm][here], f"{axis} = {count_text(found.here)}"
    spent = found.durations[w.algorithm][here] if found.durations else None
    y = spent.seconds if modelled and spent else amount(own, quantity)
    lines = figure_lines(f"this scenario: {_title(w.algorithm)}, {at}", own, w, spent)
    text = measure.text(y)
    mark = PlotMark(found.here, y, f"{at}: {text}", text, "current", "star", 6.0, lines)
    levels = (_limit(w),) if quantity == "shared" else ()
    if quantity == "time" and min(y for curve in curves for y in curve.ys) < LAUNCH_SECONDS:
        words = f"a launch: some {LAUNCH}", f"a launch: {LAUNCH}"
        levels = (Level(LAUNCH_SECONDS, *words, "muted"),)
    by_bytes = quantity == "time" and not modelled and w.dtype == "float32"
    y_title = f"{measure.title}, bytes alone" if by_bytes else measure.title
    note = _note(w, axis) + (" No float32 rate in the presets." if by_bytes else "")
    if modelled:
        note = f"{note} {MODEL}"
    elif quantity == "time":
        note = f"{note} {found.why}".rstrip()
    said = ". ".join(f"{each.name} at {at}: {measure.text(each.ys[here])}" for each in curves)
    return PlotModel(
        name=f"{measure.title} over {AXIS_TITLES[axis]}",
        x=Axis(AXIS_TITLES[axis], count_text, log=True, base=2, whole=True),
        y=Axis(y_title, measure.text, log=True, base=measure.base),
        curves=tuple(curves),
        marks=(mark,),
        levels=levels,
        note=note,
        summary=f"{note} {said}.",
    )


def map_plot(found: TilingMap, w: Workload, quantity: Quantity) -> PlotModel:
    """Return a map over tile sizes of a workload with the algorithm of the map."""
    measure = _MEASURES[quantity]
    values = np.array([[amount(f, quantity) for f in row] for row in found.figures], float)
    beyond = np.array([[f.shared > found.limit for f in row] for row in found.figures])
    for array in (values, beyond):
        array.flags.writeable = False
    limit = bytes_text(found.limit)
    heat = HeatMap(
        xs=tuple(float(c) for c in found.cols),
        ys=tuple(float(r) for r in found.rows),
        values=values,
        title=measure.title,
        text=measure.text,
        base=measure.base,
        role=measure.role,
        beyond=beyond,
        beyond_label=f"hatched: over {limit} a block",
        beyond_short=f"over {limit}",
        details=lambda row, column: (
            *figure_lines(
                f"{_title(found.algorithm)}, {_tiles(found.rows[row], found.cols[column])} tiles",
                found.figures[row][column],
                w,
            ),
            "click: make it the scenario",
        ),
    )
    marks, off = _choice_marks(found, w, heat)
    said = [_note(w, None), *([f"Off the map: {', '.join(off)}."] if off else [])]
    if quantity == "time" and (launch := launch_words(values.min())):
        said.append(launch)
    if quantity == "time":
        said.append(NO_MAP)
    note, here = " ".join(said), found.here_figures
    rules = [
        f"{_RULES[c.rule]} {_tiles(c.rows, c.cols)}: {measure.text(amount(c.figures, quantity))}"
        for c in found.choices
    ]
    own = (
        f"{_tiles(*found.here)}: {measure.text(amount(here, quantity))}, "
        f"{bytes_text(here.shared)} of shared memory; a block may take {limit}"
    )
    return PlotModel(
        name=f"{measure.title} of {_title(found.algorithm)} over Br and Bc",
        x=Axis(AXIS_TITLES["Bc"], count_text, base=2, whole=True),
        y=Axis(AXIS_TITLES["Br"], count_text, base=2, whole=True),
        marks=marks,
        heat=heat,
        note=note,
        summary=f"{note} {'. '.join([own, *rules])}.",
    )


def _tiles(rows: int, cols: int) -> str:
    return f"{count_text(rows)} × {count_text(cols)}"


def _choice_marks(
    found: TilingMap, w: Workload, heat: HeatMap
) -> tuple[tuple[PlotMark, ...], tuple[str, ...]]:
    """Return the marks of this scenario and of published rules, and words for marks outside."""
    names: dict[tuple[int, int], list[str]] = {found.here: ["here"]}
    figures = {found.here: found.here_figures}
    whose: dict[tuple[int, int], list[str]] = {found.here: ["this scenario"]}
    for choice in found.choices:
        tiles = (choice.rows, choice.cols)
        names.setdefault(tiles, []).append(_RULES[choice.rule])
        whose.setdefault(tiles, []).append(_RULE_WORDS[choice.rule])
        figures[tiles] = choice.figures
    marks, off = [], []
    for n, (tiles, said) in enumerate(names.items()):
        rows, cols = tiles
        joined = ", ".join(said)
        if heat.cell_at(cols, rows) is None:
            off.append(f"{joined} {_tiles(*tiles)}")
            continue
        heading = f"{_tiles(*tiles)}: {joined}"
        lines = figure_lines(heading, figures[tiles], w)
        own = n == 0
        marks.append(
            PlotMark(
                cols, rows, f"{joined} {_tiles(*tiles)}", joined,
                "current" if own else "text", "star" if own else "diamond", 6.0 if own else 4.5,
                (lines[0], *whose[tiles], *lines[1:]), None if own else (rows, cols),
            )
        )  # fmt: skip
    return tuple(marks), tuple(off)


def _limit(w: Workload) -> Level:
    size = bytes_text(w.gpu.smem_bytes)
    return Level(w.gpu.smem_bytes, f"{w.gpu.name}: {size} a block", size, "bad")


NO_MAP = "Too many tilings for the model: the least that the data sheet allows."
"""Why a map has no times by model."""
ONE_LENGTH = "The mask is of this N alone"
"""Why a scenario with documents or blocks is not shown at other lengths."""


def _note(w: Workload, axis: SweepAxis | None) -> str:
    """Return the words for everything else."""
    parts = []
    if w.queries != w.seqlen_k:
        parts.append(queries_text(w.queries))
    if axis != "N" or parts:
        parts.append("N keys" if axis == "N" else f"N = {count_text(w.seqlen_k)}")
    if axis != "d":
        parts.append(f"d = {w.head_dim}")
    if axis == "d" and w.scenario.tiling.rows is None:
        parts.append(f"tiles by rule {w.scenario.tiling.rule or 'fa2'}")
    elif axis is not None:
        sizes = zip(("Br", "Bc"), tiles_of(w), strict=True)
        parts.append(
            " × ".join(n if n == axis else count_text(size) for n, size in sizes) + " tiles"
        )
    parts += [w.dtype, _mask(w), plural(len(w.picked), "head"), w.gpu.name]
    return ", ".join(parts) + (
        f". {ONE_LENGTH}." if axis == "N" and w.mask.of_these_lengths else "."
    )


def _mask(w: Workload) -> str:
    mask = w.mask
    words = [*(["causal"] if mask.causal else []), *(said for said, _ in pattern_words(mask))]
    return " + ".join(words) or "no mask"
