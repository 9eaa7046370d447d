"""To what rounding errors are relative: the sizes of terms, number by number and by hand."""

import numpy as np
import pytest

from simulator.program.algorithms import ALGORITHMS

BACKWARD = {
    "S": np.array([[-5.0, -np.inf], [2.0, 3.0]]),
    "dO": np.array([[1.0, -2.0, 3.0], [0.5, 0.5, 0.5]]),
    "Q": np.array([[4.0, -6.0], [1.0, 1.0]]),
    "K": np.array([[0.5, -8.0]]),
    "D": np.zeros(2),
}
"""Two rows, two keys: the largest score is 5, |dO| of a row is 6, the largest of Q 6, of K 8."""
SIZES = {"S": 5, "P": 5, "m": 5, "D": 12, "dP": 12, "dS": 60, "dV": 5 * 2 * 3, "dK": 60 * 2 * 6,
         "dQ_acc": 60 * 8, "dQ": 60 * 8}  # fmt: skip
"""With 2 as the largest number of V."""


@pytest.mark.parametrize(("name", "size"), SIZES.items())
def test_sizes_of_a_backward_pass(name: str, size: float) -> None:
    found = ALGORITHMS["flash2-backward"].error_size
    assert found is not None
    assert found(name, BACKWARD, 2.0) == size
    # Nothing is held to less than one unit, however small its terms.
    tiny = {each: values / 1000 for each, values in BACKWARD.items()}
    assert found(name, tiny, 0.001) == 1
    # Before there are scores and dots, every number is one of a score.
    assert found(name, {}, 2.0) == 1
    assert found(name, {"S": BACKWARD["S"]}, 2.0) == 5


def test_rows_that_see_nothing_have_scores_of_no_size() -> None:
    found = ALGORITHMS["flash2-backward"].error_size
    assert found is not None
    blind = {**BACKWARD, "S": np.full((2, 2), -np.inf)}
    assert [found(name, blind, 2.0) for name in ("S", "dP", "dS", "dV")] == [1, 12, 12, 6]


@pytest.mark.parametrize("algorithm", ["gla", "deltanet"])
def test_sizes_of_a_state_by_tokens(algorithm: str) -> None:
    found = ALGORITHMS[algorithm].error_size
    assert found is not None
    chip = {
        "state": np.array([[1.0, -3.0], [0.5, 2.0]]),
        "phi_Q": np.array([[2.0, -5.0]]),
        "phi_K": np.array([[-4.0, 2.0]]),
    }
    assert found("phi_Q", chip, 9.0) == 1
    assert found("state", chip, 2.0) == 4 * 3 * 4  # the state's 3, K's 4
    assert found("state", chip, 7.0) == 4 * 7 * 4  # V's 7
    assert found("O", chip, 2.0) == 4 * 3 * 7  # |q| adds up to 7, |k| to 6
    assert found("v_old", {**chip, "phi_K": np.array([[-9.0, 2.0]])}, 2.0) == 4 * 3 * 11
    small = {name: values / 100 for name, values in chip.items()}
    assert [found(name, small, 0.1) for name in ("state", "O")] == [4, 4]


@pytest.mark.parametrize("algorithm", ["linear", "linear-recurrent"])
def test_sizes_of_a_state_with_sums(algorithm: str) -> None:
    found = ALGORITHMS[algorithm].error_size
    assert found is not None
    chip = {"l": np.array([2.0, 6.0]), "state": np.array([[1.0, 3.0]])}
    assert [found(name, chip, 5.0) for name in ("S", "O", "state", "l")] == [1, 30, 15, 1]
    assert [found(name, chip, 0.5) for name in ("O", "state")] == [6, 3]
    few = {"l": np.array([0.2]), "state": np.array([[0.1]])}
    assert [found(name, few, 0.5) for name in ("O", "state")] == [1, 1]
    # With random features an exponent's error is one of its power: y = x / d^(1/4), d = 16.
    q, k = np.zeros((1, 16)), np.zeros((1, 16))
    q[0, :2], k[0, 0] = (4.0, -2.0), 6.0
    directions = np.zeros((2, 16))
    directions[0, :2], directions[1, 0] = (1.0, 3.0), -2.0
    chip |= {"Q": q, "K": k, "projection": directions}
    assert found("S", chip, 5.0) == pytest.approx(1 + 3 * 2 + 9)  # |w|·|y| of K, |y|² of K
    del chip["K"]
    assert found("S", chip, 5.0) == pytest.approx(1 + 2 + 3 + 4 + 1)
