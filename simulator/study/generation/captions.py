"""Numbers of a generation that captions may ask for."""

from __future__ import annotations

from typing import get_args

import numpy as np

from simulator.base.errors import refuse
from simulator.language.continuation import probabilities
from simulator.problem.sentence import sentence_model
from simulator.run.trace import Trace
from simulator.study.captions import Numbers, chosen, known, named, once_a_run, whole
from simulator.study.generation.steps import AT_ONCE, Generation, Quantity, generation_of

_WAYS = {"cache": True, "again": False}
_QUANTITIES: tuple[Quantity, ...] = get_args(Quantity)


@known
def generated(n: Numbers, part: str) -> int:
    """Tokens of the `prompt`, or `tokens` that follow it, of the run that Generation shows."""
    steps = _found(n, 1).steps
    first = steps[0].keys
    return named("part", part, {"prompt": first, "tokens": steps[-1].keys - first})


@known
def generation_cost(n: Numbers, way: str, figure: str, step: int = 0, at_once: int = 1) -> float:
    """`flops`, `bytes` or seconds (`time`) of a step with a `cache` or all `again`.

    Step 0: of all after the prompt; `at_once` is how many queries a step has.
    """
    cached = named("way", way, _WAYS)
    quantity = chosen("figure", figure, _QUANTITIES)
    found = _found(n, at_once)
    if not step:
        return found.total(quantity, cached=cached)
    return found.steps[_step(found, step)].of(quantity, cached=cached)


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
    return whole("step", step, 1, len(found.steps) - 1)


@known
def generated_chance(n: Numbers, token: int) -> float:
    """Probability with which a token after a typed text was drawn, the first is 1; seed 0."""
    said = _found(n, 1).continuation
    if said is None:
        raise refuse("", "generated_chance", token, "a run of a typed text")
    return said.tokens[whole("token", token, 1, len(said.tokens)) - 1].chance


@known
def next_chance(n: Numbers, place: int, temperature: float = 1.0) -> float:
    """Probability of a next token of a typed text at a temperature; place 0: the most probable."""
    w = n.workload
    if not w.typed:
        raise refuse("", "next_chance", place, "a run of a typed text")
    model = sentence_model(w.scenario)
    tokens = model.tokenizer.encode(w.scenario.input.text or "")
    if not 0.01 <= temperature <= 100:
        raise refuse("", "temperature", temperature, "0.01 to 100")
    p = np.sort(probabilities(model.run(tokens).logits[-1], temperature))[::-1]
    return float(p[whole("place", place, 0, len(p) - 1)])


def _found(n: Numbers, at_once: int) -> Generation:
    return _generation(n.trace, n.first_head, chosen("at_once", at_once, AT_ONCE))


@once_a_run
def _generation(trace: Trace, head: int, at_once: int) -> Generation:
    return generation_of(trace, head, at_once)
