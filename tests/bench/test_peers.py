"""Whole outputs beside PyTorch's: `make bench-peers`. What is measured in turns can fail."""

import os
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from simulator.run.trace import simulate
from tests.bench.numbers import HEADER, benchmark_scenario, fresh, measured, seconds


def skip_if_busy() -> None:
    """End a test whose ratio means nothing: others compete for the processors."""
    load, processors = os.getloadavg()[0], os.cpu_count() or 1
    if load > processors + 1:
        pytest.skip(f"load {load:.1f} on {processors} processors: the ratio is only told")


@pytest.mark.peers
@pytest.mark.parametrize(("causal", "most"), [(False, 1.8), (True, 1.3)])
def test_whole_output_beside_pytorch(
    causal: bool, most: float, capsys: pytest.CaptureFixture[str]
) -> None:
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
    ours, peers = [], []
    for _ in range(9):
        ours.append(seconds(fresh(trace)))
        peers.append(seconds(theirs))
        time.sleep(0.2)  # the peer's threads spin for a while after their work
    name = f"whole output: {'causal' if causal else 'full'}"
    row = measured(name, "ms", ours, peers, f"PyTorch {torch.__version__}", most=most)
    with capsys.disabled():
        print("", HEADER, row, sep="\n")
    skip_if_busy()
    assert row.met, str(row)
