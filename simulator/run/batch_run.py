"""All sequences of a batch, each run by itself: what they come to together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from simulator.base.errors import refuse
from simulator.problem.filling import each_sequence
from simulator.problem.scenario import Scenario
from simulator.run.trace import EngineFactory, Progress, Trace, simulate
from simulator.timing.run_time import model_of

_LARGEST = frozenset({"peak_bytes", "budget_bytes", "max_abs_error", "splits", "split_keys"})
"""Numbers of a summary of which the largest is told; the others are added up."""


def traces_of(
    scenario: Scenario, engine: str | EngineFactory = "numpy", source: str = ""
) -> tuple[Trace, ...]:
    """Return the traces of a scenario: one for each sequence of its batch, or a single one.

    Raises InputError: the scenario, its input or the engine cannot be used.
    """
    return tuple(simulate(each, engine, source) for each in each_sequence(scenario))


def run_all(traces: Sequence[Trace], progress: Progress | None = None) -> dict[str, Any]:
    """Run sequences one after the other and return the summary of all.

    Bytes, FLOPs, visits and seconds are sums. Of the error, of splits and of what a thread block
    has on chip the largest counts.
    """
    summaries = []
    for n, trace in enumerate(traces):
        done = None if progress is None else _part(progress, n, len(traces))
        summaries.append(trace.summary(done))
    together: dict[str, Any] = _together(summaries)
    programs = [trace.program for trace in traces]
    lengths = [trace.workload.seqlen_k for trace in traces]
    together |= model_of(*programs) | {"sequences": lengths}
    if traces[0].workload.scenario.batch.queries:
        together["queries"] = [trace.workload.queries for trace in traces]
    return together


def check_one(traces: Sequence[Trace], output: object) -> None:
    """Refuse to write arrays of several sequences: they have keys of different numbers.

    Raises InputError: there are several.
    """
    if len(traces) > 1:
        running = ", ".join(map(str, traces[0].workload.scenario.batch.running))
        expected = f"a scenario that says batch.sequence, one of {running}"
        raise refuse("run", "-o", str(output), expected)


def _part(progress: Progress, n: int, count: int) -> Progress:
    return lambda share: progress((n + share) / count)


def _together(values: Sequence[Any], name: str = "") -> Any:
    """Return the sum of numbers, what all agree on, or the same of tables."""
    if name == "model":
        return None
    first = values[0]
    if isinstance(first, dict):
        keys = dict.fromkeys(key for each in values for key in each)
        return {key: _together([each[key] for each in values if key in each], key) for key in keys}
    if isinstance(first, str):
        return first
    if None in values:  # an error that is no number
        return None
    return max(values) if name in _LARGEST else sum(values)
