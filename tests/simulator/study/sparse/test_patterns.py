"""Published patterns as masks: what they leave, and what they cost and change."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import psutil
import pytest

from simulator import InputError
from simulator.base.assets import SCENARIOS
from simulator.base.dtypes import TYPE_NAMES
from simulator.engines.reference import reference_rows
from simulator.problem.masked_file import block_mask, check_blocks, masked_scenario, write_masked
from simulator.problem.masks import Align, BlockMask, Mask
from simulator.problem.packing import unpacked
from simulator.problem.scenario import load_scenario, parse_scenario, save_scenario
from simulator.problem.tiling import TileGrid
from simulator.problem.workload import Workload, read_inputs, resolve
from simulator.program.algorithms import tile_program
from simulator.study.sparse.mask_function import function_pattern
from simulator.study.sparse.patterns import (
    Knobs,
    Pattern,
    dense_mask,
    patterns,
    priced,
    usual_knobs,
)
from tests.helpers.refused import refused
from tests.helpers.runs import scenario
from tests.helpers.written_files import numbers, read, write_safetensors


def run(**said: Any) -> tuple[Workload, dict[str, Pattern]]:
    w = resolve(scenario(nq=40, heads=4, kv_heads=2, d=8, rows=4, cols=4, **said))
    found = patterns(w, read_inputs(w), Knobs(4, 4))
    return w, {each.name: each for each in found}


def seen(w: Workload, mask: Mask) -> np.ndarray:
    return mask.visible(range(w.queries), range(w.seqlen_k))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("align", get_args(Align))
@pytest.mark.parametrize("nk", [None, 30, 53])
def test_patterns_leave_what_their_papers_say(causal: bool, align: Align, nk: int | None) -> None:
    w, found = run(nk=nk, mask={"causal": causal, "align": align})
    i = np.arange(40)[:, None] + (w.seqlen_k - 40 if align == "bottom-right" else 0)
    j = np.arange(w.seqlen_k)[None, :]
    dense = (j <= i) if causal else np.ones((40, w.seqlen_k), dtype=bool)
    np.testing.assert_array_equal(seen(w, found["dense"].mask), dense)
    reach = 16 if causal else 8
    near = dense & (np.abs(i - j) < reach)
    np.testing.assert_array_equal(seen(w, found["window"].mask), near)
    free = dense & ((j < 1) | (i < 1))
    np.testing.assert_array_equal(seen(w, found["Longformer"].mask), near | free)
    wide = dense & (np.abs(i - j) < 2 * reach) & ((i - j) % 2 == 0)
    np.testing.assert_array_equal(seen(w, found["Longformer, dilated"].mask), wide | free)
    prefix = (j <= i) | (j < 16)
    np.testing.assert_array_equal(seen(w, found["prefix-LM"].mask), prefix & (j < w.seqlen_k))
    lengths = found["packed documents"].mask.documents
    assert sum(lengths) == w.seqlen_k
    corner: Align = "top-left" if nk else "bottom-right"  # written as of equal lengths
    sides = replace(found["Longformer"].mask, window=(3, -1), align=corner)
    assert resolve(masked_scenario(w, sides)).mask == sides
    for name, pattern in found.items():
        if name not in ("prefix-LM", "dense"):
            assert not (seen(w, pattern.mask) & ~dense).any(), name


def test_documents_are_about_as_long_as_a_window() -> None:
    w = resolve(scenario(nq=4000, d=2, rows=64, cols=64, mask={"causal": True}))
    found = {each.name: each for each in patterns(w, read_inputs(w), Knobs(16, 4))}
    lengths = found["packed documents"].mask.documents
    assert found["packed documents"].words == f"{len(lengths)} documents in one sequence"
    assert sum(lengths) == 4000
    assert all(32 <= each <= 96 for each in lengths[:-1])  # half to one and a half of 64
    assert min(lengths[:-1]) < 40 < 64 < 88 < max(lengths[:-1])
    assert 16 <= lengths[-1] <= 96 + 16  # what is left over joins the last


def test_what_is_left_of_documents_is_one_of_them_if_it_is_a_quarter_as_long() -> None:
    lasts = set()
    for keys in range(200, 264):
        w = resolve(scenario(nq=keys, d=1, rows=64, cols=64, mask={"causal": True}))
        found = {each.name: each for each in patterns(w, read_inputs(w), Knobs(16, 4))}
        lengths = found["packed documents"].mask.documents
        assert sum(lengths) == keys
        lasts.add(lengths[-1])
    assert min(lasts) == 16


@pytest.mark.parametrize(("block", "k", "window"), [(1, 1, 1), (3, 1, 1), (3, 3, 4), (5, 3, 7)])
def test_windows_without_a_causal_mask_are_half_as_wide(block: int, k: int, window: int) -> None:
    w = resolve(scenario(nq=20, d=2, rows=4, cols=4))
    found = {each.name: each for each in patterns(w, read_inputs(w), Knobs(block, k))}
    assert found["window"].mask.window == window
    assert found["window"].words.startswith(f"a window of {window} keys")
    assert found["Longformer, dilated"].mask.window == 2 * window


def test_pairs_of_a_long_run_are_not_counted_and_its_errors_not_computed() -> None:
    short, long = (
        resolve(scenario(nq=nq, d=1, rows=256, cols=256, mask={"causal": True}))
        for nq in (4096, 4097)
    )
    for w, counted in ((short, 1.0), (long, None)):
        inputs = read_inputs(w)
        dense = Pattern("dense", "", dense_mask(w))
        assert [each.pairs for each in priced(w, inputs, (dense,), errors=False)] == [counted]


def test_blocks_are_as_many_as_asked_and_always_the_own_one() -> None:
    _, found = run(mask={"causal": True})
    for name in ("BigBird", "NSA, selected", "DSA, top k"):
        blocks = found[name].mask.blocks
        number = np.minimum(np.arange(10) + 1, 4)
        np.testing.assert_array_equal(blocks.table.sum(axis=1), number)
        assert blocks.table.diagonal().all()
    both = found["NSA, selected + window"].mask.blocks
    assert both.table.sum() > 4 * 10 - 6
    assert all(both.table.diagonal(-before).all() for before in range(4))
    firsts = {name: found[name].mask.blocks.table[:, 0].all()
              for name in ("BigBird", "NSA, selected", "DSA, top k")}  # fmt: skip
    assert firsts == {"BigBird": True, "NSA, selected": True, "DSA, top k": False}


def test_without_a_causal_mask_the_own_block_and_the_one_before_are_chosen() -> None:
    _, found = run()
    blocks = found["NSA, selected"].mask.blocks
    assert blocks.table.diagonal().all()
    assert blocks.table.diagonal(-1).all()
    around = found["BigBird"].mask.blocks
    for offset in (-1, 0, 1):
        assert around.table.diagonal(offset).all()
    # With the first block they are four, so that in the middle nothing else is chosen.
    assert (around.table[3:-1].sum(axis=1) == 4).all()


def test_rows_whose_tokens_are_in_two_blocks_have_both_and_those_before() -> None:
    """Keys that go before the queries shift rows by three tokens against the blocks."""
    _, found = run(nk=43, mask={"causal": True})
    around = found["BigBird"].mask.blocks
    for i in range(2, 10):
        assert np.flatnonzero(around.table[i]).tolist() == sorted({0, i - 2, i - 1, i, i + 1})


def test_indexers_find_the_block_that_a_row_is_about() -> None:
    w = resolve(scenario(nq=40, heads=2, d=8, rows=4, cols=4, mask={"causal": True}))
    inputs = read_inputs(w)
    q, k = np.zeros_like(inputs.q), np.zeros_like(inputs.k)
    # The last rows of one head ask for keys 12 to 15 alone; the other head asks for nothing.
    q[0, 36:, 0], k[0, 12:16, 0] = 9.0, 9.0
    found = patterns(w, replace(inputs, q=q, k=k), Knobs(4, 4))
    for each in found:
        if each.name in ("NSA, selected", "DSA, top k"):
            assert each.mask.blocks.table[9, 3], each.name


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("algorithm", ["naive", "flash1", "flash2", "split-kv"])
def test_prices_are_those_of_the_run_and_the_reference(algorithm: str) -> None:
    scores = {"alibi": True, "sink_logits": [0.5, 2.0, -1.0, 0.0]}
    w, found = run(mask={"causal": True}, scores=scores)
    w = w.as_algorithm(algorithm)
    inputs = read_inputs(resolve(w.scenario))
    rows = priced(w, w.posed(inputs), tuple(found.values()))
    assert (rows[0].pairs, rows[0].error) == (1.0, 0.0)
    single = w.as_algorithm("flash2")
    for each in rows:
        name = "flash2" if algorithm == "naive" else algorithm
        masked = replace(single, mask=each.pattern.mask)
        program = tile_program(masked.as_algorithm(name))
        assert each.visited == sum(program.visit(n).launch == 0 for n in range(len(program)))
        assert each.figures.bytes == program.totals.bytes
        assert each.figures.flops == program.totals.flops
        o, dense = (
            np.array([reference_rows(one, inputs, head, range(40))[0] for head in range(4)])
            for one in (masked, replace(single, mask=dense_mask(w)))
        )
        wrong = np.linalg.norm(o - dense) / np.linalg.norm(dense)
        assert each.error == pytest.approx(wrong, rel=1e-9)


@pytest.mark.parametrize("dtype", TYPE_NAMES)
def test_a_written_mask_is_the_mask_of_the_same_numbers(tmp_path: Path, dtype: str) -> None:
    w, found = run(dtype=dtype, mask={"causal": True}, position={"kind": "rope"})
    inputs = read_inputs(w)
    for n, pattern in enumerate(found.values()):
        beside = tmp_path / f"{n}.safetensors"
        if pattern.mask.blocks:
            write_masked(w, pattern.mask, beside)
        save_scenario(masked_scenario(w, pattern.mask, beside), tmp_path / f"{n}.toml")
        again = resolve(load_scenario(tmp_path / f"{n}.toml"))
        assert again.mask == pattern.mask
        for name in "qkv":
            same = getattr(read_inputs(again), name)
            np.testing.assert_array_equal(same, getattr(inputs, name))
        # A copy of a copy has one mask.
        if pattern.mask.blocks:
            third = replace(pattern.mask, blocks=block_mask(~seen(w, pattern.mask), 2))
            write_masked(again, third, tmp_path / "c.safetensors")
            save_scenario(
                masked_scenario(again, third, tmp_path / "c.safetensors"), tmp_path / "c.toml"
            )
            assert resolve(load_scenario(tmp_path / "c.toml")).mask == third


@pytest.mark.parametrize("name", ["dense", "window", "BigBird"])
def test_another_mask_takes_the_place_of_the_files_own(tmp_path: Path, name: str) -> None:
    """A copy of the input is without it, whatever the other mask is; its numbers stay."""
    tensors = {**numbers(q=(4, 30, 3), k=(2, 40, 3), v=(2, 40, 2)),
               "mask": np.random.default_rng(1).random((4, 30, 40)) < 0.5,
               "sink_logits": np.zeros(4, np.float32)}  # fmt: skip
    meta = {"scale": "0.25", "causal": "true"}
    own = write_safetensors(tmp_path / "own.safetensors", tensors, meta)
    w, inputs = read(own)
    found = {each.name: each for each in patterns(w, inputs, Knobs(8, 2))}
    mask, path = found[name].mask, tmp_path / "new.safetensors"
    assert "expected a file for the input with this mask" in refused(masked_scenario, w, mask)
    write_masked(w, mask, path)
    again = resolve(masked_scenario(w, mask, path))
    assert again.mask == mask
    assert (again.scale, again.sink_logits) == (0.25, (0.0,) * 4)
    for each in "qkv":
        np.testing.assert_array_equal(getattr(read_inputs(again), each), getattr(inputs, each))
    kept = replace(mask, tensor=w.mask.tensor)  # and it stays where the other mask has it
    write_masked(w, kept, path)
    assert resolve(masked_scenario(w, kept, path)).mask == kept


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_a_matrix_of_pairs_is_written_as_its_largest_blocks(size: int) -> None:
    table = np.tri(5, 7, dtype=bool)
    pairs = np.kron(table, np.ones((size, size), dtype=bool))[: 5 * size - size // 2]
    found = block_mask(pairs)
    assert found.size == size
    np.testing.assert_array_equal(found.table, table)


@pytest.mark.parametrize("demo", sorted(path.stem for path in SCENARIOS.glob("*.toml")))
def test_every_demo_takes_blocks_with_its_numbers_or_says_why_not(
    tmp_path: Path, demo: str
) -> None:
    w = resolve(load_scenario(SCENARIOS / f"{demo}.toml"))
    size = usual_knobs(w).block
    mask = dense_mask(w)
    mask = replace(mask, blocks=BlockMask(size, TileGrid(mask, size, size).kinds() > 0))
    path = tmp_path / "blocks.safetensors"
    refused = r"mask\.block" if w.rule else r"batch\.lengths" if w.scenario.batch.lengths else ""
    if refused:
        with pytest.raises(InputError, match=refused):
            check_blocks(w, size)
        return
    check_blocks(w, size)
    if w.seqlen_k > 4096:
        return  # it takes a file of 100 MB
    write_masked(w, mask, path)
    again = resolve(masked_scenario(w, mask, path))
    assert unpacked(again.mask) == mask
    for name in "qkv":
        same = getattr(read_inputs(again), name)
        np.testing.assert_array_equal(same, getattr(read_inputs(w), name))


def test_a_copy_is_not_causal_where_its_mask_is_not(tmp_path: Path) -> None:
    path = write_safetensors(
        tmp_path / "a.safetensors", numbers(), {"causal": "true", "model": "kept"}
    )
    w = resolve(parse_scenario({"input": {"source": "file", "path": str(path)}}))
    mask = Mask(w.queries, w.seqlen_k, blocks=block_mask(np.ones((5, 6), dtype=bool)))
    write_masked(w, mask, tmp_path / "b.safetensors")
    again = resolve(masked_scenario(w, mask, tmp_path / "b.safetensors"))
    assert again.mask == mask
    assert again.file.said.model == "kept"


def test_a_run_of_one_token_leaves_its_only_pair() -> None:
    w = resolve(scenario(nq=1, d=4, mask={"causal": True}))
    inputs = read_inputs(w)
    for each in priced(w, w.posed(inputs), patterns(w, inputs, Knobs(4, 2))):
        assert each.pairs == 1.0, each.pattern.name


def test_usual_knobs_fit_the_run() -> None:
    w = resolve(scenario(nq=100, rows=8, cols=16))
    assert usual_knobs(w) == Knobs(16, 2)
    long = resolve(scenario(nq=5000, rows=8, cols=4))  # at most 1024 blocks, the last a part
    assert usual_knobs(long) == Knobs(5, 250)


# --- functions ------------------------------------------------------------------------------


def function(folder: Path, text: str) -> Path:
    path = folder / "mine.py"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize(
    "text",
    [
        "def mask(head, i, j):\n    return (j <= i) & (i - j < 5)\n",
        "def mask(head, i, j):\n    return j <= i and i - j < 5\n",
        "print('loud')\ndef mask(head, i, j):\n    print(head)\n    return 0 <= i - j < 5\n",
    ],
    ids=["arrays", "numbers", "loud"],
)
def test_a_function_is_a_mask(tmp_path: Path, text: str) -> None:
    w = resolve(scenario(nq=9, nk=11, heads=2, d=4))
    pattern = function_pattern(w, function(tmp_path, text))
    i, j = np.arange(9)[:, None], np.arange(11)[None, :]
    np.testing.assert_array_equal(seen(w, pattern.mask), (j <= i) & (i - j < 5))


@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("while True:\n    pass\n", "an answer within 1 s"),
        ("def mask(head, i, j):\n    return 1 / 0\n", "ZeroDivisionError: division by zero"),
        ("def mask(head, i, j:\n", "SyntaxError"),
        ("masked = 3\n", "expected a function mask(head, i, j)"),
        ("def mask(i, j):\n    return True\n", "TypeError"),
        ("def mask(head, i, j):\n    return head == 0\n", "the same of heads 0 and 1"),
        ("import os\nos._exit(0)\n", "it ended early"),
    ],
)
def test_a_function_that_cannot_be_used(tmp_path: Path, text: str, expected: str) -> None:
    w = resolve(scenario(nq=9, heads=2, d=4))
    seconds = 1.0 if "while" in text else 20.0
    assert expected in refused(function_pattern, w, function(tmp_path, text), seconds=seconds)


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ("np.where(j <= i, 0.0, -np.inf)", "0.0"),  # an additive mask: bool(-inf) is True
        ("'yes'", "'yes'"),
        ("1", "1"),
        ("None", "None"),
        ("[[True] * 10] * 10", "[[True, True"),
    ],
)
def test_a_function_answers_true_or_false_alone(tmp_path: Path, answer: str, shown: str) -> None:
    w = resolve(scenario(nq=9, nk=11, heads=2, d=4))
    text = f"import numpy as np\ndef mask(head, i, j):\n    return {answer}\n"
    line = refused(function_pattern, w, function(tmp_path, text))
    assert "mask(0, 0, 0) = " in line
    assert shown in line
    assert "expected True or False, as of j <= i, not a number that is added" in line


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="no such limits")
def test_a_function_has_bounded_memory_and_print(tmp_path: Path) -> None:
    w = resolve(scenario(nq=9, d=4))
    for text, expected in (
        ("import sys\ndef mask(h, i, j):\n    while True: sys.stderr.write('x' * 10**6)\n",
         "a function that prints at most"),
        ("import os\ndef mask(h, i, j):\n    while True: os.write(1, b'x' * 10**6)\n", "too large"),
        ("held = []\ndef mask(h, i, j):\n    while True: held.append(bytes(2**30))\n",
         "MemoryError"),
    ):  # fmt: skip
        assert expected in refused(function_pattern, w, function(tmp_path, text))


@pytest.mark.skipif(sys.platform == "win32", reason="no such groups of processes")
def test_what_a_function_starts_ends_with_it_and_spoils_no_answer(tmp_path: Path) -> None:
    w = resolve(scenario(nq=9, d=4))
    text = (
        "import subprocess\nchild = subprocess.Popen(['sleep', '77'])\n"
        f"open({str(tmp_path / 'child')!r}, 'w').write(str(child.pid))\n"
        "def mask(head, i, j):\n    return j <= i\n"
    )
    pattern = function_pattern(w, function(tmp_path, text))
    assert seen(w, pattern.mask).sum() == 45
    child = int((tmp_path / "child").read_text())
    gone = not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE
    assert gone or psutil.wait_procs([psutil.Process(child)], timeout=10)[0]


def test_a_function_in_no_file(tmp_path: Path) -> None:
    w = resolve(scenario(nq=9, d=4))
    assert "a file with a function mask" in refused(function_pattern, w, tmp_path / "none.py")
    long = resolve(scenario(nq=4096, d=4, rows=64, cols=64))
    assert "at most 4194304 pairs" in refused(function_pattern, long, function(tmp_path, ""))


def test_errors_are_shares_of_o_and_told_as_they_are_computed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("simulator.study.sparse.patterns._AT_ONCE", 4 * 40 * 10)
    w, found = run(mask={"causal": True})
    inputs, told = read_inputs(w), list[float]()
    usual = priced(w, inputs, tuple(found.values()), told.append)
    small = priced(w, replace(inputs, v=inputs.v / 1024), tuple(found.values()))
    assert [each.error for each in small] == pytest.approx([each.error for each in usual])
    parts = len(found) + 4  # each price, and ten rows at once of 40
    assert told == pytest.approx([(n + 1) / parts for n in range(parts)])


@pytest.mark.long
def test_nsa_ranks_blocks_by_the_weights_of_their_mean_keys_and_dsa_by_sums() -> None:
    w, found = run(mask={"causal": True})
    inputs = read_inputs(w)
    means, sums = np.zeros((10, 10)), np.full((10, 10), -np.inf)
    for row in range(40):
        total = np.zeros(40)
        for head in range(4):
            q, k = inputs.q[head, row].astype(float), inputs.k[head // 2].astype(float)
            blocks = [k[at : at + 4].mean(axis=0) for at in range(0, 40, 4) if at + 3 <= row]
            scores = np.exp([float(q @ mean) * w.logit_scale for mean in blocks])
            means[row // 4, : len(blocks)] += scores / max(scores.sum(), 1e-9)
            total += np.maximum(k @ q, 0)
        for key in range(row + 1):
            sums[row // 4, key // 4] = max(sums[row // 4, key // 4], total[key])
    for name, scores, always in (
        ("NSA, selected", means, lambda i: {0, i, max(i - 1, 0)}),
        ("DSA, top k", sums, lambda i: {i}),
    ):
        blocks = found[name].mask.blocks
        for i in range(10):
            own = always(i)
            others = sorted(set(range(i)) - own, key=lambda j: -scores[i, j])
            best = own | set(others[: 4 - len(own)])
            assert set(np.flatnonzero(blocks.table[i]).tolist()) == best, (name, i)
