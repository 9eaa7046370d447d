"""The √d experiment beside plain loops over the same random numbers."""

import itertools
import math

import numpy as np
import pytest

from simulator import InputError
from simulator.study.sqrt_d.experiment import (
    DIMS,
    DimPoint,
    Estimate,
    SqrtDResult,
    one_draw,
    sqrt_d_experiment,
)
from tests.helpers.refused import refused


def last(*args: object, **words: object) -> SqrtDResult:
    *_, result = sqrt_d_experiment(*args, **words)  # type: ignore[arg-type]
    return result


@pytest.mark.long
def test_variance_is_d_unscaled_and_1_scaled() -> None:
    result = last(seed=0, dims=(4, 64, 1024))
    assert [point.d for point in result.points] == [4, 64, 1024]
    for point in result.points:
        assert point.trials == 512
        plain, scaled = point.plain.variance, point.scaled.variance
        assert plain.agrees(point.d)
        assert scaled.agrees(1)
        # Known well enough to tell d from its neighbours, or the words above mean little.
        assert plain.error < 0.05 * point.d
        assert not plain.agrees(1.25 * point.d)
        assert scaled.mean == pytest.approx(plain.mean / point.d)
        assert scaled.error == pytest.approx(plain.error / point.d)


@pytest.mark.long
def test_chance_leaves_the_true_value_outside_as_seldom_as_it_should() -> None:
    """The keys of a trial share a query: errors that took scores for independent are too small."""
    far = [
        abs(point.plain.variance.mean - point.d) / point.plain.variance.error
        for seed in range(60)
        for point in last(seed, (4, 16, 64), keys=64, trials=64).points
    ]
    outside = [np.mean(np.array(far) > errors) for errors in (1, 2)]
    assert 0.2 < outside[0] < 0.45  # 0.32 of a normal distribution
    assert 0.01 < outside[1] < 0.13  # 0.05


def by_loops(scores: np.ndarray) -> tuple[float, float, float]:
    p = np.exp(scores - scores.max())
    p /= p.sum()
    jacobian = np.diag(p) - np.outer(p, p)
    entropy = -sum(x * math.log2(x) for x in p if x > 0)
    assert np.trace(jacobian) == pytest.approx(np.linalg.eigvalsh(jacobian).sum(), abs=1e-12)
    assert np.trace(jacobian) == pytest.approx(np.abs(jacobian).sum() / 2, abs=1e-12)
    return float(np.mean(scores**2)), entropy, float(np.trace(jacobian))


def check_softness(point: DimPoint, which: str, scores: np.ndarray) -> None:
    softness = getattr(point, which)
    measured = np.array([by_loops(row) for row in scores])
    found = (softness.variance, softness.entropy, softness.gradient)
    for estimate, values in zip(found, measured.T, strict=True):
        assert estimate.mean == pytest.approx(values.mean(), rel=1e-9, abs=1e-12)
        assert estimate.median == pytest.approx(np.median(values), rel=1e-9, abs=1e-12)
        error = values.std(ddof=1) / math.sqrt(len(values))
        assert estimate.error == pytest.approx(error, rel=1e-9, abs=1e-12)
    np.testing.assert_allclose(softness.scores, scores[-1], rtol=1e-12)
    assert not softness.scores.flags.writeable


@pytest.mark.parametrize(("d", "trials"), [(1, 75), (16, 75), (300, 75), (16, 2), (16, 3)])
def test_the_numbers_are_those_of_the_vectors(d: int, trials: int) -> None:
    keys = 7
    (point,) = last(5, (d,), keys, trials).points
    vectors = np.random.default_rng((5, d)).standard_normal((trials, keys + 1, d))
    scores = np.array([[trial[0] @ key for key in trial[1:]] for trial in vectors])
    check_softness(point, "plain", scores)
    check_softness(point, "scaled", scores / math.sqrt(d))


@pytest.mark.long
def test_what_the_division_is_for() -> None:
    result = last()
    points = result.points
    assert (result.seed, result.keys, result.trials) == (0, 64, 512)
    assert [point.d for point in points] == list(DIMS)
    for small, large in itertools.pairwise(points):
        assert large.plain.entropy.mean < small.plain.entropy.mean
        assert large.plain.gradient.mean < small.plain.gradient.mean
    for point in points:
        # Scaled: the same at every d, near all weight shared evenly (6 bits, 1 - 1/64).
        assert 5.2 < point.scaled.entropy.mean < 5.4
        assert 0.95 < point.scaled.gradient.mean < 0.97
    assert points[-1].plain.entropy.mean < 0.3
    assert points[-1].plain.gradient.mean < 0.1


def test_the_gradient_keeps_its_digits_when_one_key_has_all() -> None:
    """In float64 1 - sum p^2 is 0 long before the gradient is."""
    seed, d = 1, 2**13
    (point,) = last(seed, (d,), keys=2, trials=2).points
    vectors = np.random.default_rng((seed, d)).standard_normal((2, 3, d))
    apart = np.array([trial[0] @ (trial[1] - trial[2]) for trial in vectors])
    expected = np.mean(1 / (1 + np.cosh(apart)))  # two keys: 2 p (1 - p)
    assert 0 < expected < 1e-16
    assert point.plain.gradient.mean == pytest.approx(expected, rel=1e-9, abs=0)


@pytest.mark.parametrize(("d", "keys"), [(4, 64), (512, 2), (4096, 64)])
def test_one_draw_is_the_first_trial(d: int, keys: int) -> None:
    draw = one_draw(3, d, keys)
    vectors = np.random.default_rng((3, d)).standard_normal((2, keys + 1, d))[0]
    scores = np.array(sorted((float(vectors[0] @ key) for key in vectors[1:]), reverse=True))
    np.testing.assert_allclose(draw.scores, scores, rtol=1e-9, atol=1e-9)
    for weights, values in ((draw.plain, scores), (draw.scaled, scores / math.sqrt(d))):
        expected = np.exp(values) if d < 100 else np.exp(values - values[0])
        np.testing.assert_allclose(weights, expected / expected.sum(), rtol=1e-9, atol=1e-300)
        assert not weights.flags.writeable
    point = last(3, (d,), keys, 2).points[0]
    assert point.d == draw.d
    assert "keys = 1" in refused(one_draw, 3, d, 1)


@pytest.mark.long
def test_the_gradient_of_two_keys_is_told_by_the_median() -> None:
    """The 1e-9 that essays quote at d = 512 holds for the median of two keys, not of 64."""
    of_two = last(0, (512,), keys=2, trials=4000).points[0].plain.gradient
    of_many = last(0, (512,), trials=400).points[0].plain.gradient
    assert 1e-11 < of_two.median < 1e-7
    assert of_two.mean > 1e-2
    assert of_many.median > 1e-4


def test_it_grows_step_by_step() -> None:
    results = list(sqrt_d_experiment(1, (4, 1024), trials=100))
    assert len(results) > 15
    shares = [result.share for result in results]
    assert shares == sorted(set(shares))
    assert shares[-1] == 1
    for before, after in itertools.pairwise(results):
        counts = [{p.d: p.trials for p in r.points} for r in (before, after)]
        grown = {d for d, count in counts[1].items() if count > counts[0].get(d, 0)}
        assert len(grown) == 1
    middle = [point.trials for point in results[len(results) // 2].points]
    assert max(middle) - min(middle) <= 32  # no d is left behind
    # A result is a result at that number of trials, and does not change later.
    early = results[3].points[0]
    check = last(1, (early.d,), trials=early.trials).points[0]
    assert early.plain.variance.mean == pytest.approx(check.plain.variance.mean)


def test_one_trial_tells_no_error() -> None:
    first = next(iter(sqrt_d_experiment(0, (2**13,), keys=2**10, trials=2)))
    (point,) = first.points
    assert point.trials == 1
    assert math.isinf(point.plain.variance.error)
    assert point.plain.variance.agrees(0)


def test_agreement() -> None:
    assert Estimate(10, 1).agrees(12.9)
    assert not Estimate(10, 1).agrees(13.1)
    assert not Estimate(10, 1).agrees(6.9)
    assert Estimate(10, 1).agrees(12, errors=2)
    assert Estimate(10, 1).agrees(13)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"seed": -1}, "√d experiment: seed = -1: expected 0 or more"),
        ({"dims": ()}, 'dims = "[]": expected one d or more, each said once'),
        ({"dims": (4, 4)}, "each said once"),
        ({"dims": (0,)}, "d = 0: expected a whole number from 1 to 8192"),
        ({"dims": (10**6,)}, "d = 1000000"),
        ({"keys": 1}, "keys = 1: expected a whole number from 2 to 1024"),
        ({"trials": 1}, "trials = 1: expected a whole number from 2 to 65536"),
        ({"dims": (2**13 + 1,)}, "d = 8193"),
        ({"keys": 2**10 + 1}, "keys = 1025"),
        ({"trials": 2**16 + 1}, "trials = 65537"),
    ],
)
def test_counts_that_cannot_be_used(words: dict[str, object], told: str) -> None:
    with pytest.raises(InputError) as error:  # at once, before anything is drawn
        sqrt_d_experiment(**words)  # type: ignore[arg-type]
    assert told in str(error.value)
