"""Numbers of the studies in lessons: those of the studies themselves, and what is refused."""

import math

import numpy as np
import pytest

from simulator.base.assets import SCENARIOS
from simulator.base.errors import InputError
from simulator.problem.scenario import Scenario, load_scenario, parse_scenario, with_values
from simulator.program.playback import Cursor
from simulator.study.order.shuffle import PLACES, order_of, shuffled
from simulator.study.smoothing.kernel_smoother import factors, head_points, key_plane
from simulator.study.smoothing.regression import BANDWIDTHS, regression
from simulator.study.smoothing.repeated import repeated
from simulator.study.sqrt_d.experiment import one_draw, sqrt_d_experiment
from simulator.study.sqrt_d.trained_scores import shipped_scores
from simulator.study.variants import variant_table
from tests.helpers.lesson_texts import computed
from tests.helpers.refused import refused
from tests.helpers.runs import trace_of as run_of

LAYER = load_scenario(SCENARIOS / "inspector.toml")
RANDOM = parse_scenario({"attention": {"seqlen_q": 9, "head_dim": 4, "heads": 4}})


def asked(expression: str, scenario: Scenario = LAYER, visit: int = 0) -> float:
    return computed(expression, scenario, Cursor(visit, 0))


def test_gradients_of_other_numbers_of_keys() -> None:
    *_, last = sqrt_d_experiment(dims=(32,), keys=2)
    point = last.points[0]
    assert asked("gradient_of(32, 2)") == point.plain.gradient.mean
    assert asked("gradient_median(32, 2)") == point.plain.gradient.median
    assert asked("gradient_median(32, 2, 1)") == point.scaled.gradient.median
    draw = one_draw(0, 4096)
    assert asked("drawn_weight(4096, 0)") == draw.plain[0]
    assert asked("drawn_weight(4096, 63, 1)") == draw.scaled[63]


def test_a_trained_layer_is_the_runs_or_a_shipped_one() -> None:
    w, inputs = run_of(LAYER).single_heads
    q, k = inputs.q.astype(float), inputs.k.astype(float)
    spreads = np.einsum("hid,hjd->hij", q, k).var(axis=2)
    assert asked("trained_variance()") == pytest.approx(spreads.mean())
    assert asked("trained_variance(1)") == pytest.approx(spreads.mean() * w.scale**2)
    assert asked("trained_variance()", RANDOM) == shipped_scores().plain.variance.mean


def test_the_head_at_the_cursor_is_smoothed() -> None:
    trace = run_of(LAYER)
    visit = trace.program.index(5, 0, 0)
    points = head_points(*trace.single_heads, 5, 0)
    again = repeated(points.weights, points.v)
    both, p = factors(points), points.weights[8]
    jacobian = np.diag(p) - np.outer(p, p)
    for expression, expected in (
        ("plane_share()", key_plane(points).share),
        ("identity_off()", both.off),
        ("norms_move(8)", both.moved[8]),
        ("rows_differ(3)", again.spread[3]),
        ("rows_differ(3, 1)", again.skipped[3]),
        ("rank_after(2)", again.ranks[2]),
        ("jacobian_norm(8)", np.linalg.norm(jacobian)),
        ("jacobian_trace(8)", np.trace(jacobian)),
    ):
        assert asked(expression, visit=visit) == pytest.approx(expected), expression


def test_regression_scores_and_variants() -> None:
    assert asked("regression_off(0.04)") == regression(bandwidth=0.04).off
    assert asked("regression_error(0.04)") == regression(bandwidth=0.04).error
    assert asked("best_bandwidth()") in BANDWIDTHS
    assert asked('score_flops("dot")') == 2 * 32
    assert asked('score_flops("additive")') == 4 * 32
    assert asked('score_tanh("additive")') == 32
    w = run_of(RANDOM).workload
    [row] = [row for row in variant_table(w).rows if row.name == "MQA"]
    assert asked('variant_cost("MQA", "cached")', RANDOM) == row.cached.here
    assert asked('variant_power("MQA", "held")', RANDOM) == row.held.power.exponent


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("gradient_of(1025)", "a whole number from 1 to 1024"),
        ("gradient_of(16, 1)", "a whole number from 2 to 64"),
        ("gradient_median(16, 2.5)", "a whole number from 2 to 64"),
        ("gradient_of(16, 65)", "a whole number from 2 to 64"),
        ("drawn_weight(4097, 0)", "from 1 to 4096"),
        ("drawn_weight(4, 64)", "from 0 to 63"),
        ("rows_differ(25)", "from 0 to 24"),
        ("rank_after(-1)", "from 0 to 24"),
        ("norms_move(18)", "a row of the run"),
        ("jacobian_norm(99)", "a row of the run"),
        ("regression_off(0)", "a number from 0.001 to 3.2"),
        ("regression_error(4)", "a number from 0.001 to 3.2"),
        ('score_flops("general")', "one of scaled dot, dot, cosine, additive"),
        ('variant_cost("MLA", "held")', "one of MHA, naive; MHA, FlashAttention-2"),
        ('variant_power("MQA", "bytes")', "one of seconds, held, cached, parameters"),
    ],
)
def test_what_cannot_be_asked_for(expression: str, told: str) -> None:
    assert told in refused(asked, expression)


def test_the_gradient_that_essays_quote() -> None:
    """1e-9 at d = 512 is the median of two keys; of 64 it is far larger, and so is every mean."""
    assert asked("gradient_median(512, 2)") < 1e-7
    assert asked("gradient_of(512, 2)") > 1e-2
    assert asked("gradient_median(512)") > 1e-4
    assert math.isfinite(asked("gradient_of(512)"))


def test_numbers_of_positions() -> None:
    turned = {"position": {"kind": "rope", "theta": 100.0}}
    said = with_values(RANDOM, turned)
    assert asked("turn_of(0)", said) == pytest.approx(2 * math.pi)
    pairs = asked('position_setting("pairs")', said)
    d = run_of(RANDOM).workload.head_dim
    assert pairs == d // 2
    assert asked("turn_of(-1)", said) == pytest.approx(2 * math.pi * 100 ** ((d - 2) / d))
    assert asked("turn_of(-1)") == round(2 * math.pi * 10000 ** (30 / 32))
    assert asked('diagonals_differ("rope", 1)', said) < 1e-5
    assert asked('shift_moves("alibi", 1)', said) == 0
    assert asked('shift_moves("learned", 1)', said) > 0.05
    # θ = 100: every pair has turned within the trained length.
    assert asked('untrained_pairs("rope")', said) == 0
    assert asked('untrained_pairs("rope")') == 5
    for wrong, word in (
        ('position_setting("speed")', "one of places, shift, trained, factor, pairs"),
        ("turn_of(99)", "a pair from 0 to"),
        ('shift_moves("rope", 99)', "row = 99: expected a whole number from 0 to"),
        ('shift_moves("random", 0)', "one of rope, sinusoids, learned, alibi"),
        ('untrained_pairs("linear")', "one of rope, interpolated, ntk, yarn"),
    ):
        with pytest.raises(InputError, match=word):
            asked(wrong, said)


def test_a_shuffle_and_a_reach_are_those_of_the_studies() -> None:
    trace = run_of(LAYER)
    w, inputs = trace.single_heads
    for places in PLACES:
        exact = shuffled(w, inputs, 0, order_of(w.seqlen_k, 0), places).apart.max()
        assert asked(f'shuffle_apart("{places}")') == float(exact)
    assert [asked(f"reach_of(10, 3, {layers})") for layers in (1, 2, 4)] == [3, 5, 9]
    assert asked("reach_of(10, 3, 4, 1)") == 11
    beyond = f"reach_of({w.seqlen_k}, 3, 4)"  # tokens are counted from 0
    with pytest.raises(InputError, match=f"a whole number from 0 to {w.seqlen_k - 1}$"):
        asked(beyond)
    for wrong in ('shuffle_apart("no")', "reach_of(99, 3, 4)", "reach_of(1, 3, 4, 5)"):
        assert "expected" in refused(asked, wrong)


@pytest.mark.parametrize("threshold", [0.0, 0.5])
def test_rescales_are_those_of_a_whole_run(threshold: float) -> None:
    small = {"attention": {"seqlen_q": 40, "seqlen_k": 48, "head_dim": 4, "heads": 2},
             "tiling": {"rows": 16, "cols": 8}}  # fmt: skip
    skips = {"attention": {"rescale_threshold": threshold}}
    scenario = parse_scenario(small)
    counted = run_of(with_values(scenario, skips)).summary()["rescales"]
    assert asked(f"rescales({threshold})", scenario) == counted > 40
    assert counted / 32 <= asked(f"warp_rescales({threshold})", scenario) <= 2 * 3 * 5
