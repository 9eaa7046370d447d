"""What is said of hands and of the scores of one vector at all places."""

from __future__ import annotations

import math

from simulator.study.positions.scores import PLACES, PlacedScores, PositionsState
from ui.look.units import count_text, number_text
from ui.panels.study import Words

_ROUNDING = 1e-12
"""What differs by less does not differ: float64 rounds."""
_HANDS = {
    "angles": "By how much each place turns a pair, from twelve o'clock",
    "before": "The query of every row before it is turned",
    "turned": "The query of every row, each pair turned by its place",
}


def row_name(state: PositionsState) -> str:
    """Return the row in words: ``row 8 “it”``."""
    token, name = state.workload.query_token(state.row), f"row {count_text(state.row)}"
    return f"{name} “{token}”" if token else name


def clock_words(state: PositionsState) -> Words:
    """Return what stands around the clocks."""
    last, theta = len(state.speeds) - 1, f"θ = {state.rotary.theta:g}"
    return Words(_HANDS[state.hands], sentences=(
        "Two numbers of a query or key are a hand. Pair 0 turns once in "
        f"{number_text(state.turn(0), 2)} tokens, pair {last} once in "
        f"{count_text(state.turn(last))} tokens: fast hands tell neighbours apart, slow "
        "ones near from far. A place changes a score only through the angle between the hands of "
        "query and key.",
        f"This run turns Q and K so, {theta}." if state.workload.position else
        f"The model that reads the text turns Q and K so, {theta}." if state.workload.typed else
        f"This run has no rotary positions: shown are RoPE's with {theta}.",
    ))  # fmt: skip


def map_words(state: PositionsState) -> Words:
    """Return what stands around the maps."""
    errors = ", ".join(f"{number_text(off, 2)} in {dtype}" for dtype, off in state.errors.items())
    query = f"The query of {row_name(state)} at {PLACES} places"
    return Words((f"{query}, as query and as key", query), sentences=(
        "With RoPE scores depend on the distance alone, so every diagonal has one colour "
        "(Toeplitz). What is added to the vectors, sinusoids or a learned table, meets the vector "
        "itself too.",
        f"A shift of all places by {count_text(state.shift)} leaves them unmoved but for rounding: "
        f"with RoPE by {errors}, as a share of the largest.",
    ))  # fmt: skip


def wave_words(state: PositionsState) -> Words:
    """Return what stands around the matrix of sinusoids."""
    width = state.workload.head_dim
    last = 2 * math.pi * 10000 ** (2 * ((width + 1) // 2 - 1) / width)
    return Words(f"Sinusoids of {PLACES} places, {width} numbers each", sentences=(
        "Two columns beside each other are the sine and the cosine of one angle. The first pair "
        f"turns once in 6.28 places, the last once in {count_text(round(last))}.",
        "These rows are added to the vectors of tokens before the first layer. RoPE turns queries "
        "and keys by such angles instead.",
    ))  # fmt: skip


def new_pairs(state: PositionsState) -> str:
    """Return in words how many pairs reach new angles, under each way to use longer texts."""
    pairs = len(state.speeds)
    return ", ".join(
        f"{way.new_angles(state.trained, state.factor, state.speeds)} of {pairs} with {way.title}"
        for way in state.ways
    )


def dial_words(state: PositionsState) -> Words:
    """Return what stands around the dials."""
    trained, longer = count_text(state.trained), count_text(state.trained * state.factor)
    title = f"Angles in a text of {longer} tokens, trained on {trained}"
    return Words((title, f"Angles in {longer} tokens"), sentences=(
        "A pair that has turned once in training has shown all angles. A slower pair has not: in "
        f"a longer text it reaches angles that are new. Pairs that do: {new_pairs(state)}.",
        "Interpolation slows all pairs alike, NTK-aware scaling the slow ones most; YaRN leaves "
        "fast pairs as they are.",
    ))  # fmt: skip


def figures(kind: PlacedScores) -> tuple[tuple[str, ...], ...]:
    """Return what is said of a map, in two lines, longest first."""
    off, moved = (
        "0" if value < _ROUNDING else f"{100 * value:.0f} %" if value >= 0.01 else
        number_text(value, 2)
        for value in (kind.off, kind.moved)
    )  # fmt: skip
    return (
        (f"differs along diagonals by {off}", f"along diagonals {off}", f"diagonals {off}", ""),
        (f"a shift moves it by {moved}", f"shift moves {moved}", f"shift {moved}", ""),
    )
