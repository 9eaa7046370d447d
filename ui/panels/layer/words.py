"""The words and formulas of a layer: its tensors, its stages, what they cost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from simulator.base.dtypes import F32
from simulator.problem.workload import Workload
from simulator.run.whole_layer import LayerRun
from ui.look.units import bytes_text, count_text, number_text

NAMES = {
    "x": "X", "wq": "W_Q", "wk": "W_K", "wv": "W_V", "q": "Q", "k": "K", "v": "V", "o": "O_h",
    "concat": "O", "wo": "W_O", "y": "Y", "bq": "b_Q", "bk": "b_K", "bv": "b_V", "bo": "b_O",
    "m": "m", "l": r"\ell", "lse": r"\mathrm{LSE}", "qk": "Q K^T", "s": "S", "a": "P",
}  # fmt: skip
"""Tensors in LaTeX."""
PLAIN = {**NAMES, "o": "O of each head", "concat": "concat", "l": "ℓ", "lse": "LSE", "qk": "QKᵀ"}
"""Tensors in a line of text."""
MOST_TERMS = 8
"""Most terms of a sum that is written out."""
TITLES = {
    "q": "queries: X times W_Q, cut into heads",
    "k": "keys: X times W_K, cut into heads",
    "v": "values: X times W_V, cut into heads",
    "o": "attention of each head, tile by tile",
    "concat": "the heads side by side",
    "y": "W_O mixes the heads",
}
"""Titles of the stages."""
CIRCUITS = (r"W_Q W_K^T", r"A - A^T", r"W_V W_O")
"""The matrices of a head."""
_OF_HEAD = (r"Q_h", r"K_h^T", r"V_h", r"\mathrm{softmax}", *(f"O_{{{n}}}" for n in range(8)))


def formula_of(run: LayerRun, stage: str, w: Workload) -> str:
    """Return the formula of a stage in LaTeX; `w` says what turns products into scores."""
    added = "".join(f" + {NAMES[bias]}" for bias in biases_of(run, stage))
    if stage == "o":
        scores = r"Q_h K_h^T / \sqrt{d}"
        if w.changes_scores:
            scores = r"\mathrm{score}(Q_h K_h^T)"
        elif not math.isclose(w.scoring.factor, w.head_dim**-0.5):
            scores = r"c \, Q_h K_h^T"
        return rf"O_h = \mathrm{{softmax}}({scores}) \, V_h"
    if stage in ("concat", "y"):
        return r"O = \mathrm{concat}(O_1, \dots, O_h)" if stage != "y" else f"Y = O W_O{added}"
    made = f"X W_{NAMES[stage]}{added}"  # RoPE turns a row by its place p
    return f"{NAMES[stage]} = " + (rf"R_p \, ({made})" if run.layer.turns(stage) else made)


def latex_of(run: LayerRun, w: Workload) -> list[str]:
    """Return all formulas of a layer, to typeset them ahead of painting."""
    formulas = (formula_of(run, stage.name, w) for stage in run.stages)
    return [*NAMES.values(), *CIRCUITS, *_OF_HEAD, *formulas]


def biases_of(run: LayerRun, stage: str) -> list[str]:
    """Return which of the tensors that a stage takes are biases."""
    return [name for name in run.stage(stage).takes if len(run.shapes[name]) == 1]


def shape_text(run: LayerRun, name: str) -> str:
    """Return a tensor's shape as it is drawn: ``3×4``; for two heads ``2 · 3×4``."""
    shape = run.shapes[name]
    rows = "×".join(map(count_text, shape[-2:]))
    return f"{count_text(shape[0])} · {rows}" if len(shape) == 3 and shape[0] > 1 else rows


def cell_words(value: float) -> str:
    """Return a number with at most three decimals and no 0 at its end: ``0.458``, ``0.5``."""
    text = number_text(value, 3)
    if "." in text and "e" not in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text == "−0" else text


def weight_of(run: LayerRun, stage: str) -> F32 | None:
    """Return the weight that a stage multiplies by; None for the concat and the tiles."""
    takes = run.stage(stage).takes
    return next((run.layer.weights[name] for name in takes if name in run.layer.weights), None)


def _turn_text(run: LayerRun, stage: str, row: int, col: int) -> str:
    """Return how a number of Q or K is made by turning the two numbers of its pair."""
    rotary, depth = run.layer.position, run.shapes[stage][-1]
    assert rotary is not None
    column = col % depth
    partner = rotary.partner(column)
    made = run.flat[stage][row, col]
    before = run.layer.product(stage)[row]
    words = f"{PLAIN[stage]}[{row}, {col}]"
    if partner is None:
        return f"{words} = {cell_words(float(made))}, which is not turned"
    angle = float(rotary.angles(np.array([row]))[0, rotary.pair_of(column)])
    own, other = (cell_words(float(before[col - column + n])) for n in (column, partner))
    first = column < partner
    return (
        f"{words} = {own}·cos {cell_words(angle)} {'−' if first else '+'} "
        f"{other}·sin {cell_words(angle)} = {cell_words(float(made))}"
    )


def sum_text(run: LayerRun, stage: str, row: int, col: int = 0) -> str:
    """Return how a stage makes a number, if it is a sum of few terms; else ""."""
    weight = weight_of(run, stage)
    if weight is not None and run.layer.turns(stage):
        return _turn_text(run, stage, row, col)
    if weight is None or len(weight) > MOST_TERMS:
        return ""
    taken = run.stage(stage).takes[0]
    left = run.layer.x if taken == "x" else run.flat[taken]
    biases = [float(run.layer.weights[bias][col]) for bias in biases_of(run, stage)]
    terms = zip(left[row], weight[:, col], strict=True)
    made = run.flat.get(stage, run.arrays[stage])[row, col]
    return sum_words(f"{PLAIN[stage]}[{row}, {col}]", terms, biases, float(made))


def sum_words(
    name: str, terms: Iterable[tuple[float, float]], biases: Sequence[float], made: float
) -> str:
    """Return a sum of products, and of biases, written out."""
    said = [f"{cell_words(float(a))}·{cell_words(float(b))}" for a, b in terms]
    return f"{name} = {' + '.join([*said, *map(cell_words, biases)])} = {cell_words(made)}"


def facts(run: LayerRun, stage: str) -> list[str]:
    """Return shapes, costs and error of a stage, most important first."""
    one = run.stage(stage)
    taken = ", ".join(f"{PLAIN[name]} {shape_text(run, name)}" for name in one.takes)
    out = [f"{taken} → {PLAIN[stage]} {shape_text(run, stage)}"]
    out.append(f"{count_text(one.flops)} FLOPs" if one.flops else "no FLOPs: only places change")
    if one.bytes is not None and not run.plain:
        out.append(f"{bytes_text(one.bytes)} requested of HBM")
    out.append(f"off float64 by {number_text(one.error)}" if one.error else "exact in float64")
    if stage == run.stages[-1].name:
        out.append(f"from X on by {number_text(run.error)}")
    return [*out, one.cites]


def title_of(run: LayerRun, stage: str) -> str:
    """Return the title of a stage."""
    title = TITLES[stage].removesuffix(", tile by tile" * run.plain)
    return (
        title.replace(", cut", ", turned by their places, cut") if run.layer.turns(stage) else title
    )
