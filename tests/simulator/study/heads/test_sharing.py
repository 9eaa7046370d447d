"""Head sharing: who reads whose keys, and the exact counts of the projections."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.problem.models import AttentionModel, models, with_kv_heads, with_latent
from simulator.study.heads.sharing import all_sharings, head_sharing, kv_head_counts
from simulator.study.kv_cache.counts import cache_bytes


@given(st.integers(1, 200))
def test_every_divisor_from_mha_to_mqa(heads):
    counts = kv_head_counts(heads)
    assert sorted(counts) == [n for n in range(1, heads + 1) if heads / n == heads // n]
    assert list(counts) == sorted(counts, reverse=True)
    assert (counts[0], counts[-1]) == (heads, 1)


@given(st.integers(1, 64))
def test_each_query_head_reads_one_kv_head(heads):
    for sharing in all_sharings(AttentionModel("drawn", 1, heads, 4, kv_heads=heads)):
        kv_heads = sharing.model.kv_heads
        assert len(sharing.shared_by) == kv_heads
        flat = [head for group in sharing.shared_by for head in group]
        assert flat == list(range(heads))
        # The order of FlashAttention and of torch.repeat_interleave.
        expected = np.repeat(np.arange(kv_heads), heads // kv_heads)
        read = [n for n, group in enumerate(sharing.shared_by) for _ in group]
        assert read == expected.tolist()


def test_kinds_of_a_model_in_order():
    kinds = [sharing.kind for sharing in all_sharings(models()["Llama-3-8B"])]
    assert kinds == ["MHA", "GQA", "GQA", "GQA", "GQA", "MQA"]
    assert [s.kind for s in all_sharings(models()["Falcon-7B"])] == ["MHA", "MQA"]
    last = all_sharings(models()["DeepSeek-V3"])[-1]
    assert last.kind == "MLA"
    assert last.shared_by == (range(128),)


def test_parameters_of_llama_2_70b():
    sharing = head_sharing(models()["Llama-2-70B"])
    assert sharing.parameters("W_Q") == sharing.parameters("W_O") == 8192 * 8192
    assert sharing.parameters("W_K") == sharing.parameters("W_V") == 8192 * 1024
    assert sharing.parameters() == 150_994_944
    alone = head_sharing(with_kv_heads(models()["Llama-2-70B"], 64))
    assert alone.parameters() == 4 * 8192 * 8192


def test_parameters_where_heads_are_wider_than_the_model():
    sharing = head_sharing(models()["gpt-oss-120b"])
    assert sharing.parameters("W_Q") == 2880 * 64 * 64
    assert sharing.parameters("W_K") == 2880 * 8 * 64


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize("name", [m.name for m in models().values() if not m.is_latent])
def test_parameters_are_those_of_matrices_that_multiply(name):
    """The matrices in a row give each head its query, key and value from the residual stream."""
    model = models()[name]
    shapes = {p.name: (p.inputs, p.outputs) for p in head_sharing(model).projections}
    x = np.zeros((1, model.hidden), dtype=np.int8)
    q, k, v = (x @ np.zeros(shapes[w], dtype=np.int8) for w in ("W_Q", "W_K", "W_V"))
    assert q.reshape(1, model.heads, model.head_dim).size == q.size
    assert k.size + v.size == model.cached_numbers
    assert shapes["W_O"] == (q.size, model.hidden)


def test_parameters_of_deepseek_v3_are_those_of_its_code():
    """`inference/model.py`, class MLA: wq_a, wq_b, wkv_a, wkv_b, wo; 187 107 328 with its norms."""
    dim, q_rank, kv_rank, heads, nope, rope, value = 7168, 1536, 512, 128, 128, 64, 128
    wq_a, wq_b = dim * q_rank, q_rank * heads * (nope + rope)
    wkv_a, wkv_b = dim * (kv_rank + rope), kv_rank * heads * (nope + value)
    wo = heads * value * dim
    sharing = head_sharing(models()["DeepSeek-V3"])
    of = {p.name: p.parameters for p in sharing.projections}
    assert of["W_DQ"] == wq_a
    assert of["W_UQ"] + of["W_QR"] == wq_b
    assert of["W_DKV"] + of["W_KR"] == wkv_a
    assert of["W_UK"] + of["W_UV"] == wkv_b
    assert of["W_O"] == wo
    assert sharing.parameters() == wq_a + wq_b + wkv_a + wkv_b + wo
    assert sharing.parameters() + q_rank + kv_rank == 187_107_328
    assert sharing.parameters("W_Q") == wq_a + wq_b
    assert sharing.parameters("W_V") == kv_rank * heads * value


@pytest.mark.parametrize("name", models())
def test_the_parts_add_up_to_the_whole(name):
    for sharing in all_sharings(models()[name]):
        parts = [sharing.parameters(part) for part in ("W_Q", "W_K", "W_V", "W_O")]
        assert sum(parts) == sharing.parameters()


def test_undivided_queries():
    llama = with_latent(models()["Llama-3-8B"], 512, 64)
    sharing = head_sharing(llama)
    assert sharing.parameters("W_Q") == 4096 * 32 * (128 + 64)
    assert "W_DQ" not in {p.name for p in sharing.projections}
    # Keys that are not turned have no such part of the queries beside them.
    unturned = AttentionModel("own", 1, 2, 4, latent_dim=3, query_latent_dim=0, hidden=8)
    of = {p.name: p.parameters for p in head_sharing(unturned).projections}
    assert (of["W_Q"], of["W_QR"]) == (8 * 2 * 4, 0)


def test_what_is_not_known_is_not_invented():
    own = AttentionModel("own", 2, 8, 16, kv_heads=2)
    assert head_sharing(own).parameters() is None
    latent = AttentionModel("own", 2, 8, 16, latent_dim=64, rope_dim=8, hidden=128)
    sharing = head_sharing(latent)
    assert sharing.parameters() is sharing.parameters("W_Q") is None
    assert sharing.parameters("W_V") == 64 * 8 * 16
    assert sharing.parameters("W_O") == 8 * 16 * 128


@pytest.mark.parametrize("name", list(models()))
def test_bytes_and_reads_are_those_of_the_cache(name):
    for sharing in all_sharings(models()[name]):
        cache = cache_bytes(sharing.model, 5000, "fp8")
        assert sharing.bytes_per_token("fp8") * 5000 == cache.logical
        assert sharing.read_bytes(5000, "fp8") == cache.window_capped


def test_share_of_mha():
    shares = [sharing.share_of_mha for sharing in all_sharings(models()["Llama-3-8B"])]
    assert shares == [Fraction(1, n) for n in (1, 2, 4, 8, 16, 32)]
    # DeepSeek-V2, table 1: 4.5 d_h against 2 n_h d_h.
    assert head_sharing(models()["DeepSeek-V2"]).share_of_mha == Fraction(9, 2) / (2 * 128)
