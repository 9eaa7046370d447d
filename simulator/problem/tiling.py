"""How the score matrix is cut into tiles, which tiles have visible pairs, published sizes."""

from __future__ import annotations

from enum import IntEnum
from functools import cached_property
from math import ceil

import numpy as np
from numpy.typing import NDArray

from simulator.base.dtypes import WIDTH
from simulator.problem.hardware import Gpu
from simulator.problem.intervals import I64, Intervals
from simulator.problem.masks import Mask


class TileKind(IntEnum):
    """How much of a tile's valid pairs the mask leaves visible."""

    SKIPPED = 0
    PARTIAL = 1
    FULL = 2


class TileGrid:
    """The tiles of one head's score matrix under a mask, by arithmetic.

    Time and memory grow with the number of row blocks, column blocks and the mask's intervals of
    blocks, never with the number of tiles.
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
    def visited_columns(self) -> Intervals:
        """Visited column blocks of each row block."""
        return self.mask.visited_columns(self.rows, self.cols)

    @cached_property
    def full_columns(self) -> Intervals:
        """Column blocks of each row block that are visible in full."""
        return self.mask.full_columns(self.rows, self.cols)

    @cached_property
    def visited_rows(self) -> Intervals:
        """Visited row blocks of each column block."""
        return self.mask.visited_rows(self.rows, self.cols)

    @cached_property
    def full_rows(self) -> Intervals:
        """Row blocks of each column block that are visible in full."""
        return self.mask.full_rows(self.rows, self.cols)

    def kind(self, i: int, j: int) -> TileKind:
        """Return the kind of tile (i, j)."""
        if self.full_columns.place(i, j) is not None:
            return TileKind.FULL
        seen = self.visited_columns.place(i, j) is not None
        return TileKind.PARTIAL if seen else TileKind.SKIPPED

    def kinds(self) -> NDArray[np.uint8]:
        """Return the kind of every tile, uint8 of shape (Tr, Tc)."""
        return self.kinds_at(np.arange(self.Tr), np.arange(self.Tc))

    def kinds_at(self, i: I64, j: I64) -> NDArray[np.uint8]:
        """Return the kinds of tiles in row blocks `i` and ascending column blocks `j`, uint8."""
        every = (self.visited_columns, self.full_columns)
        visited, full = (each.among(i, j).view(np.uint8) for each in every)
        return visited + full

    @property
    def full_tiles(self) -> int:
        """Tiles of one head that are visible in full."""
        return int(self.full_columns.sums[-1])


ENOUGH = 4  # a run with this many row blocks and column blocks shows how it works


def seen_size(size: int, length: int) -> int:
    """Return a tile size, made smaller if it cuts a length into too few blocks to watch."""
    return size if ceil(length / size) >= ENOUGH else max(1, length // ENOUGH)


def paper_tiles(head_dim: int, dtype: str, gpu: Gpu) -> tuple[int, int]:
    """Return (Br, Bc) as FlashAttention-1 chooses them; M is the SRAM in elements.

    References: Dao et al. 2022, Algorithm 1, line 1: ``Bc = ceil(M / 4d)``, ``Br = min(Bc, d)``.
    """
    cols = ceil(gpu.smem_bytes / (WIDTH[dtype] * 4 * head_dim))
    return min(cols, head_dim), cols


def fa2_tiles(head_dim: int, causal: bool, window: bool, gpu: Gpu) -> tuple[int, int]:
    """Return (Br, Bc) of the forward kernels that FlashAttention-2 ships, without dropout.

    A kernel with a window is not a causal kernel, even if the mask is causal. With at most 99 KiB a
    block, GPUs of sm_86 and sm_89 use smaller tiles and sm_120 does not; GPUs without a kernel get
    the smaller tiles. Above d = 192 only GPUs like the A100 use the large tile: the large tile
    needs 128 KiB a block, and if an SM has 192 KiB (H100), two small blocks are faster than one
    large block.

    References: Dao-AILab/flash-attention, csrc/flash_attn/src/flash_fwd_launch_template.h;
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

    References: Dao-AILab/flash-attention, hopper/tile_size.h, ``tile_size_fwd_sm90``, element_size
    2; hopper/flash_api.cpp: with a window a kernel is local and not causal, and if d <= 64, values
    are padded to 64, 256 or 512.
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
