"""Numbers of a generation that a lesson's text may ask for; they join `FUNCTIONS`."""

from __future__ import annotations

from functools import lru_cache
from typing import get_args

from simulator.base.errors import refuse
from simulator.lesson.numbers import Numbers, known
from simulator.problem.scenario import Scenario
from simulator.problem.workload import read_inputs, resolve
from simulator.program.algorithms import USUAL
from simulator.study.generation.steps import (
    AT_ONCE,
    Generation,
    Quantity,
    generation,
    shipped_run,
    suits,
)

_WAYS = {"cache": True, "again": False}


@known
def generated(n: Numbers, part: str) -> int:
    """Tokens of the "prompt", or "tokens" that follow it, of the run that Generation shows."""
    found = _found(n, 1)
    first = found.steps[0].keys
    sizes = {"prompt": first, "tokens": found.steps[-1].keys - first}
    if part not in sizes:
        raise refuse("", "part", part, f"one of {', '.join(sizes)}")
    return sizes[part]


@known
def generation_cost(n: Numbers, way: str, figure: str, step: int = 0, at_once: int = 1) -> float:
    """FLOPs, bytes or seconds of a step with a "cache" or all "again"; 0: of all after the prompt.

    `at_once` is how many queries a step has.
    """
    if way not in _WAYS:
        raise refuse("", "way", way, f"one of {', '.join(_WAYS)}")
    for quantity in get_args(Quantity):
        if quantity == figure:
            found = _found(n, at_once)
            if not step:
                return found.total(quantity, cached=_WAYS[way])
            return found.steps[_step(found, step)].of(quantity, cached=_WAYS[way])
    raise refuse("", "figure", figure, f"one of {', '.join(get_args(Quantity))}")


@known
def generation_steps(n: Numbers, at_once: int = 1) -> int:
    """Steps after the prompt, with so many queries in each."""
    return len(_found(n, at_once).steps) - 1


@known
def generation_apart(n: Numbers) -> float:
    """How far rows of steps are from those of one pass, relative to the largest number of O."""
    return float(_found(n, 1).apart.max())


@known
def generation_moved(n: Numbers, step: int) -> float:
    """How far a step moves an old row of O at most, without the mask, relative to its length."""
    found = _found(n, 1)
    return float(found.unmasked[_step(found, step)])


def _step(found: Generation, step: int) -> int:
    if not 1 <= step < len(found.steps):
        raise refuse("", "step", step, f"1 to {len(found.steps) - 1}")
    return step


def _found(n: Numbers, at_once: int) -> Generation:
    if at_once not in AT_ONCE:
        raise refuse("", "at_once", at_once, f"one of {', '.join(map(str, AT_ONCE))}")
    return _generation(n.scenario, n.head, at_once)


@lru_cache(maxsize=4)
def _generation(scenario: Scenario, head: int, at_once: int) -> Generation:
    w = resolve(scenario).as_algorithm(USUAL.name)
    inputs = w.posed(read_inputs(w))
    if not suits(w):
        (w, inputs), head = shipped_run(), 0
    return generation(w, inputs, head, at_once)
