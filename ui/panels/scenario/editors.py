"""The editors of the scenario form: one line, a whole number, a choice; each with its message."""

from __future__ import annotations

import math
import re
from html import escape

from PySide6.QtCore import QEvent, QObject, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QColor,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPaintEvent,
    QPalette,
    QWheelEvent,
)
from PySide6.QtWidgets import (
    QGridLayout,
    QLabel,
    QLineEdit,
    QSizePolicy,
    QToolButton,
    QWidget,
)

from simulator.base.errors import Remedy
from ui.look.draw import draw_text, outline
from ui.look.icons import icon
from ui.look.theme import DARK, Style
from ui.panels.scenario.blanks import Blank
from ui.panels.scenario.fields import (
    FieldKind,
    FieldSpec,
)
from ui.safety.overrides import guarded
from ui.safety.painting import painting
from ui.widgets.choice_box import StillList

FRAME = 2
"""Width of the frame around an editor that has the focus or is wrong; others have half of it."""
_HEIGHT, _SIDE = 24, 6
"""Height of an editor, and the space left and right of its text, at scale 1."""
_LINKS = Qt.TextInteractionFlag.LinksAccessibleByMouse | (
    Qt.TextInteractionFlag.LinksAccessibleByKeyboard
)
PAUSE_MS = 300
"""A pause in typing after which the text is tried."""
EDITOR_WIDTH = 150
"""Below this width at scale 1 an editor has its own line, below its label."""


@guarded
class LineEditor(QLineEdit):
    """One line of text, which is tried on Enter, when it loses the focus, and when typing pauses.

    Undo and redo are left to the window, which undoes whole changes.
    """

    committed = Signal(str)

    def __init__(self, *, live: bool = True) -> None:
        super().__init__()
        self.setFrame(False)  # `Field` draws it
        self._told = ""
        self._live = live
        self._pause = QTimer(self, singleShot=True, interval=PAUSE_MS)
        self._pause.timeout.connect(self.commit)
        if live:
            self.textEdited.connect(self._typed)
        self.editingFinished.connect(self.commit)

    def set_style(self, style: Style) -> None:
        """Take theme and text scale."""
        self.setFont(style.text_font(13))
        self.setMinimumHeight(round(style.px(_HEIGHT)))
        side = round(style.px(_SIDE)) - 2  # Qt itself keeps two pixels free
        self.setTextMargins(side, 0, side, 0)

    def show_text(self, text: str, *, force: bool) -> None:
        """Show `text`, unless somebody is typing here; with `force` even then."""
        if force or not self.unfinished:
            self._pause.stop()
            self._told = text
            if text != self.text():
                self.setText(text)
                if self._live and not self.hasFocus():
                    self.home(False)  # of a long title the start is shown, of a path the end

    def show_blank(self, blank: Blank) -> None:
        """Show the value of the field when nothing is typed."""
        self.setPlaceholderText(blank.hint)

    @property
    def unfinished(self) -> bool:
        """Whether something is being typed that was not emitted yet."""
        return self.text() != self._told

    def commit(self) -> None:
        """Emit the text, if it was not emitted yet."""
        self._pause.stop()
        if self.unfinished:
            self._told = self.text()
            self.committed.emit(self._told)

    def _typed(self) -> None:
        # An empty field is often one that will be filled, so wait for Enter.
        if self.text():
            self._pause.start()
        else:
            self._pause.stop()

    def event(self, event: QEvent) -> bool:
        if event.type() is QEvent.Type.ShortcutOverride:
            assert isinstance(event, QKeyEvent)
            if event.matches(QKeySequence.StandardKey.Undo) or event.matches(
                QKeySequence.StandardKey.Redo
            ):
                event.ignore()
                return False
        return super().event(event)


@guarded
class WholeEditor(LineEditor):
    """A whole number; the arrow keys up and down and the wheel change it by one."""

    def __init__(self, least: int) -> None:
        super().__init__()
        self._least = least
        self._blank = ""

    def show_blank(self, blank: Blank) -> None:
        super().show_blank(blank)
        self._blank = blank.value

    def step(self, by: int) -> None:
        """Change the number; a blank field starts from its default."""
        try:
            number = int("".join(self.text().split()) or self._blank)
            text = str(max(self._least, number + by))
        except ValueError:  # it is no number, or one of thousands of digits
            return
        self.setText(text)
        self._typed()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        by = {Qt.Key.Key_Up: 1, Qt.Key.Key_Down: -1}.get(Qt.Key(event.key()))
        if by is None:
            super().keyPressEvent(event)
        else:
            self.step(by)

    def wheelEvent(self, event: QWheelEvent) -> None:
        if self.hasFocus() and event.angleDelta().y():
            self.step(1 if event.angleDelta().y() > 0 else -1)
            event.accept()
        else:  # scrolling over a field changes nothing
            event.ignore()


@guarded
class ChoiceEditor(StillList):
    """One of some texts, emitted at once."""

    committed = Signal(str)

    def __init__(self, spec: FieldSpec) -> None:
        super().__init__()
        self._default = spec.default
        self._style = Style(DARK)
        self._told = ""
        for text, words in spec.choices():
            self.addItem(words, text)
        self.setCurrentIndex(-1)
        self.activated.connect(self.commit)

    def set_style(self, style: Style) -> None:
        """Take theme and text scale."""
        self._style = style
        self.setFont(style.text_font(13))
        self.setMinimumHeight(round(style.px(_HEIGHT)))
        self.put_aside()

    def show_text(self, text: str, *, force: bool) -> None:
        """Show the choice of `text`, or of a blank text."""
        self._told = text
        self.setCurrentIndex(self.findData(text or self._default))

    def show_blank(self, blank: Blank) -> None:
        """Say in the blank choice which value it stands for."""
        place = self.findData("")
        if place >= 0:
            self.setItemText(place, blank.hint)

    def commit(self) -> None:
        """Emit the choice, if it was not emitted yet."""
        text = self.currentData()
        if text != (self._told or self._default):
            self._told = text
            self.committed.emit(text)

    def minimumSizeHint(self) -> QSize:
        return QSize(round(self._style.px(60)), self.minimumHeight())

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint it like the other editors, with its words elided instead of cut off."""
        with painting(self) as painter:
            style, theme = self._style, self._style.theme
            painter.fillRect(self.rect(), QColor(theme.field))
            side, arrow = style.px(_SIDE), style.px(14)
            words = QRectF(self.rect()).adjusted(side, 0, -arrow - 1.5 * side, 0)
            colour = theme.text if self.currentData() else theme.muted
            draw_text(painter, words, self.currentText(), self.font(), colour)
            place = QRectF(
                self.width() - arrow - side / 2, (self.height() - arrow) / 2, arrow, arrow
            )
            icon("chevron-down", theme.muted).paint(painter, place.toRect())


class Message(QWidget):
    """A warning: sign, words and a link to its remedy; it takes no space if there is none.

    Most fields never have one, so its parts are made only for the first warning.
    """

    wanted = Signal(object)
    """The `Remedy` that was chosen."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self._remedy: Remedy | None = None
        self._style = Style(DARK)
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(2, 0, 0, 0)
        self._grid.setColumnStretch(1, 1)
        self._labels: tuple[QLabel, QLabel] | None = None
        self._link: QLabel | None = None
        self.hide()

    def _made(self) -> tuple[QLabel, QLabel]:
        """Return sign and words."""
        if self._labels is None:
            sign, words = self._labels = QLabel(), QLabel(wordWrap=True)
            words.setTextFormat(Qt.TextFormat.PlainText)
            words.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            words.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
            self._grid.addWidget(sign, 0, 0, Qt.AlignmentFlag.AlignTop)
            self._grid.addWidget(words, 0, 1)
            self._restyle(sign, words)
        return self._labels

    def say(self, text: str, remedy: Remedy | None = None) -> None:
        """Show `text` and the link of a remedy, or nothing."""
        if remedy != self._remedy:
            self._offer(remedy)
        if text == self.text:
            return
        self.text = text
        # Paths and dotted names may also be broken across lines.
        self._made()[1].setText(re.sub(r"(?<=\S)([./\\_-])(?=\S)", "\\1\u200b", text))
        self.setVisible(bool(text))

    def _offer(self, remedy: Remedy | None) -> None:
        self._remedy = remedy
        if self._link is None:
            self._link = QLabel(wordWrap=True)
            self._link.setObjectName("remedy")
            self._link.setTextFormat(Qt.TextFormat.RichText)
            self._link.setTextInteractionFlags(_LINKS)
            self._link.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
            # Not at once, because Qt is still busy with the link, which goes away.
            self._link.linkActivated.connect(self._want, Qt.ConnectionType.QueuedConnection)
            self._grid.addWidget(self._link, 1, 1)
            self._dress(self._link)
        words = escape(remedy.words) if remedy else ""
        self._link.setText(f'<a href="#">{words}</a>' if words else "")
        self._link.setToolTip(str(remedy) if remedy else "")
        self._link.setVisible(remedy is not None)

    def _want(self, link: str) -> None:
        if self._remedy is not None:
            self.wanted.emit(self._remedy)

    def set_style(self, style: Style) -> None:
        """Take theme and text scale."""
        self._style = style
        if self._labels is not None:
            self._restyle(*self._labels)
        if self._link is not None:
            self._dress(self._link)

    def _dress(self, link: QLabel) -> None:
        colours = QPalette(self.palette())
        colours.setColor(QPalette.ColorRole.Link, QColor(self._style.theme.current))
        link.setPalette(colours)
        link.setFont(self._style.text_font(12, bold=True))
        link.setText(link.text())  # the colour of a link is taken with its text

    def _restyle(self, sign: QLabel, words: QLabel) -> None:
        bad = self._style.theme.bad
        size = round(self._style.px(14))
        sign.setPixmap(icon("warning", bad).pixmap(QSize(size, size)))
        colours = QPalette(self.palette())
        colours.setColor(QPalette.ColorRole.WindowText, QColor(bad))
        words.setPalette(colours)
        words.setFont(self._style.text_font(12))


@guarded
class Field(QWidget):
    """A label, an editor, and below it what is wrong with its text."""

    committed = Signal(str, str)
    """Name of the field and its text."""

    def __init__(self, spec: FieldSpec) -> None:
        super().__init__()
        self.spec = spec
        self.setObjectName(spec.name)
        self.editor = _editor(spec)
        self.editor.setAccessibleName(f"{spec.group} {spec.label}".strip())
        self.editor.setToolTip(spec.help)
        self.editor.installEventFilter(self)
        self.editor.committed.connect(lambda text: self.committed.emit(spec.name, text))
        self.label = QLabel(spec.label)
        self.label.setBuddy(self.editor)
        self.label.setToolTip(spec.help)
        self.message = Message()
        self.browse: QToolButton | None = None
        self._grid = QGridLayout(self)
        self._grid.setColumnStretch(1, 1)
        self._beside: bool | None = None
        """Whether the label is left of the editor, if it has a place."""
        if spec.kind is FieldKind.PATH:
            self.browse = QToolButton()
            self.browse.setAccessibleName("Browse for a tensor file")
            self.browse.setToolTip("Browse…")
            self.browse.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._style = Style(DARK)
        self._describe("")

    def say(self, wrong: str, remedy: Remedy | None = None) -> None:
        """Say what is wrong and what would help, or nothing."""
        said = self.message.text
        self.message.say(wrong, remedy)
        if wrong != said:
            self._describe(wrong)
            self.update()

    def _describe(self, wrong: str) -> None:
        self.editor.setAccessibleDescription(f"{wrong}. {self.spec.help}".removeprefix(". "))

    def arrange(self, label_width: int) -> None:
        """Put the label left of the editor, or above it when `label_width` is 0."""
        self.label.setMinimumWidth(label_width)
        beside = bool(label_width)
        if beside is self._beside:  # a window that changes its size asks for it again and again
            return
        self._beside = beside
        row, column = (0, 1) if beside else (1, 0)
        end = 2 if self.browse is None else 3
        for widget in (self.label, self.editor, self.browse, self.message):
            if widget is not None:
                self._grid.removeWidget(widget)
        self._grid.addWidget(self.label, 0, 0)
        self._grid.addWidget(self.editor, row, column, 1, 2 - column)
        if self.browse is not None:
            self._grid.addWidget(self.browse, row, 2)
        self._grid.addWidget(self.message, row + 1, column, 1, end - column)

    def set_style(self, style: Style) -> None:
        """Take theme and text scale."""
        self._style = style
        self._grid.setHorizontalSpacing(round(style.px(8)))
        self._grid.setVerticalSpacing(round(style.px(4)))
        # The frame is outside of the editor.
        self._grid.setContentsMargins(*[math.ceil(style.px(FRAME))] * 4)
        self.message.set_style(style)
        self.label.setFont(style.text_font(13))
        self.editor.set_style(style)
        if self.browse is not None:
            self.browse.setIcon(icon("open", style.theme.text))
            size = round(style.px(16))
            self.browse.setIconSize(QSize(size, size))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Move the focus to the editor: a click beside it means the same."""
        self.editor.setFocus(Qt.FocusReason.MouseFocusReason)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.FocusIn, QEvent.Type.FocusOut):
            self.update()
        return False

    def paintEvent(self, event: QPaintEvent) -> None:
        with painting(self, covers=False) as painter:
            theme, width = self._style.theme, self._style.px(FRAME)
            if self.message.text:
                colour = theme.bad
            elif self.editor.hasFocus():
                colour = theme.current
            else:
                colour, width = theme.border, max(1.0, width / 2)
            frame = QRectF(self.editor.geometry()).adjusted(-width, -width, width, width)
            outline(painter, frame, colour, width)


def _editor(spec: FieldSpec) -> LineEditor | ChoiceEditor:
    if spec.kind in (FieldKind.CHOICE, FieldKind.TRI_STATE):
        return ChoiceEditor(spec)
    if spec.kind in (FieldKind.WHOLE, FieldKind.WINDOW):
        return WholeEditor(spec.least)
    # Half a path names no file, so wait until it is complete.
    return LineEditor(live=spec.kind is not FieldKind.PATH)
