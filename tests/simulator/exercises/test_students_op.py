"""A student's op: right, wrong in a usual way, or stopped with one line."""

import sys

import numpy as np
import pytest

from simulator.base.assets import SCENARIOS
from simulator.exercises.ops import OPS, calls_of
from simulator.exercises.process import command, difference, judge
from simulator.problem.scenario import load_scenario, with_values

TASK = OPS["row sum"]


@pytest.fixture(scope="module")
def calls():
    return calls_of(TASK, load_scenario(SCENARIOS / "flash2.toml"))[:4]


def said(calls, body: str) -> str:
    return judge(TASK, f"def row_sum(P, l, alpha):\n    {body}\n", calls)


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize("task", OPS.values(), ids=OPS)
def test_each_solution_is_right_and_each_usual_mistake_is_named(task):
    demo = "causal" if task.name == "mask" else "flash2"
    scenario = with_values(
        load_scenario(SCENARIOS / f"{demo}.toml"), {"tiling": {"rows": 4, "cols": 3}}
    )
    calls = calls_of(task, scenario)[:40]
    assert judge(task, task.solution, calls) == ""
    named = {says for says, _ in task.mistakes}
    with np.errstate(all="ignore"):
        for says, mistake in task.mistakes:
            told = {difference(task, call, mistake(call.given)) for call in calls}
            assert says in told, "the first op that it changes has to say so"
    wrong = judge(task, f"{task.head}\n    return {task.takes[0]} * 0 + 7\n", calls)
    assert wrong
    assert not any(says in wrong for says in named)


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("return l + P.sum(axis=1)", "l of the tiles before is not multiplied by alpha."),
        ("return alpha * (l + P.sum(axis=1))", "alpha also multiplies the sum of this tile."),
        ("return P", "l has the shape"),
        ("return 1.001 * (alpha * l + P.sum(axis=1))", "the engine has"),
        ("return nothing", "line 2: NameError"),
        ("return 'l'", "it returns str"),
        ("open('x')", "stopped: it wants to open a file"),
        ("np.save('x', P)", "stopped: it wants to open a file"),
        ("import socket", "it imports socket"),
        ("import os; os.system('true')", "stopped: it wants to do os.system"),
        ("return np.ones(2**30)", "stopped: it wants more than 512 MiB of memory"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(calls, body, words):
    told = said(calls, body)
    assert words in told
    assert "\n" not in told


def test_a_file_that_is_opened_counts_even_where_the_error_is_caught(calls):
    body = "try: open('x')\n    except BaseException: pass\n    return alpha * l + P.sum(axis=1)"
    assert said(calls, body) == "stopped: it wants to open a file"


@pytest.mark.long
def test_a_loop_without_an_end_is_stopped(calls, monkeypatch):
    monkeypatch.setattr("simulator.exercises.process.SECONDS", 3.0)
    assert said(calls, "while True: pass").startswith("stopped: it did not end within")


@pytest.mark.long
def test_the_packaged_program_is_the_child_itself(calls, monkeypatch):
    started = [sys.executable, "-m", "ui", "exercises", "--child"]
    monkeypatch.setattr("simulator.exercises.process.command", lambda: started)
    assert said(calls, "return alpha * l + P.sum(axis=1)") == ""
    assert said(calls, "open('x')") == "stopped: it wants to open a file"
    monkeypatch.undo()
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert command() == [sys.executable, "exercises", "--child"]
