"""Numbers of the order of tokens that captions may ask for."""

from __future__ import annotations

from simulator.problem.masks import Mask
from simulator.study.captions import Numbers, chosen, known, whole
from simulator.study.order.reach import MOST_TOKENS, cone, stack
from simulator.study.order.reach import global_layers as spread_layers
from simulator.study.order.shuffle import PLACES as DEPENDS
from simulator.study.order.shuffle import order_of, shuffled


@known
def shuffle_apart(n: Numbers, places: str = "run") -> float:
    """Largest distance of a row of O from where it was before its tokens were shuffled.

    It is a share of a row's length; `places` is what depends on places: `run`, `none`, `causal` or
    `rope`.
    """
    single, inputs = n.trace.single_heads
    kind = chosen("places", places, DEPENDS)
    found = shuffled(single, inputs, n.first_head, order_of(single.seqlen_k, 0), kind)
    return float(found.apart.max())


@known
def reach_of(n: Numbers, token: int, window: int, layers: int, global_layers: int = 0) -> int:
    """Of how many tokens a token can hear through layers with a causal window, some global."""
    tokens = min(n.workload.seqlen_k, MOST_TOKENS)
    token = whole("token", token, 0, tokens - 1)
    window, layers = whole("window", window, 1, tokens), whole("layers", layers, 1, 64)
    count = whole("global layers", global_layers, 0, layers)
    local, spread = (Mask(tokens, tokens, causal=True, window=each) for each in (window, 0))
    tables = stack(local, spread, spread_layers(layers, count)).tables
    return int(cone(tables, token)[0].sum())
