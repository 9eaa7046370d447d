"""The engine of backward kernels: what their trace build records of one visit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from kernels.cuda.engine import ROOM, KernelEngine, Room, widened
from kernels.cuda.fast import after_forward
from kernels.cuda.launch import Device, Recording, Tensors, prepared
from kernels.cuda.records import detail_buffer
from kernels.cuda.specs import Part, kernels_of
from simulator.base.cache import BoundedCache
from simulator.base.dtypes import F32, frozen
from simulator.engines.protocol import RowBlock, Tile, gone_through, pairs_of
from simulator.problem.workload import Inputs, Workload
from simulator.program.algorithms import tile_program
from simulator.program.group_launch import GroupLaunch
from simulator.program.state import Values
from simulator.program.tile_program import Visit


class GradientKernelEngine(KernelEngine):
    """Runs a backward pass's CUDA kernels on a device and returns what they recorded.

    O and LSE are those of the forward pass's kernels. Each column block takes a launch of its own,
    so the terms of dQ are added up in the order of column blocks, and every run gives the same
    bits. Launched at once, as they are timed, column blocks add to dQ in any order.
    """

    def __init__(
        self, workload: Workload, inputs: Inputs, device: Device, room: Room = ROOM
    ) -> None:
        super().__init__(workload, inputs, device, room)
        self._program = tile_program(workload)
        self._tensors = after_forward(device, workload, inputs, self._tensors)
        self._tiles: BoundedCache[Tile] = BoundedCache(room.kept, lambda tile: tile.bytes)
        self._launch([kernels_of(workload)[0]], self._tensors, Part.whole(workload))
        self._reached, self._sums = 0, device.download(self._tensors.dq_acc).copy()

    def forget(self) -> None:
        """Forget all numbers of tiles."""
        super().forget()
        self._tiles.clear()

    def row_block(self, head: int, i: int) -> RowBlock:
        """Return O and LSE of the forward pass; the rows have no running m and l."""
        w, rows = self.workload, self.workload.grid.row_range(i)
        o, lse = self._rows("o", head, rows), self._rows("lse", head, rows)
        nothing = np.broadcast_to(np.float32(np.nan), (len(rows), w.grid.Tc))
        return RowBlock(nothing, nothing, o, lse, None, o.nbytes + lse.nbytes)

    def row_blocks(self, head: int) -> Iterator[RowBlock]:
        """Return all row blocks of a head, in their order."""
        for i in range(self.workload.grid.Tr):
            yield self.row_block(head, i)

    def tile(self, visit: Visit, block: RowBlock) -> Tile:
        """Return what the kernel recorded of one visit."""
        return self._tiles.get(visit.index, lambda: self._tile(visit))

    def row_matrices(self, head: int, i: int, block: RowBlock) -> tuple[F32, F32]:
        """Return S and P of a row block."""
        pairs = self.row_pairs(head, i)
        return pairs["S"], pairs["P"]

    def row_pairs(self, head: int, i: int) -> dict[str, F32]:
        """Return S, P, dP and dS of a row block, (rows, Nk) each; NaN in skipped tiles."""
        block = self.row_block(head, i)
        return pairs_of(self._program, head, i, lambda visit: self.tile(visit, block).states[-1])

    def gradients(self, kv_head: int) -> dict[str, F32]:
        """Return the gradients of a KV head and of the query heads that share it."""
        w, on, tensors = self.workload, self._on, self._done
        launch = next(n for n in self._program.launches if isinstance(n, GroupLaunch))
        dq = on.download(tensors.dq)[list(launch.members(kv_head))]
        dk, dv = (on.download(each)[kv_head] for each in (tensors.dk, tensors.dv))
        whole = {"dQ": dq, "dK": dk, "dV": dv}
        return {
            name: frozen(widened(np.ascontiguousarray(x), w.dtype)) for name, x in whole.items()
        }

    def run_everything(self) -> Tensors:
        """Run the trace build over all heads; return the tensors as it leaves them."""
        return self._done

    # --- launches --------------------------------------------------------------------------

    def _launch(
        self, kernels: list[str], tensors: Tensors, part: Part, record: Recording | None = None
    ) -> None:
        for kernel in kernels:
            prepared(self._module, self.workload, kernel, part, tensors, record or Recording())()

    @property
    def _done(self) -> Tensors:
        """The tensors after all launches."""
        self._go_to(self.workload.grid.Tc)
        tensors = self._with_sums()
        self._launch([kernels_of(self.workload)[-1]], tensors, Part.whole(self.workload))
        return tensors

    def _with_sums(self) -> Tensors:
        """Return the tensors with a copy of dQ as the column blocks so far have left it."""
        return replace(self._tensors, dq_acc=self._on.upload(self._sums.copy()))

    def _go_to(self, column: int) -> None:
        """Add up dQ of the column blocks before one, one launch for each."""
        w = self.workload
        if column < self._reached:
            self._reached, self._sums = 0, np.zeros_like(self._sums)
        if column == self._reached:
            return
        tensors, whole = self._with_sums(), Part.whole(w)
        for j in range(self._reached, column):
            self._launch([kernels_of(w)[1]], tensors, replace(whole, columns=range(j, j + 1)))
        self._reached, self._sums = column, self._on.download(tensors.dq_acc).copy()

    def _rows(self, tensor: str, head: int, rows: range) -> F32:
        """Return some rows of a tensor on the device."""
        stored = self._on.download(getattr(self._tensors, tensor)[head, rows.start : rows.stop])
        return frozen(widened(np.ascontiguousarray(stored), self.workload.dtype))

    def _tile(self, visit: Visit) -> Tile:
        w, head, rows = self.workload, visit.head, visit.rows
        launch = self._program.launches[visit.launch]
        before: dict[str, Values] = {}
        recorded: dict[str, Values] = {}
        loads: dict[str, Values] = {
            "O": self._rows("o", head, rows), "LSE": self._rows("lse", head, rows),
        }  # fmt: skip
        if launch.forms:
            found = self._recorded(visit)
            loads |= {"D": self._rows("d", head, rows), "dQ_acc": found.pop("dQ_acc_before")}
            kept = {name: found.pop(f"{name}_before") for name in ("dK", "dV")}
            if not visit.first:
                keys, kv_head = slice(visit.cols.start, visit.cols.stop), w.kv_head_of[head]
                before = {"K": self._inputs.k[kv_head, keys], "V": self._inputs.v[kv_head, keys],
                          **kept}  # fmt: skip
            recorded = found
        elif visit.launch:
            self._go_to(w.grid.Tc)
            loads["dQ_acc"] = self._sums[head, rows.start : rows.stop].copy()
        else:
            recorded = {"D": self._rows("d", head, rows)}
        with np.errstate(all="ignore"):  # a wrong kernel's numbers may be infinite or NaN
            return gone_through(
                w, self._inputs, visit, before=before, recorded=recorded, loads=loads
            )

    def _recorded(self, visit: Visit) -> dict[str, Values]:
        """Return the details of one visit, by the names of its numbers."""
        w, r, c = self.workload, len(visit.rows), len(visit.cols)
        self._go_to(visit.j)
        column = range(visit.j, visit.j + 1)
        part = Part(range(visit.head, visit.head + 1), range(visit.i, visit.i + 1), column)
        details: Any = detail_buffer(self._on, w, column)
        record = Recording(details=details, columns=column)
        self._launch([kernels_of(w)[1]], self._with_sums(), part, record)
        fields = self._details_in(details)[0]
        sizes = {"p": (r, c), "q": (r, w.head_dim), "k": (c, w.head_dim), "v": (c, w.value_dim)}
        names = {"s": "S", "p": "P", "dp": "dP", "ds": "dS"}
        found = {}
        for field in fields.dtype.names or ():
            name = names.get(field) or f"d{field[1].upper()}{field[2:]}"
            high, wide = sizes["p" if field in names else field[1]]
            found[name] = np.ascontiguousarray(fields[field][:high, :wide])
        return found
