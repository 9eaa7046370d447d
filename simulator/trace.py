"""A run that can be entered anywhere: tile program and engine, joined.

A run at N = 131 072 has a million O tiles for each head; nobody stores them. The program says
by arithmetic where the cursor is; the engine works out the row block there, and the trace
keeps as many of those as a fixed amount of memory holds. It is the algorithm's own idea:
recompute rather than store.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from simulator.algorithms import tile_program
from simulator.cache import BoundedCache
from simulator.dtypes import F32
from simulator.engine import Engine, NumpyEngine, RowBlock
from simulator.errors import refuse
from simulator.playback import clamped, end_of_visit
from simulator.program import TileProgram, Visit
from simulator.reference import error_rows, reference_rows
from simulator.scenario import Scenario
from simulator.snapshot import Cursor, HeadNumbers, Snapshot
from simulator.traffic import compulsory_bytes
from simulator.workload import Inputs, Workload, read_inputs, resolve

Progress = Callable[[float], None]

ROW_BLOCK_CACHE = 96 * 2**20
"""Bytes of row blocks kept: at N = 131 072 and d = 128 about a dozen."""
DETAIL_CELLS, DETAIL_TILES = 2**20, 2**14
"""Scores and tiles of a head up to which a snapshot carries all its numbers."""


class Trace:
    """A run of a workload on an engine.

    Parameters
    ----------
    program : TileProgram
        The visits and their ops.
    engine : Engine
        What computes the numbers.
    inputs : Inputs
        Q, K and V.
    """

    def __init__(self, program: TileProgram, engine: Engine, inputs: Inputs) -> None:
        self.program = program
        self.workload = program.workload
        self.engine = engine
        self.inputs = inputs
        self._blocks: BoundedCache[RowBlock] = BoundedCache(ROW_BLOCK_CACHE, lambda b: b.bytes)
        self._heads: BoundedCache[tuple[F32, F32]] = BoundedCache(
            2 * 8 * DETAIL_CELLS, lambda pair: pair[0].nbytes + pair[1].nbytes
        )

    def __len__(self) -> int:
        return len(self.program)

    def row_block(self, head: int, i: int) -> RowBlock:
        """Return row block `i` of a head, kept or computed now."""
        return self._blocks.get((head, i), lambda: self.engine.row_block(head, i))

    def snapshot(self, visit: int, op: int | None = None) -> Snapshot:
        """Return the state once `op` of `visit` is done; without `op`, once the visit is.

        Raises
        ------
        IndexError
            There is no such visit or op.
        """
        if op is None:
            op = end_of_visit(self.program, visit).op
        cursor = Cursor(visit, op)
        if cursor != clamped(self.program, cursor):
            raise IndexError(f"visit {visit}, op {op}: expected 0 to {len(self) - 1} and its ops")
        place = self.program.visit(visit)
        ops = self.program.ops(visit)
        kv_head = self.workload.kv_head_of[place.head]
        bare = Snapshot(
            program=self.program,
            cursor=cursor,
            visit=place,
            ops=ops,
            tile=self.engine.tile(place, self.row_block(place.head, place.i)),
            counters=self.program.counters(visit).after(ops[: op + 1]),
            on_chip=self.program.on_chip(visit, op),
            head=None,
            q=self.inputs.q[place.head],
            k=self.inputs.k[kv_head],
            v=self.inputs.v[kv_head],
            engine=self.engine.name,
            device=self.engine.device,
        )
        if not self.has_detail:
            return bare
        # Frozen, so the picture of the head is put in by making it anew.
        values = {name: getattr(bare, name) for name in Snapshot.__dataclass_fields__}
        return Snapshot(**{**values, "head": self._head_numbers(bare)})

    @property
    def has_detail(self) -> bool:
        """Whether snapshots carry all numbers of the current head."""
        w = self.workload
        cells = w.seqlen_q * max(w.seqlen_k, w.value_dim)
        return cells <= DETAIL_CELLS and w.grid.Tr * w.grid.Tc <= DETAIL_TILES

    @cached_property
    def output(self) -> F32:
        """O as it lies in HBM at the end, (heads, Nq, dv) float32."""
        return np.stack([np.concatenate([b.o for b in row]) for row in self._all_blocks()])

    @cached_property
    def lse(self) -> F32:
        """``m + ln l`` at the end, (heads, Nq) float32; -inf for rows that see nothing."""
        return np.stack([np.concatenate([b.lse for b in row]) for row in self._all_blocks()])

    def arrays(self, progress: Progress | None = None) -> dict[str, F32]:
        """Return O, lse and, for flash1 and flash2, m and l after every column block.

        Parameters
        ----------
        progress : callable, optional
            Told the share done, 0 to 1; may raise to stop.

        Returns
        -------
        dict
            ``o`` (heads, Nq, dv), ``lse`` (heads, Nq), ``m`` and ``l`` (heads, Nq, Tc),
            float32.
        """
        w = self.workload
        out: dict[str, F32] = {
            "o": np.empty((w.heads, w.seqlen_q, w.value_dim), dtype=np.float32),
            "lse": np.empty((w.heads, w.seqlen_q), dtype=np.float32),
        }
        if w.algorithm != "naive":
            for name in ("m", "l"):
                out[name] = np.empty((w.heads, w.seqlen_q, w.grid.Tc), dtype=np.float32)
        for head in range(w.heads):
            for i in range(w.grid.Tr):
                block, rows = self.engine.row_block(head, i), w.grid.row_range(i)
                for name, array in out.items():
                    array[head, rows.start : rows.stop] = getattr(block, name)
                if progress:
                    progress((head * w.grid.Tr + i + 1) / (w.heads * w.grid.Tr))
        return out

    def summary(self, progress: Progress | None = None) -> dict[str, Any]:
        """Run everything and return what CONVENTIONS calls the summary object.

        `max_abs_error` is over all rows while float64 can check them in a moment, else over
        evenly spread row blocks; ``checked_rows`` says how many rows of all heads that is.
        """
        w, totals = self.workload, self.program.totals
        started = time.perf_counter()
        error, checked = 0.0, 0
        compare = set(error_rows(w))
        reference_seconds = 0.0
        for head in range(w.heads):
            for i in range(w.grid.Tr):
                block, rows = self.engine.row_block(head, i), w.grid.row_range(i)
                if i in compare:
                    paused = time.perf_counter()
                    exact, _ = reference_rows(w, self.inputs, head, rows)
                    # A NaN must not pass as a small error.
                    error = float(np.max([error, np.max(np.abs(block.o - exact))]))
                    checked += len(rows)
                    reference_seconds += time.perf_counter() - paused
                if progress:
                    progress((head * w.grid.Tr + i + 1) / (w.heads * w.grid.Tr))
        seconds = time.perf_counter() - started - reference_seconds
        return {
            "algorithm": w.algorithm,
            "engine": self.engine.name,
            "tiles": tile_counts(self.program),
            "hbm": {
                "read_bytes": totals.read_bytes,
                "write_bytes": totals.write_bytes,
                "compulsory_bytes": compulsory_bytes(w),
                "by_tensor": {
                    name: {"read": totals.read[name], "write": totals.write[name]}
                    for name in self.program.tensors
                },
            },
            "sram": {
                "peak_bytes": self.program.peak_shared_bytes,
                "budget_bytes": w.gpu.smem_bytes,
            },
            "matmul_flops": totals.flops,
            "visits": len(self.program),
            "max_abs_error": error,
            "checked_rows": checked,
            "seconds": seconds,
        }

    def _all_blocks(self) -> Iterator[list[RowBlock]]:
        for head in range(self.workload.heads):
            yield [self.engine.row_block(head, i) for i in range(self.workload.grid.Tr)]

    # --- the whole head, for small problems ------------------------------------------------

    def _tile(self, launch: int, head: int, i: int, j: int) -> tuple[Visit, Any] | None:
        index = self.program.index(head, i, j, launch)
        if index is None:
            return None
        visit = self.program.visit(index)
        return visit, self.engine.tile(visit, self.row_block(head, i))

    def _head_matrices(self, launch: int, head: int) -> tuple[F32, F32]:
        """Return S (masked) and P of every tile of a head, NaN where tiles are skipped."""
        w = self.workload
        s = np.full((w.seqlen_q, w.seqlen_k), np.nan, dtype=np.float32)
        p = np.full_like(s, np.nan)
        for i in range(w.grid.Tr):
            for j in range(w.grid.Tc):
                found = self._tile(launch, head, i, j)
                if found is not None:
                    visit, tile = found
                    rows = slice(visit.rows.start, visit.rows.stop)
                    cols = slice(visit.cols.start, visit.cols.stop)
                    s[rows, cols] = np.where(tile.seen, tile.s, -np.inf)
                    p[rows, cols] = tile.p
        s.flags.writeable = p.flags.writeable = False
        return s, p

    def _head_numbers(self, now: Snapshot) -> HeadNumbers:
        w, visit = self.workload, now.visit
        # Naive's S and P are those of its last launch: the scores, and P divided by l.
        launch = 2 if w.algorithm == "naive" else 0
        s, p = self._heads.get(visit.head, lambda: self._head_matrices(launch, visit.head))
        m = np.full(w.seqlen_q, np.nan, dtype=np.float32)
        l = np.full(w.seqlen_q, np.nan, dtype=np.float32)
        o = np.full((w.seqlen_q, w.value_dim), np.nan, dtype=np.float32)
        for i in range(w.grid.Tr):
            rows = slice(w.grid.row_range(i).start, w.grid.row_range(i).stop)
            state = self._row_state(now, i)
            if state is not None:
                m[rows], l[rows], o[rows] = state
        return HeadNumbers(s, p, m, l, o)

    def _row_state(self, now: Snapshot, i: int) -> tuple[F32, F32, F32] | None:
        """Return m, l and O of row block `i` at the cursor; None where there is nothing yet."""
        w, visit = self.workload, now.visit
        block = self.row_block(visit.head, i)
        final = block.m[:, -1], block.l[:, -1], block.o
        if w.algorithm == "naive":
            return self._naive_row_state(now, i, final)
        if w.algorithm == "flash2":
            blind = w.grid.visited_per_row[i] == 0
            if blind or i < visit.i:
                return final
            started = "initialise" in now.done or not visit.first
            return (now.m, now.l, now.o) if i == visit.i and started else None
        if i == visit.i:
            loaded = any(
                op.loads and op.moves[0].tensor == "Q" for op in now.ops[: now.cursor.op + 1]
            )
            if loaded:
                return now.m, now.l, now.o
        # flash1: the row block as its last visit up to the cursor left it in HBM.
        reached = visit.j if i < visit.i else visit.j - 1
        if reached < 0:
            return self._blank(i)
        m, l = block.m[:, reached], block.l[:, reached]
        for j in range(reached, -1, -1):
            found = self._tile(0, visit.head, i, j)
            if found is not None:
                return m, l, found[1].o
        return self._blank(i)

    def _naive_row_state(
        self, now: Snapshot, i: int, final: tuple[F32, F32, F32]
    ) -> tuple[F32, F32, F32] | None:
        visit, (m, l, o) = now.visit, final
        nothing = np.full_like(o, np.nan)
        if visit.launch == 0:
            return None
        if visit.launch == 1:
            known = i < visit.i or (i == visit.i and "row sum" in now.done)
            return (m, l, nothing) if known else None
        if i == visit.i and (not visit.first or "initialise" in now.done):
            return m, l, now.o
        return (m, l, o) if i < visit.i else (m, l, nothing)

    def _blank(self, i: int) -> tuple[F32, F32, F32]:
        rows, dv = len(self.workload.grid.row_range(i)), self.workload.value_dim
        blank = np.zeros((rows, dv), dtype=np.float32)
        return np.full(rows, -np.inf, dtype=np.float32), blank[:, 0], blank


def tile_counts(program: TileProgram) -> dict[str, int]:
    """Return the tiles of all heads by what happens to them.

    Naive visits every tile, so none is skipped there and those that the mask empties count
    as partial.
    """
    w = program.workload
    total = w.heads * w.grid.Tr * w.grid.Tc
    visited = total if w.algorithm == "naive" else w.heads * int(w.grid.visited_per_row.sum())
    full = w.heads * w.grid.full_tiles
    return {
        "total": total,
        "visited": visited,
        "skipped": total - visited,
        "full": full,
        "partial": visited - full,
    }


def make_engine(name: str, workload: Workload, inputs: Inputs) -> Engine:
    """Return the engine of that name.

    Raises
    ------
    InputError
        There is no such engine here.
    """
    if name in ("auto", "numpy"):
        return NumpyEngine(workload, inputs)
    raise refuse("--engine", "engine", name, "numpy: this version has no other engine")


def simulate(scenario: Scenario | str | Path, engine: str = "numpy") -> Trace:
    """Return the trace of a scenario: nothing is computed until it is asked for.

    Parameters
    ----------
    scenario : Scenario or path
        What to run.
    engine : str
        ``numpy`` or ``auto``.

    Raises
    ------
    InputError
        The scenario, its input or the engine cannot be used.
    """
    from simulator.scenario import load_scenario

    if not isinstance(scenario, Scenario):
        scenario = load_scenario(scenario)
    workload = resolve(scenario)
    inputs = read_inputs(workload)
    return Trace(tile_program(workload), make_engine(engine, workload, inputs), inputs)
