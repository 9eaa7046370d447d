"""The state of linear attention, in the place of the scores that are never formed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QPainter

from simulator.base.dtypes import F32
from simulator.program.tensors import symbol
from simulator.run.linear_state import added_to_state
from simulator.run.snapshot import Snapshot
from ui.board.layout import BoardLayout
from ui.board.middle import middle_at
from ui.look.draw import CENTRE, LEFT, draw_text, outline
from ui.look.heat import KEPT, Sheet, colour_map, heat_image, signed_limit
from ui.look.names import first_that_fits
from ui.look.theme import Style, Theme

_ROOM = (60.0, 44.0)
"""Least width and height of each map, at scale 1; with less there is one map below its name."""
_ROOM_OF_ONE = 38.0
"""Least height of one map below its name; with less it has no name."""
_STRIP, _COLUMN = 13.0, 18.0
"""Height of a row of values beside the maps, and width of a column of features, at scale 1."""
_ROOM_BESIDE = (40.0, 36.0)
"""Least width and height of each map with strips beside it, at scale 1."""


@dataclass(frozen=True, slots=True)
class TokenStrip:
    """A number of the token beside a map: a row over its values, or a column over its features."""

    name: str  # the number's name
    colour: str  # the tensor whose colours it has
    upright: bool  # whether it is a column
    place: QRectF  # place, label: where it is drawn, and its symbol
    label: QRectF


@dataclass(frozen=True, slots=True)
class StatePlaces:
    """Places of the state and its strips."""

    card: QRectF  # the whole card
    # state, added: maps of the state, and of the addition by the current keys, which may be null
    state: QRectF
    added: QRectF
    # title, names: the line above, and the room for the words under both maps; null where there is
    # none
    title: QRectF
    names: tuple[QRectF, QRectF]
    strips: tuple[TokenStrip, ...] = ()  # numbers that change and read the state, by token

    def strip(self, name: str) -> TokenStrip | None:
        """Return where a number of the token is drawn; None where it has no place."""
        return next((each for each in self.strips if each.name == name), None)


def state_places(snapshot: Snapshot, lay: BoardLayout) -> StatePlaces | None:
    """Return where the state is drawn: where no tile is formed; None without such a place.

    A causal state lies at rows of later chunks and keys of earlier ones, else in the place of S.
    """
    w = snapshot.program.workload
    goes_on_by = middle_at(snapshot).state
    if goes_on_by is None or snapshot.op.before_tiles:
        return None
    box, px = lay.boxes["S"], lay.style.px
    across, down, wide, high = 0.12, 0.2, 0.76, 0.6
    tokens = goes_on_by == "token"
    if tokens:
        # The op's words have their line above the card.
        down = max(0.05, px(30) / max(box.height(), 1.0)) if box.height() > px(200) else 0.05
        across, wide, high = 0.03, 0.94, 0.96 - down
    elif w.chunked:
        if w.grid.Tr == 1:  # one chunk has no keys before it
            return None
        half = w.grid.Tr // 2 * w.rows / w.seqlen_q
        across, down, wide, high = 0.02, half + 0.02, half - 0.04, 0.96 - half
    card = QRectF(
        round(box.left() + across * box.width()), round(box.top() + down * box.height()),
        round(wide * box.width()), round(high * box.height()),
    )  # fmt: skip
    tile = lay.tile(snapshot.visit.rows, snapshot.visit.cols)
    if w.chunked and not tokens and lay.view.zoom > 1 and card.intersects(tile):
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
    if tokens:
        with_strips = _places_with_strips(snapshot, lay.style, card, title, maps)
        if with_strips is not None:
            return with_strips
    half = (maps.width() - px(10)) / 2
    left = QRectF(maps.left(), maps.top(), half, maps.height())
    right = QRectF(maps.right() - half, maps.top(), half, maps.height())
    below = maps.bottom() + px(2)
    names = tuple(QRectF(each.left(), below, half, line) for each in (left, right))
    return StatePlaces(card, left, right, title, (names[0], names[1]))


def _places_with_strips(
    snapshot: Snapshot, style: Style, card: QRectF, title: QRectF, room: QRectF
) -> StatePlaces | None:
    """Return the maps' places, with strips of numbers that make or read them; None without room.

    The left map is the state: the columns beside it are the gates of the features and φ(Q), which
    reads the state; the row under it is O, the result. The right map is the addition: φ(K), the
    column beside it, times the last of the rows above it.
    """
    algorithm, px = snapshot.program.algorithm, style.px
    strip, column, gap, line = px(_STRIP), px(_COLUMN), px(3), px(17)
    gates = [spec.name for spec in algorithm.gates if "feature" in spec.axes]
    columns = (*gates, "phi_Q"), ("phi_K",)
    above = len(algorithm.rows) * (strip + gap)
    wide = (room.width() - px(10) - 3 * gap - (len(gates) + 2) * (column + gap)) / 2
    high = room.height() - max(above, line) - strip - gap
    if wide < px(_ROOM_BESIDE[0]) or high < px(_ROOM_BESIDE[1]):
        return None
    top = room.top() + max(above, line)
    left = QRectF(room.left() + len(columns[0]) * (column + gap), top, wide, high)
    right = QRectF(room.right() - wide, top, wide, high)
    strips = []
    for box, names in ((left, columns[0]), (right, columns[1])):
        for n, name in enumerate(names):
            x = box.left() - (len(names) - n) * (column + gap)
            label = QRectF(x - gap, top - line, column + 2 * gap, line)
            if box is right:
                label.moveTop(box.bottom())
            colour = "S" if name in gates else name.removeprefix("phi_")
            strips.append(TokenStrip(name, colour, True, QRectF(x, top, column, high), label))
    share = snapshot.program.workload.value_dim / snapshot.program.workload.sizes["total"]
    for n, name in enumerate(algorithm.rows):
        y = top - (len(algorithm.rows) - n) * (strip + gap)
        label = QRectF(right.left() - column - gap - px(16), y, column + px(14), strip)
        strips.append(
            TokenStrip(name, "V", False, QRectF(right.left(), y, share * wide, strip), label)
        )
    y = left.bottom() + gap
    label = QRectF(left.left() - column - gap, y, column, strip)
    strips.append(TokenStrip("O", "O", False, QRectF(left.left(), y, share * wide, strip), label))
    below = left.bottom() + gap + strip
    words = [QRectF(each.left(), below, wide, line) for each in (left, right)]
    return StatePlaces(card, left, right, title, (words[0], words[1]), tuple(strips))


def paint_state(painter: QPainter, snapshot: Snapshot, lay: BoardLayout) -> None:
    """Draw the state and the addition by the current keys."""
    style, places = lay.style, state_places(snapshot, lay)
    if places is None:
        return
    theme, w = style.theme, snapshot.program.workload
    painter.fillRect(places.card, QColor(theme.panel))
    changes = snapshot.op.makes == snapshot.program.algorithm.left
    edge = theme.current if changes else theme.tensor("state").name()
    outline(painter, places.card, QColor(edge), style.px(2))
    state = snapshot.state.get("state")
    sums = snapshot.program.algorithm.sums
    _paint_map(painter, state, style, places.state, sums=sums)
    for strip in places.strips:
        _paint_strip(painter, snapshot, style, strip)
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
        _paint_map(painter, added_to_state(snapshot), style, places.added, sums=sums)
        done = snapshot.made("state")
        first: tuple[str, ...] = ("of all keys so far", "all keys so far", "so far")
        if w.chunked and not done:
            first = ("of all keys before", "keys before", "before")
        second: tuple[str, ...] = ("these keys add φ(K)ᵀ[V, 1]", "these keys add", "+ keys")
        if done:
            second = ("these keys have been added", "added", "added")
        if middle_at(snapshot).state == "token":
            first, second = _token_words(snapshot)
        if reads:
            first, second = ("of all keys",), ("no key is read", "")
        small = style.text_font(11)
        for choices, place in zip((first, second), places.names, strict=True):
            text = first_that_fits(choices, place.width(), small)
            draw_text(painter, place, text, small, theme.muted, CENTRE)


def _token_words(snapshot: Snapshot) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the words under the maps of a token."""
    last = symbol(snapshot.program.algorithm.rows[-1]).lower()
    decays = any(op.changed for op in snapshot.past)
    first = ("of all keys before, less what is forgotten" if decays else "of all keys before",)
    product = f"this key adds φ(k)ᵀ{last if not snapshot.program.algorithm.sums else '[v, 1]'}"
    if snapshot.made("state"):
        return ("of all keys so far", "so far"), (product.replace("adds", "has added"), "added")
    return (*first, "keys before", "before"), (product, "this key adds", "+ key")


def _paint_strip(painter: QPainter, snapshot: Snapshot, style: Style, strip: TokenStrip) -> None:
    """Draw the strip of a number, and its symbol; empty while there is no number."""
    theme, values = style.theme, snapshot.state.get(strip.name)
    outline(painter, strip.place.adjusted(-1, -1, 1, 1), theme.grid)
    letters = symbol(strip.name).lower()
    draw_text(painter, strip.label, letters, style.text_font(11), theme.muted, CENTRE)
    if values is None:
        painter.fillRect(strip.place, QColor(theme.empty))
        return
    shown = np.ascontiguousarray(values.T if strip.upright else values, dtype=np.float32)
    limit = signed_limit(shown) or 1.0
    gate = any(spec.name == strip.name for spec in snapshot.program.algorithm.gates)
    low, high = (0.0, 1.0) if gate else (-limit, limit)
    colours = colour_map(theme, strip.colour)
    key = ("strip", theme.name, strip.name)
    sheet = KEPT.get(values, key, lambda: Sheet(heat_image(shown, low, high, colours)))
    sheet.draw(painter, strip.place, QRectF(0, 0, 1, 1))


def _paint_map(
    painter: QPainter, values: F32 | None, style: Style, place: QRectF, *, sums: bool = True
) -> None:
    """Draw f rows of dv values and, behind a gap, the sum of the weights."""
    theme = style.theme
    if values is None:
        painter.fillRect(place, QColor(theme.empty))
        outline(painter, place.adjusted(-1, -1, 1, 1), theme.grid)
        return
    if not sums:
        sheet = KEPT.get(values, ("state", theme.name), lambda: _sheet(values, theme))
        sheet.draw(painter, place, QRectF(0, 0, 1, 1))
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
