"""The plots of generation: costs of steps with a cache and without, and how equal rows are."""

from __future__ import annotations

from typing import get_args

from simulator.study.generation.steps import Generation, Quantity
from ui.look.units import (
    bytes_text,
    count_text,
    factor_text,
    flops_text,
    number_text,
    plural,
    tick_text,
    time_text,
)
from ui.plots.model import Axis, Curve, Dash, Level, Marker, PlotModel

QUANTITIES: tuple[Quantity, ...] = get_args(Quantity)
_TITLES: dict[Quantity, str] = {
    "bytes": "requested bytes", "flops": "FLOPs", "time": "time",
}  # fmt: skip
_FLOOR = 1e-9
"""Smallest difference that is drawn: less are the same bits, or nearly."""
_KINDS: tuple[tuple[bool, str, str, str, Dash, Marker], ...] = (
    (True, "with the cache", "cache", "K", "solid", "circle"),
    (False, "all rows again", "again", "bad", "dash", "square"),
)
_ROWS: tuple[tuple[str, str, str, Dash, Marker], ...] = (
    ("old rows without the mask", "no mask", "bad", "dash", "square"),
    ("new rows, from one causal pass", "new rows", "good", "solid", "circle"),
)


def figure_text(quantity: Quantity, value: float) -> str:
    """Return a figure of a step in words."""
    if quantity == "bytes":
        return bytes_text(value)
    return time_text(value) if quantity == "time" else flops_text(value)


def cost_plot(found: Generation, at: int, quantity: Quantity, *, summed: bool = False) -> PlotModel:
    """Return the costs of each step, with the cache and with all rows computed again.

    quantity: ``bytes``, ``flops`` or ``time``.
    summed: whether the costs are running sums over the steps after the prompt.
    """
    by = "by model" if found.modelled else "at least, by the data sheet"
    first, guessed = int(summed), f", {by}" if quantity == "time" else ""
    xs, curves = _keys(found)[first:], []
    for cached, name, short, role, dash, marker in _KINDS:
        ys = found.so_far(quantity, cached=cached)
        if not summed:
            ys = tuple(step.of(quantity, cached=cached) for step in found.steps)
        picks = tuple(range(first, len(found.steps)))
        details = tuple(
            (_heading(found, n, summed=summed), f"{name}: {figure_text(quantity, y)}")
            for n, y in zip(picks, ys, strict=True)
        )
        curves.append(Curve(name, short, role, xs, ys, dash, marker, 1.8, details, picks))
    ours, theirs = (found.total(quantity, cached=cached) for cached in (True, False))
    # The main figures come first: in a low panel the line is cut at its end.
    note = (
        f"{figure_text(quantity, ours)} with the cache, {figure_text(quantity, theirs)} with all "
        f"rows computed again, {factor_text(theirs / ours)}. "
        f"Attention alone, {plural(len(found.steps) - 1, 'step')} after the prompt. "
        f"{_source(found)}."
    )
    return PlotModel(
        name="What generation costs, step by step",
        x=_tokens(),
        y=Axis(
            f"{_TITLES[quantity]} of {'all steps so far' if summed else 'a step'}{guessed}",
            lambda y: figure_text(quantity, y),
            log=True,
            base=2 if quantity == "bytes" else 10,
        ),
        curves=tuple(curves),
        levels=(_here(found, at),) if at >= first else (),
        note=note,
        summary=note,
    )  # fmt: skip


def equal_plot(found: Generation, at: int, *, masked: bool = True) -> PlotModel:
    """Return how far each step's rows are from one causal pass, and old rows without the mask.

    masked: whether the picture beside the plot has the mask; words on its case come first.
    """
    curves = []
    for (name, short, role, dash, marker), values, first in zip(
        _ROWS, (found.unmasked, found.apart), (1, 0), strict=True
    ):  # old rows exist only after the prompt
        steps = range(first, len(found.steps))
        ys = tuple(max(float(values[n]), _FLOOR) for n in steps)
        details = tuple((_heading(found, n), f"{name}: {share_text(values[n])}") for n in steps)
        xs = _keys(found)[first:]
        curves.append(Curve(name, short, role, xs, ys, dash, marker, 1.8, details, tuple(steps)))
    same = (
        f"the rows of all steps are those of one pass, up to {share_text(float(found.apart.max()))}"
    )
    moved = (
        f"a new key moves old rows by up to {share_text(float(found.unmasked.max()))} of "
        "their length"
    )
    # In a low panel the line is cut at its end.
    answers = f"With the causal mask {same}. Without it {moved}."
    if not masked:
        answers = f"Without the causal mask {moved}. With it {same}."
    note = (
        f"{answers} Under the mask old rows never see new keys, so K and V can be kept. "
        f"{_source(found)}."
    )
    return PlotModel(
        name="Rows of steps beside those of one pass",
        x=_tokens(),
        y=Axis("relative difference of O", tick_text, log=True),
        curves=tuple(curves),
        levels=(_here(found, at),),
        note=note,
        summary=note,
    )


def _source(found: Generation) -> str:
    """Return the source of the queries, keys and values."""
    file = found.workload.file
    return "Random numbers" if file is None else file.title


def _keys(found: Generation) -> tuple[float, ...]:
    return tuple(float(step.keys) for step in found.steps)


def _tokens() -> Axis:
    return Axis("tokens so far", count_text, whole=True)


def _here(found: Generation, at: int) -> Level:
    words = "prompt" if not at else f"step {at}"
    return Level(float(found.steps[at].keys), words, words, "current", across=False)


def _heading(found: Generation, at: int, *, summed: bool = False) -> str:
    keys = count_text(found.steps[at].keys)
    if summed:
        return f"steps 1 to {at}, {keys} tokens"
    return f"prompt of {keys} tokens" if not at else f"step {at}, {keys} tokens"


def share_text(value: float) -> str:
    """Return a share in percent; a share of exactly 0 is ``0``."""
    return "0" if value == 0 else f"{number_text(100 * value, 2)} %"
