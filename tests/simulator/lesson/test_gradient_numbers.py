"""Numbers of a backward pass in lessons: those of the study, and refused elsewhere."""

import pytest

from simulator.base.assets import SCENARIOS
from simulator.base.errors import InputError
from simulator.run.trace import simulate
from simulator.study.merge.gradient_sums import random_orders
from tests.simulator.lesson.test_model_numbers import at, computed


def test_orders_are_those_of_the_study() -> None:
    found = random_orders(simulate(SCENARIOS / "flash2-backward.toml"))
    for expression, expected in (
        ("order_numbers()", found.numbers),
        ("order_moves()", found.moved),
        ("order_ulp()", found.most_ulp),
        ("order_bytes()", found.sum_bytes),
        ("order_bytes(1)", found.share_bytes),
    ):
        assert computed(at("flash2-backward"), expression) == expected, expression


def test_a_run_that_adds_up_no_dq_is_refused() -> None:
    with pytest.raises(InputError, match="one whose tiles add to dQ in HBM"):
        computed(at("flash2"), "order_moves()")
