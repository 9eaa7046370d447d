"""The tiles that the thread blocks of a launch ask for, in the order in which L2 sees them.

Tiles and bytes come from the launch's costs, so the bytes add up to the requested bytes of the run.
A free place takes the next thread block; all places run in lockstep, one visit a step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import numpy as np

from simulator.problem.intervals import I64, Bools, Intervals, sums
from simulator.problem.workload import Workload
from simulator.program.algorithms import TENSORS
from simulator.program.launches import Cost, Launch
from simulator.program.tile_program import TileProgram
from simulator.timing.l2_cache import Accesses
from simulator.timing.orders import Order, begins, turn_of

Index = TypeVar("Index", int, I64)
_NUMBERS = {name: number for number, name in enumerate(TENSORS)}
FLOAT_OPERATIONS = 4
"""Float32 operations of a score beside its exponential: scale, maximum, difference, sum."""
_LANES = 16  # more than the tensors that a visit reads and writes


@dataclass(frozen=True, eq=False)
class LaunchWork:
    """The work of a launch, thread block by thread block in the order of the grid.

    The grid goes through the sequences of a batch; in a sequence, through the shares of rows; in a
    share, through the heads; in a head, through the blocks.
    """

    name: str
    number: int  # of the launch in the tile program; a mask counts for the launch before
    visits: I64  # (thread blocks,): tiles that each visits
    turn: I64  # (thread blocks,): their numbers in the order in which they are started
    # of each sequence: into how many thread blocks the rows of a head are dealt out
    shares: tuple[int, ...]
    accesses: Accesses  # as the cache sees them
    requested: int  # bytes
    flops: int  # matmul FLOPs of the visited tiles, hidden pairs among them
    exponentials: int
    operations: int  # float32 operations beside exponentials
    fused: bool  # whether products and softmax of a tile are in the same launch


@dataclass(frozen=True, eq=False)
class _Visits:
    """The visits of one launch of a run, all heads, thread block by thread block."""

    head: I64  # (visits,) each
    outer: I64
    inner: I64
    thread_block: I64
    nth: I64  # number of the visit in its thread block, from 0
    counts: I64  # (thread blocks,)
    # first, last: whether a visit is the first or the last of its outer block in its thread block
    first: Bools
    last: Bools


def works(
    programs: Sequence[TileProgram],
    places: int,
    row_shares: int = 1,
    order: Order = "model",
    coarser: Sequence[TileProgram] = (),
) -> list[LaunchWork]:
    """Return the launches of a run, or of all sequences of a batch.

    places: how many thread blocks run at once on the GPU.
    row_shares: into how many thread blocks the row blocks of a head are dealt out, where one thread
        block would work on all of them.
    coarser: the same runs in longer blocks, whose accesses are taken for the runs' own; empty: the
        runs' own accesses.
    """
    fused = not programs[0].algorithm.stores_scores
    launches = [_as_kernels(each, fused=fused) for each in programs]
    rough = [_as_kernels(each, fused=fused) for each in coarser] or launches
    return [
        _work(own, [*zip(programs, coarser or programs, longer, strict=True)], places, row_shares,
              order, fused=fused)
        for own, longer in zip(zip(*launches, strict=True), zip(*rough, strict=True), strict=True)
    ]  # fmt: skip


class _KernelLaunch(NamedTuple):
    number: int
    launch: Launch
    exponentials: int  # for each pair
    operations: int  # float32 operations for each pair beside exponentials


def _as_kernels(program: TileProgram, *, fused: bool) -> list[_KernelLaunch]:
    """Return the launches of a run in tiles; where S is stored a mask is a launch of its own."""
    if fused:
        return [
            _KernelLaunch(number, launch, 1, FLOAT_OPERATIONS)
            for number, launch in enumerate(program.launches)
        ]
    w, found = program.workload, []
    for number, launch in enumerate(program.launches):
        if launch.whole_rows:
            tiled = _in_tiles(w, launch.name, launch.reads, launch.writes)
            found.append(_KernelLaunch(number, tiled, 1, FLOAT_OPERATIONS))
        else:
            found.append(_KernelLaunch(number, launch, 0, 0))
        if "S" in launch.writes and w.mask.hides:
            scores = {"S": launch.writes["S"]}
            found.append(_KernelLaunch(number, _in_tiles(w, "mask", scores, scores), 0, 1))
    return found


def _in_tiles(
    w: Workload, name: str, reads: Mapping[str, Cost], writes: Mapping[str, Cost]
) -> Launch:
    """Return a launch without products that goes through every tile."""
    every = Intervals.every(w.grid.Tr, w.grid.Tc)
    return Launch(
        name, (w.seqlen_q, w.rows), (w.seqlen_k, w.cols), every,
        by_rows=True, reads=reads, writes=writes, flops=Cost(),
    )  # fmt: skip


def _work(
    launches: Sequence[_KernelLaunch],
    runs: Sequence[tuple[TileProgram, TileProgram, _KernelLaunch]],
    places: int,
    row_shares: int,
    order: Order,
    *,
    fused: bool,
) -> LaunchWork:
    parts, counts, owners, shares = [], [], [], []
    lengths, blocks, flops, pairs, begin, requested = [], 0, 0, 0, 0, 0
    for kernel, (program, coarse, rough) in zip(launches, runs, strict=True):
        w, launch = coarse.workload, rough.launch
        visits = _visits(w, launch, row_shares)
        for lane, (at, tiles, sizes, write) in enumerate(_tiles(w, launch, visits)):
            place = (visits.thread_block[at] + blocks, visits.nth[at], np.full(len(at), lane))
            parts.append((*place, tiles + begin, sizes, np.full(len(at), write)))
        begin += len(TENSORS) * w.heads * _tiles_of(w)
        lengths.append(visits.counts)
        own, whose, parts_of_head = _blocks(kernel.launch, program.workload.heads, row_shares)
        counts.append(own)
        owners.append(whose + blocks)
        shares.append(parts_of_head)
        blocks += len(own)
        flops += int(kernel.launch.amounts(kernel.launch.flops, w.heads).sum())
        pairs += int(kernel.launch.amounts(Cost(pair=1), w.heads).sum())
        requested += _asked(kernel.launch, w.heads, row_shares)
    block, nth, lanes, *accesses = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    turn = turn_of(np.concatenate(counts), np.concatenate(owners), order)
    rank = np.argsort(turn)[block]
    steps = np.maximum(np.concatenate(lengths), 1)
    step = begins(steps[turn], places, order)[rank] + nth
    seen = np.argsort((step * blocks + rank) * _LANES + lanes, kind="stable")
    first, stream = launches[0], Accesses(*(array[seen] for array in accesses))
    return LaunchWork(
        first.launch.name, first.number, np.concatenate(counts), turn, tuple(shares), stream,
        requested, flops, pairs * first.exponentials, pairs * first.operations, fused,
    )  # fmt: skip


def _asked(launch: Launch, heads: int, row_shares: int) -> int:
    """Return the bytes that a launch requests: the sum over `_tiles`, without listing visits."""
    covered, sizes = _covered(launch), launch.inner_sizes
    again = int((np.maximum(covered - 1, 0) * sizes).sum())
    opened = _opened(launch, row_shares)
    total = 0
    for costs in (launch.reads, launch.writes):
        for name, cost in costs.items():
            both = name in launch.reads and name in launch.writes
            kept = replace(cost, start=cost.start * (not both), once=0)
            if launch.in_turn:  # each share loads and stores the outer block itself
                total += (kept.first + kept.last) * opened
                kept = replace(kept, first=0, last=0)
            if both and costs is launch.reads:
                total += kept.inner * again
                kept = replace(kept, inner=0)
            total += int(launch.amounts(kept, 1)[0].sum())
    return total * launch.times(heads)


def _covered(launch: Launch) -> I64:
    """Return how many outer blocks visit each inner block."""
    change = np.zeros(launch.inner_blocks + 1, np.int64)
    np.add.at(change, launch.visits.bounds[:, 0], 1)
    np.add.at(change, launch.visits.bounds[:, 1], -1)
    return np.cumsum(change)[:-1]


def _opened(launch: Launch, row_shares: int) -> int:
    """Return the rows, or keys, of outer blocks; a block counts in every share that visits it."""
    parts, visits = min(row_shares, launch.inner_blocks), launch.visits
    first, last = (
        share_of(each, launch.inner_blocks, parts)
        for each in (visits.bounds[:, 0], visits.bounds[:, 1] - 1)
    )
    outer = np.repeat(np.arange(len(visits)), np.diff(visits.offsets))
    follows = outer[1:] == outer[:-1]  # an interval may begin in the share where the last has ended
    shared = np.zeros(len(outer), np.int64)
    shared[1:] = follows & (first[1:] == last[:-1])
    sizes = np.array([launch.outer_size(block) for block in range(len(visits))])
    return int(((last - first + 1 - shared) * sizes[outer]).sum())


def _blocks(launch: Launch, heads: int, row_shares: int) -> tuple[I64, I64, int]:
    """Return each thread block's visits and owner, ascending, and the shares of a head's rows.

    An owner is a head in a split or share: first all heads of the first, then all of the next.
    """
    times, intervals = launch.times(heads), launch.visits
    if launch.in_turn:
        parts = min(row_shares, launch.inner_blocks)
        firsts = -(-np.arange(parts) * launch.inner_blocks // parts)
        counts = np.add.reduceat(_covered(launch), firsts)[:, None]
    else:
        parts = launch.splits
        counts = intervals.counts.reshape(-1, parts).T
    every = np.repeat(counts[:, None], times, axis=1)  # (parts, heads, blocks)
    owners = np.repeat(np.arange(parts * times), counts.shape[1])
    return every.ravel(), owners, parts if launch.in_turn else 1


def _outer(launch: Launch) -> I64:
    """Return the outer block of each visit of a head."""
    return np.repeat(np.arange(len(launch.visits)), launch.visits.counts)


def _inner(launch: Launch) -> I64:
    """Return the inner block of each visit of a head."""
    bounds = launch.visits.bounds
    lengths = bounds[:, 1] - bounds[:, 0]
    return np.arange(int(lengths.sum())) + np.repeat(bounds[:, 0] - sums(lengths)[:-1], lengths)


def _visits(w: Workload, launch: Launch, row_shares: int) -> _Visits:
    """Return all visits, thread block by thread block."""
    intervals, heads = launch.visits, launch.times(w.heads)
    outer, inner = _outer(launch), _inner(launch)
    if launch.in_turn:  # a thread block has a head, or a share of its row blocks
        parts = own = min(row_shares, launch.inner_blocks)
        place = share_of(inner, launch.inner_blocks, own)
    else:  # all row blocks of one split, then of the next
        parts, own = launch.splits, len(intervals)
        place = outer % parts * (own // parts) + outer // parts
    counts = np.bincount(place, minlength=own)
    order = np.lexsort((inner, outer, place))
    outer, inner, place = outer[order], inner[order], place[order]
    nth = np.arange(len(outer)) - sums(counts)[place]
    change = np.ones(len(outer) + 1, bool)
    change[1:-1] = (outer[1:] != outer[:-1]) | (place[1:] != place[:-1])
    each = own // parts  # thread blocks of a head and a part
    above, within = np.divmod(place, each)
    grid = (above * heads + np.arange(heads)[:, None]) * each + within
    return _Visits(
        np.repeat(np.arange(heads), len(outer)),
        np.tile(outer, heads),
        np.tile(inner, heads),
        grid.ravel(),
        np.tile(nth, heads),
        np.tile(counts.reshape(parts, 1, each), (1, heads, 1)).ravel(),
        np.tile(change[:-1], heads),
        np.tile(change[1:], heads),
    )


def share_of(row_block: Index, row_blocks: int, shares: int) -> Index:
    """Return the share of a head's row blocks that has a row block, or each of several."""
    return row_block * shares // row_blocks


def _tiles_of(w: Workload) -> int:
    """Return a number above the count of tiles of one head's matrix, whatever their size."""
    return (w.seqlen_q + 1) * (w.seqlen_k + 1)


def _tiles(w: Workload, launch: Launch, v: _Visits) -> Iterator[tuple[I64, I64, I64, bool]]:
    """Yield accesses of each tensor: visits, their tiles, their bytes, and whether they write.

    If a launch stores starting numbers and loads them again, they are made on chip here, as in
    kernels. Sink logits, a number for each row block, are left out.
    """
    sizes = [launch.outer_size(block) for block in range(len(launch.visits) // launch.splits)]
    rows, keys = np.array(sizes)[v.outer // launch.splits], launch.inner_sizes[v.inner]
    everywhere = np.arange(len(v.head))
    first_outer = np.full(launch.inner_blocks, len(sizes))
    np.minimum.at(first_outer, v.inner, v.outer)
    last_outer = np.full(launch.inner_blocks, -1)
    np.maximum.at(last_outer, v.inner, v.outer)
    again, opens = v.outer > first_outer[v.inner], np.diff(v.head, prepend=-1) > 0
    ends = v.inner, keys, np.flatnonzero(v.outer == last_outer[v.inner])
    if launch.by_rows:
        ends = v.outer // launch.splits, rows, np.flatnonzero(v.last)
    kv_head, of_each = np.array(w.kv_head_of)[v.head], _tiles_of(w)
    for write, costs in ((False, launch.reads), (True, launch.writes)):
        for name, cost in costs.items():
            spec = TENSORS[name]
            owner = kv_head if spec.of_kv_heads else v.head * (not spec.of_all)
            tensor = (_NUMBERS[name] * w.heads + owner) * of_each
            block = v.outer if "split" in spec.axes else v.outer // launch.splits
            starts, loaded = cost.start, everywhere
            if name in launch.reads and name in launch.writes:
                starts, loaded = 0, np.flatnonzero(again)
            for amount, tile, size, at in (
                (starts, of_each - 1, 1, np.flatnonzero(opens)),
                (cost.first, block, rows, np.flatnonzero(v.first)),
                (cost.inner, v.inner, keys, everywhere if write else loaded),
                (cost.page, v.inner, -(-keys // launch.page), everywhere),
                (cost.pair, v.outer * launch.inner_blocks + v.inner, rows * keys, everywhere),
                (cost.last, block, rows, np.flatnonzero(v.last)),
                (cost.final, *ends),
            ):
                if amount:
                    bytes_each = np.broadcast_to(amount * size, v.head.shape)
                    yield at, (tensor + tile)[at], bytes_each[at], write
