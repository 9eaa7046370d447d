"""All sequences of a batch, each run by itself, and the summary of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from simulator.base.errors import refuse
from simulator.problem.filling import each_sequence
from simulator.problem.scenario import Scenario
from simulator.program.blind import blind_counters
from simulator.program.visit import Counters
from simulator.run.trace import EngineFactory, Progress, Trace, simulate
from simulator.timing.run_time import model_of

_LARGEST = frozenset({"peak_bytes", "budget_bytes", "max_abs_error", "splits", "split_keys"})
"""Numbers of a summary whose largest value counts; the others are added up."""


def traces_of(
    scenario: Scenario, engine: str | EngineFactory = "numpy", source: str = ""
) -> tuple[Trace, ...]:
    """Return the traces of a scenario: one for each sequence of its batch, or a single one."""
    return tuple(simulate(each, engine, source) for each in each_sequence(scenario))


def blind_of(scenario: Scenario) -> dict[int, int]:
    """Return the number of queries of each sequence without keys, by the sequence's number."""
    batch, rows = scenario.batch, scenario.attention.seqlen_q or 0
    if batch.sequence is not None:
        return {}
    return {number: (batch.queries or (rows,) * (number + 1))[number] for number in batch.blind}


def run_all(
    traces: Sequence[Trace],
    progress: Progress | None = None,
    blind: Mapping[int, int] = MappingProxyType({}),
) -> dict[str, Any]:
    """Run sequences one after the other and return the summary of all.

    Bytes, FLOPs, visits and seconds are sums. The largest error, number of splits and on-chip bytes
    of a thread block count.
    """
    summaries = []
    for n, trace in enumerate(traces):
        done = None if progress is None else _part(progress, n, len(traces))
        summaries.append(trace.summary(done))
    together: dict[str, Any] = _together(summaries)
    programs = [trace.program for trace in traces]
    together |= model_of(*programs)
    for queries in blind.values():
        _add_blind(together["hbm"], *blind_counters(traces[0].workload, queries))
    batch = traces[0].workload.scenario.batch
    sizes = {each.workload.scenario.batch.shown: each.workload for each in traces}
    keys = {n: w.seqlen_k for n, w in sizes.items()} | dict.fromkeys(blind, 0)
    together["sequences"] = [keys[n] for n in sorted(keys)]
    if batch.queries:
        rows = {n: w.queries for n, w in sizes.items()} | {**blind}
        together["queries"] = [rows[n] for n in sorted(rows)]
    return together


def _add_blind(hbm: dict[str, Any], counted: Counters, compulsory: int) -> None:
    """Add the bytes that a sequence without keys requests to a summary's bytes."""
    hbm["read_bytes"] += counted.read_bytes
    hbm["write_bytes"] += counted.write_bytes
    hbm["compulsory_bytes"] += compulsory
    for way, sizes in (("read", counted.read), ("write", counted.write)):
        for name, size in sizes.items():
            hbm["by_tensor"][name][way] += size


def check_one(traces: Sequence[Trace], output: object, blind: Mapping[int, int]) -> None:
    """Refuse to write arrays of several sequences: they have keys of different numbers."""
    if len(traces) > 1 or blind:
        running = ", ".join(map(str, traces[0].workload.scenario.batch.running))
        expected = f"a scenario that says batch.sequence, one of {running}"
        raise refuse("run", "-o", str(output), expected)


def _part(progress: Progress, n: int, count: int) -> Progress:
    return lambda share: progress((n + share) / count)


def _together(values: Sequence[Any], name: str = "") -> Any:
    """Return the sum or maximum of numbers, the first text, or a table of such results."""
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
