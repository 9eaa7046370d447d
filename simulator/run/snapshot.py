"""The immutable state at a cursor: everything that a panel may draw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from simulator.base.dtypes import F32
from simulator.engines.protocol import Tile
from simulator.problem.positions import Turning
from simulator.program.algorithms import TENSORS
from simulator.program.gate_ops import ApplyGate
from simulator.program.launches import Launch
from simulator.program.op import Op
from simulator.program.ops import Normalise
from simulator.program.playback import Cursor
from simulator.program.state import ChipTile, Numbers
from simulator.program.tensors import GATE, Axis, TensorSpec
from simulator.program.tile_program import Counters, TileProgram, Visit
from simulator.run.shown import ShownFigure
from simulator.timing.duration import duration_of

if TYPE_CHECKING:
    from simulator.run.wrong import WrongNumbers


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a matrix of the current head, in the matrix's own rows and columns (K, not Kᵀ)."""

    # ``Q K V S m l O``; S also where P is shown in its place; with `split`, a partial result
    tensor: str
    # row, col: counted from 0; the column of m and l is 0
    row: int
    col: int
    split: int | None = None  # which split has left it

    @property
    def spec(self) -> TensorSpec:
        """The tensor that the cell belongs to."""
        return TENSORS[self.tensor]

    @property
    def at(self) -> dict[Axis, int]:
        """The place of the cell along each axis of its tensor but the splits."""
        axes = [axis for axis in self.spec.axes if axis != "split"]
        return dict(zip(axes, (self.row, self.col), strict=False))


@dataclass(frozen=True, slots=True)
class HeadNumbers:
    """All numbers of a head at a cursor, if it is small enough to draw; NaN: not there now."""

    # (Nq, Nk) float32, masked scaled scores of every visited tile of the run (-inf hidden, NaN
    # skipped); the tile states say which of them exist at the cursor
    s: F32
    p: F32  # (Nq, Nk) float32, exponentials as their tile computed them, likewise
    # m, l: (Nq,) float32, running statistics at the cursor
    m: F32
    l: F32
    o: F32  # (Nq, dv) float32, O at the cursor: on chip or in HBM
    # of a backward pass, its numbers of pairs, (Nq, Nk) each, of every tile of the run, and its
    # numbers of rows and of keys at the cursor, (Nq, n) and (Nk, n), by the name of the tensor in
    # whose place they are
    others: Mapping[str, F32] = field(default_factory=dict)
    # (Nq, Nk) float32, ``exp(S - m)`` of keys that have been used, with the m that O of their row
    # is relative to at the cursor; None without a rescale
    weights: F32 | None = None

    @property
    def pairs(self) -> dict[str, F32]:
        """S, P and the other numbers of pairs, (Nq, Nk) each."""
        more = {name: own for name, own in self.others.items() if TENSORS[name].of_pairs}
        return {"S": self.s, "P": self.p} | more

    @property
    def results(self) -> dict[str, F32]:
        """m, l and O, (Nq, n) each, and the other numbers of rows and of keys."""
        more = {name: own for name, own in self.others.items() if not TENSORS[name].of_pairs}
        return {"m": self.m[:, None], "l": self.l[:, None], "O": self.o} | more


@dataclass(frozen=True, slots=True)
class Partials:
    """The results that the current row block's splits leave in HBM, to be joined by a visit."""

    o: F32  # (splits, r, dv) float32, O of each split, divided by the sum over its keys alone
    lse: F32  # (splits, r) float32, LSE of each split, -inf where a row sees none of its keys
    stored: tuple[bool, ...]  # of each split, whether it lies in HBM at the cursor
    # (splits, r) float32, by how much each O counts; None until they have been made
    weights: F32 | None


_OF_FORWARD = ("S", "P")  # the numbers of pairs of a forward pass


@dataclass(frozen=True)
class Snapshot(ShownFigure):
    """State at a cursor."""

    # the run's visits and ops; ``program.workload`` has shapes, mask and hardware
    program: TileProgram
    cursor: Cursor  # the place in the run
    visit: Visit  # the current visit
    ops: tuple[Op, ...]  # its ops; the ops up to and including ``cursor.op`` have been done
    tile: Tile  # its numbers, before and after
    counters: Counters  # requested bytes and FLOPs so far
    on_chip: tuple[ChipTile, ...]  # tiles on chip now
    head: HeadNumbers | None  # the whole head's numbers if the problem is small enough
    # q, k, v: (Nq, d), (Nk, d), (Nk, dv) float32 of the current head, as tiles read them
    q: F32
    k: F32
    v: F32
    # engine, device: names of where the numbers were computed
    engine: str
    device: str
    wrong: WrongNumbers | None = None  # which numbers are wrong, where a fault is on
    # the results of the splits of the current row block; None without splits
    partials: Partials | None = None
    # (Nq, Nk) float32, the weights of `weights_so_far`, if they are to be shown
    so_far: F32 | None = None
    # (Nk, f) or (Nk,) float32, the gates of keys in the updates of a state, if there are some; of a
    # backward pass (Nq, dv), the gradient of O
    gate: F32 | None = None
    # (Nq, dv) float32, the gate that O of the current head is multiplied by; None without a gate
    output_gate: F32 | None = None
    # Q and K of the current head before positions turn them, by name; empty without positions
    unturned: Mapping[str, F32] = field(default_factory=dict)

    @property
    def inputs(self) -> dict[str, F32]:
        """Q, K and V of the current head as they are now, and the head's other inputs, by name.

        Before the tiles Q and K may not have been turned by their positions yet.
        """
        specs = self.program.algorithm.inputs
        found = {spec.name: own for spec, own in zip(specs, (self.q, self.k, self.v), strict=False)}
        if self.unturned:
            found |= {name: own for name, own in self.unturned.items() if not self.is_turned(name)}
        if self.gate is not None:
            given = self.gate.reshape(len(self.gate), -1)
            found |= {spec.name: given for spec in self.program.algorithm.gates}
        if self.output_gate is not None:
            found[GATE.name] = self.output_gate
        return found

    def is_turned(self, name: str) -> bool:
        """Return whether positions have turned an input by now, if they turn it at all."""
        specs = self.program.algorithm.inputs
        to_come = self.ops[self.cursor.op + 1 :]
        return all(op.turns is None or specs[op.turns].name != name for op in to_come)

    def turning(self, name: str) -> Turning | None:
        """Return how positions turn an input; None where they do not, or where it is not known."""
        w, before = self.program.workload, self.unturned.get(name)
        if w.position is None or before is None:
            return None
        by_row = name == self.program.algorithm.inputs[0].name
        places = w.mask.positions(range(w.seqlen_q)) if by_row else np.arange(w.seqlen_k)
        return Turning(name, w.position, places, before)

    @property
    def turned_now(self) -> Turning | None:
        """The input that the current op turns; before the first turn, the input to turn first."""
        if not self.op.before_tiles:
            return None
        return self.turning(self.program.algorithm.inputs[self.op.turns or 0].name)

    @property
    def op(self) -> Op:
        """The op that has just been done."""
        return self.ops[self.cursor.op]

    @cached_property
    def past(self) -> tuple[Op, ...]:
        """The ops of this visit that have been done."""
        return self.ops[: self.cursor.op + 1]

    @cached_property
    def done(self) -> frozenset[str]:
        """Names of the ops of this visit that have been done."""
        return frozenset(op.name for op in self.past)

    def made(self, name: str) -> bool:
        """Whether this visit has made a number: S, P, m and l with the tile, O with it added."""
        return any(name in op.makes for op in self.past)

    def stored(self, tensor: str) -> bool:
        """Whether this visit has written a tensor of its own to HBM."""
        writes = (op.moves for op in self.past if op.stores and not op.starts)
        return any(move.tensor == tensor for moves in writes for move in moves)

    @property
    def rescaled(self) -> bool:
        """Whether this visit has multiplied O by `rescale_factor`."""
        return self.state.get("factor") is not None

    @property
    def normalised(self) -> bool:
        """Whether this visit has divided its rows by l."""
        return any(isinstance(op, Normalise) for op in self.past)

    @property
    def gated(self) -> bool:
        """Whether this visit has multiplied O of its rows by their gate."""
        return any(isinstance(op, ApplyGate) for op in self.past)

    @property
    def state(self) -> Numbers:
        """The newest numbers of the tile and its rows by name, as they are now."""
        return self.tile.states[self.cursor.op + 1]

    @property
    def scores(self) -> F32 | None:
        """S of the current tile as it is now: (r, c), -inf where masked; None before it exists."""
        return self.state.get("S")

    @property
    def weights(self) -> F32 | None:
        """P of the current tile as it is now, (r, c); None before it exists."""
        return self.state.get("P")

    @property
    def newest_pairs(self) -> tuple[str, F32] | None:
        """Name and values of the tile's newest numbers of pairs; None before there are any."""
        own = (spec.name for spec in reversed(self.program.algorithm.pairs))
        found = ((name, self.state.get(name)) for name in (*own, "P", "S"))
        return next(((name, values) for name, values in found if values is not None), None)

    @property
    def computes_again(self) -> bool:
        """Whether the op computes S or P again, which the forward pass has not kept."""
        return self._does_again(self.op)

    @property
    def visit_computes_again(self) -> bool:
        """Whether any op of the visit computes again."""
        return any(map(self._does_again, self.ops))

    def _does_again(self, op: Op) -> bool:
        return self.program.algorithm.backward and not {*op.makes}.isdisjoint(_OF_FORWARD)

    @property
    def formed_before(self) -> bool:
        """Whether launches before this one have gone through tiles, and not through whole rows."""
        return any(not own.whole_rows for own in self.program.launches[: self.visit.launch])

    @property
    def m(self) -> F32:
        """Running maximum of the current row block now, (r,)."""
        return self.state.get("m", self.tile.blank["m"])

    @property
    def l(self) -> F32:  # noqa: E743
        """Running sum of the current row block now, (r,)."""
        return self.state.get("l", self.tile.blank["l"])

    @property
    def o(self) -> F32:
        """O of the current row block now, (r, dv)."""
        return self.state.get("O", self.tile.blank["O"])

    @property
    def started(self) -> bool:
        """Whether HBM has by now the numbers of rows that have seen nothing."""
        return not any(op.starts and op.stores for op in self.ops[self.cursor.op + 1 :])

    @property
    def results(self) -> dict[str, F32]:
        """m, l and O of the current row block, as far as they exist now, by name."""
        found = {"m": self.m, "l": self.l, "O": self.o}
        if self.program.algorithm.normalises_each_tile:  # before they are loaded as well
            return found if self.started else {}
        return {name: values for name, values in found.items() if name in self.state}

    @property
    def has_output(self) -> bool:
        """Whether the rows of the visit have an O by now, of some keys or of all."""
        return self.results.get("O") is not None

    @property
    def rescale_factor(self) -> F32:
        """The factor of O of each row in the rescale of this visit, (r,)."""
        factor = self.tile.last("factor")
        return self.carried if factor is None else factor

    @property
    def carried(self) -> F32:
        """The factor of l of each row before this tile is added, (r,): alpha."""
        alpha = self.tile.alpha
        return np.ones_like(alpha) if self.program.workload.faults.forget_alpha else alpha

    @property
    def masked_scores(self) -> F32:
        """S of the current tile as the softmax takes it, (r, c): -inf where a pair is hidden."""
        tile = self.tile
        made = tile.last("S") if self.program.workload.faults.leaks else None
        return np.where(tile.seen, tile.s, np.float32(-np.inf)) if made is None else made

    @property
    def stores_scores(self) -> bool:
        """Whether S and P are in HBM."""
        return self.program.algorithm.stores_scores

    @property
    def launch(self) -> Launch:
        """The kernel launch that the visit belongs to."""
        return self.program.launches[self.visit.launch]

    @property
    def tile_pages(self) -> range:
        """The pages of the current tile; none where K and V have no pages, or are not read."""
        table = self.program.workload.pages
        if table is None or self.launch.combines:
            return range(0)
        return table.pages_with(self.visit.cols)

    @property
    def tile_places(self) -> tuple[int, ...]:
        """The places of `tile_pages`, in the order of the pages."""
        table, own = self.program.workload.pages, self.tile_pages
        return () if table is None else tuple(table.used[own.start : own.stop].tolist())

    @property
    def in_softmax_launch(self) -> bool:
        """Whether this visit works on a whole row block of S (naive's second launch)."""
        return self.launch.whole_rows and self.stores_scores

    @property
    def split_tensors(self) -> frozenset[str]:
        """Names of the tensors that splits leave in HBM to be joined; none without splits."""
        specs = self.program.algorithm.tensors
        return frozenset(spec.name for spec in specs if "split" in spec.axes)

    @property
    def joined(self) -> F32 | None:
        """LSE of the splits that the visit joins, (splits, r); None where it joins none."""
        joins = self.partials is not None and self.launch.combines
        return self.partials.lse if self.partials and joins else None

    @property
    def completes(self) -> bool:
        """Whether every row that has been begun is done now, the last row with this op."""
        whole = self.cursor.op == len(self.ops) - 1 and self.visit.last
        if not self.launch.by_rows:  # rows are begun again with every column block
            whole = whole and self.visit.index + 1 == self.program.head_bounds(self.visit.index)[1]
        return whole and self.launch.writes_output

    @property
    def begun_at(self) -> int:
        """The first column block that O as it is now sums over."""
        return self.launch.run * self.visit.split

    @cached_property
    def seconds(self) -> float:
        """Seconds so far on the chosen GPU."""
        done = (self.cursor.op + 1) / len(self.ops)
        return duration_of(self.program).after(self.cursor.visit, done)
