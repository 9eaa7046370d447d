"""Input files of every element type and random input, read exactly, and their memory."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from simulator import InputError, simulate
from simulator.problem.filling import capture_names, input_bytes, run_bytes
from simulator.problem.input_files import read_header
from simulator.problem.positions import AT_ONCE
from simulator.problem.scenario import Scenario, parse_scenario
from simulator.problem.workload import read_inputs, resolve
from simulator.program.algorithms import ALGORITHMS
from tests.helpers.refused import refused
from tests.helpers.runs import scenario
from tests.helpers.scarce import free_memory, peak_memory
from tests.helpers.written_files import SHAPES, as_float32, numbers, read, write_safetensors

# --- what can be read ----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("ending", [".safetensors", ".npz", "void.npz", "packed.npz"])
def test_every_kind_of_file(dtype: str, batched: bool, ending: str, tmp_path: Path) -> None:
    tensors = numbers(dtype)
    expected = {name: as_float32(tensor) for name, tensor in tensors.items()}
    stored = {name: tensor[None] if batched else tensor for name, tensor in tensors.items()}
    path = tmp_path / f"x{ending}"
    if ending == ".safetensors":
        write_safetensors(path, stored)
    elif ending == "void.npz" and dtype == "bfloat16":  # as ml_dtypes saves it
        np.savez(path, **{name: tensor.view("V2") for name, tensor in stored.items()})
    else:
        save = np.savez_compressed if ending == "packed.npz" else np.savez
        save(path, **stored)
    workload, inputs = read(path)
    assert workload.dtype == dtype
    sizes = (workload.heads, workload.kv_heads, workload.seqlen_q, workload.seqlen_k)
    assert (*sizes, workload.head_dim, workload.value_dim) == (4, 2, 5, 6, 3, 2)
    for name, tensor in expected.items():
        got = getattr(inputs, name)
        assert got.dtype == np.float32
        assert not got.flags.writeable
        np.testing.assert_array_equal(got, tensor)
    assert workload.width == (4 if dtype == "float32" else 2)


def test_the_librarys_own_files(tmp_path: Path) -> None:
    tensors = numbers("float16")
    path = tmp_path / "x.safetensors"
    save_file(tensors, path, metadata={"model": "m", "layer": "3", "unknown": "kept out"})
    workload, inputs = read(path)
    np.testing.assert_array_equal(inputs.v, tensors["v"].astype(np.float32))
    assert (workload.file.said.model, workload.file.said.layer) == ("m", "3")


@pytest.mark.parametrize("ending", [".safetensors", ".npz"])
def test_metadata(ending: str, tmp_path: Path) -> None:
    tokens = ["The", "Größe", "of", "a", "<pad>", "☃"]
    path = tmp_path / f"x{ending}"
    if ending == ".npz":
        more = {"tokens": np.array(tokens), "model": "GPT", "scale": 0.25, "causal": True}
        np.savez(path, **numbers(), **more)
    else:
        meta = {"tokens": json.dumps(tokens), "model": "GPT", "scale": "0.25", "causal": "true"}
        write_safetensors(path, numbers(), meta)
    workload, _ = read(path)
    assert workload.tokens == tuple(tokens)
    assert (workload.scale, workload.mask.causal) == (0.25, True)
    # Query 4 of 5 stands for the last key of 6, as the mask is aligned.
    assert [workload.query_token(row) for row in (0, 4, 5)] == ["Größe", "☃", ""]
    agreeing = {"attention": {"scale": 0.25, "heads": 4, "dtype": "float32"}}
    assert read(path, mask={"causal": True}, **agreeing)[0].scale == 0.25


def test_queries_before_the_first_key_have_no_token(tmp_path: Path) -> None:
    meta = {"tokens": json.dumps(list("abcdef"))}
    path = write_safetensors(tmp_path / "x.safetensors", numbers(q=(4, 8, 3)), meta)
    workload, _ = read(path)
    assert [workload.query_token(row) for row in range(9)] == ["", "", *"abcdef", ""]
    without = write_safetensors(tmp_path / "y.safetensors", numbers())
    assert read_header(without).said.tokens == ()
    assert read(without)[0].query_token(0) == ""
    assert resolve(scenario()).query_token(0) == ""


def test_a_scenario_fills_what_the_file_leaves_out(tmp_path: Path) -> None:
    path = write_safetensors(tmp_path / "x.safetensors", numbers())
    workload, _ = read(path, attention={"scale": 0.5}, mask={"causal": True})
    assert (workload.scale, workload.mask.causal) == (0.5, True)
    assert read(path)[0].scale == pytest.approx(3**-0.5)
    assert read(path)[0].mask.causal is False


@pytest.mark.parametrize(
    ("picked", "groups", "kv_heads"),
    [("all", (0, 0, 1, 1), 2), ([0, 1], (0, 0), 1), ([3, 0], (1, 0), 2), ([2], (0,), 1)],
)
def test_heads_picked_from_groups(
    picked: Any, groups: tuple[int, ...], kv_heads: int, tmp_path: Path
) -> None:
    path = write_safetensors(tmp_path / "x.safetensors", numbers())
    workload, inputs = read(path, input={"head": picked})
    whole = read(path)[1]
    chosen = list(range(4)) if picked == "all" else picked
    assert (workload.kv_head_of, workload.kv_heads) == (groups, kv_heads)
    for n, head in enumerate(chosen):
        np.testing.assert_array_equal(inputs.q[n], whole.q[head])
        np.testing.assert_array_equal(inputs.k[groups[n]], whole.k[head // 2])
        np.testing.assert_array_equal(inputs.v[groups[n]], whole.v[head // 2])
    # A scenario may count the heads that run or those of the file.
    for said in ({"heads": 4, "kv_heads": 2}, {"heads": len(chosen), "kv_heads": kv_heads}):
        assert read(path, input={"head": picked}, attention=said)[0].heads == len(chosen)


def test_captures() -> None:
    assert "cat-because-layer2" in capture_names()
    for name in capture_names():
        chosen = parse_scenario({"input": {"source": "capture", "name": name}})
        workload = resolve(chosen)
        assert len(workload.tokens) == workload.seqlen_k
        assert np.abs(read_inputs(workload).q).max() > 0


# --- random input --------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1, 2**40])
def test_random_input_is_the_documented_draw(seed: int) -> None:
    chosen = scenario(nq=5, nk=6, d=3, dv=2, heads=4, kv_heads=2, seed=seed)
    inputs = read_inputs(resolve(chosen))
    rng = np.random.default_rng(seed)
    for name, shape in SHAPES.items():
        expected = rng.standard_normal(shape).astype(np.float32)
        np.testing.assert_array_equal(getattr(inputs, name), expected)
    half = scenario(nq=5, nk=6, d=3, dv=2, heads=4, kv_heads=2, seed=seed, dtype="float16")
    rounded = read_inputs(resolve(half))
    np.testing.assert_array_equal(rounded.q, inputs.q.astype(np.float16).astype(np.float32))


# --- scales --------------------------------------------------------------------------------


def test_scales_are_those_that_float32_holds() -> None:
    limits = np.finfo(np.float32)
    tiny, largest = float(limits.tiny), float(limits.max)
    for scale in (tiny, largest):
        assert resolve(scenario(scale=scale)).logit_scale == scale
    for scale in (tiny / 2, largest * 2):
        with pytest.raises(InputError, match=re.escape(f"attention.scale = {scale}: ")):
            resolve(scenario(scale=scale))
    assert resolve(scenario(scale=1.0, temperature=2.0**100)).logit_scale == 2.0**-100
    with pytest.raises(InputError, match=r"attention\.temperature = .*, not 7.*e-46"):
        resolve(scenario(scale=1.0, temperature=2.0**150))


# --- too large -----------------------------------------------------------------------------


def test_inputs_that_do_not_fit_are_refused_with_the_figure() -> None:
    with free_memory(2**33):
        chosen = scenario(nq=2**20, nk=8, d=128, heads=32, rows=64, cols=64)
        # Q alone: 2**20 * 128 * 32 elements of 4 bytes are 16 GiB, all else is little.
        assert refused(resolve, chosen) == (
            "scenario: attention.seqlen_q = 1048576: expected a run that fits in memory: "
            "this one needs 16.0 GiB, 8.0 GiB are free"
        )
        rounded = scenario(nq=2**20, nk=8, d=128, heads=32, rows=64, cols=64, dtype="bfloat16")
        assert "needs 40.0 GiB" in refused(resolve, rounded)  # a kernel's 2 bytes, made of 4
        keys = scenario(nq=8, nk=2**20, d=128, heads=32, rows=64, cols=64)
        assert "needs 32.2 GiB" in refused(resolve, keys)
        assert resolve(scenario(nq=2**14, d=128, rows=64, cols=64)).seqlen_q == 2**14


def test_a_tenth_of_the_free_memory_stays_free() -> None:
    need = run_bytes(resolve(scenario()))
    with free_memory(need / 0.9 + 1):
        resolve(scenario())
    with free_memory(need / 0.9 - 1):
        assert "a run that fits in memory" in refused(resolve, scenario())


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("shape", [{"nq": 9000, "nk": 10}, {"nq": 10, "nk": 9000, "dv": 64}])
def test_the_estimate_is_not_below_the_truth(dtype: str, shape: dict[str, int]) -> None:
    _check_estimate(scenario(d=32, dtype=dtype, heads=4, rows=64, cols=64, **shape))


def test_the_estimate_knows_of_q_and_k_before_they_were_turned() -> None:
    sizes = {"d": 32, "heads": 4, "rows": 64, "cols": 64}
    plain, turned = (
        scenario(nq=9000, nk=10, **sizes, position=said) for said in ({}, {"kind": "rope"})
    )
    more = 4 * 4 * 32 * (9000 + 10)
    assert input_bytes(resolve(turned)) == input_bytes(resolve(plain)) + more
    _check_estimate(turned, beside=5 * 8 * AT_ONCE)


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize(
    ("sizes", "tables"),
    [
        ({"nq": 1, "nk": 2**16, "d": 64, "cols": 128}, {}),  # a decoding step: K and V are all
        ({"nq": 1, "nk": 2**15, "d": 64, "cols": 128, "dtype": "bfloat16"}, {}),
        ({"nq": 1024, "nk": 4096, "d": 8, "rows": 64, "cols": 64}, {}),
        ({"nq": 512, "nk": 4096, "d": 8, "rows": 512, "cols": 4096}, {}),  # one tile
        ({"nq": 1024, "nk": 4096, "d": 8, "rows": 64, "cols": 64},
         {"scores": {"softcap": 5.0, "alibi": True}, "mask": {"window": 300, "sinks": 4}}),
        ({"nq": 512, "nk": 4096, "d": 8, "algorithm": "flash2-backward", "rows": 64, "cols": 64},
         {}),
    ],
)  # fmt: skip
def test_a_run_takes_no_more_memory_than_it_was_asked_for(
    sizes: dict[str, Any], tables: dict[str, Any]
) -> None:
    """The bound holds for the whole run with its check against float64, and is not far off."""
    chosen = scenario(**sizes, **tables)
    need = run_bytes(resolve(chosen))
    with peak_memory() as peak:
        simulate(chosen).summary()
        most = peak()
    assert most <= need * 1.05 + 2**22
    assert need <= 2 * most + 2**25


def _check_estimate(chosen: Scenario, beside: int = 0) -> None:
    workload = resolve(chosen)
    with peak_memory() as peak:
        read_inputs(workload)
        most = peak()
    assert most <= input_bytes(workload) * 1.01 + 50_000 + beside
    assert input_bytes(workload) <= 2 * most


@pytest.mark.parametrize("algorithm", list(ALGORITHMS))
def test_values_are_of_the_latent_whatever_else_is_drawn(algorithm: str) -> None:
    latent = {"algorithm": algorithm, "heads": 2, "latent_dim": 3, "rope_dim": 2}
    # Where dO has as many rows as V, their shapes do not tell which is which.
    for queries in (1, 6) if ALGORITHMS[algorithm].softmax else (6,):
        chosen = latent | {"seqlen_q": queries, "seqlen_k": 6}
        w = resolve(parse_scenario({"attention": chosen, "mask": {"causal": True}}))
        inputs = read_inputs(w)
        np.testing.assert_array_equal(inputs.v, inputs.k[..., :3])
        if w.backward:
            assert inputs.upstream.shape == (2, queries, 3)
            assert not np.isin(inputs.upstream, inputs.v).any()
