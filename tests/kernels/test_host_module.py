"""The shim: CUDA's rules on the CPU, and what happens to a kernel that breaks them."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from kernels.build.cache import cache_folder, kept
from kernels.devices.host import compiler
from kernels.devices.host.compiler import find_compiler
from kernels.devices.host.device import HostDevice
from kernels.devices.host.module import SHARED_LIMIT, HostModule, ThreadOrder, ThreadSchedule
from kernels.errors import KernelError
from tests.kernels.helpers import SCHEDULES, needs_compiler

CODE = r"""
extern "C" __global__ void __launch_bounds__(256) row_sums(const float* x, float* sums, int n)
{
    extern __shared__ float dynamic[];
    __shared__ float of_warp[8];
    for (int i = threadIdx.x; i < n; i += blockDim.x) dynamic[i] = x[blockIdx.x * n + i];
    __syncthreads();
    float sum = 0.0f;
    for (int i = threadIdx.x; i < n; i += blockDim.x) sum += dynamic[n - 1 - i];
    for (int bit = 16; bit; bit /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, bit);
    if (threadIdx.x % warpSize == 0) of_warp[threadIdx.x / warpSize] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < 8; ++w) sum += of_warp[w];
        sums[blockIdx.x] = sum;
    }
}

extern "C" __global__ void places(int* seen, int nx, int ny)
{
    const int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    const int thread = (threadIdx.z * ny + threadIdx.y) * nx + threadIdx.x;
    atomicAdd(&seen[block * (nx * ny * (int)blockDim.z) + thread], 1);
}

extern "C" __global__ void unwritten(float* out)
{
    extern __shared__ float dynamic[];
    __shared__ float fixed[64];
    if (threadIdx.x < 32) fixed[threadIdx.x] = 1.0f;
    __syncthreads();
    out[threadIdx.x] = blockIdx.x ? dynamic[threadIdx.x] : fixed[threadIdx.x];
}

extern "C" __global__ void no_barrier(float* out)
{
    __shared__ float x[64];
    x[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = x[63 - threadIdx.x];
}

extern "C" __global__ void half_waits(float* out)
{
    if (threadIdx.x < 32 || threadIdx.x >= 40) __syncthreads();
    else out[0] = __shfl_xor_sync(0xffffffffu, 1.0f, 1);
}

extern "C" __global__ void two_places(float* out)
{
    if (threadIdx.x < 32) __syncthreads();
    else
        __syncthreads();
}

extern "C" __global__ void split_warp(float* out)
{
    if (threadIdx.x < 16) __syncwarp();
    else out[0] = __shfl_xor_sync(0xffffffffu, 1.0f, 1);
}

extern "C" __global__ void overruns(float* out)
{
    extern __shared__ float dynamic[];
    dynamic[threadIdx.x] = 1.0f;
}

extern "C" __global__ void early_exit(float* out)
{
    if (threadIdx.x % 2) return;
    __syncthreads();
    out[threadIdx.x] = __shfl_sync(0xffffffffu, (float)threadIdx.x, 4);
}
"""


@pytest.fixture(scope="module")
def module() -> HostModule:
    if not find_compiler().available and not os.environ.get("CI"):
        pytest.skip(f"the host engine: {find_compiler().reason}")
    return HostModule(CODE)


@pytest.fixture(params=SCHEDULES, ids=lambda schedule: schedule.order.name.lower())
def ordered(request: pytest.FixtureRequest, module: HostModule) -> Iterator[HostModule]:
    module.schedule = request.param
    yield module
    module.schedule = ThreadSchedule()


def test_continuous_integration_has_a_compiler() -> None:
    if os.environ.get("CI"):
        assert find_compiler().available, find_compiler().reason


def test_barriers_shuffles_and_shared_memory(ordered: HostModule) -> None:
    x = np.random.default_rng(0).standard_normal((50, 700)).astype(np.float32)
    sums = np.full(50, np.nan, dtype=np.float32)
    kernel = ordered.get_function("row_sums")
    kernel((50,), (256,), (x, sums, np.int32(700)), shared_mem=4 * 700)
    np.testing.assert_allclose(sums, x.astype(float).sum(axis=1), rtol=0, atol=1e-4)


def test_every_thread_of_every_block_runs_once(ordered: HostModule) -> None:
    seen = np.zeros((4 * 3 * 2, 5 * 3 * 2), dtype=np.int32)
    ordered.get_function("places")((4, 3, 2), (5, 3, 2), (seen, np.int32(5), np.int32(3)))
    assert (seen == 1).all()


def test_shared_memory_is_poisoned(module: HostModule) -> None:
    out = np.zeros(64, dtype=np.float32)
    module.get_function("unwritten")((1,), (64,), (out,), shared_mem=256)
    assert (out[:32] == 1).all()
    if sys.platform == "linux":
        assert np.isnan(out[32:]).all()
    module.schedule = ThreadSchedule(workers=1)
    module.get_function("unwritten")((2,), (64,), (out,), shared_mem=256)
    assert np.isnan(out).all()


def test_a_missing_barrier_shows_in_some_order(module: HostModule) -> None:
    wrong = 0
    for schedule in SCHEDULES:
        module.schedule = schedule
        out = np.zeros(64, dtype=np.float32)
        module.get_function("no_barrier")((1,), (64,), (out,))
        wrong += not np.array_equal(out, np.arange(63, -1, -1))
    module.schedule = ThreadSchedule()
    assert wrong == len(SCHEDULES)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (
            "half_waits",
            "threads wait for each other at different barriers; from thread 0 at __sync",
        ),
        ("two_places", "some threads wait at line"),
        ("split_warp", "lanes of warp 0 meet at __syncwarp, line"),
        ("overruns", "wrote past its 100 bytes of shared memory"),
    ],
)
def test_what_is_forbidden_is_named(ordered: HostModule, kernel: str, message: str) -> None:
    out = np.zeros(64, dtype=np.float32)
    with pytest.raises(KernelError, match=message):
        ordered.get_function(kernel)((3,), (64,), (out,), shared_mem=100)
    # And the next launch is none the worse for it.
    ordered.get_function("early_exit")((1,), (64,), (out,))


def test_threads_that_end_are_waited_for_no_more(ordered: HostModule) -> None:
    out = np.zeros(64, dtype=np.float32)
    ordered.get_function("early_exit")((1,), (64,), (out,))
    np.testing.assert_array_equal(out[::2], [4] * 16 + [36] * 16)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "0 arguments, expected 3"),
        ((np.zeros(4, np.float32), np.zeros(4, np.float32), 1), "argument 2 is int"),
        ((np.zeros(4), np.zeros(4), np.int64(1)), "argument 2 has 8 bytes, expected 4"),
        ((np.zeros((4, 4))[:, 1], np.zeros(4), np.int32(1)), "argument 0 is not contiguous"),
    ],
)
def test_wrong_arguments(module: HostModule, arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(KernelError, match=message):
        module.get_function("row_sums")((1,), (256,), arguments, shared_mem=64)


def test_wrong_launches(module: HostModule) -> None:
    out = np.zeros(64, dtype=np.float32)
    kernel = module.get_function("no_barrier")
    with pytest.raises(KernelError, match="1 blocks of 1025 threads"):
        kernel((1,), (1025,), (out,))
    with pytest.raises(KernelError, match=f"{SHARED_LIMIT + 1} bytes of shared memory: at most"):
        kernel((1,), (64,), (out,), shared_mem=SHARED_LIMIT + 1)
    with pytest.raises(KernelError, match="no kernel absent: there are row_sums, places"):
        module.get_function("absent")


@pytest.mark.long
@needs_compiler
def test_the_other_way_to_switch_stacks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Ucontext, which processors other than x86-64 use."""
    monkeypatch.setattr(compiler, "FLAGS", (*compiler.FLAGS, "-DHOST_UCONTEXT"))
    module = HostModule(CODE)
    module.schedule = ThreadSchedule(ThreadOrder.RANDOM, seed=3)
    test_barriers_shuffles_and_shared_memory(module)
    test_threads_that_end_are_waited_for_no_more(module)
    with pytest.raises(KernelError, match="some threads wait at line"):
        module.get_function("two_places")((1,), (64,), (np.zeros(64, np.float32),))


# --- the compiler and its cache ----------------------------------------------------------------


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """Give a test a cache folder and a search for compilers of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache_folder.cache_clear()
    find_compiler.cache_clear()
    yield tmp_path / "tilescope" / "kernels"
    cache_folder.cache_clear()
    find_compiler.cache_clear()


SMALL = 'extern "C" __global__ void one(float* out) { out[threadIdx.x] = VALUE; }'


def run_small(value: int = 1) -> float:
    out = np.zeros(1, dtype=np.float32)
    HostModule(SMALL, (f"-DVALUE={value}",)).get_function("one")((1,), (1,), (out,))
    return float(out[0])


@pytest.mark.long
@needs_compiler
def test_a_home_that_is_no_place_is_not_used(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setenv("HOME", "here")
    monkeypatch.delenv("PATH")
    monkeypatch.chdir(fresh.parent.parent)
    assert run_small() == 1
    assert not list(Path.cwd().iterdir())


@needs_compiler
def test_the_first_line_says_why_a_kernel_is_refused(fresh: Path) -> None:
    with pytest.raises(KernelError) as error:
        HostModule("int x = ;", ()).get_function("x")
    first = str(error.value).partition("\n")[0]
    assert "error: expected" in first


@pytest.mark.long
@needs_compiler
def test_a_kernel_is_compiled_once(fresh: Path) -> None:
    def made() -> dict[str, int]:
        return {path.name: path.stat().st_ino for path in fresh.iterdir()}

    assert run_small() == 1
    first = made()
    assert len(first) == 2, "the runtime and the kernel, nothing half-made"
    assert run_small() == 1
    assert made() == first
    assert run_small(2) == 2
    assert len(made()) == 3, "other options are another kernel"


@pytest.mark.long
@needs_compiler
def test_a_damaged_file_is_made_anew(fresh: Path) -> None:
    # The damage comes before the first load: a library that is mapped must not be cut.
    compiler.shared_library("int x;", ())
    (library,) = fresh.glob("*.so")
    good = HostModule(SMALL, ("-DVALUE=1",))
    (ours,) = set(fresh.glob("*.so")) - {library}
    ours.unlink()
    ours.write_bytes(b"\x7fELF damaged")
    assert run_small() == 1
    assert good.kernels == ("one",)


@needs_compiler
@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_cache_that_cannot_be_written(fresh: Path) -> None:
    fresh.parent.mkdir(parents=True)
    fresh.parent.chmod(0o500)
    assert run_small() == 1
    assert not fresh.exists()


@pytest.mark.long
@needs_compiler
def test_a_cache_that_cannot_be_made(fresh: Path) -> None:
    fresh.parent.write_text("a file where the folder should be")
    assert run_small() == 1
    assert tuple(cache_folder().glob("*.so"))


@pytest.mark.long
@needs_compiler
def test_processes_that_compile_at_once(fresh: Path) -> None:
    text = (
        "import numpy as np\nfrom kernels.devices.host.module import HostModule\n"
        f"out = np.zeros(1, np.float32)\nHostModule({SMALL!r}, ('-DVALUE=3',))"
        ".get_function('one')((1,), (1,), (out,))\nassert out[0] == 3\n"
    )
    both = [subprocess.Popen([sys.executable, "-c", text]) for _ in range(2)]
    assert [process.wait(timeout=120) for process in both] == [0, 0]
    assert len(list(fresh.iterdir())) == 2


@needs_compiler
def test_the_oldest_are_forgotten(fresh: Path) -> None:
    ages = {"b.so": 1, "other.o": 2, "a.ptx": 3, "d.so": 4, "c.so": 5}

    def make(path: Path) -> None:
        path.write_bytes(bytes(100 if path.suffix == ".so" else 30))
        os.utime(path, (ages[path.name],) * 2)

    for name in ages:
        kept(name, make, most=250)
    assert {path.name for path in fresh.iterdir()} == {"a.ptx", "d.so", "c.so"}
    kept("d.so", make, most=250)  # used again: c.so is the one that nobody has needed
    ages["e.so"] = 2**33
    kept("e.so", make, most=250)
    assert {path.name for path in fresh.iterdir()} == {"d.so", "e.so"}


def test_no_compiler(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(fresh))
    monkeypatch.delenv("CXX", raising=False)
    found = find_compiler()
    assert not found.available
    assert found.reason == "no C++ compiler: neither g++ nor clang++ is installed"
    with pytest.raises(KernelError, match="neither g\\+\\+ nor clang"):
        HostDevice()
    with pytest.raises(KernelError, match="neither g\\+\\+ nor clang"):
        run_small()


def test_a_compiler_that_does_not_run(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert find_compiler().reason.endswith("CXX names does not run: no-such-compiler")


@needs_compiler
def test_code_that_does_not_compile() -> None:
    with pytest.raises(KernelError, match=r"(?s)refuses the kernel.*kernel\.cu:1"):
        HostModule('extern "C" __global__ void bad(float* out) { out[0] = nonsense; }')
    with pytest.raises(KernelError, match="dynamic shared memory has one name, not a, b"):
        HostModule("extern __shared__ float a[]; extern __shared__ float b[];")
