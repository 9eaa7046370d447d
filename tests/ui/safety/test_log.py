"""The log: what is done when it is asked for, what goes wrong always, and it stays small."""

import faulthandler
import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import QMessageLogContext, QtMsgType, qCritical, qInstallMessageHandler

from simulator.base.assets import SCENARIOS
from simulator.base.errors import InputError
from tests.helpers.programs import ROOT, run
from ui.app.cli import main
from ui.safety.log import LOG, log_path, start_log, stop_log, take_qt_message

WORK_AND_CLOSE = """
if once("change"):
    change(algorithm="naive")
    from ui.export.options import ExportOptions
    from ui.export.window_job import still_options, submit
    options = ExportOptions(str(w.settings.folder / "picture.png"))
    submit(w.session, still_options(w.session, options), lambda export: w.close())
"""


@pytest.fixture(autouse=True)
def ended(monkeypatch, tmp_path):
    monkeypatch.setenv("TILESCOPE_SETTINGS", str(tmp_path / "settings.ini"))
    before = faulthandler.is_enabled()
    yield
    stop_log()
    if before:
        faulthandler.enable()


def text(path):
    return path.read_text(encoding="utf-8")


@pytest.mark.long
def test_the_log_of_a_session_tells_what_was_done(tmp_path):
    file = tmp_path / "all done.log"
    demo = SCENARIOS / "causal.toml"
    done = run(tmp_path, WORK_AND_CLOSE, str(demo), "--log", str(file))
    assert done.returncode == 0
    told = text(file)
    assert "Tilescope" in told.splitlines()[0]
    assert f"scenario {demo}: flash2" in told
    assert ": naive," in told
    assert "engine numpy, CPU" in told
    assert "exporting picture.png: begun" in told
    assert "exporting picture.png: done in" in told
    assert not log_path().exists()


@pytest.mark.long
def test_without_a_file_the_place_is_told(tmp_path):
    done = run(tmp_path, "w.close()", "--log")
    assert done.stderr == f"log: {log_path()}\n"
    assert "scenario" in text(log_path())


@pytest.mark.long
def test_unasked_only_what_goes_wrong_is_kept(tmp_path):
    done = run(tmp_path, WORK_AND_CLOSE)
    assert (done.returncode, done.stderr) == (0, "")
    assert text(log_path()) == ""
    start_log()
    LOG.info("done")
    LOG.warning("gone wrong")
    assert text(log_path()).endswith("WARNING gone wrong\n")
    assert "done" not in text(log_path())


@pytest.mark.parametrize("name", ["demo.toml", "lesson.md", "mine.NPZ"])
def test_what_users_open_is_not_written_to(tmp_path, capsys, monkeypatch, name):
    monkeypatch.chdir(tmp_path)  # a long path would be cut in the message
    Path(name).write_text("mine", encoding="utf-8")
    assert main(["--log", name]) == 2
    assert capsys.readouterr().err.startswith(f'--log: "{name}": expected a file for the log')
    assert text(tmp_path / name) == "mine"


def test_a_log_that_cannot_be_written_is_refused_where_it_was_asked_for(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="a file that can be written"):
        start_log(str(tmp_path / "no" / "such" / "folder.log"))
    (tmp_path / "blocked").write_text("a file, no folder", encoding="utf-8")
    monkeypatch.setenv("TILESCOPE_SETTINGS", str(tmp_path / "blocked" / "settings.ini"))
    with pytest.raises(InputError):
        start_log("")
    assert start_log() is None


def test_it_goes_round_and_a_crash_goes_to_the_file_that_is_open(tmp_path):
    path = start_log(str(tmp_path / "small.log"), most_bytes=2000)
    for n in range(200):
        LOG.info("line %d", n)
    faulthandler.dump_traceback(file=next(h for h in LOG.handlers if hasattr(h, "stream")).stream)
    files = sorted(tmp_path.glob("small.log*"))
    assert files == [path, path.with_name("small.log.1")]
    assert all(file.stat().st_size < 6000 for file in files)
    assert "line 199" in text(path)
    assert "line 0\n" not in text(path) + text(files[1])


def test_a_second_start_appends(tmp_path):
    for words in ("first", "second"):
        path = start_log(str(tmp_path / "kept.log"))
        LOG.info(words)
        stop_log()
    assert [line.split()[-1] for line in text(path).splitlines()] == ["first", "second"]


def test_what_qt_says_is_kept_and_not_printed(tmp_path, capfd):
    path = start_log(str(tmp_path / "qt.log"))
    before = qInstallMessageHandler(take_qt_message)
    try:
        qCritical("of no use to anybody")
    finally:
        qInstallMessageHandler(before)
    take_qt_message(QtMsgType.QtDebugMsg, QMessageLogContext(), "chatter")
    assert "Qt: of no use to anybody" in text(path)
    assert "chatter" not in text(path)
    assert capfd.readouterr().err == ""


def test_without_a_log_nothing_is_printed():
    lines = "from ui.safety.log import LOG; LOG.error('nobody listens')"
    done = subprocess.run(
        [sys.executable, "-c", lines], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("", "")
