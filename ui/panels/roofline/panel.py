"""The dock that shows the algorithms under the roofline of a GPU."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from simulator.base.choices import Choice, Option
from simulator.problem.hardware import gpus
from simulator.program.tile_program import TileProgram
from simulator.run.row_report import RowReport
from simulator.run.snapshot import Snapshot
from simulator.run.trace import Trace
from simulator.study.gpu_report import Measured, gpu_report, measured_run
from simulator.study.roofline import Roofline, roofline_of
from ui.panels.plot_panel import PlotPanel
from ui.panels.roofline.plot import roofline_plot
from ui.plots.widget import load_plots
from ui.session.session import Session
from ui.session.view import View

_GPU_TIP = (
    "The GPU whose bandwidth and matrix rate are the roofs (Williams et al. 2009); the tiles stay "
    "those of the scenario."
)
CHOICES = (
    Choice(
        "GPU", tuple(Option(name, name, name, _GPU_TIP) for name in gpus()), listed=True
    ),
    Choice("bytes", (
        Option("requested", "Requested bytes", "Requested",
               "FLOPs for each byte that tile loads and stores request: no caches."),
        Option("compulsory", "Compulsory bytes", "Compulsory",
               "FLOPs for each byte that has to move once: caches that miss nothing else."),
    )),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RooflineModel:
    """The runs of a program under the roofline of its GPU, and their measured times on one."""

    runs: Roofline
    measured: tuple[Measured, ...]


def roofline_model(trace: Trace, snapshot: Snapshot, report: RowReport) -> RooflineModel:
    """Return the runs of a program under its GPU's roofline; plots are loaded beside the window."""
    load_plots()
    return RooflineModel(roofline_of(trace.program), _measured(trace.program))


@lru_cache(maxsize=4)
def _measured(program: TileProgram) -> tuple[Measured, ...]:
    """Return what was measured on a GPU for exactly this workload; nothing if it never was."""
    w = program.workload
    found = measured_run(w, program.totals.flops, gpu_report())
    return () if found is None else (found,)


class RooflinePanel(PlotPanel[RooflineModel]):
    """Prefill, backward passes and decode, and the run up to the cursor, on any GPU."""

    def __init__(self, session: Session) -> None:
        super().__init__("roofline_panel", "Roofline", CHOICES)
        self.kind = "requested"
        self._gpu: str | None = None
        self._shown: tuple[View, RooflineModel] | None = None
        self._program: TileProgram | None = None
        self.bar.show_chosen("bytes", self.kind)

    def forget(self) -> None:
        self._shown = None

    def show_view(self, view: View, model: RooflineModel) -> None:
        program = view.snapshot.program
        before, self._program = self._program, program
        if before is None or before.workload.gpu != program.workload.gpu:
            self._gpu = None  # another preset was chosen for the scenario, so show that one
        self._shown = view, model
        self._draw()

    def choose(self, name: str, value: str) -> None:
        """Accept a choice: the GPU, or which bytes count."""
        if name == "GPU":
            self._gpu = value
        else:
            self.kind = value
        self._draw()

    @property
    def gpu(self) -> str:
        """Name of the current preset."""
        assert self._program is not None
        return self._gpu or self._program.workload.gpu.name

    @property
    def found(self) -> Roofline | None:
        """The current figures."""
        return None if self._shown is None else self._shown[1].runs.on(gpus()[self.gpu])

    def _draw(self) -> None:
        found = self.found
        if self._shown is None or found is None:
            return
        view, model = self._shown
        self.bar.show_chosen("GPU", self.gpu)
        w = view.snapshot.program.workload
        part = found.part(w.algorithm, view.snapshot.counters)
        self.show_plot(
            roofline_plot(
                found, w.algorithm, part, model.measured,
                compulsory=self.kind == "compulsory",
            )
        )  # fmt: skip
