"""A block mask of a tenth of the tiles at N = 131 072: everything is counted without a list."""

from dataclasses import replace

import numpy as np
import pytest

from simulator.problem.masks import BlockMask
from simulator.problem.scenario import parse_scenario
from simulator.problem.workload import Workload, resolve
from simulator.program.algorithms import tile_program
from tests.helpers.scarce import peak_memory

N, BLOCK = 131_072, 128
SIDE = N // BLOCK
TENTH = SIDE // 10


@pytest.fixture(scope="module")
def table() -> np.ndarray:
    rng = np.random.default_rng(0)
    out = np.zeros((SIDE, SIDE), dtype=bool)
    for row in out:
        row[rng.permutation(SIDE)[:TENTH]] = True
    return out


def workload(table: np.ndarray, rows: int, cols: int) -> Workload:
    said = {
        "attention": {"heads": 2, "seqlen_q": N, "head_dim": 64, "dtype": "float16"},
        "tiling": {"rows": rows, "cols": cols},
    }
    w = resolve(parse_scenario(said))
    return replace(w, mask=replace(w.mask, blocks=BlockMask(BLOCK, table.copy())))


def touched(table: np.ndarray, tile: int) -> np.ndarray:
    """Return which tiles meet a visible block, from the blocks of their first and last places."""
    first = np.arange(0, N, tile)
    last = np.minimum(first + tile, N) - 1
    down = np.maximum(table[first // BLOCK], table[last // BLOCK])
    return np.maximum(down[:, first // BLOCK], down[:, last // BLOCK])


@pytest.mark.parametrize("tile", [128, 64, 96])
def test_visits_of_a_long_block_mask_are_arithmetic(table: np.ndarray, tile: int) -> None:
    w = workload(table, tile, tile)
    seen = touched(table, tile)
    with peak_memory() as peak:
        program = tile_program(w)
        total = program.counters(len(program))
        assert peak() < 64 * 2**20
    assert len(program) == 2 * seen.sum()
    # flash2 reads K and V of each visited tile; the last of 96 is shorter.
    widths = np.minimum(np.arange(0, N, tile) + tile, N) - np.arange(0, N, tile)
    assert total.read["K"] == 2 * 2 * 64 * int((seen * widths).sum())
    i, j = (int(n) for n in np.argwhere(seen)[12_345])
    visit = program.visit(program.index(1, i, j))
    assert (visit.head, visit.i, visit.j) == (1, i, j)
