"""Parts of the dialog that adds a step: texts, the preview, and the lesson."""

from __future__ import annotations

import os
from pathlib import Path

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QPaintEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QFileDialog,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QPushButton,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from simulator.base.assets import LESSONS
from simulator.base.errors import InputError, refuse
from simulator.lesson.expressions import replaced
from simulator.lesson.front import read_text
from simulator.lesson.reader import parse_lesson
from simulator.lesson.record import MOST_WORDS, NewStep, is_shipped, word_count
from ui.look.draw import outline
from ui.look.slide import LINES
from ui.look.theme import Style, frame_palette
from ui.safety.overrides import guarded
from ui.safety.painting import painting
from ui.talk.caption import BODY, Caption, caption_height, paint_caption
from ui.talk.caption_text import spoken
from ui.talk.slide import line_count
from ui.widgets.parts import with_parts

ENDING = ".md"
_PAD = 10.0


def sheet(style: Style) -> str:
    """Return the frames of fields and buttons, which are too dark in Fusion."""
    t, px = style.theme, style.px
    around = f"border-radius: {round(px(4))}px; padding: {round(px(3))}px"
    return (
        f"QLineEdit, QPlainTextEdit {{ border: 1px solid {t.border}; {around};"
        f" background: {t.field}; color: {t.text}; }}"
        f"QLineEdit:focus, QPlainTextEdit:focus {{ border: 2px solid {t.text};"
        f" padding: {round(px(3)) - 1}px; }}"
        f"QCheckBox {{ border: 1px solid transparent; {around}; }}"
        f"QCheckBox:focus {{ border-color: {t.text}; }}"
        f"QCheckBox:disabled {{ color: {t.muted}; }}"
        f"QPushButton {{ border: 1px solid {t.border}; border-radius: {round(px(4))}px;"
        f" background: {t.panel}; padding: {round(px(4))}px {round(px(12))}px; }}"
        f"QPushButton:hover {{ border-color: {t.text}; }}"
        f"QPushButton:focus {{ border: 2px solid {t.text};"
        f" padding: {round(px(4)) - 1}px {round(px(12)) - 1}px; }}"
        f"QPushButton:pressed {{ background: {t.accent}; }}"
        f"QPushButton:disabled {{ color: {t.faint}; }}"
    )


class TextField(QWidget):
    """A text of several lines below its name.

    name: the label, with the letter that leads to the field.
    """

    def __init__(self, name: str, tip: str, lines: int, style: Style, hint: str = "") -> None:
        super().__init__()
        self.label = QLabel(name)
        self.edit = QPlainTextEdit()
        self.edit.setTabChangesFocus(True)
        self.edit.setAccessibleName(name.replace("&", ""))
        self.edit.setToolTip(tip)
        self.edit.setPlaceholderText(hint)
        line = self.edit.fontMetrics().lineSpacing()
        self.edit.setMinimumHeight(round(lines * line + style.px(14)))
        self.label.setBuddy(self.edit)
        self.note = QLabel()
        head = with_parts(QHBoxLayout(), self.label, 1, self.note)
        with_parts(QVBoxLayout(self), head, self.edit, margin=0, gap=round(style.px(3)))

    @property
    def text(self) -> str:
        """The text that was typed, without spaces around it."""
        return self.edit.toPlainText().strip()


def show_words(note: QLabel, caption: str, style: Style) -> None:
    """Say how many words a caption has, and whether it or its first paragraph is too long."""
    count = word_count(caption)
    lines = line_count(Caption("", replaced(caption, lambda _: "0.123")))
    long = count > MOST_WORDS or lines > LINES
    more = ": too long for the last row" if count > MOST_WORDS else ""
    more = more or f": {lines} lines on the stage, a blank line ends the first two" * long
    note.setText(f"{count} of {MOST_WORDS} words{more}")
    note.setStyleSheet(f"color: {style.theme.bad if long else style.theme.muted}")


@guarded
class Preview(QWidget):
    """The caption as a lesson shows it, with its answer."""

    def __init__(self, style: Style) -> None:
        super().__init__()
        self.setObjectName("preview")
        self.setAccessibleName("Preview")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setToolTip("The caption as the lesson shows it, with its numbers put in.")
        self._style = style
        self.caption = Caption("", "")

    def show_step(self, step: NewStep, number: int) -> None:
        """Show a step with its numbers with_parts in; `number` says which step it is, from 0."""
        self.caption = Caption(
            step.title, step.caption, number, number + 1, step.question, step.answer, True
        )
        self.setAccessibleDescription(spoken(step.title, step.caption, step.question, step.answer))
        self.update()

    def sizeHint(self) -> QSize:
        longest = Caption("title", "token " * MOST_WORDS)
        px, wide = self._style.px, 24 * BODY
        high = caption_height(longest, self._style, px(wide)) + 2 * px(_PAD)
        return QSize(round(px(wide)), round(high))

    def minimumSizeHint(self) -> QSize:
        return QSize(round(self._style.px(200)), round(self._style.px(90)))

    def paintEvent(self, event: QPaintEvent) -> None:
        with painting(self) as painter:
            theme, pad = self._style.theme, self._style.px(_PAD)
            painter.fillRect(self.rect(), QColor(theme.panel))
            outline(painter, QRectF(self.rect()), theme.border)
            room = QRectF(self.rect()).adjusted(pad, pad, -pad, -pad)
            paint_caption(painter, self.caption, self._style, room)


class Target(QWidget):
    """The lesson to which the step is added: an existing file, a new file, or a copy of ours."""

    changed = Signal()

    def __init__(self, style: Style) -> None:
        super().__init__()
        self.copy_of: Path | None = None
        """The lesson of ours that was chosen."""
        self.edit = QLineEdit()
        self.edit.setAccessibleName("Lesson file")
        self.edit.setToolTip(
            "The step comes to the end of this lesson; a file that is not there is begun."
        )
        self.add_button = QPushButton("Add to…")
        self.add_button.setToolTip("Choose a lesson that there is.")
        self.new_button = QPushButton("New…")
        self.new_button.setToolTip("Choose a place for a new lesson.")
        self.copy_box = QCheckBox()
        self.copy_box.setPalette(frame_palette(style.theme))
        self.copy_box.setToolTip(
            "Lessons that ship stay as they are: your file gets their steps, and this one."
        )
        self.copy_box.hide()
        for button in (self.add_button, self.new_button):
            button.setAutoDefault(False)
        row = with_parts(QHBoxLayout(), (self.edit, 1), self.add_button, self.new_button)
        with_parts(QVBoxLayout(self), row, self.copy_box, margin=0, gap=round(style.px(4)))
        self.edit.textChanged.connect(self.changed)
        self.copy_box.toggled.connect(self.changed)
        self.add_button.clicked.connect(lambda: self._browse(new=False))
        self.new_button.clicked.connect(lambda: self._browse(new=True))

    def path(self) -> Path:
        """Return the file that is named.

        Raises InputError: no file is named, or the file is not Markdown.
        """
        text = self.edit.text().strip()
        name = os.path.basename(text)
        good = bool(name.strip(".")) and text.isprintable()
        path = Path(os.path.expanduser(text if Path(name).suffix else f"{text}{ENDING}"))
        if not good or path.suffix.lower() != ENDING:
            raise refuse("Lesson file", "", text, f"a name that ends in {ENDING}")
        return path.absolute()

    def source(self) -> Path | None:
        """Return the lesson that a new file copies, if there is one."""
        return self.copy_of if self.copy_box.isChecked() else None

    def take(self, path: Path) -> None:
        """Use a chosen lesson; if it is one of ours, use a copy."""
        shipped = is_shipped(path) and path.is_file()
        self.copy_of = path if shipped else None
        self.copy_box.setVisible(shipped)
        self.copy_box.setChecked(shipped)
        if shipped:
            self.copy_box.setText(f"Begin it as a copy of the shipped lesson “{_title(path)}”")
        self.edit.setText(str(_free(path.name) if shipped else path))
        self.changed.emit()

    def _browse(self, *, new: bool) -> None:
        """Ask for a file without blocking the window."""
        title = "New lesson" if new else "Add to lesson"
        chooser = QFileDialog(self, title, str(self._folder(new=new)), f"Lessons (*{ENDING})")
        chooser.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        if new:
            chooser.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
            chooser.setOption(QFileDialog.Option.DontConfirmOverwrite)  # a step is added to it
            chooser.setDefaultSuffix(ENDING[1:])
            chooser.fileSelected.connect(self.edit.setText)
        else:
            chooser.setFileMode(QFileDialog.FileMode.ExistingFile)
            chooser.fileSelected.connect(lambda name: self.take(Path(name)))
        chooser.open()

    def _folder(self, *, new: bool) -> Path:
        folder = Path(os.path.expanduser(self.edit.text())).parent
        if folder.is_dir() and (new or any(folder.glob(f"*{ENDING}"))):
            return folder
        return Path.home() if new else LESSONS


def _title(path: Path) -> str:
    try:
        return parse_lesson(read_text(path), str(path), path.parent).title
    except InputError:
        return path.stem


def _free(name: str) -> Path:
    """Return a path for the user's files that does not exist yet."""
    path, n = Path.home() / name, 2
    while path.exists():
        path = Path.home() / f"{Path(name).stem}-{n}{ENDING}"
        n += 1
    return path


def first_target() -> Path:
    """Return the path for a user's first step."""
    return Path.home() / f"my-lesson{ENDING}"
