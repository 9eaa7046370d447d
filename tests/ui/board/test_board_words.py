"""What the board says at every op of small runs, against texts that somebody has read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from simulator.base.assets import SCENARIOS
from simulator.problem.scenario import Scenario, load_scenario, with_values
from simulator.program.algorithms import ALGORITHMS
from simulator.run.snapshot import Cell
from simulator.run.trace import Trace, simulate
from tests.helpers.approved import check
from tests.helpers.runs import fitted, needed_mask, scenario
from ui.board.words import caption_phrases, describe, header_choices, sharing_choices

APPROVED = Path(__file__).parent / "approved"
SIZES: dict[str, Any] = {"nq": 8, "nk": 8, "d": 4, "heads": 4, "kv_heads": 2, "rows": 3, "cols": 2}


def small(algorithm: str) -> Scenario:
    mask = needed_mask(algorithm) or {"causal": True}
    return scenario(algorithm, **fitted(algorithm, **SIZES, mask=mask))


CHANGED: dict[str, dict[str, Any]] = {
    "soft-cap": {"scores": {"softcap": 2.0, "alibi": True}},
    "sinks": {"scores": {"sink_logits": [1.5, 1.5, -2.0, 0.25]}},
    "temperature": {"attention": {"temperature": 2.0}},
    "scale": {"attention": {"scale": 0.501}},
    "threshold": {"attention": {"rescale_threshold": 1.0}},
    "rope": {"position": {"kind": "rope", "offset": 100}},
    "late scale": {"faults": {"late_scale": True}},
}
RUNS = {name: small(name) for name in ALGORITHMS}
RUNS |= {name: with_values(RUNS["flash2"], said) for name, said in CHANGED.items()}
RUNS |= {"whole state": scenario("linear", **{**SIZES, "mask": {}})}
RUNS |= {name: load_scenario(SCENARIOS / f"{name}.toml") for name in ("real-scale", "mla", "paged")}


def said(trace: Trace) -> Iterator[str]:
    """Yield the words at every op of some visits, each text once."""
    w, known = trace.workload, set[str]()
    keys, values = trace.program.algorithm.keys, trace.program.algorithm.values
    last = Cell("S", w.seqlen_q - 1, w.seqlen_k - 1)
    cells = [Cell("S", 0, 0), Cell("S", 0, w.seqlen_k - 1), last]
    cells += [Cell(name, 1, 0) for name in (*trace.program.algorithm.columns, "O", keys, values)]
    for visit in sorted({0, 1, len(trace) // 2, len(trace) - 1}):
        for op in range(len(trace.program.ops(visit))):
            now = trace.snapshot(visit, op)
            here = Cell("S", now.visit.rows.start, now.visit.cols.start if now.visit.cols else 0)
            texts = [header_choices(now)[0], *caption_phrases(now, 40), *sharing_choices(now)[:1]]
            texts += [describe(now, cell) for cell in (here, *cells)]
            fresh = [text for text in dict.fromkeys(texts) if text not in known]
            known |= {*fresh}
            yield "\n".join((f"\nvisit {visit}, {now.op.name}", *fresh))


@pytest.mark.long
@pytest.mark.parametrize("name", RUNS)
def test_what_is_said_was_approved(name: str) -> None:
    trace = simulate(RUNS[name])
    check("\n".join(said(trace)) + "\n", APPROVED / f"{name.replace(' ', '-')}.txt")


@pytest.mark.parametrize("name", ["naive", "flash2", "split-kv", "linear", "naive-backward"])
def test_a_plain_board_says_nothing_of_where_numbers_lie(name: str) -> None:
    trace = simulate(RUNS[name])
    for visit in range(len(trace)):
        for op in range(len(trace.program.ops(visit))):
            now = trace.snapshot(visit, op)
            words = " ".join(
                (*header_choices(now, plain=True), *caption_phrases(now, 40, plain=True))
            )
            assert not re.search(r"HBM|chip|registers", words), words
            assert header_choices(now, plain=True)[-1] == header_choices(now)[-1]
