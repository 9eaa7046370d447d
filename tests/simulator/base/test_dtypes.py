"""Element types: rounding to them, and their bits."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from simulator.base.dtypes import (
    E4M3_LARGEST,
    STATISTIC_WIDTH,
    TYPE_NAMES,
    WIDTH,
    bfloat16_from_bits,
    frozen,
    round_to,
    round_to_e4m3,
)

FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(st.lists(FLOATS.filter(lambda x: abs(x) < 65504), min_size=1, max_size=40))
def test_rounding_to_float16_is_numpys(numbers: list[float]) -> None:
    values = np.array(numbers, dtype=np.float32)
    np.testing.assert_array_equal(round_to(values, "float16"), values.astype(np.float16))
    np.testing.assert_array_equal(round_to(values, "float32"), values)


HALVES = st.sampled_from([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF]) | st.integers(0, 0xFFFF)


@given(st.lists(st.tuples(st.integers(0, 0xFFFF), HALVES), min_size=1, max_size=40))
def test_rounding_to_bfloat16_is_to_the_nearest_even(halves: list[tuple[int, int]]) -> None:
    patterns = np.array([(high << 16) + low for high, low in halves], dtype=np.uint32)
    values = patterns.view(np.float32)
    rounded = round_to(values, "bfloat16")
    np.testing.assert_array_equal(np.isnan(rounded), np.isnan(values))
    for pattern, got in zip(patterns[~np.isnan(values)], rounded[~np.isnan(values)], strict=True):
        assert got.view(np.uint32) == nearest_bfloat16(int(pattern))


def nearest_bfloat16(bits: int) -> int:
    """Return the pattern rounded in whole-number arithmetic: magnitudes order like patterns."""
    sign, magnitude = bits & 0x80000000, bits & 0x7FFFFFFF
    low = magnitude >> 16
    twice = 2 * (magnitude - (low << 16))
    up = twice > 2**16 or (twice == 2**16 and low % 2 == 1)
    return sign | ((low + up) << 16)


def test_rounding_keeps_what_is_no_number() -> None:
    odd = np.array([np.nan, -np.nan, np.inf, -np.inf, -0.0], dtype=np.float32)
    odd = np.append(odd, np.array([0x7F800001, 0xFFFFFFFF], dtype=np.uint32).view(np.float32))
    for dtype in ("float16", "bfloat16"):
        got = round_to(odd, dtype)
        np.testing.assert_array_equal(got, odd)
        assert np.signbit(got[4])


def test_bfloat16_patterns() -> None:
    bits = np.array([0x0000, 0x8000, 0x3F80, 0xC000, 0x7F80, 0x4049], dtype=np.uint16)
    expected = np.array([0, -0.0, 1, -2, np.inf, 3.140625], dtype=np.float32)
    np.testing.assert_array_equal(bfloat16_from_bits(bits), expected)
    every = np.arange(2**16, dtype=np.uint16)
    values = bfloat16_from_bits(every)
    np.testing.assert_array_equal(round_to(values, "bfloat16"), values)


def test_what_is_frozen_is_the_array_itself() -> None:
    array = np.zeros(2)
    assert frozen(array) is array
    assert not array.flags.writeable


def test_rounding_of_halves() -> None:
    """Of two neighbours as near the one whose last bit is 0."""
    step = 2.0**-7  # of bfloat16 at 1
    halves = [[1 + step / 2, 1 + step * 3 / 2], [1 + step * 0.51, 1 + step * 0.49]]
    values = np.array(halves, dtype=np.float32)
    rounded = [[1, 1 + 2 * step], [1 + step, 1]]
    assert round_to(values, "bfloat16").tolist() == rounded
    assert round_to(values.T, "bfloat16").T.tolist() == rounded


def test_widths() -> None:
    assert {name: 8 * width for name, width in WIDTH.items()} == {
        "float32": 32, "float16": 16, "bfloat16": 16,
    }  # fmt: skip
    assert tuple(WIDTH) == TYPE_NAMES
    assert np.dtype(np.float32).itemsize == STATISTIC_WIDTH


def e4m3_numbers() -> np.ndarray:
    """Return what the codes of e4m3 from 0 to 126 stand for; the last one of a sign is NaN."""
    out = []
    for code in range(127):
        exponent, fraction = divmod(code, 8)
        least = exponent == 0  # these have no leading one
        out.append(
            (not least) * 2.0 ** (exponent - 7) + fraction / 8 * 2.0 ** (exponent - 7 + least)
        )
    return np.array(out)


@given(st.floats(-600, 600) | st.floats(-0.05, 0.05) | st.sampled_from([448.0, 464.0, -465.0, 1e5]))
def test_rounding_to_e4m3_is_to_the_nearest_code(value: float) -> None:
    table = e4m3_numbers()
    assert (len(set(table)), table[1], table[-1]) == (127, 2.0**-9, E4M3_LARGEST)
    off = np.abs(table - abs(value))
    nearest = np.flatnonzero(off == off.min())
    even = next((code for code in nearest if code % 2 == 0), nearest[0])
    assert round_to_e4m3(np.array([value]))[0] == np.copysign(table[even], value)


def test_every_number_of_e4m3_is_itself_and_nan_stays() -> None:
    table = e4m3_numbers()
    np.testing.assert_array_equal(round_to_e4m3(-table), -table)
    np.testing.assert_array_equal(
        round_to_e4m3(np.array([np.inf, -np.inf, np.nan])), [448, -448, np.nan]
    )
