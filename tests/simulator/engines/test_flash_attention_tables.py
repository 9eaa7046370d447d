"""FlashAttention's case tables of local windows, ALiBi, soft-caps, splits and rotary positions.

O is held as its tests hold it: its error is at most so many times that of attention made of
operations of the same dtype. The same cases run beside PyTorch in tests/peers.
"""

from itertools import combinations, product

import numpy as np
import pytest

from simulator.base.dtypes import DType, round_to
from simulator.problem.positions import Rotary
from tests.helpers.flash_attention_tables import BOTH, HALF, TABLES, Case, errors, turned

CASES = [(name, case) for name, (cases, _) in TABLES.items() for case in cases]


@pytest.mark.parametrize("name", TABLES)
def test_any_two_values_of_two_parameters_meet(name: str) -> None:
    cases, _ = TABLES[name]
    values = {field: {getattr(case, field) for case in cases} for field in Case.__match_args__}
    assert sum(len(each) > 1 for each in values.values()) >= 5
    for one, other in combinations(values, 2):
        met = {(getattr(case, one), getattr(case, other)) for case in cases}
        assert met == set(product(values[one], values[other])), (one, other)


@pytest.mark.sweep(keep=10)
@pytest.mark.parametrize(("name", "case"), CASES, ids=str)
def test_errors_are_those_that_flash_attention_allows(name: str, case: Case) -> None:
    _, allowed = TABLES[name]
    found = errors(case)
    assert found.ours <= allowed(case, found)
    assert np.isfinite(found.plain)


@pytest.mark.sweep(keep=16)
@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("offset", [0, 131])
@pytest.mark.parametrize("fraction", [1.0, 0.5])
@pytest.mark.parametrize("interleaved", BOTH)
@pytest.mark.parametrize("length", [217, 512])
@pytest.mark.parametrize("back", BOTH)
def test_rotary_is_that_of_flash_attention(
    back: bool, length: int, interleaved: bool, fraction: float, offset: int, dtype: DType
) -> None:
    """tests/test_rotary.py, with its tolerance; gradients are turned back."""
    said = Rotary(10000.0, int(fraction * 128), interleaved, offset)
    drawn = np.random.default_rng(42).standard_normal((4, length, 128)).astype(np.float32)
    x = round_to(drawn, dtype)
    got = said.turned(x, 0, dtype, back=back)
    true = round_to(turned(x, said, 0, -1 if back else 1), dtype)
    nudged = round_to(round_to(true + np.float32(0.3), dtype) - np.float32(0.3), dtype)
    assert np.abs(got - x).max() > 1
    np.testing.assert_allclose(got, true, rtol=1e-3, atol=2 * float(np.abs(nudged - true).max()))
