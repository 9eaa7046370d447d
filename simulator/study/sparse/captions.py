"""Numbers of sparse masks that captions may ask for."""

from __future__ import annotations

import math

from simulator.run.trace import Trace
from simulator.study.captions import Numbers, known, named, once_a_run
from simulator.study.sparse.patterns import Priced, patterns, priced, usual_knobs


@known
def mask_price(n: Numbers, mask: str, figure: str) -> float:
    """`tiles`, `bytes`, `flops` or `seconds` of a mask of Masks over those of dense; or `error`."""
    rows = {each.pattern.name: each for each in _priced(n.trace)}
    ours, dense = (_figures(named("mask", name, rows, "; ")) for name in (mask, "dense"))
    found = named("figure", figure, ours)
    return found if figure == "error" else found / dense[figure]


def _figures(each: Priced) -> dict[str, float]:
    f = each.figures
    return {"tiles": each.visited, "bytes": f.bytes, "flops": f.flops, "seconds": each.seconds,
            "error": math.nan if each.error is None else each.error}  # fmt: skip


@once_a_run
def _priced(trace: Trace) -> tuple[Priced, ...]:
    w, inputs = trace.workload, trace.inputs
    return priced(w, inputs, patterns(w, inputs, usual_knobs(w)))
