"""What is seen of a kernel that is watched: races, bounds, unwritten memory, or nothing."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernels.cuda.specs import KERNELS
from kernels.devices.host.device import HostDevice
from kernels.devices.host.module import ThreadOrder, ThreadSchedule
from kernels.devices.host.watch import KernelFault
from kernels.devices.races import launch_all
from tests.kernels.watch.watched import case, needs_watch

CODE = r"""
extern "C" __global__ void turned(float* out)
{
    __shared__ float x[64];
    x[threadIdx.x] = threadIdx.x;                                    // line 5
    if (out[0] == 1.0f) __syncwarp();
    if (out[0] == 2.0f) __syncthreads();
    const int other = out[1] == 1.0f ? threadIdx.x ^ 1 : 63 - threadIdx.x;
    out[threadIdx.x + 2] = x[other];                                 // line 9
}

extern "C" __global__ void copied(const float* from, float* to, int shift)
{
    to[threadIdx.x] = from[(int)threadIdx.x + shift];                // line 14
}

extern "C" __global__ void unwritten(float* out, int written)
{
    extern __shared__ float dynamic[];
    if ((int)threadIdx.x < written) dynamic[threadIdx.x] = 1.0f;
    __syncthreads();
    out[threadIdx.x] = dynamic[threadIdx.x];                         // line 22
}

extern "C" __global__ void overruns(float* out, int shift)
{
    extern __shared__ float dynamic[];
    dynamic[threadIdx.x + shift] = 1.0f;                             // line 28
}

extern "C" __global__ void all_blocks(int* sum, int* last)
{
    atomicAdd(sum, 1);
    if (last && threadIdx.x == 0) *last = blockIdx.x;                // line 34
}

extern "C" __global__ void read_by_all(float* out, const float* in, int barriers)
{
    __shared__ float x;
    if (threadIdx.x == 40) x = in[0];
    __syncthreads();
    out[threadIdx.x] = x;                                            // line 42
    if (barriers) __syncthreads();
    if (threadIdx.x == 63) x = 2.0f;                                 // line 44
}
"""

pytestmark = needs_watch


@pytest.fixture(params=tuple(ThreadOrder), ids=lambda order: order.name.lower())
def device(request: pytest.FixtureRequest) -> Iterator[HostDevice]:
    return HostDevice(ThreadSchedule(request.param), watch=True)


def launched(
    device: HostDevice, kernel: str, *given: Any, blocks: int = 1, shared: int = 0
) -> list[KernelFault]:
    """Return what is seen of one launch of 64 threads a block."""
    kernel_ = device.module(CODE, ()).get_function(kernel)
    kernel_((blocks,), (64,), given, shared_mem=shared)
    faults, device.faults[:] = list(device.faults), []
    return faults


@pytest.mark.sweep(keep=4)
@pytest.mark.parametrize(
    ("barrier", "near", "missing"),
    [
        (0, 0, "__syncthreads()"),
        (0, 1, "__syncwarp()"),
        (1, 0, "__syncthreads()"),
        (1, 1, None),
        (2, 0, None),
        (2, 1, None),
    ],
)
def test_a_missing_barrier_is_named_with_its_lines(
    device: HostDevice, barrier: int, near: int, missing: str | None
) -> None:
    out = np.zeros(66, dtype=np.float32)
    out[:2] = barrier, near
    faults = [each for each in launched(device, "turned", out) if each.kind == "race"]
    if missing is None:
        assert faults == []
        return
    for fault in faults:
        first, second = fault.first, fault.second
        assert fault.missing == missing
        assert {first.place.line: first.verb, second.place.line: second.verb} == {
            5: "writes", 9: "reads"
        }  # fmt: skip
        assert (first.thread // 32 == second.thread // 32) == bool(near)
        assert f"no {missing} in between" in str(fault)
        assert "kernel.cu:5" in str(fault)
    assert faults


@pytest.mark.parametrize(
    ("shift", "words", "times"),
    [
        (0, None, 0),
        (-1, "thread 0 of block 0 reads 4 bytes at 4 bytes before from", 1),
        (1, "thread 63 of block 0 reads 4 bytes at byte 256 of from, which has 256", 1),
        (9, "of from, which has 256: kernel.cu:14 (9 times)", 9),
    ],
)
def test_a_read_outside_of_an_array(
    device: HostDevice, shift: int, words: str | None, times: int
) -> None:
    memory = np.zeros(3 * 64, dtype=np.float32)
    to = np.zeros(64, dtype=np.float32)
    faults = launched(device, "copied", memory[64:128], to, np.int32(shift))
    assert len(faults) == bool(times)
    for fault in faults:
        assert (fault.kind, fault.second.place.line, fault.times) == ("outside", 14, times)
        assert words is not None
        assert words in str(fault)


def test_a_write_outside_of_an_array(device: HostDevice) -> None:
    memory = np.zeros(3 * 64, dtype=np.float32)
    faults = launched(device, "copied", memory[:64], memory[64:96], np.int32(0))
    assert [(each.kind, each.array, each.second.verb, each.times) for each in faults] == [
        ("outside", "to", "writes", 32)
    ]


@pytest.mark.parametrize(("written", "unwritten"), [(64, 0), (60, 4)])
def test_shared_memory_that_nobody_has_written(
    device: HostDevice, written: int, unwritten: int
) -> None:
    out = np.zeros(64, dtype=np.float32)
    faults = launched(device, "unwritten", out, np.int32(written), shared=256)
    assert [(each.kind, each.second.place.line) for each in faults] == (
        [("unwritten", 22)] if unwritten else []
    )


def test_a_write_past_shared_memory(device: HostDevice) -> None:
    out = np.zeros(64, dtype=np.float32)
    assert launched(device, "overruns", out, np.int32(0), shared=256) == []
    with pytest.raises(Exception, match="wrote past its 256 bytes"):
        launched(device, "overruns", out, np.int32(2), shared=256)
    assert [(each.kind, each.array, each.second.place.line) for each in device.faults] == [
        ("outside", "shared memory", 28)
    ]


def test_blocks_have_no_order_but_atomic_additions_need_none(device: HostDevice) -> None:
    total, last = np.zeros(1, dtype=np.int32), np.zeros(1, dtype=np.int32)
    assert launched(device, "all_blocks", total, np.uint64(0), blocks=3) == []
    assert total[0] == 3 * 64
    (fault,) = launched(device, "all_blocks", total, last, blocks=3)
    assert (fault.kind, fault.array, fault.missing) == ("race", "last", "")
    assert "blocks have no order" in str(fault)


def test_one_of_many_readers_races_with_a_later_write(device: HostDevice) -> None:
    out, given = np.zeros(64, dtype=np.float32), np.ones(1, dtype=np.float32)
    assert launched(device, "read_by_all", out, given, np.int32(1)) == []
    faults = launched(device, "read_by_all", out, given, np.int32(0))
    lines = {(f.first.place.line, f.second.place.line) for f in faults if f.first}
    assert lines
    assert lines <= {(42, 44), (44, 42)}


# --- the kernels of the project ------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize(("algorithm", "variant"), [("flash2", "bias"), ("split-kv", "ALiBi")])
def test_rows_past_a_tile_read_no_slope_and_no_bias(
    algorithm: str, variant: str, tmp_path: Path
) -> None:
    device = HostDevice(watch=True)
    launch_all(*case(algorithm, variant, tmp_path), device, "fast")
    assert [str(fault) for fault in device.faults] == []


@pytest.mark.long
@pytest.mark.parametrize("algorithm", KERNELS)
def test_a_kernel_that_is_right_is_told_nothing_of(algorithm: str, tmp_path: Path) -> None:
    device = HostDevice(watch=True)
    launch_all(*case(algorithm, "plain", tmp_path), device, "fast")
    assert [str(fault) for fault in device.faults] == []
