"""The script that Tilescope writes beside a tile agrees with it, and finds a wrong number."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simulator import Trace
from simulator.base.errors import InputError
from simulator.code.tile_script import save_tile, tile_arrays, tile_script
from simulator.problem.scenario import with_values
from tests.helpers.refused import refused
from tests.helpers.runs import scenario, trace_of

SHAPES: dict[str, dict[str, Any]] = {
    "plain": {"nq": 8, "d": 4},
    "tails": {"nq": 10, "nk": 7, "d": 5, "dv": 3, "mask": {"causal": True}},
    "blind": {"nq": 9, "nk": 5, "rows": 4, "cols": 3, "mask": {"causal": True}},
    "window": {"nq": 16, "d": 8, "mask": {"causal": True, "window": 5, "sinks": 2}},
    "changed": {"nq": 9, "mask": {"causal": True}, "scores": {"softcap": 2.0, "alibi": True}},
    "sinks": {"nq": 9, "nk": 5, "heads": 2, "kv_heads": 1, "mask": {"causal": True},
              "scores": {"sink_logits": [1.0, -2.0]}},
    "half": {"nq": 9, "heads": 4, "kv_heads": 2, "dtype": "float16", "temperature": 0.5},
}  # fmt: skip
PLANTED = {
    ("flash2", 0): ("s", "m", "alpha", "p", "l", "o"),
    ("flash1", 0): ("s", "m_tile", "p", "l_tile", "m", "beta", "l", "o"),
    ("naive", 0): ("s",),
    ("naive", 1): ("s", "m", "p", "l", "p_out"),
    ("naive", 2): ("p", "o"),
}


def run(script: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-I", str(script)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def visits(trace: Trace) -> list[int]:
    """Return a few visits: the first, a middle and the last one of each launch."""
    launches: dict[int, list[int]] = {}
    for n in range(len(trace)):
        launches.setdefault(trace.program.visit(n).launch, []).append(n)
    return sorted({n for own in launches.values() for n in (own[0], own[len(own) // 2], own[-1])})


@pytest.mark.long
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("algorithm", ["flash2", "flash1", "naive"])
def test_the_script_agrees(tmp_path: Path, algorithm: str, shape: str) -> None:
    trace = trace_of(scenario(algorithm, **SHAPES[shape]))
    launches = set()
    for visit in visits(trace):
        now = trace.snapshot(visit, 0)
        launches.add(now.visit.launch)
        arrays, script = save_tile(now, tmp_path / f"tile{visit}.npz")
        result = run(script)
        assert result.returncode == 0, result.stderr
        assert "off by" in result.stdout
        with np.load(arrays) as saved:
            assert saved["indices"].tolist()[2:4] == [now.visit.i, now.visit.j]
            np.testing.assert_array_equal(saved["q"], now.q[list(now.visit.rows)])
            np.testing.assert_array_equal(saved["m"], now.tile.m)
            assert f'algorithm = "{algorithm}"' in str(saved["scenario"])
    assert launches >= ({0, 1, 2} if algorithm == "naive" else {0})


@pytest.mark.long
@pytest.mark.parametrize(("algorithm", "launch"), PLANTED)
def test_the_script_finds_a_planted_number(tmp_path: Path, algorithm: str, launch: int) -> None:
    trace = trace_of(scenario(algorithm, nq=10, d=4))
    visit = next(
        n for n in range(2, len(trace)) if trace.program.visit(n).launch == launch
        and trace.program.visit(n).i == 1
    )  # fmt: skip
    now = trace.snapshot(visit)
    for name in PLANTED[algorithm, launch]:
        path, script = save_tile(now, tmp_path / f"{name}.npz")
        with np.load(path) as saved:
            arrays = {key: saved[key].copy() for key in saved.files}
        arrays[name].flat[arrays[name].size // 2] += 1e-3
        np.savez(path, **arrays)
        result = run(script)
        assert result.returncode != 0, name
        assert f"AssertionError: {name}: off by" in result.stderr


def test_a_number_that_is_not_one_is_found(tmp_path: Path) -> None:
    path, script = save_tile(trace_of(scenario(nq=8)).snapshot(1), tmp_path / "t.npz")
    arrays = dict(np.load(path))
    arrays["o"][0, 0] = np.nan
    np.savez(path, **arrays)
    assert run(script).returncode != 0


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    now = trace_of(scenario(nq=8)).snapshot(0)
    assert "ends in .npz" in refused(save_tile, now, tmp_path / "t.txt")
    assert refused(save_tile, now, tmp_path / "missing" / "t.npz")
    assert list(tmp_path.iterdir()) == []


def test_arrays_are_those_of_the_engine() -> None:
    now = trace_of(scenario("flash1", nq=9, nk=7)).snapshot(2)
    arrays = tile_arrays(now)
    for name in ("s", "p", "m_prev", "m", "l_prev", "l", "alpha", "beta", "o_prev", "o"):
        np.testing.assert_array_equal(arrays[name], getattr(now.tile, name))
    np.testing.assert_array_equal(arrays["mask"], now.tile.seen)
    np.testing.assert_array_equal(arrays["v"], now.v[list(now.visit.cols)])


def test_a_run_with_a_fault_has_no_script(tmp_path: Path) -> None:
    chosen = scenario("flash2", nq=8, d=4)
    faulty = with_values(chosen, {"faults": {"forget_alpha": True}})
    target = tmp_path / "tile.npz"
    assert "without faults" in refused(save_tile, trace_of(faulty).snapshot(0), target)
    assert not target.exists()


@pytest.mark.parametrize(
    ("algorithm", "visit", "told"),
    [
        ("naive", 0, ["Naive attention, launch 1 (scores), head 3, tile (0, 0):",
         "query rows 0 to 3, keys 0 to 3.", "Dao et al. 2022, Algorithm 0, line 1."]),
        ("naive", 15, ["Naive attention, launch 2 (softmax), head 1, row block 0:",
         "query rows 0 to 3, keys 0 to 6.", "Dao et al. 2022, Algorithm 0, line 2."]),
        ("flash2", 11, ["FlashAttention-2, head 1, tile (2, 1):", "query rows 8 to 9, keys 4 to 6.",
         "Dao 2023, Algorithm 1, line 8.", "Dao 2023, Algorithm 1, line 9.",
         "Dao 2023, Algorithm 1, line 10.", "Dao 2023, Algorithm 1, lines 12-13."]),
    ],
)  # fmt: skip
def test_the_script_says_what_it_recomputes(algorithm: str, visit: int, told: list[str]) -> None:
    trace = trace_of(scenario(algorithm, nq=10, nk=7, heads=4, kv_heads=2, head=[3, 1]))
    lines = tile_script(trace.snapshot(visit), "t.npz", "t.py").splitlines()
    end = 'Numbers recorded by the engine "numpy"; needs NumPy only:  python t.py'
    ran = "The statements are those of the ops that Tilescope runs itself."
    assert lines[2 : 5 + len(told)] == [*told, ran, end, '"""']
    # Nothing is read that it does not need.
    numbers = {0: "q k", 15: "q k", 11: "q k m_prev l_prev o_prev v"}[visit]
    found = lines[lines.index("found = {") + 1 :]
    read = [line.split('"')[3] for line in found[: found.index("}")]]
    assert read == numbers.split()


def test_indices_of_a_tile_name_its_head_block_and_first_row_and_key() -> None:
    trace = trace_of(scenario("flash2", nq=10, nk=7, heads=4, kv_heads=2, head=[3, 1]))
    now = trace.snapshot(11)
    arrays = tile_arrays(now)
    assert arrays["indices"].tolist() == [1, 0, 2, 1, 8, 4]
    assert (arrays["keys"], arrays["scale"]) == (7, 0.5)
    assert arrays["largest_v"] == np.abs(now.v).max()
    assert arrays["largest_qk"] == pytest.approx((np.abs(now.q[8:]) @ np.abs(now.k).T).max())


@pytest.mark.parametrize("causal", [True, False])
def test_a_run_without_a_softmax_is_refused(tmp_path: Path, causal: bool) -> None:
    trace = trace_of(scenario("linear", nq=8, mask={"causal": causal}))
    for visit in range(len(trace)):
        with pytest.raises(InputError, match="a run with a softmax"):
            save_tile(trace.snapshot(visit, 0), tmp_path / "tile.npz")
    assert list(tmp_path.iterdir()) == []
