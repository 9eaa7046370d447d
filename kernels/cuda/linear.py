"""The engine of linear attention's kernels; it reads the records of their trace build."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernels.cuda.engine import ROOM, KernelEngine, Room, widened
from kernels.cuda.gradients import GradientKernelEngine
from kernels.cuda.launch import Device, prepared
from kernels.cuda.records import detail_buffer, recording
from kernels.cuda.specs import LaunchPart, kernels_of
from simulator.base.cache import BoundedCache
from simulator.base.dtypes import F32, frozen
from simulator.engines.protocol import RowBlock, Tile, gone_through
from simulator.problem.workload import Inputs, Workload
from simulator.program.algorithms import algorithm_of
from simulator.program.tile_program import Visit

Fields = NDArray[np.void]
"""The details of one visit, as `detail_type` lays them out."""


class LinearKernelEngine(KernelEngine):
    """Runs linear attention's CUDA kernels on a device and returns what they recorded.

    A row block of a causal run takes a launch over its chunk and all chunks before, which leave the
    state that it reads. Without a mask a row block takes a launch of both kernels.
    """

    def __init__(
        self, workload: Workload, inputs: Inputs, device: Device, room: Room = ROOM
    ) -> None:
        super().__init__(workload, inputs, device, room)
        self._fields: BoundedCache[Fields] = BoundedCache(room.kept, lambda each: each.nbytes)

    def forget(self) -> None:
        """Forget all details of tiles."""
        super().forget()
        self._fields.clear()

    def row_block(self, head: int, i: int) -> RowBlock:
        """Launch the kernels for one row block."""
        part = LaunchPart(range(head, head + 1), range(i, i + 1))
        return self._row_block(self._run(part, range(0)), part, head, i)

    def tile(self, visit: Visit, block: RowBlock) -> Tile:
        """Return the kernel's record of one visit."""
        w, r, c = self.workload, len(visit.rows), len(visit.cols)
        fields = self._fields.get(visit.index, lambda: self._recorded(visit))[0]
        again = partial(gone_through, w, self._inputs, visit)
        own = {"phi_Q": "phi_q", "O": "o", **{name: name for name in ("l_tile", "l", "v_old", "u")}}
        has = fields.dtype.names or ()
        made: dict[str, F32] = {
            name: fields[field][:r] for name, field in own.items() if field in has
        }
        if w.rule and w.rule.tokens:
            made |= {"phi_K": fields["phi_k"], "state": fields["state"]}
        elif not w.chunked and visit.launch:
            state = self._on.download(self._tensors.state)[w.kv_head_of[visit.head]]
            again = partial(again, loads={"state": state})
        else:
            made |= {
                "phi_K": fields["phi_k"][:c],
                "S": fields["s"][:r, :c],
                "P": fields["p"][:r, :c],
                "state": fields["state"],
            }
        goes_on = not (visit.opens if w.chunked else visit.first)
        before = {"state": fields["state_before"]} if goes_on else {}
        arrays = {name: np.ascontiguousarray(values) for name, values in made.items()}
        with np.errstate(all="ignore"):  # a wrong kernel's numbers may be infinite or NaN
            return again(before=before, recorded=arrays)

    def row_matrices(self, head: int, i: int, block: RowBlock) -> tuple[F32, F32]:
        """Return S and P of the chunk of a row block; no other pairs are formed."""
        w = self.workload
        rows = w.grid.row_range(i)
        s = np.full((len(rows), w.seqlen_k), np.nan, dtype=np.float32)
        p = np.full_like(s, np.nan)
        if algorithm_of(w).forms and w.chunked:
            fields = self._fields_of(LaunchPart(range(head, head + 1), range(i, i + 1)), 0, 0)[0]
            seen = w.mask.visible(rows, rows)
            for matrix, name, hidden in ((s, "s", -np.inf), (p, "p", 0.0)):
                own = fields[name][: len(rows), : len(rows)]
                matrix[:, rows.start : rows.stop] = np.where(seen, own, np.float32(hidden))
        return s, p

    # --- launches --------------------------------------------------------------------------

    def _recorded(self, visit: Visit) -> Fields:
        part = LaunchPart(range(visit.head, visit.head + 1), range(visit.i, visit.i + 1))
        column = 0 if self.workload.chunked or visit.launch else visit.j
        return self._fields_of(part, visit.launch, column)

    def _fields_of(self, part: LaunchPart, launch: int, column: int) -> Fields:
        """Return the details of a launch's visit to one column of the part's row block."""
        on, w = self._on, self.workload
        columns = range(column, column + 1)
        details: Any = None
        for kernel in kernels_of(w)[: launch + 1]:
            details = detail_buffer(on, w, columns)
            record = recording(on, w, kernel, part, counters=False)
            record = replace(record, details=details, columns=columns)
            prepared(self._module, w, kernel, part, self._tensors, record)()
        return self._details_in(details)

    def _row_block(self, run: Any, part: LaunchPart, head: int, i: int) -> RowBlock:
        w = self.workload
        rows, nth = w.grid.row_range(i), i - part.blocks.start
        own = slice(nth * w.rows, nth * w.rows + len(rows))
        l = np.repeat(run.l[0, own], w.grid.Tc, axis=1)
        m = np.full_like(l, np.nan)
        o = widened(self._on.download(self._tensors.o[head, rows.start : rows.stop]), w.dtype)
        last = l[:, -1]
        lse = np.log(last, out=np.full_like(last, -np.inf), where=last != 0)
        return RowBlock(
            frozen(m), frozen(l), frozen(o), frozen(lse), None,
            m.nbytes + l.nbytes + o.nbytes + lse.nbytes,
        )  # fmt: skip


def kernel_engine(
    workload: Workload, inputs: Inputs, device: Device, room: Room = ROOM
) -> KernelEngine:
    """Return the engine that runs a workload's CUDA kernels; see `KernelEngine`."""
    if algorithm_of(workload).backward:
        return GradientKernelEngine(workload, inputs, device, room)
    kind = KernelEngine if algorithm_of(workload).softmax else LinearKernelEngine
    return kind(workload, inputs, device, room)
