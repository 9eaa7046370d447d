"""The algorithms under the roofline of a GPU, and the run up to the cursor."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace
from typing import Any

from PySide6.QtCore import QSizeF

from simulator.base.choices import Choice, Option
from simulator.problem.hardware import gpus
from simulator.program.algorithms import tile_program
from simulator.run.trace import Trace
from simulator.study.gpu_report import gpu_report, measured_run
from simulator.study.roofline import roofline_of, timed_roofline
from simulator.timing.duration import duration_of
from ui.panels.roofline.plot import UnderRoof, roofline_plot
from ui.panels.study import Chosen, Study
from ui.plots.model import PlotModel
from ui.plots.widget import load_plots
from ui.session.tasks import Report
from ui.session.view import View

_GPU_TIP = (
    "The GPU whose bandwidth and matrix rate are the roofs (Williams et al. 2009); the tiles stay "
    "those of the scenario."
)
CHOICES = (
    Choice("GPU", tuple(Option(name, name, name, _GPU_TIP) for name in gpus()), listed=True),
    Choice("bytes", (
        Option("requested", "Requested bytes", "Requested",
               "FLOPs for each byte that tile loads and stores request: no caches. Of the run on "
               "show also what it reaches for each byte of DRAM, by model."),
        Option("model", "DRAM by model", "Model",
               "What a run reaches by a model with L2 (docs/time-model.md): FLOPs for each byte of "
               "DRAM, and hollow for each requested byte."),
        Option("compulsory", "Minimum bytes", "Minimum",
               "FLOPs for each byte that has to move once: caches that miss nothing else."),
    )),
)  # fmt: skip


class RooflineStudy(Study[UnderRoof, UnderRoof]):
    """Prefill, backward passes and decode, and the run up to the cursor, on any GPU."""

    name, title, doing, choices = "roofline", "Roofline", "the roofline", CHOICES
    room = QSizeF(320, 230)

    def said(self, trace: Trace) -> Chosen:
        return {"GPU": trace.workload.gpu.name}

    def needs(self, trace: Trace, view: View, chosen: Chosen) -> Hashable:
        return chosen["GPU"], chosen["bytes"] == "model"

    def compute(self, trace: Trace, needs: Any, report: Report) -> UnderRoof:
        *_, last = self.results(trace, needs, report)
        return last

    def results(self, trace: Trace, needs: Any, report: Report) -> Iterator[UnderRoof]:
        load_plots()
        w, program, (name, by_model) = trace.workload, trace.program, needs
        gpu = gpus()[name]
        if by_model:
            yield UnderRoof(timed_roofline(program, gpu), w.algorithm, by_model=True)
            return
        measured = measured_run(w, program.totals.flops, gpu_report())
        found = UnderRoof(roofline_of(program), w.algorithm, (measured,) if measured else ())
        yield found
        spent = duration_of(program if gpu is w.gpu else tile_program(replace(w, gpu=gpu)))
        yield replace(found, spent=spent)

    def state(
        self, found: UnderRoof, chosen: Chosen, before: UnderRoof | None, changed: str
    ) -> UnderRoof:
        return replace(
            found,
            runs=found.runs if found.by_model else found.runs.on(gpus()[chosen["GPU"]]),
            compulsory=chosen["bytes"] == "compulsory",
            so_far=None if before is None else before.so_far,
        )

    def follow(self, state: UnderRoof, view: View) -> UnderRoof:
        return replace(state, so_far=view.snapshot.counters)

    def plot(self, state: UnderRoof) -> PlotModel:
        return roofline_plot(state)


ROOFLINE = RooflineStudy()
