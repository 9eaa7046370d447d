"""A latent attended to in two ways: the same O, and costs against plain formulas."""

from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

from simulator.base.errors import InputError
from simulator.problem.scenario import Scenario, parse_scenario, with_values
from simulator.problem.workload import read_inputs, resolve
from simulator.program.algorithms import tile_program
from simulator.study.latent.two_ways import LatentLayer, Way, both_ways, latent_layer, projections


def told(
    heads: int, nq: int, nk: int, dc: int, dr: int, causal: bool = False, **tables: Any
) -> Scenario:
    sizes = {"heads": heads, "seqlen_q": nq, "seqlen_k": nk, "latent_dim": dc, "rope_dim": dr}
    return parse_scenario(
        {
            "attention": {"algorithm": "mla", **sizes, "dtype": "float16"},
            "mask": {"causal": causal},
            "tiling": {"rows": 4, "cols": 4, "splits": 2},
            **tables,
        }
    )


LAYERS = st.builds(
    told, st.integers(1, 4), st.integers(1, 9), st.integers(1, 20), st.integers(1, 20),
    st.integers(0, 4), st.booleans(),
)  # fmt: skip


@given(LAYERS, st.integers(1, 9))
def test_prices_are_those_of_the_programs_and_of_the_products(chosen: Scenario, nq: int) -> None:
    w = resolve(chosen)
    layer = latent_layer(w)
    heads, nk, dc, dr = w.group, w.seqlen_k, w.value_dim, w.head_dim - w.value_dim
    dn = dv = max(dc // 4, 1)
    assert (layer.nope, layer.value, layer.rope) == (dn, dv, dr)
    longer = resolve(with_values(chosen, {"attention": {"seqlen_q": nq}}))
    made = with_values(
        chosen,
        {
            "attention": {
                "algorithm": "flash2", "seqlen_q": nq, "latent_dim": None, "rope_dim": None,
                "head_dim": dn + dr, "value_dim": dv,
            }
        },
    )  # fmt: skip
    b = 2
    programs: dict[Way, tuple[Any, int, int]] = {
        "absorbed": (
            tile_program(longer).totals,
            2 * heads * nq * dc * dn + 2 * heads * nq * dc * dv,
            heads * dc * (dn + dv) * b + heads * nq * (dn + dc + dc + dv) * b,
        ),
        "projected": (
            tile_program(resolve(made)).totals,
            2 * nk * dc * heads * dn + 2 * nk * dc * heads * dv,
            heads * dc * (dn + dv) * b + nk * (dc + dr) * b + nk * heads * (dn + dr + dv) * b,
        ),
    }
    for way, (totals, flops, moved) in programs.items():
        price = layer.price(way, nq)
        assert price.attention.flops == totals.flops
        assert price.attention.bytes == totals.bytes
        assert (price.flops, price.bytes) == (totals.flops + flops, totals.bytes + moved)
        assert price.time.memory == price.bytes / (w.gpu.tbps * 1e12)


@given(st.integers(1, 4), st.integers(1, 40), st.integers(4, 20), st.integers(0, 4))
def test_flops_cross_where_the_formulas_do(heads: int, nk: int, dc: int, dr: int) -> None:
    layer = latent_layer(resolve(told(heads, 1, nk, dc, dr)))
    dn = dc // 4

    def wins(nq: int) -> bool:
        absorbed = 2 * heads * nq * (nk * (2 * dc + dr) + 2 * dc * dn)
        projected = 2 * heads * nk * (nq * (2 * dn + dr) + 2 * dc * dn)
        return projected < absorbed

    found = next((nq for nq in range(1, nk + 1) if wins(nq)), None)
    assert layer.crossover("flops") == found
    assert layer.counts[0] == 1
    assert layer.counts[-1] == nk


def test_a_run_without_a_latent_shows_a_model() -> None:
    layer = latent_layer(resolve(parse_scenario({"attention": {"seqlen_q": 8, "head_dim": 4}})))
    assert layer.model.latent_dim == layer.workload.value_dim == 512
    assert (layer.nope, layer.rope, layer.value) == (128, 64, 128)
    found = layer.crossover("flops")
    prices = [layer.price(way, found - 1).flops for way in ("absorbed", "projected")]
    assert prices[0] <= prices[1]
    both = both_ways(layer)
    assert both.apart < 1e-5
    assert both.heads == 1  # of 128: one of them takes seconds


def exact(layer: LatentLayer, chosen: Scenario, heads: int) -> np.ndarray:
    """Return O of the first heads from the definition, in float64, with K and V made first."""
    w = layer.workload
    inputs = read_inputs(w)
    wuk, wuv, _ = projections(layer, heads)
    rng = np.random.default_rng([w.scenario.input.seed, 1])
    nope = rng.standard_normal((heads, w.seqlen_q, layer.nope)).astype(np.float32)
    row = inputs.k[0].astype(float)
    seen = np.ones((w.seqlen_q, w.seqlen_k), bool)
    if chosen.mask.causal:
        late = np.arange(w.seqlen_q)[:, None] + w.seqlen_k - w.seqlen_q
        seen = np.arange(w.seqlen_k) <= late
    out = np.zeros((heads, w.seqlen_q, layer.value))
    for head in range(heads):
        keys = np.concatenate([row[:, : w.value_dim] @ wuk[head], row[:, w.value_dim :]], axis=1)
        q = np.concatenate([nope[head], inputs.q[head][:, w.value_dim :]], axis=1)
        s = np.where(seen, q @ keys.T / sqrt(w.head_dim), -np.inf)
        for i in np.flatnonzero(seen.any(axis=1)):
            p = np.exp(s[i] - s[i].max())
            out[head, i] = p / p.sum() @ (row[:, : w.value_dim] @ wuv[head])
    return out


@pytest.mark.long
@given(LAYERS)
def test_both_ways_are_attention(chosen: Scenario) -> None:
    layer = latent_layer(resolve(chosen))
    found = both_ways(layer)
    want = exact(layer, chosen, found.heads)
    assert found.heads == layer.workload.heads
    assert found.drawn
    largest = np.abs(want).max() or 1.0
    for ours in (found.absorbed, found.projected):
        assert np.abs(ours - want).max() / largest < 1e-4
    assert found.apart < 1e-4
    ours, other = found.projected.astype(float), found.absorbed.astype(float)
    off = np.abs(ours - other).max() / (np.abs(ours).max() or 1.0)
    assert found.apart == pytest.approx(off, rel=1e-5)


def test_projections_that_are_drawn_keep_keys_and_values_as_large_as_the_latent() -> None:
    layer = latent_layer(resolve(told(2, 1, 8, 256, 0)))
    wuk, wuv, drawn = projections(layer, 2)
    assert drawn
    assert wuk.shape == wuv.shape == (2, 256, 64)
    assert (wuk != wuv).all()
    for each in (wuk, wuv):
        assert float(each.std()) == pytest.approx(1 / 16, rel=0.02)  # of 256 numbers


def test_projections_may_be_of_the_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    shapes = {"q": (3, 2, 7), "latent": (9, 7), "wuk": (3, 5, 4), "wuv": (3, 5, 6)}
    tensors = {n: rng.standard_normal(s).astype(np.float32) for n, s in shapes.items()}
    save_file(tensors, tmp_path / "layer.safetensors")
    said = parse_scenario(
        {
            "attention": {"algorithm": "mla", "latent_dim": 5},
            "input": {"source": "file", "path": str(tmp_path / "layer.safetensors"),
                      "head": [0, 2]},
        }
    )  # fmt: skip
    layer = latent_layer(resolve(said))
    assert (layer.nope, layer.rope, layer.value) == (4, 2, 6)
    wuk, wuv, drawn = projections(layer, 2)
    np.testing.assert_array_equal(wuk, tensors["wuk"][[0, 2]])
    np.testing.assert_array_equal(wuv, tensors["wuv"][[0, 2]])
    assert not drawn
    found = both_ways(layer)
    np.testing.assert_allclose(found.absorbed, exact(layer, said, 2), atol=1e-5)
    assert not found.drawn


def test_projections_that_do_not_fit_are_told_in_a_line(tmp_path: Path) -> None:
    shapes = {"q": (3, 2, 7), "latent": (9, 7), "wuk": (3, 4, 4), "wuv": (3, 5, 6)}
    path = tmp_path / "layer.safetensors"
    save_file({name: np.zeros(shape, np.float32) for name, shape in shapes.items()}, path)
    said = parse_scenario(
        {
            "attention": {"algorithm": "mla", "latent_dim": 5},
            "input": {"source": "file", "path": str(path)},
        }
    )
    with pytest.raises(InputError, match=r"shape of wuk = .*: expected 3 heads of 5 rows"):
        latent_layer(resolve(said))
