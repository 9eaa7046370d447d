"""MLA, absorbed: a latent that is key and value, against the definition and plain loops."""

from collections import Counter
from itertools import product
from math import ceil, sqrt
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
from simulator.program.traffic import compulsory_bytes, floor_bytes
from simulator.run.trace import tile_counts
from tests.helpers.refused import refused
from tests.helpers.runs import masks, pairs_of, score_tables, trace_of

LONGEST = 14


def told(
    heads: int = 2, nq: int = 1, nk: int = 8, dc: int = 3, dr: int = 2, **tables: Any
) -> Scenario:
    sizes = {"heads": heads, "seqlen_q": nq, "seqlen_k": nk, "latent_dim": dc, "rope_dim": dr}
    own = tables.pop("attention", {})
    return parse_scenario({"attention": {"algorithm": "mla", **sizes, **own}, **tables})


@st.composite
def latents(draw: st.DrawFn) -> Scenario:
    """Draw runs of any shape: tails, splits without keys, one query, rows that see nothing."""
    heads = draw(st.integers(1, 4))
    nk, mask = draw(st.integers(1, LONGEST)), draw(masks(LONGEST))
    if mask.get("documents"):
        del mask["documents"]  # they are to add up to nk, and have tests of their own
    return told(
        heads,
        nq=draw(st.one_of(st.just(1), st.integers(1, LONGEST))),
        nk=nk,
        dc=draw(st.integers(1, 5)),
        dr=draw(st.integers(0, 3)),
        attention={"dtype": draw(st.sampled_from(["float32", "float16", "bfloat16"]))},
        mask=mask,
        scores=draw(score_tables(heads)),
        tiling={
            "rows": draw(st.integers(1, LONGEST)),
            "cols": draw(st.integers(1, LONGEST)),
            "splits": draw(st.integers(1, 7)),
        },
    )


# --- the numbers -------------------------------------------------------------------------------


@given(latents())
def test_it_is_split_kv_whose_values_are_in_the_keys(chosen: Scenario) -> None:
    """The same bits, and all that is not loaded is V."""
    latent = trace_of(chosen)
    apart = trace_of(with_values(chosen, {"attention": {"algorithm": "split-kv"}}))
    assert latent.output.tobytes() == apart.output.tobytes()
    assert latent.lse.tobytes() == apart.lse.tobytes()
    ours, theirs = latent.program.totals, apart.program.totals
    assert ours.read["C"] == theirs.read["K"]
    assert ours.read_bytes == theirs.read_bytes - theirs.read["V"]
    assert (ours.write_bytes, ours.flops) == (theirs.write_bytes, theirs.flops)


def test_random_input_is_q_and_then_the_latent() -> None:
    chosen = told(heads=2, nq=3, nk=5, dc=3, dr=2, input={"source": "random", "seed": 7})
    draw = np.random.default_rng(7).standard_normal
    inputs = read_inputs(resolve(chosen))
    q, latent = draw((2, 3, 5)).astype(np.float32), draw((1, 5, 5)).astype(np.float32)
    np.testing.assert_array_equal(inputs.q, q.reshape(1, 6, 5))
    np.testing.assert_array_equal(inputs.k, latent)
    np.testing.assert_array_equal(inputs.v, latent[..., :3])


# --- what is counted ---------------------------------------------------------------------------


@given(latents())
def test_bytes_and_flops_are_those_of_plain_loops(chosen: Scenario) -> None:
    w = resolve(chosen)
    one = resolve(with_values(chosen, {"attention": {"algorithm": "flash2"}}))
    seen = np.concatenate([pairs_of(one).matrix()] * len(one.picked))  # all heads, one by one
    b, d, dv = w.width, w.head_dim, w.value_dim
    rows, cols = seen.shape
    Tr, Tc = ceil(rows / w.rows), ceil(cols / w.cols)
    run, read, flops, visited = ceil(Tc / w.splits), Counter[str](), 0, 0
    once: dict[tuple[str, int], int] = {}
    for i, split in product(range(Tr), range(w.splits)):
        own = range(i * w.rows, min((i + 1) * w.rows, rows))
        loaded = False
        for j in range(split * run, min((split + 1) * run, Tc)):
            keys = range(j * w.cols, min((j + 1) * w.cols, cols))
            if not seen[own.start : own.stop, keys.start : keys.stop].any():
                continue
            loaded, visited = True, visited + 1
            read["C"] += len(keys) * d * b
            once["C", j] = len(keys) * d * b
            flops += 2 * len(own) * len(keys) * (d + dv)
        read["Q"] += loaded * len(own) * d * b
        once["Q", i] = seen[own.start : own.stop].any() * len(own) * d * b
    partials = 4 * w.splits * rows
    totals = tile_program(w).totals
    if not visited:
        return
    assert {name: totals.read.get(name) for name in ("C", "Q")} == {"C": read["C"], "Q": read["Q"]}
    assert totals.read["O_partial"] == totals.write["O_partial"] == partials * dv
    assert totals.read["LSE_partial"] == totals.write["LSE_partial"] == partials
    assert (totals.write["O"], totals.write["LSE"]) == (rows * dv * b, 4 * rows)
    sinks = 4 * len(w.sink_logits)
    stored = 2 * partials * (dv + 1) + rows * (dv * b + 4)
    assert floor_bytes(w) == b * (rows * (d + dv) + cols * d)
    assert compulsory_bytes(w) == sum(once.values()) + sinks + stored
    assert totals.flops == flops
    assert tile_counts(tile_program(w))["visited"] == visited


# --- FlashMLA's cases ----------------------------------------------------------------------------

OUT, LSE, COSINE = (8e-4, 2.01 / 128), (1e-6, 8.01 / 65536), 5e-6
"""Absolute and relative tolerances of O and LSE, and by how much O may point elsewhere."""


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("heads", [1, 3, 63, 64, 126, 128])
@pytest.mark.parametrize("nk", [20, 140, 4096])
@pytest.mark.parametrize("nq", [1, 2, 4])
def test_cases_of_flash_mla(nq: int, nk: int, heads: int) -> None:
    """The table of FlashMLA's dense decoding tests, within its tolerances.

    Each sequence of a batch is a run of its own here: one of `nk` keys, and one of a length that is
    drawn around it as there. Causal, as with several queries it is when it decodes.

    References
    ----------
    deepseek-ai/FlashMLA, tests/test_flash_mla_dense_decoding.py: d = 576, dv = 512, bfloat16.
    """
    rng = np.random.default_rng([nq, nk, heads])
    lengths = [nk, max(int(rng.normal(nk, nk / 2)), nq)]
    for sequence, length in enumerate(lengths):
        trace = trace_of(
            told(
                heads, nq, length, dc=512, dr=64, attention={"dtype": "bfloat16"},
                mask={"causal": True}, tiling={"rows": 64, "cols": 64, "splits": 4},
                input={"source": "random", "seed": sequence},
            )
        )  # fmt: skip
        q = trace.inputs.q.reshape(heads * nq, 576).astype(np.float64)
        latent = trace.inputs.k[0].astype(np.float64)
        s = q @ latent.T / sqrt(576)
        hidden = np.arange(length) > (np.arange(nq) + length - nq)[:, None]
        s[np.tile(hidden, (heads, 1))] = -np.inf
        m = s.max(axis=1, keepdims=True)
        p = np.exp(s - m)
        total = p.sum(axis=1, keepdims=True)
        o = (p @ latent[:, :512] / total).reshape(heads, nq, 512)
        lse = (m + np.log(total)).reshape(heads, nq)
        ours = trace.output.astype(np.float64)
        np.testing.assert_allclose(ours, o, atol=OUT[0], rtol=OUT[1])
        np.testing.assert_allclose(trace.lse, lse, atol=LSE[0], rtol=LSE[1])
        assert 1 - 2 * (ours * o).sum() / (ours**2 + o**2).sum() < COSINE


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"attention": {"head_dim": 8}}, r"attention\.head_dim = 8: expected no such number"),
        ({"attention": {"value_dim": 8}}, r"attention\.value_dim = 8: expected no such number"),
        ({"attention": {"kv_heads": 2}}, r"attention\.kv_heads = 2: expected 1: all heads share"),
        ({"attention": {"latent_dim": None}}, r"attention\.latent_dim: expected a whole number"),
        ({"position": {"kind": "rope"}}, r"position\.kind = rope: expected none with a latent"),
        ({"input": {"source": "capture", "name": "passage-layer1"}},
         r'input\.source = capture: expected "random" or "file"'),
        ({"attention": {"latent_dim": None, "rope_dim": None, "head_dim": 4}},
         r"attention\.latent_dim: expected a whole number: mla reads a latent"),
    ],
)  # fmt: skip
def test_what_a_latent_cannot_have_is_told_in_a_line(change: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        resolve(with_values(told(heads=2), change))


def stored(tmp_path: Path, **tensors: np.ndarray) -> dict[str, Any]:
    path = tmp_path / "latent.safetensors"
    save_file({name: np.ascontiguousarray(values) for name, values in tensors.items()}, path)
    return {"source": "file", "path": str(path)}


def test_a_file_has_queries_and_a_latent(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    q, latent = (rng.standard_normal(s).astype(np.float16) for s in ((3, 2, 6), (9, 6)))
    told_sizes: list[dict[str, int]] = [
        {"latent_dim": 4}, {"rope_dim": 2}, {"latent_dim": 4, "rope_dim": 2},
    ]  # fmt: skip
    for sizes, batch in product(told_sizes, (False, True)):
        files = {"q": q[None], "latent": latent[None]} if batch else {"q": q, "latent": latent}
        said = {"attention": {"algorithm": "mla", **sizes}, "input": stored(tmp_path, **files)}
        w = resolve(parse_scenario(said))
        inputs = read_inputs(w)
        assert (w.heads, w.kv_heads, w.seqlen_q, w.head_dim, w.value_dim) == (1, 1, 6, 6, 4)
        assert w.dtype == "float16"
        np.testing.assert_array_equal(inputs.q.reshape(3, 2, 6), q)
        np.testing.assert_array_equal(inputs.k[0], latent)
        np.testing.assert_array_equal(inputs.v[0], latent[:, :4])


@pytest.mark.parametrize(
    ("shapes", "sizes", "words"),
    [
        ({"q": (3, 2, 6)}, {"latent_dim": 4}, r"tensor latent: expected tensors q and latent"),
        ({"q": (3, 2, 6), "latent": (9, 5)}, {"latent_dim": 4}, r"expected rows of 6 numbers"),
        ({"q": (3, 2, 6), "latent": (2, 9, 6)}, {"latent_dim": 4}, r"expected two axes"),
        ({"q": (3, 2, 6), "latent": (9, 6)}, {"latent_dim": 4, "rope_dim": 1},
         r"latent_dim = 4: expected latent_dim \+ rope_dim = 6"),
        ({"q": (3, 2, 6), "latent": (9, 6)}, {"rope_dim": 6},
         r"rope_dim = 6: expected latent_dim \+ rope_dim = 6"),
    ],
)  # fmt: skip
def test_a_file_that_does_not_fit_is_told_in_a_line(
    tmp_path: Path, shapes: dict[str, tuple[int, ...]], sizes: dict[str, int], words: str
) -> None:
    tensors = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    said = {"attention": {"algorithm": "mla", **sizes}, "input": stored(tmp_path, **tensors)}
    with pytest.raises(InputError, match=words):
        resolve(parse_scenario(said))


def test_nan_in_a_latent_is_named(tmp_path: Path) -> None:
    latent = np.zeros((9, 6), np.float32)
    latent[4, 5] = np.nan
    said = stored(tmp_path, q=np.zeros((1, 1, 6), np.float32), latent=latent)
    chosen = parse_scenario({"attention": {"algorithm": "mla", "latent_dim": 4}, "input": said})
    assert "tensor latent, row 4, column 5 = nan" in refused(read_inputs, resolve(chosen))
