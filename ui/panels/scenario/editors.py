"""The editors of the scenario form: one line, a whole number, a choice."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QKeyEvent, QKeySequence, QPaintEvent, QWheelEvent
from PySide6.QtWidgets import QLineEdit

from simulator.program.algorithms import ALGORITHMS
from ui.look.draw import draw_text
from ui.look.icons import icon
from ui.look.theme import DARK, Style
from ui.panels.scenario.blanks import Blank
from ui.panels.scenario.fields import FieldSpec
from ui.safety.overrides import guarded
from ui.safety.painting import painting
from ui.widgets.choice_box import StillList

_HEIGHT, _SIDE = 24, 6
"""Height of an editor, and the space left and right of its text, at scale 1."""
PAUSE_MS = 300
"""A pause in typing after which the text is tried."""


@guarded
class LineEditor(QLineEdit):
    """One line of text, which is tried on Enter, when it loses the focus, and when typing pauses.

    Undo and redo are left to the window, which undoes whole changes.
    """

    committed = Signal(str)
    framed = True

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

    def has_focus(self) -> bool:
        """Return whether the keyboard is here."""
        return self.hasFocus()

    def set_style(self, style: Style) -> None:
        """Take theme and text scale."""
        self.setFont(style.text_font(13))
        self.setMinimumHeight(round(style.px(_HEIGHT)))
        self.setMinimumWidth(round(style.px(28)))
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
    framed = True

    def __init__(self, spec: FieldSpec) -> None:
        super().__init__()
        self._default = spec.default
        self._style = Style(DARK)
        self._told = ""
        for text, words in spec.choices():
            self.addItem(words, text)
            if spec.name == "attention.algorithm":
                tip = ALGORITHMS[text].about
                self.setItemData(self.count() - 1, tip, Qt.ItemDataRole.ToolTipRole)
        self.setCurrentIndex(-1)
        self.activated.connect(self.commit)

    def has_focus(self) -> bool:
        """Return whether the keyboard is here."""
        return self.hasFocus()

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
        """Paint the list like the other editors, with its words elided instead of cut off."""
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
