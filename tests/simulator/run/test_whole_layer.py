"""The stages of a whole layer: shapes, costs and errors, and which rows are done at a cursor."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

from simulator.base.assets import SCENARIOS
from simulator.problem.scenario import load_scenario, parse_scenario, with_values
from simulator.problem.workload import resolve
from simulator.run.trace import Trace, simulate
from simulator.run.whole_layer import compute_layer, finished_rows, is_short, known_layer
from tests.helpers.runs import scenario

HEADS, KV_HEADS, ROWS, DEPTH, VALUE, WIDE = 4, 2, 7, 3, 2, 5


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a layer's file in which no two sizes are equal."""
    rng, path = np.random.default_rng(1), tmp_path_factory.mktemp("layer") / "a.safetensors"
    shapes = {
        "x": (ROWS, WIDE), "wq": (WIDE, HEADS * DEPTH), "wk": (WIDE, KV_HEADS * DEPTH),
        "wv": (WIDE, KV_HEADS * VALUE), "wo": (HEADS * VALUE, WIDE), "bk": (KV_HEADS * DEPTH,),
        "bo": (WIDE,),
    }  # fmt: skip
    made = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    save_file(made, path)
    return path


def run(file: Path, algorithm: str = "flash2", **tables: Any) -> Trace:
    tables = {
        "attention": {"heads": HEADS, "algorithm": algorithm},
        "tiling": {"rows": 3, "cols": 2},
        "input": {"source": "layer", "path": str(file)},
        "mask": {"causal": True},
        **tables,
    }
    return simulate(parse_scenario(tables))


@pytest.mark.parametrize("algorithm", ["naive", "flash1", "flash2", "split-kv"])
def test_stages_lead_from_x_to_y(file: Path, algorithm: str) -> None:
    trace = run(file, algorithm)
    layer = compute_layer(trace)
    summary, arrays = trace.run(keep_arrays=True)
    assert [stage.name for stage in layer.stages] == ["q", "k", "v", "o", "concat", "y"]
    assert [stage.takes for stage in layer.stages] == [
        ("x", "wq"), ("x", "wk", "bk"), ("x", "wv"), ("q", "k", "v"), ("o",),
        ("concat", "wo", "bo"),
    ]  # fmt: skip
    known = set(layer.shapes)
    assert all({stage.name, *stage.takes} <= known for stage in layer.stages)
    assert layer.shapes["q"] == (HEADS, ROWS, DEPTH)
    assert layer.shapes["v"] == (KV_HEADS, ROWS, VALUE)
    assert layer.shapes["concat"] == (ROWS, HEADS * VALUE)
    assert layer.shapes["y"] == (ROWS, WIDE)
    for name in ("q", "k", "v", "o", "y"):
        assert np.array_equal(layer.arrays[name], arrays[name]), name
    for name, found in layer.statistics.items():
        assert np.array_equal(found, arrays[name]), name
    assert layer.heads == HEADS
    assert layer.group == HEADS // KV_HEADS
    for head in range(HEADS):
        columns = slice(head * VALUE, (head + 1) * VALUE)
        assert np.array_equal(layer.arrays["concat"][:, columns], arrays["o"][head])
    costs = {stage.name: stage.flops for stage in layer.stages}
    assert costs["o"] == summary["matmul_flops"]
    assert {name: costs[name] for name in "qkvy"} == {
        name: summary["layer"]["matmul_flops"][name] for name in "qkvy"
    }
    assert costs["q"] == 2 * ROWS * WIDE * HEADS * DEPTH
    assert costs["concat"] == 0
    hbm = summary["hbm"]
    assert layer.stage("o").bytes == hbm["read_bytes"] + hbm["write_bytes"]
    assert [stage.bytes for stage in layer.stages if stage.name != "o"] == [None] * 5
    assert layer.error == pytest.approx(summary["layer"]["max_abs_error"], rel=1e-6)
    assert layer.error > 0
    assert layer.stage("o").error == pytest.approx(summary["max_abs_error"], rel=1e-6)
    assert all(0 <= stage.error < 2e-6 for stage in layer.stages)
    assert layer.stage("concat").error == 0


def test_an_error_of_a_stage_is_its_own(file: Path) -> None:
    wrong = compute_layer(run(file, faults={"drop_previous_maximum": True, "forget_alpha": True}))
    assert wrong.stage("o").error > 1e-3
    assert wrong.error > 1e-3
    assert all(stage.error < 2e-6 for stage in wrong.stages if stage.name != "o")


@pytest.mark.long
@given(st.integers(0, 10**6), st.sampled_from(["float32", "float16", "bfloat16"]))
def test_what_heads_give_is_y_without_its_bias(
    file: Path, tmp_path_factory: pytest.TempPathFactory, seed: int, dtype: str
) -> None:
    from safetensors.numpy import load_file

    rng, path = np.random.default_rng(seed), tmp_path_factory.mktemp("drawn") / "a.safetensors"
    drawn = {
        name: rng.standard_normal(values.shape).astype(np.float32)
        for name, values in load_file(file).items()
    }
    save_file(drawn, path)
    layer = compute_layer(run(path, attention={"heads": HEADS, "dtype": dtype}))
    assert layer.shares.shape == (HEADS, ROWS, WIDE)
    flat = layer.arrays["concat"].astype(float)
    terms = flat[:, :, None] * drawn["wo"].astype(float)
    by_head = terms.reshape(ROWS, HEADS, VALUE, WIDE).sum(axis=2).transpose(1, 0, 2)
    size = np.abs(terms).sum(axis=1).max()
    np.testing.assert_allclose(layer.shares, by_head, atol=1e-6 * size)
    whole = layer.shares.astype(float).sum(axis=0) + layer.bias
    np.testing.assert_allclose(whole, layer.arrays["y"], atol=1e-6 * (size + 1))


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("algorithm", ["naive", "flash1", "flash2", "split-kv"])
def test_rows_are_finished_once_nothing_more_is_stored_in_them(file: Path, algorithm: str) -> None:
    trace = run(file, algorithm)
    w = trace.workload
    cursors = [
        (visit, op) for visit in range(len(trace)) for op in range(len(trace.program.ops(visit)))
    ]
    last: dict[tuple[int, int], int] = {}
    for at, (visit, op) in enumerate(cursors):
        done = trace.program.ops(visit)[op]
        head = trace.program.visit(visit).head
        if done.stores:
            last |= {
                w.single(head, row): at
                for move in done.moves if move.tensor == "O" for row in move.rows
            }  # fmt: skip
    assert set(last) == {(head, row) for head in range(HEADS) for row in range(ROWS)}
    for at, (visit, op) in enumerate(cursors):
        found = finished_rows(trace.snapshot(visit, op))
        wanted = [[last[head, row] <= at for row in range(ROWS)] for head in range(HEADS)]
        assert found.tolist() == wanted, (visit, op)
    assert found.all()


def test_a_run_without_a_layer_or_without_all_its_heads_has_none(file: Path) -> None:
    plain = simulate(scenario(nq=4))
    assert plain.whole_layer is None
    assert known_layer(plain) is None
    some = {"source": "layer", "path": str(file), "head": [0, 2]}
    assert known_layer(run(file, input=some)) is None


def test_a_layer_is_kept_and_a_long_one_is_not_computed_unasked(file: Path) -> None:
    trace = run(file)
    assert known_layer(trace) is known_layer(trace) is not None
    rows = 2**10
    rng, path = np.random.default_rng(0), file.parent / "long.safetensors"
    made = {"x": (rows, 16), "wq": (16, 32), "wk": (16, 32), "wv": (16, 32), "wo": (32, 16)}
    save_file({n: rng.standard_normal(s).astype(np.float32) for n, s in made.items()}, path)
    long = run(path, tiling={"rows": 128, "cols": 128}, attention={"heads": 2})
    assert not is_short(long.workload)
    assert known_layer(long) is None
    told: list[float] = []
    assert compute_layer(long, told.append).error < 1e-3
    blocks = 2 * rows // 128
    assert told == [*(0.9 * n / blocks for n in range(1, blocks + 1)), 1.0]
    assert known_layer(long) is not None


def test_a_view_waits_for_few_multiplications_in_few_tiles() -> None:
    for heads, rows, short in ((2, 2, True), (4, 2, False), (1, 1, True), (2, 1, False)):
        sizes = {"nq": 64, "d": 4, "heads": heads, "rows": rows, "cols": 2}
        assert is_short(resolve(scenario("flash2", **sizes))) is short
    for nk, short in ((2**18, True), (2**18 + 1, False)):
        long = scenario("flash2", nq=8, nk=nk, d=8, rows=8, cols=2**10)
        assert is_short(resolve(long)) is short


def test_the_demo_is_the_worked_example() -> None:
    case = Path(__file__).parents[2] / "conformance"
    demo = load_scenario(SCENARIOS / "layer.toml")
    stored = (SCENARIOS / "layer.safetensors").read_bytes()
    assert stored == (case / "layer-essay.safetensors").read_bytes()
    layer = known_layer(simulate(demo))
    with np.load(case / "layer-essay.expected.npz") as wanted:
        for name, values in wanted.items():
            found = layer.statistics[name] if name in layer.statistics else layer.arrays[name]
            np.testing.assert_allclose(found, values, atol=1e-6, err_msg=name)
    assert known_layer(simulate(with_values(demo, {"attention": {"algorithm": "naive"}})))
