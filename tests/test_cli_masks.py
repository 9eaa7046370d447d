"""The command `masks`: prices of patterns, and a scenario with one of them."""

import json
from pathlib import Path

import pytest

from simulator.base.assets import SCENARIOS
from simulator.problem.scenario import load_scenario
from simulator.problem.workload import resolve
from ui.app.cli import main

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


def test_it_writes_one(tmp_path: Path) -> None:
    out = tmp_path / "new.toml"
    assert main(["masks", DEMO, "--k", "1", "--write", "BigBird", "-o", str(out)]) == 0
    assert resolve(load_scenario(out)).mask.blocks
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.safetensors", "new.toml"]
    assert main(["masks", DEMO, "--write", "window", "-o", str(tmp_path / "w.toml")]) == 0
    assert resolve(load_scenario(tmp_path / "w.toml")).mask.window
    assert not (tmp_path / "w.safetensors").exists()


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
