"""The visits at which launches, heads and outer blocks of a run begin, as marks on its length."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from simulator.program.tile_program import TileProgram
from ui.look.names import head_words


def partial_before(program: TileProgram) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the visits at which outer blocks begin, and the partial ones before each."""
    grid = program.workload.grid
    full_of_column = grid.full_columns.visitors(grid.Tc)
    starts, parts = [], []
    heads = program.workload.heads
    for launch in program.launches:
        visits = launch.visits.counts
        if not program.algorithm.softmax:  # a chunk is partial unless it is one key
            blocks = np.arange(grid.Tr)
            own = 1 - grid.full_columns.contains(blocks, blocks).astype(np.int64)
            partial = own if launch.carries else np.zeros_like(visits)
        elif launch.whole_rows:
            partial = (grid.full_columns.counts < grid.Tc).astype(np.int64)
        else:
            full_of_row = grid.full_columns.dealt(launch.splits, launch.run).counts
            partial = visits - (full_of_row if launch.by_rows else full_of_column)
        starts.append(launch.along(visits, heads))
        parts.append(launch.along(partial, heads))
    at = np.concatenate([[0], np.cumsum(np.concatenate(starts))]).astype(np.float64)
    before = np.concatenate([[0], np.cumsum(np.concatenate(parts))]).astype(np.float64)
    return at, before


@dataclass(frozen=True, slots=True)
class Boundary:
    """A place in the strip where something begins."""

    visit: int  # the first visit of it
    label: str  # what begins
    strong: bool  # whether it is a launch or head, not a row or column block


@lru_cache(maxsize=8)
def boundaries(program: TileProgram, most: int) -> tuple[Boundary, ...]:
    """Return about `most` launches, heads and blocks of the outer loop at most, evenly picked."""
    w, launches = program.workload, program.launches
    out: list[Boundary] = []
    heads = len(launches) * w.heads
    stride = _stride(w.heads, most // len(launches))
    start = 0
    for launch, size in zip(launches, program.sizes, strict=True):
        rounds = launch.rounds(w.heads)
        shared = launch.of_keys or len(rounds) < w.heads  # a round is of a KV head
        for n in range(0, len(rounds), stride):
            words = [launch.name] if len(launches) > 1 else []
            if w.heads > 1:
                words.append(f"KV head {n}" if shared else head_words(w, n))
            out.append(Boundary(start + rounds[n], " ".join(words), heads > 1))
        start += size
    if heads == 1:
        at, _ = partial_before(program)
        letter = "i" if launches[0].by_rows else "j"
        step = _stride(len(at) - 1, most)
        out = [Boundary(int(at[n]), f"{letter} = {n}", False) for n in range(0, len(at) - 1, step)]
    return tuple(out)


def _stride(count: int, most: int) -> int:
    """Return the smallest power of two of which at most `most` multiples are below `count`."""
    stride = 1
    while count > stride * max(most, 1):
        stride *= 2
    return stride
