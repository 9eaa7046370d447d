"""How the score matrix is cut into tiles, which of them hold anything, and published choices."""

from __future__ import annotations

from enum import IntEnum
from functools import cached_property
from math import ceil

import numpy as np
from numpy.typing import NDArray

from simulator.base.dtypes import WIDTH
from simulator.problem.hardware import Gpu
from simulator.problem.masks import Mask

I64 = NDArray[np.int64]


class TileKind(IntEnum):
    """How much of a tile the mask leaves visible, of its valid pairs."""

    SKIPPED = 0
    PARTIAL = 1
    FULL = 2


class TileGrid:
    """The tiles of one head's score matrix under a mask, by arithmetic.

    The visible part of a row block is at most two runs of keys, the sinks and a band, so its
    visited column blocks are at most two intervals; those of a column block are one. Nothing
    here grows with the number of tiles, only with the number of row and column blocks.

    Parameters
    ----------
    mask : Mask
        Sizes and visibility.
    rows, cols : int
        ``Br`` and ``Bc``.
    """

    def __init__(self, mask: Mask, rows: int, cols: int) -> None:
        self.mask = mask
        self.rows = rows
        self.cols = cols
        self.Tr = ceil(mask.seqlen_q / rows)
        self.Tc = ceil(mask.seqlen_k / cols)

    def row_range(self, i: int) -> range:
        """Return the valid query rows of row block `i`."""
        return range(i * self.rows, min((i + 1) * self.rows, self.mask.seqlen_q))

    def col_range(self, j: int) -> range:
        """Return the valid keys of column block `j`."""
        return range(j * self.cols, min((j + 1) * self.cols, self.mask.seqlen_k))

    @cached_property
    def row_spans(self) -> I64:
        """Visited column blocks of each row block: (Tr, 4), ``[a, b)`` and ``[c, d)``, b <= c."""
        return row_spans(self.mask, self.rows, self.cols)

    @cached_property
    def full_spans(self) -> I64:
        """Column blocks of each row block that are visible in full: (Tr, 4), as `row_spans`."""
        mask, Nk = self.mask, self.mask.seqlen_k
        first, last = self._shifted_rows
        high = np.full(self.Tr, Nk)
        if mask.causal:
            high = first + 1
        elif mask.window:
            high = first + mask.window
        stop = self._blocks_ending_by(high)
        start = sinks = np.zeros(self.Tr, dtype=np.int64)
        if mask.window:
            low = last - mask.window + 1
            start = np.where(low <= mask.sinks, 0, -(-np.clip(low, 0, Nk) // self.cols))
            reach = np.minimum(mask.sinks, first + 1) if mask.causal else mask.sinks
            sinks = self._blocks_ending_by(np.broadcast_to(reach, (self.Tr,)))
        start = np.maximum(start, sinks)
        zero = np.zeros(self.Tr, dtype=np.int64)
        return np.stack([zero, sinks, start, np.maximum(start, stop)], axis=1)

    @cached_property
    def col_spans(self) -> I64:
        """Visited row blocks of each column block: (Tc, 2), ``[start, stop)``."""
        return col_spans(self.mask, self.rows, self.cols)

    def kind(self, i: int, j: int) -> TileKind:
        """Return the kind of tile (i, j)."""
        a, b, c, d = self.full_spans[i].tolist()
        if a <= j < b or c <= j < d:
            return TileKind.FULL
        a, b, c, d = self.row_spans[i].tolist()
        return TileKind.PARTIAL if a <= j < b or c <= j < d else TileKind.SKIPPED

    def kinds(self) -> NDArray[np.uint8]:
        """Return the kind of every tile, uint8 of shape (Tr, Tc)."""
        j = np.arange(self.Tc)[None, :]

        def inside(spans: I64) -> NDArray[np.uint8]:
            a, b, c, d = (spans[:, n, None] for n in range(4))
            return np.asarray(((a <= j) & (j < b)) | ((c <= j) & (j < d)), dtype=np.uint8)

        return inside(self.row_spans) + inside(self.full_spans)

    @cached_property
    def visited_per_row(self) -> I64:
        """Visited tiles of each row block, (Tr,)."""
        return _blocks_in(self.row_spans)

    @cached_property
    def full_tiles(self) -> int:
        """Tiles of one head that are visible in full."""
        return int(_blocks_in(self.full_spans).sum())

    @property
    def _shifted_rows(self) -> tuple[I64, I64]:
        """``i'`` of the first and last valid row of each row block, (Tr,) each."""
        return _shifted_rows(self.mask, self.rows)

    def _blocks_ending_by(self, key: I64) -> I64:
        """Return how many column blocks end at or before each `key`."""
        whole = np.clip(key, 0, self.mask.seqlen_k) // self.cols
        return np.where(key >= self.mask.seqlen_k, self.Tc, whole)


def row_spans(mask: Mask, rows: int, cols: int | I64) -> I64:
    """Return the visited column blocks of every row block, for one ``Bc`` or several.

    Parameters
    ----------
    mask : Mask
        Sizes and visibility.
    rows : int
        ``Br``.
    cols : int or ndarray
        ``Bc``, or several of them as (n, 1) int64.

    Returns
    -------
    ndarray
        (Tr, 4) or (n, Tr, 4) int64: ``[a, b)`` and ``[c, d)``, b <= c.
    """
    Nk = mask.seqlen_k
    first, last = _shifted_rows(mask, rows)
    high = np.full(len(first), Nk)
    low = np.zeros(len(first), dtype=np.int64)
    if mask.causal:
        high = last + 1
    elif mask.window:
        high = last + mask.window
    if mask.window:
        low = first - mask.window + 1
    high, low = np.clip(high, 0, Nk), np.clip(low, 0, Nk)
    start, stop = low // cols, -(-high // cols)  # where nothing is left, both are 0
    sinks = np.zeros_like(start)
    if mask.window and mask.sinks:
        reach = np.minimum(mask.sinks, Nk)
        if mask.causal:
            reach = np.clip(last + 1, 0, reach)
        sinks = np.broadcast_to(-(-reach // cols), start.shape)
    joined = sinks >= start
    union = np.maximum(sinks, stop)
    ends = [np.where(joined, union, alone) for alone in (sinks, start, stop)]
    return np.stack([np.zeros_like(start), *ends], axis=-1)


def col_spans(mask: Mask, rows: int | I64, cols: int) -> I64:
    """Return the visited row blocks of every column block, for one ``Br`` or several.

    Parameters
    ----------
    mask : Mask
        Sizes and visibility.
    rows : int or ndarray
        ``Br``, or several of them as (n, 1) int64.
    cols : int
        ``Bc``.

    Returns
    -------
    ndarray
        (Tc, 2) or (n, Tc, 2) int64: ``[start, stop)``.
    """
    Tr = -(-mask.seqlen_q // rows)
    first = np.arange(ceil(mask.seqlen_k / cols)) * cols
    end = np.minimum(first + cols, mask.seqlen_k)
    # As many as there are blocks of both, whatever the mask does.
    start = np.zeros_like(first * rows)
    stop = np.broadcast_to(Tr, start.shape)
    if mask.window:
        sink = first < mask.sinks
        last_row = end + mask.window - 2 - mask.shift
        stop = np.where(sink, Tr, np.minimum(Tr, last_row // rows + 1))
    if mask.causal or mask.window:
        reach = 0 if mask.causal else mask.window - 1
        first_row = np.maximum(first - reach - mask.shift, 0)
        start = first_row // rows
        if not mask.causal:
            start = np.where(sink, 0, start)
    return np.stack([start, np.maximum(start, stop)], axis=-1)


def _blocks_in(spans: I64) -> I64:
    return np.asarray((spans[:, 1::2] - spans[:, ::2]).sum(axis=1))


def _shifted_rows(mask: Mask, rows: int) -> tuple[I64, I64]:
    first = np.arange(ceil(mask.seqlen_q / rows)) * rows
    last = np.minimum(first + rows, mask.seqlen_q) - 1
    return first + mask.shift, last + mask.shift


def paper_tiles(head_dim: int, dtype: str, gpu: Gpu) -> tuple[int, int]:
    """Return (Br, Bc) as FlashAttention-1 chooses them, M being the SRAM in elements.

    References
    ----------
    Dao et al. 2022, Algorithm 1, line 1: ``Bc = ceil(M / 4d)``, ``Br = min(Bc, d)``.
    """
    cols = ceil(gpu.smem_bytes / (WIDTH[dtype] * 4 * head_dim))
    return min(cols, head_dim), cols


def fa2_tiles(head_dim: int, causal: bool, window: bool, gpu: Gpu) -> tuple[int, int]:
    """Return (Br, Bc) of the forward kernels that FlashAttention-2 ships, without dropout.

    With a window a kernel is none of the causal ones, though the mask be causal. Of the cards
    with at most 99 KiB a block, those of sm_86 and sm_89 take smaller tiles and sm_120 does not;
    cards for which no kernel ships are given the smaller ones. Above d = 192 only A100-like cards
    take the large tile: it needs 128 KiB a block, and where an SM has 192 KiB (H100) two small
    blocks on it are faster than a large one.

    References
    ----------
    Dao-AILab/flash-attention, csrc/flash_attn/src/flash_fwd_launch_template.h;
    csrc/flash_attn/flash_api.cpp, ``params.is_causal``.
    """
    consumer = gpu.smem_kib <= 99 and gpu.capability < 9
    if head_dim <= 64:
        return 128, 128
    if head_dim <= 128 and consumer and causal and not window:
        return 64, 64
    if 96 < head_dim <= 128 and consumer:
        return 128, 32
    if head_dim <= 192 or 128 <= gpu.smem_kib < 191:  # an SM has 1 KiB more than a block may take
        return 128, 64
    return 64, 64


def fa3_tiles(head_dim: int, value_dim: int, causal: bool, window: bool) -> tuple[int, int]:
    """Return (Br, Bc) of the fp16/bf16 forward kernels that FlashAttention-3 ships for Hopper.

    References
    ----------
    Dao-AILab/flash-attention, hopper/tile_size.h, ``tile_size_fwd_sm90``, element_size 2;
    hopper/flash_api.cpp: with a window a kernel is local and not causal, and beside
    d <= 64 values are padded to 64, 256 or 512.
    """
    if head_dim <= 64 and value_dim > 64:
        return (128, 112) if value_dim <= 256 else (64, 64)
    if head_dim <= 64:
        return 192, 160 if window else 128 if causal else 192
    if head_dim <= 96:
        return 192, 128 if window else 144
    if head_dim <= 128:
        return 128, 128 if causal or window else 176
    if head_dim <= 192:
        return 128, 96 if window else 128 if value_dim <= 128 else 112
    return 128, 64 if window else 80
