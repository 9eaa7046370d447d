"""No launch keeps a multiprocessor for so long that a watchdog ends it; memory is given back."""

from itertools import pairwise, product
from math import prod
from typing import Any

import numpy as np
import pytest

from kernels.checks import machine
from kernels.checks.left import left_by
from kernels.checks.variants import small
from kernels.cuda.linear import kernel_engine
from kernels.cuda.specs import KERNELS, SPECS, LaunchPart, joins_splits, kernels_of
from kernels.devices import cupy as cupy_device
from kernels.devices.host.device import HostDevice
from kernels.devices.host.module import HostKernel, HostModule
from simulator.problem.latent import fitting
from simulator.problem.scenario import parse_scenario
from simulator.problem.workload import Workload, resolve
from tests.helpers.runs import scenario
from tests.kernels.helpers import host_trace, needs_compiler, workload_of

SLOW = 50e9
"""FLOP in a second of a multiprocessor of a small GPU, where a trace is recorded."""


class Card(HostDevice):
    """A GPU of 14 multiprocessors with a screen, as far as launches are planned."""

    block_flops = cupy_device.block_flops({"KernelExecTimeout": 1})
    blocks_at_once = 14


def long(algorithm: str, heads: int, tokens: int) -> Workload:
    attention = {"algorithm": algorithm, "heads": heads, "kv_heads": -(-heads // 4),
                 "seqlen_q": tokens, "head_dim": 128, "dtype": "float16"}  # fmt: skip
    tables = {"attention": attention, "tiling": {"rows": 64, "cols": 64}, "mask": {"causal": True}}
    return resolve(parse_scenario(fitting(tables)))


def seconds(w: Workload, part: LaunchPart, kernel: str) -> float:
    """Return how long a launch takes at most, if it is as much work as attention without a mask."""
    blocks = min(prod(SPECS[kernel].grid(w, part)), Card.blocks_at_once)
    columns = len(part.column_blocks(w)) / w.grid.Tc if SPECS[kernel].by_columns else 1
    flops = 2 * len(part.heads) * len(part.rows(w)) * w.seqlen_k * (w.head_dim + w.value_dim)
    return float(flops * columns / blocks / SLOW)


@pytest.mark.parametrize(("heads", "tokens"), [(32, 16384), (1, 131072)])
@pytest.mark.parametrize("algorithm", KERNELS)
def test_the_parts_of_a_run_are_all_of_it_and_none_takes_long(
    algorithm: str, heads: int, tokens: int
) -> None:
    w = long(algorithm, heads, tokens)
    for kernel in kernels_of(w):
        spec = SPECS[kernel]
        parts = list(spec.pieces(w, Card.block_flops, Card.blocks_at_once, by_rows=True))
        if spec.by_columns:
            assert [j for part in parts for j in part.columns or ()] == list(range(w.grid.Tc))
        else:
            places = [place for part in parts for place in product(part.heads, part.blocks)]
            assert sorted(places) == list(product(range(w.heads), range(w.grid.Tr)))
        single = prod(spec.grid(w, LaunchPart(range(1), range(w.grid.Tr)))) == 1
        if single:  # what one block does is not cut; query heads of a KV head are together
            assert all(w.kv_head_of[a.stop - 1] < w.kv_head_of[b.start]
                       for a, b in pairwise(part.heads for part in parts))  # fmt: skip
        else:
            assert max(seconds(w, part, kernel) for part in parts) < 2, kernel


@pytest.mark.long
@needs_compiler
@pytest.mark.parametrize("algorithm", ["flash1", "flash2"])
def test_a_launch_over_row_blocks_is_as_long_as_its_longest_block(algorithm: str) -> None:
    """FlashAttention-1 has one block for a head: all other multiprocessors wait for it."""
    q = scenario(algorithm, nq=16384, d=8, rows=64, cols=64, dtype="float16")
    w, inputs = workload_of(q)
    engine = kernel_engine(w, inputs, Card())
    part = LaunchPart(range(1), range(engine.row_blocks_at_once))
    assert seconds(w, part, KERNELS[algorithm][0]) < 2
    assert len(part.blocks) > 1


@needs_compiler
@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("algorithm", KERNELS)
def test_parts_leave_and_count_what_one_launch_does(algorithm: str) -> None:
    launched: list[tuple[str, int]] = []

    class ToldKernel(HostKernel):
        def __call__(self, grid: tuple[int, ...], *given: Any, **said: Any) -> None:
            launched.append((self.name, prod(grid)))
            super().__call__(grid, *given, **said)

    class Told(HostModule):
        def get_function(self, name: str) -> HostKernel:
            return ToldKernel(self.library, name, self.schedule)

    class Impatient(HostDevice):
        block_flops = 1

        def module(self, code: str, options: tuple[str, ...]) -> HostModule:
            return Told(code, options, self.schedule)

    w, inputs = workload_of(
        parse_scenario(small(algorithm, {"attention": {"heads": 4, "kv_heads": 2}}))
    )
    found = [host_trace(w, inputs, device)[1] for device in (HostDevice(), Impatient())]
    specs = [SPECS[kernel] for kernel in kernels_of(w)]
    if all(spec.by_columns or spec.rows_apart(w) for spec in specs):
        found[1].counted()
        if not joins_splits(w):  # whose rows are counted apart, but left together
            found[1].run_everything()
        least = LaunchPart(range(1), range(1), range(1))
        assert all(blocks <= prod(SPECS[name].grid(w, least)) for name, blocks in launched)
    lefts = [left_by(engine.run_everything(), HostDevice()) for engine in found]
    assert {n: x.tobytes() for n, x in lefts[0].items()} == {
        n: x.tobytes() for n, x in lefts[1].items()
    }
    for one, other in zip(*(engine.counted_visits() for engine in found), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.long
@needs_compiler
@pytest.mark.parametrize("algorithm", ["flash2", "flash2-backward"])
def test_a_run_that_is_not_shown_gives_the_device_its_memory_back(algorithm: str) -> None:
    class Counting(HostDevice):
        times = 0

        def forget(self) -> None:
            self.times += 1

    device = Counting()
    trace, _ = host_trace(*workload_of(scenario(algorithm)), device)
    trace.forget()
    assert device.times >= 1


def test_the_driver_is_that_of_the_gpu_that_cuda_takes(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """nvidia-smi counts GPUs by their place on the bus, CUDA by speed."""
    program = tmp_path / "nvidia-smi"
    program.write_text(
        '#!/bin/sh\ncase "$*" in *--id=0000:3B:00.0*) echo 580.65.06 ;; *) echo 570.1 ;; esac\n',
        "utf-8",
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert machine.driver("0000:3B:00.0") == "580.65.06"
