"""The matrix product is judged by its result, not by flags that a BLAS may set for what it pads."""

import warnings

import numpy as np
import pytest

from simulator.base.matmul import matmul

STRAY = {
    "invalid": lambda: np.subtract(np.inf, np.inf),
    "overflow": lambda: np.multiply(1e308, 1e308),
    "divide": lambda: np.divide(1.0, 0.0),
}


class Padded(np.ndarray):
    """Its products set the flags that a BLAS sets where it computes stray memory, too."""

    stray: str

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        STRAY[self.stray]()
        return getattr(ufunc, method)(*(np.asarray(each) for each in inputs), **options)


@pytest.mark.parametrize("kind", STRAY)
def test_a_flag_beside_finite_numbers_is_no_warning(kind):
    a, b = np.array([[1, 2], [3, 4]], np.float32).view(Padded), np.eye(2, dtype=np.float32)
    a.stray = kind
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match=kind):  # as it was
            np.matmul(a, b)
        np.testing.assert_array_equal(matmul(a, b), [[1, 2], [3, 4]])
        out = np.empty((2, 2), dtype=np.float32)
        assert matmul(a, b, out=out) is out
        np.testing.assert_array_equal(out, [[1, 2], [3, 4]])


@pytest.mark.parametrize(
    ("a", "word"), [([[3e38, 3e38]], "overflow"), ([[np.inf, -np.inf]], "invalid value")]
)
def test_a_result_that_is_not_finite_is_told_as_the_caller_wants(a, word):
    a, b = np.array(a, dtype=np.float32), np.ones((2, 1), dtype=np.float32)
    with pytest.warns(RuntimeWarning, match=word):
        matmul(a, b)
    with np.errstate(all="ignore"):
        assert not np.isfinite(matmul(a, b)).any()
        out = np.zeros((1, 1), dtype=np.float32)
        assert matmul(a, b, out=out) is out
        assert not np.isfinite(out).any()
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        matmul(a, b)


def test_it_is_the_product():
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((5, 7, 3)), rng.standard_normal((3, 2))
    np.testing.assert_allclose(matmul(a, b), np.einsum("nij,jk->nik", a, b))
    assert matmul(np.arange(3), np.arange(3)) == 5
