"""Every barrier of every kernel, taken away: the race is seen, so none is redundant."""

import re
from pathlib import Path

import pytest

from kernels.build.sources import whole_source
from kernels.checks.ladder import RUNGS, launched
from kernels.checks.tools import tensor_scenarios
from kernels.cuda.specs import KERNELS
from kernels.devices.barriers import WithoutBarrier
from kernels.devices.races import launch_all
from simulator.problem.scenario import parse_scenario
from simulator.problem.workload import read_inputs, resolve
from tests.kernels.watch.watched import case, needs_watch

TENSOR_CORES, LADDER = "flash2_mma", "ladder"
BARRIER = re.compile(r"__sync(?:threads|warp)\(\);|wait_for_copies<\d>\(\);")
SOURCES = (*KERNELS, TENSOR_CORES, LADDER)
BARRIERS = [
    pytest.param(name, found.start(), found.end(), id=f"{name}-{n}")
    for name in SOURCES
    for n, found in enumerate(BARRIER.finditer(whole_source(name)))
]

TRIED: dict[str, tuple[str, ...]] = {
    "linear": ("plain", "unmasked", "performer", "unmasked performer"),
    "linear-recurrent": ("plain", "performer"),
    "flash2-backward": ("plain", "deterministic"),
}
"""Variants of a workload in which a barrier may be needed; of others the plain one."""

pytestmark = needs_watch


@pytest.mark.parametrize(("name", "start", "end"), BARRIERS)
def test_a_barrier_that_is_taken_away_is_told(
    name: str, start: int, end: int, tmp_path: Path
) -> None:
    code = whole_source(name)
    device = WithoutBarrier(code, f"{code[:start]};{code[end:]}")
    if name in (TENSOR_CORES, LADDER):
        for table in tensor_scenarios():
            workload = resolve(parse_scenario(table))
            inputs = read_inputs(workload)
            if name == TENSOR_CORES:
                launch_all(workload, inputs, device, "tensor cores")
                continue
            for rung in (rung for rung in RUNGS if rung.source == LADDER):
                launched(rung, workload, inputs, device)
    else:
        for variant in TRIED.get(name, ("plain",)):
            for build in ("fast", "trace"):
                if not device.faults:
                    launch_all(*case(name, variant, tmp_path), device, build)
    kinds = {fault.kind for fault in device.faults}
    assert kinds & {"race", "unwaited"}
