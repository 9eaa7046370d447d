"""DeltaNet: a key's new value takes the place of the value that the state has for the key.

``S_t = S_(t-1) + β_t k_tᵀ (v_t - k_t S_(t-1))`` and ``o_t = q_t S_t``, with q and k of length 1,
without a sum of the weights and without a scale. With β = 1 the state answers a key with exactly
the value that was written with it last. β is an input of each key, in (0, 1].

References: Schlag, Irie, Schmidhuber 2021, "Linear Transformers Are Secretly Fast Weight
Programmers". Yang, Wang, Zhang, Shen, Kim 2024, "Parallelizing Linear Transformers with the Delta
Rule over Sequence Length", section 2.2.
"""

from __future__ import annotations

from dataclasses import replace

from simulator.base.dtypes import STATISTIC_WIDTH
from simulator.problem.workload import Workload
from simulator.program.algorithms import gla, tiles, tokens
from simulator.program.launches import Launch
from simulator.program.op import Op
from simulator.program.state import ChipTile
from simulator.program.state_ops import AddCorrection, Correct, ReadOutput, Recall, UnitRows
from simulator.program.tensors import TensorSpec
from simulator.program.tile_program import Visit

_GATE = TensorSpec("strength", ("key",), width="float32")
_PAPER = "Yang et al. 2024"
_START, _ROWS = f"{_PAPER}, initial state", f"{_PAPER}, rows of length 1"
_RECALL, _CORRECT = f"{_PAPER}, old value", f"{_PAPER}, delta"
_WRITE, _READ = f"{_PAPER}, outer product", f"{_PAPER}, readout"


def launches(w: Workload) -> tuple[Launch, ...]:
    """Return one launch over the tokens: the state is read with the key, updated and read."""
    return tokens.launches(w, products=3, gate=_GATE)


def ops(w: Workload, visit: Visit) -> tuple[Op, ...]:
    """Return the ops of one token."""
    product, wide = tokens.product_flops(w), w.value_dim * STATISTIC_WIDTH
    return (
        *tokens.opening(w, visit, _START),
        tokens.loading(w, visit, _ROWS, _GATE),
        tokens.mapping(w, UnitRows, _ROWS),
        Recall(cites=_RECALL, flops=product, allocates=(ChipTile("v_old", wide, "registers"),)),
        Correct(
            cites=_CORRECT,
            frees=("v_old", "strength", "V"),
            allocates=(ChipTile("u", wide, "registers"),),
        ),
        AddCorrection(cites=_WRITE, flops=product, frees=("phi_K", "K", "u")),
        ReadOutput(
            cites=_READ,
            flops=product,
            frees=("phi_Q", "Q"),
            allocates=tiles.accumulators(w, visit)[2:],
        ),
        *tokens.closing(w, visit, _READ, sums=False),
    )


ALGORITHM = replace(
    gla.ALGORITHM,  # the other update of a state by one token and its gate
    name="deltanet",
    title="DeltaNet",
    short_title="DeltaNet",
    label="DeltaNet",
    in_a_sentence="DeltaNet",
    source="Yang et al. 2024, section 2.2",
    about="linear attention in which a new value takes the place of the old one",
    launches=launches,
    visit_ops=ops,
    gates=(_GATE,),
    formula="state ← state + β kᵀ(v − k·state)",
    rows=("V", "v_old", "u"),
)
