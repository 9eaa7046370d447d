"""Partials of a row merged (Dao et al. 2023), and sums of a gradient added, in any order."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QPainter

from simulator.run.trace import Trace
from simulator.study.merge.block_sums import TRIED, BlockSums, block_sums
from simulator.study.merge.by_hand import RowMerge, row_merge
from simulator.study.merge.choices import (
    BASE_2,
    CHOICES,
    DRAWN,
    EMPTY,
    FIRST,
    MIXED,
    PARTIALS,
    SUMS,
)
from simulator.study.merge.gradient_sums import adds_to_rows
from simulator.study.merge.merging import ORDERS, Node, Parts, height, leaves
from ui.kit.boxes import Box, Canvas, Column, Placed, Where, ink
from ui.kit.shapes import Card, CellGrid, GridCell, Heat, Image, Text
from ui.look.draw import CENTRE
from ui.look.heat import signed_limit
from ui.look.theme import Style
from ui.look.units import bytes_text, count_text, number_text, plural, ulp_text
from ui.panels.study import Chosen, Study, Words
from ui.session.tasks import Report
from ui.session.view import View


def words_of_partials(state: RowMerge) -> Words:
    """Return how many partials a row has, where they come from, and how each order rounds."""
    parts = state.parts
    if parts is None:
        return Words(f"{state.row}: nothing to merge", sentences=(state.why,))
    count = f"{state.row}: {plural(len(parts.partials), 'partial')}"
    if parts.lse == MIXED:
        off = percent(parts.off(tuple(range(len(parts.partials)))))
        worst = f"LSE in base 2, merged as in base e, puts O {off} off"
        same = "Every order makes the same wrong O: comparing orders does not show it."
        said = [*_bases(state), same, _dealt(parts)]
        return Words(f"{count}: {worst}", sentences=tuple(said))
    title = f"{count}, the same O in any order up to rounding"
    size = plural(parts.exact.shape[1], "number")
    said = [*_bases(state), _dealt(parts)]
    for name, error, differ in state.rounding:
        other = f"; {differ} of {size} of O differ from the list's" if differ else ""
        said.append(f"{name}: {ulp_text(error)} from float64{other}")
    if not state.done:
        said.append(
            "Drag one onto another to merge them; arrows choose, Enter merges with the next."
        )
    return Words(title, sentences=tuple(said))


def _bases(state: RowMerge) -> Iterator[str]:
    """Yield how an LSE other than m + ln l changes O."""
    parts, two = state.parts, state.two
    assert parts is not None
    if parts.lse == EMPTY:
        *rest, _ = whole = list(range(len(parts.partials)))
        both = [
            [parts.result(order(nodes)).o for nodes in (whole, rest)] for order in ORDERS.values()
        ]
        moved = max(int(np.sum(one != other)) for one, other in both)
        have = "has" if moved == 1 else "have"
        bits = (
            f"{plural(moved, 'number')} of O {have} other bits" if moved else "O has the same bits"
        )
        yield f"With a partial of no keys, whose O is 0 and LSE −∞, {bits} in every order."
        if two is not None and two.empty_stays_empty:
            yield "Two of no keys merge to O = 0 and LSE = −∞, not to NaN."
    elif parts.lse == BASE_2:
        yield "LSE in base 2, merged with powers of 2, makes the same O."
    elif parts.lse == MIXED and two is not None:
        keys, (right, wrong) = two.keys, two.shares
        of = f"A prefix of {plural(keys[0], 'key')} and a suffix of {count_text(keys[1])}"
        yield (
            f"{of}: the suffix weighs {percent(wrong)} in place of {percent(right)}, "
            f"O is {percent(two.off)} off."
        )


def percent(share: float) -> str:
    """Return a share in percent."""
    return f"{number_text(100 * share, 2)}\u00a0%"


def _dealt(parts: Parts) -> str:
    """Return where partials come from: they are not always the splits of the board."""
    if not parts.dealt_anew:
        return "Each partial is what a split of the run leaves."
    each = f"{plural(len(parts.keys[0]), 'key')} to a partial."
    if not parts.own_splits:
        return f"For this panel keys are dealt out, {each}"
    own = plural(parts.own_splits, "split")
    return f"The run has {own}: for this panel keys are dealt out anew, {each}"


def keys_of(state: RowMerge, node: Node) -> tuple[str, ...]:
    """Return the keys of a node, or how many partials it has; longest first."""
    assert state.parts is not None
    own = leaves(node)
    if len(own) > 1:
        return f"{len(own)} merged", f"{len(own)}"
    keys = state.parts.keys[own[0]]
    if not keys:
        return "no keys", "none", ""
    some = f"{keys.start}–{keys.stop - 1}"
    if len(keys) == 1:
        return f"key {keys.start}", f"{keys.start}", ""
    return f"keys {some}", some, f"{keys.start}", ""


def words_of_sums(state: BlockSums) -> Words:
    """Return which sums are shown, how many bits an order changes, and what an order costs."""
    if state.sums is None:
        return Words(f"{state.where}: nothing to add up", sentences=(state.why,))
    order = f"{state.order}, draw {state.seed + 1}" if state.order == DRAWN else state.order
    count = len(state.sums.columns)
    blocks = "one column block adds" if count == 1 else f"{count_text(count)} column blocks add"
    title = f"{state.where}: {blocks} to {state.tensor}, {order}"
    return Words(title, sentences=(_moved(state), *_costs(state)))


def _moved(state: BlockSums) -> str:
    """Return how many sums have other bits than in order."""
    assert state.sums is not None
    here = state.apart
    moved, size = int(np.count_nonzero(here)), plural(here.size, "number")
    if len(state.sums.columns) == 1:
        return "A single term has no order: the same bits every time."
    if state.order == FIRST:
        return f"The order of column blocks: the same {size} of these rows every time."
    if not moved:
        return f"All {size} of these rows have the same bits as in order."
    one, other = (x.astype(np.float64) for x in state.both)
    off = number_text(float(np.abs(one - other).max()), 2)
    steps = plural(int(here.max()), "float32 number")
    have = f"{count_text(moved)} of {size} {'has' if moved == 1 else 'have'}"
    return f"{have} other bits than in order: by {off} at most, {steps} apart."


def _costs(state: BlockSums) -> Iterator[str]:
    one, shares = (bytes_text(size) for size in state.room)
    if state.whole is not None:
        numbers = f"{plural(state.whole.numbers, 'number')} of {state.tensor}"
        yield f"Of all {numbers}, {count_text(state.whole.moved)} move in {TRIED} random orders."
    if state.turns is not None:
        how = f"In order{', as in this run,' if state.in_turn else ' (deterministic)'}"
        longer = f"this launch takes {100 * state.turns.longer:.0f}\u00a0% longer (a model)"
        counters = bytes_text(state.turns.counter_bytes)
        yield f"{how} column blocks wait for turns: {longer}, counters take {counters}."
    yield f"Or each tile stores a share of its own: {shares} in the place of {one}."


def bits_of(state: BlockSums) -> str:
    """Return which number has its bits shown, and how many of them differ."""
    row, column = state.at
    count, size = len(state.differing), len(state.bits[0])
    differ = f"{count} of {size} bits differ{'s' * (count == 1)}" if count else "the same bits"
    return f"{state.tensor}[{state.rows[row]}, {column}]: {differ}"


_FIELDS = (("sign", 0, 1), ("exponent", 1, 9), ("fraction", 9, 32))
"""The bits of a float32: where each field begins and ends."""


@dataclass(frozen=True, eq=False)
class _Tree(Box):
    """Nodes with lines from each node to the node that it was merged into."""

    nodes: tuple[tuple[float, int, Box], ...]  # middle as a share of the width, level, node
    count: int  # nodes beside each other
    levels: int
    lines: tuple[tuple[Node, Node], ...]

    def place(self, style: Style, rect: QRectF) -> Iterator[Placed]:
        px, down, inner = style.px, rect.height() / self.levels, list[Placed]()
        wide = min(px(128), rect.width() / self.count - px(4))
        high = min(px(46), max(down - px(10), px(6)))
        for x, level, node in self.nodes:
            left = rect.x() + x * rect.width() - wide / 2
            inner += node.place(style, QRectF(left, rect.y() + level * down, wide, high))
        where = {box.name: place for box, place in inner}

        def draw(painter: QPainter, style: Style, rect: QRectF) -> None:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(style.pen(ink(style, "muted"), 1.4))
            for start, end in ((where[one], where[to]) for one, to in self.lines):
                foot = QPointF(start.center().x(), start.bottom())
                painter.drawLine(QLineF(foot, QPointF(end.center().x(), end.y())))

        yield Placed(Canvas(draw), rect)
        yield from inner


def tree(state: RowMerge) -> Box:
    """Return the partials above, and the merged results below."""
    assert state.parts is not None
    count, places = len(state.parts.partials), dict[Node, float]()
    lines: list[tuple[Node, Node]] = []

    def find(node: Node) -> float:
        if isinstance(node, int):
            places[node] = (sum(isinstance(n, int) for n in places) + 0.5) / count
        else:
            places[node] = sum([find(each) for each in node]) / len(node)
            lines.extend((each, node) for each in node)
        return places[node]

    for root in state.forest:
        find(root)
    nodes = tuple((x, height(node), _node(state, node)) for node, x in places.items())
    return _Tree(nodes, count, 1 + max(map(height, state.forest)), tuple(lines))


def _node(state: RowMerge, node: Node) -> Box:
    """Return a node: its keys, its LSE, and its O as a strip."""
    assert state.parts is not None
    result = state.parts.result(node)
    limit = signed_limit(state.parts.exact.astype(np.float32)) or 1.0
    lse = float(result.lse[0])

    strip = Heat(result.o.astype(np.float32), -limit, limit, "O")
    taken = state.parts.lse == MIXED and not isinstance(node, int)  # merged in the wrong base
    name = "LSE" if taken else "log₂ Σ" if state.parts.in_2 else "m + ln ℓ"
    said = (f"{name} {number_text(lse)}", f"LSE {number_text(lse)}", number_text(lse, 1))
    content = Column((
        Text(keys_of(state, node), align=CENTRE, wide=0, high=14, may_go=True),
        Text(said, align=CENTRE, wide=0, high=14, may_go=True),
        Image(strip, framed=False, high=4, grow=1),
    ), gap=0)  # fmt: skip
    tree = state.forest.index(node) if node in state.forest else None
    held = tree is not None and tree == state.selected
    border, thick = ("grid", 1.0) if tree is None else ("current", 2.4) if held else ("O", 1.4)
    return Card(content, border=border, thick=thick, id=tree, name=node)


def numbers(state: BlockSums) -> Box:
    """Return how far each sum moves, above the bits of one sum."""
    apart, differing = state.apart, state.differing
    moved = np.where(apart > 0, apart, -np.inf).astype(np.float32)
    said = {(i, j): GridCell(str(apart[i, j])) for i, j in np.argwhere(apart > 0)}
    said[state.at] = said.get(state.at, GridCell())._replace(frame="current")
    bits = {
        (row, n): GridCell(bit, "bad", "bad") if n in differing else
        GridCell(bit, "muted" if 1 <= n < 9 else "text")
        for row, each in enumerate(state.bits) for n, bit in enumerate(each)
    }  # fmt: skip
    captions = (
        "How many float32 numbers each sum is from that in order; press one to see its bits",
        "Float32 numbers from the sum in order",
    )
    return Column((
        Text(captions, "muted", wide=0, may_go=True), Box(high=4),
        CellGrid(apart.shape, said, (64, 26), tuple(f"row {row}" for row in state.rows),
             Heat(moved, 0.0, max(float(apart.max()), 1.0), "P"), id="sum", name="cells", high=32,
             grow=1),
        Box(high=6), Text(bits_of(state), wide=0),
        CellGrid((2, len(state.bits[0])), bits, (14, 16),
             (FIRST, state.order if state.order != FIRST else "again"), name="bits", high=32),
        Box(name="fields", high=16, may_go=True), Box(high=4, may_go=True),
    ), gap=0, over=_draw_fields)  # fmt: skip


def _draw_fields(painter: QPainter, style: Style, where: Where) -> None:
    """Draw the names of bit fields below the bits."""
    bits, below = where["bits"], where.get("fields", QRectF())
    wide = bits.width() / _FIELDS[-1][2]
    for name, begin, end in _FIELDS:
        place = QRectF(bits.x() + begin * wide, below.y(), (end - begin) * wide, below.height())
        Text((name, ""), "muted", CENTRE).paint(painter, style, place)


Found = tuple[RowMerge, BlockSums | None]


@dataclass(frozen=True, eq=False)
class MergeState:
    """Partials of a row, and in a backward pass the sums of its row block."""

    partials: RowMerge
    sums: BlockSums | None = None
    subject: str = SUMS  # partials or sums, if there are both

    @property
    def shown(self) -> RowMerge | BlockSums:
        """The part on show."""
        return self.partials if self.sums is None or self.subject == PARTIALS else self.sums

    def chosen(self, name: str, value: str) -> MergeState:
        """Return the state after a choice."""
        if name == "subject":
            return replace(self, subject=value)
        if name == "order":
            return replace(self, partials=self.partials.ordered(value))
        if name == "lse":
            return replace(self, partials=self.partials.with_lse(value))
        return replace(self, sums=self.sums and self.sums.ordered(value))


class MergeStudy(Study[Found, MergeState]):
    """Partials of the selected row, or the sums in HBM that a run's tiles add to."""

    name, title, doing = "merge", "Merge", "partials of a row"
    pictured = "Partials of a row, or sums of gradients"
    choices, smallest, share = CHOICES, 0.92, 0.5

    def lesson(self, said: Chosen) -> Chosen:
        return {
            **super().lesson(said),
            "subject": PARTIALS if {"order", "lse"} & said.keys() else SUMS,
        }

    def hidden(self, trace: Trace, chosen: Chosen) -> frozenset[str]:
        if not adds_to_rows(trace):
            return frozenset({"subject", "sums"})
        return frozenset({"order", "lse"} if chosen["subject"] == SUMS else {"sums"})

    def needs(self, trace: Trace, view: View, chosen: Chosen) -> Hashable:
        return view.snapshot.visit.head, view.report.row

    def compute(self, trace: Trace, needs: Any, report: Report) -> Found:
        head, row = needs
        block = row // trace.workload.rows
        sums = block_sums(trace, head, block) if adds_to_rows(trace) else None
        return row_merge(trace, head, row), sums

    def state(
        self, found: Found, chosen: Chosen, before: MergeState | None, changed: str
    ) -> MergeState:
        if before is not None and changed:
            return before.chosen(changed, chosen[changed])
        state = MergeState(*found, chosen["subject"])
        for name in ("order", "lse", "sums"):
            state = state.chosen(name, chosen[name])
        return state

    def key(self, state: MergeState, key: Qt.Key, *, ctrl: bool) -> MergeState | None:
        merge = state.shown
        if not isinstance(merge, RowMerge) or merge.parts is None:
            return None
        turn = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(key)
        if turn is not None:
            merge = merge.shift(turn) if ctrl else merge.select(turn)
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            merge = merge.merge(merge.selected + 1, merge.selected)
        elif key is Qt.Key.Key_Backspace:
            merge = merge.take_back()
        else:
            return None
        return replace(state, partials=merge)

    def press(self, state: MergeState, at: Hashable) -> MergeState | None:
        match at:
            case int():
                return replace(state, partials=replace(state.partials, selected=at))
            case ("sum", int(row), int(column)) if state.sums is not None:
                return replace(state, sums=replace(state.sums, chosen=(row, column)))
        return None

    def drag(self, state: MergeState, one: Hashable, onto: Hashable) -> MergeState | None:
        if isinstance(one, int) and isinstance(onto, int):
            return replace(state, partials=state.partials.merge(one, onto))
        return None

    def takes(self, before: MergeState, after: MergeState) -> Chosen:
        return {"order": ""} if before.partials.forest != after.partials.forest else {}

    def words(self, state: MergeState) -> Words:
        shown = state.shown
        return words_of_partials(shown) if isinstance(shown, RowMerge) else words_of_sums(shown)

    def described(self, state: MergeState) -> tuple[str, ...]:
        (title, *said), shown = super().described(state), state.shown
        if isinstance(shown, RowMerge):
            merged = (
                f"{keys_of(shown, each)[0]} ({', '.join(map(str, leaves(each)))})"
                for each in shown.forest
            )
            return title, "; ".join(merged), *said
        return title, bits_of(shown) if shown.sums is not None else "", *said

    def picture(self, state: MergeState) -> Box | None:
        shown = state.shown
        if isinstance(shown, RowMerge):
            return None if shown.parts is None else tree(shown)
        return None if shown.sums is None else numbers(shown)


MERGE = MergeStudy()
