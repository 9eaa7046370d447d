"""The plot of the √d experiment: variance, entropy and gradient against d, with their errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np

from simulator.study.sqrt_d.experiment import (
    DIMS,
    DimPoint,
    Estimate,
    OneDraw,
    Softness,
    SqrtDResult,
)
from simulator.study.sqrt_d.trained_scores import Spread, TrainedScores
from ui.look.units import count_text, number_text, plural, tick_text
from ui.plots.model import Axis, Curve, Dash, Level, Marker, PlotMark, PlotModel

Measured = Literal["variance", "entropy", "gradient"]
MEASURED: tuple[Measured, ...] = get_args(Measured)

_TITLES: dict[str, str] = {
    "variance": "variance of the scores",
    "entropy": "entropy of the weights",
    "gradient": "gradient: trace of the softmax's Jacobian",
}
_LEAST = 1e-3
_ROOM = 1.15
"""How far an axis goes above the line near its top, above which there are words."""


def estimate_of(softness: Softness | Spread, measured: Measured) -> Estimate:
    """Return one of the three estimates."""
    out: Estimate = getattr(softness, measured)
    return out


def estimate_text(estimate: Estimate, measured: Measured) -> str:
    """Return an estimate with its standard error: ``63.8 ± 0.5``."""
    unit = " bits" if measured == "entropy" else ""
    if math.isinf(estimate.error):
        return f"{number_text(estimate.mean, 3)}{unit}"
    return f"{number_text(estimate.mean, 3)} ± {number_text(estimate.error, 3)}{unit}"


def verdict(found: SqrtDResult) -> str:
    """Return whether the variances are d, and 1 after the division, within sampling error."""
    known = [point for point in found.points if point.trials > 1]
    if not known:
        return "too few queries yet to say how well the variance is known"
    plain = [p.d for p in known if p.plain.variance.agrees(p.d)]
    scaled = [p.d for p in known if p.scaled.variance.agrees(1)]
    if len(plain) == len(scaled) == len(known):
        return (
            f"at all {len(known)} d the variance of q·k is d and that of q·k/√d is 1, within 3 "
            "standard errors"
        )
    return (
        f"within 3 standard errors the variance of q·k is d at {len(plain)} of {len(known)} d, "
        f"that of q·k/√d is 1 at {len(scaled)}"
    )


def trend(found: SqrtDResult, measured: Measured) -> str:
    """Return how entropy or gradient changes as d grows."""
    if len(found.points) < 2:
        return f"too few d yet to say what becomes of the {measured}"
    ends = found.points[0], found.points[-1]

    def change(which: str) -> str:
        return " to ".join(number_text(_of(point, which, measured).mean, 2) for point in ends)

    unit = " bits" if measured == "entropy" else ""
    low, high = (count_text(point.d) for point in ends)
    return (
        f"from d = {low} to {high} the {measured} of softmax(q·k) "
        f"goes from {change('plain')}{unit}, that of softmax(q·k/√d) from {change('scaled')}{unit}"
    )


def sqrt_d_plot(
    found: SqrtDResult, measured: Measured, state: str, trained: TrainedScores | None = None
) -> PlotModel:
    """Return the plot of a result, also of one that is not finished.

    Parameters
    ----------
    measured : str
        ``variance``, ``entropy`` or ``gradient``.
    """
    title = _TITLES[measured] + (", bits" if measured == "entropy" else "")
    y = Axis(title, _tick, log=measured == "variance")
    x = Axis("head dimension d", lambda value: count_text(round(value)), log=True, base=2)
    curves = [
        *_curves(found, measured, "plain", "q·k", "S", "solid", "circle"),
        *_curves(found, measured, "scaled", "q·k/√d", "P", "dash", "square"),
    ]
    if found.points and measured != "variance":  # there mean and median are nearly the same
        curves += [
            _medians(found, measured, "plain", "q·k, median", "S", "diamond"),
            _medians(found, measured, "scaled", "q·k/√d, median", "P", "ring"),
        ]
    levels: list[Level] = []
    ends = (0.4, 2.5 * max(DIMS)) if measured == "variance" else (0.0, _ROOM)
    if measured == "variance":
        whole = tuple(float(d) for d in DIMS)
        curves.append(Curve("= d", "= d", "muted", whole, whole, "dot", None, 1.2))
        levels.append(Level(1.0, "= 1", "= 1", "muted"))
    elif measured == "entropy":
        most = math.log2(found.keys)
        levels.append(Level(most, f"all {found.keys} keys alike", "all alike", "muted"))
        ends = (0.0, _ROOM * most)
    else:
        most = 1 - 1 / found.keys
        levels.append(Level(most, f"all {found.keys} keys alike", "all alike", "muted"))
    said = verdict(found) if measured == "variance" else trend(found, measured)
    across = float(min(DIMS)), float(max(DIMS))
    marks = () if trained is None else _trained_marks(trained, measured)
    note = f"{_outside(trained, measured, marks, across, ends)}{state}: {said}."
    return PlotModel(
        name=f"Why √d: {_TITLES[measured]} against d",
        x=x,
        y=y,
        curves=tuple(curves),
        marks=tuple(mark for mark in marks if math.isfinite(mark.y) and (mark.y > 0 or not y.log)),
        levels=tuple(levels),
        note=note,
        x_range=across,
        y_range=ends,
        summary=f"{note} {_summary(found, measured)}{_trained_words(trained, measured)}",
    )


def _medians(
    found: SqrtDResult, measured: Measured, which: str, name: str, role: str, marker: Marker
) -> Curve:
    """Return the medians over the queries: half of them have less."""
    xs = tuple(float(point.d) for point in found.points)
    ys = tuple(_of(point, which, measured).median for point in found.points)
    details = tuple(
        (
            f"d = {count_text(point.d)}, {name}",
            f"half of {count_text(point.trials)} queries have less than {number_text(y, 3)}",
        )
        for point, y in zip(found.points, ys, strict=True)
    )
    return Curve(name, name, role, xs, ys, "dot", marker, 1.2, details)


def _trained_marks(trained: TrainedScores, measured: Measured) -> tuple[PlotMark, ...]:
    """Return where the scores of a trained layer lie, undivided and as it uses them."""
    marks = []
    for spread, name, role in ((trained.plain, "q·k", "S"), (trained.scaled, "scaled", "P")):
        mean = estimate_of(spread, measured)
        details = (
            f"{trained.name}: d = {trained.d}, {name}",
            f"{measured} {number_text(mean.mean, 3)}, median {number_text(mean.median, 3)}",
            f"{plural(trained.heads, 'head')}, {count_text(trained.rows)} rows of "
            f"{number_text(trained.keys, 1)} keys",
            f"scale {number_text(trained.scale, 4)}; the variance is about each row's mean",
        )
        marks.append(
            PlotMark(trained.d, mean.mean, f"trained {name}", "trained", role, "star", 6.0, details)
        )
    return tuple(marks)


def _outside(
    trained: TrainedScores | None, measured: Measured, marks: Sequence[PlotMark],
    across: tuple[float, float], up: tuple[float, float],
) -> str:  # fmt: skip
    """Return which scores of a trained layer are outside the plot; 0 has no place in it."""
    missing = ", ".join(
        f"{mark.label.removeprefix('trained ')} {number_text(mark.y, 3)}"
        for mark in marks
        if not (across[0] <= mark.x <= across[1] and up[0] <= mark.y <= up[1])
    )
    if trained is None or not missing:
        return ""
    return f"Outside the plot: {measured} of {trained.name}, {missing}. "


def _trained_words(trained: TrainedScores | None, measured: Measured) -> str:
    if trained is None:
        return ""
    plain, scaled = (estimate_of(s, measured).mean for s in (trained.plain, trained.scaled))
    return (
        f" {trained.name}, d = {trained.d}: q·k {number_text(plain, 3)}, scaled "
        f"{number_text(scaled, 3)}."
    )


_BAR = 0.36
"""Width of a bar, where keys are 1 apart."""


def draw_plot(draw: OneDraw) -> PlotModel:
    """Return the weights of one query as bars, with and without the division."""
    places = range(1, draw.keys + 1)
    curves = []
    for weights, name, role, marker, aside in (
        (draw.plain, "q·k", "S", "circle", -0.5), (draw.scaled, "q·k/√d", "P", "square", 0.5),
    ):  # fmt: skip
        mark: Marker = "circle" if marker == "circle" else "square"
        details = tuple(
            (
                f"key {place} by its score, {name}",
                f"weight {number_text(float(p), 4)}",
                f"q·k = {number_text(float(score))}, q·k/√d = "
                f"{number_text(float(score) / math.sqrt(draw.d))}",
            )
            for place, p, score in zip(places, weights, draw.scores, strict=True)
        )
        xs = tuple(place + aside * _BAR for place in places)
        ys = tuple(float(p) for p in weights)
        curves.append(Curve(name, name, role, xs, ys, "solid", mark, details=details, bar=_BAR))
    top, rest = float(draw.plain[0]), float(draw.scaled[0])
    even = 1 / draw.keys
    note = (
        f"Seed {draw.seed}, the first query at d = {count_text(draw.d)}: its strongest of "
        f"{draw.keys} keys gets {number_text(top, 4)} of the weight, divided by √d "
        f"{number_text(rest, 4)}; half of the keys get less than "
        f"{number_text(float(np.median(draw.plain)), 4)} and "
        f"{number_text(float(np.median(draw.scaled)), 4)}, the mean is {number_text(even, 4)}."
    )
    return PlotModel(
        name=f"Why √d: the weights of one query, d = {draw.d}",
        x=Axis("keys, by descending score", lambda value: count_text(round(value)), whole=True),
        y=Axis("weight", _tick),
        curves=tuple(curves),
        levels=(Level(even, "mean: 1 / keys", "mean", "muted"),),
        note=note,
        x_range=(0.4, draw.keys + 0.6),
        y_range=(0.0, 1.05 * max(top, rest)),
        summary=note,
    )


def _curves(
    found: SqrtDResult, measured: Measured, which: str, name: str, role: str, dash: Dash,
    marker: Marker,
) -> list[Curve]:  # fmt: skip
    """Return the means, joined, and an error bar for each."""
    points = [(point, _of(point, which, measured)) for point in found.points]
    xs = tuple(float(point.d) for point, _ in points)
    ys = tuple(max(e.mean, _LEAST) if measured == "variance" else e.mean for _, e in points)
    details = tuple(
        (
            f"d = {count_text(point.d)}, {name}",
            f"{measured} {estimate_text(e, measured)}",
            f"median {number_text(e.median, 3)}",
            f"{count_text(point.trials)} queries, {found.keys} keys each; ± one standard error",
        )
        for point, e in points
    )
    out = [Curve(name, name, role, xs, ys, dash, marker, details=details)] if xs else []
    for x, y, (_, e) in zip(xs, ys, points, strict=True):
        if math.isfinite(e.error):
            low = max(y - e.error, _LEAST) if measured == "variance" else y - e.error
            out.append(Curve("", "", role, (x, x), (low, y + e.error), "solid", None, 4.0))
    return out


def _tick(value: float) -> str:
    if value >= 1000:
        return count_text(round(value))
    return tick_text(value)


def _of(point: DimPoint, which: str, measured: Measured) -> Estimate:
    return estimate_of(point.plain if which == "plain" else point.scaled, measured)


def _summary(found: SqrtDResult, measured: Measured) -> str:
    return " ".join(
        f"d = {point.d}: q·k {estimate_text(_of(point, 'plain', measured), measured)}, "
        f"q·k/√d {estimate_text(_of(point, 'scaled', measured), measured)}."
        for point in found.points
    )
