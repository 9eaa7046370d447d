"""Tools for drawing gestures: the op, its places on the board, and words beside the matrices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter

from simulator.run.motion import Motion
from ui.board.key_state import state_places
from ui.board.layout import BoardLayout
from ui.board.marks import paint_bands, paint_current_outline, paint_row_mark
from ui.look.draw import CENTRE, card, draw_text, mixed, text_width, wrapped
from ui.look.theme import Style
from ui.look.units import number_text

MOST_RAYS = 24
"""Most rows with something in flight at once; of more rows, some are drawn."""


@dataclass(frozen=True, slots=True)
class GestureScene:
    """The painter, the op and the places of a gesture."""

    painter: QPainter  # painter, lay: where and how
    lay: BoardLayout
    motion: Motion  # the op
    share: float  # share of the op that has been done
    tile: QRectF  # where the current tile is seen: in the matrix, or magnified beside it
    row: int  # the query row that is explained

    @property
    def style(self) -> Style:
        """The style of the board."""
        return self.lay.style

    def column(self, n: int, count: int = 1) -> QRectF:
        """Return some columns of the tile, `n` counted in the tile."""
        wide = self.tile.width() / len(self.motion.after.visit.cols)
        return QRectF(
            self.tile.left() + n * wide, self.tile.top(), count * wide, self.tile.height()
        )

    def cell(self, r: int, c: int) -> QRectF:
        """Return a cell of the tile, counted in the tile."""
        high = self.tile.height() / len(self.motion.after.visit.rows)
        across = self.column(c)
        return QRectF(across.left(), self.tile.top() + r * high, across.width(), high)

    def beside(self, name: str, r: int) -> QRectF:
        """Return the place of row `r` of the tile in box ``m``, ``l``, ``O`` or ``Q``."""
        row = self.motion.after.visit.rows.start + r
        return self.lay.row_band(name, range(row, row + 1))

    @property
    def chosen(self) -> int:
        """The row of the tile that words are about: the explained row, else the middle one."""
        rows = self.motion.after.visit.rows
        return self.row - rows.start if self.row in rows else len(rows) // 2


def some_rows(scene: GestureScene) -> list[int]:
    """Return the rows of the tile that a gesture draws: all rows if they are few."""
    count = len(scene.motion.after.visit.rows)
    if count <= MOST_RAYS:
        return list(range(count))
    return sorted({round(n * (count - 1) / (MOST_RAYS - 1)) for n in range(MOST_RAYS)})


def translucent(colour: QColor | str, alpha: float) -> QColor:
    """Return a colour with an opacity `alpha`, clipped to 0 to 1."""
    out = QColor(colour)
    out.setAlphaF(min(max(alpha, 0.0), 1.0))
    return out


def on_arc(start: QPointF, end: QPointF, way: float, lift: float) -> QPointF:
    """Return a point on the way from `start` to `end`, lifted in the middle."""
    at = start + (end - start) * way
    return QPointF(at.x(), at.y() - lift * 4 * way * (1 - way))


def say_what(scene: GestureScene) -> None:
    """Write the op's own words, with its terms so far, or with the number that changes most."""
    motion, text = scene.motion, scene.motion.after.op.says
    if not text:
        return
    if motion.terms:
        text = f"{text}: {motion.added(scene.share)} of {motion.terms}"
    for name in motion.after.op.changed:
        was, now = (each[name] for each in (motion.numbers, motion.after.state))
        row = scene.chosen
        with np.errstate(invalid="ignore"):  # scores may be infinite
            most = int(np.argmax(np.abs(was[row] - now[row])))
        text = (
            f"{text}: {number_text(float(was[row, most]))} → {number_text(float(now[row, most]))}"
        )
    say(scene, text)


def say(scene: GestureScene, text: str) -> None:
    """Write words beside the matrices, never on them; nowhere if there is no room."""
    style, font = scene.style, scene.style.text_font(13)
    line, pad = style.px(17), style.px(8)
    places = state_places(scene.motion.after, scene.lay)
    card_taken = QRectF() if places is None else places.card
    rooms = rooms_beside(scene.lay)
    for room, whole in [*((each, True) for each in rooms), *((each, False) for each in rooms)]:
        parts = text.replace(" − ", "\u00a0−\u00a0")  # a difference stays whole
        lines = [text] if whole else wrapped(parts, font, room.width() - 2 * pad)
        wide = max(text_width(font, each) for each in lines) + 2 * pad
        place = QRectF(room.x(), room.y(), wide, len(lines) * line + style.px(5))
        if wide > room.width() or place.height() > room.height() or place.intersects(card_taken):
            continue
        card(scene.painter, place, mixed(style.theme.panel, style.theme.empty, 0.3),
             style.theme.border, style.px(5))  # fmt: skip
        for n, each in enumerate(lines):
            row = QRectF(place.x(), place.y() + style.px(2.5) + n * line, wide, line)
            draw_text(scene.painter, row, each, font, style.theme.current, CENTRE)
        return


def rooms_beside(lay: BoardLayout) -> list[QRectF]:
    """Return the empty places beside the matrices, the best first.

    The places are right of Vᵀ and under O, right of Kᵀ and above O, under Q, and under Vᵀ.
    """
    gap, room = lay.style.px(6), lay.rect.adjusted(*(lay.style.px(side) for side in (4, 4, -4, -4)))
    boxes = list(lay.boxes.values())
    low, high = lay.boxes[lay.values], lay.boxes[lay.keys]
    right, left = low.right() + gap, low.left() - gap
    bottom = max(box.bottom() for name, box in lay.boxes.items() if name != lay.values)
    top = lay.labels["O"].top()
    taken = [box for box in (lay.legend, lay.inset, lay.partials, lay.caption, lay.header)
             if not box.isNull()]  # fmt: skip
    taken += [*boxes, *lay.labels.values()]
    end = lay.caption.top() if not lay.caption.isNull() else room.bottom()
    above = lay.header.bottom() if not lay.header.isNull() else room.top()
    corners = (
        QRectF(QPointF(right, bottom + gap), QPointF(room.right(), end)),
        QRectF(QPointF(high.right() + gap, above + gap), QPointF(room.right(), top)),
        QRectF(QPointF(room.left(), bottom + gap), QPointF(left, end)),
        QRectF(QPointF(low.left(), low.bottom() + gap), QPointF(room.right(), end)),
    )
    return [part for corner in corners for part in _free(corner, taken)]


def _free(room: QRectF, taken: list[QRectF]) -> list[QRectF]:
    """Return the parts of a room above and below the boxes in it."""
    parts = [room] if room.width() > 0 and room.height() > 0 else []
    for box in taken:
        parts = [
            piece
            for part in parts
            for piece in (
                (part,) if not part.intersects(box) else (
                    QRectF(part.topLeft(), QPointF(part.right(), box.top())),
                    QRectF(QPointF(part.left(), box.bottom()), part.bottomRight()),
                )
            )
            if piece.height() > 0
        ]  # fmt: skip
    return parts


def outline_again(scene: GestureScene) -> None:
    """Draw the marks of the row block, the tile and the row again, over newly drawn numbers."""
    scene.painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    paint_row_mark(scene.painter, scene.lay, scene.row)
    paint_bands(scene.painter, scene.motion.after, scene.lay)
    paint_current_outline(scene.painter, scene.motion.after, scene.lay)


def paint_dot(scene: GestureScene, at: QPointF) -> None:
    """Draw a flying number as a dot."""
    scene.painter.setPen(Qt.PenStyle.NoPen)
    scene.painter.setBrush(QColor(scene.style.theme.current))
    scene.painter.drawEllipse(at, scene.style.px(5), scene.style.px(5))
