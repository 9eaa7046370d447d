"""Runs whose file says of each pair whether it is visible, for all heads or for each."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator import InputError
from simulator.engines.reference import reference_rows
from simulator.problem.facts import PACKED
from simulator.problem.workload import resolve
from simulator.program.algorithms import ALGORITHMS
from simulator.run.cosimulation import verify
from simulator.run.trace import Trace
from tests.helpers.runs import trace_of
from tests.helpers.written_files import file_scenario, numbers, refusal, write_safetensors

SOFTMAX = tuple(name for name, each in ALGORITHMS.items() if each.softmax)
LINEAR = tuple(name for name, each in ALGORITHMS.items() if not each.softmax)
HEADS, NQ, NK = 4, 13, 18
SIZES = {"q": (HEADS, NQ, 6), "k": (2, NK, 6), "v": (2, NK, 4)}


def written(folder: Path, tensors: dict[str, np.ndarray], kind: str = "safetensors") -> Path:
    path = folder / f"in.{kind}"
    if kind == "npz":
        np.savez(path, **tensors)
        return path
    return write_safetensors(path, tensors)


def tensors_for(algorithm: str, sizes: dict[str, tuple[int, ...]] = SIZES) -> dict[str, np.ndarray]:
    """Return what an algorithm reads: mla a latent of 4 numbers, and 2 that are turned."""
    out = numbers(**sizes)
    if PACKED.get(algorithm) == "latent":
        return {"q": out["q"], "latent": out["k"][0]}
    return out


def tables_for(algorithm: str, **more: dict[str, Any]) -> dict[str, Any]:
    latent = {"latent_dim": 4, "rope_dim": 2} if PACKED.get(algorithm) == "latent" else {}
    attention = {"algorithm": algorithm, "heads": HEADS, **latent}
    return {"attention": attention, "tiling": {"rows": 4, "cols": 5}, **more}


def by_definition(trace: Trace, seen: np.ndarray) -> np.ndarray:
    """Return O of all heads from Q, K, V and the pairs (H, Nq, Nk) that are visible."""
    w, inputs = trace.workload, trace.inputs
    q = inputs.q.reshape(-1, w.queries, w.head_dim).astype(np.float64)
    group = len(q) // w.kv_heads
    k, v = (np.repeat(x.astype(np.float64), group, axis=0) for x in (inputs.k, inputs.v))
    s = np.where(seen, q @ k.transpose(0, 2, 1) * w.scale, -np.inf)
    top = s.max(axis=-1, keepdims=True)
    p = np.exp(s - np.where(np.isneginf(top), 0, top))
    total = p.sum(axis=-1, keepdims=True)
    return np.divide(p, total, out=np.zeros_like(p), where=total > 0) @ v


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize("algorithm", SOFTMAX)
def test_a_mask_of_the_file_is_a_block_mask_of_one(algorithm: str, tmp_path: Path) -> None:
    """Same O to the bit, same tiles, same bytes; a row that sees nothing has an O of zero."""
    seen = np.random.default_rng(1).random((NQ, NK)) < 0.3
    seen[7] = False
    tensors = tensors_for(algorithm)
    ours, theirs = (
        trace_of(file_scenario(written(tmp_path, {**tensors, name: seen}),
                               **tables_for(algorithm, mask={"causal": True, **said})))
        for name, said in (("mask", {}), ("block_mask", {"block": 1}))
    )  # fmt: skip
    assert ours.output.tobytes() == theirs.output.tobytes()
    assert ours.summary()["tiles"] == theirs.summary()["tiles"]
    assert ours.program.totals == theirs.program.totals
    assert verify(ours).difference is None
    if not ours.workload.backward:
        causal = np.tri(NQ, NK, NK - NQ, dtype=bool)
        exact = by_definition(ours, seen & causal)
        np.testing.assert_allclose(ours.workload.unpacked(ours.output), exact, atol=2e-6)
        assert not ours.workload.unpacked(ours.output)[:, 7].any()


@st.composite
def problems(draw: st.DrawFn) -> tuple[dict[str, np.ndarray], dict[str, Any], np.ndarray]:
    """Draw tensors of a file, tables that read it, and the pairs that its picked heads see."""
    kv_heads, group = draw(st.integers(1, 2)), draw(st.integers(1, 3))
    heads, (nq, nk) = kv_heads * group, (draw(st.integers(1, 14)) for _ in range(2))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    tensors = numbers(q=(heads, nq, 3), k=(kv_heads, nk, 3), v=(kv_heads, nk, 2))
    share = draw(st.sampled_from([0.2, 0.8]))
    tensors["mask"] = rng.random((heads, nq, nk)[draw(st.integers(0, 1)) :]) < share
    algorithm = draw(st.sampled_from(["naive", "flash1", "flash2", "split-kv", "paged"]))
    head: Any = "all"
    if draw(st.booleans()):
        kv = draw(st.integers(0, kv_heads - 1))
        head = list(range(kv * group, kv * group + group))
    picked = list(range(heads)) if head == "all" else head
    seen = np.broadcast_to(tensors["mask"], (heads, nq, nk))[picked]
    tiling = {"rows": draw(st.integers(1, 8)), "cols": draw(st.integers(1, 8))}
    tables = {"attention": {"algorithm": algorithm}, "tiling": tiling, "input": {"head": head}}
    return tensors, tables, seen


@pytest.mark.long
@given(drawn=problems(), kind=st.sampled_from(["npz", "safetensors"]))
def test_each_head_hides_its_own_pairs_and_tiles_are_those_that_any_head_sees(
    drawn: tuple[dict[str, np.ndarray], dict[str, Any], np.ndarray],
    kind: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    tensors, tables, seen = drawn
    path = written(tmp_path_factory.getbasetemp(), tensors, kind)
    if not seen.any():
        assert "tensor mask: expected at least one visible pair" in refusal(path, **tables)
        return
    trace = trace_of(file_scenario(path, **tables))
    w, exact = trace.workload, by_definition(trace, seen)
    np.testing.assert_allclose(w.unpacked(trace.output), exact, atol=1e-5)
    assert verify(trace).difference is None
    if w.group == 1:
        for head in range(w.heads):
            found = reference_rows(w, trace.inputs, head, range(w.seqlen_q))[0]
            np.testing.assert_allclose(found, exact[head], atol=1e-12)
    packed = seen.reshape(w.heads, w.seqlen_q, w.seqlen_k)  # rows of packed heads follow each other
    for i in range(w.grid.Tr):
        for j in range(w.grid.Tc):
            rows, keys = w.grid.row_range(i), w.grid.col_range(j)
            tile = packed[:, rows.start : rows.stop, keys.start : keys.stop]
            assert w.grid.kind(i, j) == int(tile.any()) + int(tile.all())


def test_heads_that_all_see_the_same_share_one_mask(tmp_path: Path) -> None:
    seen = np.random.default_rng(2).random((NQ, NK)) < 0.5
    each = np.repeat(seen[None], HEADS, axis=0)
    each[3] = True
    path = written(tmp_path, {**numbers(**SIZES), "mask": each})
    for head, number in (("all", HEADS), ([0, 1, 2], 1), ([3], 1), ([3, 0], 2)):
        w = resolve(file_scenario(path, input={"head": head}))
        assert len(w.mask.tensor.table) == number
    assert w.mask.of_head(0).visible(range(NQ), range(NK)).all()
    np.testing.assert_array_equal(w.mask.of_head(1).visible(range(NQ), range(NK)), seen)
    same = resolve(file_scenario(written(tmp_path, {**numbers(**SIZES), "mask": seen}))).mask
    assert resolve(file_scenario(path, input={"head": [1]})).mask == same


def test_why_a_pair_is_hidden_says_that_it_is_the_file(tmp_path: Path) -> None:
    seen = np.ones((HEADS, NQ, NK), dtype=bool)
    seen[1, 5, 2] = False
    path = written(tmp_path, {**numbers(**SIZES), "mask": seen})
    trace = trace_of(file_scenario(path, mask={"causal": True}, tiling={"rows": 20, "cols": 20}))
    mask = trace.workload.mask
    words = "file: the mask of the input file hides key 2 from row 5"
    assert [mask.of_head(head).why_hidden(5, 2) for head in (0, 1)] == ["", words]
    assert mask.of_head(1).why_hidden(5, 12).startswith("causal: ")


@pytest.mark.parametrize("algorithm", LINEAR)
def test_without_a_softmax_it_is_refused(algorithm: str, tmp_path: Path) -> None:
    sizes = {"q": (2, 6, 4), "k": (2, 6, 4), "v": (2, 6, 4)}
    path = written(tmp_path, {**numbers(**sizes), "mask": np.tri(6, dtype=bool)})
    line = refusal(path, attention={"algorithm": algorithm}, mask={"causal": True})
    assert "without a tensor mask: linear attention is causal or sees every key" in line


GOOD = np.ones((NQ, NK), dtype=bool)


@pytest.mark.parametrize(
    ("mask", "line"),
    [
        (GOOD[:, :-1], "shape of mask = (13, 17): expected (13, 18) or (4, 13, 18): rows and keys"),
        (np.ones((2, NQ, NK), dtype=bool), "shape of mask = (2, 13, 18): expected (13, 18) or"),
        (GOOD.astype(np.float32), "tensor mask = "),
        (np.packbits(GOOD, axis=1), "tensor mask = "),
        (np.zeros((NQ, NK), dtype=bool), "tensor mask: expected at least one visible pair"),
    ],
)
def test_a_mask_of_an_npz_that_cannot_be_used(mask: np.ndarray, line: str, tmp_path: Path) -> None:
    assert line in refusal(written(tmp_path, {**numbers(**SIZES), "mask": mask}, "npz"))


@pytest.mark.parametrize(
    ("shape", "mask", "line"),
    [
        (None, np.packbits(GOOD, axis=1), "text mask_shape: expected a list of 2 or 3 numbers"),
        ("[13, 18, 1, 1]", np.packbits(GOOD, axis=1), "text mask_shape = "),
        ("[13, 1" + 400 * "8" + "]", np.packbits(GOOD, axis=1), "text mask_shape = "),
        ("[" * 20000, np.packbits(GOOD, axis=1), "text mask_shape = "),
        ("[13, 17]", np.packbits(GOOD, axis=1), "mask_shape = (13, 17): expected (13, 18) or"),
        ("[13, 18]", np.packbits(GOOD[:, :9], axis=1), "shape of mask = (13, 2): expected (13, 3)"),
        ("[4, 13, 18]", np.packbits(GOOD, axis=1), "shape of mask = (13, 3): expected (4, 13, 3)"),
        ("[13, 18]", GOOD.astype(np.float32), "expected U8, bits packed along the keys"),
        ("[13, 18]", np.zeros((13, 3), dtype=np.uint8), "expected at least one visible pair"),
    ],
)
def test_packed_bits_that_cannot_be_used(
    shape: str | None, mask: np.ndarray, line: str, tmp_path: Path
) -> None:
    meta = {} if shape is None else {"mask_shape": shape}
    tensors = {**numbers(**SIZES), "mask": mask}
    assert line in refusal(write_safetensors(tmp_path / "in.safetensors", tensors, meta))


def test_bits_lie_from_the_highest_on(tmp_path: Path) -> None:
    """Written by hand, not by numpy: key 0 is 128, key 9 is 64 of the second byte."""
    row = np.array([128, 64, 0], dtype=np.uint8)
    tensors = {**numbers(**SIZES), "mask": np.repeat(row[None], NQ, axis=0)}
    meta = {"mask_shape": json.dumps([NQ, NK])}
    w = resolve(file_scenario(write_safetensors(tmp_path / "in.safetensors", tensors, meta)))
    assert np.flatnonzero(w.mask.visible(range(1), range(NK))[0]).tolist() == [0, 9]


def test_more_pairs_than_are_read_are_refused(tmp_path: Path) -> None:
    """Before they are unpacked: 2^15 x 2^14 of them are 2^29, of which a file has 2^26 bytes."""
    nq, nk = 2**15, 2**14
    tensors = numbers(q=(1, nq, 1), k=(1, nk, 1), v=(1, nk, 1))
    tensors["mask"] = np.zeros((nq, nk // 8), dtype=np.uint8)
    meta = {"mask_shape": json.dumps([nq, nk])}
    with pytest.raises(InputError, match=r"size of mask = 536870912: expected at most 268435456"):
        resolve(file_scenario(write_safetensors(tmp_path / "in.safetensors", tensors, meta)))
