"""Exporting from the window: the dialog, pictures of the view, panels on the clipboard."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from PySide6.QtCore import QByteArray, QCoreApplication, QEvent, Qt
from PySide6.QtGui import QGuiApplication, QImage
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QAbstractSpinBox, QComboBox, QDialog, QLineEdit, QMessageBox, QWidget

from simulator.base.assets import SCENARIOS
from simulator.problem.scenario import with_values
from simulator.program.playback import Cursor
from tests.helpers.by_hand import choosing, retype
from tests.helpers.waiting import wait_until
from tests.ui.export.helpers import frames_of, make, names, picture
from ui.app.cli import main
from ui.export.dialog import ExportDialog
from ui.export.formats import FORMATS
from ui.export.options import ExportOptions
from ui.panels.memory.panel import MemoryPanel
from ui.panels.transport.painter import position_words

DEMO = "causal"


@pytest.fixture
def dialog(open_window, tmp_path):
    window = open_window("causal")
    window.actions_by_name["export"].trigger()
    out = window.findChild(ExportDialog)
    out.target_edit.setText(f"{tmp_path}/a.mp4")
    out.size_box.setCurrentText("480x320")
    yield out
    window.session.tasks.cancel()
    out.close()


def agree(parent, text="Replace"):
    """Answer the question whether something may be written over."""
    (box,) = (box for box in parent.findChildren(QMessageBox, "replace") if box.isVisible())
    next(button for button in box.buttons() if button.text() == text).click()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def finished(dialog, qtbot, seconds=60):
    qtbot.waitUntil(lambda: dialog.running is None, timeout=1000 * seconds)


def test_the_dialog_and_the_command_make_the_same_file(dialog, qtbot, tmp_path):
    retype(dialog.target_edit, f"{tmp_path}/a.apng")
    assert dialog.target_edit.text() == f"{tmp_path}/a.apng"
    dialog.fps_box.setValue(10)
    dialog.pace_box.setCurrentText("seconds in all")
    dialog.seconds_box.setValue(1.2)
    dialog.range_box.setCurrentText("Visits")
    dialog.start_box.setValue(3)
    dialog.stop_box.setValue(6)
    assert "12 frames, 1.2 s at 10 fps" in dialog.words.text()
    dialog.export_button.click()
    finished(dialog, qtbot)
    assert dialog.words.text().startswith("Written")
    typed = ["--size", "480x320", "--fps", "10", "--length", "1.2", "--visits", "2:6"]
    assert main(["export", str(SCENARIOS / "causal.toml"), "-o", f"{tmp_path}/b.apng", *typed]) == 0
    pairs = list(zip(frames_of(tmp_path / "a.apng"), frames_of(tmp_path / "b.apng"), strict=True))
    assert len(pairs) == 12
    assert all(np.array_equal(a, b) for a, b in pairs)


@pytest.mark.long
def test_this_view_is_the_picture_of_the_command(dialog, qtbot, tmp_path):
    session = dialog.parent().session
    session.go_to_tile(2, 1)
    session.choose_row(35)
    session.settle()
    session.step(False)
    session.settle()
    cursor = session.view.snapshot.cursor
    dialog.format_box.setCurrentText("PNG picture")
    assert dialog.range_box.currentText() == "This view"
    dialog.target_edit.setText(f"{tmp_path}/a.png")
    dialog.export_button.click()
    finished(dialog, qtbot)
    assert dialog.words.text().startswith("Written")
    make(ExportOptions(f"{tmp_path}/b.png", size=(480, 320), op=cursor.op, row=35,
                       visits=(cursor.visit, cursor.visit + 1)))  # fmt: skip
    assert np.array_equal(picture(tmp_path / "a.png"), picture(tmp_path / "b.png"))


def test_cancel_stops_and_leaves_what_was_there(dialog, qtbot, tmp_path):
    target = Path(dialog.target_edit.text())
    target.write_bytes(b"old")
    dialog.pace_box.setCurrentText("seconds in all")
    dialog.seconds_box.setValue(600)
    dialog.export_button.click()
    agree(dialog)
    assert dialog.close_button.text() == "Cancel"
    assert dialog.close_button.hasFocus() or not dialog.isActiveWindow()
    qtbot.waitUntil(lambda: "frames" in dialog.words.text(), timeout=20000)
    assert "18\u2009000" in dialog.words.text()
    qtbot.keyClick(dialog, Qt.Key.Key_Escape)
    assert dialog.isVisible()
    assert "Cancelled" in dialog.words.text()
    qtbot.waitUntil(lambda: dialog.parent().session.tasks.settled, timeout=5000)
    assert names(tmp_path) == ["a.mp4", "settings.ini"] or names(tmp_path) == ["a.mp4"]
    assert target.read_bytes() == b"old"
    dialog.seconds_box.setValue(0.5)  # and the next one works
    dialog.export_button.click()
    finished(dialog, qtbot)
    assert dialog.words.text().startswith("Written")
    assert target.stat().st_size > 1000


def test_what_is_there_is_replaced_only_if_the_user_agrees(dialog, qtbot, tmp_path):
    dialog.format_box.setCurrentText("PNG picture")
    target = Path(dialog.target_edit.text())
    target.write_bytes(b"old")
    dialog.export_button.click()
    agree(dialog, "Cancel")
    dialog.parent().session.settle()
    assert target.read_bytes() == b"old"
    assert dialog.export_button.isEnabled()
    dialog.export_button.click()
    agree(dialog)
    finished(dialog, qtbot)
    assert target.stat().st_size > 1000
    dialog.export_button.click()  # what was agreed to was for the file before
    agree(dialog, "Cancel")


def test_frames_that_are_there_are_found(tmp_path):
    options = ExportOptions(f"{tmp_path}/f-%03d.png")
    assert options.there == []
    for name in ("f-000.png", "f-1.png", "f-x.png", "g-000.png", "f-000.png.txt"):
        (tmp_path / name).touch()
    assert [path.name for path in options.there] == ["f-000.png", "f-1.png"]
    assert ExportOptions(f"{tmp_path}/none/").there == []


def test_visits_are_counted_as_in_the_window(dialog, qtbot):
    session = dialog.parent().session
    total = len(session.trace)
    assert (dialog.start_box.minimum(), dialog.start_box.value()) == (1, 1)
    assert (dialog.stop_box.maximum(), dialog.stop_box.value()) == (total, total)
    dialog.range_box.setCurrentText("Visits")
    dialog.start_box.setValue(3)
    dialog.stop_box.setValue(5)
    assert dialog.options().visits == (2, 5)  # of the command: from 0, up to and not with
    assert f"visits 3 to 5 of {total}" in dialog.words.text()
    session.go(Cursor(2, 0))
    session.settle()
    assert position_words(session.view.snapshot).startswith(f"visit {dialog.start_box.value()} of")
    assert "from 1" in dialog.start_box.toolTip()


def test_an_ending_that_was_not_typed_is_asked_about(window, tmp_path):
    there = tmp_path / "mine.toml"
    there.write_text("old", encoding="utf-8")
    choosing(window.files.save_as, tmp_path / "mine")
    assert there.read_text(encoding="utf-8") == "old"
    agree(window)
    assert there.read_text(encoding="utf-8") != "old"


@pytest.mark.long
def test_a_run_that_is_built_while_the_dialog_is_open(window, session, tmp_path):
    scenario = window.session.scenario
    session.propose(with_values(scenario, {"tiling": {"rows": 64, "cols": 64}}), "large tiles")
    window.files.export()
    dialog = window.findChild(ExportDialog)
    before = dialog.stop_box.value()
    session.settle()
    last = len(session.trace)
    assert last < before
    assert (dialog.start_box.maximum(), dialog.stop_box.value()) == (last, last)
    dialog.target_edit.setText(f"{tmp_path}/a.mp4")
    assert dialog.export_button.isEnabled()
    session.propose(scenario, "small tiles")
    session.settle()
    assert dialog.stop_box.value() == before


def test_closing_the_window_ends_an_export(window, qtbot, tmp_path):
    window.files.export()
    dialog = window.findChild(ExportDialog)
    dialog.target_edit.setText(f"{tmp_path}/a.mp4")
    dialog.pace_box.setCurrentText("seconds in all")
    dialog.seconds_box.setValue(600)
    dialog.export_button.click()
    qtbot.waitUntil(lambda: "frames" in dialog.words.text(), timeout=20000)
    window.close()  # waits for nobody
    wait_until(lambda: not [name for name in names(tmp_path) if "mp4" in name])


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("close", [QDialog.reject, QDialog.close, QDialog.accept])
def test_closing_the_dialog_ends_an_export(window, qtbot, tmp_path, close, hooked):
    window.files.export()
    dialog = window.findChild(ExportDialog)
    dialog.target_edit.setText(f"{tmp_path}/a.png")
    dialog.export_button.click()
    close(dialog)
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    assert window.findChild(ExportDialog) is None
    window.session.settle()
    assert not hooked
    assert not [name for name in names(tmp_path) if "png" in name]


def test_a_failure_is_told_in_the_dialog(dialog, qtbot, tmp_path):
    folder = tmp_path / "gone"
    folder.mkdir()
    dialog.target_edit.setText(f"{folder}/a.mp4")
    folder.rmdir()
    dialog.export_button.click()
    finished(dialog, qtbot)
    assert "exists" in dialog.words.text()
    assert dialog.export_button.isEnabled()


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda d: d.size_box.setCurrentText("481x320"), "even"),
        (lambda d: d.size_box.setCurrentText("large"), "WIDTHxHEIGHT"),
        (lambda d: d.size_box.setCurrentText("9x9"), "320x240"),
        (lambda d: d.target_edit.setText("/none/a.mp4"), "exists"),
        (lambda d: d.target_edit.setText("a.bmp"), "ends in"),
        (lambda d: (d.range_box.setCurrentText("Visits"), d.start_box.setValue(5),
                    d.stop_box.setValue(3)), "after the last"),
    ],
)  # fmt: skip
def test_bad_values_are_told_and_cannot_be_exported(dialog, change, word):
    assert dialog.export_button.isEnabled()
    change(dialog)
    assert word in dialog.words.text()
    assert "--" not in dialog.words.text()
    assert not dialog.export_button.isEnabled()


def test_a_format_offers_what_it_can(dialog):
    for n, spec in enumerate(FORMATS):
        dialog.format_box.setCurrentIndex(n)
        ending = "/" if spec.ending == "frames" else spec.ending
        assert dialog.target_edit.text().endswith(f"a{ending}")
        assert dialog.clear_box.isEnabled() is spec.transparent
        assert dialog.fps_box.isEnabled() is spec.film
        dialog.sound_box.setChecked(True)
        assert dialog.sound_box.isEnabled() is dialog.options().sound is bool(spec.sound)
        assert dialog.export_button.isEnabled(), dialog.words.text()
        assert dialog.options().format is spec
    for spec in FORMATS:  # and typing an ending chooses the format
        ending = "/" if spec.ending == "frames" else spec.ending
        retype(dialog.target_edit, f"b{ending}")
        assert dialog.format_box.currentData() == spec.ending


def test_every_field_can_be_reached_and_has_a_name(dialog, qtbot):
    kinds = (QComboBox, QLineEdit, QAbstractSpinBox)
    fields = [w for kind in kinds for w in dialog.findChildren(kind)
              if not isinstance(w.parent(), kinds)]  # fmt: skip
    assert len(fields) > 9
    for field in fields:
        assert field.accessibleName(), field
        assert field.focusPolicy() & Qt.FocusPolicy.TabFocus
    for widget in dialog.findChildren(QWidget):
        if widget.isVisible() and widget.width() and not widget.isWindow():
            assert dialog.rect().contains(widget.mapTo(dialog, widget.rect().center()))


def test_words_are_not_cut_off(open_window, settings):
    settings.text_scale = 2.0
    window = open_window("causal", (1280, 720))
    window.files.export()
    dialog = window.findChild(ExportDialog)
    dialog.target_edit.setText("/none/" + "long" * 12 + ".mp4")
    for box in dialog.findChildren(QComboBox):
        assert box.width() >= box.minimumSizeHint().width(), box.accessibleName()
    assert dialog.words.heightForWidth(dialog.words.width()) <= dialog.words.height()
    assert dialog.height() <= 720
    dialog.close()


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("ending", [".png", ".svg", ".pdf"])
def test_the_view_is_exported_as_it_is(ending, window, tmp_path):
    target = tmp_path / f"a{ending}"
    choosing(window.actions_by_name["export_picture"].trigger, target)
    window.session.settle()
    assert target.stat().st_size > 10_000


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize("ending", [".mp4", ".gif", ".png", ".pdf"])
def test_an_export_is_opened_as_a_scenario(ending, open_window, tmp_path):
    window, target = open_window("naive"), tmp_path / f"a{ending}"
    values = {} if ending in (".png", ".pdf") else {"length": 0.3}
    make(ExportOptions(str(target), size=(480, 320), **values))
    window.files.open_path(target)
    window.session.settle()
    assert window.session.scenario.title.startswith("Causal")
    assert window.session.path is None  # saving never writes into the film
    assert target in window.settings.recent
    window.files.open_path(tmp_path / "none.png")
    window.session.settle()
    assert "No such file" in window.messages.text()


def test_a_window_starts_from_an_export(qapp, settings, tmp_path):
    from ui.app.start import make_window

    make(ExportOptions(f"{tmp_path}/a.svg", size=(480, 320)))
    window = make_window(tmp_path / "a.svg", settings=settings)
    window.session.settle()
    assert window.session.scenario.title.startswith("Causal")
    window.close()


def test_a_panel_is_copied_as_png_and_svg(window, tmp_path):
    menu = next(m for m in window.menus["File"].findChildren(type(window.menus["File"]))
                if m.title() == "Copy panel")  # fmt: skip
    menu.aboutToShow.emit()
    action = next(a for a in menu.actions() if "raffic" in a.text())
    action.trigger()
    panel = window.findChild(MemoryPanel)
    seen = panel.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
    for _ in range(2):  # at once, and once the files are there
        copied = QGuiApplication.clipboard().image().convertToFormat(QImage.Format.Format_RGB32)
        assert copied == seen
        window.session.settle()
    content = QGuiApplication.clipboard().mimeData()
    assert {*content.formats()} == {"application/x-qt-image", "image/png", "image/svg+xml"}
    (tmp_path / "a.png").write_bytes(content.data("image/png").data())
    with Image.open(tmp_path / "a.png") as image:
        assert image.size == (seen.width(), seen.height())
    renderer = QSvgRenderer(QByteArray(content.data("image/svg+xml")))
    assert renderer.isValid()
    assert renderer.defaultSize() == seen.size()


def test_what_is_copied_later_stays(window):
    window.files.copy_panel("memory")
    QGuiApplication.clipboard().setText("later")
    window.session.settle()
    assert QGuiApplication.clipboard().text() == "later"
