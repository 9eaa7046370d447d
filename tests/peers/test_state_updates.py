"""Updates of a state against the naive forms of fla-org's flash-linear-attention, at its shapes.

The forms are written here from their formulas, because the library needs Triton. They are those of
``fla/ops/linear_attn/naive.py``, ``fla/ops/gla/naive.py`` (``naive_recurrent_gla``) and
``fla/ops/delta_rule/naive.py`` (``delta_rule_recurrence``) of
https://github.com/fla-org/flash-linear-attention, in PyTorch and in float32 as these are, and the
shapes and the ratio of the errors are those of its tests.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simulator.problem.scenario import parse_scenario
from simulator.run.trace import simulate

pytestmark = pytest.mark.peers
torch = pytest.importorskip("torch", reason="PyTorch is not here: make test-peers brings it")

SHAPES = ((63, 60), (256, 64), (500, 100), (1024, 128), (2048, 64))
"""Tokens and dimensions."""
RATIO = 1e-3
"""Root mean square of the differences over that of the numbers: 0.005 there."""
HEADS = 2
Tensor = Any


def naive_linear(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal linear attention, normalised: chunks of the library give the same."""
    q, k = (torch.nn.functional.elu(x) + 1 for x in (q, k))
    state = torch.zeros(HEADS, k.shape[-1], v.shape[-1])
    total, out = torch.zeros(HEADS, k.shape[-1]), torch.zeros_like(v)
    for t in range(q.shape[1]):
        state = state + k[:, t, :, None] * v[:, t, None, :]
        total = total + k[:, t]
        read = (q[:, t, :, None] * state).sum(-2)
        out[:, t] = read / (q[:, t] * total).sum(-1, keepdim=True)
    return out


def naive_gla(q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor) -> Tensor:
    """h = h exp(g) + k v and o = q h, with a scale of 1."""
    state, out = torch.zeros(HEADS, k.shape[-1], v.shape[-1]), torch.zeros_like(v)
    for t in range(q.shape[1]):
        state = state * log_decay[:, t].exp()[..., None] + k[:, t, :, None] * v[:, t, None, :]
        out[:, t] = (q[:, t, :, None] * state).sum(-2)
    return out


def naive_delta(q: Tensor, k: Tensor, v: Tensor, beta: Tensor) -> Tensor:
    """v - S k, times β, is added; the library's scale of q is left out."""
    q, k = (torch.nn.functional.normalize(x, dim=-1) for x in (q, k))
    state, out = torch.zeros(HEADS, k.shape[-1], v.shape[-1]), torch.zeros_like(v)
    for t in range(q.shape[1]):
        new = v[:, t] - (state * k[:, t, :, None]).sum(-2)
        state = state + k[:, t, :, None] * (new * beta[:, t, None])[:, None, :]
        out[:, t] = torch.einsum("hd,hdm->hm", q[:, t], state)
    return out


@pytest.mark.parametrize(("tokens", "dim"), SHAPES)
@pytest.mark.parametrize("name", ["linear", "linear-recurrent", "gla", "deltanet"])
def test_output_is_that_of_the_naive_form(name: str, tokens: int, dim: int, tmp_path: Path) -> None:
    torch.manual_seed(tokens)
    q, k, v = (torch.randn(HEADS, tokens, dim) for _ in range(3))
    # As its tests draw them: the logarithm of a gate over 16, and a sigmoid.
    log_decay = torch.nn.functional.logsigmoid(torch.randn(HEADS, tokens, dim)) / 16
    beta = torch.rand(HEADS, tokens).sigmoid()
    np.savez(
        tmp_path / "input.npz", q=q.numpy(), k=k.numpy(), v=v.numpy(),
        decay=log_decay.exp().numpy(), strength=beta.numpy(),
    )  # fmt: skip
    trace = simulate(
        parse_scenario(
            {
                "attention": {"algorithm": name},
                "mask": {"causal": True},
                "tiling": {"rows": 64, "cols": 64},
                "input": {"source": "file", "path": str(tmp_path / "input.npz")},
            }
        )
    )
    exact = {
        "gla": lambda: naive_gla(q, k, v, log_decay),
        "deltanet": lambda: naive_delta(q, k, v, beta),
    }.get(name, lambda: naive_linear(q, k, v))()
    theirs = exact.numpy().astype(float)
    difference = trace.output.astype(float) - theirs
    assert np.sqrt((difference**2).mean()) <= RATIO * np.sqrt((theirs**2).mean())
