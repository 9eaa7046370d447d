"""What other sizes and tiles would cost: curves over one size, a map over tiles, or a table."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, get_args

from PySide6.QtCore import QSizeF

from simulator.base.choices import one_of
from simulator.problem.scenario import Scenario, with_values
from simulator.problem.workload import Workload
from simulator.program.algorithms import ALGORITHMS
from simulator.run.trace import Trace
from simulator.study.sweep import (
    Axis,
    Sweep,
    TilingMap,
    axis_values,
    in_kernel_tiles,
    map_sizes,
    scenario_at,
    sweep,
    tiles_scenario,
    tiling_map,
)
from simulator.study.sweep_choices import CHOICES, KERNELS, MAP, VARIANTS
from simulator.study.variants import VariantTable, variant_table
from ui.kit.boxes import Box
from ui.look.units import count_text
from ui.panels.study import Chosen, Study, Words
from ui.panels.sweep.plot import QUANTITIES, CurvePick, Quantity, map_plot, sweep_plot
from ui.panels.sweep.table import variants_picture, variants_said, variants_words
from ui.plots.model import PlotModel
from ui.plots.widget import load_plots
from ui.session.tasks import Report
from ui.session.view import View

_AXES: tuple[Axis, ...] = get_args(Axis)


@dataclass(frozen=True, slots=True, eq=False)
class Swept:
    """Figures of a workload at other sizes, and which of them are shown."""

    workload: Workload
    found: Sweep | TilingMap | VariantTable
    quantity: Quantity = "bytes"

    def plot(self) -> PlotModel | None:
        """Return curves or a map; None for a table."""
        w, found = self.workload, self.found
        if isinstance(found, TilingMap):
            return map_plot(found, w.as_algorithm(found.algorithm), self.quantity)
        return sweep_plot(found, w, self.quantity) if isinstance(found, Sweep) else None


class SweepStudy(Study[Swept, Swept]):
    """Other sizes and tiles of the scenario; a click on a point makes it the scenario."""

    name, title, doing, choices = "sweep", "Sweep", "sweeping sizes", CHOICES
    pictured, room = "variants", QSizeF(440, 250)

    def said(self, trace: Trace) -> Chosen:
        return {"algorithm": trace.workload.algorithm}

    def lesson(self, said: Chosen) -> Chosen:
        return said

    def hidden(self, trace: Trace, chosen: Chosen) -> frozenset[str]:
        over, out = chosen["over"], {"algorithm", "tiles"}
        out -= {"tiles"} if over in ("N", "d") else {"algorithm"} if over == MAP else set()
        return frozenset(out | {"quantity"} if over == VARIANTS else out)

    def needs(self, trace: Trace, view: View, chosen: Chosen) -> Hashable:
        over = chosen["over"]
        timed = chosen["quantity"] == "time" and over in _AXES
        kernels = chosen["tiles"] == KERNELS and over in ("N", "d")
        return over, chosen["algorithm"] if over == MAP else "", timed, kernels

    def compute(self, trace: Trace, needs: Any, report: Report) -> Swept:
        load_plots()
        w, (over, algorithm, timed, kernels) = trace.workload, needs
        w = in_kernel_tiles(w) if kernels else w
        if over == VARIANTS:
            return Swept(w, variant_table(w))
        if over == MAP:
            of = w.as_algorithm(ALGORITHMS[algorithm].name)
            sizes = map_sizes(w.seqlen_q), map_sizes(w.seqlen_k)
            return Swept(w, tiling_map(of, *sizes, report))
        axis = one_of(_AXES, over)
        return Swept(w, sweep(w, axis, axis_values(w, axis), report, timed=timed))

    def state(self, found: Swept, chosen: Chosen, before: Swept | None, changed: str) -> Swept:
        return Swept(found.workload, found.found, one_of(QUANTITIES, chosen["quantity"]))

    def proposes(self, state: Swept, at: Hashable) -> tuple[Scenario, str] | None:
        w, found = state.workload, state.found
        if isinstance(found, Sweep) and isinstance(at, CurvePick):
            algorithm, scenario = at.algorithm, scenario_at(w, found.axis, at.value)
            words = f"{found.axis} = {count_text(at.value)}"
        elif isinstance(found, TilingMap) and isinstance(at, tuple):
            rows, cols = (round(size) for size in at)
            algorithm, scenario = found.algorithm, tiles_scenario(w, rows, cols)
            words = f"tiles {count_text(rows)} × {count_text(cols)}"
        else:
            return None
        if algorithm == w.algorithm:
            return scenario, words
        changed = with_values(scenario, {"attention": {"algorithm": algorithm}})
        return changed, f"{algorithm}, {words}"

    def plot(self, state: Swept) -> PlotModel | None:
        return state.plot()

    def picture(self, state: Swept) -> Box | None:
        return variants_picture(state.found) if isinstance(state.found, VariantTable) else None

    def words(self, state: Swept) -> Words:
        if not isinstance(state.found, VariantTable):
            return Words("")
        return variants_words(state.found, state.workload)

    def described(self, state: Swept) -> tuple[str, ...]:
        rows = variants_said(state.found) if isinstance(state.found, VariantTable) else ()
        return *super().described(state), *rows


SWEEP = SweepStudy()
