"""The experiment that shows why scores are divided by √d, drawn while vectors are drawn."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from dataclasses import replace
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from PySide6.QtCore import QSizeF

from simulator.base.choices import one_of
from simulator.run.trace import Trace
from simulator.study.sqrt_d.choices import CAP, CHOICES, DRAW
from simulator.study.sqrt_d.experiment import (
    DIMS,
    DimPoint,
    Estimate,
    OneDraw,
    Softness,
    SqrtDResult,
    one_draw,
    sqrt_d_experiment,
)
from simulator.study.sqrt_d.soft_cap import CappedRow, capped_row
from simulator.study.sqrt_d.trained_scores import (
    Spread,
    TrainedScores,
    shipped_scores,
    trained_scores,
)
from ui.look.units import count_text, number_text, plural, tick_text
from ui.panels.study import Act, Chosen, Study
from ui.plots.model import Axis, Curve, Level, PlotMark, PlotModel
from ui.session.tasks import Report
from ui.session.view import View

Measured = Literal["variance", "entropy", "gradient"]
MEASURED: tuple[Measured, ...] = get_args(Measured)
Way = Literal["plain", "scaled"]

_TITLES: dict[Measured, str] = {
    "variance": "variance of the scores",
    "entropy": "entropy of the weights, bits",
    "gradient": "gradient: trace of the softmax's Jacobian",
}
_MEANS: dict[Way, Curve] = {
    "plain": Curve("q·k", "q·k", "S", (), ()),
    "scaled": Curve("q·k/√d", "q·k/√d", "P", (), (), "dash", "square"),
}
_MEDIANS: dict[Way, Curve] = {
    "plain": Curve("q·k, median", "q·k, median", "S", (), (), "dot", "diamond", 1.2),
    "scaled": Curve("q·k/√d, median", "q·k/√d, median", "P", (), (), "dot", "ring", 1.2),
}
_LEAST = 1e-3
_ROOM = 1.15
"""How far an axis goes above the line near its top, to leave room for words."""


def _of(softness: Softness | Spread, measured: Measured) -> Estimate:
    found: Estimate = getattr(softness, measured)
    return found


def _at(point: DimPoint, way: Way, measured: Measured) -> Estimate:
    return _of(point.plain if way == "plain" else point.scaled, measured)


def _estimate_text(estimate: Estimate, measured: Measured) -> str:
    """Return an estimate with its standard error: ``63.8 ± 0.5``."""
    error = "" if math.isinf(estimate.error) else f" ± {number_text(estimate.error, 3)}"
    unit = " bits" if measured == "entropy" else ""
    return f"{number_text(estimate.mean, 3)}{error}{unit}"


def verdict(found: SqrtDResult) -> str:
    """Return whether the variances are d, and 1 after the division, within sampling error."""
    known = [point for point in found.points if point.trials > 1]
    if not known:
        return "Too few queries yet to say how well the variance is known."
    plain = sum(p.plain.variance.agrees(p.d) for p in known)
    scaled = sum(p.scaled.variance.agrees(1) for p in known)
    if plain == scaled == len(known):
        at_all = f"At all {len(known)} d the variance of q·k is d and that of q·k/√d is 1"
        return f"{at_all}, within 3 standard errors."
    return (
        f"Within 3 standard errors the variance of q·k is d at {plain} of {len(known)} d, "
        f"that of q·k/√d is 1 at {scaled}."
    )


def _trend(found: SqrtDResult, measured: Measured) -> str:
    """Return how entropy or gradient changes as d grows."""
    if len(found.points) < 2:
        return f"Too few d yet to say what becomes of the {measured}."
    ends = found.points[0], found.points[-1]
    unit = " bits" if measured == "entropy" else ""
    plain, scaled = (
        " to ".join(number_text(_at(p, way, measured).mean, 2) for p in ends) for way in _MEANS
    )
    low, high = (count_text(point.d) for point in ends)
    return (
        f"From d = {low} to {high} the {measured} of softmax(q·k) goes from {plain}{unit}. "
        f"Of softmax(q·k/√d) it goes from {scaled}{unit}."
    )


def _state(found: SqrtDResult) -> str:
    """Return how many queries were drawn, or their share if the drawing is not complete."""
    if found.share < 1:
        return f"Seed {found.seed}, {round(100 * found.share)} % drawn."
    least = min(point.trials for point in found.points)
    return f"Seed {found.seed}, {least} queries of {found.keys} keys for each d."


def sqrt_d_plot(found: SqrtDResult, trained: TrainedScores | None, measured: Measured) -> PlotModel:
    """Return the plot of a result, also of one that is not finished."""
    varies = measured == "variance"
    most = math.log2(found.keys) if measured == "entropy" else 1 - 1 / found.keys
    across = float(min(DIMS)), float(max(DIMS))
    if varies:
        whole = tuple(map(float, DIMS))
        more = [Curve("= d", "= d", "muted", whole, whole, "dot", None, 1.2)]
        level, up = Level(1.0, "= 1", "= 1", "muted"), (0.4, 2.5 * across[1])
    else:  # mean and median of the variance are nearly the same
        more = [_medians(found, measured, way) for way in _MEDIANS if found.points]
        level, up = (
            Level(most, f"all {found.keys} keys alike", "all alike", "muted"),
            (0.0, _ROOM * most),
        )
    marks = () if trained is None else tuple(_trained_marks(trained, measured))
    said = [verdict(found) if varies else _trend(found, measured)]
    figures = [
        f"d = {point.d}: " + ", ".join(
            f"{curve.name} {_estimate_text(_at(point, way, measured), measured)}"
            for way, curve in _MEANS.items()
        )
        for point in found.points
    ]  # fmt: skip
    if trained is not None:
        short = [(mark, f"{mark.label.split()[-1]} {number_text(mark.y, 3)}") for mark in marks]
        missing = ", ".join(
            text
            for mark, text in short
            if not (across[0] <= mark.x <= across[1] and up[0] <= mark.y <= up[1])
        )
        said += [f"Outside the plot: {measured} of {trained.name}, {missing}."] if missing else []
        figures.append(f"{trained.name}, d = {trained.d}: {', '.join(text for _, text in short)}")
    note = " ".join([*said, _state(found)])
    return PlotModel(
        name=f"Why √d: {_TITLES[measured]} against d",
        x=Axis("head dimension d", count_text, log=True, base=2),
        y=Axis(_TITLES[measured], _tick, log=varies),
        curves=(*(c for way in _MEANS for c in _means(found, measured, way)), *more),
        marks=tuple(mark for mark in marks if math.isfinite(mark.y) and (mark.y > 0 or not varies)),
        levels=(level,),
        note=note,
        x_range=across,
        y_range=up,
        summary=" ".join((note, *(f"{each}." for each in figures))),
    )  # fmt: skip


def _means(found: SqrtDResult, measured: Measured, way: Way) -> Iterator[Curve]:
    """Yield the means, joined, and a bar for each error."""
    curve, least = _MEANS[way], _LEAST if measured == "variance" else -math.inf
    points = [(point, _at(point, way, measured)) for point in found.points]
    xs = tuple(float(point.d) for point, _ in points)
    ys = tuple(max(each.mean, least) for _, each in points)
    details = tuple(
        (
            f"d = {count_text(point.d)}, {curve.name}",
            f"{measured} {_estimate_text(each, measured)}",
            f"median {number_text(each.median, 3)}",
            f"{count_text(point.trials)} queries, {found.keys} keys each; ± one standard error",
        )
        for point, each in points
    )
    if xs:
        yield replace(curve, xs=xs, ys=ys, details=details)
    for x, y, (_, each) in zip(xs, ys, points, strict=True):
        if math.isfinite(each.error):
            ends = max(y - each.error, least), y + each.error
            yield Curve("", "", curve.role, (x, x), ends, "solid", None, 4.0)


def _medians(found: SqrtDResult, measured: Measured, way: Way) -> Curve:
    """Return the medians over the queries."""
    curve = _MEDIANS[way]
    ys = tuple(_at(point, way, measured).median for point in found.points)
    details = tuple(
        (
            f"d = {count_text(point.d)}, {curve.name}",
            f"half of {count_text(point.trials)} queries have less than {number_text(y, 3)}",
        )
        for point, y in zip(found.points, ys, strict=True)
    )
    xs = tuple(float(point.d) for point in found.points)
    return replace(curve, xs=xs, ys=ys, details=details)


def _trained_marks(trained: TrainedScores, measured: Measured) -> Iterator[PlotMark]:
    """Yield where the scores of a trained layer lie, undivided and as it uses them."""
    for spread, name, role in ((trained.plain, "q·k", "S"), (trained.scaled, "scaled", "P")):
        mean = _of(spread, measured)
        details = (
            f"{trained.name}: d = {trained.d}, {name}",
            f"{measured} {number_text(mean.mean, 3)}, median {number_text(mean.median, 3)}",
            f"{plural(trained.heads, 'head')}, {count_text(trained.rows)} rows of "
            f"{number_text(trained.keys, 1)} keys",
            f"scale {number_text(trained.scale, 4)}; the variance is about each row's mean",
        )
        label = f"trained {name}"
        yield PlotMark(trained.d, mean.mean, label, "trained", role, "star", 6.0, details)


_BAR = 0.36
"""Width of a bar, where keys are 1 apart."""


def draw_plot(draw: OneDraw) -> PlotModel:
    """Return the weights of one query as bars, with and without the division."""
    curves = []
    for (way, mean), aside in zip(_MEANS.items(), (-0.5, 0.5), strict=True):
        weights = draw.plain if way == "plain" else draw.scaled
        details = tuple(
            (
                f"key {place} by its score, {mean.name}",
                f"weight {number_text(p, 4)}",
                f"q·k = {number_text(score)}, q·k/√d = {number_text(score / math.sqrt(draw.d))}",
            )
            for place, (p, score) in enumerate(
                zip(weights.tolist(), draw.scores.tolist(), strict=True), 1
            )
        )
        xs = tuple(place + aside * _BAR for place in range(1, draw.keys + 1))
        bars = replace(
            mean, xs=xs, ys=tuple(weights.tolist()), dash="solid", details=details, bar=_BAR
        )
        curves.append(bars)
    top, rest, even = float(draw.plain[0]), float(draw.scaled[0]), 1 / draw.keys
    medians = (number_text(float(np.median(each)), 4) for each in (draw.plain, draw.scaled))
    note = (
        f"The strongest of {draw.keys} keys gets {number_text(top, 4)} of the weight, divided by "
        f"√d {number_text(rest, 4)}. Half of the keys get less than {' and '.join(medians)}, the "
        f"mean is {number_text(even, 4)}. Seed {draw.seed}, the first query at "
        f"d = {count_text(draw.d)}."
    )
    return PlotModel(
        name=f"Why √d: the weights of one query, d = {draw.d}",
        x=Axis("keys, by descending score", count_text, whole=True),
        y=Axis("weight", _tick),
        curves=tuple(curves),
        levels=(Level(even, "mean: 1 / keys", "mean", "muted"),),
        note=note,
        x_range=(0.4, draw.keys + 0.6),
        y_range=(0.0, 1.05 * max(top, rest)),
        summary=note,
    )


_BENDS = 1.5
"""Least range of scores on show, in caps: there a capped score has left the straight line."""


def cap_plot(found: CappedRow) -> PlotModel:
    """Return the curve of a soft-cap, with the scores of a row on it."""
    w, cap = found.workload, found.cap
    far = max(_BENDS * cap, *(abs(s) for s in found.before.tolist()), 0.0)
    xs = np.linspace(-far, far, 121)
    curve = Curve(
        "c · tanh(s / c)", "tanh", "S", tuple(xs.tolist()),
        tuple((cap * np.tanh(xs / cap)).tolist()), "solid", None,
    )  # fmt: skip
    ends = (-_BENDS * cap, _BENDS * cap)
    straight = Curve("without a cap", "no cap", "muted", ends, ends, "dot", None, 1.2)
    c = f"{cap:g}"
    levels = (Level(cap, f"c = {c}", f"{c}", "current"),)
    marks, row = [], f"row {count_text(found.row)}"
    largest = max(found.before.tolist(), default=0.0)
    for key, was, now in zip(found.keys, found.before.tolist(), found.after.tolist(), strict=True):
        name = w.key_token(key)
        details = (
            f"key {count_text(key)}{f' “{name}”' * bool(name)}",
            f"score {number_text(was)}, with the cap {number_text(now)}",
        )
        label = (f"scores of {row}", row) if was == largest else ("", "")
        marks.append(PlotMark(was, now, *label, "P", "circle", 3.0, details))
    note = _cap_words(found, c)
    return PlotModel(
        name=f"A soft-cap of {c}: scores of {row} before and after",
        x=Axis("score s: q·k, scaled", _tick),
        y=Axis("score with the cap", _tick),
        curves=(curve, straight),
        marks=tuple(marks),
        levels=levels,
        note=note,
        x_range=(-far, far),
        y_range=ends,
        summary=note,
    )


def _cap_words(found: CappedRow, c: str) -> str:
    """Return the effect of the cap on the largest and smallest score of the row."""
    supposed = "" if found.own else f" This run has no cap; {c} is the cap of Gemma 2."
    row = f"row {count_text(found.row)}"
    if not found.keys:
        return f"{row[0].upper()}{row[1:]} sees no key.{supposed}"
    was, now = (
        " to ".join(number_text(float(end), 1) for end in (each.min(), each.max()))
        for each in (found.before, found.after)
    )
    return f"Scores of {row} go from {was}, with the cap from {now}.{supposed}"


def _tick(value: float) -> str:
    return count_text(value) if value >= 1000 else tick_text(value)


class SqrtDState(NamedTuple):
    """The result of random vectors so far, and the scores of a trained layer."""

    result: SqrtDResult
    trained: TrainedScores | None


class SqrtD(Study[SqrtDState | CappedRow, PlotModel]):
    """Variance, entropy and gradient against d; a trained layer and the soft-cap are the run's."""

    name, title, doing, choices = "sqrt_d", "Why √d", "random vectors", CHOICES
    room = QSizeF(320, 230)
    acts = (
        Act("again", "Draw again", "Draw the same vectors again, from the first one.", anew=True),
    )

    def __init__(self) -> None:
        self._whole: dict[Hashable, SqrtDResult] = {}

    def forget(self) -> None:
        self._whole.clear()

    def hidden(self, trace: Trace, chosen: Chosen) -> frozenset[str]:
        if chosen["quantity"] == CAP:
            return frozenset({"d", "keys", "seed", "again"})
        return frozenset() if chosen["quantity"] == DRAW else frozenset({"d"})

    def needs(self, trace: Trace, view: View, chosen: Chosen) -> Hashable:
        if chosen["quantity"] == CAP:
            return CAP, *trace.workload.single(view.snapshot.visit.head, view.report.row)
        return int(chosen["seed"]), int(chosen["keys"])

    def results(self, trace: Trace, needs: Any, report: Report) -> Iterator[SqrtDState | CappedRow]:
        w, inputs = trace.single_heads
        if needs[0] == CAP:
            yield capped_row(w, inputs, *needs[1:])
            return
        trained = shipped_scores() if w.file is None else trained_scores(w, inputs)
        if needs not in self._whole:
            seed, keys = needs
            for result in sqrt_d_experiment(seed, keys=keys):
                report(result.share)
                yield SqrtDState(result, trained)
            self._whole[needs] = result
        yield SqrtDState(self._whole[needs], trained)

    def state(
        self, found: SqrtDState | CappedRow, chosen: Chosen, before: PlotModel | None, changed: str
    ) -> PlotModel:
        if isinstance(found, CappedRow):
            return cap_plot(found)
        if chosen["quantity"] == DRAW:
            return draw_plot(one_draw(found.result.seed, int(chosen["d"]), found.result.keys))
        return sqrt_d_plot(*found, one_of(MEASURED, chosen["quantity"]))

    def plot(self, state: PlotModel) -> PlotModel:
        return state


SQRT_D = SqrtD()
