"""The words and formulas of a layer: its tensors, its stages, what they cost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from simulator.problem.workload import Workload
from simulator.run.whole_layer import LayerRun
from ui.look.units import bytes_text, count_text, number_text

NAMES = {
    "x": "X", "wq": "W_Q", "wk": "W_K", "wv": "W_V", "q": "Q", "k": "K", "v": "V", "o": "O_h",
    "concat": "O", "wo": "W_O", "y": "Y", "bq": "b_Q", "bk": "b_K", "bv": "b_V", "bo": "b_O",
    "m": "m", "l": r"\ell", "lse": r"\mathrm{LSE}",
}  # fmt: skip
"""How tensors are typeset."""
PLAIN = {**NAMES, "o": "O of each head", "concat": "concat", "l": "ℓ", "lse": "LSE"}
"""How they are called in a line of text."""
MOST_TERMS = 8
"""Terms of a sum that is written out."""
TITLES = {
    "q": "queries: X times W_Q, cut into heads",
    "k": "keys: X times W_K, cut into heads",
    "v": "values: X times W_V, cut into heads",
    "o": "attention of each head, tile by tile",
    "concat": "the heads side by side",
    "y": "W_O mixes the heads",
}
"""What a stage does."""
_TURNED = r"R_p \, ({})"
"""Formula of a matrix that RoPE turns by its place p."""
_PRODUCT = {"q": ("Q", "Q"), "k": ("K", "K"), "v": ("V", "V")}
_SCORES = (r"Q_h K_h^T / \sqrt{d}", r"c \, Q_h K_h^T", r"\mathrm{score}(Q_h K_h^T)")
"""The usual scores, those with another scale, and those that are changed after it."""
_TILES = tuple(rf"O_h = \mathrm{{softmax}}({scores}) \, V_h" for scores in _SCORES)
_CONCAT = r"O = \mathrm{concat}(O_1, \dots, O_h)"


_OF_HEAD = (r"Q_h", r"K_h^T", r"V_h", r"\mathrm{softmax}", *(f"O_{{{n}}}" for n in range(8)))
CIRCUITS = (r"W_Q W_K^T", r"A - A^T", r"W_V W_O")
"""The matrices of a head."""


def formula_of(run: LayerRun, stage: str, w: Workload | None = None) -> str:
    """Return what a stage computes, to be typeset; `w` says what turns products into scores."""
    bias = NAMES[biases[0]] if (biases := biases_of(run, stage)) else ""
    added = f" + {bias}" if bias else ""
    if stage in _PRODUCT:
        product = f"X W_{NAMES[stage]}{added}"
        turned = run.layer.turns(stage)
        return f"{NAMES[stage]} = {_TURNED.format(product) if turned else product}"
    return {"o": _TILES[_kind(w)], "concat": _CONCAT}.get(stage, f"Y = O W_O{added}")


def _kind(w: Workload | None) -> int:
    """Return which of `_SCORES` a workload has."""
    if w is None or not w.changes_scores:
        return int(w is not None and not math.isclose(w.scoring.factor, w.head_dim**-0.5))
    return 2


LATEX = tuple(
    [*NAMES.values(), *CIRCUITS, *_OF_HEAD, *_TILES, _CONCAT]
    + [f"{n} = X W_{n}{b}" for n in "QKV" for b in ("", f" + b_{n}")]
    + [f"{n} = {_TURNED.format(f'X W_{n}{b}')}" for n in "QK" for b in ("", f" + b_{n}")]
    + [f"Y = O W_O{b}" for b in ("", " + b_O")]
)
"""All that is typeset, ahead of painting."""


def biases_of(run: LayerRun, stage: str) -> list[str]:
    """Return which of the tensors that a stage takes are biases."""
    return [name for name in run.stage(stage).takes if len(run.shapes[name]) == 1]


def shape_text(run: LayerRun, name: str) -> str:
    """Return a tensor's shape as it is drawn: ``3×4``; of two heads ``2 · 3×4``."""
    shape = run.shapes[name]
    rows = "×".join(map(count_text, shape[-2:]))
    return f"{count_text(shape[0])} · {rows}" if len(shape) == 3 and shape[0] > 1 else rows


def cell_words(value: float) -> str:
    """Return a number with at most three decimals and no 0 at its end: ``0.458``, ``0.5``."""
    text = number_text(value, 3)
    if "." in text and "e" not in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text == "−0" else text


def error_text(error: float) -> str:
    """Return a difference from float64."""
    return "exact" if error == 0 else number_text(error)


def weight_of(run: LayerRun, stage: str) -> str | None:
    """Return the weight that a stage multiplies by; None if it has none."""
    takes = run.stage(stage).takes
    return next((name for name in takes if name in run.layer.weights), None)


def term_count(run: LayerRun, stage: str) -> int:
    """Return of how many products each number is a sum; 0 where numbers only change places."""
    weight = weight_of(run, stage)
    return 0 if weight is None else len(run.layer.weights[weight])


def _turn_text(run: LayerRun, stage: str, row: int, col: int) -> str:
    """Return how a number of Q or K is made of the two numbers of its pair, which are turned."""
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
    if weight is None or term_count(run, stage) > MOST_TERMS:
        return ""
    taken, weights = run.stage(stage).takes[0], run.layer.weights
    left = run.layer.x if taken == "x" else run.flat[taken]
    made = run.flat.get(stage, run.arrays[stage])[row, col]
    biases = [float(weights[bias][col]) for bias in biases_of(run, stage)]
    terms = zip(left[row], weights[weight][:, col], strict=True)
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
    if one.bytes is not None:
        out.append(f"{bytes_text(one.bytes)} requested of HBM")
    out.append(f"off float64 by {error_text(one.error)}" if one.error else "exact in float64")
    if stage == run.stages[-1].name:
        out.append(f"from X on by {error_text(run.error)}")
    return [*out, one.cites]


def title_of(run: LayerRun, stage: str) -> str:
    """Return what a stage does."""
    title = TITLES[stage]
    return (
        title.replace(", cut", ", turned by their places, cut") if run.layer.turns(stage) else title
    )
