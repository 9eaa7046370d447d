"""The kernels' texts: element types, lines that stand for ops, options, limits, the registry."""

import re
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from hypothesis import given

from kernels.build.sources import FOLDER, anchors, op_lines, source
from kernels.cuda import tensor_core
from kernels.cuda.counters import COUNTERS, total
from kernels.cuda.fast import FastRun
from kernels.cuda.launch import Device, Tensors, build_options, prepared
from kernels.cuda.runs import tile_runs
from kernels.cuda.specs import KERNELS, SPECS, LaunchPart, most_shared_bytes, shared_bytes
from kernels.devices.cupy import CupyDevice
from kernels.devices.driver import GpuStatus, gpu_status
from kernels.devices.host.compiler import find_compiler
from kernels.devices.host.device import HostDevice
from kernels.devices.host.module import HostModule
from kernels.devices.registry import GpuAccess, choose_engine, make_engine
from kernels.errors import KernelError
from simulator.base.dtypes import bfloat16_from_bits, round_to
from simulator.base.errors import InputError
from simulator.code.code_lines import forms
from simulator.engines.numpy_engine import NumpyEngine
from simulator.problem.intervals import Intervals
from simulator.problem.scenario import Scenario
from simulator.problem.workload import Variant, resolve
from tests.helpers.refused import refused
from tests.helpers.runs import program_of
from tests.kernels.helpers import (
    ALGORITHMS,
    kernel_scenarios,
    needs_compiler,
    scenario,
    workload_of,
)

CONVERSIONS = """
extern "C" __global__ void widen_all(const unsigned short* bits, float* out, int n)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = widen(bits[i]);
}

extern "C" __global__ void narrow_all(const float* x, element* out, int n)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = narrow(x[i]);
}
"""


@pytest.fixture(params=["float16", "bfloat16"])
def conversions(request: pytest.FixtureRequest) -> tuple[str, HostModule]:
    w = program_of(scenario("flash2", dtype=request.param)).workload
    common = (FOLDER / "common.cuh").read_text(encoding="utf-8")
    return request.param, HostModule(common + CONVERSIONS, build_options(w, trace=False))


@needs_compiler
def test_every_element_widens_exactly(conversions: tuple[str, HostModule]) -> None:
    dtype, module = conversions
    bits = np.arange(2**16, dtype=np.uint16)
    exact = bits.view(np.float16).astype(np.float32)
    if dtype == "bfloat16":
        exact = bfloat16_from_bits(bits)
    out = np.zeros(bits.shape, dtype=np.float32)
    module.get_function("widen_all")((1,), (32,), (bits, out, np.int32(bits.size)))
    np.testing.assert_array_equal(out, exact)
    np.testing.assert_array_equal(np.signbit(out), np.signbit(exact))


@needs_compiler
def test_narrowing_rounds_to_the_nearest_even(conversions: tuple[str, HostModule]) -> None:
    dtype, module = conversions
    rng = np.random.default_rng(0)
    patterns = rng.integers(0, 2**32, 200_000, dtype=np.uint32)
    # Every element, the middle between it and the next, and a hair to both sides of it.
    elements = np.arange(2**16, dtype=np.uint16)
    values = bfloat16_from_bits(elements)
    if dtype == "float16":
        values = elements.view(np.float16).astype(np.float32)
    with np.errstate(invalid="ignore", over="ignore"):
        middles = values + np.diff(values, append=np.float32(0)) / np.float32(2)
        beside = [np.nextafter(middles, s) for s in (np.float32(-np.inf), np.float32(np.inf))]
        x = np.concatenate([patterns.view(np.float32), values, middles, *beside])
        want = round_to(x, dtype)
    out = np.zeros(x.shape, dtype=np.uint16)
    module.get_function("narrow_all")((1,), (32,), (x, out, np.int32(x.size)))
    got = bfloat16_from_bits(out)
    if dtype == "float16":
        got = out.view(np.float16).astype(np.float32)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_op_has_its_lines(algorithm: str) -> None:
    """The code panel goes from an op to the lines of the kernel that do it."""
    variants = (frozenset(), frozenset(get_args(Variant)))
    names = {op.name for variant in variants for op in forms(algorithm, variant)}
    lines = anchors(algorithm)
    assert set(lines) == names
    text = source(algorithm).splitlines()
    for name, numbers in lines.items():
        for number in numbers:
            assert re.search(rf"\[{name}\] [A-Z][a-z]+ (et al|\d{{4}})", text[number - 1])


def test_counters_are_the_kernels() -> None:
    common = (FOLDER / "common.cuh").read_text(encoding="utf-8")
    body = re.search(r"enum Counter \{(.*?)\}", common, re.DOTALL)
    assert body
    names = [name.strip() for name in body[1].split(",")]
    ours = [f"{way.upper()}_{tensor}" if tensor else way.upper() for way, tensor in COUNTERS]
    assert names == [*ours, "COUNTERS"]


def test_totals_add_up() -> None:
    one = np.arange(len(COUNTERS), dtype=np.uint64)
    sums = total([one.reshape(1, 1, 1, -1), np.stack([one, one])], ["Q", "LSE"])
    assert sums.read == {
        "Q": 0,
        "LSE": 51,
        "K": 3,
        "V": 6,
        "S": 9,
        "P": 12,
        "O": 15,
        "l": 18,
        "m": 21,
        "O_partial": 24,
        "LSE_partial": 27,
        "state": 30,
        "sink": 33,
        "decay": 36,
        "strength": 39,
        "C": 42,
        "table": 45,
        "dO": 48,
        "D": 54,
        "dQ_acc": 57,
        "dP": 60,
        "dS": 63,
        "gate": 66,
    }
    assert sums.write["dV"] == 108
    assert sums.flops == 117


@pytest.mark.parametrize(
    ("dtype", "rows", "cols", "d", "dv", "bytes_of"),
    [
        # S 64·64·4, Q 64·64·4, K 64·65·4, V 64·64·4
        ("float32", 64, 64, 64, 64, 16384 + 16384 + 16640 + 16384),
        # 20 rows for three warps are 21: S 21·40·4, Q 21·8·2, K 40·(8+2)·2, V 40·33·2
        ("float16", 20, 40, 8, 33, 3360 + 336 + 800 + 2640),
    ],
)
def test_shared_memory(dtype: str, rows: int, cols: int, d: int, dv: int, bytes_of: int) -> None:
    w = program_of(scenario("flash2", d=d, dv=dv, rows=rows, cols=cols, dtype=dtype)).workload
    assert shared_bytes(w, "flash2") == bytes_of


LAST_PADDING = dict.fromkeys(
    ("naive_scores", "naive_backward_weights", "naive_backward_queries", "mla", "backward_tiles"), 4
)
"""Bytes behind the last row of a kernel's last tile, which keep rows in step and hold nothing."""


@pytest.mark.sweep(keep=1)
@needs_compiler
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_byte_less_of_shared_memory_is_too_little(
    algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No formula asks for more than its kernel uses: with less a kernel overruns, and it shows."""
    sizes = {"nq": 20, "nk": 40, "d": 8, "dv": 33, "rows": 20, "cols": 40, "dtype": "float16"}
    for name in KERNELS[algorithm]:
        mask = {"mask": {"causal": True}} if name == "linear_chunks" else {}
        workload, inputs = workload_of(scenario(algorithm, **sizes, **mask))
        FastRun(workload, inputs, HostDevice()).launch()
        spec = SPECS[name]
        less = LAST_PADDING.get(name, 0) + 1
        short = replace(spec, shared=lambda w, spec=spec, less=less: spec.shared(w) - less)
        with monkeypatch.context() as patched:
            patched.setitem(SPECS, name, short)
            if spec.shared(workload):
                with pytest.raises(KernelError, match=f"^{name}, .*wrote past its"):
                    FastRun(workload, inputs, HostDevice()).launch()


@needs_compiler
@pytest.mark.parametrize(
    ("algorithm", "sizes", "message"),
    [
        ("flash2", {"rows": 512, "cols": 512, "d": 64},
         'tiling = "512 x 512": expected tiles that'),
        ("naive", {"nk": 150_000, "d": 2}, "seqlen_k = 150000: expected rows of S that fit"),
    ],
)  # fmt: skip
def test_tiles_that_do_not_fit(algorithm: str, sizes: dict[str, int], message: str) -> None:
    workload, inputs = workload_of(scenario(algorithm, nq=4, **sizes))
    need = most_shared_bytes(workload)
    told = refused(make_engine, "host", workload, inputs)
    assert message in told
    assert f"need {need / 1024:.0f} KiB of shared memory, a block has 512 KiB" in told


def test_host_without_a_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    find_compiler.cache_clear()
    with pytest.raises(InputError, match=r'--engine: engine = "host": .* neither g\+\+ nor'):
        make_engine("host", *workload_of(scenario("flash2")))
    find_compiler.cache_clear()


@pytest.mark.skipif(gpu_status().available, reason="there is a GPU")
def test_without_a_gpu() -> None:
    workload, inputs = workload_of(scenario("flash2"))
    engine, note = choose_engine("auto", workload, inputs)
    assert isinstance(engine, NumpyEngine)
    assert note == gpu_status().reason
    with pytest.raises(KernelError) as refused:
        CupyDevice()
    assert str(refused.value) == gpu_status().reason
    with pytest.raises(InputError, match='engine = "cupy": expected a machine that can run it'):
        make_engine("cupy", workload, inputs)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (KernelError("CuPy is not installed"), "CuPy is not installed"),
        (MemoryError("512 bytes"), "the GPU failed (512 bytes)"),  # what CuPy raises is not ours
    ],
)
def test_auto_falls_back(error: Exception, said: str) -> None:
    """A GPU is there, but cannot be used: NumPy, and the reason."""

    def unusable() -> Device:
        raise error

    gpu = GpuAccess(lambda: GpuStatus("a GPU", "13.0", ""), unusable)
    engine, note = choose_engine("auto", *workload_of(scenario("flash2")), gpu)
    assert isinstance(engine, NumpyEngine)
    assert note == said


@pytest.mark.parametrize(("keys", "asked"), [(12284, False), (12285, True), (20000, True)])
def test_more_shared_memory_than_48_kib_is_asked_for(keys: int, asked: bool) -> None:
    """What a kernel declares itself counts, too: 16 bytes in naive's softmax."""
    launched = []

    class Kernel:
        preferred_shared_memory_carveout = -1
        max_dynamic_shared_size_bytes = 48 * 1024

        def __call__(self, *_: object, shared_mem: int) -> None:
            launched.append((shared_mem, self.max_dynamic_shared_size_bytes))

    class Module:
        def get_function(self, name: str) -> Kernel:
            assert name == "naive_softmax"
            return Kernel()

    w = program_of(scenario("naive", nq=2, nk=keys, rows=2, cols=64, d=2)).workload
    tensors = Tensors(*[np.zeros(1)] * 5)
    prepared(Module(), w, "naive_softmax", LaunchPart.whole(w), tensors)()
    assert launched == [(4 * keys, 4 * keys if asked else 48 * 1024)]
    assert most_shared_bytes(w) >= 4 * keys + 16


@pytest.mark.parametrize("name", SPECS)
def test_arguments_are_the_parameters_of_the_source(name: str) -> None:
    for algorithm, names in KERNELS.items():
        if name in names:
            assert parameters_of(name, algorithm) == SPECS[name].arguments


def test_arguments_are_the_parameters_of_the_tensor_core_kernel() -> None:
    assert parameters_of("flash2_mma", "flash2_mma") == tensor_core.ARGUMENTS


def parameters_of(name: str, algorithm: str) -> tuple[str, ...]:
    """Return a kernel's parameters as a launch names them, but for those of the trace build."""
    found = re.search(rf"\b{name}\((.*?)\)\n{{", source(algorithm), re.DOTALL)
    assert found
    text = re.sub("//.*", "", found[1]).replace("TRACE_PARAMETERS", "")
    common = (FOLDER / "common.cuh").read_text(encoding="utf-8")
    for macro in re.findall(r"\b[A-Z]+_PARAMETERS?\b", text):
        defined = rf"^#define {macro} ((?:.*\\\n)*.*)$"
        body = re.search(defined, common + source(algorithm), re.MULTILINE)
        assert body
        text = text.replace(macro, re.sub(r"\\\n|//.*|/\*.*?\*/", " ", body[1]))
    words = [parameter.split()[-1] for parameter in text.split(",")]
    return tuple(word.removesuffix("_hbm").lower() for word in words)


@given(chosen=kernel_scenarios("flash2"))
def test_runs_are_the_tiles_of_each_kind(chosen: Scenario) -> None:
    grid = resolve(chosen).grid
    every = Intervals.every(grid.Tr, grid.Tc)
    kinds = grid.kinds()
    for visits, by_rows, skipped in (
        (grid.visited_columns, True, False),
        (grid.visited_rows, False, False),
        (every, True, True),
    ):
        listed = tile_runs(grid, visits, by_rows=by_rows)
        assert len(listed.offsets) == len(visits)
        for line, first in zip(kinds if by_rows else kinds.T, listed.offsets, strict=True):
            found, last = [], (-1, -1)
            for start, stop, kind in listed.runs[first:].tolist():
                if stop == 0:  # an empty run ends a block's
                    break
                assert start < stop
                assert (start, kind) != last  # one kind, one run
                last = (stop, kind)
                found += [(n, kind) for n in range(start, stop)]
            assert found == [(n, kind) for n, kind in enumerate(line) if kind or skipped]


def test_runs_are_as_large_as_the_kernels() -> None:
    w = program_of(scenario("flash2")).workload
    listed = tile_runs(w.grid, w.grid.visited_columns, by_rows=True)
    assert (listed.offsets.dtype, listed.runs.dtype) == (np.int32, np.int32)
    common = (FOLDER / "common.cuh").read_text(encoding="utf-8")
    body = re.search(r"struct Run \{(.*?)\}", common, re.DOTALL)
    assert body
    assert re.sub("//.*", "", body[1]).split() == ["int", "start,", "stop;", "int", "kind;"]


def test_an_op_of_a_split_and_one_of_the_joining_have_lines_of_their_own() -> None:
    """Both kernels stand in one file and share the names of ops."""
    chosen = scenario("split-kv", nq=8, nk=4, rows=3, cols=2, mask={"causal": True})
    program = program_of(chosen)
    text = source("split-kv").splitlines()
    begins = next(n for n, line in enumerate(text, start=1) if " split_kv_combine(" in line)
    for index in range(len(program)):
        for op in program.ops(index):
            lines = op_lines("split-kv", op)
            assert lines, op.name
            joins = program.visit(index).launch == 1
            assert all((line > begins) == joins for line in lines), (op.name, op.cites, lines)
