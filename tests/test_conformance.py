"""The conformance cases, through the command line's own entry, and the check itself."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.conformance.check import HERE, array_faults, case_faults, count_faults, find_cases
from tests.helpers.process import python
from ui.app import cli

CASES = find_cases(HERE)


def test_there_are_cases() -> None:
    assert {case.stem.split("-")[0] for case in CASES} == {
        "naive", "flash1", "flash2", "split", "paged", "mla", "layer", "linear", "backward",
            "align", "window", "p16", "layout",
    }  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_case(case: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.npz"
    status = cli.main(["run", str(case), "-o", str(out), "--json", "--engine", "numpy"])
    printed = capsys.readouterr()
    assert status == 0, printed.err
    assert case_faults(case, json.loads(printed.out), out) == []


def test_check_runs_from_the_root() -> None:
    done = python(HERE / "check.py", "--only", "flash2-small")
    assert done.stdout.splitlines() == ["ok   flash2-small", "1 passed, 0 failed"], done.stderr
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("got", "fault"),
    [
        ([1.0, -np.inf], None),
        ([1.0 + 1e-5, -np.inf], None),
        ([1.0 + 1e-3, -np.inf], "o: off by 5.00e-04, allowed 1e-04"),
        ([np.nan, -np.inf], "o: NaN or Inf where a number is expected"),
        ([1.0, 0.0], "o: expected -inf for the rows that see nothing"),
        ([1.0], "o: shape (1,), expected (2,)"),
        (None, "o: missing"),
    ],
)
def test_the_check_sees_a_wrong_array(got: list[float] | None, fault: str | None) -> None:
    arrays = {} if got is None else {"o": np.array(got, np.float32)}
    found = array_faults(arrays, {"o": np.array([1.0, -np.inf])}, {"o": 1e-4})
    assert found == ([fault] if fault else [])


def test_the_check_sees_a_wrong_count() -> None:
    want = {"tiles": {"full": 3}, "hbm": {"by_tensor": {"Q": {"read": 8, "write": 0}}}}
    assert count_faults({**want, "seconds": 0.1}, want) == []
    got = {"tiles": {"full": 3}, "hbm": {"by_tensor": {"Q": {"read": 9, "write": 0}}}}
    assert count_faults(got, want) == ["hbm.by_tensor.Q.read: 9, expected 8"]
    assert count_faults({"tiles": {"full": 3}}, want) == [f"hbm: None, expected {want['hbm']}"]
