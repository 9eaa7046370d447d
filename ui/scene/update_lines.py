"""The lines of the update with one row's numbers in them, as each algorithm computes it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.dtypes import F32
from simulator.row_report import RowReport
from simulator.snapshot import Snapshot
from ui.units import number_text

NOT_YET = "·"


_EXPRESSION = 22
"""Letters before the equals sign of a line of scalars, so that the signs stand in a column."""


@dataclass(frozen=True, slots=True)
class UpdateLine:
    """One line of the update.

    Attributes
    ----------
    latex : str
        The formula.
    texts : tuple of str
        It with this row's numbers, longest first; `NOT_YET` while they do not exist.
    reached, current : bool
        Whether it has been done in this visit; whether the current op does it.
    tall : bool
        Whether the formula needs more height than a line of text.
    """

    latex: str
    texts: tuple[str, ...]
    reached: bool
    current: bool
    tall: bool = False


def softmax_lines(snapshot: Snapshot, report: RowReport) -> tuple[UpdateLine, ...]:
    """Return the lines of the algorithm's update with the row's numbers at the cursor."""
    make = {"flash1": _flash1_lines, "flash2": _flash2_lines, "naive": _naive_lines}
    lines = make[snapshot.program.workload.algorithm](
        snapshot, report.row - snapshot.visit.rows.start
    )
    return tuple(lines)


def _line(
    snapshot: Snapshot, ops: str | tuple[str, ...], latex: str, *texts: str, tall: bool = False
) -> UpdateLine:
    """Return a line that the first of `ops` fills and all of them work on."""
    names = (ops,) if isinstance(ops, str) else ops
    reached = names[0] in snapshot.done
    current = snapshot.op.name in names
    return UpdateLine(latex, texts if reached else (NOT_YET,), reached, current, tall)


def _equation(expression: str, result: float) -> tuple[str, str]:
    value = number_text(result)
    return f"{expression:<{_EXPRESSION}} = {value:>6}", f"= {value:>6}"


def _minus(value: float) -> str:
    """Return a number to be taken away, in brackets where it is negative."""
    return _bracketed(number_text(value))


def _bracketed(text: str) -> str:
    return f"({text})" if text.startswith("−") else text


def _vector(values: F32, count: int) -> str:
    """Return the first `count` components of a row of numbers."""
    shown = " ".join(f"{number_text(float(x), 2):>5}" for x in values[:count])
    return f"[{shown} …]" if len(values) > count else f"[{shown}]"


def _vectors(values: F32, before: str = "") -> tuple[str, ...]:
    return tuple(before + _vector(values, count) for count in (4, 3, 2, 1))


def _sum(old: str, prev: F32, new: str, product: F32, total: F32, done: bool) -> tuple[str, ...]:
    """Return ``old × prev + new × product = total``; only its first term until `done`."""
    out = []
    for count in (3, 2, 1):
        text = f"{old}{_vector(prev, count)}"
        if done:
            text += f" + {new}{_vector(product, count)} = {_vector(total, count)}"
        out.append(text)
    first = f"{old}{_bracketed(number_text(float(prev[0]), 2))}"
    if done:
        added, result = (number_text(float(x[0]), 2) for x in (product, total))
        first += f" + {new}{_bracketed(added)} = {result}"
    return (*out, f"{first} …", f"{_vector(total if done else prev, 2)}", "…")


def _product(snapshot: Snapshot, r: int) -> F32:
    """Return the row's first components of ``P V`` of this tile."""
    cols = snapshot.visit.cols
    return np.asarray(snapshot.tile.p[r] @ snapshot.v[cols.start : cols.stop])


def _flash2_lines(snapshot: Snapshot, r: int) -> list[UpdateLine]:
    t = snapshot.tile
    old, top, tile_top = (float(x[r]) for x in (t.m_prev, t.m, t.m_tile))
    alpha, total, before, added = (float(x[r]) for x in (t.alpha, t.l, t.l_prev, t.l_tile))
    shift = f"exp({number_text(old)} − {_minus(top)})" if top > -np.inf else "no key seen"
    grow = f"{number_text(alpha)} × {number_text(before)} + {number_text(added)}"
    lines = [
        _line(
            snapshot, "row max", r"m \leftarrow \max(m_{\mathrm{old}},\, \max S)",
            *_equation(f"max({number_text(old)}, {number_text(tile_top)})", top),
        ),
        _line(
            snapshot, "row max", r"\alpha \leftarrow \exp(m_{\mathrm{old}} - m)",
            *_equation(shift, alpha),
        ),
        _line(snapshot, "exponentials", r"P \leftarrow \exp(S - m)", *_vectors(t.p[r])),
        _line(
            snapshot, "row sum", r"\ell \leftarrow \alpha\,\ell + \Sigma P",
            *_equation(grow, total),
        ),
    ]  # fmt: skip
    if "normalise" in snapshot.done:
        lines.append(_normalised(snapshot, r, r"O \leftarrow O / \ell", t.o[r], snapshot.o[r]))
        return lines
    done = "accumulate" in snapshot.done
    texts = _sum(f"{number_text(alpha)} × ", t.o_prev[r], "", _product(snapshot, r), t.o[r], done)
    latex = r"O \leftarrow \alpha\,O + P V"
    return [*lines, _line(snapshot, ("rescale", "accumulate"), latex, *texts)]


def _normalised(snapshot: Snapshot, r: int, latex: str, values: F32, divided: F32) -> UpdateLine:
    """Return the line that divides by l."""
    by = number_text(float(snapshot.tile.l[r]))
    texts = [f"{_vector(values, n)} / {by} = {_vector(divided, n)}" for n in (3, 2, 1)]
    return _line(snapshot, "normalise", latex, *texts, _vector(divided, 2), "…")


def _flash1_lines(snapshot: Snapshot, r: int) -> list[UpdateLine]:
    t = snapshot.tile
    old, top, tile_top = (float(x[r]) for x in (t.m_prev, t.m, t.m_tile))
    alpha, beta = float(t.alpha[r]), float(t.beta[r])
    total, before, added = (float(x[r]) for x in (t.l, t.l_prev, t.l_tile))
    factor = float(snapshot.rescale_factor[r])
    share = beta / total if total > 0 else 0.0
    scores = np.where(t.seen[r], t.s[r], np.float32(-np.inf))
    grow = (
        f"{number_text(alpha)} × {number_text(before)} + {number_text(beta)} × {number_text(added)}"
    )
    new = r"m_{\mathrm{new}}"
    done = "accumulate" in snapshot.done
    return [
        _line(
            snapshot, "row max", r"\tilde{m} \leftarrow \max S",
            *_equation(f"max {_vector(scores, 2)}", tile_top),
        ),
        _line(
            snapshot, "exponentials", r"\tilde{P} \leftarrow \exp(S - \tilde{m})",
            *_vectors(t.p[r]),
        ),
        _line(
            snapshot, "row sum", r"\tilde{\ell} \leftarrow \Sigma \tilde{P}",
            *_equation(f"Σ {_vector(t.p[r], 2)}", added),
        ),
        _line(
            snapshot, "combine", new + r" \leftarrow \max(m, \tilde{m})",
            *_equation(f"max({number_text(old)}, {number_text(tile_top)})", top),
        ),
        _line(
            snapshot, "combine",
            rf"\alpha, \beta \leftarrow e^{{m - {new}}}\!,\, e^{{\tilde{{m}} - {new}}}",
            f"{number_text(alpha)}, {number_text(beta)}",
        ),
        _line(
            snapshot, "combine",
            r"\ell_{\mathrm{new}} \leftarrow \alpha\,\ell + \beta\,\tilde{\ell}",
            *_equation(grow, total),
        ),
        _line(
            snapshot, ("rescale", "accumulate"),
            r"O \leftarrow \tfrac{\alpha\ell}{\ell_{\mathrm{new}}} O"
            r" + \tfrac{\beta}{\ell_{\mathrm{new}}} \tilde{P} V",
            *_sum(
                f"{number_text(factor)} × ", t.o_prev[r],
                f"{number_text(share)} × ", _product(snapshot, r), t.o[r], done,
            ),
            tall=True,
        ),
    ]  # fmt: skip


def _naive_lines(snapshot: Snapshot, r: int) -> list[UpdateLine]:
    t = snapshot.tile
    here = snapshot.visit.launch
    lines: list[UpdateLine] = []

    def add(launch: int, line: UpdateLine) -> None:
        if launch != here:
            name = snapshot.program.launches[launch].name
            line = UpdateLine(line.latex, (f"in launch {launch + 1}, {name}",), False, False)
        lines.append(line)

    scores = snapshot.scores[r] if snapshot.scores is not None else t.s[r]
    top, total = float(t.m[r]), float(t.l[r])
    add(0, _line(snapshot, ("scores", "mask"), r"S \leftarrow Q K^{\top}\!\cdot \mathrm{scale}",
                 *_vectors(scores)))  # fmt: skip
    add(1, _line(snapshot, "row max", r"m \leftarrow \max S",
                 *_equation(f"max {_vector(scores, 2)}", top)))  # fmt: skip
    add(1, _line(snapshot, "exponentials", r"P \leftarrow \exp(S - m)", *_vectors(t.p[r])))
    add(1, _line(snapshot, "row sum", r"\ell \leftarrow \Sigma P",
                 *_equation(f"Σ {_vector(t.p[r], 2)}", total)))  # fmt: skip
    weights = snapshot.weights[r] if snapshot.weights is not None else t.p[r]
    add(1, _normalised(snapshot, r, r"P \leftarrow P / \ell", t.p[r], weights))
    product = _product(snapshot, r)
    add(2, _line(snapshot, "accumulate", r"O \leftarrow O + P V",
                 *_sum("", t.o_prev[r], "", product, t.o[r], True)))  # fmt: skip
    return lines
