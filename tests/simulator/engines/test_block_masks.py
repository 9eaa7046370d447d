"""Block masks with everything that a score and a mask can have beside them, in every algorithm."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator import InputError
from simulator.engines.reference import reference_rows
from simulator.problem.scenario import Scenario, parse_scenario, with_values
from simulator.problem.workload import resolve
from simulator.run.cosimulation import verify
from tests.helpers.runs import fitting, masks, pairs_of, score_tables, textbook, trace_of

SOFTMAX = ("naive", "flash1", "flash2", "split-kv")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("blocks")


@st.composite
def problems(draw: st.DrawFn) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Draw the tensors of a file and the tables of a scenario that reads it."""
    kv_heads = draw(st.integers(1, 2))
    heads = kv_heads * draw(st.integers(1, 2))
    nq, nk, block = (draw(st.integers(1, most)) for most in (18, 18, 7))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    shapes = {"q": (heads, nq, 4), "k": (kv_heads, nk, 4), "v": (kv_heads, nk, 3)}
    tensors = {name: rng.standard_normal(shape, np.float32) for name, shape in shapes.items()}
    shape = -(-nq // block), -(-nk // block)
    tensors["block_mask"] = rng.random(shape) < draw(st.sampled_from([0.0, 0.3, 0.7]))
    mask = draw(masks(18))
    if mask.get("documents"):
        mask["documents"] = list(fitting(mask["documents"], nk))
    tables = {
        "attention": {"algorithm": draw(st.sampled_from(SOFTMAX))},
        "mask": {**mask, "block": block},
        "scores": draw(score_tables(heads)),
        "tiling": {"rows": draw(st.integers(1, 8)), "cols": draw(st.integers(1, 8))},
    }
    return tensors, tables


def written(folder: Path, tensors: dict[str, np.ndarray], tables: dict[str, Any]) -> Scenario:
    np.savez(folder / "in.npz", **tensors)
    return parse_scenario({**tables, "input": {"source": "file", "path": str(folder / "in.npz")}})


@given(drawn=problems())
def test_engine_interpreter_and_reference_agree_and_tiles_are_counted(
    drawn: tuple[dict[str, np.ndarray], dict[str, Any]], folder: Path
) -> None:
    scenario = written(folder, *drawn)
    if not usable(scenario):
        return
    trace = trace_of(scenario)
    assert verify(trace).difference is None
    single = resolve(with_values(scenario, {"attention": {"algorithm": "flash2"}}))
    inputs = trace.single_heads[1]
    output = trace.workload.unpacked(trace.output)
    for head in range(single.heads):
        exact = textbook(single, inputs, head)[0]
        np.testing.assert_allclose(output[head], exact, rtol=1e-4, atol=1e-5)
        rows = range(single.seqlen_q)
        np.testing.assert_allclose(
            reference_rows(single, inputs, head, rows)[0], exact, rtol=1e-9, atol=1e-12
        )
    w = trace.workload
    pairs = np.tile(pairs_of(single).matrix(), (w.group, 1))
    kinds = [
        [(tile.any(), tile.all()) for j in range(w.grid.Tc) if (tile := at(pairs, w, i, j)).size]
        for i in range(w.grid.Tr)
    ]
    seen, full = (np.array(kinds)[..., n].sum() for n in (0, 1))
    assert int(w.grid.visited_columns.sums[-1]) == seen
    assert w.grid.full_tiles == full
    tiles = trace.summary()["tiles"]
    assert tiles["full"] == full * w.heads
    assert tiles["skipped"] == (w.grid.Tr * w.grid.Tc - seen) * w.heads


def usable(scenario: Scenario) -> bool:
    """Return whether a drawn mask leaves any pair visible; others are refused."""
    try:
        return resolve(scenario) is not None
    except InputError:
        return False


def at(pairs: np.ndarray, w: Any, i: int, j: int) -> np.ndarray:
    rows, cols = w.grid.row_range(i), w.grid.col_range(j)
    return pairs[rows.start : rows.stop, cols.start : cols.stop]
