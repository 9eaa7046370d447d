"""Runs whose errors are looked at row by row."""

from typing import Any

import numpy as np

from simulator.problem.scenario import Scenario
from simulator.run.effort import EFFORT, Effort
from simulator.run.exactness import Exactness, exactness
from simulator.run.row_report import row_report
from simulator.run.snapshot import Snapshot
from simulator.run.trace import Trace
from tests.helpers.runs import scenario

MASKS: tuple[dict[str, Any], ...] = (
    {}, {"causal": True}, {"causal": True, "window": 5, "sinks": 2},
)  # fmt: skip


def run(algorithm: str, mask: dict[str, Any], **more: Any) -> Scenario:
    shape = {"nq": 21, "nk": 18, "d": 8, "heads": 2, "kv_heads": 1, "rows": 6, "cols": 4}
    return scenario(algorithm, **{**shape, "mask": mask, "temperature": 0.3, **more})


def at(
    trace: Trace, visit: int, op: int | None = None, effort: Effort = EFFORT
) -> tuple[Snapshot, Exactness]:
    now = trace.snapshot(visit, op)
    return now, exactness(trace, now, row_report(now, 0), effort)


def units(ours: np.ndarray, exact: np.ndarray) -> float:
    """Return the error of one row, as its definition says."""
    if not np.isfinite(ours).all():
        return np.inf
    largest = np.float32(np.abs(exact).max())
    return float(np.abs(ours - exact).max() / np.spacing(max(largest, np.finfo(np.float32).tiny)))
