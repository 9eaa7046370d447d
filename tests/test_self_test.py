"""`self-test` finds nothing wrong here, and finds what is made wrong."""

import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from kernels.devices.driver import gpu_status
from kernels.devices.host.compiler import find_compiler
from tests.helpers.process import python
from ui.app import self_test
from ui.export.formats import FORMATS
from ui.panels.memory.panel import MemoryPanel

ROOT = Path(__file__).resolve().parent.parent


def of(what: str, folder: Path) -> self_test.Trial:
    attempt = dict(self_test.attempts(folder))[what]
    return self_test.tried(what, attempt)


@pytest.mark.long
def test_all_is_well_and_the_table_says_so():
    done = python("-m", "ui", "self-test")
    assert done.returncode == 0, done.stdout + done.stderr
    assert not done.stderr
    *rows, last = done.stdout.splitlines()
    assert last == f"{len(rows)} tried, none failed"
    tried = [row[:18].strip() for row in rows]
    for part in ("assets", "fonts", "themes", "formulas", "conformance", "settings", "window"):
        assert part in tried
    assert {f"export {spec.ending}" for spec in FORMATS} <= set(tried)
    assert {"engine numpy", "engine host", "engine cupy"} <= set(tried)


def test_without_a_compiler_host_is_not_here_and_says_why(monkeypatch, tmp_path):
    monkeypatch.setenv("CXX", "no-such-compiler")
    find_compiler.cache_clear()
    try:
        trial = of("engine host", tmp_path)
    finally:
        find_compiler.cache_clear()
    assert trial.good is None
    assert "no-such-compiler" in str(trial)


@pytest.fixture
def case(tmp_path: Path) -> Path:
    """Return a copy of the case that self-test looks at, in a folder of its own."""
    for file in self_test.CASE.parent.glob(f"{self_test.CASE.stem}.*"):
        shutil.copy(file, tmp_path)
    return tmp_path / self_test.CASE.name


def tried(case: Path) -> self_test.Trial:
    return self_test.tried("conformance", partial(self_test.conformance, case))


def test_a_wrong_number_fails(case: Path):
    assert tried(case).good is True
    path = case.with_suffix(".expected.npz")
    arrays = dict(np.load(path))
    arrays["o"] = arrays["o"].copy()
    arrays["o"][2, 3, 4] += 1e-3
    np.savez(path, **arrays)
    trial = tried(case)
    assert trial.good is False
    assert trial.says.startswith("o: off by")


def test_a_wrong_count_fails(case: Path):
    path = case.with_suffix(".expected.json")
    path.write_text(path.read_text().replace("453120", "453121"))
    trial = tried(case)
    assert trial.good is False
    assert "453120" in trial.says
    assert "453121" in trial.says


def test_a_missing_file_fails_in_one_line(case: Path):
    case.with_suffix(".safetensors").unlink()
    trial = tried(case)
    assert trial.good is False
    assert "\n" not in str(trial)


@pytest.mark.long
def test_a_fault_in_a_panel_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    def broken(*_: object) -> None:
        raise ZeroDivisionError("a fault of a panel")

    assert of("window", tmp_path).good is True
    monkeypatch.setattr(MemoryPanel, "show_snapshot", broken)
    trial = of("window", tmp_path)
    assert trial.good is False
    assert "a fault of a panel" in trial.says


@pytest.mark.long
def test_a_broken_part_does_not_stop_the_rest(capsys: pytest.CaptureFixture[str]):
    assert self_test.run(Path("no-such-demo.toml")) == 1
    rows = capsys.readouterr().out.splitlines()
    failed = [row[:18].strip() for row in rows[:-1] if " FAILED " in row]
    assert failed[0] == "engine numpy"
    # An engine that is not here is asked for its reason first.
    assert ("engine cupy" in failed) is gpu_status().available
    assert ("engine host" in failed) is find_compiler().available
    assert {f"export {spec.ending}" for spec in FORMATS} <= set(failed)
    assert rows[-1] == f"{len(rows) - 1} tried, {len(failed)} failed"
