"""Edit, Copy this run as NumPy: what is on the clipboard runs, and says what it has checked."""

import subprocess
import sys

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest

from tests.helpers.changes import change


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("demo", ["flash2", "split-kv", "window-sinks"])
def test_the_copied_script_checks_the_row_that_is_explained(open_window, tmp_path, demo):
    window = open_window(demo, (1280, 720))
    session = window.session
    session.choose_row(5)
    session.settle()
    keys = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
    QTest.keyClick(window, Qt.Key.Key_C, keys)
    session.settle()
    script = tmp_path / "run.py"
    script.write_text(QGuiApplication.clipboard().text(), encoding="utf-8")
    command = [sys.executable, "-W", "error", "-I", str(script)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    w, view = session.trace.workload, session.view
    head, row = w.single(view.snapshot.visit.head, view.report.row)
    assert f"head {head}, row {row}: O off by" in result.stdout
    assert "O of all rows" in result.stdout
    assert "Copied: " in window.messages.accessibleName()


def test_a_run_with_a_fault_is_refused_in_one_line(open_window):
    window = open_window("flash2", (1280, 720))
    QGuiApplication.clipboard().setText("before")
    session = window.session
    change(session, {"faults": {"no_maximum": True}}, "fault")
    window.actions_by_name["copy_run"].trigger()
    session.settle()
    assert QGuiApplication.clipboard().text() == "before"
    assert "a run without faults" in window.messages.accessibleName()
