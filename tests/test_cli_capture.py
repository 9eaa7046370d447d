"""The command `capture` without what it needs; tests/peers has what it does with it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.process import python
from ui.app.cli import main


@pytest.mark.long
@pytest.mark.parametrize("missing", ["torch", "transformers"])
def test_without_its_extra_it_says_which_to_install(missing: str, tmp_path) -> None:
    path = tmp_path / "out.safetensors"
    lines = (
        f"import sys; sys.modules[{missing!r}] = None; from ui.app.cli import main; "
        f"sys.exit(main(['capture', 'model', '1', {str(path)!r}, 'a text']))"
    )
    done = python("-c", lines)
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert "the extra `capture`: make run EXTRAS=capture" in line
    assert not path.exists()


def test_a_program_without_docs_says_where_capture_is(tmp_path: Path) -> None:
    root = Path(__file__).parents[1]
    shutil.copytree(root / "ui", tmp_path / "ui", ignore=shutil.ignore_patterns("__pycache__"))
    path = tmp_path / "out.safetensors"
    command = [sys.executable, "-m", "ui", "capture", "model", "1", str(path), "a text"]
    paths = os.environ | {"PYTHONPATH": str(root)}  # of all but ui
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=tmp_path, env=paths
    )
    assert done.returncode == 2, done.stdout
    [line] = done.stderr.splitlines()
    assert line.startswith("capture: expected another copy than the binary: pip install")
    assert not path.exists()


def test_what_cannot_be_a_layer_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["capture", "model", "five", "out.safetensors", "text"]) == 2
    assert "layers 'five': expected a number, a list as 0,3-5, or all" in capsys.readouterr().err


def test_a_file_that_there_is_not_is_named_before_anything_is_loaded(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for option in ("--image", "--audio"):
        assert main(["capture", "model", "0", "out.safetensors", option, "none.png"]) == 2
        assert capsys.readouterr().err.splitlines() == ["none.png: no such file"]
