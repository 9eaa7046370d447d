"""Numbers of a generation in a lesson are those of its steps, and others are refused in a line."""

import pytest

from simulator.base.errors import InputError
from simulator.problem.workload import read_inputs, resolve
from simulator.study.generation.steps import generation
from tests.helpers.lesson_texts import computed
from tests.helpers.runs import scenario

CHOSEN = scenario("flash2", nq=9, heads=2, d=3, seed=4)


def test_costs_are_those_of_steps_and_of_all_of_them() -> None:
    w = resolve(CHOSEN)
    for at_once in (1, 2):
        found = generation(w, read_inputs(w), 0, at_once)
        for way, cached in (("cache", True), ("again", False)):
            for figure in ("bytes", "flops", "time"):
                told = f'generation_cost("{way}", "{figure}", %d, {at_once})'
                assert computed(told % 0, CHOSEN) == found.total(figure, cached=cached)
                step = found.steps[2].of(figure, cached=cached)
                assert computed(told % 2, CHOSEN) == step
        assert computed(f"generation_steps({at_once})", CHOSEN) == len(found.steps) - 1


def test_tokens_and_differences_are_those_of_one_query_a_step() -> None:
    w = resolve(CHOSEN)
    found = generation(w, read_inputs(w), 0)
    assert computed('generated("prompt")', CHOSEN) == len(found.steps[0].rows)
    assert computed('generated("tokens")', CHOSEN) == 9 - len(found.steps[0].rows)
    assert computed("generation_apart()", CHOSEN) == found.apart.max()
    shown = generation(w, read_inputs(w), int(computed("head()", CHOSEN)))
    assert computed("generation_moved(3)", CHOSEN) == shown.moved[3].max()


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ('generated("steps")', "expected one of prompt, tokens"),
        ('generation_cost("none", "bytes")', "expected one of cache, again"),
        ('generation_cost("cache", "seconds")', "expected one of bytes, flops, time"),
        ("generation_steps(3)", "expected one of 1, 2, 4, 8"),
        ("generation_moved(6)", "from 1 to 5"),
        ("generation_moved(0)", "from 1 to 5"),
    ],
)  # fmt: skip
def test_what_there_is_none_of_is_refused(told: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        computed(told, CHOSEN)
