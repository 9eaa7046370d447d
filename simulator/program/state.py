"""The data of ops: tiles that move, tiles on chip, and the numbers of HBM and one chip."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from simulator.problem.paging import TABLE, PagedTensor, PageTable
from simulator.program.tensors import COMMON, INPUTS, SINK, Axis, TensorSpec

Place = Literal["shared", "registers"]
Values = NDArray[Any]  # float32 or float64, as the state computes
Numbers = Mapping[str, Values]  # arrays by the name of their tensor or statistic


@dataclass(frozen=True, slots=True)
class TileMove:
    """One tile on its way between HBM and the chip."""

    tensor: str  # ``Q K V S P O LSE m l``
    head: int  # index along the tensor's first axis: the KV head for K and V
    rows: range  # rows of the tensor; for S and P the query rows
    cols: range | None  # keys, for S and P alone
    bytes: int  # bytes that the move requests
    split: int | None = None  # which of the splits, of a tensor that has some; None for all of them


@dataclass(frozen=True, slots=True)
class ChipTile:
    """A tile held on chip."""

    name: str  # tensor or statistic; one name is held once
    bytes: int  # its size
    place: Place  # ``shared`` memory, which the GPU preset limits for each block, or ``registers``
    stays: bool = False  # whether it outlives the visit, until its row or column block is done


class State:
    """HBM and one chip, on which the ops run.

    HBM starts as NaN where an algorithm has not written, so that reading too early shows.

    q, k, v: (heads, Nq, d), (kv_heads, Nk, d), (kv_heads, Nk, dv).
    head: the one query head whose tensors can be written; without it all heads.
    rows: the query rows that can be written; without it all rows.
    tensors: the tensors that can be written, in addition to `COMMON`.
    features: how many numbers a feature map makes of a row.
    projection: (f, d), the directions of a feature map: on chip from the start, and no bytes are
        counted.
    sinks: (heads, query heads packed into one), logits that join the softmax.
    given: tensors in HBM beside Q, K and V, such as gates, by name.
    inputs: the tensors in which Q, K and V lie; without one for values, they lie in the keys.
    pages: where the pages of K and V lie; without it K and V have no pages.
    chip: the newest numbers of the row block or tile at hand, by name. Numbers that have left the
        chip stay here until they are made or loaded again.
    hbm: tensors in HBM: the inputs as they were given, and the writable part of the others,
        (heads, rows, ...).
    written: the tensors that can be written.
    """

    def __init__(
        self,
        q: NDArray[np.floating],
        k: NDArray[np.floating],
        v: NDArray[np.floating],
        number: type[np.floating] = np.float64,
        *,
        head: int | None = None,
        rows: range | None = None,
        tensors: tuple[TensorSpec, ...] = (),
        splits: int = 1,
        features: int = 0,
        projection: NDArray[np.floating] | None = None,
        sinks: NDArray[np.floating] | None = None,
        given: Numbers = MappingProxyType({}),
        inputs: tuple[TensorSpec, ...] = INPUTS,
        pages: PageTable | None = None,
    ) -> None:
        self.number = number
        self.constants: dict[str, Values] = {}
        if projection is not None:
            self.constants["projection"] = projection.astype(number, copy=False)
        self.chip = dict(self.constants)
        self.hbm: dict[str, Values] = {
            **{spec.name: own for spec, own in zip(inputs, (q, k, v), strict=False)},
            **given,
        }
        if sinks is not None:
            self.hbm[SINK.name] = sinks
        self._kv_heads = len(k)
        self._paged: dict[str, PagedTensor] = {}
        if pages is not None:
            self._paged = {
                spec.name: PagedTensor(self.hbm.pop(spec.name), pages) for spec in inputs[1:]
            }
            self.hbm[TABLE] = pages.entries[None]
        self._heads = range(len(q)) if head is None else range(head, head + 1)
        self._rows = range(q.shape[1]) if rows is None else rows
        self.written = {spec.name: spec for spec in (*COMMON, *tensors)}
        self._kv_heads = len(k)
        self._sizes: dict[Axis, int] = {
            "split": splits, "row": len(self._rows), "key": k.shape[1], "value": v.shape[2],
            "depth": q.shape[2], "feature": features, "total": v.shape[2] + 1, "own": 1,
            "page": 1,
        }  # fmt: skip

    @classmethod
    def on_chip(cls, **numbers: Values) -> State:
        """Return a float64 state without HBM, of some numbers on chip."""
        nothing = np.empty((0, 0, 0))
        state = cls(nothing, nothing, nothing)
        state.chip.update(numbers)
        return state

    def tensor(self, name: str) -> Values:
        """Return a tensor in HBM, NaN until it is written."""
        if name not in self.hbm:
            spec = self.written[name]
            heads = self._kv_heads if spec.of_kv_heads else len(self._heads)
            shape = (heads, *(self._sizes[axis] for axis in spec.axes))
            self.hbm[name] = np.full(shape, np.nan, dtype=self.number)
        return self.hbm[name]

    def view(self, move: TileMove) -> Values:
        """Return the part of HBM that a move names; a writable tensor has only the state's rows."""
        tensor = self.tensor(move.tensor)
        if move.tensor not in self.written:
            return tensor[move.head, move.rows.start : move.rows.stop]
        first, every = self._rows.start, slice(None)
        keys = move.rows if move.cols is None else move.cols  # of a tensor of keys, or of pairs
        parts: dict[Axis, slice | int] = {
            "split": every if move.split is None else move.split,
            "row": slice(max(move.rows.start - first, 0), max(move.rows.stop - first, 0)),
            "key": slice(keys.start, keys.stop),
        }
        spec = self.written[move.tensor]
        head = move.head if spec.of_kv_heads else move.head - self._heads.start
        return tensor[head, *(parts.get(axis, every) for axis in spec.axes)]

    def load(self, move: TileMove) -> Values:
        """Return the numbers that a move brings to the chip."""
        found = self.view(move)
        written = move.tensor in self.written
        return found.copy() if written else found.astype(self.number, copy=False)

    def gather(self, move: TileMove, places: Values) -> Values:
        """Return the numbers that a move brings to the chip from pages at some places."""
        rows = self._paged[move.tensor].rows_at(move.head, places.astype(np.int64))
        return rows[: len(move.rows)].astype(self.number, copy=False)

    def store(self, move: TileMove, values: Values | float) -> None:
        """Write a part of HBM."""
        self.view(move)[...] = values

    def copy(self) -> State:
        """Return a copy that changes by itself; S and P are written once, so they are shared."""
        other = copy.copy(self)
        other.chip, other.hbm = dict(self.chip), dict(self.hbm)
        changing = {spec.name for spec in self.written.values() if not spec.of_pairs}
        other.hbm |= {name: self.hbm[name].copy() for name in changing & self.hbm.keys()}
        return other
