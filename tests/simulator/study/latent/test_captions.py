"""Numbers of a latent in a lesson are those of its layer, and others are refused in a line."""

import pytest

from simulator.base.errors import InputError
from simulator.problem.scenario import Scenario, parse_scenario
from simulator.problem.workload import read_inputs, resolve
from simulator.study.latent.sharing import shipped_layer
from simulator.study.latent.two_ways import both_ways, latent_layer
from tests.helpers.lesson_texts import computed
from tests.helpers.refused import refused
from tests.helpers.runs import scenario


def latent(**sizes: int) -> Scenario:
    said = {"heads": 3, "seqlen_q": 2, "seqlen_k": 40, "latent_dim": 16, "rope_dim": 4} | sizes
    return parse_scenario(
        {"attention": {"algorithm": "mla", **said}, "tiling": {"rows": 8, "cols": 8}}
    )


def test_costs_are_those_of_the_layer_up_to_its_keys() -> None:
    chosen = latent()
    layer = latent_layer(resolve(chosen))
    for way in ("absorbed", "projected"):
        for queries in (1, 7, 40):
            price = layer.price(way, queries)
            for figure, want in (
                ("flops", price.flops), ("bytes", price.bytes), ("time", price.time.seconds),
            ):  # fmt: skip
                assert computed(f'latent_cost("{way}", "{figure}", {queries})', chosen) == want
    for queries in (0, 41):
        with pytest.raises(InputError, match=f"queries = {queries}: .* from 1 to 40"):
            computed(f'latent_cost("absorbed", "flops", {queries})', chosen)
    assert computed('latent_crossover("flops")', chosen) == layer.crossover("flops")


def test_widths_and_heads_are_those_of_the_scenario() -> None:
    chosen = latent()
    parts = {"latent": 16, "rope": 4, "key": 4 + 4, "value": 4}  # a quarter of the latent, as in V3
    assert {part: computed(f'latent_width("{part}")', chosen) for part in parts} == parts
    assert computed("latent_heads()", chosen) == 3
    apart = both_ways(latent_layer(resolve(chosen)), read_inputs(resolve(chosen))).apart
    assert computed("latent_apart()", chosen) == pytest.approx(apart)


@pytest.mark.long
def test_smaller_caches_are_those_of_the_shipped_layer() -> None:
    plain, layer = scenario("flash2"), shipped_layer()
    for family, size in (("pooled", 3), ("latent", 128)):
        kept = layer.one(family, size)
        assert computed(f'shared_error("{family}", {size})', plain) == kept.error
        assert computed(f'shared_bytes("{family}", {size})', plain) == kept.bytes


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ('latent_cost("both", "flops", 1)', "way = both: expected one of absorbed, projected"),
        ('latent_cost("absorbed", "joules", 1)', "figure = joules: expected one of flops, bytes"),
        ('latent_width("query")', "part = query: expected one of latent, rope, key, value"),
        ('shared_error("sparse", 3)', "family = sparse: expected one of pooled, latent"),
        ('shared_bytes("pooled", 5)', "size = 5: expected one of 6, 4, 3, 2, 1"),
    ],
)
def test_what_is_not_known_is_refused(asked: str, said: str) -> None:
    assert said in refused(computed, asked, latent()).replace('"', "")


def test_ways_that_do_not_cross_have_no_crossover() -> None:
    chosen = latent(latent_dim=1)  # keys and values of a head are as wide as the latent
    assert latent_layer(resolve(chosen)).crossover("flops") is None
    with pytest.raises(InputError, match="expected one of which the ways cross"):
        computed('latent_crossover("flops")', chosen)
