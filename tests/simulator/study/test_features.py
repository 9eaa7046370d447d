"""Performer's error over its features; where linear attention costs less than a softmax."""

from dataclasses import replace

import numpy as np
import pytest

from simulator.problem.features import FeatureMap
from simulator.problem.scenario import parse_scenario
from simulator.problem.workload import Inputs, Workload, read_inputs, resolve
from simulator.study.features import FeatureErrors, feature_errors
from simulator.study.sweep import sweep
from tests.helpers.runs import features as phi
from tests.helpers.runs import scenario, textbook


def captured(name: str, temperature: float) -> tuple[Workload, Inputs]:
    attention = {"algorithm": "flash2", "temperature": temperature}
    source = {"source": "capture", "name": name}
    w = resolve(parse_scenario({"attention": attention, "input": source}))
    return w, read_inputs(w)


def errors_of(name: str, temperature: float, head: int, most: int) -> FeatureErrors:
    w, inputs = captured(name, temperature)
    sizes = [16 * 4**n for n in range(8) if 16 * 4**n <= most]
    return feature_errors(w, inputs, head, sizes, range(8))


@pytest.mark.parametrize("head", [0, 6, 7])
def test_the_error_of_a_captured_head_falls_as_one_over_the_root_of_the_features(head: int) -> None:
    """At a temperature of 4 its q and k are short enough for the features' spread."""
    found = errors_of("cat-because-layer0", 4.0, head, 4096)
    assert found.exponent == pytest.approx(-0.5, abs=0.08)
    assert (np.diff(found.means) < 0).all()
    assert (found.spreads < found.means).all()


def test_values_of_nothing_are_nothing_with_any_features() -> None:
    w, inputs = captured("cat-because-layer0", 1.0)
    found = feature_errors(w, replace(inputs, v=np.zeros_like(inputs.v)), 0, [16], range(2))
    assert found.elu1 == 0
    assert not found.means.any()


def test_maps_are_those_of_their_definitions() -> None:
    x = np.array([[3.0, -4.0], [0.0, 0.0], [0.5, 1.0]])
    np.testing.assert_allclose(
        FeatureMap("unit", 2, 2).of(x, None), [[0.6, -0.8], [0, 0], x[2] / np.sqrt(1.25)]
    )
    assert FeatureMap("identity", 2, 2).of(x, None) is x
    np.testing.assert_allclose(
        FeatureMap("elu1", 2, 2).of(x, None), [[4, np.exp(-4)], [1, 1], [1.5, 2]]
    )
    many = FeatureMap("performer", 200_000, 2)
    phi = many.of(x / 4, many.drawn(0))
    np.testing.assert_allclose(phi @ phi.T, np.exp(x @ x.T / 16 / np.sqrt(2)), rtol=0.05)
    assert many.flops == 800_000


def test_long_queries_and_keys_need_more_features_than_that() -> None:
    """As it was trained, the same head is far from the softmax with few features."""
    warm, cold = (errors_of("cat-because-layer0", t, 7, 4096) for t in (4.0, 1.0))
    assert (cold.means > 3 * warm.means).all()
    assert -0.45 < cold.exponent < -0.1
    assert cold.means[0] > 0.9


def test_errors_are_those_of_a_plain_sum() -> None:
    w = resolve(scenario("flash2", nq=5, nk=7, d=3, mask={"causal": True}, scale=0.4))
    inputs = read_inputs(w)
    found = feature_errors(w, inputs, 0, [2, 9], [3])
    exact, _ = textbook(w, inputs, 0)
    q, k, v = (x[0].astype(float) for x in (inputs.q, inputs.k, inputs.v))
    factor = (0.4 * np.sqrt(3)) ** 0.5
    for n, size in enumerate(found.features):
        directions = np.random.default_rng(3).standard_normal((size, 3)).astype(np.float32)
        similar = phi(q * factor, directions) @ phi(k * factor, directions).T
        o = np.zeros_like(exact)
        for i in range(5):
            weights = similar[i, : i + 3]
            o[i] = weights @ v[: i + 3] / weights.sum()
        off = np.linalg.norm(o - exact) / np.linalg.norm(exact)
        assert found.errors[n, 0] == pytest.approx(off, rel=1e-9)
    similar = phi(q, None) @ phi(k, None).T
    o = np.stack([similar[i, : i + 3] @ v[: i + 3] / similar[i, : i + 3].sum() for i in range(5)])
    off = np.linalg.norm(o - exact) / np.linalg.norm(exact)
    assert found.elu1 == pytest.approx(off, rel=1e-9)


def test_curves_of_n_squared_and_of_n_cross() -> None:
    """Of few keys a state costs more FLOPs than scores; of many, less of everything."""
    w = resolve(scenario("linear", nq=1024, d=64, rows=16, cols=16, mask={"causal": True}))
    sizes = [16, 32, 64, 128, 256, 512, 1024, 4096]
    found = sweep(w, "N", sizes)
    flops, held, moved = (
        {name: np.array([getattr(f, what) for f in found.figures[name]], dtype=float)
         for name in ("naive", "flash2", "linear")}
        for what in ("flops", "held", "bytes")
    )  # fmt: skip
    more = flops["linear"] > flops["flash2"]
    assert more[0]
    assert not more[-1]
    assert (np.diff(more.astype(int)) <= 0).all()  # they cross once

    def growth(values: np.ndarray) -> float:
        return float(np.log2(values[-1] / values[-2])) / 2

    assert growth(flops["linear"]) == pytest.approx(1, abs=0.01)
    assert growth(held["linear"]) == pytest.approx(1, abs=0.01)
    assert growth(moved["linear"]) == pytest.approx(1, abs=0.01)
    assert growth(flops["flash2"]) == pytest.approx(2, abs=0.05)
    assert growth(held["naive"]) > 1.9
    assert growth(moved["flash2"]) > 1.9
