"""The engine of backward kernels; it reads the records of their trace build."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernels.cuda.engine import ROOM, KernelEngine, Room, widened, with_scratch
from kernels.cuda.fast import after
from kernels.cuda.launch import Device, Recording, Tensors, prepared
from kernels.cuda.records import detail_buffer, recording
from kernels.cuda.specs import SPECS, LaunchPart, kernels_of
from simulator.base.cache import BoundedCache
from simulator.base.dtypes import F32, frozen
from simulator.engines.gradient_engine import check_stored_pairs, left_by
from simulator.engines.protocol import (
    Again,
    RowBlock,
    Tile,
    gone_through,
    pairs_of,
    scaled_scores,
)
from simulator.problem.workload import Inputs, Workload
from simulator.program.algorithms import TENSORS, tile_program
from simulator.program.faults import honest
from simulator.program.group_launch import GroupLaunch
from simulator.program.state import Numbers, Values
from simulator.program.tile_program import Visit

_PAIRS = {"s": "S", "p": "P", "dp": "dP", "ds": "dS"}
"""Fields of details that have a number for each pair."""


class GradientKernelEngine(KernelEngine):
    """Runs a backward pass's CUDA kernels on a device and returns what they recorded.

    The forward pass runs on its own kernels. Where column blocks add to sums in HBM, each column
    block takes a launch of its own, so the terms are added up in the order of column blocks, and
    every run gives the same bits. Launched at once, as in timing, column blocks add in any order.
    """

    def __init__(
        self, workload: Workload, inputs: Inputs, device: Device, room: Room = ROOM
    ) -> None:
        super().__init__(workload, inputs, device, room)
        self._program = tile_program(workload)
        check_stored_pairs(self._program)
        name, whole = self._program.algorithm.forward, LaunchPart.whole
        assert name is not None
        self._forward = KernelEngine(honest(workload).as_algorithm(name), inputs, device, room)
        tensors = after(self._forward.run_everything(), self._tensors, self._program)
        self._tensors = with_scratch(device, workload, tensors, whole(workload))
        self._tiles: BoundedCache[Tile] = BoundedCache(room.kept, lambda tile: tile.bytes)
        launches = self._program.launches
        adding = (n for n, one in enumerate(launches) if one.reads.keys() & one.writes)
        self._adding = next(adding, len(launches))
        """The launch that adds to sums in HBM; the number of launches if there is none."""
        for kernel in kernels_of(workload)[: self._adding]:
            self._launch_whole(kernel, self._tensors)
        self._reached, self._sums = 0, np.empty(0)
        if self._tensors.dq_acc is not None:
            self._sums = device.download(self._tensors.dq_acc).copy()

    def forget(self) -> None:
        """Forget all numbers of tiles."""
        super().forget()
        self._forward.forget()
        self._tiles.clear()

    def row_block(self, head: int, i: int) -> RowBlock:
        """Return O and LSE of the forward pass; the rows have no running m and l."""
        return self._without_statistics(self._forward.row_block(head, i))

    def row_blocks(self, head: int) -> Iterator[RowBlock]:
        """Return all row blocks of a head, in their order."""
        yield from map(self._without_statistics, self._forward.row_blocks(head))

    def _without_statistics(self, block: RowBlock) -> RowBlock:
        nothing = np.broadcast_to(np.float32(np.nan), (len(block.o), self.workload.grid.Tc))
        return RowBlock(
            nothing, nothing, block.o, block.lse, None, block.o.nbytes + block.lse.nbytes
        )

    def left(self, head: int, i: int) -> Numbers:
        """Return the numbers that the forward pass has left for a row block's rows, by tensor."""
        return left_by(self._forward, self._program, head, i)

    def tile(self, visit: Visit, block: RowBlock) -> Tile:
        """Return the kernel's record of one visit."""
        return self._tiles.get(visit.index, lambda: self._tile(visit))

    def row_matrices(self, head: int, i: int, block: RowBlock) -> tuple[F32, F32]:
        """Return S and P of a row block."""
        pairs = self.row_pairs(head, i)
        return pairs["S"], pairs["P"]

    def row_pairs(self, head: int, i: int) -> dict[str, F32]:
        """Return S, P, dP and dS of a row block, (rows, Nk) each; NaN in skipped tiles."""
        stored = [spec.name for spec in self._program.algorithm.tensors if spec.of_pairs]
        if stored:
            rows = self.workload.grid.row_range(i)
            s, p = self._forward.row_matrices(head, i, self._forward.row_block(head, i))
            return {"S": s, "P": p, **{name: self._rows(name, head, rows) for name in stored}}
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

    def counted_visits(self) -> tuple[NDArray[np.uint64], ...]:
        """Run everything, each kernel in parts of its own; see `KernelEngine`."""
        tensors, found = self._with_sums(), []
        for kernel in kernels_of(self.workload):
            whole = self._no_counters(kernel)
            for part in self._pieces(kernel):
                record = recording(self._on, self.workload, kernel, part, counters=True)
                self._launch(kernel, tensors, part, record)
                whole[part.place] += self._on.download(record.counters)
            found.append(whole)
        return tuple(found)

    # --- launches --------------------------------------------------------------------------

    def _launch(
        self, kernel: str, tensors: Tensors, part: LaunchPart, record: Recording | None = None
    ) -> None:
        prepared(self._module, self.workload, kernel, part, tensors, record or Recording())()

    def _launch_whole(self, kernel: str, tensors: Tensors) -> None:
        """Launch a kernel over everything, in parts that are short enough for a launch."""
        for part in self._pieces(kernel):
            self._launch(kernel, tensors, part)

    @property
    def _done(self) -> Tensors:
        """The tensors after all launches."""
        if self._adding == len(self._program.launches):
            return self._tensors
        self._go_to(self.workload.grid.Tc)
        tensors = self._with_sums()
        for kernel in kernels_of(self.workload)[self._adding + 1 :]:
            self._launch_whole(kernel, tensors)
        return tensors

    def _with_sums(self) -> Tensors:
        """Return the tensors with a copy of the sums of dQ after the column blocks so far."""
        if self._tensors.dq_acc is None:
            return self._tensors
        return replace(self._tensors, dq_acc=self._on.upload(self._sums.copy()))

    def _go_to(self, column: int) -> None:
        """Add up dQ of the column blocks before one, one launch for each."""
        w = self.workload
        if column < self._reached:
            self._reached, self._sums = 0, np.zeros_like(self._sums)
        if column == self._reached:
            return
        tensors, whole = self._with_sums(), LaunchPart.whole(w)
        kernel = kernels_of(w)[self._adding]
        for j in range(self._reached, column):
            self._launch(kernel, tensors, replace(whole, columns=range(j, j + 1)))
        self._reached, self._sums = column, self._on.download(tensors.dq_acc).copy()

    def _rows(self, tensor: str, head: int, rows: range) -> F32:
        """Return some rows of a tensor on the device."""
        place = getattr(self._tensors, tensor.lower())
        stored = self._on.download(place[head, rows.start : rows.stop])
        return frozen(widened(np.ascontiguousarray(stored), self.workload.dtype))

    def _tile(self, visit: Visit) -> Tile:
        w, head, rows = self.workload, visit.head, visit.rows
        launch, ops = self._program.launches[visit.launch], self._program.ops(visit.index)
        left, mine = self.left(head, visit.i), {t.name for t in self._program.algorithm.tensors}
        loads: dict[str, Values] = dict(left)
        recorded: dict[str, Values] = {}
        if launch.forms:
            recorded = self._recorded(visit)
        elif visit.launch > self._adding:
            self._go_to(w.grid.Tc)
            loads["dQ_acc"] = self._sums[head, rows.start : rows.stop].copy()
        else:
            recorded = {"D": self._rows("D", head, rows)}
        for name in launch.reads:
            if name in mine and name not in loads:
                found = recorded.get(f"{name}_before")
                loads[name] = self._rows(name, head, rows) if found is None else found
        here = slice(visit.cols.start, visit.cols.stop)
        loads = {name: x[:, here] if TENSORS[name].of_pairs else x for name, x in loads.items()}
        state = Again(w, self._inputs, loads)
        before = {move.tensor: state.load(move) for move in self._program.held(visit)}
        if not visit.first:
            staying = {tile.name for tile in self._program.staying(visit)}
            sums = staying & set(self._program.algorithm.left)
            before |= {name: recorded[f"{name}_before"] for name in sums}
        makes_scores = any(op.makes_scores for op in ops)
        s = scaled_scores(w, self._inputs, visit) if launch.forms and not makes_scores else None
        with np.errstate(all="ignore"):  # a wrong kernel's numbers may be infinite or NaN
            return gone_through(
                w, self._inputs, visit, before=before, recorded=recorded, loads=loads, unmasked=s
            )

    def _recorded(self, visit: Visit) -> dict[str, Values]:
        """Return the details of one visit, by the names of its numbers; NaN where it makes none."""
        w, r = self.workload, len(visit.rows)
        kernel = kernels_of(w)[visit.launch]
        if visit.launch == self._adding:
            self._go_to(visit.j)
        columns = range(visit.j, visit.j + 1)
        part = LaunchPart(range(visit.head, visit.head + 1), range(visit.i, visit.i + 1), columns)
        if SPECS[kernel].whole_rows:
            columns = range(w.grid.Tc)
        details: Any = detail_buffer(self._on, w, columns)
        record = Recording(details=details, columns=columns)
        self._launch(kernel, self._with_sums(), part, record)
        fields = self._details_in(details)
        c = len(w.grid.col_range(visit.j))
        sizes = {"q": (r, w.head_dim), "k": (c, w.head_dim), "v": (c, w.value_dim)}
        found: dict[str, Values] = {"D": fields["d"][0, :r].copy()}
        for field in fields.dtype.names or ():
            if field in _PAIRS:
                whole = np.concatenate(list(fields[field]), axis=1)
                found[_PAIRS[field]] = whole[:r, : len(visit.cols)].copy()
            elif field[1:]:
                high, wide = sizes[field[1]]
                name = f"d{field[1].upper()}{field[2:]}"
                found[name] = np.ascontiguousarray(fields[field][0, :high, :wide])
        return found
