"""The L2 cache of a GPU by model: least recently used, write-back, with tiles as its lines."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from simulator.problem.intervals import I64, Bools


class DramTraffic(NamedTuple):
    """Bytes between L2 and DRAM."""

    read: int
    written: int


@dataclass(frozen=True, eq=False)
class Accesses:
    """Accesses of tiles, (accesses,) each, in the order in which they reach the cache."""

    tiles: I64  # which tile
    sizes: I64  # its bytes, the same in all accesses of a tile
    writes: Bools  # whether the tile is written, whole

    @property
    def bytes(self) -> int:
        """Requested bytes."""
        return int(self.sizes.sum())


def dram_bytes(launches: Sequence[Accesses], capacity: int) -> list[DramTraffic]:
    """Return the DRAM traffic of launches that follow each other through one cache.

    A read that misses reads its tile from DRAM; a write covers its whole tile and reads nothing.
    After each access the least recently used tiles leave until the rest fits. A written tile goes
    to DRAM when it leaves, or after the last launch, and counts for that launch.

    capacity: bytes of the cache.
    """
    held: OrderedDict[int, int] = OrderedDict()  # bytes of each tile, the oldest first
    unwritten: set[int] = set()  # tiles that DRAM does not have yet
    recent, leave = held.move_to_end, held.popitem
    free, found = capacity, []
    for launch in launches:
        read = written = 0
        for tile, size, write in zip(
            launch.tiles.tolist(), launch.sizes.tolist(), launch.writes.tolist(), strict=True
        ):
            if tile in held:
                recent(tile)
            else:
                held[tile] = size
                free -= size
                if not write:
                    read += size
                while free < 0:
                    oldest, room = leave(False)
                    free += room
                    if oldest in unwritten:
                        unwritten.remove(oldest)
                        written += room
            if write and size <= capacity:
                unwritten.add(tile)
            elif write:
                written += size
        found.append(DramTraffic(read, written))
    rest = sum(held[tile] for tile in unwritten)
    found[-1] = found[-1]._replace(written=found[-1].written + rest)
    return found
