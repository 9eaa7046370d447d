"""The experiment that shows why scores are divided by √d, drawn while vectors are drawn."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple

from PySide6.QtCore import QSizeF

from simulator.base.choices import one_of
from simulator.run.trace import Trace
from simulator.study.sqrt_d.choices import CAP, CHOICES, DRAW
from simulator.study.sqrt_d.experiment import SqrtDResult, one_draw, sqrt_d_experiment
from simulator.study.sqrt_d.soft_cap import CappedRow, capped_row
from simulator.study.sqrt_d.trained_scores import TrainedScores, shipped_scores, trained_scores
from ui.panels.sqrt_d.plot import MEASURED, cap_plot, draw_plot, sqrt_d_plot
from ui.panels.study import Act, Chosen, Study
from ui.plots.model import PlotModel
from ui.plots.widget import load_plots
from ui.session.tasks import Report
from ui.session.view import View


class SqrtDState(NamedTuple):
    """What random vectors have shown so far, and the scores of a trained layer."""

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
        load_plots()
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
