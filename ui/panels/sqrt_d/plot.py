"""The plot of the √d experiment: variance, entropy and gradient against d, with their errors."""

from __future__ import annotations

import math
from typing import Literal, get_args

from simulator.study.sqrt_d import DIMS, DimPoint, Estimate, Softness, SqrtDResult
from ui.look.units import count_text, number_text
from ui.plots.model import Axis, Curve, Dash, Level, Marker, PlotModel

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


def estimate_of(softness: Softness, measured: Measured) -> Estimate:
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


def sqrt_d_plot(found: SqrtDResult, measured: Measured, state: str) -> PlotModel:
    """Return the plot of a result, also of one that is not finished.

    Parameters
    ----------
    found : SqrtDResult
        The results of the experiment so far.
    measured : str
        ``variance``, ``entropy`` or ``gradient``.
    state : str
        Its progress, in words.
    """
    title = _TITLES[measured] + (", bits" if measured == "entropy" else "")
    y = Axis(title, _tick, log=measured == "variance")
    x = Axis("head dimension d", lambda value: count_text(round(value)), log=True, base=2)
    curves = [
        *_curves(found, measured, "plain", "q·k", "S", "solid", "circle"),
        *_curves(found, measured, "scaled", "q·k/√d", "P", "dash", "square"),
    ]
    levels: list[Level] = []
    ends = {"variance": (0.4, 2.5 * max(DIMS)), "gradient": (0.0, _ROOM)}.get(measured)
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
    note = f"{state}: {said}."
    return PlotModel(
        name=f"Why √d: {_TITLES[measured]} against d",
        x=x,
        y=y,
        curves=tuple(curves),
        levels=tuple(levels),
        note=note,
        x_range=(float(min(DIMS)), float(max(DIMS))),
        y_range=ends,
        summary=f"{note} {_summary(found, measured)}",
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
    return f"{value:.6g}".replace("-", "−")


def _of(point: DimPoint, which: str, measured: Measured) -> Estimate:
    return estimate_of(point.plain if which == "plain" else point.scaled, measured)


def _summary(found: SqrtDResult, measured: Measured) -> str:
    return " ".join(
        f"d = {point.d}: q·k {estimate_text(_of(point, 'plain', measured), measured)}, "
        f"q·k/√d {estimate_text(_of(point, 'scaled', measured), measured)}."
        for point in found.points
    )
