"""The L2 cache beside its definition: a list, from the tile used longest ago to the newest."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from simulator.timing.l2_cache import Accesses, DramTraffic, dram_bytes

LAUNCHES = st.lists(
    st.lists(st.tuples(st.integers(0, 11), st.booleans()), max_size=60), min_size=1, max_size=3
)


def by_list(
    launches: list[list[tuple[int, bool]]], sizes: list[int], capacity: int
) -> list[DramTraffic]:
    held: list[int] = []
    unwritten: set[int] = set()
    found = []
    for launch in launches:
        read = written = 0
        for tile, write in launch:
            if tile in held:
                held.remove(tile)
            elif not write:
                read += sizes[tile]
            held.append(tile)
            if write:
                unwritten.add(tile)
            while sum(sizes[each] for each in held) > capacity:
                oldest = held.pop(0)
                written += sizes[oldest] * (oldest in unwritten)
                unwritten.discard(oldest)
        found.append(DramTraffic(read, written))
    rest = sum(sizes[tile] for tile in unwritten)
    return [*found[:-1], DramTraffic(found[-1].read, found[-1].written + rest)]


@given(LAUNCHES, st.lists(st.integers(1, 20), min_size=12, max_size=12), st.integers(1, 140))
def test_it_is_the_definition(
    launches: list[list[tuple[int, bool]]], sizes: list[int], capacity: int
) -> None:
    streams = []
    for launch in launches:
        tiles = np.array([tile for tile, _ in launch], np.int64)
        size = np.array(sizes, np.int64)[tiles]
        streams.append(Accesses(tiles, size, np.array([write for _, write in launch], bool)))
    found = dram_bytes(streams, capacity)
    assert found == by_list(launches, sizes, capacity)
    requested = sum(each.bytes for each in streams)
    first = {tile: write for launch in reversed(launches) for tile, write in reversed(launch)}
    once = sum(sizes[tile] for tile, write in first.items() if not write)
    written = {tile for launch in launches for tile, write in launch if write}
    once += sum(sizes[tile] for tile in written)
    assert once <= sum(map(sum, found)) <= requested
