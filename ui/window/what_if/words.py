"""The strip's words about a run, and about the effect of a change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TypeVar

from simulator.study.what_if import AskedFor, RunFigures, WhatIf
from ui.look.units import count_text, decimal_bytes_text, time_text

Number = TypeVar("Number", int, float)
ARROW = "→"
SAME, UNKNOWN = "same", "not modelled"


@dataclass(frozen=True, slots=True)
class FigureWords:
    """One of the three figures of a run, in words."""

    name: str
    was: str  # before the change; empty if nothing is compared
    now: str
    after: str  # words behind the figure
    factor: str  # ``÷ 3.8``; empty if nothing is compared, or a figure is not known
    worse: bool | None  # whether more than before, by the words on show; None if the same
    bars: tuple[float, float]  # before and after, as shares of the longer
    tip: str


def figures_words(now: RunFigures | None, compared: WhatIf | None) -> tuple[FigureWords, ...]:
    """Return tiles, bytes and time of a run, and of the run before if both are compared."""
    was = compared.was if compared else None
    tiles, size, seconds = compared.factors if compared else (None, None, None)
    why = now.why if now else ""
    return (
        _figure("tiles", was.tiles if was else None, now.tiles if now else None, tiles,
                count_text, tip="Tiles that the run visits, of all heads."),
        _figure("HBM bytes", was.requested if was else None, now.requested if now else None, size,
                _bytes, tip="Bytes that the run asks of HBM, read and written."),
        _figure("time", was.seconds if was else None, now.seconds if now else None, seconds,
                time_text, after=(now.bound or UNKNOWN) if now else "",
                tip=why or "Seconds by a model of the GPU, and what bounds them."),
    )  # fmt: skip


def _bytes(count: int) -> str:
    return f"{count_text(count)} B" if count < 10_000 else decimal_bytes_text(count)


def _figure(
    name: str, was: Number | None, now: Number | None, factor: float | None,
    written: Callable[[Number], str], *, after: str = "", tip: str = "",
) -> FigureWords:  # fmt: skip
    said = "–" if now is None else written(now)
    if factor is None or was is None or now is None:
        return FigureWords(name, "", said, after, "", None, (0.0, 0.0), tip)
    before = written(was)
    same = before == said
    longest = max(was, now) or 1
    number, _, unit = before.rpartition(" ")
    if number and said.endswith(f" {unit}"):  # the unit once only
        before = number
    words = SAME if same else factor_words(factor)
    worse = None if same else factor > 1
    return FigureWords(name, before, said, after, words, worse, (was / longest, now / longest), tip)


def factor_words(factor: float) -> str:
    """Return a factor in words, below 1 as a division: ``× 2.1``, ``÷ 3.8``, ``÷ 1.04``."""
    sign, size = ("×", factor) if factor >= 1 else ("÷", 1 / factor)
    digits = 2 if size < 1.095 else 1 if size < 99.95 else 0
    return f"{sign} {size:,.{digits}f}".replace(",", "\u2009")


def tile_text(rows: int, cols: int) -> str:
    """Return the size of a tile: ``16 × 16``."""
    return f"{rows} × {cols}"


def _changes(was: AskedFor, now: AskedFor) -> list[str]:
    """Return which settings differ, a tile and a number of tokens as one."""
    one = {"cols": "rows", "queries": "keys"}
    differ = (each.name for each in fields(AskedFor)
              if getattr(was, each.name) != getattr(now, each.name))  # fmt: skip
    return list(dict.fromkeys(one.get(name, name) for name in differ))


def back_words(was: AskedFor, now: AskedFor) -> str:
    """Return the settings to which one goes back: ``back to 16 × 16``."""
    changed = _changes(was, now)
    said = {
        "rows": tile_text(was.rows, was.cols),
        "causal": "causal" if was.causal else "not causal",
        "keys": f"N {count_text(was.keys)}",
        "width": f"d {was.width}",
        "name": "the sentence" if was.name else "the input",
        "gpu": was.gpu,
    }
    return f"back to {said[changed[0]] if len(changed) == 1 else 'before'}"


def question_words(was: AskedFor, now: AskedFor) -> str:
    """Return the question that was asked: ``What if the tile were larger?``."""
    changed = _changes(was, now)
    if len(changed) != 1:
        return "What if?"
    larger = now.rows * now.cols > was.rows * was.cols
    said = {
        "rows": f"the tile were {'larger' if larger else 'smaller'}",
        "causal": f"the mask were {'' if now.causal else 'not '}causal",
        "keys": f"there were {count_text(now.keys)} tokens",
        "width": f"each head were {now.width} wide",
        "name": "it were another sentence",
        "gpu": f"it ran on {now.gpu}",
    }
    return f"What if {said[changed[0]]}?"
