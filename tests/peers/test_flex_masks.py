"""Masks and their tiles against PyTorch's FlexAttention, with the mask functions of its pages.

They are those that attention-gym collects: causal, sliding window, prefix-LM, documents, dilated
sliding window, global tokens (BigBird and Longformer), written as PyTorch wants them. O is held
against its scaled_dot_product_attention: FlexAttention itself has to be compiled first.
"""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simulator.code.run_script import run_script
from simulator.engines.reference import reference_rows
from simulator.problem.masked_file import block_mask
from simulator.problem.workload import read_inputs, resolve
from tests.helpers.runs import scenario, trace_of

torch = pytest.importorskip("torch")
flex = pytest.importorskip("torch.nn.attention.flex_attention")
pytestmark = pytest.mark.peers

N, HEADS, KV_HEADS, D = 96, 4, 2, 16
LENGTHS = [30, 7, 41, 18]
DOCUMENT = np.repeat(np.arange(4), LENGTHS)
BLOCKS = np.random.default_rng(5).random((6, 6)) < 0.5
BLOCKS[:, 0] = True

Mod = Callable[[Any, Any, Any, Any], Any]


def causal(b: Any, h: Any, q: Any, kv: Any) -> Any:
    return q >= kv


def window(b: Any, h: Any, q: Any, kv: Any) -> Any:
    return (q >= kv) & (q - kv < 20)


def documents(b: Any, h: Any, q: Any, kv: Any) -> Any:
    of = torch.tensor(DOCUMENT)
    return (of[q] == of[kv]) & (q >= kv)


def dilated(b: Any, h: Any, q: Any, kv: Any) -> Any:
    return ((q - kv).abs() < 15) & ((q - kv) % 3 == 0)


def global_tokens(b: Any, h: Any, q: Any, kv: Any) -> Any:
    return ((q - kv).abs() < 9) | (kv < 4) | (q < 4)


def blocks(b: Any, h: Any, q: Any, kv: Any) -> Any:
    return torch.tensor(BLOCKS)[q // 16, kv // 16]


def prefix(b: Any, h: Any, q: Any, kv: Any) -> Any:
    return (kv < 25) | (q >= kv)


CASES: dict[str, tuple[Mod, dict[str, Any]]] = {
    "causal": (causal, {"causal": True}),
    "window": (window, {"causal": True, "window": 20}),
    "documents": (documents, {"causal": True, "documents": LENGTHS}),
    "dilated": (dilated, {"window": 15, "dilation": 3}),
    "global": (global_tokens, {"window": 9, "global_tokens": 4}),
    "blocks": (blocks, {}),
    "prefix-LM": (prefix, {}),
}


@pytest.mark.parametrize("name", CASES)
def test_flex_attention_has_the_same_mask_and_tiles(name: str) -> None:
    mod, table = CASES[name]
    chosen = scenario(nq=N, heads=HEADS, kv_heads=KV_HEADS, d=D, rows=16, cols=16, mask=table)
    w, inputs = resolve(chosen), read_inputs(resolve(chosen))
    places = torch.arange(N)
    theirs = mod(0, 0, places[:, None], places[None, :]).numpy()
    if not table:
        w = replace(w, mask=replace(w.mask, blocks=block_mask(theirs)))
        assert w.mask.blocks is not None
        assert w.mask.blocks.size == (16 if name == "blocks" else 1)
    np.testing.assert_array_equal(w.mask.visible(range(N), range(N)), theirs)
    held = flex.create_block_mask(mod, 1, HEADS, N, N, device="cpu", BLOCK_SIZE=16)
    # FlexAttention's tiles: number of blocks of keys of each block of rows, and whether in full.
    count = held.kv_num_blocks[0, 0] + held.full_kv_num_blocks[0, 0]
    np.testing.assert_array_equal(np.diff(w.grid.visited_columns.sums), count.numpy())
    assert w.grid.full_tiles == int(held.full_kv_num_blocks[0, 0].sum())
    given = (np.array(each) for each in (inputs.q, inputs.k, inputs.v))
    q, k, v = (torch.tensor(each)[None].double() for each in given)
    o = torch.nn.functional.scaled_dot_product_attention(
        q, k, v, attn_mask=torch.tensor(theirs), enable_gqa=True
    )[0].numpy()
    for head in range(HEADS):
        ours = reference_rows(w, inputs, head, range(N))[0]
        np.testing.assert_allclose(ours, o[head], atol=1e-12)
    if table:
        np.testing.assert_allclose(trace_of(chosen).output, o, atol=2e-6)


@pytest.mark.parametrize(("nq", "nk"), [(20, 33), (33, 20)])
def test_the_script_of_a_run_agrees_with_pytorch(tmp_path: Path, nq: int, nk: int) -> None:
    said = {"causal": True, "window": 9}
    trace = trace_of(scenario("flash2", nq=nq, nk=nk, heads=4, kv_heads=2, mask=said))
    script = tmp_path / "run.py"
    script.write_text(run_script(trace, 0, 3), encoding="utf-8")
    command = [sys.executable, str(script), "--torch"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "PyTorch: O of all rows off by" in done.stdout
