"""What a user of the program gets from a GPU that works, fails, is too small or too old."""

import json
from pathlib import Path

import pytest

from tests.kernels.gpu_double.build import on_double

SCENARIO = """
[attention]
heads = 2
seqlen_q = 40
seqlen_k = 60
head_dim = 32
dtype = "float16"

[tiling]
rows = 16
cols = 16
"""


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    path = tmp_path / "small.toml"
    path.write_text(SCENARIO, encoding="utf-8")
    return str(path)


def run(scenario: str, engine: str = "auto", **gpu: int) -> tuple[str, str]:
    """Return which engine has computed a scenario, and what else the command says."""
    done = on_double("-m", "ui", "run", scenario, "--engine", engine, "--json", **gpu)
    return (json.loads(done.stdout)["engine"] if done.stdout else ""), done.stderr.strip()


@pytest.mark.parametrize("capability", [75, 90, 121, 130])  # 130: newer than NVRTC, which makes PTX
def test_auto_takes_a_gpu_that_works(scenario: str, capability: int) -> None:
    assert run(scenario, capability=capability) == ("cupy", "")


@pytest.mark.parametrize("launch", [1, 2])
def test_numpy_computes_where_a_launch_meets_an_illegal_address(scenario: str, launch: int) -> None:
    engine, words = run(scenario, breaks=launch)
    assert engine == "numpy"
    assert words.endswith(
        "the GPU failed (cudaErrorIllegalAddress: an illegal memory access was encountered): "
        "NumPy computes"
    )


@pytest.mark.parametrize("gpu", [{"memory": 0}, {"shared": 1024}, {"capability": 61}])
def test_numpy_computes_where_a_gpu_is_too_small_or_too_old(
    scenario: str, gpu: dict[str, int]
) -> None:
    assert run(scenario, **gpu) == ("numpy", "")


@pytest.mark.parametrize(
    ("gpu", "told"),
    [
        ({"memory": 0}, "the GPU failed (Out of memory allocating"),
        ({"shared": 1024}, "these need 4 KiB of shared memory, a block has 1 KiB"),
        ({"capability": 61}, "this GPU is sm_61, and NVRTC 13.0 begins at sm_75: CUDA 12 still"),
        ({"capability": 70}, "this GPU is sm_70, and NVRTC 13.0 begins at sm_75: CUDA 12 still"),
    ],
)
def test_who_asks_for_the_gpu_is_told_in_one_line(
    scenario: str, gpu: dict[str, int], told: str
) -> None:
    engine, words = run(scenario, "cupy", **gpu)
    assert not engine
    assert told in words
    assert len(words.splitlines()) == 1
