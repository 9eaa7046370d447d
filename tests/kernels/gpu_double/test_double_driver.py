"""The double refuses what a GPU refuses, waits for nobody, and stays broken once it is."""

import pytest

from tests.kernels.gpu_double.build import on_double

DEVICE = '''
import ctypes, sys
import numpy as np, cupy
from kernels.devices.cupy import CupyDevice
device = CupyDevice()
TEXT = """
extern "C" __global__ void __launch_bounds__(256) copy(const float* from, float* to, int first)
{
    extern __shared__ float kept[];
    kept[threadIdx.x] = from[first + threadIdx.x];
    __syncthreads();
    to[threadIdx.x] = kept[threadIdx.x];
}

extern "C" __global__ void wait(const volatile int* signal, int* seen)
{
    while (*signal == 0) {}
    *seen = *signal;
}
"""
module = device.module(TEXT, ())
copy, wait = module.get_function("copy"), module.get_function("wait")
x = device.upload(np.arange(256, dtype=np.float32))
y = device.filled((256,), np.float32, 0)
def launch(grid=(1,), block=(256,), shared=1024, first=0):
    copy(grid, block, [x, y, np.int32(first)], shared_mem=shared)
'''


def said_by(code: str, **gpu: int) -> tuple[str, str]:
    """Return what a program prints that has a kernel on the double, and its last error."""
    done = on_double("-c", DEVICE + code, **gpu)
    assert done.stdout or done.stderr
    return done.stdout.strip(), done.stderr.strip()


def test_a_kernel_runs_once_its_arguments_are_there() -> None:
    assert said_by("launch(); print(device.download(y).sum())") == ("32640.0", "")


@pytest.mark.parametrize(
    "wrong",
    [
        "grid=(1, 65536)",
        "block=(257,)",  # more than its launch bounds
        "block=(1, 1, 65)",
        "shared=48 * 1024 + 4",
    ],
)
def test_launches_that_do_not_fit_are_refused(wrong: str) -> None:
    said, error = said_by(f"launch({wrong})")
    assert not said
    assert error.endswith("CUDADriverError: CUDA_ERROR_INVALID_VALUE: invalid argument")


def test_more_shared_memory_must_be_asked_for_and_ends_somewhere() -> None:
    code = """
copy.max_dynamic_shared_size_bytes = 100 * 1024
launch(shared=100 * 1024)
print(device.download(y)[-1], device.shared_limit)
copy.max_dynamic_shared_size_bytes = 100 * 1024 + 4
"""
    said, error = said_by(code, shared=100 * 1024)
    assert said == f"255.0 {100 * 1024}"
    assert error.endswith("CUDADriverError: CUDA_ERROR_INVALID_VALUE: invalid argument")


def test_work_is_done_later_and_a_download_waits_for_it() -> None:
    """The kernel ends only after the program has seen that it had not ended."""
    code = """
signal, seen = (device.upload(np.zeros(1, np.int32)) for _ in range(2))
mark = cupy.cuda.Event()
wait((1,), (1,), [signal, seen], shared_mem=0)
mark.record()
print(mark.done)
ctypes.c_int.from_address(signal.data.ptr).value = 7
print(device.download(seen)[0], mark.done)
"""
    assert said_by(code) == ("False\n7 True", "")


def test_memory_is_nan_until_somebody_writes() -> None:
    assert said_by("print(np.isnan(cupy.empty(1000, np.float32).get()).all())") == ("True", "")


def test_an_address_outside_of_every_array_breaks_the_process_for_good() -> None:
    code = """
cupy.cuda.set_allocator(None)  # else CuPy shares out arrays of 512 bytes and more
x = device.upload(np.arange(256, dtype=np.float32))
launch(first=1)
for what in (lambda: device.download(y), lambda: device.upload(np.zeros(1)), launch):
    try:
        what()
    except RuntimeError as error:
        print(str(error).partition(":")[0])
"""
    said, error = said_by(code)
    assert said.split() == [*["cudaErrorIllegalAddress"] * 2, "CUDA_ERROR_ILLEGAL_ADDRESS"]
    assert "GPU double: copy, block (0, 0, 0): line" in error
    assert "4 bytes at global address" in error
    assert "lie outside of every array" in error


def test_memory_ends() -> None:
    said, error = said_by("cupy.empty(2 << 20, np.uint8)", memory=1)
    assert not said
    assert "OutOfMemoryError: Out of memory allocating 2,097,152 bytes" in error


def test_code_for_another_gpu_is_refused() -> None:
    """A driver that took any code would hide a wrong target."""
    code = """
from kernels.build.nvrtc import compile_cubin, compile_ptx
for made in (compile_ptx(TEXT, "a.cu", "compute_100").encode(),
             compile_cubin(TEXT, "a.cu", "sm_80").code):
    try:
        device.loaded(made, TEXT)
    except Exception as error:
        print(error)
"""
    said, _ = said_by(code)
    words = "the GPU's driver does not take the kernel: CUDA_ERROR_NO_BINARY_FOR_GPU"
    assert [line[: len(words)] for line in said.splitlines()] == [words] * 2
