"""The simulator's own measurements: `make bench`. Ratios are held; times are told.

A time says as much about the machine as about the program, so only what was measured beside
something else in the same run, or counts memory, can fail.
"""

import os
import time
from collections.abc import Iterator

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from simulator.run.trace import simulate
from simulator.study.bench import (
    Measurement,
    arithmetic_measurements,
    benchmark_scenario,
    fresh,
    seconds,
    seek_measurements,
    stepping_measurements,
    sweep_measurements,
    whole_output_measurements,
)


@pytest.fixture
def tell(capsys: pytest.CaptureFixture[str]) -> Iterator[list[Measurement]]:
    """Collect measurements and print them even where output is captured."""
    rows: list[Measurement] = []
    yield rows
    with capsys.disabled():
        print("", *rows, sep="\n")


def skip_if_busy() -> None:
    """End a test whose ratio means nothing: others compete for the processors."""
    load, processors = os.getloadavg()[0], os.cpu_count() or 1
    if load > processors + 1:
        pytest.skip(f"load {load:.1f} on {processors} processors: the ratio is only told")


def test_seeking(tell: list[Measurement]) -> None:
    tell += seek_measurements()
    ratio = next(row for row in tell if "median" in row.name)
    memory = next(row for row in tell if row.unit == "MB")
    assert memory.met, str(memory)
    skip_if_busy()
    assert ratio.met, str(ratio)


def test_stepping(tell: list[Measurement]) -> None:
    tell += stepping_measurements()
    assert all(np.isfinite(row.figure) for row in tell)


def test_program_arithmetic(tell: list[Measurement]) -> None:
    tell += arithmetic_measurements()
    assert all(np.isfinite(row.figure) for row in tell)


def test_sweeps(tell: list[Measurement]) -> None:
    tell += sweep_measurements()
    assert len(tell) == 9
    assert all(np.isfinite(row.figure) for row in tell)


def test_whole_output(tell: list[Measurement]) -> None:
    tell += whole_output_measurements()
    full, causal = tell
    assert causal.figure < full.figure  # half of the tiles are skipped


@pytest.mark.peers
@pytest.mark.parametrize(("causal", "most"), [(False, 1.8), (True, 1.3)])
def test_whole_output_beside_pytorch(causal: bool, most: float, tell: list[Measurement]) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not here: make bench-peers brings it")
    trace = simulate(benchmark_scenario(4096, causal=causal))
    q, k, v = (torch.from_numpy(np.array(t))[None] for t in
               (trace.inputs.q, trace.inputs.k, trace.inputs.v))  # fmt: skip
    attention = torch.nn.functional.scaled_dot_product_attention
    torch.set_num_threads(os.cpu_count() or 1)

    def theirs() -> object:
        with threadpool_limits(os.cpu_count()):
            return attention(q, k, v, is_causal=causal)

    close = np.abs(theirs()[0].numpy() - trace.output).max()
    assert close < 1e-5
    # Taken in turns, so that a busy moment of the machine meets both.
    rounds = []
    for _ in range(9):
        rounds.append((seconds(fresh(trace)), seconds(theirs)))
        time.sleep(0.2)  # the peer's threads spin for a while after their work
    ours, peer = np.median(rounds, axis=0)
    what = "causal" if causal else "full"
    tell += [
        Measurement(f"whole output: {what}, PyTorch {torch.__version__}", peer * 1e3, "ms"),
        Measurement(f"whole output: {what}, ours", ours * 1e3, "ms"),
        Measurement(f"whole output: {what}, ours / PyTorch", ours / peer, "x", most),
    ]
    skip_if_busy()
    assert tell[-1].met, str(tell[-1])
