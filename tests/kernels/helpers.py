"""Workloads that share few compilations, and everything that is checked of a kernel's run."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st

from kernels.checks.left import Left, differing, left_by
from kernels.cuda.engine import ROOM, KernelEngine, Room, widened
from kernels.cuda.fast import FastRun
from kernels.cuda.linear import kernel_engine
from kernels.cuda.specs import KERNELS
from kernels.devices.host.compiler import find_compiler
from kernels.devices.host.device import HostDevice
from kernels.devices.host.module import HostModule, ThreadOrder, ThreadSchedule
from simulator.problem.facts import PACKED
from simulator.problem.scenario import Scenario, load_scenario, with_values
from simulator.problem.workload import Inputs, Workload, read_inputs, resolve
from simulator.program.algorithms import algorithm_of, tile_program
from simulator.run.cosimulation import verify
from simulator.run.trace import Trace
from tests.conformance.check import array_faults, count_faults
from tests.helpers import runs
from tests.helpers.runs import exact_gradients, features, masks, textbook

ALGORITHMS = tuple(KERNELS)

needs_compiler = pytest.mark.skipif(
    not find_compiler().available and not os.environ.get("CI"),
    reason=f"the host engine: {find_compiler().reason}",
)

SCHEDULES = (
    ThreadSchedule(ThreadOrder.FORWARD),
    ThreadSchedule(ThreadOrder.REVERSE),
    ThreadSchedule(ThreadOrder.RANDOM, seed=7),
)

TILINGS: tuple[dict[str, Any], ...] = (
    {"rows": 4, "cols": 3, "d": 5, "dv": 7, "dtype": "float16"},
    {"rows": 1, "cols": 5, "d": 3, "dv": 2, "dtype": "bfloat16"},
    {"rows": 20, "cols": 40, "d": 8, "dv": 33, "dtype": "float32"},
)
"""What is fixed at compile time; the last has several warps, keys and values for each lane."""

ROUNDING = {"float32": 2e-5, "float16": 2e-3, "bfloat16": 1.6e-2}
"""Largest error of O, relative above 1: half a unit in the last place and float32 sums."""
GRADIENT_ROUNDING = {"float32": 2e-4, "float16": 4e-3, "bfloat16": 3e-2}
"""How far a gradient may be off, beside the largest: O and what is stored are rounded."""


def scenario(
    algorithm: str = "flash2", *, splits: int = 3, split_blocks: int = 0, **said: Any
) -> Scenario:
    """Return a scenario with random input; one that deals keys out says how, in one of two ways."""
    chosen = runs.scenario(algorithm, **runs.fitted(algorithm, **said))
    if algorithm not in PACKED:
        return chosen
    size = split_blocks * (chosen.tiling.cols or 0)
    return with_values(chosen, {"tiling": {"split_size": size} if size else {"splits": splits}})


def workload_of(chosen: Scenario) -> tuple[Workload, Inputs]:
    """Return a scenario's workload and numbers."""
    workload = resolve(chosen)
    return workload, read_inputs(workload)


class ChangedDevice(HostDevice):
    """A CPU on which the kernels' text is another one.

    change: returns the text to compile in the place of a source.
    schedule: orders and workers.
    """

    def __init__(
        self, change: Callable[[str], str], schedule: ThreadSchedule | None = None
    ) -> None:
        super().__init__(schedule)
        self._change = change

    def module(self, code: str, options: tuple[str, ...]) -> HostModule:
        return super().module(self._change(code), options)


def host_trace(
    workload: Workload, inputs: Inputs, device: HostDevice | None = None, room: Room = ROOM
) -> tuple[Trace, KernelEngine]:
    """Return a trace on the host engine."""
    engine = kernel_engine(workload, inputs, device or HostDevice(), room)
    return Trace(tile_program(workload), engine, inputs), engine


def few(most: int) -> int:
    """Return how many examples of a costly property are tried: a sixth where not all are."""
    everything = settings.get_profile("fixed").max_examples
    return most if settings.default.max_examples >= everything else most // 6


@st.composite
def kernel_scenarios(draw: st.DrawFn, algorithm: str) -> Scenario:
    """Draw any lengths, masks and heads, with one of few tilings, so that little is compiled."""
    tiling = draw(st.sampled_from(TILINGS))
    longest = 3 * max(tiling["rows"], tiling["cols"], 6)
    kv_heads = draw(st.integers(1, 2))
    heads = kv_heads * draw(st.integers(1, 2))
    chosen = st.lists(st.integers(0, heads - 1), min_size=1, max_size=2, unique=True)
    if algorithm in PACKED:  # heads that are picked may not fill groups
        chosen = st.nothing()
    return scenario(
        algorithm,
        splits=draw(st.integers(1, 5)),
        split_blocks=draw(st.sampled_from([0, 0, 1, 2, 4])),
        nq=draw(st.integers(1, longest)),
        nk=draw(st.integers(1, longest)),
        heads=heads,
        kv_heads=kv_heads,
        seed=draw(st.integers(0, 99)),
        head=draw(st.one_of(st.none(), chosen)),
        mask=draw(masks(longest)),
        scores=draw(
            st.sampled_from(
                [
                    {},
                    {"softcap": 2.0, "alibi": True},
                    {"sink_logits": [0.5, -2.0, 9.0, 3.0][:heads]},
                ]
            )
        ),
        rescale_threshold=draw(st.sampled_from([None, 0.0, 2.0])),
        temperature=draw(st.sampled_from([1.0, 0.25])),
        **tiling,
    )


def faults(
    workload: Workload,
    inputs: Inputs,
    schedules: tuple[ThreadSchedule, ...],
    made: Callable[[ThreadSchedule], HostDevice] = HostDevice,
) -> list[str]:
    """Return all that is wrong with the kernels on a workload; an error counts, too.

    Looked at: O, lse and all else that kernels leave against the textbook in float64, every op of
    every tile against the float64 interpreter, what is visited, what is counted, and fast against
    trace build.
    """
    found: list[str] = []
    for schedule in schedules:
        device = made(schedule)
        trace, engine = host_trace(workload, inputs, device)
        found += _number_faults(trace)
        verdict = verify(trace)
        if verdict.difference is not None:
            found.append(str(verdict))
        counted, asked = engine.counted(), trace.program.totals
        for way in ("read", "write"):
            ours = {name: n for name, n in getattr(counted, way).items() if n}
            theirs = {name: n for name, n in getattr(asked, way).items() if n}
            if ours != theirs:
                found.append(f"{way} {ours}, expected {theirs}")
        if counted.flops != asked.flops:
            found.append(f"{counted.flops} FLOPs, expected {asked.flops}")
        if found:  # spares the compilation of the fast build
            break
        found += bit_faults(workload, inputs, engine, device)
        # A launch over everything leaves what those of single heads and few row blocks leave.
        left = left_by(engine.run_everything(), device)
        o = workload.unpacked(widened(left["o"], workload.dtype))
        if o.tobytes() != trace.output.tobytes():
            found.append("O of one launch differs from that of several")
        found += _left_faults(workload, inputs, left)
    return found


def conformance_faults(case: Path, device: HostDevice | None = None) -> list[str]:
    """Return where the trace build leaves what a conformance case expects: arrays and counts."""
    trace, engine = host_trace(*workload_of(load_scenario(case)), device)
    summary, arrays = trace.run(keep_arrays=True)
    want = json.loads(case.with_suffix(".expected.json").read_text(encoding="utf-8"))
    tolerance = want.pop("tolerance")
    with np.load(case.with_suffix(".expected.npz")) as expected:
        found = array_faults(arrays, expected, tolerance)
    found += count_faults(summary, want)
    # The plan's counts are the kernels' own.
    counted = engine.counted()
    for name, asked in want["hbm"]["by_tensor"].items():
        got = {"read": counted.read.get(name, 0), "write": counted.write.get(name, 0)}
        found += [f"{way} {name}: {n}" for way, n in got.items() if n != asked[way]]
    found += [f"{counted.flops} FLOPs"] * (counted.flops != want["matmul_flops"])
    return found


def _number_faults(trace: Trace) -> list[str]:
    """Compare O and lse of a whole run with the textbook."""
    w, inputs, found = trace.workload, trace.inputs, []
    if w.algorithm in PACKED:  # whose heads are packed: here each has its own
        w = resolve(with_values(w.scenario, {"attention": {"algorithm": "flash2"}}))
        q = inputs.q.reshape(w.heads, w.seqlen_q, w.head_dim)
        inputs = Inputs(q, inputs.k, inputs.v)
    tolerance = ROUNDING["float32" if w.algorithm == "flash1" else w.dtype]
    for head in range(w.heads):
        o, lse = textbook(w, inputs, head)
        ours = trace.lse[head]
        if not algorithm_of(w).sums:  # nothing is divided, so there is none
            found += [f"head {head}: lse"] * (not np.isnan(ours).all())
            ours = lse = np.zeros(w.seqlen_q)
        blind = np.isneginf(lse)
        if not np.array_equal(np.isneginf(ours), blind):
            found.append(f"head {head}: rows that see nothing")
            continue
        for name, got, exact, allowed in (
            ("o", trace.output[head], o, tolerance),
            ("lse", ours[~blind], lse[~blind], 1e-4),
        ):
            # Written so that NaN, for which every comparison is false, is a fault.
            if not np.all(np.abs(got - exact) <= allowed * (1 + np.abs(exact))):
                found.append(f"head {head}: {name}")
    return found


def _left_faults(w: Workload, inputs: Inputs, left: Left) -> list[str]:
    """Compare what kernels have left beside O and LSE with float64; splits are seen in O."""
    found, exact = [], _exact_left(w, inputs)
    for name in sorted(left.keys() & exact.keys()):
        got, want = widened(left[name], w.dtype), exact[name]
        size = 1 + np.abs(want[np.isfinite(want)]).max(initial=0)
        with np.errstate(invalid="ignore"):  # of -inf, which has to be the same
            right = (got == want) | (np.abs(got - want) <= GRADIENT_ROUNDING[w.dtype] * size)
        if not right.all():
            found.append(f"{name} is not that of float64")
    return found


def _exact_left(w: Workload, inputs: Inputs) -> dict[str, np.ndarray]:
    """Return tensors that some kernels leave, in float64 and by their names in `Tensors`."""
    if w.feature_map:
        phi = features(inputs.k.astype(float), inputs.projection)
        ones = np.ones((*phi.shape[:2], 1))
        return {"state": phi.swapaxes(1, 2) @ np.concatenate([inputs.v, ones], axis=2)}
    if not (algorithm_of(w).stores_scores or algorithm_of(w).backward):
        return {}
    rows, keys, exact = range(w.seqlen_q), range(w.seqlen_k), {}
    k, v = (x[list(w.kv_head_of)].astype(float) for x in (inputs.k, inputs.v))
    scaled = w.scoring.of(inputs.q.astype(float) @ k.swapaxes(1, 2))
    exact["s"] = np.stack([
        np.where(w.mask.of_head(n).visible(rows, keys), w.changed(n, rows, keys, s), -np.inf)
        for n, s in enumerate(scaled)
    ])  # fmt: skip
    lse = np.stack([textbook(w, inputs, head)[1] for head in range(w.heads)])[..., None]
    p = exact["p"] = np.exp(exact["s"] - np.where(np.isneginf(lse), 0, lse))
    if inputs.upstream is not None:
        dp = exact["dp"] = inputs.upstream.astype(float) @ v.swapaxes(1, 2)
        exact["d"] = (p * dp).sum(axis=2)
        slope = 1 - np.tanh(scaled / w.softcap) ** 2 if w.softcap else 1.0
        exact["ds"] = p * (dp - exact["d"][..., None]) * slope
        exact |= zip(("dq", "dk", "dv"), exact_gradients(w, inputs), strict=True)
        exact["dq_acc"] = exact["dq"] / w.scoring.factor
    return exact


def bit_faults(
    workload: Workload, inputs: Inputs, engine: KernelEngine, device: HostDevice
) -> list[str]:
    """Compare the fast build with what the trace build left in memory, to the last bit."""
    fast = FastRun(workload, inputs, device)
    fast.launch()
    traced = engine.run_everything()
    return [
        f"{name} differs between fast and trace build"
        for name in differing(workload, left_by(fast.tensors, device), left_by(traced, device))
    ]
