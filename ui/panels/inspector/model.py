"""The contents of the attention inspector as plain data, and its words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from simulator.base.dtypes import F32, frozen
from simulator.base.picture import Picture
from simulator.problem.intervals import Bools
from simulator.problem.masks import Mask
from simulator.problem.workload import Workload
from simulator.study.attention_map import AttentionMaps, HeadDifference, MapSettings, pool_block
from ui.board.layout import Viewport, clamped, visible_count
from ui.look.heat import ResultCache
from ui.look.names import key_name, row_name
from ui.look.pieces import picture_of
from ui.look.units import count_text, exact_text, number_text

KEPT = ResultCache(64, 64 * 2**20)
"""Pooled maps and their images, kept as long as their weights exist."""


@dataclass(frozen=True, eq=False)
class InspectorModel:
    """One head, or two heads compared, and the small maps of all heads."""

    workload: Workload  # shapes, tokens, which heads these are
    maps: AttentionMaps  # weights of `head` and of `other`
    head: int  # the current head
    other: int | None  # the head that it is compared with
    v: F32  # (Nk, dv), values that `head` reads
    # (all heads, r, c), each the largest weight of a block; None: not made
    small: F32 | None = None
    notes: tuple[str, ...] = ()  # parts left out, settings that the file determines
    # jacobian, blend: whether the row's Jacobian, or the sum of its output, stands in place of
    # the keys that the row reads
    jacobian: bool = False
    blend: bool = False

    @cached_property
    def difference(self) -> HeadDifference | None:
        """The two heads compared."""
        return None if self.other is None else self.maps.difference(self.head, self.other)

    @property
    def values(self) -> F32:
        """The values of the map, (rows, Nk): weights, or differences of weights."""
        return self.maps.of(self.head) if self.difference is None else self.difference.weights

    @property
    def rows(self) -> range:
        """The query rows of the map."""
        return self.maps.rows

    @property
    def keys(self) -> int:
        """How many keys there are."""
        return self.workload.seqlen_k

    def name_of(self, head: int) -> str:
        """Return the name of a head: its number in the input."""
        return f"head {self.workload.picked[head]}"

    @property
    def picture(self) -> Picture | None:
        """The picture whose pieces are the keys."""
        return picture_of(self.workload)

    @property
    def tokens(self) -> bool:
        """Whether the input has its tokens."""
        return self.workload.has_tokens

    def sees(self, row: int, key: int) -> bool:
        """Return whether the mask lets a row see a key."""
        return bool(self.seen(range(row, row + 1), range(key, key + 1))[0, 0])

    def seen(self, rows: range, keys: range) -> Bools:
        """Return which pairs the mask shows to the head, or to one of the two compared heads."""
        heads = (self.head,) if self.other is None else (self.head, self.other)
        first, *other = (self.maps.mask.of_head(head).visible(rows, keys) for head in heads)
        return first | other[0] if other else first

    def value(self, row: int, key: int) -> float:
        """Return the map's value for a pair."""
        return float(self.values[self.rows.index(row), key])


@dataclass(frozen=True, slots=True)
class MapPointer:
    """A cell or row of the map."""

    row: int  # the query row that is read
    key: int | None = None  # the key under the pointer
    dim: int | None = None  # the dimension of the output under the pointer


@dataclass(frozen=True, slots=True)
class Grid:
    """How a map is reduced to the space that it has."""

    tall: int  # tall, wide: rows and keys of the block that one cell shows
    wide: int
    rows: int  # rows, cols: how many cells there are
    cols: int
    top: int = 0  # top, left: first row of the map and first key that are shown
    left: int = 0

    @property
    def words(self) -> str:
        """The block that one coloured cell stands for; empty for a single pair."""
        if self.tall == self.wide == 1:
            return ""
        return f"each cell the largest of {self.tall} × {count_text(self.wide)}"

    def cell_of(self, row: int, key: int) -> tuple[int, int]:
        """Return the cell of a row of the map and a key, which may be outside."""
        return (row - self.top) // self.tall, (key - self.left) // self.wide

    def row_at(self, r: int) -> int:
        """Return the first row of the map in a row of cells."""
        return self.top + r * self.tall

    def key_at(self, c: int) -> int:
        """Return the first key in a column of cells."""
        return self.left + c * self.wide


def map_view(model: InspectorModel, view: Viewport) -> Viewport:
    """Return a view of the map that shows nothing outside it: x counts keys, y rows of the map."""
    height, width = model.values.shape
    return clamped((height, width, 1, 1), view)


def grid_of(model: InspectorModel, rows: int, cols: int, view: Viewport | None = None) -> Grid:
    """Return the grid of a view's part of the map, with at most `rows` by `cols` cells."""
    view = map_view(model, view or Viewport())

    def along(count: int, start: float, most: int) -> tuple[int, int, int]:
        shown = math.ceil(visible_count(count, view.zoom))
        block = pool_block(shown, max(most, 1))
        return block, math.ceil(shown / block), min(round(start), count - shown)

    height, width = model.values.shape
    tall, down, top = along(height, view.y, rows)
    wide, across, left = along(width, view.x, cols)
    return Grid(tall, wide, down, across, top, left)


def shrunk(model: InspectorModel, grid: Grid) -> F32:
    """Return each block's value of largest magnitude, (rows, cols); −∞ if all are hidden."""
    key = ("shrunk", model.head, model.other, grid)

    def make() -> F32:
        rows = range(len(model.rows))[grid.top : grid.row_at(grid.rows)]
        keys = range(model.keys)[grid.left : grid.key_at(grid.cols)]
        part = model.values[rows.start : rows.stop, keys.start : keys.stop]
        values = np.array(part, dtype=np.float32)
        if model.maps.mask.hides:
            values[~model.seen(model.rows[rows.start : rows.stop], keys)] = -np.inf
        if grid.tall == grid.wide == 1:
            return frozen(values)
        high = _reduced(np.maximum, values, grid)
        if model.other is None:
            return frozen(high)
        low = _reduced(np.minimum, np.where(np.isneginf(values), np.float32(0), values), grid)
        return frozen(np.where(np.isneginf(high) | (high >= -low), high, low))

    return KEPT.get(model.maps.weights, key, make)


def _reduced(by: np.ufunc, values: F32, grid: Grid) -> F32:
    """Return a value for each block; the last ones may be short."""
    whole = values.shape[1] // grid.wide * grid.wide
    parts = [by.reduce(values[:, :whole].reshape(len(values), -1, grid.wide), axis=2)]
    if whole < values.shape[1]:
        parts.append(by.reduce(values[:, whole:], axis=1)[:, None])
    across = np.concatenate(parts, axis=1)
    out: F32 = by.reduceat(across, np.arange(0, len(across), grid.tall), axis=0)
    return out


def peak(model: InspectorModel, grid: Grid, r: int, c: int) -> tuple[int, int]:
    """Return row and key of the pair whose value a cell of the grid shows."""
    top, left = grid.row_at(r), grid.key_at(c)
    block = model.values[top : top + grid.tall, left : left + grid.wide]
    rows = range(top, top + block.shape[0])
    keys = range(left, left + block.shape[1])
    size = np.abs(block).astype(np.float64)
    if grid.tall * grid.wide > 1 and model.maps.mask.hides:
        all_rows = range(model.rows[rows.start], model.rows[rows.stop - 1] + 1)
        size[
            ~model.seen(all_rows, keys)
        ] = -1.0  # a visible key may have weight 0, as hidden keys do
    at, column = divmod(int(size.argmax()), block.shape[1])
    return model.rows[rows[at]], keys[column]


def mask_of(workload: Workload, settings: MapSettings) -> Mask:
    """Return the mask of some settings."""
    return settings.mask(workload.seqlen_q, workload.seqlen_k)


def with_hidden(small: F32, mask: Mask, size: tuple[int, int]) -> F32:
    """Return small maps of all rows, with −∞ for a block without visible pairs.

    small: (heads, r, c) float32, of blocks as `simulator.study.attention_map.pool_block` cuts them.
    size: most rows and columns, for which the blocks were cut.
    """
    if not mask.hides:
        return small
    tall, wide = pool_block(mask.seqlen_q, size[0]), pool_block(mask.seqlen_k, size[1])
    starts = np.arange(0, mask.seqlen_k, wide)
    seen, before = np.empty(small.shape, dtype=np.bool_), None
    for head in range(len(small)):
        own = mask.of_head(head)
        if own is before:
            seen[head] = seen[head - 1]
            continue
        before = own
        for n in range(small.shape[1]):
            rows = range(n * tall, min((n + 1) * tall, mask.seqlen_q))
            some = own.visible(rows, range(mask.seqlen_k)).any(axis=0)
            seen[head, n] = np.logical_or.reduceat(some, starts)
    return frozen(np.where(seen, small, np.float32(-np.inf)))


# --- words --------------------------------------------------------------------------------


def reading(model: InspectorModel, pointer: MapPointer) -> str:
    """Return the words for the pointed place, with the exact number."""
    row, key = pointer.row, pointer.key
    head = model.name_of(model.head)
    if key is None:
        if model.other is None or model.difference is None:
            return f"{head}, {entropy_words(model, row)}"
        moved = number_text(float(model.difference.moved[model.rows.index(row)]), 2)
        both = f"{head} less {model.name_of(model.other)}, {row_name(model.workload, row)}"
        return f"{both}: {moved} of the weight lies on other keys"
    pair = f"{row_name(model.workload, row)} reads {key_name(model.workload, key)}"
    if not model.sees(row, key):
        return (
            f"{head}, {row_name(model.workload, row)} does not see {key_name(model.workload, key)}"
        )
    local = model.rows.index(row)
    weight = model.maps.of(model.head)[local, key]
    if model.other is None:
        return f"{head}, {pair}: {exact_text(weight)}"
    other = model.maps.of(model.other)[local, key]
    return (
        f"{pair}: {head} {exact_text(weight)}, {model.name_of(model.other)} "
        f"{exact_text(other)}, difference {exact_text(model.value(row, key))}"
    )


def entropy_words(model: InspectorModel, row: int) -> str:
    """Return the entropy of a row in words."""
    found = model.maps.row(model.head, row, most=1)
    name = row_name(model.workload, row)
    if not found.visible:
        return f"{name} sees no key: its output is 0"
    words = f"{name}: entropy {number_text(found.entropy, 2)} bits"
    if found.visible > 1:
        most = number_text(math.log2(found.visible), 2)
        words += f" of at most {most}, over {count_text(found.visible)} keys"
    return words


def short_entropy(model: InspectorModel, row: int) -> str:
    """Return the entropy of a row in few words."""
    found = model.maps.row(model.head, row, most=1)
    if found.visible < 2:
        return f"{found.visible} key seen"
    most = number_text(math.log2(found.visible), 2)
    return f"entropy {number_text(found.entropy, 2)} of {most} bits"
