"""A scenario's tables for another algorithm: what it cannot do is dropped, and all else stays."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.base.errors import InputError
from simulator.problem.facts import RULES
from simulator.problem.latent import fitting, is_latent, latent_dims
from simulator.problem.scenario import Attention, parse_scenario
from simulator.problem.workload import resolve
from simulator.program.algorithms import ALGORITHMS

SAID = {"seqlen_q": 8, "seqlen_k": 12, "head_dim": 16, "heads": 2, "scale": 0.5, "temperature": 2.0}


def tables(algorithm: str, causal: bool, **attention: Any) -> dict[str, Any]:
    return {
        "attention": {**SAID, "algorithm": algorithm, **attention},
        "mask": {"causal": causal, "window": 3},
        "scores": {"softcap": 2.0},
        "tiling": {"rows": 4, "cols": 4},
    }


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_has_tables_that_it_can_run(algorithm: str, causal: bool) -> None:
    said = tables(algorithm, causal)
    kept = {name: dict(table) for name, table in said.items()}
    found = fitting(said)
    assert said == kept  # what was given is left as it is
    assert found["tiling"] == said["tiling"]
    w = resolve(parse_scenario(found))
    attention = found["attention"]
    if algorithm not in RULES:
        assert (found["mask"], found["scores"]) == (said["mask"], said["scores"])
        assert (attention["scale"], attention["temperature"]) == (0.5, 2.0)
        assert w.head_dim == 16
        return
    sees_no_later = causal or RULES[algorithm].tokens
    assert (found["mask"], found["scores"]) == ({"causal": sees_no_later}, {})
    assert "scale" not in attention
    assert "temperature" not in attention
    assert w.seqlen_k == (8 if sees_no_later else 12)
    assert w.seqlen_q == 8


@pytest.mark.parametrize(
    ("head_dim", "value_dim", "latent", "rope"),
    [
        (16, None, 14, 2), (72, None, 63, 9), (16, 12, 12, 4), (16, 16, 14, 2), (16, 20, 14, 2),
        (7, None, 7, 0),
    ],
)  # fmt: skip
def test_keys_become_a_latent_as_wide_as_they_were(
    head_dim: int, value_dim: int | None, latent: int, rope: int
) -> None:
    said = tables("mla", True, head_dim=head_dim, kv_heads=1)
    if value_dim:
        said["attention"]["value_dim"] = value_dim
    found = fitting(said)["attention"]
    assert (found["latent_dim"], found["rope_dim"]) == (latent, rope)
    assert not {"head_dim", "value_dim", "kv_heads"} & found.keys()


@given(st.integers(1, 99), st.integers(0, 99))
def test_a_latent_and_what_is_turned_add_up_to_the_rows_of_a_file(latent: int, rope: int) -> None:
    width = latent + rope
    both, either = {"latent_dim": latent, "rope_dim": rope}, ({"latent_dim": latent}, {})
    for said in (both, *either, *([{"rope_dim": rope}] if rope else [])):
        want = (latent, rope) if said else (width, 0)
        assert latent_dims(Attention(**said), width) == want
        assert is_latent(Attention(**said)) == bool(said)
    assert latent_dims(Attention(**both)) == (latent, rope)
    assert latent_dims(Attention(latent_dim=latent)) == (latent, 0)
    for wrong, key in (
        ({"latent_dim": width + 1}, "latent_dim"), ({"rope_dim": width}, "rope_dim"),
        ({**both, "rope_dim": rope + 1}, "latent_dim"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=rf"attention\.{key}.*expected latent_dim \+ rope_dim"):
            latent_dims(Attention(**wrong), width)
