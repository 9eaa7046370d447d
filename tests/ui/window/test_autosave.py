"""Unsaved changes after a crash: copied, offered once, restored or thrown away; never lost."""

import os
import subprocess
import sys

import pytest
from PySide6.QtWidgets import QMessageBox

from simulator.base.assets import LESSONS, SCENARIOS
from simulator.problem.scenario import load_scenario, save_scenario, with_values
from tests.helpers.changes import choose_algorithm
from tests.helpers.programs import run, started
from ui.app.start import make_window
from ui.window.autosave import Autosave, Offer, find_orphans, offer

CHANGE_AND_BE_KILLED = """
if once("change"):
    change(algorithm="flash1")
if w.isWindowModified() and copies(w) and once("told"):
    say("copied")
"""
LOCK_AND_BE_KILLED = """
import os, signal, sys
from PySide6.QtCore import QLockFile

locks = [QLockFile(os.path.join(sys.argv[1], name)) for name in ("1-aaaa.lock", "2-bbbb.lock")]
assert all(lock.tryLock(0) for lock in locks)
os.kill(os.getpid(), signal.SIGKILL)
"""
CHANGE_AND_CLOSE = """
if once("change"):
    change(algorithm="flash1")
if w.isWindowModified() and copies(w) and once("closed"):
    say("copied")
    w.close()
"""


def crash(folder, *arguments):
    """Run the program until its unsaved changes are copied, and kill it."""
    with started(folder, CHANGE_AND_BE_KILLED, *arguments) as process:
        assert process.stdout.readline() == "copied\n"


def copies(folder):
    return sorted((folder / "autosave").glob("*"))


def kept(folder):
    return sorted((folder / "autosave").glob("*.toml"))


@pytest.fixture
def opened(qapp, settings):
    """A window as the program opens it, with its copies; closed at the end."""
    windows = []

    def make(path=SCENARIOS / "flash2.toml"):
        window = make_window(path, settings=settings)
        autosave = Autosave(window.session, settings.folder, wait_ms=10)
        windows.append((window, autosave))
        window.show()
        window.session.settle()
        return window, autosave

    yield make
    for window, autosave in windows:
        autosave.finish()
        window.close()
        window.deleteLater()


def change(window, algorithm="flash1"):
    choose_algorithm(window, algorithm)
    window.session.settle()


@pytest.mark.long
def test_a_killed_program_is_offered_and_restored_by_the_next(tmp_path, mine):
    crash(tmp_path, str(mine))
    assert len(kept(tmp_path)) == 1
    done = run(
        tmp_path,
        """
        if box("restore") and once("answer"):
            say(box("restore").text())
            say(w.session.path.stem, w.session.scenario.attention.algorithm)
            button("restore", "Restore").click()
        if w.isWindowModified() and copies(w) and once("closed"):
            say(w.session.path.name, w.session.scenario.attention.algorithm, len(copies(w)))
            w.close()
        """,
    )
    lines = done.stdout.splitlines()
    assert "“Causal" in lines[0]
    assert lines[1] == "flash2 flash2"  # the demo is on show while the question is asked
    assert lines[2] == "größe 1.toml flash1 1"
    assert (done.returncode, done.stderr) == (0, "")
    assert not copies(tmp_path)
    assert load_scenario(tmp_path / "unsaved.toml").attention.algorithm == "flash1"


@pytest.mark.long
def test_a_program_that_closes_leaves_nothing_to_offer(tmp_path):
    done = run(tmp_path, CHANGE_AND_CLOSE)
    assert (done.stdout, done.returncode) == ("copied\n", 0)
    assert not copies(tmp_path)
    copy = load_scenario(tmp_path / "unsaved-flash2.toml")  # it started with the demo
    assert copy.attention.algorithm == "flash1"
    done = run(tmp_path, 'say(box("restore")); w.close()')
    assert done.stdout.splitlines()[0] == "None"


@pytest.mark.long
def test_what_a_running_program_keeps_is_not_offered(tmp_path):
    with started(tmp_path, CHANGE_AND_BE_KILLED) as process:
        assert process.stdout.readline() == "copied\n"
        assert kept(tmp_path)
        assert not find_orphans(tmp_path)
    found = find_orphans(tmp_path)
    assert [orphan.scenario.attention.algorithm for orphan in found] == ["flash1"]
    assert not find_orphans(tmp_path)  # offered by one who has started, and not by another
    found[0].leave()


@pytest.mark.long
def test_restored_changes_are_unsaved_and_save_goes_to_their_file(tmp_path, mine, opened):
    crash(tmp_path, str(mine))
    window, autosave = opened()
    box = offer(window, autosave)
    box.findChild(type(box.defaultButton()), "restore").click()
    window.session.settle()
    assert window.isWindowModified()
    assert window.session.scenario.attention.algorithm == "flash1"
    assert kept(tmp_path) == [autosave.path]
    assert load_scenario(mine).attention.algorithm == "flash2"
    window.files.save()
    assert load_scenario(mine).attention.algorithm == "flash1"
    assert not copies(tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("again", [False, True], ids=["discard", "later"])
def test_discard_removes_and_later_asks_again(tmp_path, opened, again):
    crash(tmp_path)
    window, autosave = opened()
    box = offer(window, autosave)
    assert kept(tmp_path)
    if again:
        box.reject()
    else:
        box.findChild(type(box.defaultButton()), "discard").click()
    window.session.settle()
    assert not window.isWindowModified()
    assert bool(kept(tmp_path)) is again
    assert len(find_orphans(tmp_path)) == again


@pytest.mark.long
def test_of_several_the_latest_is_restored_and_the_others_are_recent_files(tmp_path, opened):
    crash(tmp_path, str(SCENARIOS / "naive.toml"))
    crash(tmp_path, str(SCENARIOS / "grouped-heads.toml"))
    older, latest = sorted(kept(tmp_path), key=lambda path: path.stat().st_mtime_ns)
    wanted, other = load_scenario(latest), load_scenario(older)
    window, autosave = opened()
    box = offer(window, autosave)
    assert "1 older" in box.informativeText()
    box.findChild(type(box.defaultButton()), "restore").click()
    window.session.settle()
    assert window.session.scenario == wanted
    assert load_scenario(window.settings.recent[0]) == other
    assert kept(tmp_path) == [autosave.path]


@pytest.mark.long
def test_saving_and_undoing_remove_the_copy(opened, settings, tmp_path, qtbot):
    window, autosave = opened()
    change(window)
    qtbot.waitUntil(lambda: autosave.kept)
    window.actions_by_name["undo"].trigger()
    window.session.settle()
    assert not copies(settings.folder)
    window.actions_by_name["redo"].trigger()
    window.session.settle()
    qtbot.waitUntil(lambda: autosave.kept)
    window.files.save_to(tmp_path / "saved.toml")
    assert not copies(settings.folder)


def test_a_later_change_is_in_the_copy(opened, qtbot):
    window, autosave = opened()
    change(window)
    qtbot.waitUntil(lambda: autosave.kept)
    change(window, "naive")
    qtbot.waitUntil(lambda: autosave.kept)
    assert load_scenario(autosave.path).attention.algorithm == "naive"


def test_a_lesson_neither_removes_nor_replaces_the_copy(opened, qtbot):
    window, autosave = opened()
    change(window)
    window.lessons.open(LESSONS / "05-online-softmax.md")
    window.session.settle()
    assert window.session.scenario.attention.algorithm == "flash2"
    qtbot.waitUntil(lambda: autosave.kept)
    change(window, "naive")
    assert load_scenario(autosave.path).attention.algorithm == "flash1"
    window.lessons.player.leave()
    window.session.settle()
    assert window.session.scenario.attention.algorithm == "flash1"
    assert window.isWindowModified()
    qtbot.waitUntil(lambda: autosave.kept)


def test_changes_whose_input_is_gone_stay_for_later(tmp_path, opened):
    folder = tmp_path / "autosave"
    folder.mkdir()
    gone = {"source": "file", "path": str(tmp_path / "gone.npz")}
    save_scenario(
        with_values(load_scenario(SCENARIOS / "flash2.toml"), {"input": gone}), folder / "x.toml"
    )
    window, autosave = opened()
    box = offer(window, autosave)
    box.findChild(type(box.defaultButton()), "restore").click()
    window.session.settle()
    assert "gone.npz" in window.messages.text()
    assert not window.isWindowModified()
    assert len(find_orphans(tmp_path)) == 1


def test_a_copy_that_cannot_be_read_asks_nothing_and_stays(tmp_path, opened):
    folder = tmp_path / "autosave"
    folder.mkdir()
    (folder / "later.toml").write_text("[attention]\nunheard_of = 1\n", encoding="utf-8")
    window, autosave = opened()
    assert offer(window, autosave) is None
    assert kept(tmp_path) == [folder / "later.toml"]


def test_where_nothing_can_be_written_the_window_goes_on(tmp_path, opened, qtbot):
    (tmp_path / "autosave").write_text("a file, no folder", encoding="utf-8")
    window, autosave = opened()
    change(window)
    autosave.flush()
    assert (autosave.kept, autosave.pending) == (False, True)
    assert window.session.scenario.attention.algorithm == "flash1"


@pytest.mark.long
def test_the_question_is_one_box_over_the_demo(tmp_path, opened):
    crash(tmp_path)
    window, autosave = opened()
    box = offer(window, autosave)
    assert isinstance(box, Offer)
    assert window.findChildren(QMessageBox) == [box]
    assert {b.text() for b in box.buttons()} == {"Restore", "Discard", "Later"}
    box.reject()


def test_what_was_killed_before_its_copy_was_whole_leaves_nothing(tmp_path, opened):
    """A lock of a process that has ended, and a copy that has not got its name yet."""
    folder = tmp_path / "autosave"
    folder.mkdir()
    subprocess.run([sys.executable, "-c", LOCK_AND_BE_KILLED, str(folder)], check=False)
    part = folder / ".2-bbbb.toml.0123abcd.part"
    part.write_bytes(b"half")
    os.utime(part, (0, 0))
    window, autosave = opened()
    change(window)
    autosave.flush()
    assert len(copies(tmp_path)) >= 4
    assert find_orphans(tmp_path) == []
    assert {path.stem for path in copies(tmp_path)} == {autosave.path.stem}
