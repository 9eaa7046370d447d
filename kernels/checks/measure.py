"""Benchmarks on a GPU: our kernels and PyTorch's, the cost of tracing, naive and flash2.

All times are medians of CUDA events around several launches, after a warm-up. The benchmark uses
two sets of inputs in turn, which together with O are larger than an L2 cache. The curves use one
set, so that a few tokens stay in L2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from kernels.build.sources import whole_source
from kernels.checks.numbers import Sample, sample_fault, samples
from kernels.checks.outcome import CannotRunError, Finding, ReportTable, Setting, capability
from kernels.checks.timing import matrix_rate, needed_flops, tera_per_second, timed
from kernels.cuda.engine import check_fits, place_tensors, widened, with_scratch
from kernels.cuda.fast import FastRun, after_forward
from kernels.cuda.launch import Device, build_options, prepared
from kernels.cuda.records import recording
from kernels.cuda.specs import KERNELS, LaunchPart, kernels_of, most_shared_bytes
from kernels.cuda.tensor_core import BUILDS, TensorCoreRun
from simulator.base.dtypes import F32, round_to
from simulator.problem.latent import fitting
from simulator.problem.recurrence import read_gate
from simulator.problem.scenario import parse_scenario
from simulator.problem.workload import Inputs, Workload, resolve
from simulator.program.algorithms import BASELINE, USUAL
from simulator.study.gpu_report import WORKLOAD, signature

DTYPE: Final = "float16"
TOKENS = 2**14
HIDDEN = 2048
"""Heads times d, the same for every d, so that the work is the same; the batch is as large as
needed."""
SETS = 2
TILES = ((64, 64), (32, 32), (16, 16))
"""Tiles of our kernels: the first that fit the device are used."""
TORCH = {"math": "MATH", "flash": "FLASH_ATTENTION", "cudnn": "CUDNN_ATTENTION"}
GOAL = 0.8
"""Share of the speed of PyTorch's flash backend that the tensor-core kernel should reach on
Hopper."""


class TraceRun:
    """The trace build as the window launches it, for all heads at once; used like `FastRun`."""

    def __init__(
        self, workload: Workload, inputs: Inputs, device: Device, *, counters: bool = False
    ) -> None:
        check_fits(workload, device)
        w = self.workload = workload
        whole = LaunchPart.whole(w)
        module = device.module(whole_source(w.algorithm), build_options(w, trace=True))
        placed = after_forward(device, w, inputs, place_tensors(device, w, inputs))
        self.tensors = with_scratch(device, w, placed, whole)
        self._launches = []
        for kernel in kernels_of(w):
            record = recording(device, w, kernel, whole, counters=counters)
            self._launches.append(prepared(module, w, kernel, whole, self.tensors, record))

    def launch(self) -> None:
        """Launch the algorithm's kernels for all heads and row blocks."""
        for launch in self._launches:
            launch()


def workload_of(
    device: Device, algorithm: str, seqlen: int, head_dim: int, heads: int, *, causal: bool = False
) -> Workload:
    """Return a workload of float16 with the largest of `TILES` that fits the device."""
    for rows, cols in TILES:
        table = {
            "attention": {
                "algorithm": algorithm,
                "heads": heads,
                "seqlen_q": seqlen,
                "head_dim": head_dim,
                "dtype": DTYPE,
            },
            "mask": {"causal": causal},
            "tiling": {"rows": rows, "cols": cols},
        }
        w = resolve(parse_scenario(fitting(table)))
        if most_shared_bytes(w) <= device.shared_limit:
            return w
    return w  # check_fits says why it does not fit


def drawn(size: int, sets: int = SETS) -> list[tuple[F32, F32, F32]]:
    """Return sets of flat Q, K and V, of numbers that float16 represents exactly."""
    rng = np.random.default_rng(0)

    def draw() -> F32:
        return round_to(rng.standard_normal(size, dtype=np.float32), DTYPE)

    return [(draw(), draw(), draw()) for _ in range(sets)]


def shaped(w: Workload, flat: tuple[F32, F32, F32]) -> Inputs:
    """Return flat numbers as the Q, K and V of a workload, with gates where it takes some.

    A backward pass takes the numbers of Q as the gradient of O, which has the same shape.
    """
    q = flat[0].reshape(w.heads, w.seqlen_q, w.head_dim)
    k = flat[1][: w.kv_heads * w.seqlen_k * w.head_dim].reshape(w.kv_heads, w.seqlen_k, w.head_dim)
    v = k[..., : w.value_dim] if w.latent else flat[2].reshape(k.shape)
    gate = read_gate(w.rule, w.scenario, None, (w.kv_heads, w.seqlen_k, w.sizes["feature"]))
    return Inputs(q, k, v, gate=gate, upstream=q if w.backward else None)


# --- candidates ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something that computes attention on the GPU."""

    launch: Callable[[int], object]  # takes the number of the set of inputs
    output: Callable[[int], F32]  # returns O of a head of the first set, (Nq, dv) float32


def ours(runs: list[Any], device: Device) -> Candidate:
    """Return the candidate that launches one of our builds, with one run for each set."""
    w = runs[0].workload
    return Candidate(
        lambda count: runs[count % len(runs)].launch(),
        lambda head: widened(device.download(runs[0].tensors.o[head]), w.dtype),
    )


def torch_candidate(name: str, w: Workload, sets: list[Inputs]) -> Candidate:
    """Return PyTorch's scaled_dot_product_attention with one backend."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.functional import scaled_dot_product_attention

    backend = getattr(SDPBackend, TORCH[name])
    shape = (-1, min(w.heads, HIDDEN // w.head_dim), w.seqlen_q, w.head_dim)  # batch, heads
    tensors = [
        [torch.from_numpy(x.astype(np.float16)).cuda().view(shape) for x in (n.q, n.k, n.v)]
        for n in sets
    ]

    def attention(count: int) -> Any:
        q, k, v = tensors[count % len(tensors)]
        with torch.no_grad(), sdpa_kernel(backend):
            return scaled_dot_product_attention(q, k, v, is_causal=w.mask.causal)

    def output(head: int) -> F32:
        o = attention(0).reshape(w.heads, w.seqlen_q, w.head_dim)[head]
        numbers: F32 = o.float().cpu().numpy()
        return numbers

    return Candidate(attention, output)


def torch_reason() -> str:
    """Return why PyTorch cannot be used for comparison, in words; empty if it can."""
    try:
        import torch
    except ImportError as error:
        return f"PyTorch is not installed (pip install torch): {error}"
    return "" if torch.cuda.is_available() else "the PyTorch that is installed sees no GPU"


def candidates(
    w: Workload, sets: list[Inputs], on: Setting, torch_too: bool
) -> dict[str, Callable[[], Candidate]]:
    """Return the candidates: by name a function that puts each on the GPU."""
    device = on.device
    able = capability(on)

    def tensor_cores(warps: int, buffers: int) -> Candidate:
        return ours([TensorCoreRun(w, n, device, able, warps, buffers) for n in sets], device)

    found: dict[str, Callable[[], Candidate]] = {
        "fast": lambda: ours([FastRun(w, n, device) for n in sets], device),
        "trace": lambda: ours([TraceRun(w, n, device) for n in sets], device),
    }
    for name, build in BUILDS.items():
        found[f"tensor cores, {name}"] = partial(tensor_cores, *build)
    for name in TORCH if torch_too else ():
        found[f"PyTorch {name}"] = partial(torch_candidate, name, w, sets)
    return found


def release() -> None:
    """Free the memory that CuPy and PyTorch keep for themselves."""
    import cupy

    cupy.get_default_memory_pool().free_all_blocks()
    if not torch_reason():
        import torch

        torch.cuda.empty_cache()


# --- benchmark ----------------------------------------------------------------------------------


def benchmark(on: Setting, *, head_dim: int) -> Finding:
    """Time our kernels and PyTorch's scaled_dot_product_attention with each of its backends."""
    reason = torch_reason()
    rates: dict[str, Any] = {}
    if not reason:
        rates = {dtype: matrix_rate(dtype, quick=on.quick) for dtype in ("float16", "bfloat16")}
        release()
    tokens = TOKENS // 4 if on.quick else TOKENS
    lengths = [n for n in (1024, 2048, 4096, 8192, 16384) if n <= tokens]
    faults: list[str] = []
    lines: list[dict[str, Any]] = []
    pool = drawn(tokens * HIDDEN)
    for seqlen in lengths[::2] if on.quick else lengths:
        for causal in (False, True):
            heads = HIDDEN // head_dim * (tokens // seqlen)
            w = workload_of(on.device, USUAL.name, seqlen, head_dim, heads, causal=causal)
            sets = [shaped(w, flat) for flat in pool]
            wanted = samples(w, sets[0])
            for name, make in candidates(w, sets, on, not reason).items():
                line = {"name": name, "N": seqlen, "d": head_dim, "causal": causal}
                line |= _measured(make, w, wanted, on)
                lines.append(line)
                if "fault" in line:
                    faults.append(f"{name}, N = {seqlen}, d = {head_dim}: {line['fault']}")
    figures = {"matrix": rates, "lines": lines, "without_torch": reason}
    return Finding(
        f"float16, d = {head_dim}, {tokens} tokens of {HIDDEN} numbers"
        + (f"; without PyTorch: {reason}" if reason else ""),
        tuple(faults),
        benchmark_tables(figures),
        figures,
        tuple(missed_goals(lines, capability(on))),
    )


def _measured(
    make: Callable[[], Candidate], w: Workload, wanted: list[Sample], on: Setting
) -> dict[str, Any]:
    """Return times and rate of a candidate, or why there are none."""
    try:
        return _times(make, w, wanted, on)
    except Exception as error:  # not for this shape or GPU, or out of memory: the rest goes on
        return {"reason": f"{type(error).__name__}: {str(error)[:300]}"}
    finally:
        release()


def _times(
    make: Callable[[], Candidate], w: Workload, wanted: list[Sample], on: Setting
) -> dict[str, Any]:
    candidate = make()
    candidate.launch(0)
    fault = sample_fault(wanted, candidate.output)
    if fault:
        return {"fault": fault}
    timing = timed(candidate.launch, quick=on.quick)
    return {**timing.as_json(), "tflops": tera_per_second(needed_flops(w), timing.median)}


def benchmark_tables(figures: dict[str, Any]) -> tuple[ReportTable, ...]:
    """Return the figures of `benchmark` for people, a table for each d and mask."""
    lines = figures["lines"]
    names = list(dict.fromkeys(line["name"] for line in lines))
    rate = figures["matrix"].get(DTYPE, {}).get("tflops")
    tables = []
    if figures["matrix"]:
        rows = tuple(
            (dtype, str(seen["n"]), f"{seen['ms']:.3f}", f"{seen['tflops']:.1f}")
            for dtype, seen in figures["matrix"].items()
        )
        tables.append(ReportTable("Matrix product", ("dtype", "n", "ms", "TFLOP/s"), rows))
    share = " (share of the measured matrix rate)" if rate else ""
    for head_dim, causal in dict.fromkeys((line["d"], line["causal"]) for line in lines):
        mask = "causal" if causal else "no mask"
        ours_best = "best tensor cores / flash", "/ cuDNN"
        body = []
        for seqlen in dict.fromkeys(line["N"] for line in lines):
            here = {
                line["name"]: line
                for line in lines
                if (line["N"], line["d"], line["causal"]) == (seqlen, head_dim, causal)
            }
            cells = [_cell(here.get(name, {}), rate) for name in names]
            ratios = [_ratio(here, other) for other in ("PyTorch flash", "PyTorch cudnn")]
            body.append((str(seqlen), *cells, *("–" if r is None else f"{r:.2f}" for r in ratios)))
        tables.append(
            ReportTable(
                f"TFLOP/s{share}, d = {head_dim}, {mask}", ("N", *names, *ours_best), tuple(body)
            )
        )
    return tuple(tables)


def _cell(line: dict[str, Any], rate: float | None) -> str:
    if "tflops" not in line:
        return "wrong" if "fault" in line else "–"
    share = f" ({line['tflops'] / rate:.0%})" if rate else ""
    return f"{line['tflops']:.1f}{share}"


def _ratio(here: dict[str, dict[str, Any]], other: str) -> float | None:
    """Return how much faster the best tensor-core kernel is than another; None: unknown."""
    times = [
        line["ms"] for name, line in here.items() if name.startswith("tensor") and "ms" in line
    ]
    theirs = here.get(other, {}).get("ms")
    return theirs / min(times) if times and theirs else None


def missed_goals(lines: list[dict[str, Any]], able: int | None) -> list[str]:
    """Return where, on Hopper, the tensor-core kernel misses `GOAL` at d = 128, N = 8192."""
    missed = []
    for causal in (False, True) if able == 90 else ():
        here = {
            line["name"]: line
            for line in lines
            if (line["N"], line["d"], line["causal"]) == (8192, 128, causal)
        }
        ratio = _ratio(here, "PyTorch flash")
        if ratio is not None and not ratio >= GOAL:
            mask = "causal" if causal else "no mask"
            missed.append(
                f"tensor cores, N = 8192, d = 128, {mask}: {ratio:.2f} of the speed of PyTorch's "
                f"flash backend, at least {GOAL} expected"
            )
    return missed


# --- what tracing costs -------------------------------------------------------------------------


def trace_overhead(on: Setting) -> Finding:
    """Time the trace build, without and with counters, and the fast build."""
    seqlen, heads = (1024 if on.quick else 2048), 32
    rows, figures = [], []
    for algorithm in KERNELS:
        w = workload_of(on.device, algorithm, seqlen, 64, heads, causal=True)
        pool = drawn(heads * seqlen * 64)
        inputs = [shaped(w, flat) for flat in pool]
        builds: dict[str, Callable[[Inputs], Any]] = {
            "fast": partial(FastRun, w, device=on.device),
            "trace": partial(TraceRun, w, device=on.device),
            "trace with counters": partial(TraceRun, w, device=on.device, counters=True),
        }
        times = {}
        for name, make in builds.items():
            candidate = ours([make(n) for n in inputs], on.device)
            times[name] = timed(candidate.launch, quick=on.quick).median
            del candidate
            release()
        fast = times["fast"]
        figures.append({"algorithm": algorithm, "ms": times})
        rows.append(
            (
                algorithm,
                f"{fast:.3f}",
                *(f"{ms:.3f} ({ms / fast:.2f}×)" for ms in list(times.values())[1:]),
            )
        )
    header = ("algorithm", "fast, ms", "trace, ms", "with counters, ms")
    title = f"Trace and fast build: {heads} heads, N = {seqlen}, d = 64, float16, causal"
    return Finding(title, (), (ReportTable(title, header, tuple(rows)),), {"lines": figures})


# --- naive beside flash2 ------------------------------------------------------------------------


def curves(
    on: Setting, measured: Callable[[Workload, Inputs, Setting], dict[str, float]] | None = None
) -> Finding:
    """Measure time and memory of naive and flash2 as N grows.

    measured: returns ``bytes`` and ``ms`` of a run; none: `size_and_time`.
    """
    if on.device.name != "cupy":
        raise CannotRunError("memory is measured on a GPU only")
    heads, head_dim = 8, 64
    lines: list[dict[str, Any]] = []
    for algorithm in (BASELINE.name, USUAL.name):
        for power in range(9, 13 if on.quick else 15):
            line: dict[str, Any] = {"algorithm": algorithm, "N": 2**power}
            lines.append(line)
            w = workload_of(on.device, algorithm, 2**power, head_dim, heads)
            line |= {"rows": w.rows, "cols": w.cols, WORKLOAD: signature(w)}
            inputs = shaped(w, drawn(heads * 2**power * head_dim, 1)[0])
            try:
                line |= (measured or size_and_time)(w, inputs, on)
            except Exception as error:  # too little memory is a result, too
                line["reason"] = f"{type(error).__name__}: {str(error)[:200]}"
    title = f"Naive and flash2 as N grows: {heads} heads, d = {head_dim}, float16, no mask"
    rows = tuple(
        (
            line["algorithm"],
            str(line["N"]),
            f"{line['ms']:.3f}" if "ms" in line else line.get("reason", "–"),
            f"{line['bytes'] / 2**20:.1f}" if "bytes" in line else "–",
        )
        for line in lines
    )
    return Finding(
        title,
        tuple(growth_faults(lines)),
        (ReportTable(title, ("algorithm", "N", "ms", "MiB on the GPU"), rows),),
        {"lines": lines},
    )


def size_and_time(w: Workload, inputs: Inputs, on: Setting) -> dict[str, float]:
    """Return the memory that a run takes on the GPU, and how long it takes."""
    try:
        return _size_and_time(w, inputs, on)
    finally:
        release()  # when the run's tensors are free


def _size_and_time(w: Workload, inputs: Inputs, on: Setting) -> dict[str, float]:
    import cupy

    pool = cupy.get_default_memory_pool()
    before = pool.used_bytes()
    run = FastRun(w, inputs, on.device, scores_as_element=True)
    size = pool.used_bytes() - before
    return {"bytes": size, "ms": timed(lambda _: run.launch(), quick=on.quick).median}


def growth_faults(lines: list[dict[str, Any]]) -> list[str]:
    """Return where memory does not grow as it must: for naive as N², for flash2 as N."""
    faults = []
    for algorithm, least, most in ((BASELINE.name, 3.0, 4.2), (USUAL.name, 1.7, 2.3)):
        sizes = [
            line["bytes"] for line in lines if line["algorithm"] == algorithm and "bytes" in line
        ]
        if len(sizes) > 1 and not least <= sizes[-1] / sizes[-2] <= most:
            ratio = sizes[-1] / sizes[-2]
            faults.append(f"{algorithm}: twice the tokens take {ratio:.2f} times the memory")
    return faults
