"""Keys and values of few bits: bounds of what rounding does, and their bytes."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from simulator.study.generation.steps import shipped_run
from simulator.study.kv_cache.costs import budgets_of, pressure, relative_error
from simulator.study.kv_cache.decoding import decoded, layer_of
from simulator.study.kv_cache.policies import POLICIES
from simulator.study.kv_cache.quantise import GRAINS, SMALL, rounded, scales_of, stored_bytes
from tests.helpers.refused import refused
from tests.simulator.study.kv_cache.test_eviction import layer

TENSORS = arrays(
    np.float64, array_shapes(min_dims=3, max_dims=3, max_side=5), elements=st.floats(-1e30, 1e30)
)
DRAWN = st.integers(0, 99).map(lambda seed: np.random.default_rng(seed).normal(size=(2, 5, 9)))


@given(TENSORS | DRAWN, st.sampled_from(SMALL), st.sampled_from(GRAINS))
def test_a_number_moves_by_half_a_step_at_most(x, dtype, grain):
    scales, out = scales_of(x, dtype, grain), rounded(x, dtype, grain)
    # e4m3 has 3 bits of fraction, and steps of 2^-9 near 0.
    step = np.maximum(np.abs(x) / 8, scales / 2**9) if dtype == "fp8" else scales
    off = np.abs(out - x)
    assert (off <= step / 2 * (1 + 1e-6) + np.abs(x) * 1e-7).all()
    assert np.isfinite(out).all()


@given(TENSORS, st.sampled_from(SMALL), st.sampled_from(GRAINS))
def test_codes_are_no_more_than_the_bits_hold(x, dtype, grain):
    codes = rounded(x, dtype, grain) / scales_of(x, dtype, grain)
    largest = {"fp8": 448, "int8": 2**7 - 1, "int4": 2**3 - 1}[dtype]
    assert np.abs(codes).max() <= largest * (1 + 1e-12)
    full = rounded(np.ones((1, 1, 1)), dtype, grain) / scales_of(np.ones((1, 1, 1)), dtype, grain)
    assert full.item() == pytest.approx(largest, rel=1e-6)
    if dtype != "fp8":
        np.testing.assert_allclose(codes, np.rint(codes), atol=1e-9)


@pytest.mark.parametrize("grain", GRAINS)
@pytest.mark.parametrize("dtype", SMALL)
def test_zeros_stay_and_what_is_not_finite_is_refused(dtype, grain):
    x = np.zeros((2, 3, 4))
    np.testing.assert_array_equal(rounded(x, dtype, grain), x)
    for wrong in (np.inf, -np.inf, np.nan):
        x[1, 2, 3] = wrong
        assert "finite" in refused(rounded, x, dtype, grain)


def test_a_large_number_spoils_only_what_shares_its_scale():
    x = np.ones((2, 2, 4))
    x[0, 0, 0] = 1e6
    for grain, spoiled in (("tensor", 15), ("head", 7), ("token", 3)):
        assert (rounded(x, "int8", grain) == 0).sum() == spoiled


def test_bytes_are_those_of_elements_and_scales():
    shape = (12, 495, 32)
    numbers = 12 * 495 * 32
    for dtype, elements in (("fp8", numbers), ("int8", numbers), ("int4", numbers // 2)):
        assert stored_bytes(shape, dtype, "tensor") == elements + 4
        assert stored_bytes(shape, dtype, "head") == elements + 4 * 12
        assert stored_bytes(shape, dtype, "token") == elements + 4 * 12 * 495


def test_what_a_layer_loses():
    own, told = layer(16, 2, 2), []
    found = pressure(own.workload, own.inputs, told.append)
    count = len(POLICIES) * len(budgets_of(16))
    assert told == [n / (count + 1) for n in range(1, count + 2)]
    assert len(found.evicted) == count
    assert found.bytes == 16 * 2 * 2 * 4 * own.workload.width
    assert len(found.rounded) == len(SMALL) * len(GRAINS)
    for each in found.rounded:
        given = (
            rounded(x.astype(float), each.dtype, each.grain) for x in (own.inputs.k, own.inputs.v)
        )
        k, v = (x.astype(np.float32) for x in given)
        other = layer_of(own.workload, replace(own.inputs, k=k, v=v))
        o = decoded(other, POLICIES[0], 16).o  # all tokens are kept
        assert each.error == pytest.approx(relative_error(o, found.exact), rel=1e-6)
    assert max(e.error for e in found.of_type("int8")) < min(e.error for e in found.of_type("int4"))
    for policy in POLICIES:
        tried = found.of_policy(policy)
        assert [each.bytes for each in tried] == sorted({each.bytes for each in tried})
        assert found.decoded(policy, 16)[1].error < 1e-12


@pytest.mark.parametrize("dtype", SMALL)
def test_a_scale_for_each_token_is_nearer_to_the_keys_of_a_trained_layer(dtype):
    k = shipped_run()[1].k.astype(np.float64)
    off = [np.linalg.norm(rounded(k, dtype, grain) - k) for grain in GRAINS]
    assert off[2] < off[0]
