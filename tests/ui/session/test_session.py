"""Session and worker: latest wins, failures change nothing, memory of Qt's None stays put."""

import sys
import threading
import time
from dataclasses import fields
from functools import partial

import numpy as np
import pytest
from PySide6.QtGui import QColor, QImage, QPainter

from kernels.devices.driver import GpuStatus
from kernels.devices.host.compiler import find_compiler
from kernels.devices.host.device import HostDevice
from kernels.devices.registry import GpuAccess, choose_engine
from kernels.errors import KernelError
from simulator.base.assets import SCENARIOS
from simulator.base.errors import InputError
from simulator.engines.numpy_engine import NumpyEngine
from simulator.problem.scenario import load_scenario, parse_scenario, with_values
from simulator.problem.workload import read_inputs
from simulator.program.algorithms import ALGORITHMS
from simulator.program.playback import Cursor
from tests.helpers.changes import change
from tests.helpers.runs import fitted, needed_mask, scenario
from tests.helpers.sessions import make_session
from ui.session.engines import Engines
from ui.session.session import Session
from ui.session.worker import Worker

CAUSAL = {"mask": {"causal": True}}


def test_of_waiting_jobs_of_a_kind_only_the_last_runs(qapp):
    worker, ran, begun, gate = Worker(), [], threading.Event(), threading.Event()
    worker.submit("slow", lambda: (begun.set(), gate.wait(5)))
    assert begun.wait(5)
    for n in range(20):
        worker.submit("view", lambda n=n: ran.append(n))
    gate.set()
    deadline = time.monotonic() + 5
    while not worker.settled and time.monotonic() < deadline:
        qapp.processEvents()
    assert ran == [19]
    worker.stop()


def test_stepping_quickly_ends_at_the_last_cursor_asked_for(qapp):
    session = make_session()
    views = []
    session.view_changed.connect(views.append)
    for visit in range(10):
        session.go(Cursor(visit, 0))
    session.settle()
    assert views[-1].snapshot.cursor == Cursor(9, 0)
    assert len(views) <= 10
    session.close()


def test_a_refused_scenario_changes_nothing(qapp):
    session = make_session()
    view, trace, refusals = session.view, session.trace, []
    session.refused.connect(refusals.append)
    tables = {"input": {"source": "file", "path": "/no/such.npz"}}
    change(session, tables, "input")
    assert isinstance(refusals[0], InputError)
    assert session.view is view
    assert session.trace is trace
    assert not session.undo_stack.canUndo()
    session.close()


def test_of_two_proposals_in_a_row_the_second_stays(qapp):
    session = make_session()
    first = with_values(session.scenario, {"tiling": {"rows": 8}})
    second = with_values(session.scenario, {"tiling": {"rows": 32}})
    session.propose(first, "rows 8")
    session.propose(second, "rows 32")
    session.settle()
    assert session.trace.workload.rows == 32
    session.undo_stack.undo()
    session.settle()
    assert session.trace.workload.rows == 16
    session.close()


def rows(session, count):
    return with_values(session.scenario, {"tiling": {"rows": count}})


def refused(session):
    return with_values(session.scenario, {"input": {"source": "file", "path": "/no/such.npz"}})


def counts(session):
    """Return what the stack says is on show, and what is."""
    return session.undo_stack.index(), session.trace.workload.rows


@pytest.fixture
def three(qapp):
    """Return a session with three scenarios: 16, 8 and 4 rows."""
    session = make_session()
    for count in (8, 4):
        session.propose(rows(session, count), f"rows {count}")
        session.settle()
    yield session
    session.close()


def test_undo_of_which_nothing_comes_is_not_counted(three):
    three.undo_stack.undo()
    three.undo_stack.undo()
    three.propose(refused(three), "before it is there")
    three.settle()
    assert counts(three) == (2, 4)
    three.undo_stack.undo()
    three.settle()
    assert counts(three) == (1, 8)
    three.undo_stack.redo()
    three.settle()
    assert counts(three) == (2, 4)


def test_a_change_while_undo_is_on_its_way_follows_what_is_on_show(three):
    three.undo_stack.undo()
    three.propose(rows(three, 32), "rows 32")
    three.settle()
    assert counts(three) == (3, 32)
    for left in (4, 8, 16):
        three.undo_stack.undo()
        three.settle()
        assert three.trace.workload.rows == left
    assert not three.undo_stack.canUndo()


def test_undo_of_a_file_that_is_gone_changes_nothing(three, tmp_path):
    target = tmp_path / "q.npz"
    array = np.ones((1, 64, 32), np.float16)
    np.savez(target, q=array, k=array, v=array)
    tables = {"input": {"source": "file", "path": str(target)}}
    change(three, tables, "input")
    change(three, {"input": {"source": "random"}}, "random")
    before, refusals = counts(three), []
    assert before[0] == 4
    three.refused.connect(refusals.append)
    target.unlink()
    three.undo_stack.undo()
    three.settle()
    assert len(refusals) == 1
    assert counts(three) == before


def test_of_undo_and_redo_in_a_row_the_last_counts(three):
    three.undo_stack.undo()
    three.undo_stack.undo()
    three.undo_stack.redo()
    three.settle()
    assert counts(three) == (1, 8)


def test_what_is_saved_while_undo_is_on_its_way_is_what_is_on_show(three, tmp_path):
    three.undo_stack.undo()
    three.save(tmp_path / "a.toml")
    three.settle()
    assert counts(three) == (2, 4)
    assert three.undo_stack.isClean()
    assert load_scenario(tmp_path / "a.toml") == three.scenario


def test_undo_keeps_the_name_that_the_scenario_was_saved_under(qapp, tmp_path):
    session, first, second = make_session(), tmp_path / "first.toml", tmp_path / "second.toml"
    session.save(first)
    session.open(first)
    session.settle()
    session.propose(rows(session, 8), "rows 8")
    session.settle()
    session.save(second)
    for step in (session.undo_stack.undo, session.undo_stack.redo):
        step()
        session.settle()
        assert session.path == second, "the first file stays as it was"
    session.open(SCENARIOS / "naive.toml")
    session.settle()
    session.undo_stack.undo()
    session.settle()
    assert session.path == second
    session.close()


def test_inputs_are_kept_while_only_the_mask_changes(qapp):
    session = make_session()
    inputs = session.trace.inputs
    change(session, {"mask": {"causal": False}}, "mask")
    assert session.trace.inputs is inputs
    change(session, {"input": {"seed": 5}}, "seed")
    assert session.trace.inputs is not inputs
    session.close()


def test_an_error_that_is_none_of_the_users_is_raised_not_swallowed(qapp, monkeypatch, qtbot):
    session = make_session()

    def broken(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(session.trace, "snapshot", broken)
    with qtbot.captureExceptions() as raised:
        session.go(Cursor(3, 0))
        session.settle()
    assert raised[0][0] is ZeroDivisionError
    session.close()


@pytest.mark.long
def test_every_demo_opens_and_can_be_stepped_through(qapp):
    session = Session("numpy")
    for path in sorted(SCENARIOS.glob("*.toml")):
        session.open(path)
        session.settle()
        assert session.scenario == load_scenario(path)
        session.last()
        session.settle()
        assert session.view.snapshot.cursor.visit == len(session.trace) - 1
    session.close()


def test_void_calls_of_qt_keep_the_count_of_none(qapp):
    """Later releases of Qt for Python lose a reference to None at each call, and then abort."""
    image = QImage(10, 10, QImage.Format.Format_RGB32)
    painter = QPainter(image)
    before = sys.getrefcount(None)
    for _ in range(10_000):
        painter.fillRect(0, 0, 5, 5, QColor("red"))
    change = sys.getrefcount(None) - before
    painter.end()
    assert abs(change) < 100


@pytest.mark.skipif(not find_compiler().available, reason=find_compiler().reason)
def test_a_device_that_fails_is_left_for_numpy_and_nothing_is_lost(qapp):
    class Mortal(HostDevice):
        lost = False

        def download(self, buffer):
            if self.lost:
                raise RuntimeError("device lost")
            return super().download(buffer)

    device = Mortal()
    choose = partial(
        choose_engine, gpu=GpuAccess(lambda: GpuStatus("a GPU", "13.0", ""), lambda: device)
    )
    session = Session(Engines("cupy", choose))
    session.open(SCENARIOS / "causal.toml")
    session.settle()
    assert session.trace.engine.name == "host"
    told = []
    session.fell_back.connect(told.append)

    scenario = session.scenario
    session.trace.forget()  # else all is there that a few tiles ask of a device
    device.lost = True
    session.go(Cursor(3, 2))
    session.settle()
    assert session.trace.engine.name == "numpy"
    assert session.view.snapshot.cursor == Cursor(3, 2)
    assert session.scenario == scenario
    assert len(told) == 1
    assert "device lost" in told[0]
    session.close()


@pytest.mark.skipif(not find_compiler().available, reason=find_compiler().reason)
def test_a_device_that_fails_in_long_work_is_left_as_well(qapp):
    session = Session("host")
    session.open(SCENARIOS / "causal.toml")
    session.settle()
    told = []
    session.fell_back.connect(told.append)

    def lost(report):
        raise KernelError("device lost")

    session.tasks.start("race", "racing", lost, told.append)
    session.settle()
    assert session.trace.engine.name == "numpy"
    assert len(told) == 1
    assert "device lost" in told[0]
    session.close()


def test_auto_takes_numpy_where_making_the_device_fails(qapp):
    def broken():
        raise MemoryError("no room on the device")

    gpu = GpuAccess(lambda: GpuStatus("a GPU", "13.0", ""), broken)
    session = Session(Engines("auto", partial(choose_engine, gpu=gpu)))
    session.open(SCENARIOS / "causal.toml")
    session.settle()
    assert session.trace.engine.name == "numpy"
    assert "no room on the device" in session.why
    session.close()


def test_why_numpy_computes_is_told_of_each_kernel():
    """Tiles for which there is no kernel say so, and others do not say it for them."""

    def some_tiles_only(_, workload, inputs):
        return NumpyEngine(workload, inputs), "no kernel for 16 × 24" if workload.cols == 24 else ""

    engines = Engines("auto", some_tiles_only)
    without = engines.trace(load_scenario(SCENARIOS / "grouped-heads.toml")).workload
    other = engines.trace(load_scenario(SCENARIOS / "causal.toml")).workload
    assert engines.why(without) == "no kernel for 16 × 24"
    assert engines.why(other) == ""


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ({}, {"position": {"kind": "rope"}}),
        ({"position": {"kind": "rope"}}, {"position": {"kind": "rope", "offset": 7}}),
        (
            {"attention": {"algorithm": "linear"}},
            {"attention": {"algorithm": "linear", "feature_map": "performer", "features": 8}},
        ),
        ({}, {"attention": {"algorithm": "flash2", "seqlen_q": 12}}),
        *(
            ({"attention": {"algorithm": first}, **CAUSAL}, {"attention": then, **CAUSAL})
            for first, then in (
                ("linear", {"algorithm": "gla"}),
                ("gla", {"algorithm": "deltanet"}),
                ("gla", {"algorithm": "gla", "decay": 0.5}),
                ("deltanet", {"algorithm": "deltanet", "strength": 0.5}),
            )
        ),
    ],
    ids=str,
)
def test_inputs_that_are_kept_are_those_of_the_scenario(first, then):
    sizes = {"algorithm": "flash2", "seqlen_q": 9, "head_dim": 4}

    def made(tables):
        own = {**tables, "attention": {**sizes, **tables.get("attention", {})}}
        return parse_scenario(own)

    engines = Engines("numpy")
    engines.trace(made(first))
    found = engines.trace(made(then))
    fresh = read_inputs(found.workload)
    assert_same_inputs(found.inputs, fresh)
    found.row_block(0, 0)


@pytest.mark.sweep(keep=3)
@pytest.mark.parametrize("first", ALGORITHMS)
def test_inputs_that_are_kept_are_those_of_the_next_algorithm(first):
    engines = Engines("numpy")
    for then in ALGORITHMS:
        for name in (first, then):
            sizes = {"nq": 9, "nk": 9, "d": 4, "mask": needed_mask(name)}
            found = engines.trace(scenario(name, **fitted(name, **sizes)))
        assert_same_inputs(found.inputs, read_inputs(found.workload))
        found.row_block(0, 0)


def assert_same_inputs(found, fresh):
    for field in fields(found):
        ours, theirs = (getattr(each, field.name) for each in (found, fresh))
        assert type(ours) is type(theirs)
        if isinstance(ours, np.ndarray):
            np.testing.assert_array_equal(ours, theirs)
