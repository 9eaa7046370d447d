"""The named layouts, one row each, with the places of docks."""

from __future__ import annotations

from dataclasses import dataclass

BESIDE, AT_MOST = 0.28, 0.345
"""Share of the width beside the rail for docks at the right, and their largest share: the board
keeps 65 %."""

_ALONE = "inspector"
"""The panel whose place other panels share when a layout has the board alone."""


@dataclass(frozen=True, slots=True)
class LayoutSpec:
    """One layout."""

    name: str  # name in settings and on the command line
    title: str  # on its button
    tip: str  # its purpose, in one sentence
    board: bool = True  # whether the board is in the middle; without it the docks fill the window
    # whether the board does not speak of memory, and weights have the inspector's colours
    plain: bool = False
    # docks at the right from top to bottom; several names of one place share it as tabs
    right: tuple[tuple[str, ...], ...] = ()
    heights: tuple[int, ...] = ()  # their shares of the height
    # the dock in front if a low window has space for one place only; "" for the first
    front: str = ""
    stage: str = ""  # the dock beside the board on the stage, likewise; "" for `front`
    width: float = BESIDE  # share of the width beside the rail for docks at the right
    bottom: tuple[str, ...] = ()  # docks below the board, next to each other
    bottom_height: float = 0.15  # share of the window's height that they take
    # shares of the width of the docks at the bottom; empty: as Qt likes
    bottom_widths: tuple[int, ...] = ()

    @property
    def docks(self) -> tuple[str, ...]:
        """Names of all docks that the layout uses."""
        return (*self.stack, *self.bottom)

    @property
    def largest(self) -> str:
        """Name of the first dock of the largest place: panels of other layouts open there."""
        if not self.right:
            return self.bottom[0] if self.bottom else _ALONE
        return max(zip(self.heights, self.right, strict=True))[1][0]

    def tabs(self, *, stage: bool = False) -> tuple[str, ...]:
        """Return the docks at the right if they share one place, the front dock first."""
        front = (stage and self.stage) or self.front
        return tuple(sorted(self.stack, key=lambda name: name != front))

    @property
    def stack(self) -> tuple[str, ...]:
        """Names of the docks at the right, from top to bottom."""
        return tuple(name for place in self.right for name in place)


LAYOUTS = (
    LayoutSpec(
        "steps", "Steps", "The tiles, their traffic and the softmax of one row, op by op.",
        right=(("memory", "traffic"), ("softmax",)), heights=(40, 60), front="softmax",
        stage="memory",
    ),
    LayoutSpec(
        "plain", "Plain", "The board alone: queries, keys, values, weights and outputs.",
        plain=True,
    ),
    LayoutSpec(
        "algorithm", "Algorithm", "The line of the paper, of NumPy and of CUDA that runs now.",
        right=(("code",), ("formula", "values")), heights=(55, 45), width=AT_MOST,
    ),
    LayoutSpec(
        "memory", "Memory", "Bytes over the run, and how tiles and GPU decide them.",
        right=(("memory", "traffic"), ("sweep", "roofline", "schedule", "latent", "pages")),
        heights=(42, 58), width=AT_MOST,
    ),
    LayoutSpec(
        "compare", "Compare", "The algorithms side by side on the same numbers.",
        board=False, right=(("compare",), ("traffic",)), heights=(72, 28),
    ),
    LayoutSpec(
        "exactness", "Exactness", "How far the result is from float64, and what mistakes do to it.",
        right=(("exactness", "merge"), ("softmax",)), heights=(52, 48), width=AT_MOST,
    ),
    LayoutSpec(
        "cache", "Cache", "What a model keeps of every token, and which heads share it.",
        board=False, bottom=("cache", "heads"), bottom_height=0.9, bottom_widths=(58, 42),
    ),
    LayoutSpec(
        "inspector", "Inspector",
        "What each token reads, what heads do, why √d, and attention as a kernel smoother.",
        plain=True,
        right=(("inspector", "jobs", "sqrt_d", "heads", "masks", "kernel", "positions", "order"),),
        heights=(100,), width=0.56,
    ),
    LayoutSpec(
        "layer", "Layer", "The whole layer around the tiles, from X to Y, and what its heads give.",
        board=False, right=(("layer", "generation", "ring"),), heights=(100,),
    ),
)  # fmt: skip

AT_LEFT = ("scenario",)
"""Docks that open at the left in every layout."""
LAYOUT_NAMES = tuple(spec.name for spec in LAYOUTS)
LAYOUT_PANELS = {spec.name: (*spec.docks, *AT_LEFT) for spec in LAYOUTS}
"""The panels that a step of a lesson may ask for."""


def layout_named(name: str) -> LayoutSpec:
    """Return a layout; the first one if there is none of this name."""
    return next((spec for spec in LAYOUTS if spec.name == name), LAYOUTS[0])
