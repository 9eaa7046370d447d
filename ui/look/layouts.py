"""The named layouts, one row each: which docks are where."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LayoutSpec:
    """One layout."""

    name: str  # name in settings and on the command line
    title: str  # on its button
    tip: str  # what it is for, in one sentence
    board: bool = True  # whether the board is in the middle; without it the docks fill the window
    left: tuple[str, ...] = ()  # docks at the left that open if the window is wide enough
    # docks at the right from top to bottom; several names of one place share it as tabs
    right: tuple[tuple[str, ...], ...] = ()
    heights: tuple[int, ...] = ()  # their shares of the height
    # the one in front if a low window has space for one place only; "" for the first
    front: str = ""
    stage: str = ""  # the one beside the board on the stage, likewise; "" for that of a low window
    width: float = 0.36  # share of the window's width that the right takes
    bottom: tuple[str, ...] = ()  # docks below the board, next to each other
    bottom_height: float = 0.15  # share of the window's height that they take
    # shares of the width of the docks at the bottom; empty: as Qt likes
    bottom_widths: tuple[int, ...] = ()
    bottom_tall: bool = False  # whether the bottom opens only if the window is tall enough

    @property
    def docks(self) -> tuple[str, ...]:
        """Names of all docks that the layout uses."""
        return (*self.left, *self.stack, *self.bottom)

    @property
    def extra(self) -> tuple[str, ...]:
        """Names of those at the bottom that open if the window is tall enough."""
        return self.bottom if self.bottom_tall else ()

    @property
    def largest(self) -> str:
        """Name of the first dock of the largest place: panels of other layouts open there."""
        if not self.right:
            return self.bottom[0]
        return max(zip(self.heights, self.right, strict=True))[1][0]

    def tabs(self, *, stage: bool = False) -> tuple[str, ...]:
        """Return the docks at the right if they share one place, the one in front first."""
        front = (stage and self.stage) or self.front
        return tuple(sorted(self.stack, key=lambda name: name != front))

    @property
    def stack(self) -> tuple[str, ...]:
        """Names of those at the right, from top to bottom."""
        return tuple(name for place in self.right for name in place)


LAYOUTS = (
    LayoutSpec(
        "steps", "Steps", "The tiles, their traffic and the softmax of one row, op by op.",
        left=("scenario",), right=(("memory",), ("softmax",)), heights=(40, 60), front="softmax",
        stage="memory",
        bottom=("traffic",), bottom_tall=True,
    ),
    LayoutSpec(
        "algorithm", "Algorithm", "The line of the paper, of NumPy and of CUDA that runs now.",
        right=(("code",), ("formula", "values")), heights=(55, 45), width=0.44,
    ),
    LayoutSpec(
        "memory", "Memory", "Bytes over the run, and how tiles and GPU decide them.",
        right=(("memory",), ("sweep", "roofline", "latent", "schedule", "pages")), heights=(42, 58),
        width=0.44, bottom=("traffic",), bottom_height=0.2, bottom_tall=True,
    ),
    LayoutSpec(
        "compare", "Compare", "The algorithms side by side on the same numbers.",
        board=False, right=(("compare",), ("traffic",)), heights=(72, 28),
    ),
    LayoutSpec(
        "exactness", "Exactness", "How far the result is from float64, and what mistakes do to it.",
        right=(("exactness", "merge"), ("softmax",)), heights=(52, 48), width=0.44,
    ),
    LayoutSpec(
        "cache", "Cache", "What a model keeps of every token, and which heads share it.",
        board=False, bottom=("cache", "heads"), bottom_height=0.9, bottom_widths=(58, 42),
    ),
    LayoutSpec(
        "inspector", "Inspector",
        "What each token reads, what heads do, why √d, and attention as a kernel smoother.",
        right=(("inspector", "jobs", "sqrt_d", "heads", "masks", "kernel", "positions", "order"),),
        heights=(100,), width=0.6,
    ),
    LayoutSpec(
        "layer", "Layer", "The whole layer around the tiles, from X to Y, and what its heads give.",
        board=False, right=(("layer", "generation", "ring"),), heights=(100,),
    ),
)  # fmt: skip

AT_LEFT = ("scenario",)
"""Docks that open at the left in every layout."""
LAYOUT_NAMES = tuple(spec.name for spec in LAYOUTS)
LAYOUT_PANELS = {spec.name: spec.docks for spec in LAYOUTS}
"""The panels that a step of a lesson may ask for."""


def layout_named(name: str) -> LayoutSpec:
    """Return a layout; the first one if there is none of this name."""
    return next((spec for spec in LAYOUTS if spec.name == name), LAYOUTS[0])
