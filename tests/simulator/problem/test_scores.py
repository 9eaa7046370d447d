"""What is done to a scaled product before the mask: soft-cap, and ALiBi's bias."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.base.errors import InputError
from simulator.problem.masks import Mask
from simulator.problem.scores import ALIBI, RELATIVE, BiasTable, DistanceBias, Scoring, alibi_slopes
from simulator.problem.workload import resolve
from tests.helpers.refused import refused
from tests.helpers.runs import scenario


@pytest.mark.parametrize(
    ("heads", "slopes"),
    [
        (1, [2**-8]),
        (2, [2**-4, 2**-8]),
        (4, [2**-2, 2**-4, 2**-6, 2**-8]),
        (8, [2**-n for n in range(1, 9)]),
        (6, [2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3]),
        (12, [2**-n for n in range(1, 9)] + [2**-0.5, 2**-1.5, 2**-2.5, 2**-3.5]),
    ],
)
def test_slopes_are_those_of_the_paper(heads: int, slopes: list[float]) -> None:
    assert list(alibi_slopes(heads)) == pytest.approx(slopes, rel=1e-12)


def test_a_bias_says_what_it_does_and_whose_it_is() -> None:
    mask, table = Mask(2, 3), np.arange(4, dtype=np.float32)[None]
    sloped, learned, both = (
        DistanceBias(mask, slopes, 2, values)
        for slopes, values in (((0.5,), None), ((), table), ((0.5,), table))
    )
    assert (sloped.cites, learned.cites, both.cites) == (ALIBI, RELATIVE, RELATIVE)
    assert sloped.latex == r"- \mathrm{slope} \cdot | i' - j |"
    assert learned.latex == r"+ b_{\,j - i'}"
    assert both.latex == f"{sloped.latex} {learned.latex}"
    for bias in (sloped, learned, both):
        for i, j in np.ndindex(2, 3):
            away = j - (i + 1)
            loses = 0.5 * abs(away) * bool(bias.slopes)
            loses -= 0 if bias.table is None else table[0, away + 2]
            assert bias.of(range(i, i + 1), range(j, j + 1))[0, 0] == loses
        want = [[bias.of(range(i, i + 1), range(j, j + 1))[0, 0] for j in range(3)]
                for i in range(2)]  # fmt: skip
        np.testing.assert_array_equal(bias.of(range(2), range(3)), want)


def test_tables_of_the_same_numbers_are_the_same() -> None:
    one, same, other = (BiasTable(np.array([[1.0, last]], np.float32)) for last in (2.0, 2.0, 3.0))
    assert one == same
    assert hash(one) == hash(same)
    assert one != other
    assert one != "table"


@pytest.mark.parametrize(
    ("scale", "temperature", "said"),
    [
        (1e-39, 1.0, "attention.scale = 1e-39"), (1e39, 1.0, "attention.scale = 1e+39"),
        (1e30, 1e-20, "attention.temperature = 1e-20"), (1e-30, 1e20, "attention.temperature"),
    ],
)  # fmt: skip
def test_a_scale_that_float32_has_not_is_refused(
    scale: float, temperature: float, said: str
) -> None:
    assert said in refused(Scoring(scale, temperature).check, 100)
    limits = np.finfo(np.float32)
    for edge in (float(limits.tiny), float(limits.max)):
        Scoring(edge).check(100)
    for scores, key in (
        ({"softcap": 1e300}, "softcap"), ({"softcap": 1e-300}, "softcap"),
        ({"alibi": [0.5, 1e38]}, "alibi"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=rf"scores\.{key} = 1e"):
            resolve(scenario(nq=8, heads=2, scores=scores))
    resolve(scenario(nq=8, heads=2, scores={"softcap": 1e30, "alibi": [0.5, 1e37]}))
    plain = Scoring(6.0, 2.0, softcap=5.0, slopes=(1.0,), sink_logits=(2.0,))
    assert plain.unscaled == Scoring(1.0, 1.0, 5.0, (1.0,), (2.0,))
    assert plain.arguments == {"scale": 3.0, "softcap": 5.0}


@given(st.floats(-100, 100), st.sampled_from([0.5, 20.0, 50.0]))
def test_a_cap_keeps_scores_below_it_in_their_order(score: float, cap: float) -> None:
    w = resolve(scenario(nq=2, scores={"softcap": cap}))
    s = np.array([[score, score + 1.0]])
    capped = w.changed(0, range(1), range(2), s)
    assert np.abs(capped).max() <= cap
    assert capped[0, 0] <= capped[0, 1]
    assert abs(capped[0, 0]) <= abs(score) + 1e-12


@pytest.mark.parametrize(
    ("table", "line"),
    [
        ({"softcap": -1}, "scores.softcap = -1: expected"),
        ({"softcap": float("inf")}, "scores.softcap"),
        ({"alibi": [1.0]}, "scores.alibi = [1.0]: expected 2 slopes, one for each query head"),
        ({"alibi": [1.0, -1.0]}, "scores.alibi"),
        ({"cap": 1}, "scores.cap"),
    ],
)
def test_what_cannot_be_used_is_named(table: dict, line: str) -> None:
    assert line in refused(lambda: resolve(scenario(nq=4, heads=2, scores=table)))
