"""P and S in the storage type beside PyTorch's eager attention and FlashAttention's arithmetic."""

import numpy as np
import pytest

from simulator.base.dtypes import DType
from simulator.engines.numpy_engine import numpy_engine
from simulator.engines.reference import reference_rows
from simulator.problem.scenario import parse_scenario
from simulator.problem.workload import read_inputs, resolve

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.peers

ROWS, DEPTH, TILE = 256, 64, 64


def eager(q, k, v, dtype):
    """Return O as PyTorch's operations make it, all numbers in the dtype."""
    q, k, v = (torch.tensor(x).to(dtype) for x in (q, k, v))
    return torch.softmax(q @ (k * DEPTH**-0.5).T, dim=-1) @ v


def tiled(q, k, v, dtype):
    """Return O as FlashAttention's kernels make it: float32, but for P before P V."""
    q, k, v = (torch.tensor(x).to(dtype).float() for x in (q, k, v))
    m, l = torch.full((ROWS, 1), float("-inf")), torch.zeros(ROWS, 1)
    o = torch.zeros(ROWS, DEPTH)
    for at in range(0, ROWS, TILE):
        s = q @ k[at : at + TILE].T * DEPTH**-0.5
        now = torch.maximum(m, s.amax(dim=1, keepdim=True))
        p, alpha = torch.exp(s - now), torch.exp(m - now)
        l = alpha * l + p.sum(dim=1, keepdim=True)
        o, m = alpha * o + p.to(dtype).float() @ v[at : at + TILE], now
    return (o / l).to(dtype)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(
    ("algorithm", "theirs"), [("naive", eager), ("flash1", tiled), ("flash2", tiled)]
)
def test_errors_are_those_of_pytorch(algorithm: str, theirs, dtype: DType) -> None:
    said = {"algorithm": algorithm, "heads": 1, "seqlen_q": ROWS, "head_dim": DEPTH,
            "dtype": dtype, "p_dtype": "storage"}  # fmt: skip
    w = resolve(parse_scenario({"attention": said, "tiling": {"rows": TILE, "cols": TILE}}))
    inputs = read_inputs(w)
    exact, _ = reference_rows(w, inputs, 0, range(ROWS))
    ours = torch.tensor(np.concatenate([b.o for b in numpy_engine(w, inputs).row_blocks(0)]))
    ours = ours.to(getattr(torch, dtype))  # FlashAttention-1 keeps O in float32 until the end
    made = theirs(*(x[0] for x in (inputs.q, inputs.k, inputs.v)), getattr(torch, dtype))
    off, peer = (np.abs(o.double().numpy() - exact) for o in (ours, made))
    assert off.max() == pytest.approx(peer.max(), rel=0.2)
    assert off.mean() == pytest.approx(peer.mean(), rel=0.2)
