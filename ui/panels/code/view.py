"""A file's text in the code panel: numbered, coloured, the lines that run now framed."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from PySide6.QtCore import QEvent, QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontMetricsF,
    QHelpEvent,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QSyntaxHighlighter,
    QTextBlock,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextOption,
)
from PySide6.QtWidgets import QFrame, QPlainTextEdit, QTextEdit, QToolTip, QWidget

from simulator.code.code_lines import CodeLine
from ui.look.draw import mixed, outline, text_width
from ui.look.highlight import spans
from ui.look.lit import ALPHA_IN_CODE, paint_lit
from ui.look.theme import DARK, Style
from ui.panels.code.page import CURRENT_SHARE, paint_margin
from ui.safety.overrides import guarded
from ui.safety.painting import painting
from ui.widgets.named import named
from ui.widgets.sheet import set_sheet

_LETTERS = 12.0
"""Font pixels at scale 1."""
_TIP = "Click a line: run to where it is done next. In the margin: a breakpoint."
_OWN_KEYS = (Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown)


@guarded
class CodeView(QPlainTextEdit):
    """Some code, to read and to click on.

    language: ``python`` or ``cuda``.
    explain: returns the meaning of a word for its tip; "" for a word without a tip.
    """

    line_chosen = Signal(int)
    """A line to run to, by its number in the file."""
    mark_toggled = Signal(int)
    """A line whose breakpoint is set or removed."""

    def __init__(
        self, name: str, language: str, explain: Callable[[str], str] = lambda _: ""
    ) -> None:
        super().__init__()
        self._explain = explain
        self.style_now = Style(DARK)
        self.current: tuple[int, ...] = ()
        self.marked: frozenset[int] = frozenset()
        self.struck: tuple[int, ...] = ()
        self.lit: frozenset[int] = frozenset()
        self.numbers: tuple[int, ...] = ()
        self._shown: tuple[CodeLine, ...] = ()
        self._colours = _Colours(self.document(), language)
        self.margin = _Margin(self)
        self.setAccessibleName(name)
        self.setReadOnly(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse
            | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.viewport().setCursor(Qt.CursorShape.PointingHandCursor)
        self.updateRequest.connect(self._scrolled)

    # --- what is shown ----------------------------------------------------------------------

    def set_style(self, style: Style) -> None:
        """Take theme and text scale."""
        self.style_now = style
        letters = QFont(style.code_font(_LETTERS))
        letters.setFeature(QFont.Tag("calt"), 0)  # as in the file, without ligatures
        self.setFont(letters)
        set_sheet(
            self,
            f"QPlainTextEdit {{ background: {style.theme.panel}; color: {style.theme.text}; }}",
        )
        self._colours.set_style(style)
        self._make_room()
        self._repaint()

    def show_text(self, lines: tuple[CodeLine, ...]) -> None:
        """Show a text."""
        if lines == self._shown:
            return
        self._shown = lines
        self.numbers = tuple(line.number for line in lines)
        self.current = self.struck = ()
        self.setExtraSelections([])
        text = "\n".join(line.text for line in lines)
        self._colours.take(text)
        self.setPlainText(text)
        self._make_room()
        self._repaint()

    def show_current(self, lines: tuple[int, ...]) -> None:
        """Frame the lines that run now, and scroll to them where they are out of sight."""
        if lines != self.current:
            self.current = lines
            self._tell()

    def show_struck(self, lines: tuple[int, ...]) -> None:
        """Strike through and point at lines that a lesson takes away, and scroll to them."""
        if lines == self.struck:
            return
        self.struck = lines
        strike = QTextCharFormat()
        strike.setFontStrikeOut(True)
        selections = []
        for block in self._blocks(lines):
            selection = QTextEdit.ExtraSelection()
            selection.format = strike
            selection.cursor = QTextCursor(block)
            selection.cursor.movePosition(
                QTextCursor.MoveOperation.EndOfBlock, QTextCursor.MoveMode.KeepAnchor
            )
            selections.append(selection)
        self.setExtraSelections(selections)
        self._tell()

    def _tell(self) -> None:
        """Show which lines run now or are struck through, to screen readers, too."""
        said = []
        for words, lines in (("runs now", self.current), ("taken away", self.struck)):
            shown = ", ".join(str(line.shown) for line in self._shown if line.number in lines)
            said += [f"{words}: line {shown}"] if shown else []
        self.setAccessibleDescription("; ".join(said))
        self._repaint()
        self.follow()

    def show_marks(self, lines: Collection[int]) -> None:
        """Show breakpoints."""
        self.marked = frozenset(lines)
        self.margin.update()

    def show_lit(self, lines: Collection[int]) -> None:
        """Light α in lines."""
        self.lit = frozenset(lines)
        self.viewport().update()

    def lit_boxes(self) -> list[QRectF]:
        """Return the boxes of each lit α that is in sight."""
        out, block = [], self.firstVisibleBlock()
        for number, box in self.blocks_in_sight() if self.lit else ():
            for found in ALPHA_IN_CODE.finditer(block.text()) if number in self.lit else ():
                line = block.layout().lineForTextPosition(found.start())
                ends: list[float] = []
                for at in found.span():
                    where: Any = line.cursorToX(at)  # in Python a pair: x and the place in the line
                    ends.append(where[0] if isinstance(where, tuple) else where)
                place = line.rect().translated(box.topLeft())
                left, right = box.left() + min(ends), box.left() + max(ends)
                out.append(QRectF(left - 2, place.top(), right - left + 4, place.height()))
            block = block.next()
        return out

    def follow(self) -> None:
        """Scroll lines that run now or are struck through to the middle, if out of sight."""
        blocks = self._blocks((*self.struck, *self.current))
        if not blocks:
            return
        boxes = [self._box(block) for block in blocks]
        room = self.viewport().height()
        if boxes[0].top() < 0 or boxes[-1].bottom() > room:
            first = blocks[0]
            fits = max(1, int(room / max(self._box(first).height() / first.lineCount(), 1)))
            middle = (first.firstLineNumber() + blocks[-1].firstLineNumber()) // 2
            top = max(0, middle - fits // 2)
            # If not all lines fit, the first one stays in sight.
            self.verticalScrollBar().setValue(min(top, first.firstLineNumber()))

    def _blocks(self, lines: Collection[int]) -> list[QTextBlock]:
        """Return lines of the text, from the top."""
        places = sorted(self.numbers.index(n) for n in lines if n in self.numbers)
        return [self.document().findBlockByNumber(n) for n in places]

    def _box(self, block: QTextBlock) -> QRectF:
        """Return where a line of the text stands in the viewport."""
        return self.blockBoundingGeometry(block).translated(self.contentOffset())

    def blocks_in_sight(self) -> list[tuple[int, QRectF]]:
        """Return the number and the box of each line in sight; 0 for a gap."""
        out: list[tuple[int, QRectF]] = []
        if not self.numbers:  # Qt's document has one line before there is a text
            return out
        block = self.firstVisibleBlock()
        while block.isValid():
            box = self._box(block)
            if box.top() > self.viewport().height():
                break
            out.append((self.numbers[block.blockNumber()], box))
            block = block.next()
        return out

    def _repaint(self) -> None:
        self.viewport().update()
        self.margin.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        # The ground lies under the text; an extra selection would end where a wrapped line does.
        with painting(self.viewport(), covers=False) as painter:
            theme = self.style_now.theme
            for box in self._boxes_of(self.current):
                painter.fillRect(box, mixed(theme.panel, theme.current, CURRENT_SHARE))
            for box in self.lit_boxes():
                paint_lit(painter, box, self.style_now)
        super().paintEvent(event)
        with painting(self.viewport(), covers=False) as painter:
            style = self.style_now
            for box in self._boxes_of(self.current):
                outline(painter, box, style.theme.current, style.px(1.5))
            for box in self._boxes_of(self.struck):
                outline(painter, box, style.theme.text, style.px(2), style.px(5))

    def _boxes_of(self, lines: Collection[int]) -> list[QRectF]:
        """Return the frames of the lines that are in sight."""
        wide = self.viewport().width() - 1
        return [
            QRectF(0, box.top(), wide, box.height())
            for number, box in self.blocks_in_sight()
            if number and number in lines
        ]

    # --- the margin -------------------------------------------------------------------------

    @property
    def margin_width(self) -> int:
        """Width of the column of marks and numbers, in pixels."""
        font = self.style_now.code_font(_LETTERS)
        digits = "0" * len(str(max((line.shown for line in self._shown), default=0)))
        return round(self.style_now.px(28) + text_width(font, digits))

    def _make_room(self) -> None:
        self.setViewportMargins(self.margin_width, 0, 0, 0)
        self._place_margin()

    def _place_margin(self) -> None:
        inside = self.contentsRect()
        self.margin.setGeometry(
            QRect(inside.left(), inside.top(), self.margin_width, inside.height())
        )

    def _scrolled(self, rect: QRect, by: int) -> None:
        self.margin.update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place_margin()
        self.follow()

    def paint_margin(self, painter: QPainter) -> None:
        """Paint marks and numbers of the lines in sight."""
        theme = self.style_now.theme
        painter.fillRect(self.margin.rect(), QColor(theme.panel))
        ascent = QFontMetricsF(self.font()).ascent()
        shown = {line.number: line.shown for line in self._shown}
        for number, box in self.blocks_in_sight():
            if number:
                place = QRectF(0, box.top(), self.margin.width(), box.height())
                paint_margin(
                    painter, self.style_now, place, str(shown[number]), box.top() + ascent,
                    current=number in self.current, marked=number in self.marked,
                    pointed=number in self.struck,
                )  # fmt: skip

    def number_at(self, at: QPointF) -> int:
        """Return the number of the line at a point of the viewport; 0 where there is none."""
        for number, box in self.blocks_in_sight():
            if box.top() <= at.y() < box.bottom():
                return number
        return 0

    # --- the user ---------------------------------------------------------------------------

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        number = self.number_at(event.position())
        dragged = self.textCursor().hasSelection()
        if number and not dragged and event.button() is Qt.MouseButton.LeftButton:
            self.line_chosen.emit(number)

    def event(self, event: QEvent) -> bool:
        if event.type() is QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent):
            # Reading needs few keys: the others step and play, as everywhere.
            copies = event.matches(QKeySequence.StandardKey.Copy)
            if not copies and event.key() not in _OWN_KEYS:
                event.ignore()
                return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        number = self.numbers[self.textCursor().blockNumber()] if self.numbers else 0
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            if number:
                self.line_chosen.emit(number)
        elif event.key() == Qt.Key.Key_F9:
            if number:
                self.mark_toggled.emit(number)
        elif event.key() == Qt.Key.Key_Tab:
            self.focusNextPrevChild(True)
        else:
            super().keyPressEvent(event)

    def viewportEvent(self, event: QEvent) -> bool:
        if event.type() is QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            cursor = self.cursorForPosition(event.pos())
            cursor.select(QTextCursor.SelectionType.WordUnderCursor)
            QToolTip.showText(event.globalPos(), self._explain(cursor.selectedText()) or _TIP, self)
            return True
        return super().viewportEvent(event)


@guarded
class _Margin(QWidget):
    """Marks and numbers beside the text: a click sets a breakpoint."""

    def __init__(self, view: CodeView) -> None:
        super().__init__(view)
        self._view = view
        tip = "Click: a breakpoint at this line, or none. F9 does it for the line."
        named(self, "margin", "Breakpoints", tip)
        self.setCursor(Qt.CursorShape.PointingHandCursor)

    def sizeHint(self) -> QSize:
        return QSize(self._view.margin_width, 0)

    def paintEvent(self, event: QPaintEvent) -> None:
        with painting(self) as painter:
            self._view.paint_margin(painter)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        number = self._view.number_at(event.position())
        if number and event.button() is Qt.MouseButton.LeftButton:
            self._view.mark_toggled.emit(number)


@guarded
class _Colours(QSyntaxHighlighter):
    """Colours of a text; the text is split into spans once."""

    def __init__(self, document: QTextDocument, language: str) -> None:
        super().__init__(document)
        self._language = language
        self._text = ""
        self._formats: dict[str, QTextCharFormat] = {}

    def take(self, text: str) -> None:
        """Take the text that is about to be shown."""
        self._text = text

    def set_style(self, style: Style) -> None:
        """Take the theme's colours."""
        theme = style.theme
        comment, keyword = QTextCharFormat(), QTextCharFormat()
        comment.setForeground(QColor(theme.muted))
        keyword.setFontWeight(QFont.Weight.Bold)
        self._formats = {"comment": comment, "keyword": keyword}
        for name in theme.tensors:
            self._formats[name] = QTextCharFormat()
            self._formats[name].setForeground(theme.tensor(name))
        self.rehighlight()

    def highlightBlock(self, text: str) -> None:
        lines = spans(self._language, self._text)
        number = self.currentBlock().blockNumber()
        for span in lines[number] if number < len(lines) else ():
            form = self._formats.get(span.kind)
            if form is not None:
                self.setFormat(span.start, span.length, form)
