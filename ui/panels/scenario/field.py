"""A field of the form: its name and meaning, its editor, and messages about its value."""

from __future__ import annotations

import math
import re
from functools import partial

from PySide6.QtCore import QEvent, QObject, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QMouseEvent, QPainter, QPaintEvent, QPalette, QPen
from PySide6.QtWidgets import (
    QBoxLayout,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from simulator.base.errors import Remedy
from simulator.problem.workload import Workload
from ui.look.draw import fitted
from ui.look.icons import icon
from ui.look.theme import DARK, Style
from ui.panels.scenario.blanks import Blank
from ui.panels.scenario.editors import ChoiceEditor, LineEditor, WholeEditor
from ui.panels.scenario.fields import FIRST, FieldKind, FieldSpec, Texts
from ui.panels.scenario.pictures import HeadMaps, SentenceEditor, TwoPictures
from ui.safety.overrides import guarded
from ui.safety.painting import painting
from ui.widgets.choice_bar import Button, bar_sheet
from ui.widgets.named import named
from ui.widgets.parts import with_parts
from ui.widgets.sheet import set_sheet

FRAME = 2
"""Width of the frame around an editor that has the focus or is wrong; others have half of that."""
EDITOR_WIDTH = 190
"""Below this width at scale 1 an editor has its own line, below its label."""
_PAIR = ("tiling.rows", "tiling.cols")
_STEPS = 160
"""Least room at scale 1 of numbers that have buttons beside them."""
_DOT = 12
"""Space left of a name, where a changed field has its dot."""

Editor = LineEditor | ChoiceEditor | SentenceEditor | TwoPictures


@guarded
class _RemedyButton(Button):
    """A button whose words are elided where they have no room."""

    def __init__(self) -> None:
        super().__init__()
        self.words = ""
        self.setObjectName("remedy")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)

    def resizeEvent(self, event: QEvent) -> None:
        self.show_words(self.words)

    def show_words(self, words: str) -> None:
        """Show words as far as there is room."""
        self.words = words
        self.setText(fitted(self.font(), words, max(self.width() - 12, 20)))
        self.setAccessibleName(words)


class Message(QWidget):
    """A warning: sign, words and a button for its remedy; without a warning it takes no space.

    Most fields never have a warning, so the parts are made only for the first one.
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
        self._button: _RemedyButton | None = None
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
        """Show `text` and the button of a remedy, or nothing."""
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
        if self._button is None:
            self._button = _RemedyButton()
            # Not at once, because Qt is still busy with the button, which goes away.
            self._button.clicked.connect(self._want, Qt.ConnectionType.QueuedConnection)
            self._grid.addWidget(self._button, 1, 1)
            self._dress(self._button)
        self._button.show_words(remedy.words if remedy else "")
        self._button.setToolTip(str(remedy) if remedy else "")
        self._button.setVisible(remedy is not None)

    def _want(self) -> None:
        if self._remedy is not None:
            self.wanted.emit(self._remedy)

    def set_style(self, style: Style) -> None:
        """Take theme and text scale."""
        self._style = style
        if self._labels is not None:
            self._restyle(*self._labels)
        if self._button is not None:
            self._dress(self._button)

    def _dress(self, button: _RemedyButton) -> None:
        button.setFont(self._style.text_font(12, bold=True))
        button.setMinimumHeight(round(self._style.px(26)))
        set_sheet(button, bar_sheet(self._style))
        button.show_words(button.words)

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
    """Name and meaning, an editor, and below it a message about its text, or a what-if badge.

    aside: words at the right of the editor.
    """

    committed = Signal(str, str)
    """Name of the field that is changed and its text."""

    def __init__(self, spec: FieldSpec) -> None:
        super().__init__()
        self.spec = spec
        self.setObjectName(spec.name)
        self.editor = _editor(spec)
        self.editor.setAccessibleName(f"{spec.group} {spec.label}".strip())
        self.editor.setToolTip(f"{spec.help} ({spec.name})")
        self.editor.installEventFilter(self)
        if isinstance(self.editor, SentenceEditor):
            self.editor.committed.connect(self.committed)
            for part in self.editor.parts:
                part.installEventFilter(self)
        else:
            self.editor.committed.connect(partial(self.committed.emit, spec.name))
        self.names = QWidget()
        self.label, self.brief = (
            QLabel(words, wordWrap=True) for words in (spec.label, spec.brief)
        )
        self.label.setBuddy(self.editor)
        self.label.setToolTip(self.editor.toolTip())
        self.brief.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self._stack = with_parts(QVBoxLayout(self.names), self.label, self.brief, 1, gap=0)
        self.message = Message()
        self.badge = QLabel()
        self.badge.setMinimumWidth(1)
        self.badge.setObjectName("badge")
        self.badge.hide()
        self.aside = QLabel(wordWrap=True)
        self.aside.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.aside.hide()
        self.maps = HeadMaps() if spec.kind is FieldKind.HEADS else None
        if self.maps is not None:
            self.maps.committed.connect(partial(self.committed.emit, spec.name))
        self.browse: QToolButton | None = None
        if spec.kind is FieldKind.PATH:
            meaning, strong = "Browse for a tensor file", Qt.FocusPolicy.StrongFocus
            self.browse = named(QToolButton(), "browse", meaning, "Browse…", strong)
        self.steps = self._made_steps()
        self.second: Field | None = None
        """A field whose editor stands in the same row."""
        self._changed = False
        self._box = QBoxLayout(QBoxLayout.Direction.TopToBottom, self)
        self._box.addWidget(self.names)
        self._beside: bool | None = None
        """Whether the label is left of the editor; None before it has a place."""
        self._line = QHBoxLayout()
        self._parts = QVBoxLayout()
        self._box.addLayout(self._parts, 1)
        self._style = Style(DARK)
        self._fill_line()
        self._describe("")

    def _made_steps(self) -> tuple[Button, ...]:
        """Return buttons that make a number less and more, if the field is one of the first."""
        editor = self.editor
        if self.spec.name not in FIRST or not isinstance(editor, WholeEditor):
            return ()
        out = []
        for words, by in (("−", -1), ("+", 1)):
            button = Button()
            button.setText(words)
            button.setAccessibleName(f"{self.spec.label} {'more' if by > 0 else 'less'}")
            button.setAutoRepeat(True)
            button.setFocusPolicy(Qt.FocusPolicy.NoFocus)
            button.clicked.connect(partial(self._step, editor, by))
            out.append(button)
        return tuple(out)

    def _step(self, editor: WholeEditor, by: int) -> None:
        editor.step(by)

    def _fill_line(self) -> None:
        """Put the editor and its buttons and words into one line, the rest below each other."""
        less, more = self.steps[:1], self.steps[1:]
        browse = (self.browse,) if self.browse is not None else ()
        with_parts(self._line, *less, (self.editor, 1), *more, *browse)
        self._row = with_parts(QHBoxLayout(), (self._line, 1))
        maps = (self.maps,) if self.maps is not None else ()
        with_parts(self._parts, *maps, self._row, self.aside, self.badge, self.message, 1)
        self._parts.setAlignment(self.badge, Qt.AlignmentFlag.AlignLeft)

    def add_second(self, field: Field) -> None:
        """Put another field's editor into the same row, behind a ×."""
        self.second = field
        field.names.hide()
        self._row.addWidget(QLabel("×"))
        self._row.addWidget(field, 1)

    # --- what it says ---------------------------------------------------------------------

    def show_said(
        self, said: Texts, blank: Blank | None, workload: Workload, *, force: bool
    ) -> None:
        """Show the value of a field, and the value that a blank field stands for."""
        if blank is not None:
            self.editor.show_blank(blank)
        if isinstance(self.editor, SentenceEditor):
            self.editor.show_input(said, workload)
        else:
            self.editor.show_text(said[self.spec.name], force=force)
        if self.maps is not None:
            known = self.maps.show_workload(workload, said[self.spec.name])
            self.editor.setVisible(not known)

    def say(self, wrong: str, remedy: Remedy | None = None) -> None:
        """Show a message about a wrong value and a remedy, or nothing."""
        said = self.message.text
        self.message.say(wrong, remedy)
        if wrong != said:
            self._describe(wrong)
            self.update()

    def say_what_if(self, words: str) -> None:
        """Say that the value is not the input's own, or nothing."""
        self.badge.setText(words)
        self.badge.setVisible(bool(words))

    def say_aside(self, words: str) -> None:
        """Say something at the right of the editor."""
        self.aside.setText(words)
        self.aside.setVisible(bool(words))

    def mark_changed(self, on: bool) -> None:
        """Mark with a dot that the value differs from the opened scenario's."""
        if on != self._changed:
            self._changed = on
            self.label.setAccessibleDescription("changed" if on else "")
            self.update()

    def _describe(self, wrong: str) -> None:
        self.editor.setAccessibleDescription(f"{wrong}. {self.spec.help}".removeprefix(". "))

    # --- looks ----------------------------------------------------------------------------

    def arrange(self, label_width: int, room: int) -> None:
        """Put the label left of the editor, or above it when `label_width` is 0.

        room: pixels for both; where they are few, numbers have no buttons beside them.
        """
        beside = bool(label_width)
        for button in self.steps:
            least = _STEPS if self.spec.name not in _PAIR else 2 * _STEPS
            button.setVisible(room - label_width >= self._style.px(least))
        if self.second is not None:
            self.second.arrange(label_width, room)
        if beside:
            self.names.setFixedWidth(label_width)
        elif self._beside is not False:
            self.names.setMinimumWidth(0)
            self.names.setMaximumWidth(2**24 - 1)
        if beside is self._beside:  # a window that changes its size asks for it again and again
            return
        self._beside = beside
        way = QBoxLayout.Direction
        self._box.setDirection(way.LeftToRight if beside else way.TopToBottom)

    def set_style(self, style: Style) -> None:
        """Take theme and text scale."""
        self._style = style
        theme, px = style.theme, style.px
        self._box.setSpacing(round(px(4)))
        self._parts.setSpacing(round(px(4)))
        self._line.setSpacing(round(px(6)))
        # The frame is outside of the editor.
        self._box.setContentsMargins(*[math.ceil(px(FRAME))] * 4)
        self._stack.setContentsMargins(round(px(_DOT)), round(px(1)), 0, 0)
        self.message.set_style(style)
        self.label.setFont(style.text_font(13, bold=True))
        colours = QPalette(self.palette())
        colours.setColor(QPalette.ColorRole.WindowText, QColor(theme.muted))
        for words in (self.brief, self.aside):
            words.setFont(style.text_font(11.5))
            words.setPalette(colours)
        self.badge.setFont(style.text_font(11.5, bold=True))
        self.badge.setMinimumHeight(round(px(22)))
        set_sheet(
            self.badge,
            f"#badge {{ color: {theme.current}; border: {max(px(1), 1):.0f}px solid "
            f"{theme.current}; border-radius: {px(11):.0f}px; padding: 0 {px(11):.0f}px; }}",
        )
        self.editor.set_style(style)
        if self.maps is not None:
            self.maps.set_style(style)
        for button in self.steps:
            set_sheet(button, bar_sheet(style))
            button.setFont(style.text_font(14))
            button.setFixedSize(round(px(26)), round(px(24)))
        if self.second is not None:
            self.second.set_style(style)
        if self.browse is not None:
            self.browse.setIcon(icon("open", theme.text))
            size = round(px(16))
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
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            theme, px = self._style.theme, self._style.px
            if self._changed:
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(QColor(theme.current))
                spot = self.label.mapTo(self, self.label.rect().topLeft())
                middle = spot.y() + self.label.height() / 2
                painter.drawEllipse(QRectF(spot.x() - px(11), middle - px(3.5), px(7), px(7)))
            if not self.editor.isVisibleTo(self):
                return
            width = px(FRAME)
            if self.message.text:
                colour = theme.bad
            elif self.editor.has_focus():
                colour = theme.current
            else:
                colour, width = theme.border, max(1.0, width / 2)
                if not self.editor.framed:
                    return
            half = width / 2
            frame = QRectF(self.editor.geometry()).adjusted(-half, -half, half, half)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(QColor(colour), width))
            painter.drawRoundedRect(frame, px(4), px(4))


def _editor(spec: FieldSpec) -> Editor:
    if spec.name == "input.name":
        return SentenceEditor()
    if spec.name == "mask.causal":
        return TwoPictures()
    if spec.kind in (FieldKind.CHOICE, FieldKind.TRI_STATE):
        return ChoiceEditor(spec)
    if spec.kind in (FieldKind.WHOLE, FieldKind.WINDOW):
        return WholeEditor(spec.least)
    # Half a path names no file, so wait until it is complete.
    return LineEditor(live=spec.kind is not FieldKind.PATH)
