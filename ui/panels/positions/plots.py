"""The plot of scores over distance, beyond the length of a training."""

from __future__ import annotations

from simulator.study.positions.scores import PositionsState
from ui.look.units import count_text, number_text, tick_text
from ui.panels.positions.words import new_pairs, row_name
from ui.plots.model import Axis, Curve, Dash, Level, PlotModel

_LOOKS: tuple[tuple[str, Dash, float], ...] = (
    ("muted", "solid", 1.4), ("K", "dash", 1.8), ("V", "dashdot", 1.8), ("O", "solid", 2.2),
)  # fmt: skip


def far_plot(state: PositionsState) -> PlotModel:
    """Return the score of a query with itself over distance, under RoPE and its stretches."""
    longest = state.trained * state.factor
    curves = tuple(
        Curve(way.title, way.title.split()[0], role, tuple(xs.tolist()), tuple(ys.tolist()), dash,
              None, width)
        for way, (xs, ys), (role, dash, width) in zip(state.ways, state.far, _LOOKS, strict=True)
    )  # fmt: skip
    values = [y for curve in curves for y in curve.ys]
    stretch = max(1, round(longest / len(curves[0].xs)))
    note = (
        f"Beyond the trained length angles are new. Pairs that reach such: {new_pairs(state)}. "
        f"Scores are those of the query of {row_name(state)} with itself, means of some "
        f"{count_text(2 * stretch)} distances; YaRN multiplies them by "
        f"{number_text(state.ways[-1].temper, 3)}, too."
    )
    return PlotModel(
        name="Scores over distance",
        x=Axis("distance in tokens", count_text, whole=True),
        y=Axis("score", tick_text),
        curves=curves,
        levels=(
            Level(float(state.trained), f"trained: {count_text(state.trained)}", "trained",
                  "current", across=False),
        ),
        note=note,
        x_range=(0.0, float(longest)),
        y_range=(min(values), max(values)),
        summary=note,
    )  # fmt: skip
