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

_PANELS = Panel.__module__.removesuffix("base")
"""The prefix of the names of the panels' modules."""


def _found(place: str) -> Any:
    """Return the object that a panel's module has under a name, for "module:name"."""
    module, name = place.split(":")
    return getattr(import_module(f"{_PANELS}{module}"), name)


@dataclass(frozen=True, slots=True)
class PanelSpec:
    """One dock."""

    name: str  # object name of the dock, which layouts refer to
    title: str  # shown on the dock and in the View menu
    tip: str  # what the panel teaches, in one sentence
    maker: str  # "module:name" of a study, of the panel's class, or of a function that makes it
    model: str = ""  # "module:name" of the function that makes its model with each view; "": none
    large: bool = False  # whether the panel is a picture or table that needs more than a few lines

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
        """The need for the model that the session makes with every view."""
        return Need(self.name, _found(self.model) if self.model else nothing)

    def makes(self, panel: type[Panel[Any]]) -> bool:
        """Return whether the panel has this class."""
        return self.maker == f"{panel.__module__.removeprefix(_PANELS)}:{panel.__name__}"


PANELS = (
    PanelSpec(
        "scenario", "Scenario", "Everything that fixes this run, open to change.",
        "scenario.panel:scenario_panel",
    ),
    PanelSpec(
        "memory", "Traffic", "Tiles on their way between HBM and SRAM, and the bytes.",
        "memory.panel:memory_panel",
    ),
    PanelSpec(
        "softmax", "Online softmax",
        "How the numbers of one row change with each tile (Milakov & Gimelshein 2018).",
        "softmax.panel:SoftmaxPanel", "softmax.panel:typeset_softmax",
    ),
    PanelSpec(
        "code", "Code",
        "The line of the paper, of the NumPy op and of the CUDA kernel that runs now.",
        "code.panel:CodePanel", "code.panel:code_model",
    ),
    PanelSpec(
        "formula", "Formula",
        "This op's update with the selected row's numbers, and its line in the paper.",
        "formula.panel:FormulaPanel", "formula.panel:make_formula_model",
    ),
    PanelSpec(
        "compare", "Compare",
        "The algorithms in lock-step on the same Q, K and V, and as a race.",
        "compare.panel:ComparePanel", large=True,
    ),
    PanelSpec(
        "traffic", "Bytes over the run",
        "Requested bytes of every tensor from the first visit to the last (Dao et al. 2022).",
        "traffic.panel:TrafficPanel", "traffic.panel:traffic_model",
    ),
    PanelSpec(
        "sweep", "Sweep",
        "What tile sizes, sequence length and head size do to bytes and time.",
        "sweep.study:SWEEP",
    ),
    PanelSpec(
        "roofline", "Roofline",
        "FLOPs for each byte against what the GPU can do (Williams et al. 2009).",
        "roofline.study:ROOFLINE",
    ),
    PanelSpec(
        "exactness", "Exactness",
        "How far rows are from float64, and what a mistake in the algorithm would do.",
        "exactness.panel:ExactnessPanel", "exactness.panel:exactness_model",
    ),
    PanelSpec(
        "schedule", "Schedule",
        "A model of which thread block runs on which multiprocessor when (Dao 2023, section 3.2).",
        "schedule.study:SchedulePanel", large=True,
    ),
    PanelSpec(
        "merge", "Merge",
        "Partials of a row or sums of a gradient: how each order rounds (Dao et al. 2023).",
        "merge.study:MERGE", large=True,
    ),
    PanelSpec(
        "pages", "Pages",
        "Sequences of a server in pages of one cache: taken, shared, copied and given back "
        "(Kwon et al. 2023).",
        "pages.study:PAGES", large=True,
    ),
    PanelSpec(
        "values", "Values",
        "Pinned cells: where each number came from, to copy or recompute in NumPy.",
        "values.panel:ValuesPanel",
    ),
    PanelSpec(
        "cache", "KV cache",
        "How the cache of a model grows, who fits, what a token reads; and what keeping less costs "
        "(Zhang et al. 2023).",
        "kv_cache.panel:CachePanel", large=True,
    ),
    PanelSpec(
        "heads", "Head sharing",
        "Which query heads share keys and values, and what that saves (Ainslie et al. 2023).",
        "heads.panel:HeadsPanel", large=True,
    ),
    PanelSpec(
        "inspector", "Attention inspector",
        "What each token reads: weights of every head, temperature, mask, entropy "
        "(Vaswani et al. 2017).",
        "inspector.panel:InspectorPanel", large=True,
    ),
    PanelSpec(
        "jobs", "Jobs of heads",
        "What each head reads, and when an induction head appears (Olsson et al. 2022).",
        "jobs.study:JobsPanel", large=True,
    ),
    PanelSpec(
        "sqrt_d", "Why √d",
        "Random queries and keys: what dividing by √d does (Vaswani et al. 2017, section 3.2.1).",
        "sqrt_d.study:SQRT_D",
    ),
    PanelSpec(
        "layer", "Layer",
        "From X through Q, K, V and the tiles to Y, and what each head gives "
        "(Vaswani et al. 2017, section 3.2.2).",
        "layer.study:LayerPanel", large=True,
    ),
    PanelSpec(
        "masks", "Masks",
        "Longformer, BigBird, packed documents, NSA, DSA: price and error beside dense "
        "(Beltagy et al. 2020).",
        "sparse.study:SparsePanel", large=True,
    ),
    PanelSpec(
        "kernel", "Kernel smoother",
        "Attention as a kernel smoother: keys as points, regression, and other scores "
        "(Tsai et al. 2019).",
        "smoothing.study:SMOOTHING", large=True,
    ),
    PanelSpec(
        "positions", "Positions",
        "RoPE as hands of clocks, one vector at all places, and scores beyond the trained length "
        "(Su et al. 2021).",
        "positions.study:POSITIONS", large=True,
    ),
    PanelSpec(
        "order", "Token order",
        "What shuffling the tokens does to rows of O, and which tokens layers let hear of which "
        "(Vaswani et al. 2017, section 3.5).",
        "order.study:ORDER", large=True,
    ),
    PanelSpec(
        "latent", "Latent",
        "One latent for all heads: attended to in two ways, and what sharing a cache costs "
        "(Liu et al. 2024).",
        "latent.study:LATENT", large=True,
    ),
    PanelSpec(
        "generation", "Generation",
        "A prompt, then token by token: what a step brings, reads and costs, with a cache and "
        "without (Shazeer 2019).",
        "generation.study:GenerationPanel", large=True,
    ),
    PanelSpec(
        "ring", "Ring",
        "The run dealt out to devices in a ring: who works when, what links carry, and the same O "
        "(Liu et al. 2023).",
        "ring.study:RING", large=True,
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """Panels with one button on the rail, as tabs."""

    name: str  # also the name of its icon in ``assets/icons``
    title: str  # on its button
    tip: str  # its purpose, in one sentence
    panels: tuple[str, ...]  # their names; at first the first one is in front
    board: bool = False  # whether the group belongs to the board, which is shown first


GROUPS = (
    GroupSpec("steps", "Steps", "The board, and the op at hand with its numbers.",
              ("formula", "values"), board=True),
    GroupSpec("memory", "Memory", "Tiles between HBM and SRAM, and bytes over the run.",
              ("memory", "traffic")),
    GroupSpec("softmax", "Softmax", "One row and its running maximum and sum.", ("softmax",)),
    GroupSpec("code", "Code", "The line that runs now: paper, NumPy, CUDA.", ("code",)),
    GroupSpec("compare", "Compare", "The algorithms side by side, and as a race.", ("compare",)),
    GroupSpec("performance", "Performance", "Sweep, roofline and schedule: what limits the run.",
              ("sweep", "roofline", "schedule")),
    GroupSpec("decoding", "Decoding", "A model's cache, its heads, tokens one by one, pages.",
              ("cache", "heads", "generation", "latent", "pages")),
    GroupSpec("inspector", "Inspector", "What each token reads, in every head.", ("inspector",)),
    GroupSpec("layer", "Layer", "The whole layer around the tiles, from X to Y.", ("layer",)),
)  # fmt: skip
"""The groups on the rail, with keys 1 to 9; the search has the other panels as well."""
GROUPED = {name: group for group in GROUPS for name in group.panels}
"""The group of a panel; panels without a group are missing."""
