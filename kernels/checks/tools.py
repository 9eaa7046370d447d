"""Checks that start processes: cubins without NVRTC, compute-sanitizer, Nsight Compute."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernels.build.nvrtc import nvrtc_reason
from kernels.checks.case import TENSOR_CORES, options_of, read_left, run, write_cubin
from kernels.checks.left import Left, differing
from kernels.checks.outcome import CannotRunError, Finding, ReportTable, Setting, capability
from kernels.checks.process import ended
from kernels.checks.variants import small, variants
from kernels.cuda.specs import KERNELS, kernels_of
from kernels.cuda.tensor_core import CAPABILITY, HEAD_DIMS
from simulator.problem.latent import fitting
from simulator.problem.scenario import parse_scenario
from simulator.problem.workload import Workload, resolve
from simulator.program.algorithms import tile_program
from simulator.program.traffic import compulsory_bytes
from simulator.study.gpu_report import WORKLOAD, signature

SECONDS = 900  # seconds after which a tool is stopped
EXIT_OF_FAULTS = 86
"""Exit status of compute-sanitizer when it has found something; kernels.checks.case never uses
it."""
MORE, LESS = 1.01, 0.99
"""Factors by which DRAM bytes may be above the requested ones (counters include instructions,
arguments and the rest of a burst) and below the least (tools cannot empty caches completely)."""

BUILDS = ("fast", "trace")


def small_scenarios() -> list[dict[str, Any]]:
    """Return a small scenario for each algorithm."""
    return [small(algorithm) for algorithm in KERNELS]


def dram_scenario(algorithm: str, length: int) -> dict[str, Any]:
    """Return the scenario whose DRAM bytes are measured, without a mask where there may be none."""
    attention = {"heads": 16, "seqlen_q": length, "head_dim": 128, "dtype": "float16"}
    return fitting(
        {"attention": {**attention, "algorithm": algorithm}, "tiling": {"rows": 32, "cols": 32}}
    )


def tensor_scenarios() -> list[dict[str, Any]]:
    """Return a small scenario for each head_dim of the tensor-core kernel.

    Each has three row blocks (one sees nothing, one sees little), three column blocks, and tails.
    """
    return [
        {
            "attention": {
                "heads": 2,
                "kv_heads": 1,
                "seqlen_q": 370,
                "seqlen_k": 170,
                "head_dim": head_dim,
                "dtype": "float16",
            },
            "mask": {"causal": True},
        }
        for head_dim in HEAD_DIMS
    ]


def case_command(tables: Sequence[dict[str, Any]], builds: Sequence[str], place: Path) -> list[str]:
    """Return the command that runs some scenarios in another process; write them to a folder."""
    listed = place / "scenarios.json"
    listed.write_text(json.dumps(tables), encoding="utf-8")
    chosen = [word for build in builds for word in ("--build", build)]
    return [sys.executable, "-m", f"{__package__}.case", str(listed), *chosen]


def done(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a command in the checkout until it ends."""
    try:
        return ended(command, SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotRunError(f"{Path(command[0]).name} did not finish: {error}") from error


def tool(name: str) -> str:
    """Return the path of a tool of the CUDA toolkit, which is often not on PATH."""
    stated = (os.environ.get(variable) for variable in ("CUDA_PATH", "CUDA_HOME"))
    homes = [Path(home) for home in (*stated, "/usr/local/cuda") if home]
    folders = [home / part for home in homes for part in ("bin", "compute-sanitizer")]
    folders += sorted(Path("/opt/nvidia/nsight-compute").glob("*"), reverse=True)
    for path in (name, *(str(folder / name) for folder in folders)):
        found = shutil.which(path)
        if found:
            return found
    raise CannotRunError(f"{name} is not installed (it comes with the CUDA toolkit)")


@contextmanager
def folder() -> Iterator[Path]:
    """Provide a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="tilescope-check-") as path:
        yield Path(path)


# --- cubins -------------------------------------------------------------------------------------


def cubins(on: Setting) -> Finding:
    """Run kernels from cubins in a process that cannot compile; compare with compiled ones."""
    if nvrtc_reason():
        raise CannotRunError(nvrtc_reason())
    import cupy

    arch = f"sm_{cupy.cuda.Device(0).compute_capability}"
    tables = small_scenarios()
    want = [output for table in tables for output in run(table, BUILDS, on)]
    with folder() as place:
        for table in tables:
            workload = resolve(parse_scenario(table))
            for build in BUILDS:
                write_cubin(place, workload.algorithm, options_of(workload, build), arch)
        output = place / "o.npz"
        command = [*case_command(tables, BUILDS, place), "--cubins", str(place), "-o", str(output)]
        finished = done(command)
        if finished.returncode:
            return Finding(
                f"cubins for {arch}, NVRTC forbidden", (finished.stderr.strip()[-1500:],)
            )
        got = read_left(output)
    ran = [(resolve(parse_scenario(table)), build) for table in tables for build in BUILDS]
    return Finding(
        f"{len(ran)} cubins for {arch} run where NVRTC is forbidden: all that they write is what "
        "the kernels write that it compiles",
        tuple(cubin_faults(ran, got, want)),
    )


def cubin_faults(
    ran: Sequence[tuple[Workload, str]], got: Sequence[Left], want: Sequence[Left]
) -> list[str]:
    """Return the tensors in which cubins and compiled kernels differ."""
    if len(got) != len(want):
        return [f"{len(got)} outputs, expected {len(want)}"]
    return [
        f"{w.algorithm} {build}: {name} is not what the kernel leaves that NVRTC compiled"
        for (w, build), ours, theirs in zip(ran, got, want, strict=True)
        for name in differing(w, ours, theirs)
    ]


# --- compute-sanitizer --------------------------------------------------------------------------


def sanitized(on: Setting, what: str) -> Finding:
    """Look for faults with a tool of compute-sanitizer.

    memcheck finds accesses outside of allocated memory, racecheck shared memory written and read
    without a barrier in between, synccheck barriers that not all threads reach, initcheck reads of
    memory that nothing was written to.
    """
    faults: list[str] = []
    with variants() as more, folder() as place:
        watched: list[tuple[Sequence[dict[str, Any]], Sequence[str]]]
        watched = [([*small_scenarios(), *more.values()], BUILDS)]
        if (capability(on) or 0) >= CAPABILITY:
            watched.append((tensor_scenarios(), (TENSOR_CORES,)))
        for tables, builds in watched:
            finished = done(sanitizer_command(what, case_command(tables, builds, place)))
            faults += sanitizer_faults(finished.stdout + finished.stderr, finished.returncode)
    return Finding(
        f"compute-sanitizer {what} over fast and trace build of {len(KERNELS)} algorithms, "
        f"{len(watched[0][0])} scenarios"
        + (", and the tensor-core kernel" if len(watched) > 1 else ", no tensor cores here"),
        tuple(faults),
    )


def sanitizer_command(what: str, watched: Sequence[str]) -> list[str]:
    """Return the command that watches another command."""
    return [
        tool("compute-sanitizer"),
        f"--tool={what}",
        f"--error-exitcode={EXIT_OF_FAULTS}",
        "--target-processes=all",
        "--report-api-errors=no",  # CuPy tries things that may fail, and handles that
        "--print-limit=20",
        *watched,
        "--no-pool",
    ]


def sanitizer_faults(said: str, status: int) -> list[str]:
    """Return the faults that compute-sanitizer has found.

    Raises CannotRunError: it has checked nothing: it does not support this GPU or system.
    """
    lines = [line.removeprefix("=========").strip() for line in said.splitlines()]
    summary = [line for line in lines if re.match(r"(ERROR|RACECHECK) SUMMARY: ", line)]
    if not summary:
        raise CannotRunError(f"compute-sanitizer gives no summary (exit {status}): {said[-600:]}")
    clean = all(re.search(r"SUMMARY: 0 (errors?|hazards)", line) for line in summary)
    if clean:
        words = f"the program under it ended with status {status}: {said[-600:]}"
        return [words] if status else []
    found = [
        line
        for line in lines
        if re.match(r"(Invalid|Uninitialized|Error|Warning|Barrier|Race|Program hit)", line)
        or line in summary
    ]
    return found[:20]


# --- Nsight Compute -----------------------------------------------------------------------------

DRAM = ("dram__bytes_read.sum", "dram__bytes_write.sum")


@dataclass(frozen=True, slots=True)
class DramBytes:
    """DRAM bytes of one kernel, from a hardware counter."""

    kernel: str  # its name
    read: int  # read, write: bytes
    write: int


def dram_bytes(on: Setting) -> Finding:
    """Check that measured DRAM bytes are between the compulsory and the requested ones."""
    ncu = tool("ncu")
    import cupy

    cache = int(cupy.cuda.Device(0).attributes["L2CacheSize"])
    length = 2048 if on.quick else 8192
    faults, rows, figures = [], [], []
    for algorithm in KERNELS:
        table = dram_scenario(algorithm, length)
        workload = resolve(parse_scenario(table))
        with folder() as place:
            log = place / "ncu.csv"
            command = [
                ncu,
                "--clock-control=none",
                "--target-processes=all",
                "--csv",
                "--print-units=base",
                f"--metrics={','.join(DRAM)}",
                f"--kernel-name=regex:^({'|'.join(kernels_of(workload))})$",
                f"--log-file={log}",
                *case_command([table], ["fast"], place),
            ]
            finished = done(command)
            said = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
        seen = parse_ncu(said)
        if len(seen) != len(kernels_of(workload)):
            words = (said + finished.stdout + finished.stderr).strip()[-800:]
            raise CannotRunError(f"ncu has measured nothing (exit {finished.returncode}): {words}")
        read, write = sum(k.read for k in seen), sum(k.write for k in seen)
        bounds = dram_bounds(workload, cache)
        faults += dram_faults(algorithm, read + write, bounds)
        rows.append((algorithm, *(f"{n / 1e6:.1f}" for n in (bounds[0], read, write, bounds[1]))))
        figures.append(dram_figure(workload, read, write, bounds))
    header = ("algorithm", "minimum", "DRAM read", "DRAM write", "requested")
    return Finding(
        f"minimum ≤ DRAM ≤ requested bytes, 16 heads, N = {length}, d = 128, float16",
        tuple(faults),
        (ReportTable("DRAM bytes by ncu, MB", header, tuple(rows)),),
        {"l2_bytes": cache, "dram": figures},
    )


def dram_figure(w: Workload, read: int, write: int, bounds: tuple[int, int, int]) -> dict[str, Any]:
    """Return the report's entry for a workload's DRAM bytes; `measured_dram` reads it."""
    return {
        WORKLOAD: signature(w),
        "algorithm": w.algorithm,
        "read": read,
        "write": write,
        "bounds": bounds,
    }


def parse_ncu(said: str) -> list[DramBytes]:
    """Return the DRAM bytes of each kernel, in the order of their launches.

    said: the output of ``ncu --csv --print-units=base``: other lines, then a table with one line
        for each metric of each kernel.
    """
    lines = said.splitlines()
    start = next((n for n, line in enumerate(lines) if line.startswith('"ID"')), len(lines))
    found: dict[str, dict[str, int]] = {}
    names: dict[str, str] = {}
    for row in csv.DictReader(lines[start:]):
        if row.get("Metric Name") not in DRAM or row.get("Metric Unit") != "byte":
            continue
        number = float(row["Metric Value"].replace(",", ""))
        found.setdefault(row["ID"], {})[row["Metric Name"]] = round(number)
        names[row["ID"]] = row["Kernel Name"].partition("(")[0]
    return [
        DramBytes(names[i], values[DRAM[0]], values[DRAM[1]])
        for i, values in found.items()
        if set(values) == set(DRAM)
    ]


def dram_bounds(w: Workload, cache: int) -> tuple[int, int, int]:
    """Return compulsory and requested bytes, and the least that DRAM can have moved.

    The least is below the compulsory bytes, because the last writes of a kernel stay in L2: at most
    the size of the cache for each launch. ncu empties the caches before each launch, so no read is
    saved.
    """
    compulsory = compulsory_bytes(w)
    totals = tile_program(w).totals
    launches = len(kernels_of(w))
    stays = min(totals.write_bytes, launches * cache)
    return compulsory, totals.read_bytes + totals.write_bytes, compulsory - stays


def dram_faults(name: str, measured: int, bounds: tuple[int, int, int]) -> list[str]:
    """Return in words how DRAM bytes are outside the bounds."""
    compulsory, requested, least = bounds
    if measured < LESS * least:
        return [
            f"{name}: {measured} bytes, fewer than the minimum of {compulsory} less what stays "
            f"in L2, {least}"
        ]
    if measured > MORE * requested:
        return [f"{name}: {measured} bytes, more than the requested {requested}"]
    return []
