"""What the layer of a file does to O before its output projection: its gate, and words of more."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from simulator.code.run_script import run_script
from simulator.problem.masked_file import masked_scenario, write_masked
from simulator.problem.masks import BlockMask
from simulator.problem.scenario import parse_scenario
from simulator.run.provenance import explain
from simulator.run.snapshot import Cell
from simulator.run.trace import simulate
from tests.helpers.written_files import (
    as_float32,
    file_scenario,
    numbers,
    read,
    refusal,
    write_safetensors,
)
from ui.app.cli import main
from ui.look.run_words import scenario_words

GATE = (4, 5, 2)
"""Heads, queries and columns of O of `numbers`."""
SENTENCE = (
    "After attention the recorded layer norms O. "
    "Do not take O of this run for what its output projection W_O is given."
)
Write = Callable[..., Path]


@pytest.fixture(params=["safetensors", "npz"])
def write(request: pytest.FixtureRequest, tmp_path: Path) -> Write:
    """Write tensors and texts as a file of each kind."""

    def made(tensors: dict[str, np.ndarray], texts: dict[str, str] | None = None) -> Path:
        path = tmp_path / f"mine.{request.param}"
        if request.param == "npz":
            np.savez(path, **tensors, **(texts or {}))
            return path
        return write_safetensors(path, tensors, texts)

    return made


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_the_gate_of_the_picked_heads_is_read(write: Write, dtype: str) -> None:
    tensors = numbers(dtype, gate=GATE)
    path = write(tensors)
    inputs = read(path)[1]
    np.testing.assert_array_equal(inputs.output_gate, as_float32(tensors["gate"]))
    inputs = read(path, input={"head": [3, 1]})[1]
    np.testing.assert_array_equal(inputs.output_gate, as_float32(tensors["gate"])[[3, 1]])
    assert not inputs.output_gate.flags.writeable


def test_of_packed_heads_each_row_keeps_its_own(write: Write) -> None:
    tensors = numbers(gate=GATE)
    trace = simulate(file_scenario(write(tensors), attention={"algorithm": "split-kv"}))
    gate, single = trace.inputs.output_gate, trace.single_heads[1].output_gate
    assert single is not None
    assert gate.shape == (2, 10, 2)
    np.testing.assert_array_equal(single, tensors["gate"])


def test_a_run_applies_the_gate_and_nothing_else(write: Write) -> None:
    tensors = numbers(gate=GATE)
    gated = simulate(file_scenario(write(tensors, {"after": "gates O"}))).run(keep_arrays=True)
    gate = tensors.pop("gate")
    plain = simulate(file_scenario(write(tensors))).run(keep_arrays=True)
    normed = simulate(file_scenario(write(tensors, {"after": "norms O"}))).run(keep_arrays=True)
    np.testing.assert_array_equal(gated[1]["o"], plain[1]["o"] * gate)
    np.testing.assert_array_equal(gated[1]["lse"], plain[1]["lse"])
    np.testing.assert_array_equal(normed[1]["o"], plain[1]["o"])
    assert normed[0]["after"] == "norms O"
    assert not {"after"} & {*gated[0], *plain[0]}
    assert normed[0]["hbm"] == plain[0]["hbm"]
    assert gated[0]["hbm"]["by_tensor"]["gate"] == {"read": gate.nbytes, "write": 0}


@pytest.mark.parametrize(
    ("gate", "said"),
    [
        (np.ones((4, 5, 3), np.float32), "shape of gate = (4, 5, 3): expected (4, 5, 2)"),
        (np.ones((2, 5, 2), np.float32), "shape of gate = (2, 5, 2): expected (4, 5, 2)"),
        (np.ones((4, 5), np.float32), "shape of gate = (4, 5): expected three axes, none empty"),
        (np.ones((4, 0, 2), np.float32), "shape of gate"),
        (np.full(GATE, np.inf, np.float32), "tensor gate, head 0, row 0, column 0 = inf"),
        (np.ones(GATE, np.int64), "expected floating-point numbers"),
    ],
)
def test_a_gate_that_cannot_be_one_is_refused(write: Write, gate: np.ndarray, said: str) -> None:
    assert said in refusal(write(numbers() | {"gate": gate}))


def test_a_gate_is_no_wider_than_the_run(write: Write) -> None:
    gate = {"gate": np.ones(GATE, np.float32)}
    assert 'tensor gate = "float32": expected float16 as in q' in refusal(
        write(numbers("float16") | gate)
    )
    read(write(numbers() | {"gate": np.ones(GATE, np.float16)}))


@pytest.mark.parametrize("after", ["gates O\nand more", "gates \u202eO", "g" * 501])
def test_words_that_are_no_line_are_refused(write: Write, after: str) -> None:
    assert "after" in refusal(write(numbers(), {"after": after}))


@pytest.mark.parametrize("algorithm", ["naive", "flash1", "flash2", "split-kv", "linear"])
def test_where_a_number_of_o_came_from_begins_with_it(tmp_path: Path, algorithm: str) -> None:
    path = write_safetensors(tmp_path / "mine.safetensors", numbers(), {"after": "norms O"})
    trace = simulate(file_scenario(path, attention={"algorithm": algorithm}))
    last = len(trace) - 1
    end = trace.snapshot(last, len(trace.program.ops(last)) - 1)
    row = end.visit.rows.start
    lines = explain(end, Cell("O", row, 1)).lines
    assert lines[0] == (SENTENCE,)
    assert (SENTENCE,) not in explain(end, Cell("Q", row, 1)).lines
    begun = trace.snapshot(0, 0)
    assert explain(begun, Cell("O", begun.visit.rows.start, 0)).lines[0] == (SENTENCE,)


@pytest.mark.sweep(keep=3)
@pytest.mark.parametrize(
    ("texts", "gate", "done"),
    [
        ({"after": "norms O."}, False, "norms O"),
        ({"after": " mixes heads "}, True, "mixes heads"),
        ({"after": "gates O"}, False, "gates O"),
        ({"after": "gates O"}, True, ""),
        ({}, True, ""),
        ({"after": ""}, False, ""),
    ],
)
def test_the_command_and_the_chips_say_it(
    write: Write, texts: dict[str, str], gate: bool, done: str, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    path = write(numbers(**({"gate": GATE} if gate else {})), texts)
    scenario = tmp_path / "mine.toml"
    scenario.write_text(f'[input]\nsource = "file"\npath = "{path.name}"\n', encoding="utf-8")
    assert main(["run", str(scenario)]) == 0
    printed = capsys.readouterr().out
    assert (SENTENCE.replace("norms O", done) in printed) == bool(done)
    assert ("O is multiplied by the gate of the file" in printed) == gate
    assert ("output projection" in printed) == bool(done)
    assert main(["run", str(scenario), "--json"]) == 0
    assert json.loads(capsys.readouterr().out).get("after", "") == done
    chips = scenario_words(simulate(scenario).workload)
    assert (f"the layer {done} before W_O" in chips) == bool(done)
    assert ("gated O" in chips) == gate


def test_a_script_of_the_run_says_it(tmp_path: Path) -> None:
    said = {"after": 'norms """ O \\'}
    path = write_safetensors(tmp_path / "mine.safetensors", numbers(), said)
    text = run_script(simulate(file_scenario(path)), 0, 0)
    compile(text, "script", "exec")
    assert "After attention the recorded layer norms ''' O /. Do not take O" in text


@pytest.mark.parametrize("done", ["gates O", "norms O"])
def test_a_whole_layer_that_changes_o_has_no_y_and_is_refused(
    tmp_path: Path, done: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    shapes = {"x": (6, 10), "wq": (10, 8), "wk": (10, 4), "wv": (10, 6), "wo": (12, 10)}
    tensors = {name: rng.standard_normal(s).astype(np.float32) for name, s in shapes.items()}
    save_file(tensors, tmp_path / "layer.safetensors", {"after": done})
    scenario = tmp_path / "mine.toml"
    scenario.write_text(
        '[attention]\nheads = 4\n[input]\nsource = "layer"\npath = "layer.safetensors"\n',
        encoding="utf-8",
    )
    assert main(["run", str(scenario)]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "layer.safetensors" in line
    assert f'after = "{done}"' in line
    assert "Y would be" in line
    assert "a file of q, k, v" in line


def test_a_gate_of_a_latent_has_the_columns_of_its_values(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    shapes = {"q": (4, 5, 6), "latent": (7, 6), "gate": (4, 5, 4)}
    tensors = {name: rng.standard_normal(s).astype(np.float32) for name, s in shapes.items()}
    path = tmp_path / "mine.safetensors"
    save_file(tensors, path)
    said = {"attention": {"algorithm": "mla", "latent_dim": 4},
            "input": {"source": "file", "path": str(path)}}  # fmt: skip
    found = simulate(parse_scenario(said)).single_heads[1].output_gate
    assert found is not None
    np.testing.assert_array_equal(found, tensors["gate"])


def test_a_copy_with_painted_blocks_keeps_both(tmp_path: Path) -> None:
    tensors = numbers(gate=GATE)
    path = write_safetensors(tmp_path / "mine.safetensors", tensors, {"after": "norms O"})
    w = read(path)[0]
    mask = replace(w.mask, blocks=BlockMask(2, np.ones((3, 3), dtype=np.bool_)))
    write_masked(w, mask, tmp_path / "copy.safetensors")
    trace = simulate(masked_scenario(w, mask, tmp_path / "copy.safetensors"))
    assert trace.summary()["after"] == "norms O"
    np.testing.assert_array_equal(trace.inputs.output_gate, tensors["gate"])
