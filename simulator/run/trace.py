"""A run in which one can go to any cursor: tile program and engine together.

A run at N = 131 072 has a million O tiles for each head; nobody stores them. The program computes
by arithmetic where the cursor is, the engine computes the row block there, and the trace keeps as
many row blocks as fit into a fixed amount of memory. This is the idea of the algorithm itself:
recompute rather than store.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from simulator.base.cache import BoundedCache
from simulator.base.dtypes import F32, frozen
from simulator.base.errors import SCENARIO, InputError, refuse
from simulator.engines.layer_check import output_error
from simulator.engines.numpy_engine import numpy_engine
from simulator.engines.protocol import BackwardEngine, Engine, RowBlock, Tile
from simulator.engines.reference import error_rows, reference_gradients, reference_rows
from simulator.problem.input_files import done_after
from simulator.problem.layer import Layer
from simulator.problem.scenario import Scenario, load_scenario
from simulator.problem.workload import Inputs, Workload, read_inputs, resolve
from simulator.program.algorithms import USUAL, algorithm_of, tile_program
from simulator.program.faults import honest
from simulator.program.playback import Cursor
from simulator.program.tile_program import TileProgram, Visit
from simulator.program.traffic import compulsory_bytes
from simulator.run.final_weights import exponentials, is_rescaled, maxima_of_output, with_finale
from simulator.run.gradients import made_so_far
from simulator.run.rescales import rescaled
from simulator.run.shown import ShownFigure
from simulator.run.snapshot import HeadNumbers, Partials, Snapshot
from simulator.run.wrong import exact_engine, wrong_numbers
from simulator.timing.run_time import model_of

Progress = Callable[[float], None]

ROW_BLOCK_CACHE = 96 * 2**20  # bytes of row blocks kept: at N = 131 072 and d = 128 about a dozen
TILE_CACHE = 8 * 2**20  # bytes of tiles kept: the current one and some before it
DETAIL_CELLS, DETAIL_TILES = 2**20, 2**14
"""Scores and tiles of a head up to which a snapshot contains all numbers of the head."""

_RowState = tuple[F32 | np.float32, F32 | np.float32, F32 | np.float32]  # m, l and O of a row block


class Trace(ShownFigure):
    """A run of a workload on an engine."""

    def __init__(self, program: TileProgram, engine: Engine, inputs: Inputs) -> None:
        self.program = program
        self.workload = program.workload
        self.engine = engine
        self.inputs = inputs
        self._blocks: BoundedCache[RowBlock] = BoundedCache(ROW_BLOCK_CACHE, lambda b: b.bytes)
        self._heads: BoundedCache[dict[str, F32]] = BoundedCache(
            2 * 8 * DETAIL_CELLS, lambda pairs: sum(matrix.nbytes for matrix in pairs.values())
        )
        self._weights: BoundedCache[F32] = BoundedCache(8 * DETAIL_CELLS, lambda w: w.nbytes)
        self._tiles: BoundedCache[Tile] = BoundedCache(TILE_CACHE, lambda tile: tile.bytes)
        self._outputs: BoundedCache[F32] = BoundedCache(8 * DETAIL_CELLS, lambda o: o.nbytes)
        # Engines and caches serve one thread at a time; long work uses them from another thread.
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return len(self.program)

    def forget(self) -> None:
        """Forget everything that can be computed again, because the run is no longer shown."""
        with self._lock:
            for cache in self._caches:
                cache.clear()
            self.engine.forget()

    @property
    def kept_bytes(self) -> int:
        """Memory of the numbers that are kept and can be computed again."""
        return sum(cache.bytes for cache in self._caches)

    @property
    def _caches(self) -> tuple[BoundedCache[Any], ...]:
        return self._blocks, self._heads, self._weights, self._tiles, self._outputs

    def row_block(self, head: int, i: int) -> RowBlock:
        """Return row block `i` of a head, kept or computed now."""
        with self._lock:
            return self._blocks.get((head, i), lambda: self.engine.row_block(head, i))

    def tile(self, index: int) -> Tile:
        """Return the numbers of a visit."""
        with self._lock:
            return self._tile(self.program.visit(index))

    def _tile(self, visit: Visit) -> Tile:
        """Return the numbers of a visit: stepping through its ops asks for them again and again."""

        def make() -> Tile:
            return self.engine.tile(visit, self.row_block(visit.head, visit.i))

        return self._tiles.get(visit.index, make)

    def snapshot(self, visit: int, op: int | None = None) -> Snapshot:
        """Return the state after `op` of `visit`, or after the whole visit."""
        last = len(self.program.ops(visit)) - 1
        if op is None:
            op = last
        if not 0 <= op <= last:
            raise IndexError(f"visit {visit}, op {op}: expected 0 to {last}")
        with self._lock:
            return self._snapshot(visit, op)

    def _snapshot(self, visit: int, op: int) -> Snapshot:
        place, ops = self.program.visit(visit), self.program.ops(visit)
        kv_head = self.workload.kv_head_of[place.head]
        bare = Snapshot(
            program=self.program,
            cursor=Cursor(visit, op),
            visit=place,
            ops=ops,
            tile=self._tile(place),
            counters=self.program.counters(visit).after(ops[: op + 1]),
            on_chip=self.program.on_chip(visit, op),
            head=None,
            q=self.inputs.q[place.head],
            k=self.inputs.k[kv_head],
            v=self.inputs.v[kv_head],
            engine=self.engine.name,
            device=self.engine.device,
            gate=self._given(place.head),
            output_gate=self._output_gate(place.head),
            unturned=self._unturned(place.head),
        )
        # A snapshot is frozen, so numbers that follow from it are put into a new one.
        now = replace(
            bare,
            head=self._head_numbers(bare) if self.has_detail else None,
            partials=self._partials(bare),
        )
        now = with_finale(now)
        if not self.workload.faults.on:
            return now
        return replace(now, wrong=wrong_numbers(now, self.exact(now)))

    def exact(self, now: Snapshot) -> Snapshot:
        """Return the state at the same cursor of the same run, without faults and in float64."""
        return self._exact.snapshot(now.cursor.visit, now.cursor.op)

    def _unturned(self, head: int) -> dict[str, F32]:
        """Return Q and K of a head before positions turn them, by name; nothing without any."""
        before = self.inputs.unturned
        if before is None:
            return {}
        names = (spec.name for spec in self.program.algorithm.inputs)
        values = before[0][head], before[1][self.workload.kv_head_of[head]]
        return dict(zip(names, values, strict=False))

    def _given(self, head: int) -> F32 | None:
        """Return a head's input beside Q, K and V: a gate, or the gradient of O."""
        own, place = self.inputs.upstream, head
        if own is None:
            own, place = self.inputs.gate, self.workload.kv_head_of[head]
        return None if own is None else np.asarray(own[place])

    def _output_gate(self, head: int) -> F32 | None:
        """Return the gate that O of a head is multiplied by; None without such a gate."""
        own = self.inputs.output_gate
        return own[head] if self.workload.gated and own is not None else None

    @cached_property
    def single_heads(self) -> tuple[Workload, Inputs]:
        """The workload with its query heads one by one, for work without tiles, and its inputs."""
        if self.workload.group == 1:
            return self.workload, self.inputs
        single = self.workload.as_algorithm(USUAL.name)
        return single, single.posed(self.inputs)

    @cached_property
    def _exact(self) -> Trace:
        """The run without faults in float64."""
        workload = honest(self.workload)
        engine = exact_engine(workload, self.inputs)
        return Trace(tile_program(workload), engine, self.inputs)

    @property
    def has_detail(self) -> bool:
        """Whether snapshots carry all numbers of the current head."""
        return is_detailed(self.workload)

    @cached_property
    def _outcome(self) -> tuple[F32, F32]:
        # Only O and lse of row blocks are kept, because whole row blocks would fill the memory.
        heads = [
            [(block.o, block.lse) for block in self.engine.row_blocks(head)]
            for head in range(self.workload.heads)
        ]
        o = np.stack([np.concatenate([o for o, _ in blocks]) for blocks in heads])
        lse = np.stack([np.concatenate([lse for _, lse in blocks]) for blocks in heads])
        w = self.workload
        return frozen(w.unpacked(o)), frozen(w.unpacked(lse))

    @property
    def output(self) -> F32:
        """O at the end, as it is in HBM, (heads, Nq, dv) float32."""
        return self._outcome[0]

    @property
    def lse(self) -> F32:
        """``m + ln l`` at the end, (heads, Nq) float32; -inf for rows that see nothing."""
        return self._outcome[1]

    @property
    def left(self) -> dict[str, F32]:
        """The tensors of its forward pass that a backward pass finds in HBM; else none."""
        w, engine = self.workload, self.engine
        if not isinstance(engine, BackwardEngine):
            return {}
        heads = [[engine.left(head, i) for i in range(w.grid.Tr)] for head in range(w.heads)]
        return {
            name: frozen(np.stack([np.concatenate([one[name] for one in own]) for own in heads]))
            for name in self.program.kept
        }

    def arrays(self, progress: Progress | None = None) -> dict[str, F32]:
        """Return O, lse and, for flash1 and flash2, m and l after every column block.

        Returns: ``o`` (heads, Nq, dv), ``lse`` (heads, Nq), ``m`` and ``l`` (heads, Nq, Tc),
            float32; of a backward pass also ``dq``, ``dk`` and ``dv``, shaped as Q, K and V are.
        """
        return self.run(keep_arrays=True, progress=progress)[1]

    def summary(self, progress: Progress | None = None) -> dict[str, Any]:
        """Run everything and return the summary of docs/files.md."""
        return self.run(progress=progress)[0]

    def run(
        self, *, keep_arrays: bool = False, progress: Progress | None = None
    ) -> tuple[dict[str, Any], dict[str, F32]]:
        """Run everything once; return the summary and, if they are kept, the arrays.

        `max_abs_error` is over all rows if float64 can check them in a moment, otherwise over
        evenly spread row blocks; ``checked_rows`` says how many rows of all heads these are.
        ``seconds`` is the engine's time without the check.
        """
        w = self.workload
        arrays = self._empty_arrays() if keep_arrays else {}
        compare = set(error_rows(w))
        checked: list[tuple[int, range, F32]] = []
        rescales, started = 0, time.perf_counter()
        for head in range(w.heads):
            for i, block in enumerate(self.engine.row_blocks(head)):
                rows = w.grid.row_range(i)
                if w.threshold is not None:
                    rescales += len(rescaled(w, head, i, block)[0])
                for name, array in arrays.items():
                    array[head, rows.start : rows.stop] = getattr(block, name)
                if i in compare:
                    checked.append((head, rows, block.o))
                if progress:
                    progress((head * w.grid.Tr + i + 1) / (w.heads * w.grid.Tr))
        arrays = {name: w.unpacked(array) for name, array in arrays.items()}
        gradients = self._gradients()
        seconds = time.perf_counter() - started
        if arrays:
            arrays |= {name.lower(): array for name, array in gradients.items()}
        layer = self.whole_layer
        if layer is not None and arrays:
            inputs = self.single_heads[1]
            arrays |= {"q": inputs.q, "k": inputs.k, "v": inputs.v, "y": layer.output(arrays["o"])}
        error = 0.0
        for head, rows, o in checked:
            exact, _ = reference_rows(w, self.inputs, head, rows)
            with np.errstate(invalid="ignore"):
                # A NaN must not count as a small error.
                error = float(np.max([error, np.max(np.abs(o - exact))]))
        if gradients and len(compare) == w.grid.Tr:
            error = float(np.max([error, self._gradient_error(gradients)]))
        compared = sum(len(rows) for _, rows, _ in checked)
        summary = summary_of(self.program, self.engine.name, error, compared, seconds)
        if w.threshold is not None:
            summary["rescales"] = rescales
        if layer is not None:
            single, inputs = self.single_heads
            wrong = output_error(single, inputs, layer, self._by_rows(checked))
            flops = layer.flops
            summary["layer"] = {
                "matmul_flops": {**flops, "total": sum(flops.values())},
                "max_abs_error": wrong if math.isfinite(wrong) else None,
            }
        return summary, arrays

    def _gradients(self) -> dict[str, F32]:
        """Return the gradients of Q, K and V of all heads; nothing of a forward pass."""
        if not isinstance(self.engine, BackwardEngine):
            return {}
        w = self.workload
        out = {"dQ": np.empty_like(self.inputs.q), "dK": np.empty_like(self.inputs.k),
               "dV": np.empty_like(self.inputs.v)}  # fmt: skip
        for kv_head in range(w.kv_heads):
            own = self.engine.gradients(kv_head)
            out["dQ"][[head for head in range(w.heads) if w.kv_head_of[head] == kv_head]] = own.pop(
                "dQ"
            )
            for name, array in own.items():
                out[name][kv_head] = array
        return out

    def _gradient_error(self, gradients: dict[str, F32]) -> float:
        """Return the largest absolute difference of the gradients from float64; NaN for NaN."""
        w, worst = self.workload, 0.0
        dk, dv = (np.zeros(x.shape) for x in (self.inputs.k, self.inputs.v))
        for head in range(w.heads):
            dq, to_k, to_v = reference_gradients(w, self.inputs, head, range(w.seqlen_q))
            dk[w.kv_head_of[head]] += to_k
            dv[w.kv_head_of[head]] += to_v
            worst = float(np.max([worst, np.max(np.abs(gradients["dQ"][head] - dq))]))
        return float(np.max([worst, *(np.max(np.abs(gradients[name] - exact))
                                      for name, exact in (("dK", dk), ("dV", dv)))]))  # fmt: skip

    @property
    def whole_layer(self) -> Layer | None:
        """The layer of the run, if all of its heads run: then there is a Y."""
        whole = self.workload.picked == tuple(range(self.workload.input_heads[0]))
        return self.inputs.layer if whole else None

    def _by_rows(self, checked: list[tuple[int, range, F32]]) -> list[tuple[range, F32]]:
        """Return O of all heads one by one, (H, rows, dv), in rows that were checked in each."""
        w = self.workload
        o = np.empty((w.heads, w.seqlen_q, w.value_dim), dtype=np.float32)
        known = np.zeros(o.shape[:2], dtype=np.bool_)
        for head, rows, part in checked:
            o[head, rows.start : rows.stop], known[head, rows.start : rows.stop] = part, True
        o = w.unpacked(o)
        found = np.flatnonzero(known.reshape(o.shape[:2]).all(axis=0))
        runs = np.split(found, np.flatnonzero(np.diff(found) != 1) + 1)
        parts = [range(int(run[0]), int(run[-1]) + 1) for run in runs if run.size]
        return [(rows, o[:, rows.start : rows.stop]) for rows in parts]

    def _empty_arrays(self) -> dict[str, F32]:
        w = self.workload
        shapes: dict[str, tuple[int, ...]] = {"o": (w.value_dim,)}
        if algorithm_of(w).softmax:
            shapes["lse"] = ()
        if algorithm_of(w).running:
            shapes |= {"m": (w.grid.Tc,), "l": (w.grid.Tc,)}
        return {
            name: np.empty((w.heads, w.seqlen_q, *shape), dtype=np.float32)
            for name, shape in shapes.items()
        }

    # --- the whole head, for small problems ------------------------------------------------

    def _head_matrices(self, head: int) -> dict[str, F32]:
        """Return S (masked), P and a backward pass's other pair numbers, NaN where skipped."""
        parts: list[dict[str, F32]] = []
        for i in range(self.workload.grid.Tr):
            if isinstance(self.engine, BackwardEngine):
                parts.append(self.engine.row_pairs(head, i))
            else:
                s, p = self.engine.row_matrices(head, i, self.row_block(head, i))
                parts.append({"S": s, "P": p})
        return {name: frozen(np.concatenate([part[name] for part in parts])) for name in parts[0]}

    def _head_numbers(self, now: Snapshot) -> HeadNumbers:
        w, visit = self.workload, now.visit
        pairs = dict(self._heads.get(visit.head, lambda: self._head_matrices(visit.head)))
        s, p = pairs.pop("S"), pairs.pop("P")
        m = np.full(w.seqlen_q, np.nan, dtype=np.float32)
        l = np.full(w.seqlen_q, np.nan, dtype=np.float32)
        o = np.full((w.seqlen_q, w.value_dim), np.nan, dtype=np.float32)
        for i in range(w.grid.Tr):
            rows = slice(w.grid.row_range(i).start, w.grid.row_range(i).stop)
            state = self._row_state(now, i)
            if state is not None:
                m[rows], l[rows], o[rows] = state
        weights = None
        if is_rescaled(now):
            top = maxima_of_output(now, m, lambda i: self.row_block(visit.head, i))
            keys = w.split_blocks * w.cols
            key = visit.head, top.tobytes()
            weights = self._weights.get(key, lambda: exponentials(s, top, keys))
        others = pairs | self._made_so_far(now)
        return HeadNumbers(s, p, frozen(m), frozen(l), frozen(o), others, weights)

    def _made_so_far(self, now: Snapshot) -> dict[str, F32]:
        """Return the numbers that a backward pass has made of the head's rows and keys, and LSE."""
        if not self.program.algorithm.backward:
            return {}
        blocks = (self.row_block(now.visit.head, i) for i in range(self.workload.grid.Tr))
        lse = frozen(np.concatenate([block.lse for block in blocks])[:, None])
        return {"LSE": lse, **made_so_far(now, self._left_by)}

    def _left_by(self, index: int, name: str) -> F32:
        """Return a number as visit `index` leaves it."""
        visit = self.program.visit(index)
        block, tile = self.row_block(visit.head, visit.i), self.engine.tile
        return self._outputs.get((index, name), lambda: tile(visit, block).states[-1][name])

    def _row_state(self, now: Snapshot, i: int) -> _RowState | None:
        """Return m, l and O of row block `i` at the cursor; None if there is nothing yet."""
        w, visit = self.workload, now.visit
        block = self.row_block(visit.head, i)
        final = block.m[:, -1], block.l[:, -1], block.o
        if algorithm_of(w).backward:  # a forward pass has left O, and m and l are not kept
            nothing = np.float32(np.nan)
            return nothing, nothing, block.o
        if i == visit.i:
            found = now.results
            m, l, o = (found.get(name, np.float32(np.nan)) for name in ("m", "l", "O"))
            return m, l, o
        if algorithm_of(w).stores_scores:
            after: dict[int, _RowState] = {1: (*final[:2], np.float32(np.nan)), 2: final}
            return after.get(visit.launch - (i > visit.i))
        if algorithm_of(w).normalises_last:
            # Blocks that see nothing are always the first ones, so they are above, too.
            if i > visit.i or not now.launch.writes_output:
                return None
            if not now.launch.combines:
                return final if now.launch.count(i) or now.started else None
            index = self.program.index(visit.head, i, 0, visit.launch)
            assert index is not None
            tile = self._tile(self.program.visit(index))
            return tile.m, tile.l, block.o  # after a column block m and l are its split's
        # flash1: the row block as its last visit up to the cursor left it in HBM.
        for j in reversed(range(visit.j + (i < visit.i))):
            index = self.program.index(visit.head, i, j)
            if index is not None:
                return block.m[:, j], block.l[:, j], self._output_after(index)
        if not now.started:
            return None
        top, total = w.start(visit.head, w.grid.row_range(i))
        return top.astype(np.float32), total.astype(np.float32), np.float32(0)

    def _partials(self, now: Snapshot) -> Partials | None:
        """Return the partial results that the splits of the current row block leave."""
        visit = now.visit
        joins = self.program.joining(visit.head, visit.i)
        if joins is None:
            return None
        numbers = self._tile(self.program.visit(joins)).states[-1]
        launch, done = self.program.launches[visit.launch], now.ops[: now.cursor.op + 1]
        stores = [move for op in done if op.stores for move in op.moves]
        left = {move.split for move in stores if visit.rows.start in move.rows}
        runs = range(self.workload.splits)
        # A split that sees nothing has been cleared by the first op of the launch.
        empty = [not launch.combines and not launch.count(visit.i * len(runs) + n) for n in runs]
        stored = tuple(
            launch.combines or split < visit.split or split in left or empty[split]
            for split in runs
        )
        weights = now.state.get("w")
        return Partials(numbers["O_partial"], numbers["LSE_partial"], stored, weights)

    def _output_after(self, index: int) -> F32:
        """Return O of a row block as visit `index` leaves it."""
        visit = self.program.visit(index)
        block = self.row_block(visit.head, visit.i)
        return self._outputs.get(index, lambda: self.engine.tile(visit, block).states[-1]["O"])


def is_detailed(w: Workload) -> bool:
    """Return whether snapshots of a run carry all numbers of a head, so that cells are drawn."""
    cells = w.seqlen_q * max(w.seqlen_k, w.value_dim)
    return cells <= DETAIL_CELLS and w.grid.Tr * w.grid.Tc <= DETAIL_TILES


def summary_of(
    program: TileProgram, engine: str, error: float, checked: int, seconds: float
) -> dict[str, Any]:
    """Return the summary of docs/files.md, without the entries that need all rows' numbers.

    error: the largest difference from float64, of `checked` rows.
    """
    w, totals = program.workload, program.totals
    summary: dict[str, Any] = {
        "algorithm": w.algorithm,
        "engine": engine,
        "tiles": tile_counts(program),
        "hbm": {
            "read_bytes": totals.read_bytes,
            "write_bytes": totals.write_bytes,
            "compulsory_bytes": compulsory_bytes(w),
            "by_tensor": {
                name: {"read": totals.read[name], "write": totals.write[name]}
                for name in program.tensors
            },
        },
        "sram": {"peak_bytes": program.peak_shared_bytes, "budget_bytes": w.gpu.smem_bytes},
        "matmul_flops": totals.flops,
        "visits": len(program),
        "max_abs_error": error if math.isfinite(error) else None,
        "checked_rows": checked,
        "seconds": seconds,
        **model_of(program),
    }
    if program.algorithm.splits:
        summary |= {"splits": w.splits, "split_keys": w.split_blocks * w.cols}
    if done := done_after(w.file):
        summary["after"] = done
    if w.what_if:
        summary["what_if"] = list(w.what_if)
    if w.file and w.file.notes:
        summary["input"] = list(w.file.notes)
    return summary


def tile_counts(program: TileProgram) -> dict[str, int]:
    """Return the tiles of all heads by their kind, and how many are visited.

    Kinds follow from the mask alone. FlashAttention visits the full and the partial tiles;
    naive visits every tile, also those of kind skipped. Linear attention forms only the tiles of a
    chunk with itself.
    """
    w = program.workload
    total = w.heads * w.grid.Tr * w.grid.Tc
    seen = w.heads * int(w.grid.visited_columns.sums[-1])
    full = w.heads * w.grid.full_tiles
    if not algorithm_of(w).softmax:  # only tiles of a chunk with itself are formed
        seen, full = w.heads * w.grid.Tr * (w.chunked and algorithm_of(w).forms), 0
    return {
        "total": total,
        "visited": seen if algorithm_of(w).skips else total,
        "skipped": total - seen,
        "full": full,
        "partial": seen - full,
    }


EngineFactory = Callable[[Workload, Inputs], Engine]
"""Makes the engine for a workload; `kernels.devices.registry` has the factories of kernels."""


def trace_of(workload: Workload, inputs: Inputs, factory: EngineFactory) -> Trace:
    """Return the trace of a workload on an engine."""
    return Trace(tile_program(workload), factory(workload, inputs), inputs)


def resolve_from(source: str, scenario: Scenario, *, computes: bool = True) -> Workload:
    """Resolve a scenario; an error in it names the file that it came from."""
    try:
        return resolve(scenario, computes=computes)
    except InputError as error:
        if source and error.source == SCENARIO:
            raise InputError(source, error.mistakes, error.others) from None
        raise


def simulate(
    scenario: Scenario | str | Path, engine: str | EngineFactory = "numpy", source: str = ""
) -> Trace:
    """Return the trace of a scenario: nothing is computed until it is asked for.

    engine: ``numpy``, which can make faults, or the factory of another engine.
    source: the file that the scenario has been read from, which errors name.
    """
    if not isinstance(scenario, Scenario):
        scenario, source = load_scenario(scenario), str(scenario)
    if isinstance(engine, str):
        if engine != "numpy":
            raise refuse("simulate", "engine", engine, '"numpy", or what makes another engine')
        engine = numpy_engine
    workload = resolve_from(source, scenario)
    return trace_of(workload, read_inputs(workload), engine)
