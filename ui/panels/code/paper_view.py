"""The page of a paper's algorithm in the code panel: click a line to run to it."""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise

from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QMouseEvent, QMoveEvent, QPainter, QResizeEvent
from PySide6.QtWidgets import QScrollArea

from simulator.code.paper import PAPERS, Paper, Role
from simulator.program.algorithms import USUAL
from ui.look.theme import Style
from ui.panels.code.page import PaperLayout, paint_paper, paper_layout
from ui.safety.overrides import guarded
from ui.widgets.named import named
from ui.widgets.painted import Painted

_TIPS = {
    Role.OP: "Click: run to where this line is done next. In the margin: a breakpoint.",
    Role.TILE: "Click: run to the next tile. In the margin: a breakpoint.",
    Role.BLOCK: "Click: run to the next turn of the outer loop. In the margin: a breakpoint.",
    Role.SETUP: "Sizes and names, settled before the first step.",
    Role.END: "Click: run to the end.",
}


@guarded
class PaperView(QScrollArea):
    """The lines of one algorithm, the current one framed and kept in sight."""

    line_chosen = Signal(int)
    """A line to run to, by its place."""
    mark_toggled = Signal(int)
    """A line whose breakpoint is set or removed."""

    def __init__(self) -> None:
        super().__init__()
        self.page = _Page(self)
        self.setWidget(self.page)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setFocusProxy(self.page)

    def set_style(self, style: Style) -> None:
        """Take theme and text scale."""
        self.page.set_style(style)

    def show_paper(self, paper: Paper) -> None:
        """Show an algorithm."""
        if paper is not self.page.paper or not self.page.fed:
            self.page.paper, self.page.fed = paper, True
            self.page.focus = None
            self.page.current = self.page.pointed = ()  # lines of another algorithm
            self.page.arrange()

    def show_current(self, lines: tuple[int, ...]) -> None:
        """Frame the lines that run now, and scroll to them where they are out of sight."""
        if lines != self.page.current:
            self.page.current = lines
            names = [self.page.paper.lines[n].label for n in lines]
            self.page.setAccessibleDescription(f"runs now: line {', '.join(names)}")
            self.page.update()
            self.follow()

    def show_points(self, lines: tuple[int, ...]) -> None:
        """Point at lines, and scroll to them where they are out of sight."""
        lines = tuple(line for line in lines if line < len(self.page.paper.lines))
        if lines != self.page.pointed:
            self.page.pointed = lines
            self.page.update()
            self.follow()

    def show_marks(self, lines: Collection[int]) -> None:
        """Show breakpoints."""
        self.page.marked = frozenset(lines)
        self.page.update()

    def show_lit(self, lit: bool) -> None:
        """Light α, or the power of e that stands for it."""
        self.page.lit = lit
        self.page.update()

    def follow(self) -> None:
        """Scroll to the lines that are pointed at, or else run now, where they are out of sight."""
        lines = self.page.pointed or self.page.current
        if lines:
            self.page.keep_in_sight(lines[0], lines[-1])

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.page.arrange()
        self.follow()


@guarded
class _Page(Painted):
    ringed = False  # the line that has the focus is framed

    def __init__(self, area: PaperView) -> None:
        super().__init__()
        self._area = area
        self.paper = PAPERS[USUAL.name]
        self.fed = False
        """Whether an algorithm has been shown: its formulas are typeset by then."""
        self.current: tuple[int, ...] = ()
        self.marked: frozenset[int] = frozenset()
        self.pointed: tuple[int, ...] = ()
        self.focus: int | None = None
        self.lit = False
        self._hover: int | None = None
        self._laid: tuple[tuple[Paper, Style, int], PaperLayout] | None = None
        named(self, "paper", "The paper's algorithm")
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    @property
    def laid(self) -> PaperLayout:
        """Where the lines stand, beside a scroll bar even if none is needed.

        Without this room lines might need the bar only while the bar is there: the picture would
        depend on what was shown before.
        """
        bar = self._area.verticalScrollBar().sizeHint().width()
        key = (self.paper, self.style_now, max(self._area.maximumViewportSize().width() - bar, 1))
        if self._laid is None or self._laid[0] != key:
            self._laid = (key, paper_layout(self.paper, self.style_now, key[2]))
        return self._laid[1]

    def arrange(self) -> None:
        """Set the lines anew, as high as they need."""
        if self.fed:
            self.setMinimumHeight(round(self.laid.height) + 1)
        self.update()

    def keep_in_sight(self, line: int, last: int | None = None) -> None:
        """Scroll a line, or the lines up to `last`, to the middle if out of sight."""
        rows, bar = self.laid.rows, self._area.verticalScrollBar()
        room = self._area.viewport().height()
        box = rows[line].box
        if last is not None:
            box = box.united(rows[last].box)
        if box.top() < bar.value() or box.bottom() > bar.value() + room:
            bar.setValue(round(min(box.center().y() - room / 2, box.top())))

    def _whole_lines(self) -> QRectF:
        """Return the part in sight without lines that its edges cut: these are not painted."""
        top, high = float(self._area.verticalScrollBar().value()), self._area.viewport().height()
        bottom, rows, wide = top + high, self.laid.rows, float(self.width())
        edges = [0.0, *(row.box.top() for row in rows), rows[-1].box.bottom(), self.laid.height]
        for above, below in pairwise(edges):
            if below - above > high / 2:  # part of a line is better than nothing
                continue
            if above < top < below:
                top = below
            elif above < bottom < below:
                bottom = above
        return QRectF(0, top, wide, max(bottom - top, 0.0))

    def moveEvent(self, event: QMoveEvent) -> None:
        self.update()  # scrolling shows other lines whole

    def paint(self, painter: QPainter) -> None:
        if self.fed:
            painter.setClipRect(self._whole_lines(), Qt.ClipOperation.IntersectClip)
            paint_paper(
                painter, self.paper, self.laid, current=self.current, marked=self.marked,
                pointed=self.pointed, focus=self.focus if self.hasFocus() else None,
                hover=self._hover, lit=self.lit,
            )  # fmt: skip

    # --- the user ---------------------------------------------------------------------------

    def tip(self, at: QPointF) -> str:
        line = self.laid.row_at(at.y())
        return "" if line is None else _TIPS[self.paper.lines[line].role]

    def point(self, at: QPointF | None) -> None:
        line = None if at is None else self.laid.row_at(at.y())
        runs = line is not None and self.paper.lines[line].role is not Role.SETUP
        self.setCursor(Qt.CursorShape.PointingHandCursor if runs else Qt.CursorShape.ArrowCursor)
        if line != self._hover:
            self._hover = line
            self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        line = self.laid.row_at(event.position().y())
        if line is None or event.button() is not Qt.MouseButton.LeftButton:
            return
        self.focus = line
        if event.position().x() < self.laid.margin:
            self._area.mark_toggled.emit(line)
        else:
            self._area.line_chosen.emit(line)
        self.update()

    def focusInEvent(self, event: QFocusEvent) -> None:
        if self.focus is None:
            self.focus = self.current[0] if self.current else 0
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        self.update()

    def key(self, event: QKeyEvent) -> bool:
        at, last = self.focus or 0, len(self.paper.lines) - 1
        match event.key():
            case Qt.Key.Key_Up | Qt.Key.Key_Down:
                step = 1 if event.key() == Qt.Key.Key_Down else -1
                self.focus = min(max(at + step, 0), last)
                self.keep_in_sight(self.focus)
                self.setAccessibleDescription(f"line {self.paper.lines[self.focus].label}")
                self.update()
            case Qt.Key.Key_Return | Qt.Key.Key_Enter:
                self._area.line_chosen.emit(at)
            case Qt.Key.Key_F9:
                self._area.mark_toggled.emit(at)
            case _:
                return False
        return True
