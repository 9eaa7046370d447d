"""Which query heads share which keys and values, and the costs: MHA, GQA, MQA, MLA."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from PySide6.QtCore import QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QColor, QPainter, QPen

from simulator.problem.models import AttentionModel, with_latent
from simulator.problem.workload import Workload
from simulator.study.heads.sharing import HeadSharing, all_sharings, head_sharing
from ui.kit.shapes import Text
from ui.look.draw import CENTRE, LEFT, RIGHT, draw_text, fitted, mixed, outline, text_width
from ui.look.names import first_that_fits, fitting
from ui.look.theme import Style, Theme
from ui.look.units import count_text, decimal_bytes_text, plural

MIN_SIZE = QSizeF(300, 140)
PARTS = ("W_Q", "W_K", "W_V", "W_O")
UNKNOWN = "not known"
_LINE = 18.0
_KINDS = {
    "MHA": "multi-head: every query head has a KV head of its own",
    "GQA": "grouped-query: query heads of a group share a KV head",
    "MQA": "multi-query: all query heads share one KV head",
    "MLA": "latent: all heads read one row, from which each makes its own K and V",
}


@dataclass(frozen=True, slots=True)
class HeadsState:
    """Everything that the picture shows."""

    title: str  # owner of heads
    ways: tuple[HeadSharing, ...]  # from MHA through GQA to MQA, then MLA if there is a latent row
    at: int  # the way that is shown
    tokens: int  # how many tokens a decoded token reads
    dtype: str  # element type of the cache
    value_dim: int | None = None  # width of a value, if not the width of a key
    fixed: str = ""  # why the heads cannot be changed; empty: they can
    # the query head that the board shows; None if it shows none of these
    current: int | None = None
    state: bool = False  # whether a decoder keeps a state in the place of K and V

    @property
    def way(self) -> HeadSharing:
        """The way that is shown."""
        return self.ways[self.at]


@dataclass(frozen=True, slots=True)
class SharingRow:
    """One way in words: its name, bytes for each token, bytes read, weights."""

    name: str
    token: str
    read: str
    weights: tuple[str, ...]


def scenario_state(w: Workload, fixed: str, current: int | None = None) -> HeadsState:
    """Return the heads of a scenario: one layer, no projections, as no hidden width is known."""
    heads, kv_heads = w.input_heads
    window = w.mask.kept if w.mask.kept < w.seqlen_k else 0
    model = AttentionModel("this scenario", 1, heads, w.head_dim, kv_heads, bool(window), window)
    ways = all_sharings(model)
    if w.latent:
        own = head_sharing(with_latent(model, w.value_dim, w.head_dim - w.value_dim))
        # Queries come with W_UK in them and O without W_UV: the widths of heads are not known.
        ways = (replace(own, projections=tuple(replace(p, outputs=None) for p in own.projections)),)
    at = next(n for n, way in enumerate(ways) if w.latent or way.model.kv_heads == kv_heads)
    wide = w.value_dim if w.latent or w.value_dim != w.head_dim else None
    state = w.rule is not None
    return HeadsState("this scenario", ways, at, w.seqlen_k, w.dtype, wide, fixed, current, state)


def model_state(model: AttentionModel, at: int | None, tokens: int, dtype: str) -> HeadsState:
    """Return the heads of a model; `at` None: in the model's own way."""
    ways = all_sharings(model)
    if at is None:
        own = head_sharing(model)
        at = next(n for n, way in enumerate(ways) if way.shared_by == own.shared_by
                  and way.kind == own.kind)  # fmt: skip
    return HeadsState(model.name, ways, min(at, len(ways) - 1), tokens, dtype)


def token_bytes(state: HeadsState, way: HeadSharing) -> int:
    """Return the bytes that one token adds to the cache of all layers, without a window."""
    return _halves(state, way, lambda sharing: sharing.bytes_per_token(state.dtype))


def read_bytes(state: HeadsState, way: HeadSharing) -> int:
    """Return the bytes of the cache that one decoded token reads, window-capped."""
    return _halves(state, way, lambda sharing: sharing.read_bytes(state.tokens, state.dtype))


def _halves(state: HeadsState, way: HeadSharing, count: Callable[[HeadSharing], int]) -> int:
    """Count K and V, which may have two widths: half of each count is K's or V's."""
    if state.value_dim is None:
        return count(way)
    values = head_sharing(replace(way.model, head_dim=state.value_dim))
    return (count(way) + count(values)) // 2


def way_name(way: HeadSharing) -> str:
    """Return ``GQA 8``, with the number of KV heads; MLA with its latent's width."""
    if way.kind == "MLA":
        return f"MLA {way.model.latent_dim} + {way.model.rope_dim}"
    return f"{way.kind} {len(way.shared_by)}"


def rows(state: HeadsState) -> tuple[SharingRow, ...]:
    """Return the figures of every way."""
    out = []
    for way in state.ways:
        weights = [way.parameters(part) for part in PARTS] + [way.parameters()]
        out.append(
            SharingRow(
                way_name(way),
                decimal_bytes_text(token_bytes(state, way)),
                decimal_bytes_text(read_bytes(state, way)),
                tuple(UNKNOWN if n is None else count_text(n) for n in weights),
            )
        )
    return tuple(out)


def title_words(state: HeadsState) -> tuple[str, ...]:
    """Return the current way in words, longest first."""
    name, kind = way_name(state.way), _KINDS[state.way.kind]
    whole = f"{state.title}: {name}"
    return f"{whole}, {kind}", f"{name}, {kind}", whole, name


def notes(state: HeadsState) -> list[str]:
    """Return notes that a reader of the table needs, most important first."""
    way, out = state.way, []
    if state.fixed:
        out.append(state.fixed)
    if state.state:
        out.append("bytes with a softmax: this run keeps a state in the place of K and V")
    if way.kind == "MLA" and way.parameters() is not None:
        out.append("W_K counts W_DKV, which serves V, too")
    share = way.share_of_mha
    if state.value_dim is None:
        part = f"{share.numerator}/{share.denominator} of what MHA does"
        out.append(f"caches {'as much as MHA' if share == 1 else part}")
    layers = way.model.layers
    if layers > 1:
        out.append(f"bytes of all {layers} layers, weights of one")
    if way.model.windowed_layers:
        out.append("a token without, reads with the window's cap")
    out.append(f"{state.dtype}, reads at {plural(state.tokens, 'token')}")
    if way.parameters() is None:
        out.append("weights not known: a scenario has no hidden width" if layers == 1
                   else "weights not known: a width is missing")  # fmt: skip
    return out


def state_words(state: HeadsState) -> str:
    """Return the whole picture in words, for screen readers."""
    row = rows(state)[state.at]
    parts = ", ".join(f"{part} {n}" for part, n in zip((*PARTS, "all"), row.weights, strict=True))
    shown = f" The board shows query head {state.current}." if state.current is not None else ""
    return (
        f"{title_words(state)[0]}.{shown} {row.token} a token, {row.read} read for a decoded "
        f"token. Weights of a layer: {parts}. {'. '.join(notes(state))}"
    )


def group_colour(theme: Theme, tensor: str, group: int) -> QColor:
    """Return a tensor's colour in a group of heads: every other group is paler."""
    colour = theme.tensor(tensor)
    return mixed(colour, theme.panel, 0.45) if group % 2 else colour


# --- the picture ------------------------------------------------------------------------------


def paint_heads(painter: QPainter, state: HeadsState, style: Style, rect: QRectF) -> None:
    """Draw query heads over the KV heads that they share, and the figures of every way.

    rect: place; if it is low, the table keeps the rows around the current way.
    """
    style = fitting(style, rect, MIN_SIZE)
    px, line = style.px, style.px(_LINE)
    top = QRectF(rect.left(), rect.top(), rect.width(), line)
    Text(title_words(state), size=13, bold=True).paint(painter, style, top)
    picture_least, table_least = px(84), 3 * line
    room = rect.height() - line
    lines = _note_lines(state, style, rect.width(), 3 if room > px(330) else 2)
    below = len(lines) * line
    rows_wanted = (len(state.ways) + 1) * line
    table = min(rows_wanted, max(room - below - px(150), table_least))
    if room - below - table < picture_least:
        lines, below = [], 0.0
        table = max(room - picture_least, 0.0)
    picture = QRectF(rect.left(), top.bottom(), rect.width(), room - below - table)
    tall = min(picture.height(), px(230))
    place = QRectF(rect.left(), picture.top(), rect.width(), tall)
    _paint_groups(painter, state, style, place.adjusted(0, px(2), 0, -px(6)))
    start = place.bottom()
    if table >= 2 * line:
        _paint_table(painter, state, style, QRectF(rect.left(), start, rect.width(), table))
    for n, text in enumerate(lines):
        place = QRectF(rect.left(), start + table + n * line, rect.width(), line)
        Text(text, "muted", size=11.5).paint(painter, style, place)


def _note_lines(state: HeadsState, style: Style, width: float, most: int) -> list[str]:
    """Return the notes in lines; the last ones are left out if there is no space."""
    font, out = style.text_font(11.5), [""]
    found = rows(state)
    counts = {part: state.way.parameters(part) for part in PARTS}
    if _columns(found, style, width)[3:4] == [(PARTS[0], 3)]:  # the table has them
        counts = {}
    said = [f"{part} {count_text(n)}" for part, n in counts.items() if n is not None]
    for note in (*said, *notes(state)):
        note = fitted(font, note, width)
        longer = f"{out[-1]}  ·  {note}" if out[-1] else note
        if text_width(font, longer) <= width:
            out[-1] = longer
        elif len(out) < most:
            out.append(note)
        else:
            break
    return out


def _paint_groups(painter: QPainter, state: HeadsState, style: Style, rect: QRectF) -> None:
    """Draw a row of query heads, a row of the K and V that they share, and lines between."""
    theme, way, px = style.theme, state.way, style.px
    heads, groups = way.model.heads, len(way.shared_by)
    label = px(15)
    high = min((rect.height() - 2 * label - px(14)) / 2, px(34))
    one = rect.width() / heads
    font = style.text_font(11)
    q_top = rect.top() + label
    kv_top = rect.bottom() - label - high
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    above = QRectF(rect.left(), rect.top(), rect.width(), label)
    Text(plural(heads, "query head"), "Q").paint(painter, style, above)
    numbered = text_width(font, count_text(heads - 1)) + px(4) <= one
    for group, members in enumerate(way.shared_by):
        colour = group_colour(theme, "Q", group)
        left, right = rect.left() + members.start * one, rect.left() + members.stop * one
        gap = min(px(5), 0.12 * (right - left)) if groups > 1 else 0.0
        block = QRectF(left + gap / 2, kv_top, right - left - gap, high)
        painter.setPen(QPen(mixed(theme.panel, theme.muted, 0.7), px(1)))
        for head in members:
            x = rect.left() + (head + 0.5) * one
            end = block.center().x() if way.kind != "MLA" else x
            painter.drawLine(QPointF(x, q_top + high), QPointF(end, kv_top))
        for head in members:
            box = QRectF(rect.left() + head * one, q_top, one, high)
            box = box.adjusted(min(px(1), 0.1 * one), 0, -min(px(1), 0.1 * one), 0)
            painter.fillRect(box, mixed(theme.panel, colour, 0.4))
            if head == state.current:
                _mark(painter, style, box, QPointF(box.center().x(), q_top + high),
                      QPointF(block.center().x(), kv_top))  # fmt: skip
            elif one > px(6):
                outline(painter, box, colour)
            if numbered:
                draw_text(painter, box, str(head), font, theme.text, CENTRE)
        if way.kind == "MLA":
            _paint_latent(painter, way, style, block, (q_top + high + kv_top) / 2)
        else:
            _paint_kv(painter, group, style, block)
            if state.current in members:
                outline(painter, block.adjusted(-1, -1, 1, 1), theme.current, px(2.5))
    below = QRectF(rect.left(), kv_top + high, rect.width(), label)
    Text(_kept_words(way), "muted").paint(painter, style, below)
    painter.restore()


def _mark(painter: QPainter, style: Style, box: QRectF, start: QPointF, end: QPointF) -> None:
    """Frame the head that is on the board, and draw the line to its KV head."""
    painter.setPen(style.pen(style.theme.current, 2))
    painter.drawLine(start, end)
    outline(painter, box, style.theme.current, style.px(2.5))


def _kept_words(way: HeadSharing) -> tuple[str, ...]:
    """Return the cache in words, longest first."""
    if way.kind == "MLA":
        row = "cached: one row for all heads"
        latent, key = way.model.latent_dim, way.model.rope_dim
        return f"{row}, {latent} numbers of the latent and {key} of the key with RoPE", row
    each = f"{plural(len(way.shared_by[0]), 'query head')} each"
    kept = plural(len(way.shared_by), "KV head")
    return f"cached: K and V of {kept}, read by {each}", f"cached: {kept}, {each}", kept


def _paint_kv(painter: QPainter, group: int, style: Style, block: QRectF) -> None:
    """Draw the K and V of one KV head, K above V."""
    theme, font = style.theme, style.text_font(11)
    half = QRectF(block.left(), block.top(), block.width(), block.height() / 2)
    forms = ("{} of KV head {}", "{} of {}", "{} {}")  # one for both, though V is the wider letter
    form = first_that_fits([form.format("V", group) for form in forms],
                           block.width() - style.px(4), font)  # fmt: skip
    for tensor, box in (("K", half), ("V", half.translated(0, half.height()))):
        colour = group_colour(theme, tensor, group)
        painter.fillRect(box, mixed(theme.panel, colour, 0.4))
        if block.width() > style.px(3):
            outline(painter, box, colour, style.px(1.5) if block.width() > style.px(10) else 1.0)
        text = first_that_fits(
            (form.replace("V", tensor, 1), str(group)), block.width() - style.px(4), font
        )
        if text_width(font, text) <= block.width() - style.px(2) and half.height() >= style.px(13):
            draw_text(painter, box, text, font, theme.text, CENTRE)


def _paint_latent(
    painter: QPainter, way: HeadSharing, style: Style, block: QRectF, middle: float
) -> None:
    """Draw MLA's one row, with a separate part for the RoPE key, and how it makes K and V."""
    theme, font, px = style.theme, style.text_font(11), style.px
    latent, turned = way.model.latent_dim or 0, way.model.rope_dim or 0
    painter.fillRect(block, mixed(theme.panel, theme.tensor("S"), 0.4))
    outline(painter, block, theme.tensor("S"), px(1.5))
    split = block.left() + block.width() * latent / (latent + turned)
    parts = (
        (QRectF(block.left(), block.top(), split - block.left(), block.height()),
         (f"latent c: {latent} numbers, one row for all heads", f"latent c: {latent}",
          str(latent))),
        (QRectF(split, block.top(), block.right() - split, block.height()),
         (f"kᴿ: {turned}", str(turned))),
    )  # fmt: skip
    painter.setPen(style.pen(theme.tensor("S"), 1.5))
    painter.drawLine(QPointF(split, block.top()), QPointF(split, block.bottom()))
    for box, texts in parts:
        text = first_that_fits(texts, box.width() - px(4), font)
        if text_width(font, text) <= box.width() - px(2):
            draw_text(painter, box, text, font, theme.text, CENTRE)
    words = first_that_fits(
        ("W_UK, W_UV: each head makes its own K and V of it, which are not cached",
         "W_UK, W_UV make each head's K and V", "up-projected"),
        block.width() - px(12), font,
    )  # fmt: skip
    wide = text_width(font, words) + px(12)
    box = QRectF(block.center().x() - wide / 2, middle - px(8), wide, px(16))
    painter.setPen(QPen(QColor(theme.muted), 1, Qt.PenStyle.DashLine))
    painter.setBrush(QColor(theme.panel))
    painter.drawRect(box)
    draw_text(painter, box, words, font, theme.text, CENTRE)


def _paint_table(painter: QPainter, state: HeadsState, style: Style, rect: QRectF) -> None:
    """Write the figures of the ways, with a frame around the current one."""
    theme, line = style.theme, style.px(_LINE)
    found = rows(state)
    shown = max(int((rect.height() + 0.5) // line) - 1, 1)
    first = min(max(state.at - shown // 2, 0), max(len(found) - shown, 0))
    font, code = style.text_font(11.5), style.code_font(11.5)
    columns = _columns(found, style, rect.width())
    widths = [
        max(text_width(font, head), *(text_width(code, row[n]) for row in _cells(found, columns)))
        for n, (head, _) in enumerate(columns)
    ]
    spare = max(rect.width() - sum(widths) - style.px(8), 0) / max(len(columns) - 1, 1)
    gap = min(spare, style.px(26))
    for n, values in enumerate([[head for head, _ in columns], *_cells(found, columns)]):
        index = n - 1
        if n and not first <= index < first + shown:
            continue
        y = rect.top() + (0 if not n else 1 + index - first) * line
        if n and index == state.at:
            here = QRectF(rect.left(), y, sum(widths) + gap * (len(widths) - 1) + style.px(8), line)
            painter.fillRect(here, QColor(theme.accent))
            outline(painter, here, theme.current)
        x = rect.left() + style.px(4)
        for k, (text, width) in enumerate(zip(values, widths, strict=True)):
            box = QRectF(x, y, width + 1, line)
            colour = theme.muted if not n else theme.text
            draw_text(painter, box, text, font if not n else code, colour, LEFT if not k else RIGHT)
            x += width + gap


def _columns(found: Sequence[SharingRow], style: Style, width: float) -> list[tuple[str, int]]:
    """Return the columns that fit: headings and their places in a row's figures."""
    known = any(UNKNOWN not in row.weights for row in found)
    weights = [(part, 3 + n) for n, part in enumerate(PARTS)] if known else []
    total = ("weights", 7)
    head = [("way", 0), ("a token", 1), ("read", 2)]
    for columns in ([*head, *weights, total], [*head, total], head, head[:2]):
        code, font = style.code_font(11.5), style.text_font(11.5)
        used = sum(
            max(text_width(font, name), *(text_width(code, row[n])
                for row in _cells(found, columns)))
            for n, (name, _) in enumerate(columns)
        )  # fmt: skip
        if used + style.px(8) + style.px(9) * (len(columns) - 1) <= width:
            return columns
    return head[:1]


def _cells(found: Sequence[SharingRow], columns: Sequence[tuple[str, int]]) -> list[list[str]]:
    lines = [(row.name, row.token, row.read, *row.weights) for row in found]
    return [[line[place] for _, place in columns] for line in lines]
