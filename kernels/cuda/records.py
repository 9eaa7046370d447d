"""The records of a kernel's trace build, as arrays of the host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernels.cuda.counters import COUNTERS
from kernels.cuda.launch import Device, Recording
from kernels.cuda.specs import SPECS, LaunchPart
from simulator.base.dtypes import F32
from simulator.problem.tiling import TileKind
from simulator.problem.workload import Workload


def detail_type(w: Workload) -> np.dtype[np.void]:
    """Return the layout of one visit's `Detail`, field by field as in the sources."""
    Br, Bc, dv = w.rows, w.cols, w.value_dim
    if w.rule and w.rule.tokens:
        f, total = w.sizes["feature"], w.sizes["total"]
        token: dict[str, tuple[int, ...]] = {
            "phi_q": (1, f), "phi_k": (1, f), "v_old": (1, dv), "u": (1, dv), "o": (1, dv),
            "l": (1,), "state_before": (f, total), "state": (f, total),
        }  # fmt: skip
        return np.dtype([(name, np.float32, shape) for name, shape in token.items()])
    if w.feature_map:
        f, total = w.sizes["feature"], w.sizes["total"]
        linear: dict[str, tuple[int, ...]] = {
            "phi_q": (Br, f), "phi_k": (Bc, f), "s": (Br, Bc), "p": (Br, Bc), "o": (Br, dv),
            "l_tile": (Br,), "l": (Br,), "state_before": (f, total), "state": (f, total),
        }  # fmt: skip
        return np.dtype([(name, np.float32, shape) for name, shape in linear.items()])
    if w.backward:
        d = w.head_dim
        gradients: dict[str, tuple[int, ...]] = {
            "s": (Br, Bc), "p": (Br, Bc), "dp": (Br, Bc), "ds": (Br, Bc),
            "dq_acc_before": (Br, d), "dq_acc": (Br, d), "dk_before": (Bc, d), "dk": (Bc, d),
            "dv_before": (Bc, dv), "dv": (Bc, dv), "d": (Br,),
        }  # fmt: skip
        return np.dtype([(name, np.float32, shape) for name, shape in gradients.items()])
    shapes = {
        "s": (Br, Bc),
        "p": (Br, Bc),
        "o_before": (Br, dv),
        "o": (Br, dv),
        "m_tile": (Br,),
        "l_tile": (Br,),
        "beta": (Br,),
    }
    return np.dtype([(name, np.float32, shape) for name, shape in shapes.items()])


def recording(
    device: Device, w: Workload, kernel: str, part: LaunchPart, *, counters: bool
) -> Recording:
    """Return buffers for a launch, filled with NaN; no tile is visited and nothing counted yet.

    kernel: the kernel that is launched: naive's softmax works on whole rows, as if they were one
        column block; if splits are joined, each split is a column.
    counters: whether requested bytes are counted.
    """
    heads, blocks = len(part.heads), len(part.blocks)
    columns = SPECS[kernel].columns(w)
    per_row = (heads, blocks * w.rows, columns)
    return Recording(
        kinds=device.filled((heads, blocks, columns), np.uint8, TileKind.SKIPPED),
        m=device.filled(per_row, np.float32, 0xFF),
        l=device.filled(per_row, np.float32, 0xFF),
        alpha=device.filled(per_row, np.float32, 0xFF),
        counters=device.filled((heads, blocks, columns, len(COUNTERS)), np.uint64, 0)
        if counters
        else None,
    )


def detail_buffer(device: Device, w: Workload, columns: range) -> Any:
    """Return a buffer for the details of some column blocks, None for no columns."""
    if not columns:
        return None
    floats = detail_type(w).itemsize // 4
    return device.filled((len(columns), floats), np.float32, 0xFF)


@dataclass(frozen=True, slots=True)
class Joined:
    """The record of joining the splits of one row block."""

    # o_partial, lse_partial: (splits, rows, dv) and (splits, rows) float32, as they were in HBM
    o_partial: F32
    lse_partial: F32
    # m, l: (rows,) float32, largest LSE and sum of the weights
    m: F32
    l: F32
    w: F32  # (splits, rows) float32, weights
    o: F32  # (rows, dv) float32, before it is divided by l

    @property
    def bytes(self) -> int:
        """Bytes of its arrays."""
        arrays = (self.o_partial, self.lse_partial, self.m, self.l, self.w, self.o)
        return sum(array.nbytes for array in arrays)


@dataclass(frozen=True, slots=True)
class Details:
    """Everything about some visits of one row block."""

    columns: range  # their column blocks
    visits: NDArray[np.void]  # (len(columns),) of `detail_type`; NaN if a tile is skipped
    alpha: F32  # (rows, len(columns)) float32; none for naive, which rescales nothing
    p: F32 | None  # (rows, keys of the columns) float32: naive's P in HBM, divided by l
    joined: Joined | None = None  # for split-kv, how the row block's splits were joined

    @property
    def bytes(self) -> int:
        """Bytes of its arrays."""
        own = self.visits.nbytes + self.alpha.nbytes
        own += 0 if self.p is None else self.p.nbytes
        return own + (0 if self.joined is None else self.joined.bytes)

    def visit(self, j: int) -> np.void:
        """Return the fields of the visit of column block `j`."""
        found: np.void = self.visits[j - self.columns.start]
        return found


def carried_on(values: F32, visited: NDArray[np.bool_], start: F32) -> F32:
    """Return statistics after every column block; a skipped tile leaves them as they were.

    values: (rows, columns) float32, NaN in skipped tiles.
    visited: (columns,) bool.
    start: (rows,) float32, the values before the first visit.
    Returns: (rows, columns) float32.
    """
    columns = np.arange(visited.size)
    last = np.maximum.accumulate(np.where(visited, columns, -1))
    out = values[:, np.maximum(last, 0)]
    out[:, last < 0] = start[:, None]
    return out
