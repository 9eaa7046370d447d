"""Some rows of some heads have the numbers of the whole run, whose counts stand beside them."""

import json
import tomllib

import numpy as np
import pytest

from simulator.base.errors import InputError
from simulator.engines.numpy_engine import numpy_engine
from simulator.problem.scenario import Scenario
from simulator.problem.workload import read_inputs, resolve
from simulator.run.part_run import run_part, whole_of
from simulator.run.trace import simulate
from ui.app.cli import main

TILES = {"rows": 16, "cols": 16}
SHAPES = {"seqlen_q": 56, "head_dim": 8, "heads": 6, "kv_heads": 2, "dtype": "float16"}
CASES = {
    "flash2, causal": ("flash2", {}, {"mask": {"causal": True}}),
    "flash1": ("flash1", {}, {}),
    "naive": ("naive", {}, {}),
    "linear, causal": ("linear", {}, {"mask": {"causal": True}}),
    "deltanet": ("deltanet", {}, {"mask": {"causal": True}}),
    # Their splits depend on how many heads fill the GPU, and three heads share a tile.
    "split-kv": ("split-kv", {"seqlen_q": 5, "seqlen_k": 3000}, {}),
    "paged": ("paged", {"seqlen_q": 5, "seqlen_k": 3000}, {}),
    "decoding": ("split-kv", {"seqlen_q": 2, "seqlen_k": 3000, "head_dim": 64}, {}),
    "sinks, ALiBi": ("flash2", {}, {"scores": {"alibi": True, "sink_logits": [0, 1, 2, 3, 4, 5]}}),
    "rotary": ("flash2", {}, {"position": {"kind": "rope"}}),
}


def scenario(algorithm: str, shapes: dict, others: dict) -> Scenario:
    tables = {"attention": {"algorithm": algorithm, **SHAPES, **shapes}, "tiling": TILES, **others}
    if algorithm in ("split-kv", "paged"):
        tables["tiling"] = {**TILES, "splits": "auto"}
    return Scenario.model_validate(tables)


@pytest.mark.parametrize("case", CASES)
def test_a_part_has_the_numbers_and_the_counts_of_the_whole(case):
    said = scenario(*CASES[case])
    whole, arrays = simulate(said).run(keep_arrays=True)
    last = said.attention.seqlen_q
    for asked, heads in (
        (range(last // 3, last - 1), (4, 1)),
        (range(last - 2, last), (5,)),
        (None, None),
    ):
        program, rows, chosen = whole_of(said, asked, heads)
        summary, part = run_part(said, rows, chosen, numpy_engine, program)
        for name, array in part.items():
            expected = arrays[name][list(chosen), rows.start : rows.stop]
            np.testing.assert_array_equal(array, expected)
        assert summary["checked_rows"] == len(chosen) * len(rows)
        assert summary["max_abs_error"] <= (1 + 1e-6) * whole["max_abs_error"]
        for name in ("tiles", "hbm", "matmul_flops", "visits", "sram", "model"):
            assert summary[name] == whole[name]


def test_heads_that_run_alone_have_the_numbers_that_they_have_among_all():
    said = scenario(*CASES["flash2, causal"])
    all_heads = read_inputs(resolve(said))
    own = read_inputs(resolve(said.model_copy(update={
        "input": said.input.model_copy(update={"head": (1, 4)})})))  # fmt: skip
    np.testing.assert_array_equal(own.q, all_heads.q[[1, 4]])
    np.testing.assert_array_equal(own.k, all_heads.k)
    np.testing.assert_array_equal(own.v, all_heads.v)


def test_what_a_run_lacks_is_refused_in_a_line():
    said = scenario(*CASES["flash2, causal"])
    for rows, heads, words in (
        (range(5, 57), None, 'rows = "5:57": expected A:B with 0 <= A < B <= 56'),
        (range(5, 5), None, "5:5"),
        (None, (7,), 'heads = "7": expected some of 0 to 5'),
    ):
        with pytest.raises(InputError, match=words):
            whole_of(said, rows, heads)


LARGE = """
[attention]
algorithm = "flash2"
seqlen_q = 1048576
heads = 32
head_dim = 64
dtype = "bfloat16"
[mask]
causal = true
"""


def test_a_run_that_no_memory_holds_is_counted_and_computed_in_part(tmp_path, capsys):
    file = tmp_path / "large.toml"
    tokens = 2**15
    file.write_text(LARGE)
    program, _, _ = whole_of(Scenario.model_validate(tomllib.loads(LARGE)), None, None)
    n = 2**20
    blocks = n // program.workload.rows
    pairs = sum(-(-(i + 1) * program.workload.rows // program.workload.cols) for i in range(blocks))
    assert len(program) == 32 * pairs
    file.write_text(LARGE.replace(str(n), str(tokens)).replace("heads = 32", "heads = 3"))
    out = tmp_path / "part.npz"
    command = ["run", str(file), "--rows", f"{tokens - 128}:{tokens}", "--heads", "2", "--json"]
    assert main([*command, "-o", str(out)]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["rows"], summary["heads"]) == ([tokens - 128, tokens], [2])
    with np.load(out) as arrays:
        assert summary["max_abs_error"] <= 2**-8 * np.abs(arrays["o"]).max()  # O is bfloat16
        assert arrays["o"].shape == (1, 128, 64)
        assert np.abs(arrays["lse"] - np.log(tokens)).max() < 1
    with pytest.raises(SystemExit):
        main(["run", str(file), "--rows", "5"])
    assert "expected A:B" in capsys.readouterr().err
    assert main(["run", str(file), "--rows", "0:5", "-o", str(tmp_path / "x.csv")]) == 2
    assert ".npz or .json" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("rows", "heads", "words"),
    [("0:1", "1", "row 0 of head 1"), ("2:4", "0,1", "rows 2 to 3 of heads 0, 1")],
)
def test_what_was_computed_is_said(rows, heads, words, tmp_path, capsys):
    file = tmp_path / "small.toml"
    file.write_text("[attention]\nheads = 2\nseqlen_q = 4\nhead_dim = 2\n")
    assert main(["run", str(file), "--rows", rows, "--heads", heads]) == 0
    assert f" {words}\n" in capsys.readouterr().out
