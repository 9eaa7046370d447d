"""The docks of the window, one row each: to add a panel is to add a row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Generic

from simulator.run.row_report import RowReport
from simulator.run.snapshot import Snapshot
from simulator.run.trace import Trace
from ui.look.formula import typeset
from ui.panels.base import Panel
from ui.panels.cache.calculator import cache_model
from ui.panels.cache.panel import CachePanel
from ui.panels.code.panel import CodePanel, code_model
from ui.panels.compare.panel import ComparePanel, compare_model
from ui.panels.exactness.panel import ExactnessPanel, exactness_model
from ui.panels.formula.panel import FormulaPanel, make_formula_model
from ui.panels.generation.panel import GenerationPanel
from ui.panels.heads.panel import HeadsPanel
from ui.panels.inspector.panel import InspectorPanel
from ui.panels.jobs.panel import JobsPanel
from ui.panels.kernel.panel import KernelPanel
from ui.panels.latent.panel import LatentPanel
from ui.panels.layer.model import layer_model
from ui.panels.layer.panel import LayerPanel
from ui.panels.masks.panel import MasksPanel
from ui.panels.memory.panel import MemoryPanel
from ui.panels.merge.panel import MergePanel
from ui.panels.order.panel import OrderPanel
from ui.panels.pages.panel import PagesPanel
from ui.panels.positions.panel import PositionsPanel
from ui.panels.ring.study import RING
from ui.panels.roofline.panel import RooflinePanel, roofline_model
from ui.panels.scenario.panel import ScenarioPanel
from ui.panels.schedule.panel import SchedulePanel
from ui.panels.softmax.panel import SoftmaxPanel
from ui.panels.sqrt_d.panel import SqrtDPanel
from ui.panels.study_panel import StudyPanel
from ui.panels.sweep.panel import SweepPanel
from ui.panels.traffic.panel import TrafficPanel, traffic_model
from ui.panels.update_lines import softmax_lines
from ui.panels.values.panel import ValuesPanel
from ui.session.session import Session
from ui.session.view import Make, Model, Need, nothing


@dataclass(frozen=True, slots=True)
class PanelSpec(Generic[Model]):
    """One dock."""

    name: str  # object name of the dock, which layouts refer to
    title: str  # shown on the dock and in the View menu
    key: str  # brings it to the front, or closes it if it is there
    tip: str  # what it teaches, in one sentence
    make: Callable[[Session], Panel[Model]]  # the session to the panel, already connected to it
    # makes what the panel needs beyond the snapshot, which it gets with each view
    model: Make[Model]
    # shares of the window's width and height that the panel takes if it is opened in another layout
    # than its own
    room: tuple[float, float] = (0.4, 0.6)

    @property
    def need(self) -> Need[Model]:
        """What the session makes for the panel with every view."""
        return Need(self.name, self.model)


_LARGE = (0.5, 0.75)
"""Shares of panels that are a whole picture or table."""


def _scenario(session: Session) -> ScenarioPanel:
    panel = ScenarioPanel()
    panel.proposed.connect(session.propose)
    panel.withdrawn.connect(session.withdrawn)
    session.trace_changed.connect(panel.show_trace)
    session.refused.connect(panel.show_refusal)
    panel.held.connect(partial(session.hold, panel.take_back))
    if session.trace is not None:
        panel.show_trace(session.trace)
    return panel


def _typeset_softmax(trace: Trace, snapshot: Snapshot, report: RowReport) -> None:
    """Typeset the formulas of the view while it is made, not when it is painted."""
    lines = softmax_lines(snapshot, report)
    typeset([r"m", r"m_{\mathrm{old}}", *(line.latex for line in lines)])


PANELS = (
    PanelSpec(
        "scenario", "Scenario", "1", "Everything that fixes this run, open to change.",
        _scenario, nothing,
    ),
    PanelSpec(
        "memory", "Memory traffic", "2", "Tiles on their way between HBM and SRAM, and the bytes.",
        lambda session: MemoryPanel(), nothing,
    ),
    PanelSpec(
        "softmax", "Online softmax", "3",
        "How the numbers of one row change with each tile (Milakov & Gimelshein 2018).",
        SoftmaxPanel, _typeset_softmax,
    ),
    PanelSpec(
        "code", "Code", "4",
        "The line of the paper, of the NumPy op and of the CUDA kernel that runs now.",
        CodePanel, code_model,
    ),
    PanelSpec(
        "formula", "Formula", "5",
        "This op's update with the selected row's numbers, and its line in the paper.",
        FormulaPanel, make_formula_model,
    ),
    PanelSpec(
        "compare", "Compare", "6",
        "The algorithms in lock-step on the same Q, K and V, and as a race.",
        ComparePanel, compare_model, _LARGE,
    ),
    PanelSpec(
        "traffic", "HBM bytes over the run", "7",
        "Requested bytes of every tensor from the first visit to the last (Dao et al. 2022).",
        TrafficPanel, traffic_model,
    ),
    PanelSpec(
        "sweep", "Sweep", "8",
        "What tile sizes, sequence length and head size do to bytes and time.",
        SweepPanel, nothing,
    ),
    PanelSpec(
        "roofline", "Roofline", "9",
        "FLOPs for each byte against what the GPU can do (Williams et al. 2009).",
        RooflinePanel, roofline_model,
    ),
    PanelSpec(
        "exactness", "Exactness", "0",
        "How far rows are from float64, and what a mistake in the algorithm would do.",
        ExactnessPanel, exactness_model,
    ),
    PanelSpec(
        "schedule", "Schedule", "U",
        "A model of which thread block runs on which multiprocessor when (Dao 2023, section 3.2).",
        SchedulePanel, nothing, _LARGE,
    ),
    PanelSpec(
        "merge", "Merge", "Y",
        "Partials of a row or sums of a gradient: how each order rounds (Dao et al. 2023).",
        MergePanel, nothing, _LARGE,
    ),
    PanelSpec(
        "pages", "Pages", "F",
        "Sequences of a server in pages of one cache: taken, shared, copied and given back "
        "(Kwon et al. 2023).",
        PagesPanel, nothing, _LARGE,
    ),
    PanelSpec(
        "values", "Values", "V",
        "Pinned cells: where each number came from, to copy or recompute in NumPy.",
        ValuesPanel, nothing,
    ),
    PanelSpec(
        "cache", "KV cache", "K",
        "How the cache of a model grows, who fits, what a token reads; and what keeping less costs "
        "(Zhang et al. 2023).",
        CachePanel, cache_model, _LARGE,
    ),
    PanelSpec(
        "heads", "Head sharing", "H",
        "Which query heads share keys and values, and what that saves (Ainslie et al. 2023).",
        HeadsPanel, nothing, _LARGE,
    ),
    PanelSpec(
        "inspector", "Attention inspector", "I",
        "What each token reads: weights of every head, temperature, mask, entropy "
        "(Vaswani et al. 2017).",
        InspectorPanel, nothing, _LARGE,
    ),
    PanelSpec(
        "jobs", "Jobs of heads", "J",
        "What each head reads, and when an induction head appears (Olsson et al. 2022).",
        JobsPanel, nothing, _LARGE,
    ),
    PanelSpec(
        "sqrt_d", "Why √d", "D",
        "Random queries and keys: what dividing by √d does (Vaswani et al. 2017, section 3.2.1).",
        SqrtDPanel, nothing,
    ),
    PanelSpec(
        "layer", "Layer", "L",
        "From X through Q, K, V and the tiles to Y, and what each head gives "
        "(Vaswani et al. 2017, section 3.2.2).",
        LayerPanel, layer_model, _LARGE,
    ),
    PanelSpec(
        "masks", "Masks", "G",
        "Longformer, BigBird, packed documents, NSA, DSA: price and error beside dense "
        "(Beltagy et al. 2020).",
        MasksPanel, nothing, _LARGE,
    ),
    PanelSpec(
        "kernel", "Kernel", "N",
        "Attention as a kernel smoother: keys as points, regression, and other scores "
        "(Tsai et al. 2019).",
        KernelPanel, nothing, _LARGE,
    ),
    PanelSpec(
        "positions", "Positions", "R",
        "RoPE as hands of clocks, one vector at all places, and scores beyond the trained length "
        "(Su et al. 2021).",
        PositionsPanel, nothing, _LARGE,
    ),
    PanelSpec(
        "order", "Order", "O",
        "What shuffling the tokens does to rows of O, and which tokens layers let hear of which "
        "(Vaswani et al. 2017, section 3.5).",
        OrderPanel, nothing, _LARGE,
    ),
    PanelSpec(
        "latent", "Latent", "C",
        "One latent for all heads: attended to in two ways, and what sharing a cache costs "
        "(Liu et al. 2024).",
        LatentPanel, nothing, _LARGE,
    ),
    PanelSpec(
        "generation", "Generation", "Q",
        "A prompt, then token by token: what a step brings, reads and costs, with a cache and "
        "without (Shazeer 2019).",
        GenerationPanel, nothing, _LARGE,
    ),
    PanelSpec(
        "ring", "Ring", "Z",
        "The run dealt out to devices in a ring: who works when, what links carry, and the same O "
        "(Liu et al. 2023).",
        lambda session: StudyPanel(session, RING), nothing, _LARGE,
    ),
)  # fmt: skip
