"""The docks of the window, one row each: to add a panel is to add a row.

A panel's module is imported when the panel is first seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from ui.panels.base import Panel
from ui.panels.study import Study
from ui.session.session import Session
from ui.session.view import Need, nothing


def _found(place: str) -> Any:
    """Return what a module of a panel has under a name, of "module:name"."""
    module, name = place.split(":")
    return getattr(import_module(f"ui.panels.{module}"), name)


@dataclass(frozen=True, slots=True)
class PanelSpec:
    """One dock."""

    name: str  # object name of the dock, which layouts refer to
    title: str  # shown on the dock and in the View menu
    key: str  # brings it to the front, or closes it if it is there
    tip: str  # what it teaches, in one sentence
    maker: str  # "module:name" of a study, of the panel's class, or of a function that makes it
    model: str = ""  # the same of what makes its model with each view; "": it needs none
    # shares of the window's width and height that the panel takes if it is opened in another layout
    # than its own
    room: tuple[float, float] = (0.4, 0.6)

    def make(self, session: Session) -> Panel[Any]:
        """Return a new panel, connected to a session."""
        found = _found(self.maker)
        if isinstance(found, Study):
            from ui.panels.study_panel import StudyPanel

            return StudyPanel(session, found)
        panel: Panel[Any] = found(session)
        return panel

    @property
    def need(self) -> Need[Any]:
        """What the session makes for the panel with every view."""
        return Need(self.name, _found(self.model) if self.model else nothing)

    def makes(self, panel: type[Panel[Any]]) -> bool:
        """Return whether the panel is of a class."""
        return self.maker == f"{panel.__module__.removeprefix('ui.panels.')}:{panel.__name__}"


_LARGE = (0.5, 0.75)
"""Shares of panels that are a whole picture or table."""

PANELS = (
    PanelSpec(
        "scenario", "Scenario", "1", "Everything that fixes this run, open to change.",
        "scenario.panel:scenario_panel",
    ),
    PanelSpec(
        "memory", "Memory traffic", "2", "Tiles on their way between HBM and SRAM, and the bytes.",
        "memory.panel:memory_panel",
    ),
    PanelSpec(
        "softmax", "Online softmax", "3",
        "How the numbers of one row change with each tile (Milakov & Gimelshein 2018).",
        "softmax.panel:SoftmaxPanel", "softmax.panel:typeset_softmax",
    ),
    PanelSpec(
        "code", "Code", "4",
        "The line of the paper, of the NumPy op and of the CUDA kernel that runs now.",
        "code.panel:CodePanel", "code.panel:code_model",
    ),
    PanelSpec(
        "formula", "Formula", "5",
        "This op's update with the selected row's numbers, and its line in the paper.",
        "formula.panel:FormulaPanel", "formula.panel:make_formula_model",
    ),
    PanelSpec(
        "compare", "Compare", "6",
        "The algorithms in lock-step on the same Q, K and V, and as a race.",
        "compare.panel:ComparePanel", room=_LARGE,
    ),
    PanelSpec(
        "traffic", "HBM bytes over the run", "7",
        "Requested bytes of every tensor from the first visit to the last (Dao et al. 2022).",
        "traffic.panel:TrafficPanel", "traffic.panel:traffic_model",
    ),
    PanelSpec(
        "sweep", "Sweep", "8",
        "What tile sizes, sequence length and head size do to bytes and time.",
        "sweep.study:SWEEP",
    ),
    PanelSpec(
        "roofline", "Roofline", "9",
        "FLOPs for each byte against what the GPU can do (Williams et al. 2009).",
        "roofline.study:ROOFLINE",
    ),
    PanelSpec(
        "exactness", "Exactness", "0",
        "How far rows are from float64, and what a mistake in the algorithm would do.",
        "exactness.panel:ExactnessPanel", "exactness.panel:exactness_model",
    ),
    PanelSpec(
        "schedule", "Schedule", "U",
        "A model of which thread block runs on which multiprocessor when (Dao 2023, section 3.2).",
        "schedule.panel:SchedulePanel", room=_LARGE,
    ),
    PanelSpec(
        "merge", "Merge", "Y",
        "Partials of a row or sums of a gradient: how each order rounds (Dao et al. 2023).",
        "merge.study:MERGE", room=_LARGE,
    ),
    PanelSpec(
        "pages", "Pages", "F",
        "Sequences of a server in pages of one cache: taken, shared, copied and given back "
        "(Kwon et al. 2023).",
        "pages.study:PAGES", room=_LARGE,
    ),
    PanelSpec(
        "values", "Values", "V",
        "Pinned cells: where each number came from, to copy or recompute in NumPy.",
        "values.panel:ValuesPanel",
    ),
    PanelSpec(
        "cache", "KV cache", "K",
        "How the cache of a model grows, who fits, what a token reads; and what keeping less costs "
        "(Zhang et al. 2023).",
        "kv_cache.panel:CachePanel", "kv_cache.panel:cache_model", room=_LARGE,
    ),
    PanelSpec(
        "heads", "Head sharing", "H",
        "Which query heads share keys and values, and what that saves (Ainslie et al. 2023).",
        "heads.panel:HeadsPanel", room=_LARGE,
    ),
    PanelSpec(
        "inspector", "Attention inspector", "I",
        "What each token reads: weights of every head, temperature, mask, entropy "
        "(Vaswani et al. 2017).",
        "inspector.panel:InspectorPanel", room=_LARGE,
    ),
    PanelSpec(
        "jobs", "Jobs of heads", "J",
        "What each head reads, and when an induction head appears (Olsson et al. 2022).",
        "jobs.panel:JobsPanel", room=_LARGE,
    ),
    PanelSpec(
        "sqrt_d", "Why √d", "D",
        "Random queries and keys: what dividing by √d does (Vaswani et al. 2017, section 3.2.1).",
        "sqrt_d.study:SQRT_D",
    ),
    PanelSpec(
        "layer", "Layer", "L",
        "From X through Q, K, V and the tiles to Y, and what each head gives "
        "(Vaswani et al. 2017, section 3.2.2).",
        "layer.panel:LayerPanel", room=_LARGE,
    ),
    PanelSpec(
        "masks", "Masks", "G",
        "Longformer, BigBird, packed documents, NSA, DSA: price and error beside dense "
        "(Beltagy et al. 2020).",
        "sparse.panel:SparsePanel", room=_LARGE,
    ),
    PanelSpec(
        "kernel", "Kernel", "N",
        "Attention as a kernel smoother: keys as points, regression, and other scores "
        "(Tsai et al. 2019).",
        "smoothing.study:SMOOTHING", room=_LARGE,
    ),
    PanelSpec(
        "positions", "Positions", "R",
        "RoPE as hands of clocks, one vector at all places, and scores beyond the trained length "
        "(Su et al. 2021).",
        "positions.study:POSITIONS", room=_LARGE,
    ),
    PanelSpec(
        "order", "Order", "O",
        "What shuffling the tokens does to rows of O, and which tokens layers let hear of which "
        "(Vaswani et al. 2017, section 3.5).",
        "order.study:ORDER", room=_LARGE,
    ),
    PanelSpec(
        "latent", "Latent", "C",
        "One latent for all heads: attended to in two ways, and what sharing a cache costs "
        "(Liu et al. 2024).",
        "latent.study:LATENT", room=_LARGE,
    ),
    PanelSpec(
        "generation", "Generation", "Q",
        "A prompt, then token by token: what a step brings, reads and costs, with a cache and "
        "without (Shazeer 2019).",
        "generation.panel:GenerationPanel", room=_LARGE,
    ),
    PanelSpec(
        "ring", "Ring", "Z",
        "The run dealt out to devices in a ring: who works when, what links carry, and the same O "
        "(Liu et al. 2023).",
        "ring.study:RING", room=_LARGE,
    ),
)  # fmt: skip
