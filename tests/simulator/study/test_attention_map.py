"""The inspector's weights, entropies and lookups, beside plain loops and float64."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator import InputError
from simulator.problem.filling import capture_names
from simulator.problem.masks import Mask
from simulator.problem.scenario import Scenario, parse_scenario
from simulator.problem.workload import Inputs, Workload, read_inputs, resolve
from simulator.study.attention_map import (
    AttentionMaps,
    HeadScores,
    MapSettings,
    pool_block,
    pooled_maps,
    settings_of,
)
from simulator.study.attention_part import Limits, MapPart, fitting_part
from tests.helpers.refused import refused
from tests.helpers.runs import Pairs, pairs_of, scenario, scenarios, scored
from tests.helpers.scarce import peak_memory

SETTINGS = [
    MapSettings(),
    MapSettings(causal=True),
    MapSettings(temperature=0.05, window=6, sinks=2),
    MapSettings(temperature=4.0, causal=True, window=5),
]


def loaded(chosen: Scenario) -> tuple[Workload, Inputs]:
    workload = resolve(chosen)
    return workload, read_inputs(workload)


def capture(name: str) -> tuple[Workload, Inputs]:
    return loaded(parse_scenario({"input": {"source": "capture", "name": name}}))


def table(pairs: Pairs) -> np.ndarray:
    """Return which pairs are visible, (Nq, Nk), by asking for each."""
    return np.array([[pairs.sees(i, j) for j in range(pairs.nk)] for i in range(pairs.nq)])


def exact(
    w: Workload, inputs: Inputs, seen: np.ndarray, temperature: float, head: int
) -> np.ndarray:
    """Return softmax(scale * Q K^T / temperature) in float64, (Nq, Nk)."""
    q, k = inputs.q[head].astype(np.float64), inputs.k[w.kv_head_of[head]].astype(np.float64)
    scaled = q @ k.T * w.scale / temperature
    scores = scored(w, head, range(w.seqlen_q), range(w.seqlen_k), scaled)
    scores = np.where(seen, scores, -np.inf)
    top = np.where(seen.any(axis=1), scores.max(axis=1), 0.0)
    p = np.exp(scores - top[:, None])
    total = p.sum(axis=1)
    if w.sink_logits:  # a sink joins the sum, and has no weight of its own here
        total = total + np.exp(w.sink_logits[head] - top)
    return p / np.where(seen.any(axis=1), total, 1.0)[:, None]


def entropy_of(p: np.ndarray) -> float:
    return sum(-x * math.log2(x) for x in p.tolist() if x > 0)


@pytest.mark.sweep(keep=6)
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("name", capture_names())
def test_captures_equal_float64(name: str, settings: MapSettings) -> None:
    w, inputs = capture(name)
    maps = HeadScores(w, inputs).maps(settings)
    assert maps.weights.shape == (12, w.seqlen_q, w.seqlen_k)
    assert maps.weights.dtype == np.float32
    said = settings.causal, settings.window, settings.sinks
    seen = table(Pairs(w.seqlen_q, w.seqlen_k, *said))
    assert maps.visible.tolist() == [seen.sum(axis=1).tolist()] * 12
    for head in range(12):
        p = exact(w, inputs, seen, settings.temperature, head)
        assert np.abs(maps.of(head) - p).max() < 1e-6
        for row in range(0, w.seqlen_q, 7):
            assert maps.entropy[head, row] == pytest.approx(entropy_of(p[row]), abs=1e-5)


@pytest.mark.long
@given(chosen=scenarios(algorithms=["flash2"]))
def test_rows_of_any_workload(chosen: Scenario) -> None:
    w, inputs = loaded(chosen)
    pairs = pairs_of(w)
    maps = HeadScores(w, inputs).maps()
    for head in range(w.heads):
        p = exact(w, inputs, table(pairs), w.temperature, head)
        v = inputs.v[w.kv_head_of[head]]
        for row in range(w.seqlen_q):
            keys = [j for j in range(w.seqlen_k) if pairs.sees(row, j)]
            found = maps.row(head, row, most=3)
            assert np.abs(found.weights - p[row]).max() < 1e-6
            assert found.visible == maps.visible[head, row] == len(keys)
            among = p[row] / (p[row].sum() or 1.0)  # without what a sink takes
            assert found.entropy == pytest.approx(entropy_of(among), abs=1e-5)
            best = sorted(keys, key=lambda j: (-found.weights[j], j))[:3]
            assert found.strongest.tolist() == best
            lookup = maps.lookup(head, row, v)
            soft = p[row] @ v
            np.testing.assert_allclose(lookup.soft, soft, atol=1e-5 * max(1, np.abs(v).max()))
            hard = v[best[0]] if keys else np.zeros(w.value_dim)
            assert lookup.hard.tolist() == hard.tolist()
            assert lookup.key == (best[0] if keys else -1)
            assert lookup.distance == pytest.approx(math.dist(lookup.soft, lookup.hard))


def test_a_row_that_sees_nothing() -> None:
    w, inputs = loaded(scenario(nq=5, nk=3, d=4, mask={"causal": True}))
    maps = HeadScores(w, inputs).maps()
    assert maps.visible[0].tolist() == [0, 0, 1, 2, 3]
    assert not maps.weights[0, :2].any()
    assert maps.entropy[0, :3].tolist() == [0, 0, 0]  # one key is no choice either
    blind = maps.row(0, 1)
    assert (blind.visible, blind.entropy, blind.strongest.tolist()) == (0, 0.0, [])
    lookup = maps.lookup(0, 1, inputs.v[0])
    assert (lookup.key, lookup.weight, lookup.distance) == (-1, 0.0, 0.0)
    assert not lookup.soft.any()
    assert not lookup.hard.any()


def constant(w: Workload, query: float, keys: list[float]) -> Inputs:
    """Return inputs in which every score is `query` times a key's number."""
    q = np.full((w.heads, w.seqlen_q, w.head_dim), query, dtype=np.float32)
    k = np.zeros((w.kv_heads, w.seqlen_k, w.head_dim), dtype=np.float32)
    k[..., 0] = keys
    return Inputs(q, k, np.ones((w.kv_heads, w.seqlen_k, w.value_dim), dtype=np.float32))


def test_entropy_at_its_ends() -> None:
    w = resolve(scenario(nq=2, nk=8, d=1))
    even = HeadScores(w, constant(w, 1, [2.0] * 8)).maps()
    assert even.entropy[0] == pytest.approx([3, 3], abs=1e-6)  # eight keys alike: three bits
    assert even.row(0, 0, most=20).strongest.tolist() == list(range(8))
    one = HeadScores(w, constant(w, 1, [0.0] * 7 + [1e5])).maps()
    assert one.entropy[0].tolist() == [0, 0]
    # Keys that weigh nothing any more are visible all the same.
    assert one.row(0, 0, most=3).strongest.tolist() == [7, 0, 1]


def test_scores_far_apart_stay_exact() -> None:
    """Float32 scores of 1e5 are off by 0.004: differences have to be taken before rounding."""
    w = resolve(scenario(nq=1, nk=4, d=1))
    inputs = constant(w, 1000.0, [100.0, 100.001, 100.002, 0.0])
    x = inputs.k[0, :, 0].astype(np.float64) * 1000 * w.scale
    p = np.exp(x - x.max())
    maps = HeadScores(w, inputs).maps()
    assert np.abs(maps.weights[0, 0] - p / p.sum()).max() < 1e-6


def test_huge_scores_make_no_nan() -> None:
    w = resolve(scenario(nq=2, nk=3, d=2, heads=1))
    maps = HeadScores(w, constant(w, 3e38, [3e38, -3e38, 0.0])).maps()
    assert maps.weights[0, 0].tolist() == [1, 0, 0]
    assert maps.entropy[0].tolist() == [0, 0]


@given(chosen=scenarios(algorithms=["flash2"]), data=st.data())
def test_some_heads_and_rows_have_the_same_numbers(chosen: Scenario, data: st.DataObject) -> None:
    w, inputs = loaded(chosen)
    everything = HeadScores(w, inputs).maps()
    heads = tuple(sorted(data.draw(st.sets(st.integers(0, w.heads - 1), min_size=1))))
    first = data.draw(st.integers(0, w.seqlen_q - 1))
    rows = range(first, data.draw(st.integers(first + 1, w.seqlen_q)))
    some = HeadScores(w, inputs, MapPart(heads, rows)).maps()
    assert (some.heads, some.rows) == (heads, rows)
    for head in heads:
        inside = slice(rows.start, rows.stop)
        np.testing.assert_allclose(some.of(head), everything.of(head)[inside], atol=1e-6)
        assert some.row(head, rows[-1]).visible == everything.row(head, rows[-1]).visible
    one = HeadScores(w, inputs).maps(heads=heads[-1:])
    assert one.of(heads[-1]).tolist() == everything.of(heads[-1]).tolist()
    with pytest.raises(ValueError, match="tuple"):
        one.of(w.heads)


def test_blocks_of_rows_make_no_difference() -> None:
    w, inputs = capture("robot-ball-layer2")
    settings = MapSettings(causal=True, window=4)
    scores = HeadScores(w, inputs)  # kept, so that others do not lie where it lay
    whole = scores.maps(settings)
    small = Limits(block=(w.seqlen_q - 1) * w.seqlen_k, product=5 * w.head_dim)
    parts = HeadScores(w, inputs, limits=small).maps(settings)
    np.testing.assert_allclose(parts.weights, whole.weights, atol=1e-7)
    assert parts.visible.tolist() == whole.visible.tolist()


def test_two_heads_compared() -> None:
    w, inputs = capture("soft-red-mat-layer2")
    maps = HeadScores(w, inputs).maps()
    found = maps.difference(2, 7)
    assert found.weights.tolist() == (maps.of(2) - maps.of(7)).tolist()
    for row in range(w.seqlen_q):
        both = np.minimum(maps.of(2)[row], maps.of(7)[row]).sum(dtype=np.float64)
        assert found.moved[row] == pytest.approx(1 - both, abs=1e-6)
    assert found.moved.dtype == np.float64
    assert not maps.difference(4, 4).moved.any()


def largest_by_loops(maps: AttentionMaps, tall: int, wide: int) -> np.ndarray:
    heads, rows, keys = maps.weights.shape
    return np.array(
        [
            [
                [maps.weights[h, i : i + tall, j : j + wide].max() for j in range(0, keys, wide)]
                for i in range(0, rows, tall)
            ]
            for h in range(heads)
        ]
    )


@given(
    rows=st.integers(1, 23), keys=st.integers(1, 23), most=st.tuples(*2 * [st.integers(1, 30)]),
    limit=st.integers(1, 2000),
)  # fmt: skip
def test_pooled_maps(rows: int, keys: int, most: tuple[int, int], limit: int) -> None:
    w, inputs = loaded(scenario(nq=rows, nk=keys, d=2, heads=2, mask={"causal": True}))
    maps = HeadScores(w, inputs).maps()
    pooled = maps.pooled(*most)
    assert pooled.shape[1] <= most[0]
    assert pooled.shape[2] <= most[1]
    expected = largest_by_loops(maps, pool_block(rows, most[0]), pool_block(keys, most[1]))
    assert pooled.tolist() == expected.tolist()
    told: list[float] = []
    # Parts as small as one block of rows, which may be all rows.
    small = Limits(weights=max(limit, rows * keys))
    streamed = pooled_maps(w, inputs, settings_of(w), most, told.append, small)
    np.testing.assert_allclose(streamed, pooled, atol=1e-6)
    assert told == sorted(told)
    assert told[-1] == 1


def test_what_fits_and_why_not_all() -> None:
    def part(heads: int, nq: int, nk: int, row: int = 0) -> MapPart:
        return fitting_part(resolve(scenario(nq=nq, nk=nk, d=4, heads=heads)), heads - 1, row)

    assert part(12, 495, 495) == MapPart(tuple(range(12)), range(495))
    assert part(32, 512, 512).reason == ""
    one = part(32, 1024, 1024)
    assert (one.heads, one.rows) == ((31,), range(1024))
    assert one.reason == (
        "32 × 1\u2009024 × 1\u2009024 weights are more than the 8\u2009388\u2009608 kept at once: "
        "head 31 alone"
    )
    for row in (0, 70_000, 131_071):
        few = part(1, 131_072, 131_072, row)
        assert len(few.rows) == 16
        assert row in few.rows
        ends = (f"{few.rows[n]:,}".replace(",", "\u2009") for n in (0, -1))
        assert few.reason.endswith("head 0, rows " + " to ".join(ends))


def test_too_many_weights_are_refused() -> None:
    w = resolve(scenario(nq=5000, nk=5000, d=1, heads=2))
    none = Inputs(*(np.zeros((2, 1, 1), dtype=np.float32) for _ in range(3)))
    with peak_memory() as peak:
        told = refused(HeadScores, w, none)
        assert 'x 5000 x 5000": expected at most 8388608 of them' in told
        assert peak() < 2**20  # refused before anything is made
    w = resolve(scenario(nq=20_000, nk=20_000, d=1))
    with pytest.raises(InputError, match="at most 268435456 to make small maps of"):
        pooled_maps(w, read_inputs(w), MapSettings(), (9, 9))


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (MapSettings(temperature=0.0), "inspector: temperature = 0.0: expected a number above 0"),
        (MapSettings(temperature=-1.0), "temperature = -1.0"),
        (MapSettings(temperature=math.nan), "temperature = nan"),
        (MapSettings(temperature=math.inf), "temperature = inf"),
        (MapSettings(temperature=1e-300), "temperature = 1e-300"),
        (MapSettings(window=-1), "inspector: window = -1: expected 0 or more"),
        (MapSettings(sinks=-2), "inspector: sinks = -2: expected 0 or more"),
    ],
)
def test_settings_that_cannot_be_used(settings: MapSettings, told: str) -> None:
    w, inputs = capture("soft-red-mat-layer2")
    assert told in refused(HeadScores(w, inputs).maps, settings)


def test_a_temperature_may_bring_the_scale_to_the_ends_of_float32() -> None:
    limits = np.finfo(np.float32)
    w, inputs = loaded(scenario(nq=2, nk=2, d=1))
    for scale in (float(limits.max), float(limits.tiny)):
        HeadScores(replace(w, scale=scale), inputs).maps(MapSettings())
    HeadScores(replace(w, scale=1.5 * float(limits.max)), inputs).maps(MapSettings(2.0))
    HeadScores(replace(w, scale=0.5 * float(limits.tiny)), inputs).maps(MapSettings(0.5))
    for scale in (np.nextafter(float(limits.max), np.inf), np.nextafter(float(limits.tiny), 0)):
        with pytest.raises(InputError, match="temperature"):
            HeadScores(replace(w, scale=float(scale)), inputs).maps(MapSettings())


def test_a_row_tells_its_five_strongest_keys_unless_asked_for_others() -> None:
    w, inputs = loaded(scenario(nq=3, nk=9, d=2))
    found = HeadScores(w, inputs).maps().row(0, 1)
    assert found.strongest.tolist() == sorted(range(9), key=lambda j: -found.weights[j])[:5]


def test_as_many_weights_as_the_limit_are_not_too_many() -> None:
    w, inputs = loaded(scenario(nq=5, nk=6, d=2, heads=2))
    for most, whole in ((60, True), (59, False)):
        limits = Limits(weights=most)
        assert (fitting_part(w, 1, 0, limits) == MapPart((0, 1), range(5))) == whole
        if whole:
            assert HeadScores(w, inputs, limits=limits).maps().weights.size == 60
        else:
            assert "at most 59 of them at once" in refused(HeadScores, w, inputs, limits=limits)
    for most, whole in ((60, True), (59, False)):
        limits = Limits(pooled=most)
        if whole:
            made = pooled_maps(w, inputs, MapSettings(), (5, 6), limits=limits)
            assert made.shape == (2, 5, 6)
        else:
            with pytest.raises(InputError, match="at most 59 to make"):
                pooled_maps(w, inputs, MapSettings(), (5, 6), limits=limits)
    for most, rows in ((30, 5), (29, 4), (24, 4), (23, 3), (1, 2)):
        limits = Limits(weights=60, of_a_head=most, fewest_rows=2)
        assert len(fitting_part(w, 1, 0, limits).rows) == rows
    for row, start in ((0, 0), (1, 0), (2, 1), (3, 2), (4, 3)):
        # Two rows: the one asked for is the second where there is one before it.
        part = fitting_part(w, 1, row, limits)
        assert (part.heads, part.rows) == ((1,), range(start, start + 2))


@given(st.lists(st.integers(0, 4), min_size=1, max_size=40), st.integers(1, 9))
def test_of_equal_weights_the_first_are_the_strongest(numbers: list[int], most: int) -> None:
    weights = np.array(numbers, dtype=np.float32)[None, None]
    keys = weights.size
    maps = AttentionMaps(
        settings=MapSettings(), heads=(0,), mask=Mask(1, keys), rows=range(1), weights=weights,
        entropy=np.zeros((1, 1)), visible=np.array([[keys]]),
    )  # fmt: skip
    strongest = maps.row(0, 0, most).strongest.tolist()
    assert strongest == sorted(range(keys), key=lambda key: -numbers[key])[:most]


def test_beside_a_sink_beyond_all_numbers_keys_weigh_nothing() -> None:
    w, inputs = loaded(scenario("flash2", nq=4, scores={"sink_logits": [1e4]}))
    assert not HeadScores(w, inputs).maps().weights.any()
