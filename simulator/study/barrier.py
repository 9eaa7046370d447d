"""A kernel without one of its barriers, and the race that a detector sees in it.

The detector runs kernels, which this package does not know: callers pass a detector, or else get a
race that was recorded.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from simulator.base.assets import ASSETS
from simulator.base.errors import refuse
from simulator.problem.workload import Workload

RECORDED = "A recorded run"


@dataclass(frozen=True, slots=True)
class BarrierRace:
    """A write and a read of shared memory that nothing orders any more."""

    kernel: str  # its name
    # barrier, at: the barrier that was taken away, and its line: ``__syncthreads()``,
    # ``flash2.cu:77``
    barrier: str
    at: str
    tensor: str  # the tensor in this memory
    writes: str  # writes, reads: lines of the kernel
    reads: str
    writer: int  # writer, reader: threads of one block, counted from 0
    reader: int
    seen: str = RECORDED  # where it was seen, in a few words


Watch = Callable[[Workload, str], BarrierRace]
"""Returns the race of a workload's kernel without a barrier, named by the comment beside it."""


@cache
def _records() -> dict[str, dict[str, object]]:
    """Return the recorded races, by barrier."""
    return tomllib.loads((ASSETS / "barriers.toml").read_text(encoding="utf-8"))


def ways(w: Workload) -> dict[str, object]:
    """Return the values of a workload that decide which threads meet."""
    return {"algorithm": w.algorithm, "dtype": w.dtype, "rows": w.rows, "cols": w.cols,
            "head_dim": w.head_dim}  # fmt: skip


def recorded_race(w: Workload, barrier: str) -> BarrierRace:
    """Return the race as it was seen when it was recorded.

    Raises InputError: nothing is recorded for this barrier and this workload.
    """
    record = dict(_records().get(barrier, {}))
    if not record or record.pop("of") != ways(w):
        kept = "; ".join(f"{name}: {each['of']}" for name, each in _records().items())
        raise refuse("", "barrier", barrier, f"one that is recorded ({kept})")
    return BarrierRace(**record)  # type: ignore[arg-type]
