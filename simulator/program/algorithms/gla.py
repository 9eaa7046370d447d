"""Gated linear attention: before a key is added, each feature of the state forgets a share.

``S_t = diag(α_t) S_(t-1) + k_tᵀ v_t`` and ``o_t = q_t S_t``, with q and k as they are, without a
sum of the weights and without a scale. α is an input of each key, in (0, 1] for each feature.

References: Yang, Wang, Shen, Panda, Kim 2024, "Gated Linear Attention Transformers with
Hardware-Efficient Training", section 4.1.
"""

from __future__ import annotations

from simulator.problem.workload import Workload
from simulator.program.algorithms import tiles, tokens
from simulator.program.launches import Launch
from simulator.program.op import Op
from simulator.program.state_ops import AddValues, DecayState, KeepRows, ReadOutput
from simulator.program.tensors import TensorSpec
from simulator.program.tile_program import TileAlgorithm, Visit

_GATE = TensorSpec("decay", ("key", "feature"), width="float32")
_PAPER = "Yang et al. 2024"
_START, _ROWS = f"{_PAPER}, initial state", f"{_PAPER}, rows as they are"
_FORGET, _WRITE, _READ = (f"{_PAPER}, {part}" for part in ("decay", "outer product", "readout"))


def launches(w: Workload) -> tuple[Launch, ...]:
    """Return one launch over the tokens: the state is updated and read."""
    return tokens.launches(w, products=2, gate=_GATE)


def ops(w: Workload, visit: Visit) -> tuple[Op, ...]:
    """Return the ops of one token."""
    product = tokens.product_flops(w)
    return (
        *tokens.opening(w, visit, _START),
        tokens.loading(w, visit, _ROWS, _GATE),
        tokens.mapping(w, KeepRows, _ROWS),
        DecayState(cites=_FORGET, frees=("decay",)),
        AddValues(cites=_WRITE, flops=product, frees=("phi_K", "K", "V")),
        ReadOutput(
            cites=_READ,
            flops=product,
            frees=("phi_Q", "Q"),
            allocates=tiles.accumulators(w, visit)[2:],
        ),
        *tokens.closing(w, visit, _READ, sums=False),
    )


ALGORITHM = TileAlgorithm(
    name="gla",
    title="Gated linear attention",
    short_title="Gated",
    label="gated",
    in_a_sentence="gated linear attention",
    source="Yang et al. 2024, section 4.1",
    about="linear attention with a state that forgets",
    launches=launches,
    visit_ops=ops,
    walks=False,
    running=False,
    compared=False,
    gates=(_GATE,),
    left=("state",),
    softmax=False,
    sums=False,
    forms=False,
    formula="state ← α·state + kᵀv",
    row_title="Weights of one row",
    error_size=tokens.error_size,
    exemplars=tokens.EXEMPLARS,
)
