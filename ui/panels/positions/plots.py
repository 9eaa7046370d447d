"""The plot of scores over distance, beyond the length of a training."""

from __future__ import annotations

from ui.look.units import count_text, number_text, tick_text
from ui.panels.positions.state import PositionsState
from ui.plots.model import Axis, Curve, Dash, Level, PlotModel

_LOOKS: tuple[tuple[str, Dash, float], ...] = (
    ("muted", "solid", 1.4), ("K", "dash", 1.8), ("V", "dashdot", 1.8), ("O", "solid", 2.2),
)  # fmt: skip


def far_plot(state: PositionsState) -> PlotModel:
    """Return the score of a query with itself over distance, under RoPE and its stretches."""
    asked, pairs = state.asked, len(state.speeds)
    curves, new = [], []
    for way, (xs, ys), (role, dash, width) in zip(state.ways, state.far, _LOOKS, strict=True):
        curves.append(
            Curve(way.title, way.title.split()[0], role, tuple(xs.tolist()), tuple(ys.tolist()),
                  dash, None, width)
        )  # fmt: skip
        count = way.new_angles(asked.trained, asked.factor, state.speeds)
        new.append(f"{count} of {pairs} with {way.title}")
    values = [y for curve in curves for y in curve.ys]
    temper = state.ways[-1].temper
    stretch = max(1, round(asked.trained * asked.factor / len(curves[0].xs)))
    note = (
        f"Beyond the trained length pairs reach angles that no training has shown: "
        f"{', '.join(new)}. Scores are those of the query of {state.row_name} with itself, means "
        f"of some {count_text(2 * stretch)} distances; YaRN multiplies them by "
        f"{number_text(temper, 3)}, too."
    )
    return PlotModel(
        name="Scores over distance",
        x=Axis("distance in tokens", lambda value: count_text(round(value)), whole=True),
        y=Axis("score", tick_text),
        curves=tuple(curves),
        levels=(
            Level(float(asked.trained), f"trained: {count_text(asked.trained)}", "trained",
                  "current", across=False),
        ),
        note=note,
        x_range=(0.0, float(asked.trained * asked.factor)),
        y_range=(min(values), max(values)),
        summary=note,
    )  # fmt: skip
