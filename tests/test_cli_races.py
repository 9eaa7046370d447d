"""The command `races`: the kernels of a scenario, watched."""

import os
import re
from argparse import Namespace
from pathlib import Path

import pytest

from kernels.build.sources import FOLDER, whole_source
from kernels.devices.barriers import WithoutBarrier
from tests.helpers.process import python
from tests.kernels.watch.watched import needs_watch
from ui.app.cli import main
from ui.app.races_command import run

SMALL = """
[attention]
algorithm = "flash2"
seqlen_q = 40
head_dim = 4
[tiling]
rows = 32
cols = 16
"""
WHOLE = "__syncthreads();  // the tiles are whole"


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SMALL, encoding="utf-8")
    return path


@pytest.mark.long
@needs_watch
def test_kernels_as_they_are_have_no_fault(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["races", str(small)]) == 0
    told = capsys.readouterr()
    assert [line.partition(":")[0] for line in told.out.splitlines()] == [
        "flash2, fast", "flash2, trace"
    ]  # fmt: skip
    assert told.out.count("no race") == 2
    assert told.err == ""


@pytest.mark.long
@needs_watch
def test_a_race_is_told_with_both_lines_and_the_missing_barrier(
    small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = whole_source("flash2")
    assert code.count(WHOLE) == 1
    device = WithoutBarrier(code, code.replace(WHOLE, ""))
    assert run(Namespace(scenario=str(small)), device) == 1
    lines = capsys.readouterr().out.splitlines()
    assert any("fault" in line for line in lines)
    own = (FOLDER / "flash2.cu").read_text(encoding="utf-8").splitlines()
    written, read = (
        next(n for n, line in enumerate(own, 1) if call in line)
        for call in ("load_tile(K_shared", " scores(S_shared")
    )
    wanted = (
        rf"writes at .*\(called at flash2.cu:{written}\), .* reads at .*{read}\); no __syncthreads"
    )
    assert any(re.search(wanted, line) for line in lines), lines


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("heads = 64\nseqlen_k = 5000\n", "at most 2\u2009097\u2009152 pairs"),
        ("[faults]\nforget_alpha = true\n", "the CUDA kernels have none"),
    ],
)
def test_what_cannot_be_watched_is_refused_in_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: str, words: str
) -> None:
    path = tmp_path / "much.toml"
    at = SMALL.index("[tiling]")
    path.write_text(SMALL[:at] + more + SMALL[at:], encoding="utf-8")
    assert main(["races", str(path)]) == 2
    told = capsys.readouterr()
    assert told.err.count("\n") == 1
    assert words in told.err, told.err


def test_without_a_compiler_it_says_what_to_install(small: Path) -> None:
    done = python("-m", "ui", "races", small, env={**os.environ, "CXX": "/none/g++"})
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "/none/g++" in done.stderr
    assert "install g++" in done.stderr
