"""Every kernel becomes machine code for every architecture, and stays within its limits.

NVRTC does it with no GPU: that of gpu-cuda13, or of gpu-cuda12 in `make test-older-cuda`. What it
said of a text is kept in the checkout's cache, so that only what has changed is compiled again.
"""

import hashlib
import json
import os
import platform
import re
import sys
from dataclasses import asdict, dataclass, fields
from itertools import product

import pytest

from kernels.build import shipped
from kernels.build.cache import cache_folder
from kernels.build.nvrtc import (
    ARCHITECTURES,
    OPTIONS,
    USUAL_NVRTC,
    Build,
    Limit,
    Usage,
    compile_cubin,
    compile_ptx,
    kernel_names,
    limits,
    nvrtc_reason,
    nvrtc_version,
    parse_usage,
)
from kernels.build.sources import FOLDER, whole_source
from kernels.errors import KernelError

# The wheels are of the test extra on Linux x86-64: there CI must not do without.
BROUGHT = (sys.platform, platform.machine()) == ("linux", "x86_64")
needs_nvrtc = pytest.mark.skipif(
    bool(nvrtc_reason()) and not (os.environ.get("CI") and BROUGHT),
    reason=f"compile gate: {nvrtc_reason()}",
)

# Br, Bc, d = dv, warps, element (0 float32, 1 float16, 2 bfloat16).
USUAL, LARGE, SMALL = (32, 32, 64, 4, 1), (128, 128, 128, 16, 2), (16, 16, 32, 2, 0)
TIMED = (64, 64, 64, 8, 1)
TENSOR_64, TENSOR_128 = (128, 64, 64, 4, 1), (128, 64, 128, 4, 2)
LATENT, LATENT_VALUES = (64, 64, 576, 8, 2), 512  # FlashMLA's tile: 164 096 bytes of shared memory
TENSOR_8_WARPS = (128, 64, 128, 8, 1)
LADDER = (128, 64, 64, 16, 1)
CAUSAL, UNMASKED = ("-DCAUSAL=1", "-DBUFFERS=2"), ("-DCAUSAL=0", "-DBUFFERS=2")
ONE_BUFFER = ("-DCAUSAL=1", "-DBUFFERS=1")
NVRTC = USUAL_NVRTC if nvrtc_reason() else int(nvrtc_version().partition(".")[0])
NAMES = ("BR", "BC", "HEAD_DIM", "VALUE_DIM", "WARPS", "ELEMENT")
OLDER = ("sm_61", "sm_70")  # GTX 10 and V100, which NVRTC 13 no longer knows
AMPERE = ARCHITECTURES[1:]  # and later: the first that has cp.async and mma.m16n8k16


@dataclass(frozen=True)
class Gate:
    """A source, a build of it and the architectures that it is compiled for."""

    source: str
    build: Build
    tiles: tuple[int, int, int, int, int]
    architectures: tuple[str, ...]
    more: tuple[str, ...] = ()
    value_dim: int = 0
    """Numbers of a value; 0: as many as of a key."""

    def __str__(self) -> str:
        rows, cols, d, warps = self.tiles[:4]
        return f"{self.source} {self.build} {rows}x{cols} d={d} {warps} warps"

    @property
    def options(self) -> tuple[str, ...]:
        rows, cols, d, warps, element = self.tiles
        values = zip(NAMES, (rows, cols, d, self.value_dim or d, warps, element), strict=True)
        trace = ("-DTRACE",) if self.build == "trace" else ()
        own = MAPS.get(self.source, ())
        return (*(f"-D{name}={value}" for name, value in values), *trace, *own, *self.more)


BUILDS: tuple[Build, ...] = ("fast", "trace")
SOURCES = (
    "naive", "flash1", "flash2", "split_kv", "paged", "mla", "linear", "linear_recurrent", "gla",
    "deltanet", "naive_backward", "flash2_backward",
)  # fmt: skip
_MAP = ("-DFEATURES=64", "-DPROJECTS=1")
MAPS = dict.fromkeys(("linear", "linear_recurrent", "gla", "deltanet"), _MAP)
"""What a source takes beside its tiles."""
# One tiling for all architectures; a large and a small one where registers are scarce and on the
# oldest, and that of the benchmark: a compilation takes most of a second.
GATES = [
    *(Gate(s, "fast", USUAL, ARCHITECTURES) for s in SOURCES),
    *(Gate(s, "trace", USUAL, shipped.ARCHITECTURES) for s in SOURCES),
    *(Gate(s, b, USUAL, OLDER) for s in SOURCES for b in BUILDS if NVRTC < USUAL_NVRTC),
    *(Gate(s, b, LARGE, ("sm_90a",)) for s in SOURCES for b in BUILDS),
    *(Gate(s, b, SMALL, ("sm_75",)) for s in SOURCES for b in BUILDS),
    *(Gate(s, "fast", TIMED, ("sm_80", "sm_90")) for s in SOURCES),
    *(
        Gate(s, "fast", USUAL, ("sm_75", "sm_120"), ("-DSCORES_AS_ELEMENT",))
        for s in ("naive", "naive_backward")
    ),
    *(
        Gate(s, b, USUAL, ("sm_90a",), ("-DSOFTCAP", "-DALIBI", "-DBIAS", "-DSINK", "-DTHRESHOLD"))
        for s in SOURCES
        for b in BUILDS
    ),
    *(Gate(s, b, USUAL, ("sm_90a",), ("-DPATTERN",)) for s in SOURCES for b in BUILDS),
    *(
        Gate(s, b, USUAL, ("sm_90a",), ("-DOUTPUT_GATE",))
        for s in SOURCES
        for b in BUILDS
        if s not in MAPS and "backward" not in s
    ),
    *(
        Gate(s, b, USUAL, ("sm_90a",), ("-DROUND_PAIRS",))
        for s in SOURCES
        for b in BUILDS
        if s not in MAPS
    ),
    *(
        Gate("mla", b, LATENT, ("sm_80", "sm_90a", "sm_100", "sm_120"), value_dim=LATENT_VALUES)
        for b in BUILDS
    ),
    *(
        Gate("flash2_backward", "in_turn", tiles, ("sm_75", "sm_90a"), ("-DIN_TURN",))
        for tiles in (USUAL, SMALL, TIMED)
    ),
    Gate("flash2_mma", "fast", TENSOR_64, AMPERE, CAUSAL),
    *(
        Gate("flash2_mma", "fast", tiles, ("sm_80", "sm_89", "sm_90", "sm_120"), mask)
        for tiles in (TENSOR_128, TENSOR_8_WARPS)
        for mask in (CAUSAL, UNMASKED)
    ),
    Gate("flash2_mma", "fast", TENSOR_64, ("sm_80",), (*UNMASKED, "-DSWIZZLE=0")),
    *(
        Gate("ladder", "fast", LADDER, ("sm_80", "sm_90", "sm_120"), ("-DCAUSAL=1", rung))
        for rung in ("-DRUNG=1", "-DRUNG=2")
    ),
    # Of sm_80 alone by its own choice; on sm_90 it would spill 120 bytes at d = 128.
    Gate("flash2_mma", "fast", TENSOR_64, ("sm_80", "sm_90"), ONE_BUFFER),
    Gate("flash2_mma", "fast", TENSOR_128, ("sm_80", "sm_89", "sm_120"), ONE_BUFFER),
]


def usage(gate: Gate, arch: str) -> dict[str, Usage]:
    """Return what the kernels of a gate take, compiled now or by an earlier run."""
    text = whole_source(gate.source)
    named = [field.name for field in fields(Usage)]
    said = repr((text, gate.options, OPTIONS, arch, nvrtc_version(), named))
    kept = cache_folder() / f"usage-{hashlib.sha256(said.encode()).hexdigest()[:24]}.json"
    if not kept.exists():
        compiled = compile_cubin(text, f"{gate.source}.cu", arch, gate.options)
        assert compiled.code.startswith(b"\x7fELF")
        found = {name: asdict(taken) for name, taken in compiled.usage.items()}
        beside = kept.with_suffix(f".{os.getpid()}.part")
        beside.write_text(json.dumps(found), encoding="utf-8")
        beside.replace(kept)
    found = json.loads(kept.read_text(encoding="utf-8"))
    return {name: Usage(**figures) for name, figures in found.items()}


def over_limits(
    usage: dict[str, Usage], allowed: dict[tuple[str, str], Limit], build: str
) -> list[str]:
    """Return in words where a build is over its limits; a kernel without limits counts, too."""
    faults = []
    for kernel, taken in usage.items():
        limit = allowed.get((kernel, build))
        if limit is None:
            faults.append(f"{kernel} {build}: no limits stand beside it")
            continue
        for quantity, unit in (
            ("registers", "registers"),
            ("stack", "bytes of stack"),
            ("spilled", "bytes spilled"),
            ("code", "bytes of code"),
        ):
            got, most = getattr(taken, quantity), getattr(limit, quantity)
            if most is not None and got > most:
                faults.append(f"{kernel} {build}: {got} {unit}, at most {most}")
    return faults


@pytest.mark.sweep(keep=1)
@needs_nvrtc
@pytest.mark.parametrize("gate", GATES, ids=str)
def test_kernels_compile_within_their_limits(gate: Gate) -> None:
    text = whole_source(gate.source)
    # One after the other: NVRTC takes one at a time.
    found = [usage(gate, arch) for arch in gate.architectures]
    allowed, faults = limits(text, gate.value_dim, NVRTC), []
    for arch, kernels in zip(gate.architectures, found, strict=True):
        assert set(kernels) == set(kernel_names(text))
        faults += [f"{arch}: {fault}" for fault in over_limits(kernels, allowed, gate.build)]
    assert faults == []


FREE = re.compile(r"(?<![.\w])(?:add|sub|mul)(?:\.ftz)?\.f32\b.*")
"""Arithmetic that the assembler may still join, product to sum: not that with .rn, nor atomics."""


@pytest.mark.sweep(keep=2)
@needs_nvrtc
@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("name", [*SOURCES, "flash2_mma"])
def test_products_are_joined_to_sums_only_where_it_is_written(name: str, build: Build) -> None:
    """So that the trace build rounds as the fast build does, whatever a compiler prefers."""
    tiles, target, more = USUAL, "compute_75", ()
    if name == "flash2_mma":
        tiles, target, more = TENSOR_64, "compute_80", CAUSAL
    gate = Gate(name, build, tiles, (target,), more)
    ptx = compile_ptx(whole_source(name), f"{name}.cu", target, gate.options)
    assert "fma.rn.ftz.f32" in ptx
    assert FREE.findall(ptx) == []


def test_every_source_is_gated() -> None:
    sources = {path.stem for path in FOLDER.glob("*.cu")}
    assert sources == {gate.source for gate in GATES}


@pytest.mark.parametrize("source", sorted(path.stem for path in FOLDER.glob("*.cu")))
def test_every_build_has_limits(source: str) -> None:
    text = whole_source(source)
    builds = {gate.build for gate in GATES if gate.source == source}
    for values, nvrtc in product((0, LATENT_VALUES), (12, 13)):
        stated = limits(text, values, nvrtc)
        assert set(stated) == {(k, b) for k in kernel_names(text) for b in builds}
    assert re.search(r"^\s*#\s*include", text, re.MULTILINE) is None
    assert len(re.findall("__global__ void", text)) == len(kernel_names(text))


# --- the gate can fail --------------------------------------------------------------------------


@needs_nvrtc
@pytest.mark.parametrize(
    ("was", "planted", "found"),
    [
        ("registers", "at most 20 registers, 0 bytes of stack, 0 bytes spilled",
         "registers, at most 20"),
        ("code", "at most 128 registers, 0 bytes of stack, 0 bytes spilled, 1 KiB of code",
         "bytes of code, at most 1024"),
        ("missing", "", "no limits stand beside it"),
    ],
)  # fmt: skip
def test_too_small_a_limit_is_found(was: str, planted: str, found: str) -> None:
    gate = next(g for g in GATES if g.source == "flash2")
    text = whole_source("flash2")
    limit = r"^// ptxas flash2 fast: (at most .*)"
    changed = re.sub(limit, lambda m: m[0].replace(m[1], planted), text, flags=re.MULTILINE)
    assert changed != text, was
    faults = over_limits(usage(gate, "sm_90a"), limits(changed), "fast")
    assert len(faults) == 1
    assert faults[0].endswith(found)


def test_a_compilers_own_limits_hold_for_it_alone() -> None:
    line = "// ptxas some fast{}: at most {} registers, 0 bytes of stack, 0 bytes spilled\n"
    text = line.format("", 64) + line.format(" NVRTC 12", 72)
    assert {n: limits(text, nvrtc=n)["some", "fast"].registers for n in (12, 13)} == {
        12: 72,
        13: 64,
    }


@needs_nvrtc
def test_spills_are_found() -> None:
    """A kernel with so many live numbers that no register file holds them."""
    code = """
// ptxas crowded fast: at most 255 registers, 0 bytes of stack, 0 bytes spilled
extern "C" __global__ void __launch_bounds__(1024) crowded(float* x)
{
    float kept[128];
    #pragma unroll
    for (int n = 0; n < 128; ++n) kept[n] = x[n * 1024 + threadIdx.x];
    __syncthreads();
    #pragma unroll
    for (int n = 0; n < 128; ++n) x[(127 - n) * 1024 + threadIdx.x] = kept[n];
}
"""
    taken = compile_cubin(code, "crowded.cu", "sm_80").usage
    faults = over_limits(taken, limits(code), "fast")
    assert [fault.split(": ")[1].split(" ", 1)[1] for fault in faults] == [
        "bytes of stack, at most 0",
        "bytes spilled, at most 0",
    ]


@needs_nvrtc
def test_an_error_is_told_in_the_compilers_words() -> None:
    with pytest.raises(KernelError, match=r'(?s)^NVRTC refuses bad\.cu .*"nowhere" is undefined'):
        compile_cubin('extern "C" __global__ void f() { nowhere = 1; }', "bad.cu", "sm_80")
    with pytest.raises(KernelError, match=r"(?s)refuses headers\.cu .*cuda_fp16\.h"):
        compile_cubin("#include <cuda_fp16.h>", "headers.cu", "sm_80")


@needs_nvrtc
def test_blocks_that_wait_for_their_turn_only_read_and_sleep_between() -> None:
    """An atomic operation of each would hold up the block that they wait for."""
    gate = next(g for g in GATES if g.build == "in_turn")
    ptx = compile_ptx(whole_source(gate.source), "turns.cu", "compute_75", gate.options)
    lines = ptx.splitlines()
    read = max(n for n, line in enumerate(lines) if "ld.acquire.gpu" in line)
    start = max(n for n, line in enumerate(lines[:read]) if line.startswith("$L"))
    back = next(n for n in range(read, len(lines)) if f"bra \t{lines[start][:-1]};" in lines[n])
    waiting = "\n".join(lines[start:back])
    assert "nanosleep.u32" in waiting
    assert "atom." not in waiting
    assert "membar" not in waiting


LOG = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'first' for 'sm_90a'
ptxas info    : Function properties for first
ptxas         .     8 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads
ptxas info    : Used 128 registers, used 1 barriers, 8 bytes cumulative stack size, 20 bytes smem
ptxas info    : Compile time = 345.791 ms
ptxas info    : Compiling entry function 'second' for 'sm_90a'
ptxas info    : Function properties for second
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 31 registers, 384 bytes cmem[0]
"""


def test_the_log_is_read() -> None:
    assert parse_usage(LOG) == {"first": Usage(128, 8, 12, 16, 20), "second": Usage(31, 0, 0, 0, 0)}
    assert parse_usage(LOG)["first"].spilled == 28


def test_a_log_in_other_words_is_no_pass() -> None:
    with pytest.raises(KernelError, match="does not say what second takes"):
        parse_usage(LOG.replace("Used 31 registers", "31 registers in use"))


def test_without_nvrtc_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "kernels.build.nvrtc.nvrtc_reason", lambda: "NVRTC is not installed (pip ...)"
    )
    with pytest.raises(KernelError, match=r"^NVRTC is not installed"):
        compile_cubin("", "empty.cu", "sm_80")
