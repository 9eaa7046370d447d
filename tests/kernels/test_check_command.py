"""`python -m kernels.check` as a command: what it does, in what order, and what it writes."""

import contextlib
import json
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from kernels import check
from kernels.checks import apart, report
from kernels.checks.outcome import Outcome
from kernels.checks.process import ended
from kernels.devices.driver import GpuStatus, gpu_status
from tests.helpers.process import python
from tests.kernels.outcomes import DEVICE, OUTCOMES

no_gpu = pytest.mark.skipif(gpu_status().available, reason="there is a GPU")

NONE = GpuStatus("", "", "no NVIDIA driver is installed")
USABLE = GpuStatus("A GPU", "13.0", "")


def fake(outcomes: list[Outcome]) -> check.Runner:
    by_name = {outcome.name: outcome for outcome in outcomes}
    return lambda name, quick: by_name[name]


def test_without_a_gpu_it_says_so_and_writes_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert check.main(["--quick", "--output", str(tmp_path / "gpu")], lambda: NONE) == 3
    printed = capsys.readouterr()
    assert printed.err == ("No usable GPU, so nothing was checked: no NVIDIA driver is installed\n")
    assert not list(tmp_path.iterdir())


@no_gpu
def test_the_command_itself_needs_neither_qt_nor_cupy(tmp_path: Path) -> None:
    code = (
        "import sys, kernels.check; status = kernels.check.main(sys.argv[1:]);"
        "print([m for m in ('PySide6', 'cupy', 'cupy_backends', 'torch') if m in sys.modules]);"
        "sys.exit(status)"
    )
    done = python("-c", code, "--output", tmp_path)
    assert (done.returncode, done.stdout) == (3, "[]\n"), done.stderr
    assert done.stderr.startswith("No usable GPU, so nothing was checked: ")
    assert not list(tmp_path.iterdir())


def test_a_gpu_that_does_not_work_is_none(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    broken = Outcome("device", "failed", "it broke off", ("KernelError: CuPy is not installed",))
    run = fake([broken])
    assert check.check_all(["conformance"], run, quick=True, output=tmp_path) == 3
    assert "it broke off KernelError: CuPy is not installed" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_all_checks_are_done_whatever_fails(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    names = [outcome.name for outcome in OUTCOMES]
    output = tmp_path / "docs" / "gpu"
    assert check.check_all(names, fake(OUTCOMES), quick=False, output=output) == 1
    printed = capsys.readouterr().out
    assert "failed      counters" in printed
    assert "flash2: read K: 3 bytes, expected 4" in printed
    assert printed.endswith("3 passed, 1 failed, 1 not run\n")
    assert {p.name for p in output.iterdir()} == {"REPORT.md", "report.json", "curves.svg"}
    said = json.loads((output / "report.json").read_text(encoding="utf-8"))
    assert said["machine"] == {"GPU": "A GPU", "driver": "580"}
    assert [Outcome.from_json(o) for o in said["checks"]] == OUTCOMES


def test_what_is_not_run_is_no_failure(tmp_path: Path) -> None:
    rest = [o for o in OUTCOMES if o.status != "failed"]
    assert check.check_all([o.name for o in rest], fake(rest), quick=True, output=tmp_path) == 0
    assert "`python -m kernels.check --quick`" in (tmp_path / "REPORT.md").read_text("utf-8")


def test_the_report_is_there_before_all_is_done(tmp_path: Path) -> None:
    """A check may be the last that there is time for, or take the machine with it."""
    run = fake(OUTCOMES)

    def stopped(name: str, quick: bool) -> Outcome:
        if name == "memcheck":
            raise KeyboardInterrupt
        return run(name, quick)

    with pytest.raises(KeyboardInterrupt):
        check.check_all([o.name for o in OUTCOMES], stopped, quick=True, output=tmp_path)
    said = json.loads((tmp_path / "report.json").read_text("utf-8"))
    states = {o["name"]: (o["status"], o["summary"]) for o in said["checks"]}
    assert states["conformance"] == ("passed", "9 cases")
    assert states["counters"][0] == "failed"
    assert states["memcheck"] == ("not run", "not yet")


def test_a_report_is_gone_on_with(tmp_path: Path) -> None:
    facts = {"GPU": "A GPU", "driver": "580.1", "kernel sources": "abc"}
    asked: list[str] = []

    def run(name: str, *, quick: bool, seconds: float) -> Outcome:
        asked.append(name)
        assert 0 < seconds <= 500
        return Outcome(name, "passed", "again", figures={"facts": dict(facts)})

    names = ["device", "conformance", "counters"]
    before = [Outcome(n, "passed", "before", figures={"facts": dict(facts)}) for n in names]
    before[2] = Outcome("counters", "failed", "before")
    check.write_report(before, quick=False, output=tmp_path)
    add = ["--add", "--seconds", "500", "--output", str(tmp_path)]

    assert check.main([*add, "--only", "cubins"], lambda: USABLE, run) == 0
    assert asked == ["device", "cubins"]
    said = {o.name: o.summary for o in check.reported(tmp_path, quick=False)}
    assert said == {
        "device": "again",
        "conformance": "before",
        "counters": "before",
        "cubins": "again",
    }

    asked.clear()
    facts["driver"] = "580.2"
    assert check.main(add, lambda: USABLE, run) == 0
    assert asked == [name for name in check.CHECKS if name not in ("conformance", "cubins")]
    found = check.reported(tmp_path, quick=False)
    assert [o.name for o in found] == list(check.CHECKS)
    assert {o.name for o in found if o.summary == "before"} == {"conformance"}
    assert report.facts_of(found)["driver"] == "580.1; 580.2"

    assert check.reported(tmp_path, quick=True) == ()
    assert check.reported(tmp_path / "none", quick=False) == ()


def test_a_report_of_other_kernels_is_not_gone_on_with(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    asked: list[str] = []

    def run(name: str, quick: bool) -> Outcome:
        asked.append(name)
        return Outcome(name, "passed", "", figures={"facts": {"GPU": "A", "kernel sources": "2"}})

    old = Outcome("device", "passed", "", figures={"facts": {"GPU": "A", "kernel sources": "1"}})
    assert check.check_all(["cubins"], run, quick=True, output=tmp_path, earlier=[old]) == 1
    assert asked == ["device"]
    assert "the report is of another kernel sources" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_no_check_begins_when_time_is_over() -> None:
    outcome = check.in_time(0, lambda *_, **__: pytest.fail("it began"))("cubins", True)
    assert (outcome.status, outcome.summary) == ("not run", "no time was left of 0 seconds")


@no_gpu
def test_a_check_in_a_process_of_its_own() -> None:
    outcome = apart.outcome_apart("conformance", quick=True)
    assert outcome.status == "failed"
    assert outcome.faults[0].startswith("KernelError: ")
    assert gpu_status().reason in outcome.faults[0]


def test_a_check_that_dies_or_does_not_end_in_time() -> None:
    died = apart.outcome_apart("no such check", quick=True)
    assert "its process ended with 2: " in died.faults[0]
    assert "invalid choice: 'no such check'" in died.faults[0]
    late = apart.outcome_apart("cubins", quick=True, seconds=0.01)
    assert (late.status, late.faults) == ("not run", ())  # so it is done again with --add
    assert late.summary == "time was over after 0 seconds, before it had ended"
    assert (died.status, died.summary) == ("failed", "it broke off")
    stuck = apart.outcome_apart("cubins", quick=True, seconds=0.01, most=0.01)
    assert (stuck.status, stuck.summary) == (died.status, died.summary)
    assert stuck.faults == ("it did not end within 0 seconds",)


def test_a_device_that_had_no_time_to_answer_is_no_missing_gpu(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    late = [Outcome("device", "not run", "time was over after 1 seconds, before it had ended")]
    assert check.check_all(["conformance"], fake(late), quick=True, output=tmp_path) == 1
    told = capsys.readouterr().err
    assert "No usable GPU" not in told
    assert told.startswith(
        "Nothing was checked, the GPU least of all: time was over after 1 seconds"
    )
    assert not list(tmp_path.iterdir())


def test_a_missed_goal_of_speed_is_no_failure(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    name = "benchmark, d = 128"
    slow = Outcome(name, "goal missed", "float16", misses=("0.5 of the speed",))
    assert check.check_all([name], fake([DEVICE, slow]), quick=False, output=tmp_path) == 0
    assert capsys.readouterr().out.endswith("1 passed, 1 goal missed, 0 failed, 0 not run\n")
    text = (tmp_path / "REPORT.md").read_text("utf-8")
    assert f"### {name}: too slow\n\n- 0.5 of the speed\n" in text
    assert f"| {name} | goal missed |" in text
    assert check.reported(tmp_path, quick=False)[-1] == slow

    asked = []

    def run(name: str, *, quick: bool, seconds: float) -> Outcome:
        asked.append(name)
        return DEVICE if name == "device" else Outcome(name, "passed", "")

    check.main(["--add", "--output", str(tmp_path)], lambda: USABLE, run)
    assert name not in asked


def test_what_a_check_has_started_ends_with_it(tmp_path: Path) -> None:
    """A tool left behind would go on using the GPU while the next check is timed."""
    note = tmp_path / "pid"
    child = f"import os, time; open({str(note)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    words = f"[sys.executable, '-c', {child!r}], start_new_session=True"  # no session in common
    parent = f"import subprocess, sys; subprocess.run({words})"
    # So long that the child has begun; doubled where a machine is that slow.
    for seconds in (4, 16, 64):
        with pytest.raises(subprocess.TimeoutExpired):
            ended([sys.executable, "-c", parent], seconds)
        if note.exists() and note.read_text("utf-8"):
            break
    with contextlib.suppress(psutil.NoSuchProcess):
        left = psutil.Process(int(note.read_text("utf-8")))
        for _ in range(3000):
            if left.status() == psutil.STATUS_ZOMBIE:  # nobody has asked for its status yet
                return
            time.sleep(0.01)
        left.kill()
        pytest.fail("it runs on")
