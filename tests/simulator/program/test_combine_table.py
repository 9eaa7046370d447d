"""The joining of splits on the sizes of FlashAttention's own test of its combine kernel.

Dao-AILab/flash-attention, hopper/test_flash_attn.py, ``test_flash_attn_combine``: lengths, splits,
and half of the splits of some rows without a key; float32 within 1e-5 of the definition.
"""

import numpy as np
import pytest

from simulator.problem.scenario import with_values
from simulator.problem.workload import read_inputs, resolve
from simulator.program.algorithms import tile_program
from simulator.program.state import State
from tests.helpers.runs import scenario

SEQLENS = (1, 2, 3, 32, 64, 108, 113, 256, 640, 1024)
SPLITS = (1, 2, 3, 5, 17, 32, 55, 97, 133)
VALUES = 64
TOLERANCE = 1e-5


@pytest.mark.sweep(keep=9)
@pytest.mark.parametrize("splits", SPLITS)
@pytest.mark.parametrize("seqlen", SEQLENS)
def test_splits_are_joined_as_the_definition_says(seqlen: int, splits: int) -> None:
    chosen = scenario(
        "paged", nq=seqlen, nk=splits, d=1, dv=VALUES, rows=seqlen, cols=1, seed=seqlen
    )
    w = resolve(with_values(chosen, {"tiling": {"splits": splits}}))
    program, inputs = tile_program(w), read_inputs(w)
    rng = np.random.default_rng([seqlen, splits])
    o = rng.standard_normal((splits, seqlen, VALUES)).astype(np.float32)
    lse = rng.standard_normal((splits, seqlen)).astype(np.float32)
    lse[splits // 2 :, : seqlen // 3] = -np.inf
    lse[:, seqlen // 2] = -np.inf if seqlen > 2 else lse[:, seqlen // 2]
    state = State(
        inputs.q, inputs.k, inputs.v, np.float32,
        tensors=program.algorithm.tensors, splits=splits, pages=w.pages,
    )  # fmt: skip
    state.tensor("O_partial")[0], state.tensor("LSE_partial")[0] = o, lse
    joins = program.joining(0, 0)
    assert joins is not None
    for op in program.ops(joins):
        op.apply(state)
    high = lse.astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        total = np.log(np.exp(high).sum(axis=0))
        weights = np.where(np.isneginf(high), 0.0, np.exp(high - total))
    want = (weights[:, :, None] * o).sum(axis=0)
    np.testing.assert_allclose(state.tensor("O")[0], want, rtol=TOLERANCE, atol=TOLERANCE)
    np.testing.assert_allclose(state.tensor("LSE")[0], total, rtol=TOLERANCE, atol=TOLERANCE)
