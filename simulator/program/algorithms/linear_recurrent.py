"""Linear attention token by token: a recurrent network; chunks are its faster form.

The function is the same as in `simulator.program.algorithms.linear` with a causal mask: each token
adds its key and value to the state, and then reads the state with its query.

References: Katharopoulos, Vyas, Pappas, Fleuret 2020, "Transformers are RNNs: Fast Autoregressive
Transformers with Linear Attention", section 3.4.
"""

from __future__ import annotations

from dataclasses import replace

from simulator.problem.workload import Workload
from simulator.program.algorithms import linear, tiles, tokens
from simulator.program.launches import Launch
from simulator.program.op import Op
from simulator.program.state_ops import MapFeatures, MapRandomFeatures, ReadState, UpdateState
from simulator.program.tile_program import Visit

_PAPER = "Katharopoulos et al. 2020"
_START, _ADD = f"{_PAPER}, equations 16 and 17", f"{_PAPER}, equations 18 and 19"
_READ = f"{_PAPER}, equation 20"


def launches(w: Workload) -> tuple[Launch, ...]:
    """Return one launch over the tokens: the state is updated and read."""
    return tokens.launches(w, products=2)


def ops(w: Workload, visit: Visit) -> tuple[Op, ...]:
    """Return the ops of one token."""
    phi, product = w.feature_map, tokens.product_flops(w)
    assert phi is not None
    kind = MapRandomFeatures if phi.projects else MapFeatures
    return (
        *tokens.opening(w, visit, _START),
        tokens.loading(w, visit, _ADD),
        tokens.mapping(w, kind, linear.MAPS[phi.name]),
        UpdateState(cites=_ADD, flops=product, frees=("phi_K", "K", "V")),
        ReadState(
            cites=_READ,
            whole=True,
            flops=product,
            frees=("phi_Q", "Q"),
            allocates=tiles.accumulators(w, visit)[1:],
        ),
        *tokens.closing(w, visit, _READ, sums=True),
    )


ALGORITHM = replace(
    linear.ALGORITHM,  # the same function, but no launch leaves the state in HBM
    name="linear-recurrent",
    title="Linear attention, recurrent",
    short_title="Recurrent",
    label="recurrent",
    in_a_sentence="linear attention token by token",
    source="Katharopoulos et al. 2020, equations 16 to 20",
    about="linear attention token by token",
    launches=launches,
    visit_ops=ops,
    tensors=(),
    forms=False,
    formula="state ← state + φ(k)ᵀ[v, 1]",
    near=("linear",),
    exemplars=(
        *tokens.EXEMPLARS,
        {"attention": {"seqlen_q": 9, "feature_map": "performer", "features": 3}},
    ),
)
