"""The state of linear attention, in the place of the scores that are never formed."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QPainter

from simulator.base.dtypes import F32
from simulator.run.linear_state import added_to_state
from simulator.run.snapshot import Snapshot
from ui.board.layout import BoardLayout
from ui.look.draw import CENTRE, LEFT, draw_text, outline
from ui.look.heat import KEPT, Sheet, colour_map, heat_image, signed_limit
from ui.look.names import first_that_fits
from ui.look.theme import Style, Theme

_ROOM = (60.0, 44.0)
"""Least width and height of the two maps, at scale 1; with less there is one below its name."""
_ROOM_OF_ONE = 38.0
"""Least height of one map below its name; with less it has no name."""


@dataclass(frozen=True, slots=True)
class StatePlaces:
    """Where the state lies.

    Attributes
    ----------
    card : QRectF
        All of it.
    state, added : QRectF
        The map of the state, and of what the current keys add; the second may be null.
    title, names : QRectF
        The line above, and the room for the words under both maps; null where there is none.
    """

    card: QRectF
    state: QRectF
    added: QRectF
    title: QRectF
    names: tuple[QRectF, QRectF]


def state_places(snapshot: Snapshot, style: Style, lay: BoardLayout) -> StatePlaces | None:
    """Return where the state is drawn: where no tile is formed; None without such a place.

    Causal that is the rows of later chunks over the keys of earlier ones, else the place of S.
    """
    w = snapshot.program.workload
    if snapshot.program.algorithm.softmax:
        return None
    box, px = lay.boxes["S"], style.px
    across, down, wide, high = 0.12, 0.2, 0.76, 0.6
    if w.chunked:
        if w.grid.Tr == 1:  # one chunk has no keys before it
            return None
        half = w.grid.Tr // 2 * w.rows / w.seqlen_q
        across, down, wide, high = 0.02, half + 0.02, half - 0.04, 0.96 - half
    card = QRectF(
        round(box.left() + across * box.width()), round(box.top() + down * box.height()),
        round(wide * box.width()), round(high * box.height()),
    )  # fmt: skip
    tile = lay.tile(snapshot.visit.rows, snapshot.visit.cols)
    if w.chunked and lay.view.zoom > 1 and card.intersects(tile):
        return None  # the magnified tile matters more
    line, pad = px(17), px(6)
    inner = card.adjusted(pad, pad, -pad, -pad)
    words = inner.height() >= px(_ROOM[1]) + 2 * line and inner.width() >= 2 * px(_ROOM[0])
    if not words:
        room = card.adjusted(px(4), px(1), -px(4), -px(4))
        if room.height() < px(_ROOM_OF_ONE) + line or room.width() < px(_ROOM[0]):
            return StatePlaces(card, inner, QRectF(), QRectF(), (QRectF(), QRectF()))
        inner = room
    title = QRectF(inner.left(), inner.top(), inner.width(), line)
    if not words:
        one = inner.adjusted(0, line + px(2), 0, 0)
        return StatePlaces(card, one, QRectF(), title, (QRectF(), QRectF()))
    maps = inner.adjusted(0, line + px(2), 0, -line - px(2))
    half = (maps.width() - px(10)) / 2
    left = QRectF(maps.left(), maps.top(), half, maps.height())
    right = QRectF(maps.right() - half, maps.top(), half, maps.height())
    below = maps.bottom() + px(2)
    names = tuple(QRectF(each.left(), below, half, line) for each in (left, right))
    return StatePlaces(card, left, right, title, (names[0], names[1]))


def paint_state(painter: QPainter, snapshot: Snapshot, style: Style, lay: BoardLayout) -> None:
    """Draw the state and what the current keys add to it."""
    places = state_places(snapshot, style, lay)
    if places is None:
        return
    theme, w = style.theme, snapshot.program.workload
    painter.fillRect(places.card, QColor(theme.panel))
    changes = snapshot.op.makes == snapshot.program.algorithm.left
    edge = theme.current if changes else theme.tensor("state").name()
    outline(painter, places.card, QColor(edge), style.px(2))
    state = snapshot.state.get("state")
    _paint_map(painter, state, style, places.state)
    if not places.title.isNull():
        f, total = w.sizes["feature"], w.sizes["total"]
        held = {tile.name for tile in snapshot.on_chip}.issuperset(snapshot.program.algorithm.left)
        where = "on chip" if held else "in HBM"
        title = first_that_fits(
            (f"state {f} × {total} in the place of S, {where}", f"state {f} × {total}, {where}",
             f"state {f} × {total}", "state"),
            places.title.width(), style.text_font(12, bold=True),
        )  # fmt: skip
        font = style.text_font(12, bold=True)
        draw_text(painter, places.title, title, font, theme.tensor("state"), LEFT)
    if not places.added.isNull():
        reads = snapshot.launch.whole_rows
        _paint_map(painter, added_to_state(snapshot), style, places.added)
        done = snapshot.made("state")
        first: tuple[str, ...] = ("of all keys so far", "all keys so far", "so far")
        if w.chunked and not done:
            first = ("of all keys before", "keys before", "before")
        second: tuple[str, ...] = ("these keys add φ(K)ᵀ[V, 1]", "these keys add", "+ keys")
        if done:
            second = ("these keys have been added", "added", "added")
        if reads:
            first, second = ("of all keys",), ("no key is read", "")
        small = style.text_font(11)
        for choices, place in zip((first, second), places.names, strict=True):
            text = first_that_fits(choices, place.width(), small)
            draw_text(painter, place, text, small, theme.muted, CENTRE)


def _paint_map(painter: QPainter, values: F32 | None, style: Style, place: QRectF) -> None:
    """Draw f rows of dv values and, behind a gap, the sum of the weights."""
    theme = style.theme
    if values is None:
        painter.fillRect(place, QColor(theme.empty))
        outline(painter, place.adjusted(-1, -1, 1, 1), theme.grid)
        return
    gap = max(style.px(2), 1)
    share = (place.width() - gap) * (values.shape[1] - 1) / values.shape[1]
    parts = (
        (values[:, :-1], QRectF(place.left(), place.top(), share, place.height())),
        (values[:, -1:], QRectF(place.left() + share + gap, place.top(),
                                place.width() - share - gap, place.height())),
    )  # fmt: skip
    for n, (part, box) in enumerate(parts):
        key = ("state", theme.name, n)
        sheet = KEPT.get(values, key, lambda part=part: _sheet(part, theme))  # type: ignore[misc]
        sheet.draw(painter, box, QRectF(0, 0, 1, 1))
        outline(painter, box.adjusted(-1, -1, 1, 1), theme.grid)


def _sheet(values: F32, theme: Theme) -> Sheet:
    limit = signed_limit(values) or 1.0
    return Sheet(heat_image(values.astype("float32"), -limit, limit, colour_map(theme, "S")))
