"""The dock that shows what other sizes and tiles would cost."""

from __future__ import annotations

from typing import get_args

from simulator.base.choices import Choice, Option, one_of
from simulator.lesson.tables import ChooseTable
from simulator.problem.scenario import Algorithm, with_values
from simulator.problem.workload import Workload
from simulator.program.algorithms import ALGORITHMS
from simulator.program.tile_program import TileProgram
from simulator.study.sweep import (
    Axis,
    Sweep,
    TilingMap,
    axis_values,
    map_sizes,
    scenario_at,
    sweep,
    tiles_scenario,
    tiling_map,
)
from simulator.study.variants import VariantTable, variant_table
from ui.look.theme import Style
from ui.look.units import count_text
from ui.panels.base import StatePicture
from ui.panels.plot_panel import PlotPanel
from ui.panels.sweep.plot import QUANTITIES, CurvePick, Quantity, map_plot, sweep_plot
from ui.panels.sweep.table import VariantsShown, paint_variants
from ui.plots.widget import load_plots
from ui.session.session import Session
from ui.session.tasks import Report
from ui.session.view import View

_MAP_TIP = "Which algorithm the map is of, at the sizes of this scenario."

CHOICES = (
    Choice("over", (
        Option("N", "N", "N", "Over the sequence length: naive grows as N², all ask more."),
        Option("Br", "Br", "Br",
               "Over the rows of a tile: FlashAttention-2 loads K and V once for each row block "
               "(Dao 2023, Algorithm 1)."),
        Option("Bc", "Bc", "Bc",
               "Over the keys of a tile: FlashAttention-1 moves O once for each column block "
               "(Dao et al. 2022, Algorithm 1)."),
        Option("d", "d", "d",
               "Over the head dimension: FlashAttention-1 asks for about N²d²/M, so gains while d² "
               "is far below the shared memory M (Dao et al. 2022, Theorem 2)."),
        Option("map", "Br × Bc", "Br×Bc",
               "A map over both tile sizes, with what fits a block's shared memory and what "
               "published kernels choose."),
        Option("variants", "Variants", "Var",
               "A table of MHA, GQA, MQA and a window: time, memory, cache and weights at this N, "
               "with the powers of N that fit (Shazeer 2019, Ainslie et al. 2023, Beltagy et al. "
               "2020)."),
    )),
    Choice("quantity", (
        Option("bytes", "Bytes", "Bytes",
               "What tile loads and stores request of HBM (Dao et al. 2022, section 3.2)."),
        Option("held", "Held in HBM", "Held",
               "All tensors that the launches read or write, each once: S and P are what naive "
               "holds more (Dao et al. 2022, section 3.1)."),
        Option("flops", "FLOPs", "FLOPs",
               "Of the two matrix products: the algorithms differ in what they move, hardly in "
               "what they compute (Dao et al. 2022, section 3.1)."),
        Option("time", "Time", "Time",
               "The longer of bytes over bandwidth and FLOPs over matrix rate "
               "(Williams et al. 2009)."),
        Option("shared", "Shared memory", "Shared",
               "What tiles take of a block's shared memory, and the GPU's limit."),
    )),
    Choice("algorithm", tuple(
        Option(each.name, each.name, each.name, _MAP_TIP) for each in ALGORITHMS.values()
    ), listed=True),
)  # fmt: skip

_AXES: tuple[Axis, ...] = get_args(Axis)
_Found = Sweep | TilingMap | VariantTable


class SweepPanel(PlotPanel[None]):
    """Curves over one size, a map over the tiles, or a table; a click chooses a point.

    The figures are made beside the window, again only for another scenario.
    """

    def __init__(self, session: Session) -> None:
        super().__init__("sweep_panel", "Sweep", CHOICES)
        self._session = session
        self._program: TileProgram | None = None
        self._found: _Found | None = None
        self._of: Workload | None = None
        self.over = "N"
        self.quantity: Quantity = "bytes"
        self._algorithm: Algorithm | None = None
        self.bar.show_chosen("over", self.over)
        self.bar.show_chosen("quantity", self.quantity)
        self.bar.show_choice("algorithm", False)
        self.plot.picked.connect(self.take)
        self.table: StatePicture[VariantsShown] = StatePicture(self, "variants", paint_variants)
        self.table.hide()

    # --- what is shown --------------------------------------------------------------------

    def show_view(self, view: View, model: None = None) -> None:
        """Show a view: only another scenario changes anything."""
        program = view.snapshot.program
        if program is not self._program:
            before = self._program
            self._program = program
            if before is None or before.workload.algorithm != program.workload.algorithm:
                self._algorithm = None
            self._compute()

    def choose(self, name: str, value: str) -> None:
        """Accept a choice: what is varied, which quantity is shown, whose map it is."""
        if name == "quantity":
            self.quantity = one_of(QUANTITIES, value)
            self._draw()
            return
        if name == "over":
            self.over = value
            self.bar.show_choice("algorithm", value == "map")
            self.bar.show_choice("quantity", value != "variants")
            self.arrange()
        else:
            self._algorithm = ALGORITHMS[value].name
        self._compute()

    def take_choices(self, choices: ChooseTable) -> None:
        """Show what a lesson has chosen."""
        if choices.over is not None:
            self.bar.choose("over", choices.over)

    @property
    def found(self) -> _Found | None:
        """The current figures."""
        return self._found

    def _compute(self) -> None:
        if self._program is None:
            return
        w, over = self._program.workload, self.over
        algorithm = self._algorithm or w.algorithm
        self.bar.show_chosen("algorithm", algorithm)

        def job(report: Report) -> _Found:
            load_plots()
            if over == "variants":
                return variant_table(w)
            if over == "map":
                of = w.as_algorithm(algorithm)
                return tiling_map(of, map_sizes(w.seqlen_q), map_sizes(w.seqlen_k), report)
            axis = one_of(_AXES, over)
            return sweep(w, axis, axis_values(w, axis), report)

        def done(found: _Found) -> None:
            self._found, self._of = found, w
            self._draw()

        self._session.tasks.start("sweep", "sweeping sizes", job, done)

    def _draw(self) -> None:
        if self._found is None or self._of is None:
            return
        tabled = isinstance(self._found, VariantTable)
        self.table.setVisible(tabled)
        self.plot.setVisible(not tabled)
        if isinstance(self._found, VariantTable):
            self.table.state = VariantsShown(self._found, self._of)
            self.table.setAccessibleDescription(self.table.state.summary)
            self.setAccessibleDescription(self.table.state.summary)
            self.table.update()
        elif isinstance(self._found, TilingMap):
            w = self._of.as_algorithm(self._found.algorithm)
            self.show_plot(map_plot(self._found, w, self.quantity))
        else:
            self.show_plot(sweep_plot(self._found, self._of, self.quantity, fixed=self._fixed()))

    def set_style(self, style: Style) -> None:
        super().set_style(style)
        self.table.style_now = style
        self.table.update()

    def arrange(self) -> None:
        super().arrange()
        self.table.setGeometry(self.plot.geometry())

    def _fixed(self) -> str:
        """Return why a size cannot be chosen here; empty: it can."""
        assert self._of is not None
        file = self._of.file
        assert isinstance(self._found, Sweep)
        if file is None or self._found.axis in ("Br", "Bc"):
            return ""
        return f"{self._found.axis} is that of {file.path.name}"

    # --- what it changes ------------------------------------------------------------------

    def take(self, pick: object) -> None:
        """Propose the scenario of a point that was clicked."""
        w, found = self._of, self._found
        if w is None or found is None or isinstance(found, VariantTable):
            return
        if isinstance(found, Sweep):
            assert isinstance(pick, CurvePick)
            scenario = scenario_at(w, found.axis, pick.value)
            algorithm = pick.algorithm
            words = f"{found.axis} = {count_text(pick.value)}"
        else:
            assert isinstance(pick, tuple)
            rows, cols = (round(size) for size in pick)
            scenario, algorithm = tiles_scenario(w, rows, cols), found.algorithm
            words = f"tiles {count_text(rows)} × {count_text(cols)}"
        if algorithm != w.algorithm:
            scenario = with_values(scenario, {"attention": {"algorithm": algorithm}})
            words = f"{algorithm}, {words}"
        self._session.propose(scenario, words)
