"""To what rounding errors are relative: the sizes of terms, number by number and by hand."""

import numpy as np
import pytest

from simulator.program.algorithms import ALGORITHMS
from simulator.program.tile_program import TileAlgorithm

GRADIENTS = tuple(each for each in ALGORITHMS.values() if each.backward)
CHIP = {
    "S": np.array([[-5.0, -np.inf], [2.0, 3.0]]),
    "dO": np.array([[1.0, -2.0, 3.0], [0.5, 0.5, 0.5]]),
    "Q": np.array([[4.0, -6.0], [1.0, 1.0]]),
    "K": np.array([[0.5, -8.0]]),
}
"""Two rows of a backward pass: of scores 5 is the largest, of dO 3, of Q 6, of K 8."""
PRODUCT = 12.0
"""What no product of a row of dO and one of V exceeds."""
SIZES = {"S": 5, "P": 5, "m": 5, "D": 12, "dP": 12, "dS": 60, "dV": 5 * 2 * 3, "dK": 60 * 2 * 6,
         "dQ_acc": 60 * 8, "dQ": 60 * 8}  # fmt: skip


@pytest.mark.parametrize("algorithm", GRADIENTS, ids=lambda each: each.name)
def test_sizes_of_a_backward_pass(algorithm: TileAlgorithm) -> None:
    found = algorithm.error_size
    assert found is not None
    assert {name: found(name, CHIP, PRODUCT) for name in SIZES} == SIZES
    # Nothing is held to less than one unit, however small its terms.
    tiny = {name: values / 1000 for name, values in CHIP.items()}
    assert {found(name, tiny, 0.001) for name in SIZES} == {1}
    # Rows that see nothing have scores of no size, and so has a visit without scores.
    blind = {**CHIP, "S": np.full((2, 2), -np.inf)}
    for few in (blind, {name: CHIP[name] for name in ("dO", "Q", "K")}):
        assert [found(name, few, PRODUCT) for name in ("S", "dP", "dS", "dV")] == [1, 12, 12, 6]


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
