"""Adding the view on show to a lesson: typed and clicked in a real window, then read back."""

import os
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QDialog,
    QFileDialog,
    QLineEdit,
    QPlainTextEdit,
)

from simulator.base.assets import LESSONS
from simulator.lesson.places import Pointer
from simulator.lesson.reader import load_lesson, resolve_step
from simulator.program.playback import Cursor
from simulator.run.snapshot import Cell
from ui.look.layouts import LAYOUT_PANELS
from ui.look.lesson_text import FORMATS
from ui.talk.record_dialog import RecordDialog, front_panel, open_record_dialog

LEFT = Qt.MouseButton.LeftButton
SHIPPED = LESSONS / "05-online-softmax.md"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """Nothing is written to the real home."""
    folder = tmp_path / "home"
    folder.mkdir()
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(folder))
    return folder


@pytest.fixture
def window(open_window):
    window = open_window("flash2", (1280, 720))
    window.desk.take("algorithm")
    look(window, Cursor(13, 5), Cell("S", 8, 10))
    return window


def look(window, cursor: Cursor, cell: Cell | None = None) -> None:
    window.session.go(cursor)
    window.session.select(cell)
    window.session.settle()


def opened(window) -> RecordDialog:
    dialog = open_record_dialog(window)
    assert dialog is not None
    QApplication.processEvents()
    return dialog


def retype(qtbot, edit: QLineEdit | QPlainTextEdit, text: str) -> None:
    """Type over what stands in a field."""
    edit.setFocus()
    qtbot.keyClick(edit, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    qtbot.keyClick(edit, Qt.Key.Key_Delete)
    for n, line in enumerate(text.split("\n")):
        if n:
            qtbot.keyClick(edit, Qt.Key.Key_Return)
        qtbot.keyClicks(edit, line)


def click(qtbot, button: QAbstractButton) -> None:
    qtbot.mouseClick(button, LEFT, pos=QPoint(12, button.height() // 2))


def previewed(dialog: RecordDialog) -> str:
    """Return the caption of the preview once it is made of what is typed."""
    dialog.make_preview()
    dialog.parent().session.settle()
    return dialog.preview.caption.body


def add(qtbot, dialog: RecordDialog) -> str:
    """Press the button; return what the dialog then says, "" when it has closed."""
    gone = []
    dialog.finished.connect(gone.append)
    session, words = dialog.parent().session, dialog.words
    click(qtbot, dialog.add_button)
    session.settle()
    return "" if gone == [QDialog.DialogCode.Accepted] else words.text()


def last_step(path: Path):
    lesson = load_lesson(path, LAYOUT_PANELS)
    assert [str(mistake) for mistake in lesson.mistakes] == []
    return resolve_step(lesson, len(lesson.steps) - 1, FORMATS)


# --- what is recorded -------------------------------------------------------------------------


def test_a_recorded_step_is_the_very_view(window, qtbot, home):
    view = window.session.view
    dialog = opened(window)
    retype(qtbot, dialog.title_edit, "The maximum jumps")
    retype(qtbot, dialog.caption.edit, "Now $m$ is {{ value('m', 8) }}.\n\nAll of it *moves*.")
    retype(qtbot, dialog.question.edit, "And l?")
    retype(qtbot, dialog.answer.edit, "Times {{ alpha(8) }}.")
    retype(qtbot, dialog.notes.edit, 'Say "slowly".\nWait.')
    click(qtbot, dialog.point_boxes[Pointer(tile=(2, 3))])
    assert add(qtbot, dialog) == ""
    path = home / "my-lesson.md"
    assert str(path) in window.messages.text()
    step = last_step(path)
    m, alpha = (f"{float(x):.3f}" for x in (view.snapshot.head.m[8], view.snapshot.tile.alpha[0]))
    assert (step.number, step.title) == (0, "The maximum jumps")
    assert step.caption == f"Now $m$ is {m}.\n\nAll of it *moves*."
    assert (step.question, step.answer) == ("And l?", f"Times {alpha}.")
    assert step.notes == 'Say "slowly".\nWait.'
    assert step.scenario == window.session.scenario
    assert (step.start, step.cursor, step.row) == (None, view.snapshot.cursor, view.report.row)
    assert (step.layout, step.panel) == ("algorithm", "code")
    assert step.points == (Pointer(cell=Cell("S", 8, 10)), Pointer(tile=(2, 3)))
    # The player shows the same again.
    look(window, Cursor(0, 0))
    window.desk.take("steps")
    window.lessons.open(path)
    window.session.settle()
    again = window.session.view
    assert again.snapshot.cursor == view.snapshot.cursor
    assert (again.report.row, again.points) == (view.report.row, step.points)
    assert window.desk.lent == ("algorithm", "code")
    assert not window.docks["code"].visibleRegion().isEmpty()


@pytest.mark.long
@pytest.mark.parametrize("high", [720, 1000])
def test_the_panel_recorded_is_the_one_in_front_in_its_place(open_window, high, qapp):
    window = open_window("flash2", (1440, high))
    window.desk.take("algorithm")
    for front in ("formula", "values"):
        window.docks.open(front)
        qapp.processEvents()
        assert front_panel(window, "algorithm") == front
    window.docks.open("code")  # in a high window it has a place of its own
    qapp.processEvents()
    assert front_panel(window, "algorithm") == ("code" if high == 720 else "values")


@pytest.mark.long
def test_the_second_step_plays_from_the_first(window, qtbot, home):
    dialog = opened(window)
    assert not dialog.play_box.isEnabled()
    retype(qtbot, dialog.title_edit, "One")
    assert add(qtbot, dialog) == ""
    path = home / "my-lesson.md"
    first = path.read_text(encoding="utf-8")
    window.docks["values"].raise_()
    look(window, Cursor(14, 2))
    dialog = opened(window)
    assert dialog.target.path() == path
    assert "visit 14, " in dialog.play_box.text()
    assert "step 2 of my-lesson.md" in dialog.words.text()
    retype(qtbot, dialog.title_edit, "Two")
    click(qtbot, dialog.play_box)
    click(qtbot, dialog.point_boxes[Pointer(row=8)])
    assert add(qtbot, dialog) == ""
    assert path.read_text(encoding="utf-8").startswith(first.rstrip())
    step = last_step(path)
    assert (step.start, step.cursor) == (Cursor(13, 5), Cursor(14, 2))
    assert (step.panel, step.points) == ("values", (Pointer(row=8),))
    # Back at an earlier place there is nothing to play.
    look(window, Cursor(3, 1))
    dialog = opened(window)
    assert not dialog.play_box.isEnabled()
    assert "ends here or later" in dialog.play_box.text()
    assert dialog.step().start is None


@pytest.mark.long
def test_a_visit_without_a_tile_has_none_to_point_at(window):
    scenario = window.session.scenario
    naive = type(scenario).model_validate(
        {**scenario.model_dump(exclude_unset=True), "attention": {"algorithm": "naive"}}
    )
    window.session.propose(naive, "naive")
    window.session.settle()
    program = window.session.trace.program
    first = program.launches[0].per_head
    assert program.launches[program.visit(first).launch].whole_rows
    look(window, Cursor(first, 0))
    assert all(pointer.tile is None for pointer in opened(window).point_boxes)


# --- shipped lessons --------------------------------------------------------------------------


@pytest.mark.long
def test_a_step_for_a_shipped_lesson_goes_into_a_copy(window, qtbot, home):
    before = SHIPPED.read_bytes()
    window.lessons.open(SHIPPED)
    window.session.settle()
    shown = window.lessons.player.step
    dialog = opened(window)
    assert dialog.target.path() == home / SHIPPED.name
    assert "Online softmax" in dialog.target.copy_box.text()
    retype(qtbot, dialog.title_edit, "Mine")
    assert add(qtbot, dialog) == ""
    assert SHIPPED.read_bytes() == before
    old, new = (load_lesson(path, LAYOUT_PANELS) for path in (SHIPPED, home / SHIPPED.name))
    assert not new.mistakes
    assert new.steps[:-1] == old.steps
    step = last_step(home / SHIPPED.name)
    assert (step.scenario, step.cursor, step.row) == (shown.scenario, shown.cursor, shown.row)
    assert (step.layout, step.points) == (shown.layout, shown.points)


@pytest.mark.long
def test_without_the_copy_a_new_lesson_is_begun(window, qtbot, home):
    dialog = opened(window)
    dialog.target.take(SHIPPED)
    click(qtbot, dialog.target.copy_box)
    retype(qtbot, dialog.title_edit, "Mine")
    assert add(qtbot, dialog) == ""
    lesson = load_lesson(home / SHIPPED.name)
    assert (lesson.title, len(lesson.steps)) == ("05 online softmax", 1)


@pytest.mark.long
def test_a_shipped_lesson_that_is_typed_becomes_a_copy(window, qtbot, home):
    before = SHIPPED.read_bytes()
    (home / SHIPPED.name).write_text("mine")
    dialog = opened(window)
    retype(qtbot, dialog.title_edit, "Mine")
    retype(qtbot, dialog.target.edit, str(SHIPPED))
    assert "ships and stays as it is" in dialog.words.text()
    assert add(qtbot, dialog) != ""
    assert dialog.target.path() == home / "05-online-softmax-2.md"
    assert add(qtbot, dialog) == ""
    assert SHIPPED.read_bytes() == before
    assert (home / SHIPPED.name).read_text() == "mine"
    assert len(load_lesson(home / "05-online-softmax-2.md").steps) == 9


# --- mistakes ---------------------------------------------------------------------------------


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize(
    ("field", "text", "words"),
    [
        ("caption", "One\n## Two", 'Caption: expected text without a line that begins with "## "'),
        ("caption", "```toml step", "Caption: expected text that does not begin"),
        ("caption", "{{ Nk + }}", "{{ Nk + }}: expected an expression"),
        ("caption", "{{ alpha(0) }}", "{{ alpha(0) }}: expected what can be computed here"),
        ("notes", "{{ open(1) }}", "expected one of "),
        ("question", "Why?", "Answer: expected text"),
        ("answer", "So.", "Question: expected text"),
    ],
)
def test_a_mistake_is_told_in_a_line_and_nothing_is_lost(window, qtbot, home, field, text, words):
    dialog = opened(window)
    retype(qtbot, dialog.title_edit, "One")
    edit = getattr(dialog, field).edit
    retype(qtbot, edit, text)
    told = add(qtbot, dialog)
    assert words in told
    assert told == dialog.words.text()
    assert "\n" not in told
    assert dialog.isVisible()
    assert edit.toPlainText() == text
    assert not window.messages.isVisible()
    assert list(home.iterdir()) == []
    retype(qtbot, edit, "")
    assert add(qtbot, dialog) == ""
    assert last_step(home / "my-lesson.md").title == "One"


def test_a_title_is_asked_for_gently_then_told(window, qtbot, home):
    dialog = opened(window)
    assert dialog.words.text().endswith("It needs a title.")
    assert add(qtbot, dialog) == "Title: expected a title of one line"
    assert dialog.focusWidget() is dialog.title_edit
    assert list(home.iterdir()) == []


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "a name that ends in .md"),
        ("mine.toml", "a name that ends in .md"),
        ("folder.md/", "a name that ends in .md"),
        ("..", "a name that ends in .md"),
        ("n" * 300, "expected a file that can be written (File name too long)"),
        ("nowhere/mine.md", "mine.md: expected a file that can be written"),
        ("page.md", "page.md:1: title: expected front matter"),
        ("folder.md", "folder.md: expected a readable file"),
    ],
)
def test_a_file_that_cannot_take_a_step_is_told(window, qtbot, home, name, words):
    (home / "page.md").write_text("# A page\n")
    (home / "folder.md").mkdir()
    dialog = opened(window)
    retype(qtbot, dialog.title_edit, "One")
    retype(qtbot, dialog.target.edit, f"{home}/{name}" if name else "")
    assert words in add(qtbot, dialog)
    assert dialog.isVisible()
    assert (home / "page.md").read_text() == "# A page\n"
    assert {path.name for path in home.iterdir()} == {"page.md", "folder.md"}
    retype(qtbot, dialog.target.edit, str(home / "good"))
    assert add(qtbot, dialog) == ""
    assert last_step(home / "good.md").title == "One"


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="the user may write anywhere")
def test_a_folder_that_cannot_be_written_to_is_told(window, qtbot, home):
    home.chmod(0o500)
    dialog = opened(window)
    retype(qtbot, dialog.title_edit, "One")
    assert "Permission denied" in add(qtbot, dialog)
    home.chmod(0o700)
    assert add(qtbot, dialog) == ""


# --- while typing -----------------------------------------------------------------------------


def test_the_preview_is_the_caption_with_its_numbers(window, qtbot):
    dialog = opened(window)
    retype(qtbot, dialog.title_edit, "At {{ Nk }}")
    retype(qtbot, dialog.caption.edit, "Row {{ 8 }} of {{ Nq }}: $x^2$.")
    assert previewed(dialog) == "Row 8 of 13: $x^2$."
    assert dialog.preview.caption.title == "At 13"
    assert dialog.preview.caption.place == "1 of 1"
    assert "Row 8 of 13" in dialog.preview.accessibleDescription()
    before = dialog.preview.grab().toImage()
    retype(qtbot, dialog.caption.edit, "Something else.")
    qtbot.waitUntil(lambda: dialog.preview.caption.body == "Something else.")
    assert dialog.preview.grab().toImage() != before
    retype(qtbot, dialog.caption.edit, "{{ alpha(0) }}")
    qtbot.waitUntil(lambda: "expected what can be computed here" in dialog.words.text())
    assert dialog.preview.caption.body == "Something else."


def test_words_are_counted(window, qtbot):
    dialog = opened(window)
    retype(qtbot, dialog.caption.edit, "It asks for {{ requested() | bytes }}.")
    assert dialog.caption.note.text() == "4 of 45 words"
    dialog.caption.edit.setPlainText("word " * 46)
    assert dialog.caption.note.text() == "46 of 45 words: too long for the last row"
    assert window.style_now.theme.bad in dialog.caption.note.styleSheet()


# --- files, keys, looks -----------------------------------------------------------------------


@pytest.mark.long
def test_files_are_chosen_beside_the_dialog(window, qtbot, home):
    dialog = opened(window)
    retype(qtbot, dialog.title_edit, "One")
    assert add(qtbot, dialog) == ""
    dialog = opened(window)
    for button, name in (
        (dialog.target.new_button, "other"), (dialog.target.add_button, "my-lesson.md"),
    ):  # fmt: skip
        click(qtbot, button)
        chooser = dialog.findChild(QFileDialog)
        chooser.setDirectory(str(home))
        chooser.selectFile(str(home / name))
        chooser.accept()
        QApplication.processEvents()
        assert dialog.target.path() == (home / name).with_suffix(".md")
        qtbot.waitUntil(lambda: dialog.findChild(QFileDialog) is None)
    assert not dialog.target.copy_box.isVisible()


def test_keys_are_enough(window, qtbot, home):
    dialog = opened(window)
    qtbot.keyClicks(dialog.focusWidget(), "One")
    qtbot.keyClick(dialog.focusWidget(), Qt.Key.Key_Return)  # in the title: nothing yet
    assert dialog.isVisible()
    seen = [dialog.focusWidget()]
    for _ in range(20):
        qtbot.keyClick(dialog.focusWidget(), Qt.Key.Key_Tab)
        seen.append(dialog.focusWidget())
    wanted = [dialog.title_edit, dialog.caption.edit, dialog.question.edit, dialog.answer.edit,
              dialog.notes.edit, *dialog.point_boxes.values(), dialog.target.edit,
              dialog.target.add_button, dialog.target.new_button]  # fmt: skip
    assert [widget for widget in seen if widget in wanted][: len(wanted)] == wanted
    assert dialog.add_button in seen
    done = []
    dialog.finished.connect(done.append)
    session = dialog.parent().session
    qtbot.keyClick(dialog, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    session.settle()
    assert done == [QDialog.DialogCode.Accepted]
    assert last_step(home / "my-lesson.md").title == "One"


def test_escape_does_not_throw_away_what_was_typed(window, qtbot):
    dialog = opened(window)
    done = []
    dialog.finished.connect(done.append)
    retype(qtbot, dialog.caption.edit, "Long thoughts")
    qtbot.keyClick(dialog.caption.edit, Qt.Key.Key_Escape)
    assert dialog.isVisible()
    assert "Escape once more" in dialog.words.text()
    qtbot.keyClicks(dialog.caption.edit, ".")
    qtbot.keyClick(dialog.caption.edit, Qt.Key.Key_Escape)
    assert done == []
    qtbot.keyClick(dialog.caption.edit, Qt.Key.Key_Escape)
    assert done == [QDialog.DialogCode.Rejected]


def test_cancel_leaves_at_once_and_writes_nothing(window, qtbot, home):
    dialog = opened(window)
    done = []
    dialog.finished.connect(done.append)
    retype(qtbot, dialog.title_edit, "One")
    click(qtbot, dialog.cancel_button)
    assert done == [QDialog.DialogCode.Rejected]
    window.session.settle()
    assert list(home.iterdir()) == []


def test_a_run_that_plays_stops(window):
    window.session.play(True)
    dialog = opened(window)
    assert not window.session.playing
    assert dialog.step().cursor == dialog.view.snapshot.cursor


@pytest.mark.long
@pytest.mark.parametrize("scale", [1.0, 1.5, 2.0])
def test_nothing_is_cut_off(window, qtbot, home, scale):
    window.settings.text_scale = scale
    window.apply_style()
    dialog = opened(window)
    retype(qtbot, dialog.title_edit, "One")
    assert add(qtbot, dialog) == ""
    look(window, Cursor(14, 2), Cell("S", 8, 12))
    dialog = opened(window)
    dialog.target.take(SHIPPED)
    dialog.caption.edit.setPlainText("word " * 46)
    dialog.target.edit.setText(str(home / "my-lesson.md"))
    QApplication.processEvents()
    assert dialog.width() <= window.width()
    assert dialog.height() <= window.height()
    buttons = [b for b in dialog.findChildren(QAbstractButton) if b.isVisible() and b.text()]
    assert len(buttons) >= 8
    for widget in (*buttons, dialog.caption.note, dialog.caption.label):
        assert widget.width() >= widget.minimumSizeHint().width(), widget.text()
        at = widget.mapTo(dialog, QPoint(widget.width(), 0)).x()
        assert at <= dialog.width(), widget.text()
    for widget in (*buttons, *dialog.findChildren(QLineEdit), *dialog.findChildren(QPlainTextEdit)):
        if not widget.objectName().startswith("qt_"):
            assert widget.accessibleName() or getattr(widget, "text", str)()
