"""What smaller caches cost a layer: the published figures, and layers that lose nothing."""

from dataclasses import replace

import numpy as np
import pytest

from simulator.problem.scenario import parse_scenario
from simulator.problem.workload import Inputs, Workload, read_inputs, resolve
from simulator.study.latent.sharing import is_shown, shared_layer, shipped_layer


@pytest.mark.parametrize(
    ("family", "size", "numbers", "error"),
    [
        ("pooled", 6, 384, 0.87), ("pooled", 3, 192, 0.95), ("pooled", 1, 64, 0.985),
        ("latent", 64, 64, 0.36), ("latent", 128, 128, 0.20), ("latent", 192, 192, 0.071),
        ("latent", 256, 256, 0.022),
    ],
)  # fmt: skip
def test_figures_of_the_shipped_layer(family, size, numbers, error):
    found = shipped_layer()
    assert (found.numbers, found.kv_heads) == (768, 12)
    kept = found.one(family, size)
    assert kept.error == pytest.approx(error, rel=0.02)
    assert (kept.numbers, kept.bytes) == (numbers, 2 * numbers)


def test_a_latent_of_as_many_numbers_is_nearer_than_pooled_heads():
    found = shipped_layer()
    for pooled in found.family("pooled"):
        assert found.one("latent", pooled.numbers).error < pooled.error


def layer(k: np.ndarray, v: np.ndarray) -> tuple[Workload, Inputs]:
    heads, keys, d = k.shape
    said = {"seqlen_q": 3, "seqlen_k": keys, "heads": heads, "head_dim": d}
    w = resolve(parse_scenario({"attention": said, "mask": {"causal": True}}))
    assert (w.kv_heads, w.value_dim) == (heads, v.shape[2])
    named = resolve(parse_scenario({"input": {"source": "capture", "name": "passage-layer1"}}))
    kv = (x.astype(np.float32) for x in (k, v))
    return replace(w, file=named.file), Inputs(read_inputs(w).q, *kv)


def test_heads_that_are_alike_lose_nothing_by_pooling():
    rng = np.random.default_rng(2)
    k, v = (np.repeat(rng.standard_normal((2, 9, 3)), 2, axis=0) for _ in range(2))
    found = shared_layer(*layer(k, v))
    assert found.one("pooled", 2).error < 1e-6
    assert found.one("pooled", 1).error > 0.1


def test_rows_in_few_directions_lose_nothing_in_a_latent_of_as_many():
    rng = np.random.default_rng(4)
    low = rng.standard_normal((9, 6)) @ rng.standard_normal((6, 4 * 2 * 3))
    both = low.reshape(9, 8, 3).transpose(1, 0, 2)
    found = shared_layer(*layer(both[:4], both[4:]))
    assert found.one("latent", 6).error < 1e-5
    assert [each.size for each in found.family("pooled")] == [2, 1]
    assert [each.size for each in found.family("latent")] == [6]  # there are nine tokens


def test_short_texts_and_runs_of_no_layer_are_not_shown():
    shown = {
        name: is_shown(resolve(parse_scenario({"input": {"source": "capture", "name": name}})))
        for name in ("passage-layer1", "cat-because-layer2")
    }
    assert shown == {"passage-layer1": True, "cat-because-layer2": False}
    # As many tokens as half the numbers of one, and no more than are decomposed in a moment.
    w = resolve(parse_scenario({"input": {"source": "capture", "name": "passage-layer1"}}))
    assert w.kv_heads * (w.head_dim + w.value_dim) == 768
    for keys, fits in ((383, False), (384, True), (1024, True), (1025, False)):
        assert is_shown(replace(w, seqlen_k=keys)) is fits
    random = parse_scenario({"attention": {"seqlen_q": 64, "head_dim": 4, "heads": 4}})
    assert not is_shown(resolve(random))
