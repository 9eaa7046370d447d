"""The time of runs by model, beside figures that others have published."""

from collections import defaultdict
from dataclasses import replace
from statistics import median
from typing import Any

import pytest

from simulator.problem.hardware import Gpu, GpuRates, gpus
from simulator.problem.scenario import parse_scenario
from simulator.problem.workload import resolve
from simulator.program.algorithms import tile_program
from simulator.program.tile_program import TileProgram
from simulator.timing.kernel_kinds import kernel_kinds
from simulator.timing.run_time import RunTime, run_time, why_no_time
from tests.simulator.timing.published import (
    A100_BOTH,
    A5000_FORWARD,
    H100_FORWARD,
    LENGTHS,
    Speeds,
    tile,
)

RTX_A5000 = Gpu(
    "RTX-A5000", 111.1, 0.768, 64, 99, 24, 8.6, "vendor",
    GpuRates(6, 1.6, 1695, 16, 128, 0.87, 1.0, 0.87, "none fitted: shares are those of A100"),
)  # fmt: skip
ALGORITHM = {"naive": "naive", "fa1": "flash1", "fa2": "flash2", "fa3": "flash2"}


def program(algorithm: str, heads: int, length: int, width: int, **more: Any) -> TileProgram:
    attention = {"algorithm": algorithm, "heads": heads, "seqlen_q": length, "head_dim": width}
    rows, cols = more.pop("tile", (128, 128))
    return tile_program(
        resolve(
            parse_scenario(
                {
                    "attention": {"dtype": "float16"} | attention | more.pop("attention", {}),
                    "mask": {"causal": more.pop("causal", False)} | more.pop("mask", {}),
                    "tiling": {"rows": rows, "cols": cols},
                    "hardware": {"preset": "H100-SXM"},
                }
            )
        )
    )


def on(own: TileProgram, gpu: Gpu) -> TileProgram:
    return TileProgram(replace(own.workload, gpu=gpu), own.algorithm)


def speed(gpu: Gpu, kind: str, width: int, length: int, causal: bool) -> tuple[float, RunTime]:
    heads = 2048 // width * (16384 // length)
    own = program(
        ALGORITHM[kind], heads, length, width, causal=causal, tile=tile(kind, width, length)
    )
    found = run_time(on(own, gpu), kind=None if kind == "naive" else kernel_kinds()[kind])
    flops = 4 * heads * length**2 * width / (2 if causal else 1)
    return flops / found.seconds / 1e12, found


def ratios(gpu: Gpu, speeds: Speeds, most: int) -> dict[str, list[float]]:
    out = defaultdict(list)
    for (width, causal), kinds in speeds.items():
        for kind, figures in kinds.items():
            for length, figure in zip(LENGTHS, figures, strict=True):
                if figure is not None and length <= most:
                    out[kind].append(speed(gpu, kind, width, length, causal)[0] / figure)
    return out


@pytest.mark.parametrize("most", [1024, pytest.param(16384, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    ("name", "speeds"), [("A100-80-SXM", A100_BOTH), ("H100-SXM", H100_FORWARD)]
)  # fmt: skip
def test_the_model_meets_published_speeds(name: str, speeds: Speeds, most: int) -> None:
    for kind, found in ratios(gpus()[name], speeds, most).items():
        assert max(found) < 1.6, (kind, found)
        assert min(found) > 1 / 1.6, (kind, found)
        assert 1 / 1.3 < median(found) < 1.3 or most < 16384, (kind, found)


@pytest.mark.long
def test_it_meets_those_of_a_gpu_that_no_constant_was_fitted_to() -> None:
    found = ratios(RTX_A5000, A5000_FORWARD, 16384)["fa2"]
    assert max(found) < 1.3, found
    assert min(found) > 1 / 1.3, found


@pytest.mark.long
def test_a_full_gpu_shows_the_published_order() -> None:
    gpu = gpus()["A100-80-SXM"]
    for width in (64, 128):
        for causal in (False, True):
            naive, fa1, fa2 = (
                speed(gpu, kind, width, 4096, causal)[0] for kind in ("naive", "fa1", "fa2")
            )
            assert fa2 > max(naive, fa1)
            assert fa1 > naive or (width == 128 and not causal and fa1 > 0.8 * naive)


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize(
    ("run", "kind", "bound"),
    [
        (("flash2", 16, 16384, 128), "fa3", "products"),
        (("flash2", 16, 16384, 128), "fa2", "products"),
        (("flash2", 16, 16384, 64), "fa3", "softmax"),
        (("flash2", 1, 4096, 128), "fa3", "too few blocks"),
        (("flash2", 1, 64, 64), "fa3", "launch"),
        (("naive", 16, 4096, 128), "", "DRAM"),
    ],
)
def test_what_bounds_a_run_is_said(run: tuple[Any, ...], kind: str, bound: str) -> None:
    named = kernel_kinds()[kind] if kind else None
    assert run_time(program(*run), kind=named).bound_by == bound


def test_reloads_of_a_long_run_come_from_l2() -> None:
    own = program("flash2", 1, 131072, 128, causal=True)
    found = run_time(own)
    assert found.bound_by == "products"
    assert 0.134e9 < found.dram_bytes < 0.4e9 < 30e9 < found.l2_bytes
    assert 4e-3 < found.seconds < 10e-3


@pytest.mark.parametrize("algorithm", ["naive", "flash1", "flash2"])
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"causal": True},
        {"attention": {"kv_heads": 1, "seqlen_k": 100}, "mask": {"window": 40}, "causal": True},
        {"attention": {"value_dim": 48}, "tile": (24, 40)},
    ],
)
def test_bytes_lie_between_once_and_requested(algorithm: str, more: dict[str, Any]) -> None:
    own = program(algorithm, 4, 96, 32, **({"tile": (16, 32)} | more))
    w = own.workload
    once = w.width * (
        w.heads * w.seqlen_q * (w.head_dim + w.value_dim)
        + w.kv_heads * w.seqlen_k * (w.head_dim + w.value_dim)
    )
    small = replace(w.gpu, rates=replace(w.gpu.rates, l2_mib=0))
    kind = replace(kernel_kinds()["fa1"], shares_rows=False)
    mask = 2 * 4 * w.seqlen_q * w.seqlen_k * w.width if w.mask.hides else 0
    for gpu in (w.gpu, small):
        found = run_time(on(own, gpu), kind=kind)
        assert found.dram_bytes <= found.l2_bytes
        if algorithm == "naive":  # a mask is a launch of its own
            assert found.l2_bytes == own.totals.bytes + mask
        elif algorithm == "flash2":
            assert found.l2_bytes == own.totals.bytes
        else:  # starting numbers are not stored and loaded
            assert found.l2_bytes < own.totals.bytes
        if not w.mask.hides:
            assert found.dram_bytes >= once
    assert run_time(on(own, small), kind=kind).dram_bytes == found.l2_bytes


def test_a_run_without_a_model_says_why() -> None:
    for algorithm, why in (
        ("linear", "linear attention"),
        ("flash2-backward", "backward"),
        ("split-kv", "joining splits"),
    ):
        assert why in why_no_time(program(algorithm, 1, 64, 16))
    assert not why_no_time(program("flash2", 1, 64, 16))


def test_float32_has_the_rate_of_plain_units() -> None:
    found = run_time(program("flash2", 16, 16384, 128, attention={"dtype": "float32"}))
    assert found.bound_by == "products"
    assert 4 * 16 * 16384**2 * 128 / found.seconds < 67e12  # data sheet of H100
    assert found.seconds > 8 * run_time(program("flash2", 16, 16384, 128)).seconds


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("algorithm", ["flash1", "flash2", "naive"])
def test_taking_several_visits_of_a_long_run_as_one_changes_little(
    algorithm: str, causal: bool
) -> None:
    own = program(algorithm, 66, 4096, 64, mask={"causal": causal})  # 4 shares of a head's rows
    exact, coarse = run_time(own), run_time(own, most=len(own) // 16)
    assert coarse.l2_bytes == pytest.approx(exact.l2_bytes, rel=0.005)
    # Where rows are shared out the outer blocks are longer, too.
    rough = algorithm == "flash1"
    assert coarse.dram_bytes == pytest.approx(exact.dram_bytes, rel=0.25 if rough else 0.01)
    assert coarse.seconds == pytest.approx(exact.seconds, rel=0.1 if rough else 0.005)
    # Nothing but the bytes of DRAM is less exact.
    for one, other in zip(exact.launches, coarse.launches, strict=True):
        assert (one.products, one.softmax, one.busy) == (other.products, other.softmax, other.busy)


def test_several_visits_taken_as_one_may_be_larger_than_the_cache() -> None:
    own = program("flash2", 1, 2**18, 128, tile=(1024, 1024))  # K of a head: 64 MiB
    exact, coarse = run_time(own), run_time(own, most=256)
    assert coarse.dram_bytes <= exact.dram_bytes
    assert coarse.seconds == pytest.approx(exact.seconds, rel=0.01)


@pytest.mark.long
def test_many_sequences_share_no_tile() -> None:
    own = program("flash2", 1, 64, 16, tile=(32, 32))
    one, many = run_time(own), run_time(*[own] * 300)
    assert many.dram_bytes == 300 * one.dram_bytes
    assert many.l2_bytes == 300 * one.l2_bytes
