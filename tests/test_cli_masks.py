"""The command `masks`: prices of patterns, and a scenario with one of them."""

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from simulator.base.assets import SCENARIOS
from simulator.problem.scenario import load_scenario
from simulator.problem.workload import resolve
from simulator.program.algorithms import tile_program
from simulator.timing.duration import duration_of
from tests.helpers.written_files import numbers, write_safetensors
from ui.app.cli import main
from ui.look.units import time_text

DEMO = str(SCENARIOS / "causal.toml")


def test_it_prices_masks(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["masks", DEMO, "--k", "1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    rows = {row["name"]: row for row in told["masks"]}
    assert rows["dense"]["error"] == 0
    assert rows["window"]["tiles"] < rows["dense"]["tiles"]
    assert main(["masks", DEMO]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines[1:]] == list(rows)
    w = resolve(load_scenario(DEMO))
    seconds = duration_of(tile_program(w)).seconds
    assert rows["dense"]["seconds"] == seconds
    assert f" {time_text(seconds)} " in lines[1]


def test_a_run_of_one_block_has_its_masks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = tmp_path / "small.toml"
    small.write_text("[attention]\nseqlen_q = 8\nhead_dim = 4\n", encoding="utf-8")
    assert main(["masks", str(small)]) == 0
    assert "dense" in capsys.readouterr().out


def test_it_writes_one(tmp_path: Path) -> None:
    out = tmp_path / "new.toml"
    assert main(["masks", DEMO, "--k", "1", "--write", "BigBird", "-o", str(out)]) == 0
    assert resolve(load_scenario(out)).mask.blocks
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.safetensors", "new.toml"]
    assert main(["masks", DEMO, "--write", "window", "-o", str(tmp_path / "w.toml")]) == 0
    assert resolve(load_scenario(tmp_path / "w.toml")).mask.window
    assert not (tmp_path / "w.safetensors").exists()


def test_a_mask_in_the_place_of_that_of_a_file_needs_another_file(tmp_path: Path) -> None:
    tensors = {**numbers(q=(2, 8, 4), k=(2, 8, 4), v=(2, 8, 4)), "mask": np.eye(8, dtype=bool)}
    write_safetensors(tmp_path / "own.safetensors", tensors)
    own, out = tmp_path / "own.toml", tmp_path / "w.toml"
    own.write_text('[input]\nsource = "file"\npath = "own.safetensors"\n', encoding="utf-8")
    assert main(["masks", str(own), "--write", "window", "-o", str(out)]) == 0
    mask = resolve(load_scenario(out)).mask
    assert (mask.window > 0, mask.tensor) == (True, None)
    assert (tmp_path / "w.safetensors").exists()
    assert resolve(load_scenario(own)).mask.tensor


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--write", "BigBird"], "--write NAME with -o OUT.toml"),
        (["--write", "Long", "-o", "OUT.toml"], "expected one of dense, window, Longformer"),
        (["--k", "0"], "from 1 to the"),
        (["--k", "99999"], "from 1 to the"),
        (["--block", "0"], "at least 1, and large enough"),
        (["--function", "none.py"], "a file with a function mask"),
    ],
)
def test_what_it_refuses(
    words: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["masks", DEMO, *words]) == 2
    error = capsys.readouterr().err
    assert expected in error
    assert error.count("\n") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="no pipes with names")
def test_it_never_touches_a_file_of_the_user(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor what stands beside the file to write, nor what the scenario reads."""
    mine = tmp_path / "mine.safetensors"
    tensors = {name: np.ones((2, 8, 4), np.float32) for name in "qkv"}
    write_safetensors(mine, tensors)
    own = tmp_path / "mine.toml"
    own.write_text('[input]\nsource = "file"\npath = "mine.safetensors"\n', encoding="utf-8")
    (tmp_path / "out.safetensors").write_bytes(b"of the user")
    (tmp_path / "folder.toml").mkdir()
    (tmp_path / "folder.safetensors").write_bytes(b"of the user, too")
    os.mkfifo(tmp_path / "pipe.toml")
    before = {path: path.read_bytes() for path in tmp_path.glob("*.*s") if path.is_file()}
    for name, expected in (
        ("out.toml", "out.safetensors, which is there already"),
        ("folder.toml", "it is a folder"),
        ("mine.toml", "another name: the input is read from"),
        ("plain.npz", "a file that ends in .toml"),
        ("none/out.toml", "none that exists"),
        ("pipe.toml", "it is a pipe, a socket or a device"),
    ):
        words = [
            "masks",
            str(own),
            "--block",
            "2",
            "--write",
            "BigBird",
            "-o",
            str(tmp_path / name),
        ]
        assert main(words) == 2
        error = capsys.readouterr().err
        assert expected in error
        assert error.count("\n") == 1
    assert {path: path.read_bytes() for path in before} == before
    assert own.read_text(encoding="utf-8").startswith("[input]")
    assert not (tmp_path / "plain.npz").exists()
