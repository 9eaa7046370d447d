"""Long work: the latest of a kind counts, progress is told, Cancel leaves things as they were."""

import threading
import time

from PySide6.QtCore import Qt

from ui.session.tasks import Tasks


def drain(qapp, tasks, seconds=10.0):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        done = tasks.settled
        qapp.processEvents()
        if done and tasks.settled:
            return
        time.sleep(0.001)
    raise AssertionError("the tasks did not settle")


def endless(started):
    def job(report):
        started.set()
        for n in range(100_000):
            report(n / 100_000)
            time.sleep(0.001)
        return "the end"

    return job


def test_a_result_is_told_once_with_progress_before_it(qapp):
    tasks, told, results = Tasks(), [], []
    tasks.progressed.connect(lambda words, share, left: told.append((words, share)))

    def job(report):
        for n in range(4):
            time.sleep(0.06)
            report((n + 1) / 4)
        return 42

    tasks.start("sum", "adding up", job, results.append)
    drain(qapp, tasks)
    assert results == [42]
    assert told
    assert all(words == "adding up" for words, _ in told)
    assert [share for _, share in told] == sorted(share for _, share in told)
    tasks.close()


def test_later_work_of_a_kind_replaces_what_runs(qapp):
    tasks, results, started = Tasks(), [], threading.Event()
    tasks.start("search", "searching", endless(started), results.append)
    assert started.wait(5)
    tasks.start("search", "searching", lambda report: "second", results.append)
    drain(qapp, tasks)
    assert results == ["second"]
    tasks.close()


def test_cancelled_work_tells_nothing_and_ends_soon(qapp):
    tasks, results, started = Tasks(), [], threading.Event()
    tasks.start("search", "searching", endless(started), results.append)
    assert started.wait(5)
    tasks.cancel()
    drain(qapp, tasks)
    assert results == []
    tasks.close()


def test_a_failure_is_told(qapp):
    tasks, failures = Tasks(), []
    tasks.failed.connect(failures.append)

    def job(report):
        raise ValueError("no such thing")

    tasks.start("bad", "failing", job, lambda _: None)
    drain(qapp, tasks)
    assert [str(error) for error in failures] == ["no such thing"]
    tasks.close()


def test_the_header_shows_long_work_and_cancels_it(open_window, qtbot):
    window = open_window()
    strip, started, results = window.header.progress, threading.Event(), []
    window.session.tasks.start("search", "searching tiles", endless(started), results.append)
    qtbot.waitUntil(strip.isVisible, timeout=5000)
    assert "searching tiles" in strip.words.text()
    qtbot.mouseClick(strip.button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not strip.isVisible(), timeout=5000)
    assert results == []


def test_views_keep_coming_while_work_runs(open_window, qapp):
    window, started = open_window("causal"), threading.Event()
    session = window.session
    session.tasks.start("search", "searching", endless(started), lambda _: None)
    assert started.wait(5)
    before = session.view
    session.step()
    deadline = time.monotonic() + 5
    while session.view is before and time.monotonic() < deadline:
        qapp.processEvents()
    assert session.view is not before
    session.tasks.cancel()


def test_rest_is_not_told_while_later_work_runs(qapp):
    tasks, rests, started = Tasks(), [], threading.Event()
    tasks.rested.connect(lambda: rests.append(tasks.settled))
    qapp.processEvents()
    rests.clear()
    tasks.start("first", "first", lambda report: 1, lambda _: None)
    time.sleep(0.1)  # it has ended, and what it told waits for the event loop
    tasks.start("second", "second", endless(started), lambda _: None)
    assert started.wait(5)
    qapp.processEvents()
    assert rests == []
    tasks.cancel()
    drain(qapp, tasks)
    assert rests == [True]
    tasks.close()


def test_rest_is_told_also_if_work_is_cancelled_before_it_begins(qtbot):
    tasks, results = Tasks(), []
    for _ in range(30):
        with qtbot.waitSignal(tasks.rested, timeout=5000):
            tasks.start("short", "counting", lambda report: 1, results.append)
            tasks.cancel()
    assert results == []
    tasks.close()


def test_what_was_found_on_the_way_is_not_shown_after_the_end(qapp):
    tasks, shown, found = Tasks(), [], threading.Event()

    def job(report):
        tasks.show("search", lambda: shown.append("half"))
        found.set()

    tasks.start("search", "searching", job, lambda _: None)
    assert found.wait(5)
    tasks.close()
    qapp.processEvents()
    assert shown == []
