"""What-if questions about a scenario: one change, and the figures of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from simulator.base.errors import InputError
from simulator.problem.latent import is_latent
from simulator.problem.scenario import Scenario, with_values
from simulator.problem.workload import Workload, resolve
from simulator.program.tile_program import TileProgram
from simulator.run.trace import tile_counts
from simulator.timing.duration import duration_of
from simulator.timing.run_time import why_no_time

MOST_TILE = 2**16
"""Most rows or columns of a tile that a key press makes."""
MOST_WIDTH, MOST_TOKENS = 4096, 2**24
"""Largest head width, and most tokens, of a scenario."""


@dataclass(frozen=True, slots=True)
class AskedFor:
    """The settings of a scenario, as a strip of questions shows them."""

    rows: int  # Br and Bc
    cols: int
    causal: bool
    queries: int  # Nq and Nk
    keys: int
    width: int  # d, or the latent's own numbers
    name: str  # of the captured layer; empty for another input
    gpu: str


def settings_of(scenario: Scenario, w: Workload) -> AskedFor:
    """Return the settings of a scenario that may still be computed; missing ones are as in `w`.

    w: the run on show, from which the scenario has been made.
    """
    said, tiling, batch = scenario.attention, scenario.tiling, scenario.batch
    causal, source = scenario.mask.causal, scenario.input
    keys = batch.lengths[batch.shown] if batch.lengths else said.seqlen_k
    together = w.queries == w.seqlen_k
    width = said.latent_dim if is_latent(said) else said.head_dim
    return AskedFor(
        rows=tiling.rows or w.rows,
        cols=tiling.cols or w.cols,
        causal=w.mask.causal if causal is None else causal,
        queries=said.seqlen_q or w.queries,
        keys=keys or (said.seqlen_q if together else None) or w.seqlen_k,
        width=width or (w.value_dim if w.latent else w.head_dim),
        name=source.name or "" if source.source == "capture" else "",
        gpu=scenario.hardware.preset,
    )


def plain(scenario: Scenario) -> Scenario:
    """Return a scenario that does not say that it is a what-if."""
    return with_values(scenario, {"input": {"what_if": None}}) if _asks(scenario) else scenario


def asked(scenario: Scenario) -> Scenario:
    """Return a scenario as it is, or as a what-if where it disagrees with its file."""
    if _asks(scenario):
        return scenario
    try:
        resolve(scenario)
    except InputError as error:
        remedy = error.mistakes[0].remedy
        if remedy is not None and "what_if" in remedy.values.get("input", {}):
            return with_values(scenario, remedy.values)
    return scenario


def _asks(scenario: Scenario) -> bool:
    return "what_if" in scenario.input.model_fields_set


def with_tiles(scenario: Scenario, rows: int, cols: int) -> Scenario:
    """Return the scenario in other tiles."""
    return _changed(scenario, "tiling", rule=None, rows=rows, cols=cols)


def with_temperature(scenario: Scenario, temperature: float) -> Scenario:
    """Return the scenario with scores divided by another temperature."""
    return _changed(scenario, "attention", temperature=temperature)


def with_causal(scenario: Scenario, on: bool) -> Scenario:
    """Return the scenario with a causal mask or without one."""
    return _changed(scenario, "mask", causal=on)


def with_tokens(scenario: Scenario, count: int, now: AskedFor) -> Scenario:
    """Return the scenario with another number of keys, and of queries where both numbers are equal.

    now: the settings of the scenario.
    """
    documents, batch = scenario.mask.documents, scenario.batch
    if documents:
        scenario = _changed(scenario, "mask", documents=_of_length(documents, count))
    if batch.lengths:
        lengths = list(batch.lengths)
        lengths[batch.shown] = count
        return _changed(scenario, "batch", lengths=lengths)
    said = scenario.attention
    if now.queries != now.keys:
        return _changed(scenario, "attention", seqlen_k=count)
    keys = {} if said.seqlen_k is None else {"seqlen_k": count}
    return _changed(scenario, "attention", seqlen_q=count, **keys)


def _of_length(lengths: tuple[int, ...], count: int) -> list[int]:
    """Return lengths that add up to a number: the last ones are cut off, or the last is longer."""
    out, rest = [], count
    for length in lengths:
        if rest:
            out.append(min(length, rest))
            rest -= out[-1]
    out[-1] += rest
    return out


def with_width(scenario: Scenario, width: int) -> Scenario:
    """Return the scenario with heads of another width."""
    said = scenario.attention
    if is_latent(said):
        return _changed(scenario, "attention", latent_dim=width)
    value = {} if said.value_dim is None else {"value_dim": width}
    return _changed(scenario, "attention", head_dim=width, **value)


def with_gpu(scenario: Scenario, name: str) -> Scenario:
    """Return the scenario on another GPU."""
    return _changed(scenario, "hardware", preset=name)


def _changed(scenario: Scenario, table: str, **values: Any) -> Scenario:
    return with_values(plain(scenario), {table: values})


# --- figures of a run -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RunFigures:
    """The figures of a run; ``python -m ui run`` prints the same."""

    tiles: int  # that are visited
    requested: int  # bytes of HBM, read and written
    seconds: float | None  # by model; None where there is none
    bound: str  # what bounds the time; empty without a model
    why: str  # why there is no model, as a sentence; empty if there is one


def figures_of(program: TileProgram) -> RunFigures:
    """Return the figures of a run; in a batch, the figures of its own sequence."""
    why, totals = why_no_time(program), program.totals
    model = None if why else duration_of(program).model
    return RunFigures(
        tile_counts(program)["visited"],
        totals.read_bytes + totals.write_bytes,
        None if model is None else model.seconds,
        "" if model is None else model.bound_by,
        why,
    )


@dataclass(frozen=True, slots=True)
class WhatIf:
    """A question and its answer: a run before a change, and the run after it."""

    before: Scenario
    after: Scenario
    was: RunFigures
    now: RunFigures

    @property
    def factors(self) -> tuple[float | None, float | None, float | None]:
        """How many times as many tiles, bytes and seconds; None where one is not known or is 0."""
        was, now = self.was, self.now
        return (
            _factor(was.tiles, now.tiles),
            _factor(was.requested, now.requested),
            _factor(was.seconds, now.seconds),
        )


def _factor(was: float | None, now: float | None) -> float | None:
    return now / was if was and now else None
