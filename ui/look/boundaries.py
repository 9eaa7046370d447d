"""The visits at which launches, heads and outer blocks of a run begin, as marks on its length."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from simulator.program.partial_visits import partial_before
from simulator.program.tile_program import TileProgram
from ui.look.names import head_words


@dataclass(frozen=True, slots=True)
class Boundary:
    """A visit at which a launch, a head or a block begins."""

    visit: int  # its number
    label: str  # its name, such as ``i = 2``
    strong: bool  # whether it is a launch or head, not a row or column block


@lru_cache(maxsize=8)
def boundaries(program: TileProgram, most: int) -> tuple[Boundary, ...]:
    """Return about `most` starts of launches and heads, or else of outer blocks, evenly picked."""
    w, launches = program.workload, program.launches
    out: list[Boundary] = []
    heads = len(launches) * w.heads
    stride = _stride(w.heads, most // len(launches))
    start = 0
    for launch, size in zip(launches, program.sizes, strict=True):
        rounds = launch.rounds(w.heads)
        shared = launch.of_keys or len(rounds) < w.heads  # a round belongs to a KV head
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
    """Return the smallest power of two with at most `most` multiples below `count`."""
    stride = 1
    while count > stride * max(most, 1):
        stride *= 2
    return stride
