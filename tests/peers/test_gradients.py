"""The gradients of a backward pass beside those of PyTorch's autograd."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from simulator.problem.workload import Inputs, Workload
from simulator.program.algorithms import ALGORITHMS
from tests.helpers.runs import scenario, trace_of

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.peers

NAMES = tuple(name for name, of in ALGORITHMS.items() if of.backward)
NEAR = 1e-5
"""How far a float32 gradient may be from autograd's in float64, in shares of the largest."""
TIMES = 3
"""FlashAttention's rule: how many times the error of PyTorch in the same dtype it may have."""
KINDS: dict[str, dict[str, Any]] = {
    "full": {},
    "causal": {"mask": {"causal": True}},
    "window": {"mask": {"causal": True, "window": 40}},
    "soft-cap": {"mask": {"causal": True}, "scores": {"softcap": 2.0}},
}
SIZES = ((113, 203), (108, 256), (1, 147), (3, 799))
"""Of tests/test_flash_attn.py of Dao-AILab/flash-attention, as the head dimensions are."""
Gradients = dict[str, np.ndarray]


def autograd(w: Workload, inputs: Inputs, dtype: Any) -> Gradients:
    """Return dQ, dK and dV of all heads, made in a dtype."""
    q, k, v, upstream = (
        torch.tensor(x, dtype=dtype) for x in (inputs.q, inputs.k, inputs.v, inputs.upstream)
    )
    for each in (q, k, v):
        each.requires_grad_()
    seen = torch.tensor(w.mask.visible(range(w.seqlen_q), range(w.seqlen_k)))
    own = list(w.kv_head_of)
    s = w.scale * q @ k[own].transpose(1, 2)
    if w.softcap:
        s = w.softcap * torch.tanh(s / w.softcap)
    p = torch.softmax(s.masked_fill(~seen, float("-inf")), dim=-1)
    p = p.masked_fill(~seen.any(dim=1)[:, None], 0.0)  # rows that see nothing
    (p @ v[own]).backward(upstream)
    return {f"d{n}": x.grad.double().numpy() for n, x in (("q", q), ("k", k), ("v", v))}


def run(
    name: str, nq: int, nk: int, d: int, dtype: str, kind: str
) -> tuple[Workload, Inputs, Gradients]:
    said = {"heads": 4, "kv_heads": 2, "rows": 32, "cols": 64} | KINDS[kind]
    trace = trace_of(scenario(name, nq=nq, nk=nk, d=d, dtype=dtype, **said))
    return trace.workload, trace.inputs, dict(trace.arrays())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("size", "d"), list(product(SIZES, (32, 59, 128))))
def test_they_are_those_of_autograd(size: tuple[int, int], d: int, kind: str, name: str) -> None:
    w, inputs, ours = run(name, *size, d, "float32", kind)
    for made, want in autograd(w, inputs, torch.float64).items():
        assert np.abs(want).max() > 0
        assert np.abs(ours[made] - want).max() <= NEAR * np.abs(want).max(), made


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("kind", ["full", "causal"])
@pytest.mark.parametrize(("size", "d"), list(product(SIZES, (40, 64, 111, 256))))
def test_errors_are_at_most_three_times_those_of_pytorch(
    size: tuple[int, int], d: int, kind: str, dtype: str, name: str
) -> None:
    w, inputs, ours = run(name, *size, d, dtype, kind)
    theirs = autograd(w, inputs, getattr(torch, dtype))
    for made, want in autograd(w, inputs, torch.float64).items():
        error = np.abs(theirs[made] - want).max()
        assert np.abs(ours[made] - want).max() <= TIMES * error + 1e-5, made
