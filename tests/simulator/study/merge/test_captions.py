"""Numbers of a backward pass in lessons: those of the study, and refused elsewhere."""

import pytest

from simulator.base.assets import SCENARIOS
from simulator.base.errors import InputError
from simulator.program.playback import Cursor
from simulator.run.trace import simulate
from simulator.study.captions import Numbers
from simulator.study.merge.gradient_sums import random_orders
from simulator.study.recompute import trade_of
from tests.helpers.lesson_texts import computed
from tests.helpers.refused import refused
from tests.helpers.runs import scenario, trace_of
from tests.simulator.lesson.test_model_numbers import at


def test_orders_are_those_of_the_study() -> None:
    found = random_orders(simulate(SCENARIOS / "flash2-backward.toml"))
    for expression, expected in (
        ("order_numbers()", found.numbers),
        ("order_moves()", found.moved),
        ("order_ulp()", found.most_ulp),
        ("order_bytes()", found.sum_bytes),
        ("order_bytes(1)", found.share_bytes),
    ):
        assert computed(expression, at("flash2-backward")) == expected, expression


def test_a_run_that_adds_up_no_dq_is_refused() -> None:
    assert "one whose tiles add to dQ in HBM" in refused(computed, "order_moves()", at("flash2"))


@pytest.mark.parametrize("name", ["flash2-backward", "naive-backward"])
@pytest.mark.parametrize(("tensor", "row", "col"), [("q", 5, 2), ("k", 0, 7), ("v", 15, 0)])
def test_a_difference_of_the_loss_is_the_gradient_of_the_run(
    name: str, tensor: str, row: int, col: int
) -> None:
    where, number = at(name), f'"{tensor}", {row}, {col}'
    slope = computed(f"difference({number})", where)
    assert computed(f"gradient({number})", where) == pytest.approx(slope, rel=1e-5, abs=1e-6)
    up, down = (computed(f'difference({number}, "{way}")', where) for way in ("up", "down"))
    assert slope == (up - down) / (2 * computed("nudge()", where))
    inputs = simulate(SCENARIOS / f"{name}.toml").inputs
    moved = getattr(inputs, tensor)[0, row, col]
    assert computed(f'difference({number}, "number")', where) == moved


def test_heads_that_share_keys_have_one_gradient_of_them() -> None:
    """The third query head of four has the second KV head."""
    said = scenario("flash2-backward", nq=5, d=2, heads=4, kv_heads=2)
    trace = trace_of(said)
    index = trace.program.index(2, 0, 0, 1)
    assert index is not None
    now = Numbers(said, Cursor(index, 0))
    for tensor, head in (("q", 2), ("k", 1), ("v", 1)):
        number = f'"{tensor}", 3, 1'
        assert computed(f"gradient({number})", now) == trace.arrays()[f"d{tensor}"][head, 3, 1]
        moved = getattr(trace.inputs, tensor)[head, 3, 1]
        assert computed(f'difference({number}, "number")', now) == moved


def test_what_is_kept_and_requested_is_that_of_the_study() -> None:
    trade = trade_of(simulate(SCENARIOS / "causal.toml").workload)
    for way, passes in (("stored", trade.stored), ("again", trade.again)):
        assert computed(f'kept_between("{way}")', at("causal")) == passes.kept_bytes
        assert computed(f'both_passes("{way}")', at("causal")) == passes.bytes
    assert computed("scores_again()", at("causal")) == trade.again.scores


@pytest.mark.parametrize(
    ("name", "expression", "message"),
    [
        ("flash2", 'difference("q", 0, 0)', "a backward pass, which has a gradient of O"),
        ("flash2", 'gradient("q", 0, 0)', "a number of q, k or v of this run"),
        ("flash2-backward", 'difference("q", 99, 0)', "a number of q, k or v of this run"),
        ("flash2-backward", 'gradient("o", 0, 0)', "a number of q, k or v of this run"),
        ("flash2-backward", 'difference("q", 0, 0, "sideways")', "one of slope, up, down, number"),
        ("causal", 'kept_between("thrice")', "one of stored, again"),
    ],
)
def test_what_is_not_there_is_refused(name: str, expression: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        computed(expression, at(name))
