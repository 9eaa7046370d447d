"""Times and sizes of GPUs, against figures worked out by hand from their data sheets."""

import tomllib

import pytest

from simulator.base.assets import ASSETS
from simulator.problem.hardware import LAUNCH_SECONDS, TimeEstimate, gpus, time_estimate


@pytest.mark.parametrize(
    ("name", "bytes_moved", "flops", "memory", "compute", "bound"),
    [
        # 989 TFLOP/s and 3.35 TB/s: a second each of computing and of moving.
        ("H100-SXM", 0, 989 * 10**12, 0.0, 1.0, "compute"),
        ("H100-SXM", 3350 * 10**9, 0, 1.0, 0.0, "memory"),
        ("H100-SXM", 67 * 10**6, 1978 * 10**6, 20e-6, 2e-6, "memory"),
        # 65 TFLOP/s and 0.32 TB/s.
        ("T4", 32 * 10**6, 13 * 10**9, 100e-6, 200e-6, "compute"),
        ("T4", 64 * 10**6, 13 * 10**9, 200e-6, 200e-6, "memory"),
        # 312 TFLOP/s and 2.039 TB/s.
        ("A100-80-SXM", 2_039_000, 3 * 312 * 10**6, 1e-6, 3e-6, "compute"),
    ],
)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_the_least_time_of_some_work(name, bytes_moved, flops, memory, compute, bound, dtype):
    time = time_estimate(gpus()[name], bytes_moved, flops, dtype)
    assert time.memory == pytest.approx(memory, rel=1e-14, abs=0)
    assert time.compute == pytest.approx(compute, rel=1e-14, abs=0)
    assert time.seconds == pytest.approx(max(memory, compute), rel=1e-14, abs=0)
    assert time.bound == bound


def test_float32_has_no_rate_so_that_its_time_is_that_of_its_bytes():
    time = time_estimate(gpus()["V100-SXM"], 90 * 10**6, 10**15, "float32")
    assert time == TimeEstimate(memory=pytest.approx(100e-6), compute=None)
    assert time.seconds == time.memory
    assert time.bound == "memory"


def test_sizes_of_a_gpu_in_bytes():
    gpu = gpus()["H100-SXM"]
    assert gpu.name == "H100-SXM"
    assert gpu.smem_bytes == 232_448  # 227 KiB
    assert gpu.memory_bytes == 80_000_000_000
    assert gpu.register_bytes == 262_144  # 64 Ki of 4 bytes
    assert gpus()["MI300X"].register_bytes is None


@pytest.mark.parametrize("name", gpus())
def test_every_preset_is_its_data_sheet_in_units(name):
    row = tomllib.loads((ASSETS / "gpus.toml").read_text(encoding="utf-8"))[name]
    spent = time_estimate(gpus()[name], 10**12, 10**12, "float16")
    assert spent.memory == pytest.approx(1 / row["tbps"], rel=1e-14, abs=0)
    assert spent.compute == pytest.approx(1 / row["tflops"], rel=1e-14, abs=0)


def test_a_launch_takes_some_microseconds():
    # The least and the most that were measured for launches in a row: 1.83 and 2.7 µs.
    assert 1.83e-6 < LAUNCH_SECONDS < 2 * 2.7e-6
