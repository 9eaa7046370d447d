"""Numbers in words."""

import pytest

from ui.look.units import (
    bytes_text,
    estimate_text,
    factor_text,
    plural,
    rate_text,
    small_text,
    tick_text,
    time_text,
)


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 tiles"), (1, "1 tile"), (2, "2 tiles"), (1234, "1\u2009234 tiles")]
)
def test_one_is_no_plural(count, text):
    assert plural(count, "tile") == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (1e-10, "≥ 100.0 ps on T4, less than a launch takes (some 4 µs)"),
        (2.9e-6, "≥ 2.9 µs on T4, less than a launch takes (some 4 µs)"),
        (4e-6, "≥ 4.0 µs on T4"),
        (0.25, "≥ 250.0 ms on T4"),
    ],
)
def test_an_estimate_below_a_launch_says_so(seconds, text):
    assert estimate_text(seconds, "T4") == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (0.5882, "0.588×"),
        (1.0, "1.00×"),
        (1.043, "1.04×"),
        (2.554, "2.55×"),
        (9.996, "10.0×"),
        (12.04, "12.0×"),
        (99.96, "100×"),
        (130.2, "130×"),
        (3257.1, "3\u2009257×"),
    ],
)
def test_a_factor_has_three_digits_and_none_behind_a_hundred(ratio, text):
    assert factor_text(ratio) == text


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.00"), (12.345, "12.35"), (1.0, "1.00"), (0.5, "0.50"), (0.099, "0.099"),
        (0.01, "0.010"), (4 / 1056, "0.0038"), (1 / 9728, "0.00010"), (5.14e-5, "0.000051"),
    ],
)  # fmt: skip
def test_a_small_number_does_not_look_like_none(value, text):
    assert small_text(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (-0.0, "0"), (-0.25, "−0.25"), (1e-12, "1e−12"), (2.5e7, "2.5e7"), (1.0, "1")],
)
def test_beside_an_axis_no_digit_is_in_vain(value, text):
    assert tick_text(value) == text


def test_rates_are_written_in_powers_of_ten() -> None:
    assert rate_text(989e12, "FLOP/s") == "989 TFLOP/s"
    assert rate_text(3.35e12, "B/s") == "3.35 TB/s"
    assert rate_text(0.5, "B/s") == "0.5 B/s"


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (bytes_text(1023), "1023 B"),
        (bytes_text(1024**2 - 60), "1023.9 KiB"),
        (bytes_text(1024**2 - 1), "1.0 MiB"),
        (time_text(999.94e-9), "999.9 ns"),
        (time_text(999.96e-9), "1.0 µs"),
        (time_text(999.96e-12), "1.0 ns"),
        (time_text(0.04e-9), "40.0 ps"),
        (time_text(0.0), "0.0 ns"),
        (rate_text(999_400, "FLOP"), "999 kFLOP"),
        (rate_text(999_600, "FLOP"), "1 MFLOP"),
        (rate_text(2.5e18, "FLOP"), "2.5 EFLOP"),
    ],
)
def test_no_number_is_rounded_to_a_whole_unit_of_the_next(said, text):
    assert said == text
