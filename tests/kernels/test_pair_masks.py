"""Kernels whose input file says of each pair whether it is visible, for all heads or for each."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simulator.problem.facts import PACKED
from simulator.problem.scenario import Scenario
from simulator.program.algorithms import ALGORITHMS
from simulator.run.cosimulation import verify
from tests.helpers.written_files import file_scenario, numbers, write_safetensors
from tests.kernels.helpers import SCHEDULES, faults, host_trace, needs_compiler, workload_of

pytestmark = needs_compiler

SOFTMAX = tuple(name for name, each in ALGORITHMS.items() if each.softmax)
NQ, NK = 21, 26
SIZES = {"q": (4, NQ, 8), "k": (2, NK, 8), "v": (2, NK, 4)}


def scenario_of(
    folder: Path, algorithm: str, beside: dict[str, np.ndarray], **more: Any
) -> Scenario:
    tensors, said = numbers(**SIZES), {"algorithm": algorithm, "heads": 4}
    if PACKED.get(algorithm) == "latent":
        tensors = {"q": tensors["q"], "latent": tensors["k"][0]}
        said |= {"latent_dim": 4, "rope_dim": 4}
    path = write_safetensors(folder / f"{len(more)}.safetensors", {**tensors, **beside})
    return file_scenario(path, attention=said, tiling={"rows": 8, "cols": 4}, **more)


@pytest.mark.long
@pytest.mark.parametrize("algorithm", SOFTMAX)
def test_a_mask_of_the_file_is_a_block_mask_of_one(algorithm: str, tmp_path: Path) -> None:
    """Same O to the bit, same counters of the kernels."""
    seen = np.random.default_rng(1).random((NQ, NK)) < 0.3
    seen[7] = False
    found = []
    for name, more in (("mask", {}), ("block_mask", {"mask": {"block": 1}})):
        chosen = scenario_of(tmp_path, algorithm, {name: seen}, **more)
        trace, engine = host_trace(*workload_of(chosen))
        found.append((trace.output.tobytes(), engine.counted()))
        assert trace.workload.backward or not trace.workload.unpacked(trace.output)[:, 7].any()
    assert found[0] == found[1]


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("algorithm", [name for name in SOFTMAX if "backward" not in name])
def test_each_head_hides_its_own_pairs(algorithm: str, tmp_path: Path) -> None:
    """O against float64, every op, every count; rows of packed heads among them."""
    seen = np.random.default_rng(2).random((4, NQ, NK)) < 0.4
    seen[1, 3] = False
    chosen = scenario_of(tmp_path, algorithm, {"mask": seen}, mask={"causal": True})
    assert faults(*workload_of(chosen), SCHEDULES) == []


@pytest.mark.long
@pytest.mark.parametrize("algorithm", [name for name in SOFTMAX if "backward" in name])
def test_gradients_of_each_head_are_those_of_its_own_mask(algorithm: str, tmp_path: Path) -> None:
    seen = np.random.default_rng(2).random((4, NQ, NK)) < 0.4
    chosen = scenario_of(tmp_path, algorithm, {"mask": seen}, mask={"causal": True})
    trace, _ = host_trace(*workload_of(chosen))
    assert verify(trace).difference is None
    alone = scenario_of(tmp_path, algorithm, {"mask": seen[2]}, mask={"causal": True})
    dq = host_trace(*workload_of(alone))[0].arrays()["dq"]
    np.testing.assert_allclose(trace.arrays()["dq"][2], dq[2], atol=1e-5)


@pytest.mark.long
@pytest.mark.parametrize("beside", [{"causal": True, "window": 9, "documents": [9, 10, 7]}])
def test_with_blocks_and_all_that_can_be_beside_it(beside: dict[str, Any], tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    tensors = {"mask": rng.random((4, NQ, NK)) < 0.7, "block_mask": rng.random((6, 7)) < 0.7}
    chosen = scenario_of(tmp_path, "split-kv", tensors, mask={**beside, "block": 4})
    assert faults(*workload_of(chosen), SCHEDULES[:1]) == []
