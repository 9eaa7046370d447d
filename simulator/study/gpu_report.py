"""The measurements of the checks on a GPU; only this module reads their report.

``kernels.check`` writes docs/gpu/report.json. A figure that belongs to a run contains the run's
`signature`; it is shown only for exactly that workload.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from simulator.base.assets import ASSETS
from simulator.problem.masks import Mask
from simulator.problem.workload import Workload
from simulator.program.algorithms import takes_turns

REPORT = ASSETS.parent / "docs" / "gpu" / "report.json"
"""In the checkout and in the frozen bundle; if it is missing, nothing was measured."""
WORKLOAD = "workload"
"""Key of a figure's signature."""

Report = dict[str, Any]
"""As ``kernels.check`` writes it."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A run that was timed on a GPU."""

    algorithm: str  # its name in scenarios
    gpu: str  # the device, as its driver names it
    seconds: float  # median time of a launch
    rate: float  # FLOP/s


def signature(w: Workload) -> dict[str, Any]:
    """Return everything that determines the bytes and the work of a run, as JSON has it.

    The numbers in Q, K, V, their positions, the scale and the preset are left out, because no
    kernel moves or computes more or less because of them.
    """
    mask = w.mask
    changed = w.scoring.work
    if w.biases is not None:
        changed["bias"] = True
    if w.sink_logits:
        changed["sink_logits"] = True
    waits = {"deterministic": True} if takes_turns(w) else {}
    return (
        waits
        | ({"scores": changed} if w.changes_scores or w.sink_logits else {})
        | {
            "algorithm": w.algorithm,
            "heads": w.heads,
            "kv_heads": w.kv_heads,
            "kv_head_of": " ".join(map(str, w.kv_head_of)),  # as text: one line of the report
            "seqlen_q": w.seqlen_q,
            "seqlen_k": w.seqlen_k,
            "head_dim": w.head_dim,
            "value_dim": w.value_dim,
            "dtype": w.dtype,
            "mask": {
                "causal": mask.causal,
                "window": mask.window if isinstance(mask.window, int) else str(list(mask.window)),
                "sinks": mask.sinks if mask.window else 0,  # without a window there are no sinks
                **_pattern(mask),
            },
            "rows": w.rows,
            "cols": w.cols,
        }
    )


def _pattern(mask: Mask) -> dict[str, Any]:
    """Return the other conditions of a mask; nothing for a simple mask, as in older reports."""
    moved = {"align": mask.align} if mask.moved else {}
    if mask.simple:
        return moved
    blocks = mask.blocks and (mask.blocks.size, mask.blocks.name)
    tensor = {"tensor": mask.tensor.name} if mask.tensor else {}
    return {"dilation": mask.dilation, "global_tokens": mask.global_tokens,
            "documents": " ".join(map(str, mask.documents)), "blocks": str(blocks),
            **tensor, **moved}  # fmt: skip


def measured_run(w: Workload, flops: int, report: Report) -> Measured | None:
    """Return the timing of exactly this workload in a report."""
    for line in _figures(report, "lines", w):
        ms = _number(line, "ms")  # none: the run did not fit
        if ms:
            seconds = ms / 1e3
            return Measured(w.algorithm, report["machine"]["GPU"], seconds, flops / seconds)
    return None


def measured_dram(w: Workload, report: Report) -> int | None:
    """Return the DRAM bytes, read and written, of exactly this workload in a report."""
    for row in _figures(report, "dram", w):
        read, written = _number(row, "read"), _number(row, "write")
        if read is not None and written is not None:
            return int(read + written)
    return None


def _figures(report: Report, key: str, w: Workload) -> Iterator[dict[str, Any]]:
    """Yield the figures of one name that were measured on exactly this workload.

    Figures of a failed check, or of a machine without a name, are not used. Only NumPy makes
    faults, so no GPU has run a workload with faults.
    """
    if w.faults.on or not isinstance(_table(report.get("machine")).get("GPU"), str):
        return
    wanted = signature(w)
    for check in _tables(report.get("checks")):
        if check.get("status") == "passed":
            for figure in _tables(_table(check.get("figures")).get(key)):
                if figure.get(WORKLOAD) == wanted:
                    yield figure


def _table(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _tables(value: object) -> list[dict[str, Any]]:
    return [_table(each) for each in value] if isinstance(value, list) else []


def _number(figure: dict[str, Any], key: str) -> float | None:
    """Return a number of a figure; None if it is not a number that was measured."""
    value = figure.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < 1e18 else None


def read_report(path: Path) -> Report:
    """Return a report; an empty one if there is none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


@lru_cache(maxsize=1)
def gpu_report() -> Report:
    """Return the report in this copy of Tilescope, read once; an empty one if there is none."""
    return read_report(REPORT)
