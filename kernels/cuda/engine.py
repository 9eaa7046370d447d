"""`KernelEngine`: the traced CUDA kernels as an engine of the simulator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernels.build.sources import whole_source
from kernels.cuda.counters import COUNTERS, total
from kernels.cuda.launch import Buffer, Device, Recording, Tensors, build_options, prepared
from kernels.cuda.records import Details, Joined, carried_on, detail_buffer, detail_type, recording
from kernels.cuda.runs import tile_runs
from kernels.cuda.specs import SPECS, LaunchPart, joins_splits, kernels_of, most_shared_bytes
from kernels.cuda.visits import recorded_tile
from kernels.errors import KernelError
from simulator.base.cache import BoundedCache
from simulator.base.dtypes import F32, bfloat16_from_bits, frozen
from simulator.base.errors import refuse
from simulator.engines.protocol import RowBlock, Tile
from simulator.problem.workload import Inputs, Workload
from simulator.program.algorithms import algorithm_of, takes_turns
from simulator.program.ops import log_sum_exp, rounded
from simulator.program.tensors import GATE
from simulator.program.tile_program import Counters, Visit

MIB = 2**20
SCRATCH = ("s", "p", "o_partial", "lse_partial")
"""The tensors that `with_scratch` makes for the heads of a launch."""
MARGIN = 64
"""Fixed shared memory of a kernel beside its tiles, at most."""


@dataclass(frozen=True, slots=True)
class Room:
    """Bytes that records of launches may take."""

    # details that one launch records; a longer row block takes several launches
    details: int = 12 * MIB
    kept: int = 48 * MIB  # details that are kept
    batch: int = 64 * MIB  # records of the row blocks that one launch covers


ROOM = Room()


@dataclass(frozen=True, slots=True)
class _Run:
    """The records of a launch of each of the algorithm's kernels."""

    kinds: NDArray[np.uint8]  # (heads, row blocks, Tc) uint8
    # m, l, alpha: (heads, row blocks * Br, Tc) float32; (.., 1) and no alpha in naive
    m: F32
    l: F32
    alpha: F32
    # of each kernel, (heads, row blocks, columns, counters) uint64
    counters: tuple[NDArray[np.uint64], ...]
    details: NDArray[np.void] | None  # (columns,) of `detail_type`
    p: F32 | None  # (heads, rows, Nk) float32, naive's P in HBM, if details are recorded
    # how the splits of the one row block were joined, if details are recorded
    joined: Joined | None


class KernelEngine:
    """Runs a workload's CUDA kernels on a device and returns what they recorded.

    A row block takes one launch of the trace build for this row block alone; so does a tile, unless
    its details are kept. All numbers are the kernel's own, except `lse` of flash1 and naive: they
    do not store it, so it is computed here, ``m + ln l``.

    In naive, m and l belong to the whole row and are the same after every column block: its kernels
    have no running statistics. In split-kv, they belong to the split of a column block.

    Raises InputError: the tiles do not fit the device's shared memory.
    Raises KernelError: the kernels cannot be compiled.
    """

    def __init__(
        self, workload: Workload, inputs: Inputs, device: Device, room: Room = ROOM
    ) -> None:
        self.workload = workload
        self._room = room
        self.name = device.name
        self.device = device.label
        self._on = device
        self._inputs = inputs
        check_fits(workload, device)
        options = build_options(workload, trace=True)
        self._module = device.module(whole_source(workload.algorithm), options)
        self._tensors = place_tensors(device, workload, inputs)
        self._details: BoundedCache[Details] = BoundedCache(room.kept, lambda d: d.bytes)
        per_visit = detail_type(workload).itemsize
        self._stretch = workload.grid.Tc  # column blocks whose details one launch records
        if not algorithm_of(workload).stores_scores:  # naive keeps whole rows of S and P anyway
            self._stretch = max(1, min(self._stretch, room.details // per_visit))

    # --- the engine protocol ---------------------------------------------------------------

    def forget(self) -> None:
        """Forget all details of tiles; Q, K, V stay on the device."""
        self._details.clear()
        self._on.forget()

    def row_block(self, head: int, i: int) -> RowBlock:
        """Launch the kernels for one row block, recording its tiles if they are few."""
        whole = range(self.workload.grid.Tc)
        columns = whole if len(whole) <= self._stretch else range(0)
        part = LaunchPart(range(head, head + 1), range(i, i + 1))
        run = self._run(part, columns)
        if columns:
            self._details.get((head, i, 0), lambda: self._details_of(run, i, columns))
        return self._row_block(run, part, head, i)

    def row_blocks(self, head: int) -> Iterator[RowBlock]:
        """Launch the kernels for as many row blocks of a head at a time as fit in memory."""
        blocks = self.workload.grid.Tr
        step = self.row_blocks_at_once
        for start in range(0, blocks, step):
            part = LaunchPart(range(head, head + 1), range(start, min(start + step, blocks)))
            run = self._run(part, range(0))
            for i in part.blocks:
                yield self._row_block(run, part, head, i)

    def tile(self, visit: Visit, block: RowBlock) -> Tile:
        """Return the kernel's record of one visit, with m and l of the row block."""
        details = self._details_at(visit.head, visit.i, visit.j)
        with np.errstate(all="ignore"):  # a wrong kernel's numbers may be infinite or NaN
            return recorded_tile(self.workload, self._inputs, visit, block, details)

    def row_matrices(self, head: int, i: int, block: RowBlock) -> tuple[F32, F32]:
        """Return S and P of a row block, with a launch for column blocks not yet recorded."""
        w, grid, mask = self.workload, self.workload.grid, self.workload.mask
        rows = grid.row_range(i)
        s = np.full((len(rows), self.workload.seqlen_k), np.nan, dtype=np.float32)
        p = np.full_like(s, np.nan)
        for j in range(grid.Tc):
            if not algorithm_of(self.workload).stores_scores and not grid.kind(i, j):
                continue
            details, keys = self._details_at(head, i, j), grid.col_range(j)
            fields, here = details.visit(j), slice(keys.start, keys.stop)
            scores = self.workload.changed(head, rows, keys, fields["s"][: len(rows), : len(keys)])
            s[:, here] = np.where(
                mask.of_head(head).visible(rows, keys), scores, np.float32(-np.inf)
            )
            p[:, here] = fields["p"][: len(rows), : len(keys)]
            if details.p is not None:
                p[:, here] = details.p[:, here]
        if w.pair_dtype is not None:  # P as it was multiplied, S as it was stored
            p = rounded(p, w.pair_dtype)
            s = rounded(s, w.pair_dtype) if algorithm_of(w).stores_scores else s
        return s, p

    # --- whole runs, for checks --------------------------------------------------------------

    def counted(self) -> Counters:
        """Run everything and return the counts of the kernels: bytes by tensor, FLOPs."""
        return total(self.counted_visits(), ())

    def counted_visits(self) -> tuple[NDArray[np.uint64], ...]:
        """Run everything and return the counters of each launch.

        Returns: for each kernel (heads, row blocks, columns, counters) uint64, in the order of
            `kernels.cuda.counters.COUNTERS`. Stores before a head's first visit, or for a row block
            without visits, are counted in that row block's column 0.
        """
        found = [self._no_counters(kernel) for kernel in kernels_of(self.workload)]
        for part in self._parts():
            launches = self._run(part, range(0), counters=True).counters
            for whole, own in zip(found, launches, strict=True):
                whole[part.place] = own
        return tuple(found)

    def _no_counters(self, kernel: str) -> NDArray[np.uint64]:
        """Return counters for all visits of a kernel, all 0."""
        w, columns = self.workload, SPECS[kernel].columns(self.workload)
        return np.zeros((w.heads, w.grid.Tr, columns, len(COUNTERS)), np.uint64)

    def run_everything(self) -> Tensors:
        """Run the trace build once over all heads; return the tensors as it leaves them."""
        whole = LaunchPart.whole(self.workload)
        tensors = with_scratch(self._on, self.workload, self._tensors, whole)
        # The results of splits lie split by split: some rows of all splits would not be contiguous.
        for part in self._parts(by_rows=not joins_splits(self.workload)):
            own = {name: self._own(getattr(tensors, name), part) for name in SCRATCH}
            self._launch_all(part, replace(tensors, **own), range(0), None, counters=False)
        return tensors

    def _parts(self, *, by_rows: bool = True) -> list[LaunchPart]:
        """Return the workload in parts that are small enough for a launch of every kernel."""
        w, kernels = self.workload, kernels_of(self.workload)
        by_rows = by_rows and all(SPECS[kernel].rows_apart(w) for kernel in kernels)
        return max((self._pieces(kernel, by_rows=by_rows) for kernel in kernels), key=len)

    def _pieces(self, kernel: str, *, by_rows: bool = True) -> list[LaunchPart]:
        """Return the workload in parts that are small enough for a launch of one kernel."""
        flops, at_once = self._on.block_flops, self._on.blocks_at_once
        return list(SPECS[kernel].pieces(self.workload, flops, at_once, by_rows=by_rows))

    def _own(self, buffer: Any, part: LaunchPart) -> Any:
        """Return the scratch memory that belongs to a part; None if there is none."""
        if buffer is None:
            return None
        heads, rows = part.place[0], part.rows(self.workload)
        whole = len(part.blocks) == self.workload.grid.Tr
        return buffer[heads] if whole else buffer[heads, rows.start : rows.stop]

    # --- launches --------------------------------------------------------------------------

    def _run(self, part: LaunchPart, columns: range, *, counters: bool = False) -> _Run:
        """Launch the algorithm's kernels for a part, with the details of some column blocks."""
        tensors = with_scratch(self._on, self.workload, self._tensors, part)
        details = detail_buffer(self._on, self.workload, columns)
        records = self._launch_all(part, tensors, columns, details, counters=counters)
        return self._downloaded(records, details, tensors)

    def _launch_all(
        self, part: LaunchPart, tensors: Tensors, columns: range, details: Any, *, counters: bool
    ) -> list[Recording]:
        w, records = self.workload, []
        for kernel in kernels_of(w):
            record = recording(self._on, w, kernel, part, counters=counters)
            if SPECS[kernel].joins and columns:  # the joining kernel's O has its own buffer
                joined = detail_buffer(self._on, w, range(1))
                record = replace(record, details=joined, columns=range(1))
            else:
                record = replace(record, details=details, columns=columns)
            prepared(self._module, w, kernel, part, tensors, record)()
            records.append(record)
        return records

    def _downloaded(self, records: list[Recording], details: Any, tensors: Tensors) -> _Run:
        on = self._on
        # Naive's m and l come from its softmax launch; its other launches have none. Without a
        # softmax, l comes from the last launch.
        algorithm = algorithm_of(self.workload)
        statistics = records[int(algorithm.stores_scores) if algorithm.softmax else -1]
        wanted = details is not None
        return _Run(
            kinds=on.download(records[0].kinds),
            m=on.download(statistics.m),
            l=on.download(statistics.l),
            alpha=on.download(statistics.alpha),
            counters=tuple(on.download(r.counters) for r in records if r.counters is not None),
            details=self._details_in(details) if wanted else None,
            p=on.download(tensors.p) if wanted and tensors.p is not None else None,
            joined=self._joined(records[-1], tensors) if wanted else None,
        )

    def _details_in(self, buffer: Any) -> NDArray[np.void]:
        """Return the details that a launch has left in a buffer."""
        return self._on.download(buffer).view(detail_type(self.workload)).reshape(-1)

    def _joined(self, record: Recording, tensors: Tensors) -> Joined | None:
        """Return how the splits of one row block were joined; None if there are none."""
        if tensors.o_partial is None:
            return None
        on = self._on
        o_partial, lse_partial = (
            frozen(on.download(each)[0]) for each in (tensors.o_partial, tensors.lse_partial)
        )
        rows = lse_partial.shape[1]
        m, l, weights = (on.download(x)[0, :rows] for x in (record.m, record.l, record.alpha))
        o = self._details_in(record.details)[0]["o"][:rows]
        arrays = (m[:, 0], l[:, 0], np.ascontiguousarray(weights.T), o)
        return Joined(o_partial, lse_partial, *(frozen(array.copy()) for array in arrays))

    @property
    def row_blocks_at_once(self) -> int:
        """Row blocks of a head that one launch covers at most."""
        w = self.workload
        per_row = 8 * w.seqlen_k if algorithm_of(w).stores_scores else 12 * w.grid.Tc
        if joins_splits(w):
            per_row += 4 * w.splits * (w.value_dim + 4)  # results of splits, and their joining
        flops, at_once = self._on.block_flops, self._on.blocks_at_once
        blocks = min(SPECS[kernel].row_blocks(w, flops, at_once) for kernel in kernels_of(w))
        return max(1, min(blocks, self._room.batch // (w.rows * per_row), w.grid.Tr))

    def _row_block(self, run: _Run, part: LaunchPart, head: int, i: int) -> RowBlock:
        w, on = self.workload, self._on
        rows = w.grid.row_range(i)
        here = slice(rows.start, rows.stop)
        nth = i - part.blocks.start
        own = slice(nth * w.rows, nth * w.rows + len(rows))
        m, l = run.m[0, own], run.l[0, own]
        if algorithm_of(w).stores_scores:
            m, l = (np.repeat(x, w.grid.Tc, axis=1) for x in (m, l))
        else:
            visited = run.kinds[0, nth] != 0
            m, l = (
                carried_on(own, visited, start.astype(np.float32))
                for own, start in zip((m, l), w.start(head, rows), strict=True)
            )
        o = widened(on.download(self._tensors.o[head, here]), w.dtype)
        if algorithm_of(w).normalises_last:
            assert self._tensors.lse is not None
            lse = on.download(self._tensors.lse[head, here])
        else:
            last = l[:, -1]
            lse = log_sum_exp(m[:, -1], last)
        arrays = [frozen(array) for array in (m, l, o, lse)]
        return RowBlock(m, l, o, lse, None, sum(array.nbytes for array in arrays))

    # --- details ---------------------------------------------------------------------------

    def _details_at(self, head: int, i: int, j: int) -> Details:
        """Return the recorded details of the stretch of column blocks that contains `j`."""
        number = j // self._stretch
        start = number * self._stretch
        columns = range(start, min(start + self._stretch, self.workload.grid.Tc))

        def make() -> Details:
            part = LaunchPart(range(head, head + 1), range(i, i + 1))
            return self._details_of(self._run(part, columns), i, columns)

        return self._details.get((head, i, number), make)

    def _details_of(self, run: _Run, i: int, columns: range) -> Details:
        assert run.details is not None
        rows = len(self.workload.grid.row_range(i))
        alpha = run.alpha[0, :rows, columns.start : columns.stop]
        p = None if run.p is None else run.p[0]
        return Details(columns, frozen(run.details), alpha, p, run.joined)


def check_fits(w: Workload, device: Device) -> None:
    """Refuse tiles that do not fit into the device's shared memory.

    Raises InputError: the tiles, the memory that they need, and the memory of the device.
    """
    need, limit = most_shared_bytes(w), device.shared_limit
    if need <= limit:
        return
    key, what = "tiling", "tiles that fit"
    value: object = f"{w.rows} x {w.cols}"
    whole_rows = [spec for name in kernels_of(w) if (spec := SPECS[name]).whole_rows]
    if any(spec.shared(w) + MARGIN > limit for spec in whole_rows):
        key, value, what = "attention.seqlen_k", w.seqlen_k, "rows of S that fit"
    raise refuse(
        "scenario",
        key,
        value,
        f"{what} on chip for the engine {device.name}: at d = {w.head_dim}, {w.dtype}, these need "
        f"{need / 1024:.0f} KiB of shared memory, a block has {limit // 1024} KiB",
    )


def place_tensors(device: Device, w: Workload, inputs: Inputs) -> Tensors:
    """Return a workload's tensors on a device; tensors that kernels write are filled with NaN.

    Raises KernelError: the inputs lack a gate, which a kernel would read at address 0.
    """
    gate = w.rule.gate if w.rule else None
    if w.gated and inputs.output_gate is None:
        raise KernelError(f"{w.algorithm} reads {GATE.name}, which its inputs lack")
    if gate and inputs.gate is None:
        raise KernelError(f"{w.algorithm} reads {gate.name}, which its inputs lack")
    rows = (w.heads, w.seqlen_q)
    stored: type[np.generic] = np.uint16 if w.width == 2 else np.float32
    if algorithm_of(w).normalises_each_tile:
        stored = np.float32
    # The row statistics in HBM that its kernels use.
    taken = {name for kernel in kernels_of(w) for name in SPECS[kernel].arguments}
    statistics = [name for name in ("m", "l", "lse") if name in taken]
    state = (w.kv_heads, w.sizes["feature"], w.sizes["total"])
    # Naive's other launches visit the same tiles.
    launch = next(each for each in algorithm_of(w).launches(w) if each.forms)
    # Splits share the runs of their row block.
    own = launch.splits == 1 and algorithm_of(w).softmax
    visited = launch.visits if own else w.grid.visited_columns
    visits = tile_runs(w.grid, visited, by_rows=launch.by_rows)
    keys = device.upload(narrowed(in_hbm(w, inputs.k), w.dtype))
    given = {name.lower(): values for name, values in inputs.given(w).items()}
    wide = [spec.name.lower() for spec in algorithm_of(w).gates if spec.width == "dtype"]
    wide += [GATE.name] * w.gated
    lasts = w.grid.visited_columns.ends.astype(np.int32) - np.int32(1)
    blocks = w.mask.block_table
    return Tensors(
        q=device.upload(narrowed(inputs.q, w.dtype)),
        k=keys,
        c=keys,
        v=device.upload(narrowed(in_hbm(w, inputs.v), w.dtype)),
        kv_head_of=device.upload(np.array(w.kv_head_of, dtype=np.int32)),
        o=device.filled((*rows, w.value_dim), stored, 0xFF),
        run_offsets=device.upload(visits.offsets),
        runs=device.upload(visits.runs),
        slopes=device.upload(np.array(w.slopes, dtype=np.float32)) if w.slopes else None,
        biases=None if w.biases is None else device.upload(w.biases.values),
        document_of=_documents(device, w),
        block_mask=None if blocks is None else device.upload(blocks.view(np.uint8)),
        sink=None if w.sinks is None else device.upload(w.sinks),
        projection=None if inputs.projection is None else device.upload(inputs.projection),
        last_columns=device.upload(lasts) if w.gated else None,
        table=None if w.pages is None else device.upload(w.pages.entries),
        state=device.filled(state, np.float32, 0xFF) if "state" in taken else None,
        **{name: device.filled(rows, np.float32, 0xFF) for name in statistics},
        **{name: device.upload(gate) for name, gate in given.items() if name not in wide},
        **{name: device.upload(narrowed(given[name], w.dtype)) for name in wide},
        **_gradients(device, w, stored),
    )


def in_hbm(w: Workload, tensor: F32) -> F32:
    """Return K or V in the order in which it lies in HBM."""
    return tensor if w.pages is None else w.pages.scattered(tensor)


def _gradients(device: Device, w: Workload, stored: type[np.generic]) -> dict[str, Buffer]:
    """Return the tensors that a backward pass writes; none of a forward pass."""
    if not algorithm_of(w).backward:
        return {}
    made = {
        spec.name.lower(): device.filled(
            (
                w.kv_heads if spec.of_kv_heads else w.heads,
                *(w.sizes[axis] for axis in spec.axes),
            ),
            stored if spec.width == "dtype" else np.float32,
            0xFF,
        )
        for spec in algorithm_of(w).tensors
        if not spec.of_pairs
    }
    if not takes_turns(w):
        return made
    columns = tile_runs(w.grid, w.grid.visited_columns, by_rows=True)
    return made | {
        "turns": device.filled((w.heads, w.grid.Tr + 1), np.int32, 0xFF),
        "column_offsets": device.upload(columns.offsets),
        "columns": device.upload(columns.runs),
    }


def _documents(device: Device, w: Workload) -> Buffer | None:
    """Return which document each key is in; None without documents."""
    if not w.mask.documents:
        return None
    return device.upload(w.mask.document_of(np.arange(w.seqlen_k)).astype(np.int32))


def with_scratch(
    device: Device,
    w: Workload,
    tensors: Tensors,
    part: LaunchPart,
    stored: type[np.generic] = np.float32,
) -> Tensors:
    """Return the tensors with memory for the numbers that launches over a part pass on.

    w: naive passes on S and P, its backward pass dP and dS, split-kv O and LSE of each split;
        others pass on nothing.
    stored: the type of S and P in HBM.
    """
    heads, rows = len(part.heads), len(part.rows(w))
    if algorithm_of(w).stores_scores:
        s, p = (device.filled((heads, rows, w.seqlen_k), stored, 0xFF) for _ in range(2))
        return replace(tensors, s=s, p=p)
    made = [spec.name.lower() for spec in algorithm_of(w).tensors if spec.of_pairs]
    if made:
        shape = (heads, rows, w.seqlen_k)
        return replace(tensors, **{name: device.filled(shape, stored, 0xFF) for name in made})
    if joins_splits(w):
        o, lse = (
            device.filled((heads, w.splits, rows, *shape), np.float32, 0xFF)
            for shape in ((w.value_dim,), ())
        )
        return replace(tensors, o_partial=o, lse_partial=lse)
    return tensors


def narrowed(values: F32, dtype: str) -> NDArray[Any]:
    """Return numbers as they are in HBM: float32, or the bits of float16 or bfloat16."""
    if dtype == "float16":
        return values.astype(np.float16).view(np.uint16)
    if dtype == "bfloat16":  # the values are representable, so the bits that are cut off are zero
        bits = np.ascontiguousarray(values).view(np.uint32) >> np.uint32(16)
        return bits.astype(np.uint16)
    return np.ascontiguousarray(values)


def widened(stored: NDArray[Any], dtype: str) -> F32:
    """Return the float32 values of numbers in HBM, the inverse of `narrowed`."""
    if stored.dtype == np.float32:
        return stored
    if dtype == "float16":
        return stored.view(np.float16).astype(np.float32)
    return bfloat16_from_bits(stored)
