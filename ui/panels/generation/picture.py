"""Paints one step of generation: its row of weights below those of old rows, K and V growing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QRectF, QSizeF
from PySide6.QtGui import QColor, QPainter

from simulator.study.generation.steps import Generation, Step
from ui.look.draw import LEFT, RIGHT, draw_text, outline, text_width
from ui.look.heat import colour_map, heat_image, signed_limit
from ui.look.names import first_that_fits, fitting, readable
from ui.look.theme import LABEL, Style
from ui.look.units import count_text

MIN_SIZE = QSizeF(430, 150)
"""Below this the text shrinks."""
_STRIP = 0.12
"""Share of the room that K, V, Q and O take each."""
_LEAST_BAND = 3.0
"""Least height of a row that is outlined, at scale 1."""


@dataclass(frozen=True, eq=False)
class GenerationState:
    """What the picture shows.

    Attributes
    ----------
    found : Generation
        All steps.
    at : int
        Which of them; 0 is the prompt.
    k, v : ndarray
        (N, d) and (N, dv) float32 of the head.
    """

    found: Generation
    at: int
    k: np.ndarray
    v: np.ndarray

    @property
    def step(self) -> Step:
        """The step that is shown."""
        return self.found.steps[self.at]

    @property
    def words(self) -> tuple[str, ...]:
        """What the step does, longest first."""
        step, w = self.step, self.found.workload
        if not self.at:
            return (
                f"The prompt: {count_text(step.keys)} rows in one pass; K and V of all are kept",
                f"The prompt: {count_text(step.keys)} rows in one pass",
                "The prompt",
            )
        names = [w.key_token(row) for row in step.rows]
        said = f" “{''.join(names).replace('##', '')}”" if any(names) else ""
        brought = "one query" if len(step.rows) == 1 else f"{len(step.rows)} queries at once"
        new = (
            "a column of K and V joins"
            if len(step.rows) == 1
            else "as many columns of K and V join"
        )
        whole = f"Step {self.at} of {len(self.found.steps) - 1}"
        return (
            f"{whole}{said}: {brought}, {count_text(step.keys)} keys; {new} the cache",
            f"{whole}: {brought}, {count_text(step.keys)} keys",
            whole,
        )


def paint_generation(painter: QPainter, state: GenerationState, style: Style, rect: QRectF) -> None:
    """Paint the weights of all rows so far, the newest marked, and K and V as they are kept."""
    style = readable(fitting(style, rect, MIN_SIZE))
    px, theme, step = style.px, style.theme, state.step
    bold, small = style.text_font(12.5, bold=True), style.text_font(LABEL)
    line, n = px(17), len(state.k)
    title = first_that_fits(state.words, rect.width(), bold)
    draw_text(painter, QRectF(rect.x(), rect.y(), rect.width(), line), title, bold, theme.text)
    left = text_width(small, "prompt") + px(10)
    high = rect.height() - line - px(6)
    strip = _STRIP * high
    wide = rect.width() - left - px(4)
    top = rect.y() + line + px(4)
    box = QRectF(rect.x() + left, top + strip + px(5), wide, high - 2 * strip - px(12))
    cell = QSizeF(box.width() / n, box.height() / n)
    painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
    keys_box = QRectF(box.x(), top, wide, strip)
    values_box = QRectF(box.x(), box.bottom() + px(5), wide, strip)
    for name, values, place in (("K", state.k, keys_box), ("V", state.v, values_box)):
        painter.fillRect(place, QColor(theme.empty))
        kept = values[: step.keys]
        limit = signed_limit(values) or 1.0
        part = QRectF(place.x(), place.y(), cell.width() * step.keys, place.height())
        painter.drawImage(part, heat_image(kept.T, -limit, limit, colour_map(theme, name)))
        new = QRectF(part.x() + cell.width() * step.rows.start, place.y(),
                     cell.width() * len(step.rows), place.height())  # fmt: skip
        if state.at:
            _mark(painter, new, QColor(theme.tensor(name)), style)
        label = QRectF(rect.x(), place.y(), left - px(5), place.height())
        draw_text(painter, label, f"{name}ᵀ", bold, theme.tensor(name), RIGHT)
    painter.fillRect(box, QColor(theme.empty))
    seen = state.found.weights[: step.keys, : step.keys]
    part = QRectF(box.x(), box.y(), cell.width() * step.keys, cell.height() * step.keys)
    # The map is of square roots, so that small weights are seen; later keys are blank.
    later = np.triu(np.ones(seen.shape, dtype=bool), 1)
    shades = np.where(later, np.float32(np.nan), np.sqrt(seen))
    painter.drawImage(part, heat_image(shades, 0.0, 1.0, colour_map(theme, "P")))
    row = QRectF(box.x(), box.y() + cell.height() * step.rows.start, part.width(),
                 cell.height() * len(step.rows))  # fmt: skip
    prompt = cell.height() * state.found.steps[0].keys
    for words, y, tall, ink in (
        ("prompt", box.y(), prompt, theme.muted),
        ("steps", box.y() + prompt, cell.height() * (step.keys - state.found.steps[0].keys),
         theme.text),
    ):  # fmt: skip
        if tall >= line:
            place = QRectF(rect.x(), y, left - px(5), min(tall, box.height()))
            draw_text(painter, place, words, small, ink, RIGHT)
    for place in (box, keys_box, values_box):
        outline(painter, place.adjusted(-1, -1, 1, 1), theme.grid)
    if state.at:
        _mark(painter, row, QColor(theme.current), style)
        side = QRectF(row.right() + px(5), row.y() - line / 2, box.right() - row.right(), line)
        side.moveTop(min(max(side.y(), box.y()), box.bottom() - line))
        alone = "this row alone is new" if len(step.rows) == 1 else "these rows alone are new"
        if side.width() > text_width(small, alone):
            draw_text(painter, side, alone, small, theme.current, LEFT)


def _mark(painter: QPainter, place: QRectF, ink: QColor, style: Style) -> None:
    """Outline a row or a column, at least as wide as can be seen."""
    least = style.px(_LEAST_BAND)
    x, y = max(least - place.width(), 0) / 2, max(least - place.height(), 0) / 2
    outline(painter, place.adjusted(-x, -y, x, y), ink, style.px(1.5))
