"""Numbers of rounding that captions may ask for."""

from __future__ import annotations

from simulator.base.errors import refuse
from simulator.run.rounding_errors import RoundingError, rounding_errors
from simulator.run.trace import Trace
from simulator.study.captions import Numbers, known, named, once_a_run


@known
def rounding_error(n: Numbers, way: str, which: str = "largest") -> float:
    """Error of O, `largest`, `mean` or in `ulp`, the way `standard`, `flash` or `float32`."""
    if n.workload.rule is not None or n.workload.latent:
        raise refuse(
            "", "rounding_error", n.workload.algorithm, "a run with a softmax, and K and V"
        )
    found: RoundingError = named("way", way, dict(_errors(n.trace, n.head)))
    return named("which", which, {"largest": found.largest, "mean": found.mean, "ulp": found.ulp})


@once_a_run
def _errors(trace: Trace, head: int) -> dict[str, RoundingError]:
    return dict(rounding_errors(*trace.single_heads, head).items())
