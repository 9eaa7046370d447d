"""Checks of the kernels' numbers and counts; they run on any device, so tests use a CPU."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from kernels.checks.left import ROUNDING, Left, differing, left_by
from kernels.checks.outcome import ROOT, CannotRunError, Finding, Setting, capability
from kernels.checks.variants import small, variants
from kernels.cuda.engine import KernelEngine, widened
from kernels.cuda.fast import FastRun
from kernels.cuda.launch import Device
from kernels.cuda.linear import kernel_engine
from kernels.cuda.specs import KERNELS
from kernels.cuda.tensor_core import BUILDS, CAPABILITY, TensorCoreRun
from kernels.devices.host.device import HostDevice
from kernels.errors import KernelError
from simulator.base.assets import SCENARIOS
from simulator.base.dtypes import F32, F64
from simulator.engines.reference import reference_rows
from simulator.problem.latent import fitting
from simulator.problem.scenario import Scenario, load_scenario, parse_scenario
from simulator.problem.workload import Inputs, Workload, read_inputs, resolve
from simulator.program.algorithms import ALGORITHMS, BASELINE, tile_program
from simulator.program.tile_program import Counters
from simulator.run.cosimulation import verify
from simulator.run.trace import Trace

Scenarios = Mapping[str, Scenario]

LONG = 2**14  # query rows from which quick checks leave a scenario out
REPEATS = 3  # runs that must give the same bits: if they do not, threads race

CASES: dict[str, dict[str, Any]] = {
    "float16, grouped heads, tails": {
        "attention": {"heads": 6, "kv_heads": 2, "seqlen_q": 333, "seqlen_k": 500, "head_dim": 64},
        "mask": {"causal": True},
        "tiling": {"rows": 64, "cols": 64},
    },
    "bfloat16, window and sinks, value_dim of its own": {
        "attention": {"seqlen_q": 300, "head_dim": 80, "value_dim": 48, "dtype": "bfloat16"},
        "mask": {"causal": True, "window": 70, "sinks": 5},
        "tiling": {"rows": 48, "cols": 40},
    },
    "float32, more queries than keys": {
        "attention": {"heads": 2, "seqlen_q": 200, "seqlen_k": 90, "head_dim": 40},
        "mask": {"causal": True},
        "tiling": {"rows": 16, "cols": 24},
    },
    "float16, d = 128": {
        "attention": {"heads": 4, "seqlen_q": 1024, "head_dim": 128, "dtype": "float16"},
        "tiling": {"rows": 64, "cols": 64},
    },
}
"""Shapes in addition to the demos; each runs with every algorithm."""
IN_TURN: dict[str, dict[str, Any]] = {
    "in turn, 512 blocks": {
        "attention": {"heads": 32, "seqlen_q": 1024, "head_dim": 64, "deterministic": True},
        "tiling": {"rows": 64, "cols": 64},
    }
}
"""More blocks than a GPU runs at once, so most wait: for algorithms that add in turn."""

TENSOR_CASES: dict[str, dict[str, Any]] = {
    "d = 64, grouped heads, tails": {
        "attention": {"heads": 4, "kv_heads": 2, "seqlen_q": 300, "head_dim": 64}
    },
    "d = 64, causal, fewer keys": {
        "attention": {"heads": 2, "seqlen_q": 200, "seqlen_k": 130, "head_dim": 64},
        "mask": {"causal": True},
    },
    "d = 128, causal": {
        "attention": {"heads": 2, "seqlen_q": 1000, "head_dim": 128},
        "mask": {"causal": True},
    },
    "d = 128, more keys": {
        "attention": {"heads": 3, "kv_heads": 1, "seqlen_q": 130, "seqlen_k": 700, "head_dim": 128}
    },
    "d = 128, a row block that sees nothing": {
        "attention": {"heads": 2, "seqlen_q": 300, "seqlen_k": 100, "head_dim": 128},
        "mask": {"causal": True},
    },
}
"""Shapes on which the tensor-core kernel is compared with float64."""
CROWDED: dict[str, dict[str, Any]] = {
    "d = 64, causal, 288 blocks": {
        "attention": {"heads": 9, "kv_heads": 3, "seqlen_q": 4096, "head_dim": 64},
        "mask": {"causal": True},
    },
    "d = 128, 288 blocks": {
        "attention": {"heads": 9, "kv_heads": 3, "seqlen_q": 4096, "head_dim": 128}
    },
}
"""More blocks than even large GPUs run at once, two on each multiprocessor, and long rows of tiles:
here a race would show first. A CPU would need minutes."""
SAMPLED = 128  # query rows that are compared together: a row block of the tensor-core kernel
WORN = 0.02
"""Error of O that rounding explains, relative to the root mean square of O. If P is rounded to
float16, the error is at most some 0.002; if one tile among 256 is wrong, the error is some 0.1."""

CONFORMANCE = ROOT / "tests" / "conformance"


def first_kernel(on: Setting, host: Callable[[], Device] = HostDevice) -> Finding:
    """Run naive attention once, at the smallest size, and compare it with its build for the CPU.

    S consists of products and sums alone, so all its bits are the same; P and O are near, because a
    GPU rounds exponentials in another way.

    host: returns the CPU as a device; without a compiler float64 takes its place.
    """
    w, inputs = numbers_of(parse_scenario(small(BASELINE.name)))
    run = FastRun(w, inputs, on.device)
    run.launch()
    got = left_by(run.tensors, on.device)
    o = widened(got["o"], w.dtype)
    faults = [sample_fault(samples(w, inputs), lambda head: o[head])]
    try:
        other = FastRun(w, inputs, host())
    except KernelError as error:
        reason = str(error).partition("\n")[0]
        said = f"O against float64; S is compared with nothing: {reason}"
    else:
        other.launch()
        want = left_by(other.tensors, host())
        faults += ["S has other bits than on the CPU"] * (got["s"].tobytes() != want["s"].tobytes())
        said = "all bits of S as on the CPU, O against float64"
    return Finding(
        f"{w.algorithm}, {w.seqlen_q} × {w.seqlen_k}: {said}", tuple(filter(None, faults))
    )


def conformance(on: Setting, folder: Path = CONFORMANCE) -> Finding:
    """Run the conformance cases of a folder: arrays within their tolerances, counts exact."""
    judge = _judge()
    cases = judge.find_cases(folder)
    faults = []
    for case in cases:

        def found(case: Any = case) -> list[str]:
            trace, _ = traced(load_scenario(case), on)
            summary, arrays = trace.run(keep_arrays=True)
            want = json.loads(case.with_suffix(".expected.json").read_text(encoding="utf-8"))
            tolerance = want.pop("tolerance")
            with np.load(case.with_suffix(".expected.npz")) as expected:
                wrong: list[str] = judge.array_faults(arrays, expected, tolerance)
            return wrong + list(judge.count_faults(summary, want))

        faults += attempted(case.stem, found)
    return Finding(f"{len(cases)} cases of tests/conformance", tuple(faults))


def against_float64(on: Setting, chosen: Scenarios | None = None) -> Finding:
    """Compare every op of every tile of the scenarios, or of the demos, with float64."""
    shares: dict[str, float] = {}
    faults = []
    visits = 0
    for name, scenario in (chosen or scenarios(on, shipped_only=True)).items():

        def found(name: str = name, scenario: Scenario = scenario) -> list[str]:
            nonlocal visits
            verdict = verify(traced(scenario, on)[0])
            visits += verdict.visits
            shares[name] = verdict.largest
            return [] if verdict.difference is None else [str(verdict)]

        faults += attempted(name, found)
    largest = max(shares.values(), default=float("nan"))
    return Finding(
        f"{visits} visits of {len(shares)} scenarios, op by op; the largest error is "
        f"{largest:.0%} of what is allowed",
        tuple(faults),
        figures={"largest_share_of_tolerance": shares},
    )


def same_bits(on: Setting, chosen: Scenarios | None = None) -> Finding:
    """Compare fast and trace build to the last bit, and the fast build with itself."""

    def found(scenario: Scenario) -> list[str]:
        workload, inputs = numbers_of(scenario)
        return bit_faults(workload, inputs, on)

    with tried_scenarios(on, chosen) as tried:
        return Finding(
            f"trace = fast build, bit for bit, and {REPEATS} runs of the fast build alike: "
            f"{len(tried)} workloads",
            faults_of_each(tried, found),
        )


def counted(on: Setting, chosen: Scenarios | None = None) -> Finding:
    """Compare the bytes that the kernels count with the tile program's, tensor by tensor."""

    def found(scenario: Scenario) -> list[str]:
        trace, engine = traced(scenario, on)
        return count_faults(engine.counted(), trace.program.totals)

    with tried_scenarios(on, chosen) as tried:
        return Finding(
            f"requested bytes of every tensor and FLOPs, exactly: {len(tried)} workloads",
            faults_of_each(tried, found),
        )


def tensor_cores(on: Setting, cases: Mapping[str, dict[str, Any]] = TENSOR_CASES) -> Finding:
    """Compare the tensor-core kernel's builds with float64; a GPU runs `CROWDED`, too."""
    able = capability(on)
    if able is not None and able < CAPABILITY:
        raise CannotRunError(
            f"this GPU is sm_{able}: tensor cores as used begin at sm_{CAPABILITY}"
        )
    faults, count = [], 0
    tables = {**cases, **(CROWDED if on.device.name == "cupy" else {})}
    for name, table in tables.items():
        for dtype in ("float16", "bfloat16"):
            for build in BUILDS:
                count += 1

                def found(
                    table: dict[str, Any] = table, dtype: str = dtype, build: str = build
                ) -> list[str]:
                    attention = {**table["attention"], "dtype": dtype}
                    w, inputs = numbers_of(parse_scenario({**table, "attention": attention}))
                    run = TensorCoreRun(w, inputs, on.device, able, *BUILDS[build])
                    wrong = repeated_faults(run, on)
                    o = widened(on.device.download(run.tensors.o), w.dtype)
                    assert run.tensors.lse is not None
                    lse = on.device.download(run.tensors.lse)
                    return wrong + rounding_faults(w, inputs, o, lse)

                faults += attempted(f"{name}, {dtype}, {build}", found)
    return Finding(
        f"O and lse of {count} workloads against float64, {REPEATS} runs of each alike",
        tuple(faults),
    )


# --- what they share ----------------------------------------------------------------------------


def scenarios(on: Setting, *, shipped_only: bool = False) -> dict[str, Scenario]:
    """Return the demos and, unless `shipped_only`, `CASES` with every algorithm, and `IN_TURN`."""
    found = {}
    for path in sorted(SCENARIOS.glob("*.toml")):
        scenario = load_scenario(path)
        if not (on.quick and (scenario.attention.seqlen_q or 0) >= LONG):
            found[path.stem] = scenario
    if shipped_only:
        return found
    for name, table in {**CASES, **IN_TURN}.items():
        for algorithm in KERNELS if name in CASES else _adding():
            attention = {**table["attention"], "algorithm": algorithm}
            fit = fitting({**table, "attention": attention})
            found[f"{algorithm}, {name}"] = parse_scenario(fit)
    return found


@contextmanager
def tried_scenarios(on: Setting, chosen: Scenarios | None = None) -> Iterator[Scenarios]:
    """Provide the chosen scenarios, or else all; their files exist until the context ends."""
    if chosen:
        yield chosen
        return
    with variants() as more:
        yield {**scenarios(on), **{name: parse_scenario(table) for name, table in more.items()}}


def _adding() -> list[str]:
    """Return the algorithms whose thread blocks add to the same sums."""
    return [name for name, algorithm in ALGORITHMS.items() if algorithm.adds]


def numbers_of(scenario: Scenario) -> tuple[Workload, Inputs]:
    """Return a scenario's workload, and Q, K and V."""
    workload = resolve(scenario)
    return workload, read_inputs(workload)


def traced(scenario: Scenario, on: Setting) -> tuple[Trace, KernelEngine]:
    """Return a scenario's trace on the device, and its engine."""
    workload, inputs = numbers_of(scenario)
    engine = kernel_engine(workload, inputs, on.device)
    return Trace(tile_program(workload), engine, inputs), engine


def attempted(name: str, found: Callable[[], list[str]]) -> list[str]:
    """Return the faults that a function finds, under a name; an error in it is a fault, too."""
    try:
        return [f"{name}: {fault}" for fault in found()]
    except Exception as error:
        return [f"{name}: {type(error).__name__}: {str(error)[:1000]}"]


def faults_of_each(tried: Scenarios, found: Callable[[Scenario], list[str]]) -> tuple[str, ...]:
    """Return the faults that a function finds in each scenario, under the scenario's name."""
    return tuple(
        fault
        for name, scenario in tried.items()
        for fault in attempted(name, partial(found, scenario))
    )


def bit_faults(workload: Workload, inputs: Inputs, on: Setting) -> list[str]:
    """Return the tensors that differ between builds, or from run to run."""
    fast = FastRun(workload, inputs, on.device)
    faults = repeated_faults(fast, on)
    first = left_by(fast.tensors, on.device)
    trace = left_by(kernel_engine(workload, inputs, on.device).run_everything(), on.device)
    return faults + [
        f"{name} differs between fast and trace build" for name in differing(workload, trace, first)
    ]


def repeated_faults(run: FastRun | TensorCoreRun, on: Setting) -> list[str]:
    """Launch `REPEATS` times; return the tensors that differ from the first launch's."""
    first: Left = {}
    faults = []
    for count in range(REPEATS):
        run.launch()
        left = left_by(run.tensors, on.device)
        first = first or left
        faults += [
            f"{name} differs in run {count}" for name in differing(run.workload, left, first)
        ]
    return faults


def count_faults(got: Counters, want: Counters) -> list[str]:
    """Return which counts differ from the planned ones."""
    faults = []
    for way in ("read", "write"):
        ours, theirs = getattr(got, way), getattr(want, way)
        for tensor in sorted({*ours, *theirs}):
            counts = ours.get(tensor, 0), theirs.get(tensor, 0)
            if counts[0] != counts[1]:
                faults.append(f"{way} {tensor}: {counts[0]} bytes, expected {counts[1]}")
    if got.flops != want.flops:
        faults.append(f"{got.flops} FLOPs, expected {want.flops}")
    return faults


def rounding_faults(w: Workload, inputs: Inputs, o: F32, lse: F32) -> list[str]:
    """Return the heads whose O or lse is further from float64 than rounding explains.

    P is rounded to the dtype before it is multiplied by V, so a weighted mean of V is off by at
    most `ROUNDING` times the largest value, and O is rounded once more. In float16 the smallest
    weights are rounded to multiples of 2**-24, whatever their size. Sums are float32 and
    exponentials have base 2: 2**-16 is more than enough for both.
    """
    unit, largest = ROUNDING[w.dtype], float(np.abs(inputs.v).max())
    faults = []
    for head in range(w.heads):
        exact, exact_lse = reference_rows(w, inputs, head, range(w.seqlen_q))
        allowed = unit * (largest + np.abs(exact)) + (2.0**-16 + w.seqlen_k * 2.0**-25) * largest
        blind = np.isneginf(exact_lse)
        # Written so that NaN, for which every comparison is false, is a fault.
        if not np.all(np.abs(o[head] - exact) <= allowed):
            faults.append(f"O of head {head} is off by {np.max(np.abs(o[head] - exact)):.3g}")
        near = np.abs(lse[head][~blind] - exact_lse[~blind]) <= 2.0**-16 * (
            1 + np.abs(exact_lse[~blind])
        )
        if not np.array_equal(np.isneginf(lse[head]), blind) or not np.all(near):
            faults.append(f"lse of head {head}")
    return faults


@dataclass(frozen=True, slots=True)
class Sample:
    """Rows of O with their right values."""

    head: int  # query head
    rows: range  # query rows
    exact: F64  # (rows, dv) float64, O


def samples(w: Workload, inputs: Inputs) -> list[Sample]:
    """Return the samples of a large O: the first, middle and last rows of two heads."""
    most = max(0, w.seqlen_q - SAMPLED)
    starts = sorted({0, most // 2 // SAMPLED * SAMPLED, most})
    found = []
    for head in sorted({0, w.heads - 1}):
        for start in starts:
            rows = range(start, min(start + SAMPLED, w.seqlen_q))
            found.append(Sample(head, rows, reference_rows(w, inputs, head, rows)[0]))
    return found


def sample_fault(wanted: list[Sample], output: Callable[[int], F32]) -> str:
    """Return where O of a head, (Nq, dv), is off by more than rounding to float16, or ""."""
    for sample in wanted:
        exact, rows = sample.exact, sample.rows
        off = np.abs(output(sample.head)[rows.start : rows.stop] - exact)
        typical = float(np.sqrt(np.mean(exact**2)))
        # Written so that NaN, for which every comparison is false, is a fault.
        if not np.all(off <= WORN * typical + ROUNDING["float16"] * np.abs(exact)):
            return (
                f"O of head {sample.head}, rows {rows.start} to {rows.stop - 1}, is off by "
                f"{np.max(off):.3g}, where it is {typical:.3g} on average"
            )
    return ""


def _judge() -> ModuleType:
    """Return the module that judges conformance, found by its path: `kernels` imports no tests."""
    path = CONFORMANCE / "check.py"
    if not path.exists():
        raise CannotRunError(f"{path} is missing: run this from a checkout")
    spec = importlib.util.spec_from_file_location("conformance_judge", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
