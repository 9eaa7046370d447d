"""The plots of kernel smoothing: keys in two dimensions, regression, attention again and again."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from simulator.base.matmul import matmul
from simulator.study.smoothing.regression import BANDWIDTHS, EXAMPLES, Regression
from simulator.study.smoothing.repeated import RANKED, TIMES
from ui.look.names import key_name, row_name
from ui.look.units import count_text, number_text, tick_text
from ui.panels.smoothing.state import COUNTS, DRAWS, HOT, SmoothingState
from ui.plots.model import Axis, Curve, Level, PlotMark, PlotModel

_LABELLED = 6
"""Most keys that are named: the keys with most weight."""
_LEAST_LABELLED = 0.02
_MOST_QUERIES, _MOST_PATH = 96, 32
"""Rows up to which all queries, and the path of the means, are drawn."""
_FLOOR = 1e-12
"""Spreads below this are rounding."""


def size_of(vector: NDArray[np.float64]) -> float:
    """Return the length of a vector."""
    return float(np.linalg.norm(vector))


def keys_plot(state: SmoothingState) -> PlotModel:
    """Return keys, query and blend of a row in the plane in which the keys spread most."""
    points, plane, at, moved = state.points, state.plane, state.at, state.moved
    weights = points.weights[at] if moved is None else moved.weights
    x, y = plane.queries[at] if moved is None else moved.place
    q = points.q[at] + matmul(np.array((x, y)) - plane.queries[at], plane.axes)
    whose = f"query of {row_name(state.workload, state.row)}" + (
        ", moved" if moved is not None else ""
    )
    marks = [
        PlotMark(float(x), float(y), whose, "query", "Q", "star", 7.0,
             (f"{whose}, {state.head_name}", f"|q| = {number_text(size_of(q))}",
              "drag it, or use the arrow keys"), moves=True),
    ]  # fmt: skip
    bx, by = plane.blends[at] if moved is None else moved.blend
    if points.seen[at].any():
        marks.append(
            PlotMark(float(bx), float(by), "mean of the keys by weight", "blend", "O", "diamond",
                 6.0,
                 ("the mean of the keys under the weights",
                  "it moves with the query; V in place of K gives the output"))
        )  # fmt: skip
    strongest = [n for n in np.argsort(-weights, kind="stable")[:_LABELLED]
                 if weights[n] >= _LEAST_LABELLED]  # fmt: skip
    for n in np.argsort(-weights, kind="stable").tolist():
        p, (kx, ky) = float(weights[n]), plane.keys[n]
        seen = bool(points.seen[at, n])
        far = size_of(q - points.k[n])
        label = f"{state.key_label(n)}: {number_text(p, 2)}" if n in strongest else ""
        lines: tuple[str, ...] = (
            key_name(state.workload, state.points.keys[n]),
            f"weight {number_text(p, 4)}" if seen else "hidden by the mask",
            f"|q − k| = {number_text(far)}, |k| = {number_text(size_of(points.k[n]))}",
        )
        role = "K" if seen else "faint"
        size = 2.0 + 12.0 * math.sqrt(p)
        marks.append(PlotMark(float(kx), float(ky), label, label, role, "circle", size, lines))
    curves = []
    if len(points.rows) <= _MOST_QUERIES:
        for n, row in enumerate(points.rows):
            if n != at or moved is not None:
                qx, qy = plane.queries[n]
                lines = (f"query of {row_name(state.workload, row)}", "click: explain this row")
                marks.append(
                    PlotMark(float(qx), float(qy), "", "", "Q", "cross", 3.0, lines, pick=row)
                )
        seeing = np.asarray(points.seen.any(axis=1))
        path = plane.blends[seeing]
        if 1 < len(path) <= _MOST_PATH:
            names = [row_name(state.workload, points.rows[n]) for n in np.flatnonzero(seeing)]
            curves.append(
                Curve("means, row by row", "means", "O", tuple(path[:, 0].tolist()),
                      tuple(path[:, 1].tolist()), "dot", "ring", 1.0,
                      tuple((f"mean of the keys of {name}",) for name in names))
            )  # fmt: skip
    share, (first, second) = plane.share, plane.shares
    grey = "" if points.seen[at].all() else ", grey ones are hidden"
    others = ""
    if len(marks) > len(points.keys) + 2:
        invites = "; click another query (×) or drag this one"
        others = invites if state.moves else ", × are the other queries"
    note = (
        f"{state.head_name}: the axes hold {100 * share:.0f} % of the keys' variance; weights and "
        f"distances are of all {points.k.shape[1]} dimensions. A key is as large as its weight"
        f"{grey}{others}.{state.part_words}"
    )
    places = np.concatenate(
        [plane.keys, plane.queries if len(points.rows) <= _MOST_QUERIES else plane.queries[[at]]]
    )
    low, high = places.min(axis=0).tolist(), places.max(axis=0).tolist()
    top = int(weights.argmax())
    name = key_name(state.workload, state.points.keys[top])
    said = f"{name} has most, {number_text(float(weights[top]))}"
    return PlotModel(
        name=f"Keys of {state.head_name} in two dimensions",
        x=Axis(f"first component, {100 * first:.0f} %", tick_text),
        y=Axis(f"second component, {100 * second:.0f} %", tick_text),
        curves=tuple(curves),
        marks=tuple(marks),
        note=note,
        x_range=(low[0], high[0]),
        y_range=(low[1], high[1]),
        summary=f"{note} Of {row_name(state.workload, state.row)} {said}.",
    )


def again_plot(state: SmoothingState) -> PlotModel:
    """Return how far rows still differ after attention was done n times."""
    again = state.again
    x = Axis("times that attention is done", count_text, whole=True)
    y = Axis("relative to before the first time", tick_text, log=True)
    if again is None:
        note = f"It cannot be done again. {_begun(state.why)}."
        return PlotModel("Attention again and again", x, y, note=note, x_range=(0, TIMES),
                         y_range=(_FLOOR, 1.0), summary=note)  # fmt: skip
    count = len(again.ranks)
    ranks = [rank / again.ranks[0] for rank in again.ranks]
    spread = again.spread
    curves = []
    for values, name, short, role, dash, marker in (
        (spread.tolist(), "rows differ", "rows", "S", "solid", "circle"),
        (again.skipped.tolist(), "with a skip connection", "skip", "O", "dash", "square"),
        (ranks, f"rank ({RANKED:.0%} of the largest)".replace("%", " %"), "rank", "P", "dashdot",
         "triangle"),
    ):  # fmt: skip
        kept = [(n, value) for n, value in enumerate(values) if value >= _FLOOR]
        lines = tuple(
            (
                f"after {n} {'time' if n == 1 else 'times'}: {name}",
                f"{number_text(value, 4)} of what it was",
                f"rank {again.ranks[n]} of {count_text(again.ranks[0])}",
            )
            for n, value in kept
        )
        curves.append(
            Curve(name, short, role, tuple(float(n) for n, _ in kept),
                  tuple(value for _, value in kept), dash, marker, details=lines)  # type: ignore[arg-type]
        )  # fmt: skip
    rate = again.rate
    tail = [n for n in range(count) if spread[n] >= _FLOOR]
    if 0 < rate < 1 and tail:
        last = tail[-1]
        line = [(n, float(spread[last]) * rate ** (n - last)) for n in range(count)]
        line = [(n, value) for n, value in line if _FLOOR <= value <= 1]
        curves.append(
            Curve(f"{number_text(rate, 2)}ⁿ, second eigenvalue", "eigenvalue", "muted",
                  tuple(float(n) for n, _ in line), tuple(value for _, value in line), "dot", None,
                  1.2)
        )  # fmt: skip
    below = again.below
    when = (
        f"After {below} times rows differ by less than {RANKED:.0%}".replace("%", " %")
        if below is not None
        else f"After {TIMES} times rows still differ by {number_text(float(spread[-1]))}"
    )
    note = (
        f"{state.head_name}'s weights on its V again and again. {when} of what they did, the rank "
        f"is {again.ranks[-1]} of {count_text(again.ranks[0])} at the end; with a skip connection "
        f"they differ by {number_text(float(again.skipped[-1]))} (Dong et al. 2021)."
        f"{state.part_words}"
    )
    return PlotModel(
        name=f"Attention of {state.head_name} again and again",
        x=x,
        y=y,
        curves=tuple(curves),
        levels=(Level(RANKED, f"{RANKED:.0%}".replace("%", " %"), "", "muted"),),
        note=note,
        x_range=(0.0, float(TIMES)),
        y_range=(max(_FLOOR, min(float(c) for c in (*spread[spread >= _FLOOR], 1e-3))), 1.2),
        summary=note,
    )


def _begun(reason: str) -> str:
    """Return a reason as the beginning of a sentence."""
    return reason[:1].upper() + reason[1:]


def features_plot(state: SmoothingState) -> PlotModel:
    """Return how far random features are from the softmax, over their number."""
    x = Axis("random features", count_text, log=True, base=2, whole=True)
    y = Axis("distance of O from the softmax's", lambda value: f"{100 * value:.3g} %", log=True)
    found, name = state.estimates, f"Random features for {state.head_name}"
    ends = float(COUNTS[0]), float(COUNTS[-1])
    if found is None:
        note = f"No estimates here. {_begun(state.unfit)}."
        return PlotModel(name, x, y, note=note, x_range=ends, y_range=(0.01, 1.0), summary=note)
    curves = []
    for errors, words, short, role, marker in (
        (found.own, "as captured", "captured", "S", "circle"),
        (found.hot, f"temperature {HOT:g} ×", f"T {HOT:g} ×", "O", "square"),
    ):
        if state.workload.file is None:
            words = words.replace("as captured", "as drawn")
        xs = tuple(float(each) for each in errors.features)
        means, spreads = errors.means.tolist(), errors.spreads.tolist()
        lines = tuple(
            (f"{count_text(count)} features, {words}", f"{100 * mean:.3g} % away, in the mean",
             f"± {100 * spread:.2g} % over {DRAWS} draws")
            for count, mean, spread in zip(errors.features, means, spreads, strict=True)
        )  # fmt: skip
        curves.append(
            Curve(f"{words}: r to the {tick_text(round(errors.exponent, 2))}", short, role, xs,
                  tuple(means), "solid", marker, details=lines)  # type: ignore[arg-type]
        )  # fmt: skip
        for sign in (-1, 1):
            edge = [max(m + sign * s, 0.05 * m) for m, s in zip(means, spreads, strict=True)]
            curves.append(Curve("", "", role, xs, tuple(edge), "dot", None, 1.0))
    elu1 = found.own.elu1
    values = [value for curve in curves for value in curve.ys]
    slow, fast = (tick_text(round(each.exponent, 2)) for each in (found.own, found.hot))
    note = (
        f"Random features for {state.head_name} (Performer). O against the softmax's: mean and "
        f"spread of {DRAWS} draws. The error goes as r to the {slow}; at {HOT:g} times the "
        f"temperature to the {fast}. It is 1/√r where queries and keys are short, as those of "
        f"trained heads are not (Choromanski et al. 2021)."
    )
    return PlotModel(
        name=name,
        x=x,
        y=y,
        curves=tuple(curves),
        levels=(Level(elu1, f"elu + 1: {100 * elu1:.3g} %", "elu + 1", "muted"),),
        note=note,
        x_range=ends,
        y_range=(0.8 * min(values), 1.3 * max(*values, elu1)),
        summary=note,
    )


def regression_plot(found: Regression) -> PlotModel:
    """Return examples, the function, and the predictions of attention."""
    places = tuple(found.places.tolist())
    low, high = float(min(found.ys.min(), -2)), float(max(found.ys.max(), 2))
    h = number_text(found.bandwidth, 2)
    examples = tuple(
        PlotMark(float(x), float(y), "", "", "V", "circle", 3.0,
             (f"example: x = {number_text(float(x))}", f"y = {number_text(float(y))}",
              "x is a key, y its value"))
        for x, y in zip(found.xs, found.ys, strict=True)
    )  # fmt: skip
    curves = (
        Curve("the function", "function", "muted", places, tuple(found.truth.tolist()), "dot", None,
              1.4),
        Curve("attention", "attention", "O", places, tuple(found.attended.tolist()), "solid", None,
              2.6),
        Curve("q·k, norms left in", "q·k", "S", places, tuple(found.dot.tolist()), "dash", None,
              1.4),
    )  # fmt: skip
    errors = ", ".join(
        f"{number_text(error)} at h = {number_text(width, 2)}"
        for width, error in zip(BANDWIDTHS, found.left_out, strict=True)
    )
    note = (
        f"{EXAMPLES} examples are keys and values. x is the query, h = {h}: attention and the "
        f"Nadaraya–Watson estimator are {number_text(found.off, 3)} apart. It is "
        f"{number_text(found.error)} from the function (root mean square). Leaving one out, "
        f"h = {number_text(found.best, 2)} is best."
    )
    return PlotModel(
        name="Regression in context",
        x=Axis("x", tick_text),
        y=Axis("y", tick_text),
        curves=curves,
        marks=examples,
        note=note,
        x_range=(0.0, 1.0),
        y_range=(low, high),
        summary=f"{note} Errors: {errors}.",
    )
