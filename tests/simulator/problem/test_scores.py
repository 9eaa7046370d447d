"""What is done to a scaled product before the mask: soft-cap, and ALiBi's bias."""

import tomllib
from math import exp, tanh

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.base.errors import InputError
from simulator.problem.masks import Mask
from simulator.problem.scenario import parse_scenario, scenario_toml
from simulator.problem.scores import (
    ALIBI,
    RELATIVE,
    BiasTable,
    DistanceBias,
    Scoring,
    alibi_slopes,
)
from simulator.problem.workload import read_inputs, resolve
from tests.helpers.runs import scenario, trace_of


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


def by_loops(q, k, v, scale: float, cap: float, slopes: list[float]) -> np.ndarray:
    """Return O of causal attention by plain loops in Python floats, (H, N, dv)."""
    heads, n, _ = q.shape
    out = np.zeros((heads, n, v.shape[2]))
    for h in range(heads):
        kv = h * k.shape[0] // heads
        for i in range(n):
            weights = []
            for j in range(i + 1):
                s = scale * sum(float(a) * float(b) for a, b in zip(q[h, i], k[kv, j], strict=True))
                s = cap * tanh(s / cap) if cap else s
                weights.append(exp(s - slopes[h] * abs(i - j)))
            for j, weight in enumerate(weights):
                out[h, i] += weight / sum(weights) * v[kv, j].astype(float)
    return out


@pytest.mark.parametrize("algorithm", ["naive", "flash1", "flash2", "split-kv"])
@pytest.mark.parametrize("scores", [{"softcap": 1.5}, {"alibi": True}, {"alibi": [0.5, 0, 2, 1]},
                                    {"softcap": 0.7, "alibi": True}], ids=str)  # fmt: skip
def test_runs_are_what_loops_say(algorithm: str, scores: dict) -> None:
    said = scenario(algorithm, nq=11, d=4, heads=4, kv_heads=2, rows=3, cols=4,
                    mask={"causal": True}, scores=scores)  # fmt: skip
    trace = trace_of(said)
    raw = read_inputs(resolve(scenario("flash2", nq=11, d=4, heads=4, kv_heads=2)))
    alibi = scores.get("alibi", False)
    slopes = list(alibi_slopes(4)) if alibi is True else alibi or [0.0] * 4
    want = by_loops(raw.q, raw.k, raw.v, 0.5, scores.get("softcap", 0.0), slopes)
    blocks = [
        np.concatenate([block.o for block in trace.engine.row_blocks(head)])
        for head in range(trace.workload.heads)
    ]
    got = trace.workload.unpacked(np.stack(blocks))
    np.testing.assert_allclose(got, want, atol=3e-6)


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
    with pytest.raises(InputError) as error:
        Scoring(scale, temperature).check(100)
    assert said in str(error.value)
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
    with pytest.raises(InputError) as error:
        resolve(scenario(nq=4, heads=2, scores=table))
    assert line in str(error.value)


@pytest.mark.parametrize("table", [{"softcap": 30.0}, {"alibi": True}, {"alibi": [0.5, 0.25]}])
def test_a_scenario_is_written_as_it_was_read(table: dict) -> None:
    said = scenario(nq=4, heads=2, scores=table)
    assert parse_scenario(tomllib.loads(scenario_toml(said))) == said
