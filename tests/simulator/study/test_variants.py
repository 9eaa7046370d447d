"""The table of variants against head sharing, the KV cache and powers that are known."""

import math
import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.problem.models import models, with_kv_heads
from simulator.problem.scenario import Scenario, parse_scenario, with_values
from simulator.problem.workload import resolve
from simulator.study.heads.sharing import head_sharing
from simulator.study.kv_cache.counts import cache_bytes
from simulator.study.sweep import figures_of
from simulator.study.variants import HEADS, cached_bytes, fitted_power, parameters, variant_table
from tests.helpers.refused import refused
from tests.helpers.written_files import file_scenario, numbers, write_safetensors


def parsed(text: str) -> Scenario:
    return parse_scenario(tomllib.loads(text))


def workload(mask: str = "", attention: str = "", dtype: str = "float16"):
    return resolve(
        parsed(f"""
[attention]
heads = 8
kv_heads = 2
seqlen_q = 256
head_dim = 64
dtype = "{dtype}"
{attention}
[mask]
{mask}
[tiling]
rows = 64
cols = 64
""")
    )


@given(
    st.floats(-3, 3), st.floats(1e-6, 1e6),
    st.lists(st.floats(1, 1e6), min_size=2, max_size=8, unique=True),
)  # fmt: skip
def test_a_power_law_is_found_again(exponent: float, c: float, xs: list[float]) -> None:
    if max(xs) < 1.1 * min(xs):
        return
    found = fitted_power(xs, [c * x**exponent for x in xs])
    assert found.exponent == pytest.approx(exponent, abs=1e-6)
    assert found.off == pytest.approx(1.0, abs=1e-6)


def test_what_is_no_power_law_is_off() -> None:
    found = fitted_power((1, 2, 4), (1, 2, 1))
    assert found.exponent == pytest.approx(0.0, abs=1e-12)
    assert found.off == pytest.approx(2 ** (2 / 3))


@pytest.mark.parametrize("points", [((1, 1), (2, 3)), ((1, 2), (0, 1)), ((1,), (1,))], ids=str)
def test_what_cannot_be_fitted_is_refused(points) -> None:
    assert "two x or more above 0" in refused(fitted_power, *points)


def test_variants_grow_as_the_papers_say() -> None:
    rows = {row.name: row for row in variant_table(workload("causal = true")).rows}
    naive, flash = rows["MHA, naive"], rows["MHA, FlashAttention-2"]
    assert naive.seconds.power.exponent == pytest.approx(2, abs=0.03)
    assert naive.held.power.exponent == pytest.approx(2, abs=0.05)
    assert flash.seconds.power.exponent == pytest.approx(2, abs=0.03)
    assert flash.held.power.exponent == pytest.approx(1, abs=1e-9)
    windowed = rows["window 32"]
    assert windowed.seconds.power.exponent == pytest.approx(1, abs=0.01)
    assert windowed.cached.power.exponent == 0
    for row in rows.values():
        assert row.parameters.power.exponent == 0
        assert row.held.power.off < 1.1
    grown = [
        row.cached.power.exponent for row in rows.values() if row.name[0] in "MG" and not row.window
    ]
    assert grown == pytest.approx([1] * 4)


def test_figures_here_are_those_of_the_run() -> None:
    w = workload("causal = true")
    table = variant_table(w)
    [own] = [row for row in table.rows if row.own]
    assert own.name == "GQA 8:2"
    figures = figures_of(w)
    assert (own.seconds.here, own.held.here) == (figures.seconds, figures.held)
    assert table.lengths == (4096, 8192, 16384, 32768, 65536)


def test_documents_have_costs_and_no_powers() -> None:
    w = workload("causal = true")
    packed = resolve(with_values(w.scenario, {"mask": {"documents": [w.seqlen_k // 2] * 2}}))
    table = variant_table(packed)
    assert table.lengths == ()
    costs = [cost for row in table.rows for cost in (row.seconds, row.held, row.cached)]
    assert [cost.power for cost in costs] == [None] * len(costs)
    [own] = [row for row in table.rows if row.own]
    assert own.seconds.here == figures_of(packed).seconds < figures_of(w).seconds


def test_the_window_of_the_scenario_is_used_and_marked() -> None:
    table = variant_table(workload("causal = true\nwindow = 40\nsinks = 4"))
    [own] = [row for row in table.rows if row.own]
    assert own.name == "GQA 8:2, window 40"
    assert own.cached.here == (40 + 4) * 2 * 2 * 64 * 2  # keys, K and V, KV heads, d, bytes


def test_cache_and_weights_are_those_of_a_model_of_the_same_shape() -> None:
    llama = models()["Llama-3-8B"]
    w = workload()
    for kv_heads in (1, 2, 4, 8):
        rows = variant_table(
            resolve(
                parsed(
                    "[attention]\nheads = 32\nseqlen_q = 64\nhead_dim = 128\n"
                    f'dtype = "float16"\nkv_heads = {kv_heads}'
                )
            )
        ).rows
        [row] = [r for r in rows if r.kv_heads == kv_heads and not r.window]
        model = with_kv_heads(llama, kv_heads)
        one_layer = cache_bytes(model, 64).logical // model.layers
        assert row.cached.here == one_layer
        assert row.parameters.here == head_sharing(model).parameters()
    assert parameters(w, 512) == 512 * 64 * (8 + 2 + 2 + 8)


@pytest.mark.parametrize(
    ("window", "tokens"),
    [("[5, 11]", 6), ("[0, -1]", 1), ("[-1, 3]", 64), ("6", 6), ("0", 64),
     ("6\nsinks = 2\nglobal_tokens = 3", 9), ("6\nsinks = 4\nglobal_tokens = 3", 10)],
)  # fmt: skip
def test_a_cache_keeps_the_first_keys_and_what_lies_within_the_left_bound(
    window: str, tokens: int
) -> None:
    text = f"[attention]\nseqlen_q = 64\nhead_dim = 16\n[mask]\nwindow = {window}"
    assert cached_bytes(resolve(parsed(text))) == tokens * 2 * 16 * 4


def test_a_single_head_is_compared_as_eight() -> None:
    one = parsed("[attention]\nseqlen_q = 100\nhead_dim = 16")
    table = variant_table(resolve(one))
    assert table.heads == HEADS
    assert table.width == HEADS * 16
    assert [row.name for row in table.rows if row.own] == ["MHA, FlashAttention-2"]


@pytest.mark.parametrize("algorithm", ["naive", "flash1", "flash2", "split-kv"])
def test_a_decoding_step_grows_with_the_keys_alone(algorithm: str) -> None:
    w = resolve(
        parsed(
            f'[attention]\nalgorithm = "{algorithm}"\nheads = 4\nseqlen_q = 1\nseqlen_k = 512\n'
            "head_dim = 32"
        )
    )
    for row in variant_table(w).rows:
        limit = 0 if row.window else 1
        assert row.seconds.power.exponent == pytest.approx(limit, abs=0.35)
        assert math.isfinite(row.held.power.exponent)


def test_linear_attention_keeps_a_state_that_does_not_grow() -> None:
    """With f features of each head: f (dv + 1) float32 numbers, whatever N is."""
    w = workload("causal = true")
    [row] = [row for row in variant_table(w).rows if row.algorithm == "linear"]
    assert row.name == "Linear attention"
    assert row.cached.here == 8 * 64 * (64 + 1) * 4
    assert row.cached.power.exponent == 0
    assert row.seconds.power.exponent == pytest.approx(1, abs=0.02)
    assert row.held.power.exponent == pytest.approx(1, abs=0.02)
    assert not row.own


def test_a_linear_run_is_set_beside_softmax() -> None:
    text = '[attention]\nalgorithm = "linear"\nheads = 4\nseqlen_q = 64\nhead_dim = 16'
    rows = variant_table(resolve(parsed(text))).rows
    assert [row.name for row in rows if row.own] == ["Linear attention"]
    assert {row.algorithm for row in rows} == {"naive", "flash2", "linear"}


def test_a_causal_decoding_step_has_no_linear_row() -> None:
    text = "[attention]\nseqlen_q = 1\nseqlen_k = 64\nhead_dim = 16\n[mask]\ncausal = true"
    assert "linear" not in {row.algorithm for row in variant_table(resolve(parsed(text))).rows}


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("head", ["all", [1, 3]])
@pytest.mark.parametrize("algorithm", ["flash2", "split-kv"])
def test_heads_with_masks_of_their_own_are_compared(
    tmp_path: Path, algorithm: str, head: object
) -> None:
    """Other heads than those that run are priced with the tiles that any of these sees."""
    seen = np.random.default_rng(5).random((4, 20, 24)) < 0.02
    tensors = {**numbers(q=(4, 20, 3), k=(4, 24, 3), v=(4, 24, 2)), "mask": seen}
    path = write_safetensors(tmp_path / "in.safetensors", tensors)
    w = resolve(
        file_scenario(
            path, attention={"algorithm": algorithm}, tiling={"rows": 4, "cols": 4},
            input={"head": head},
        )
    )  # fmt: skip
    rows = {each.name: each for each in variant_table(w).rows}
    (own,) = (each for each in rows.values() if each.own)
    if head == "all":
        assert own.seconds.here == figures_of(w).seconds
    assert all(np.isfinite(each.seconds.here) for each in rows.values())
