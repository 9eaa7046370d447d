"""Motion on the board while an op is being done: one painter for each gesture.

The painters draw over the board at a share of the op. They use only numbers from before and after
the op; nothing here has a clock.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QLinearGradient, QPainter, QPainterPath, QPen

from simulator.program.algorithms import TENSORS
from simulator.program.op import Gesture
from simulator.program.playback import Rescaling, eased, rescaling
from simulator.run.linear_state import forms_tile
from simulator.run.motion import Motion
from simulator.run.rescales import has_seen, row_at_hand
from ui.board.corner import inset_box
from ui.board.hands import paint_turning
from ui.board.key_state import StatePlaces, state_places
from ui.board.layout import BoardLayout
from ui.board.marks import lit_frame
from ui.board.middle import middle_at
from ui.board.partials import lse_cell, split_places
from ui.board.scene import (
    GestureScene,
    on_arc,
    outline_again,
    paint_dot,
    say,
    say_what,
    some_rows,
    translucent,
)
from ui.board.scores import clipped, paint_tile, shown_current
from ui.board.words import skip_phrase
from ui.look.draw import CENTRE, card, draw_text, outline, text_width
from ui.look.heat import indices, word_image
from ui.look.kept import kept
from ui.look.lit import paint_lit
from ui.look.units import number_text

_FEWEST_PIXELS = 24
"""Least side of a tile that shows a gesture; for a smaller tile the magnified one shows it."""
_TRAIL = 0.3
"""Share of a motion during which one column of a tile slides to its sum."""
_FLASH = 0.7
"""Opacity of the flash of a tile that is computed again."""


def paint_gesture(
    painter: QPainter, motion: Motion, share: float, lay: BoardLayout, row: int
) -> None:
    """Draw the motion while an op is being done.

    painter: on the board at this share.
    share: 0 to 1; at both ends nothing is drawn.
    """
    paint = _GESTURES.get(motion.gesture)
    visit = motion.after.visit
    if motion.gesture is Gesture.ROTATE and 0 < share < 1:
        paint_turning(painter, motion.after, lay, row, share)
    if paint is None or not 0 < share < 1:
        return
    tile = lay.tile(visit.rows, visit.cols)
    middle = middle_at(motion.after)
    if middle.joins:
        made = next((name for name in motion.made if name in lay.boxes), "O")
        tile = lay.row_band(made, visit.rows)
        paint = paint if motion.gesture is Gesture.SETTLE else _join
    if min(tile.width(), tile.height()) < _FEWEST_PIXELS and not lay.inset.isNull():
        tile = inset_box(motion.after, lay)
    if tile.isEmpty() and not middle.joins:
        return
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
    paint(GestureScene(painter, lay, motion, share, tile, row))
    painter.restore()


# --- one for each gesture -----------------------------------------------------------------------


def _sum_depth(scene: GestureScene) -> None:
    """Show how many terms the products have so far, and the parts of Q and Kᵀ they come from."""
    motion, lay = scene.motion, scene.lay
    if not motion.terms:
        return
    n, d = motion.added(scene.share), motion.terms
    visit = motion.after.visit
    of_rows, of_keys = motion.after.op.factors or ("Q", lay.keys)
    q, k = lay.row_band(of_rows, visit.rows), lay.col_band(of_keys, visit.cols)
    glow = translucent(scene.style.theme.current, 0.3)
    again = motion.after.computes_again
    if again:
        _flash(scene)
    scene.painter.fillRect(QRectF(q.left(), q.top(), q.width() * scene.share, q.height()), glow)
    scene.painter.fillRect(QRectF(k.left(), k.top(), k.width(), k.height() * scene.share), glow)
    words = f"Σ over {middle_at(motion.after).sums_over}: {n} of {d} terms"
    if motion.after.op.factors:
        words = f"{motion.after.op.says}: {n} of {d} terms"
    say(scene, f"computed again, {words}" if again else words)


def _flash(scene: GestureScene) -> None:
    """Flash a tile that the forward pass has computed before: this is its second visit."""
    ink = QColor(scene.style.theme.text)
    fading = (1 - scene.share) ** 2
    scene.painter.fillRect(scene.tile, translucent(ink, _FLASH * fading))
    away = scene.style.px(3 + 9 * scene.share)
    ring = scene.tile.adjusted(-away, -away, away, away)
    outline(scene.painter, ring, translucent(ink, fading), scene.style.px(2.5))


def _wipe(scene: GestureScene) -> None:
    """Wipe the tile from left to right: behind the edge the mask has been applied."""
    edge = scene.tile.left() + eased(scene.share) * scene.tile.width()
    done = QRectF(scene.tile.topLeft(), QPointF(edge, scene.tile.bottom()))
    if scene.tile.intersects(scene.lay.boxes["S"]):
        with clipped(scene.painter, done):
            paint_tile(scene.painter, scene.motion.after, scene.lay)
    outline_again(scene)
    scene.painter.setPen(QPen(QColor(scene.style.theme.current), scene.style.px(2)))
    scene.painter.drawLine(done.topRight(), done.bottomRight())
    say_what(scene)


def _pick(scene: GestureScene) -> None:
    """Light the largest cell of each row and let it fly to m; where m rises, write by how much."""
    before = scene.motion.numbers.get("S")
    if before is None:
        return
    painter, style, lands = scene.painter, scene.style, scene.motion.after.op.lands
    lit, way = (
        min(scene.share / 0.25, 1.0),
        eased(min(max(scene.share / lands - 0.35, 0) / 0.65, 1)),
    )
    colour = QColor(style.theme.current)
    for r in some_rows(scene):
        if not np.isfinite(before[r]).any():
            continue
        cell = scene.cell(r, int(np.argmax(before[r])))
        grown = (1 - lit) * style.px(5)
        outline(painter, cell.adjusted(-grown, -grown, grown, grown), colour, style.px(2))
        if 0 < way < 1:
            at = on_arc(cell.center(), scene.beside("m", r).center(), way, scene.style.px(26))
            paint_dot(scene, at)
    old, new = scene.motion.numbers.get("m"), scene.motion.after.state.get("m")
    if scene.share >= lands and old is not None and new is not None:
        _name_rise(scene, float(old[scene.chosen]), float(new[scene.chosen]))


def _name_rise(scene: GestureScene, old: float, new: float) -> None:
    """Write the old maximum, struck through, and its increase."""
    if not (np.isfinite(old) and np.isfinite(new)) or new <= old:
        return
    font = scene.style.code_font(12)
    place = scene.beside("m", scene.chosen)
    was, more = number_text(old, 2), f"+{number_text(new - old, 2)}"
    width = text_width(font, f"{was} {more}") + scene.style.px(14)
    box = QRectF(place.left() - width - scene.style.px(6), place.center().y() - scene.style.px(10),
                 width, scene.style.px(20))  # fmt: skip
    card(scene.painter, box, scene.style.theme.panel, scene.style.theme.current, scene.style.px(4))
    inner = box.adjusted(scene.style.px(6), 0, -scene.style.px(4), 0)
    draw_text(scene.painter, inner, was, font, scene.style.theme.muted)
    line = text_width(font, was)
    scene.painter.setPen(QPen(QColor(scene.style.theme.muted), scene.style.px(1.4)))
    y = box.center().y()
    scene.painter.drawLine(QPointF(inner.left(), y), QPointF(inner.left() + line, y))
    rest = inner.adjusted(text_width(font, f"{was} "), 0, 0, 0)
    draw_text(scene.painter, rest, more, font, scene.style.theme.current)


def _turn(scene: GestureScene) -> None:
    """Blend the colours of scores into the colours of weights; numbers are never blended."""
    ends = _ends(scene)
    if ends is None:
        return
    mix = ends[0] + ends[1] * eased(scene.share)
    r, g, b = np.rint(mix).astype(np.uint32)
    image = word_image(np.uint32(0xFF000000) | r << 16 | g << 8 | b)
    scene.painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
    scene.painter.drawImage(scene.tile, image, QRectF(image.rect()))
    outline_again(scene)
    say(scene, scene.motion.after.op.says or "each score s becomes exp(s − m)")


def _ends(scene: GestureScene) -> tuple[np.ndarray, np.ndarray] | None:
    """Return red, green and blue of the tile before the op, and the change of each."""
    motion, lay = scene.motion, scene.lay

    def make() -> tuple[np.ndarray, np.ndarray] | None:
        before, after = (shown_current(now, lay) for now in (motion.at(scene.share), motion.after))
        if before is None or after is None or before.values.shape != after.values.shape:
            return None
        words = [each.words[indices(each.shades, each.low, each.high)] for each in (before, after)]
        first, last = (np.stack([w >> shift & 255 for shift in (16, 8, 0)]) for w in words)
        return first, last.astype(float) - first

    key = "turn", lay.style.theme.name, lay.plain, scene.share >= motion.after.op.lands
    return kept(motion, key, make)


def _shrink(scene: GestureScene) -> None:
    """Veil the other rows; on the explained row the factor moves over the numbers it shrinks."""
    motion, seen = scene.motion, has_seen(scene.motion.after)
    of_weights, of_output = motion.after.carried, motion.after.rescale_factor
    normalised = motion.after.program.algorithm.normalises_each_tile
    skipped = skip_phrase(motion.after)
    if not seen.any():
        say(scene, "first tile: nothing to rescale yet")
        return
    row = row_at_hand(motion.after, scene.row)
    if row is None:
        say(scene, skipped or "α = 1 in every row: nothing shrinks")
        return
    moments, r = rescaling(scene.share), row - motion.after.visit.rows.start
    _veil_others(scene, r, moments.near)
    box = scene.lay.boxes["S"]
    if seen[r] and of_weights[r] < 1:
        start = min(scene.lay.boxes["m"].left(), scene.lay.rect.right())
        used = scene.lay.col_x(motion.after.visit.cols.start)
        end = min(max(used, box.left()), box.right())
        _paint_factor(scene, r, float(of_weights[r]), start, end, moments)
    words = "what was summed before shrinks by α"
    if normalised:
        o = scene.lay.boxes["O"]
        _paint_factor(scene, r, float(of_output[r]), o.right(), o.left(), moments)
        words = "O shrinks by α ℓ of before / ℓ"
    if moments.lit:
        _light_alpha(scene, r)
    say(scene, skipped or words)


def _light_alpha(scene: GestureScene, r: int) -> None:
    """Light α at the end of its row, beside the numbers it multiplies, and frame O of the row."""
    style, font = scene.style, scene.style.text_font(13, italic=True)
    own, room = scene.beside("O", r), scene.lay.rect
    wide, high = text_width(font, "α") + style.px(10), style.px(20)
    outline(scene.painter, own, style.theme.current, style.px(2))
    x = min(own.right() + style.px(10), room.right() - wide)
    place = QRectF(x, own.center().y() - high / 2, wide, high)
    paint_lit(scene.painter, place, style)
    draw_text(scene.painter, place, "α", font, style.theme.text, CENTRE)


def _veil_others(scene: GestureScene, row: int, share: float) -> None:
    """Dim all rows but one of the block, in every box of rows."""
    veil = translucent(scene.style.theme.panel, _VEIL * share)
    now = scene.motion.after
    at, end = now.visit.rows.start + row, now.program.workload.seqlen_q
    for name in ("S", "m", "l", "O"):
        for rows in (range(at), range(at + 1, end)):
            if len(rows):
                scene.painter.fillRect(scene.lay.row_band(name, rows), veil)


def _paint_factor(
    scene: GestureScene, row: int, factor: float, start: float, end: float, moments: Rescaling
) -> None:
    """Draw the factor by which a row has shrunk so far, on its way from `start` to `end`."""
    if moments.named <= 0 or moments.gone >= 1:
        return
    style, painter = scene.style, scene.painter
    band, font = scene.beside("S", row), style.code_font(12, bold=True)
    text = f"× {number_text(factor**moments.risen)}"
    if scene.lay.cell[1] < style.px(19) and row != scene.chosen:  # not the explained one
        text = f"row {scene.motion.after.visit.rows.start + row} {text}"
    width, high = text_width(font, text) + style.px(12), style.px(20)
    x = start - width + (min(end, start - width) - start + width) * moments.risen
    place = QRectF(x, band.center().y() - high / 2, width, high)
    grown = (1 - moments.named) / 2
    place.adjust(width * grown, high * grown, -width * grown, -high * grown)
    painter.setOpacity(1 - moments.gone)
    card(painter, place, style.theme.current, style.theme.panel, high / 2)
    if moments.named >= 1:
        draw_text(painter, place, text, font, style.theme.panel, CENTRE)
    painter.setOpacity(1.0)


_VEIL = 0.5
"""Opacity of the veil over other rows."""


def _gather(scene: GestureScene) -> None:
    """Let the columns of the tile slide onto l, one after another: landed columns are summed."""
    motion = scene.motion
    if not motion.terms:
        return
    shown = shown_current(motion.at(scene.share), scene.lay)
    if shown is None:
        return
    key = "gather", scene.style.theme.name, *shown.key
    image, count = kept(motion, key, shown.image).image, motion.terms
    target = scene.lay.row_band("l", motion.after.visit.rows)
    painter = scene.painter
    painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
    for n in range(count):
        end = (n + 1) / count
        begin = max(end - _TRAIL, 0.0)
        if not begin < scene.share < end:
            continue
        way = eased((scene.share - begin) / (end - begin))
        column = scene.column(n)
        x = column.left() + (target.left() - column.left()) * way
        y = column.top() + (target.top() - column.top()) * way
        high = column.height() + (target.height() - column.height()) * way
        painter.setOpacity(0.85 * (1 - 0.5 * way))
        painter.drawImage(QRectF(x, y, max(column.width(), 1), high), image,
                          QRectF(n, 0, 1, image.height()))  # fmt: skip
    painter.setOpacity(1.0)
    say(scene, f"Σ over keys: {motion.added(scene.share)} of {count} weights")


def _sum_keys(scene: GestureScene) -> None:
    """Draw rays from the weights of one key over its row of V into O."""
    motion, lay, style, painter = scene.motion, scene.lay, scene.style, scene.painter
    if not motion.terms:
        return
    visit, count = motion.after.visit, motion.terms
    n = min(motion.added(scene.share), count - 1)
    key = visit.cols.start + n
    value = lay.value_band(range(key, key + 1))
    painter.fillRect(scene.column(n), translucent(style.theme.current, 0.25))
    painter.fillRect(value, translucent(style.theme.current, 0.35))
    start, end = scene.cell(scene.chosen, n), scene.beside("O", scene.chosen)
    if not value.isEmpty() and not end.isEmpty():
        path, low = QPainterPath(start.center()), value.center()
        down, up = QPointF(start.center().x(), low.y()), QPointF(end.center().x(), low.y())
        path.cubicTo(down, down, low)
        below = low.y() > end.bottom()
        path.cubicTo(up, up, QPointF(up.x(), end.bottom() if below else end.top()))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for width, alpha in ((7, 0.25), (2.5, 0.95)):
            painter.setPen(
                QPen(translucent(style.theme.tensor(lay.values), alpha), style.px(width))
            )
            painter.drawPath(path)
        outline(painter, start, QColor(style.theme.current), style.px(2))
        paint_dot(scene, path.pointAtPercent(min(scene.share * count - n, 1.0)))
    say(scene, f"each weight times its row of V, into O: key {n + 1} of {count}")


def _sum_rows(scene: GestureScene) -> None:
    """Show the row or column of the tile that weighs a row of a matrix, and where the sum grows."""
    motion, lay, style, painter = scene.motion, scene.lay, scene.style, scene.painter
    op, visit = motion.after.op, motion.after.visit
    name = lay.box_of(op.recorded[0])
    if not motion.terms or not name:
        return
    over_rows = "key" in TENSORS[name].axes
    n = min(motion.added(scene.share), motion.terms - 1)
    if over_rows:
        high = scene.tile.height() / len(visit.rows)
        weights = QRectF(scene.tile.left(), scene.tile.top() + n * high, scene.tile.width(), high)
        row = visit.rows.start + n
        given, grows = (
            lay.row_band(op.factors[1], range(row, row + 1)),
            lay.col_band(name, visit.cols),
        )
    else:
        weights, key = scene.column(n), visit.cols.start + n
        given = lay.col_band(op.factors[1], range(key, key + 1))
        grows = lay.row_band(name, visit.rows)
    for place, alpha in ((weights, 0.25), (given, 0.35)):
        if place.isEmpty():
            continue
        painter.fillRect(place, translucent(style.theme.current, alpha))
        outline(painter, place, QColor(style.theme.current), style.px(1.5))
    outline(painter, grows, style.theme.tensor(name), style.px(4))
    if not grows.isEmpty() and not given.isEmpty():
        way = min(scene.share * motion.terms - n, 1.0)
        start = on_arc(given.center(), weights.center(), min(2 * way, 1.0), 0.0)
        at = start if way < _HALF else on_arc(weights.center(), grows.center(), 2 * way - 1, 0.0)
        paint_dot(scene, at)
    say_what(scene)


_HALF = 0.5
"""Share of its way at which an added row passes its weight."""


def _settle(scene: GestureScene) -> None:
    """Let the division, or the gate, run over the rows that it changes."""
    lay, visit, style = scene.lay, scene.motion.after.visit, scene.style
    made = scene.motion.made[0]
    name = made if made in lay.boxes else "S"
    box, band = lay.boxes[name], lay.row_band(name, visit.rows)
    front = box.left() + eased(scene.share) * box.width()
    glow = QLinearGradient(front - style.px(50), 0, front, 0)
    glow.setColorAt(0, translucent(style.theme.current, 0.0))
    glow.setColorAt(1, translucent(style.theme.current, 0.7))
    with clipped(scene.painter, band):
        area = QRectF(front - style.px(50), band.top(), style.px(50), band.height())
        scene.painter.fillRect(area, glow)
    say(scene, scene.motion.after.op.says or f"{made} ÷ ℓ, once for each row")


def _light_up(scene: GestureScene) -> None:
    """Light the boxes of the numbers that the op makes: there is no sum to show."""
    glow = translucent(scene.style.theme.current, _pulse(scene))
    places = state_places(scene.motion.after, scene.lay)
    if places is not None and not set(scene.motion.made).isdisjoint(_FROM_STATE):
        outline(scene.painter, places.card, glow, scene.style.px(4))
    elif places is not None:
        _light_up_token(scene, places, glow)
    visit = scene.motion.after.visit
    for made in scene.motion.made:
        # Features stand in the boxes of their rows.
        name = scene.lay.box_of(made) or made.removeprefix("phi_")
        of_pairs = name in scene.lay.boxes and TENSORS[name].of_pairs
        of_pairs = of_pairs or not middle_at(scene.motion.after).each_box
        if of_pairs and forms_tile(scene.motion.after) and made in scene.motion.after.op.recorded:
            outline(scene.painter, scene.tile, glow, scene.style.px(4))
        if name in scene.lay.boxes and not TENSORS[name].of_pairs:
            by_key = "key" in TENSORS[name].axes
            band = scene.lay.row_band(name, visit.rows)
            if by_key:
                band = scene.lay.col_band(name, visit.cols)
            outline(scene.painter, lit_frame(band, name, scene.lay), glow, scene.style.px(4))
    say_what(scene)


def _light_up_token(scene: GestureScene, places: StatePlaces, glow: QColor) -> None:
    """Light the strips of the numbers that the op makes; without room, the whole card."""
    for name in scene.motion.made:
        strip = places.strip(name)
        if strip is not None or name in scene.motion.after.program.algorithm.rows:
            box = places.card if strip is None else strip.place
            outline(scene.painter, box, glow, scene.style.px(4))


_FROM_STATE = ("state", "O", "l")
"""The state, and numbers made from it."""


def _pulse(scene: GestureScene) -> float:
    return 0.8 * float(np.sin(np.pi * scene.share))


def _join(scene: GestureScene) -> None:
    """Join the results of the splits: numbers fly, and O of each split slides into O."""
    motion, painter, style = scene.motion, scene.painter, scene.style
    rows, made = motion.after.visit.rows, [name for name in motion.made if name in scene.lay.boxes]
    places = split_places(motion.after, scene.lay)
    for place in places.values() if not made else ():  # the result stands beside each split
        outline(painter, place, translucent(style.theme.current, _pulse(scene)), style.px(4))
    if not made or not places:
        _light_up(scene)
        return
    target, weights = scene.lay.row_band(made[0], rows), motion.after.state.get("w")
    slides = motion.gesture is Gesture.SUM_KEYS
    each, partials = 1 / len(places), motion.after.partials
    # In each row only the largest LSE goes to m.
    largest = None
    if motion.gesture is Gesture.PICK and partials is not None:
        largest = np.argmax(partials.lse, axis=0)
    for nth, (split, place) in enumerate(places.items()):
        way = eased(min(max((scene.share - nth * each * 0.6) / (1 - (1 - each) * 0.6), 0.0), 1.0))
        if not 0 < way < 1:
            continue
        box = QRectF(place)
        if not slides:
            for r in some_rows(scene):
                if largest is None or largest[r] == split:
                    start = lse_cell(style, place, r, len(rows)).center()
                    end = scene.beside(made[0], r).center()
                    paint_dot(scene, on_arc(start, end, way, style.px(26)))
            continue
        size = place.size() + (target.size() - place.size()) * way
        box.setSize(size)
        box.moveCenter(place.center() + (target.center() - place.center()) * way)
        painter.fillRect(box, translucent(style.theme.tensor(made[0]), 0.45 * (1 - 0.5 * way)))
        outline(painter, box, style.theme.tensor(made[0]), style.px(2))
        if weights is not None:
            text = f"× {number_text(float(weights[split][scene.chosen]), 3)}"
            draw_text(painter, box, text, style.code_font(12, bold=True), style.theme.text, CENTRE)
    _light_up(scene)


_GESTURES: dict[Gesture, Callable[[GestureScene], None]] = {
    Gesture.STATE: _light_up,
    Gesture.SUM_DEPTH: _sum_depth,
    Gesture.WIPE: _wipe,
    Gesture.PICK: _pick,
    Gesture.TURN: _turn,
    Gesture.SHRINK: _shrink,
    Gesture.GATHER: _gather,
    Gesture.SUM_KEYS: _sum_keys,
    Gesture.SETTLE: _settle,
    Gesture.SUM_ROWS: _sum_rows,
}
