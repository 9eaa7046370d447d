"""The row of controls under the code: run until something happens, and the list of breakpoints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QPoint, QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QLabel, QMenu, QSpinBox, QWidget

from simulator.code.code_lines import forms
from simulator.run.breakpoints import (
    AtOp,
    AtRow,
    AtTile,
    Condition,
    MaximumChanged,
    OverLimit,
    TileSkipped,
)
from simulator.run.trace import Trace
from ui.look.draw import fitted, text_width
from ui.look.icons import icon
from ui.look.theme import DARK, Style
from ui.safety.overrides import guarded
from ui.session.session import Session
from ui.widgets.choice_bar import Button, bar_sheet, lines_of
from ui.widgets.choice_box import ChoiceBox
from ui.widgets.named import named
from ui.widgets.sheet import set_sheet


@dataclass(frozen=True, slots=True)
class _Until:
    """One choice of an event to run until."""

    text: str  # in the list
    tip: str  # what exactly counts, in one sentence
    fields: tuple[str, ...]  # which fields it needs
    # makes the condition from the bar; None: the breakpoints that are set
    make: Callable[[RunBar], Condition] | None


_CHOICES = (
    _Until("breakpoint", "The next place where a breakpoint stops.", (), None),
    _Until(
        "tile (i, j)", "The next visit of this tile, in any head.", ("i", "j"),
        lambda bar: AtTile(bar.fields["i"].value(), bar.fields["j"].value()),
    ),
    _Until(
        "row", "Where the row block with this query row is taken up next.", ("row",),
        lambda bar: AtRow(bar.fields["row"].value()),
    ),
    _Until("op", "The next op of this name.", ("op",), lambda bar: AtOp(bar.op.currentText())),
    _Until(
        "maximum changed",
        "The next op that raises the running maximum of any row; a row's first one does not count"
        " (Milakov & Gimelshein 2018).",
        (), lambda bar: MaximumChanged(),
    ),
    _Until(
        "tile skipped", "The first op after a tile that the mask hides whole and nobody loads.",
        (), lambda bar: TileSkipped(),
    ),
    _Until(
        "SRAM over limit",
        "The next op that brings shared memory over what one block of this GPU may take.",
        (), lambda bar: OverLimit(),
    ),
)  # fmt: skip


@guarded
class RunBar(QWidget):
    """Controls on as many lines as they need.

    session: runs, and has the breakpoints that are listed.
    """

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._status = ""
        self.style_now = Style(DARK)
        self.setObjectName("run_bar")
        self._words = QLabel("Run until", self)
        self.until = named(ChoiceBox(self), "until", "Run until")
        for choice in _CHOICES:
            self.until.addItem(choice.text)
            self.until.setItemData(self.until.count() - 1, choice.tip, Qt.ItemDataRole.ToolTipRole)
        self.fields: dict[str, QSpinBox] = {
            name: self._field(name, words)
            for name, words in (("i", "Row block i"), ("j", "Column block j"), ("row", "Query row"))
        }
        self.op: ChoiceBox = named(ChoiceBox(self), "op", "Op")
        self.run_button = self._button("run", "Run", "Run to it (Enter)", self.run)
        self.stop_button = self._button(
            "stop", "Stop there", "Make it a breakpoint: playing stops there, and so does F8.",
            self.toggle,
        )  # fmt: skip
        self.list_button = self._button(
            "breakpoints", "0", "The breakpoints that are set.", self.show_list
        )
        self.status = QLabel(self)
        self.status.setObjectName("status")
        self.until.currentIndexChanged.connect(lambda _: self._choose())
        session.runs.changed.connect(self._count)
        session.runs.stopped.connect(self._tell_stop)
        session.runs.said.connect(self._forget_stop)
        session.trace_changed.connect(self._limit)
        if session.trace is not None:
            self._limit(session.trace)
        self._choose()
        self._count()
        self.set_style(self.style_now)

    def _field(self, name: str, words: str) -> QSpinBox:
        box = named(QSpinBox(self), name, words, f"{words}, counted from 0")
        box.setPrefix(f"{name} ")
        box.setMaximum(0)
        box.lineEdit().returnPressed.connect(self.run)
        return box

    def _button(self, name: str, text: str, tip: str, press: Callable[[], None]) -> Button:
        button = named(Button(self), name, text, tip)
        button.setText(text)
        button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        button.clicked.connect(lambda _=False: press())
        return button

    # --- what it does -----------------------------------------------------------------------

    @property
    def _choice(self) -> _Until:
        return _CHOICES[self.until.currentIndex()]

    def run(self) -> None:
        """Run until the chosen event."""
        if self._choice.make is None:
            self._session.runs.run_to_breakpoint()
        else:
            self._session.runs.run_until([self._choice.make(self)])

    def toggle(self) -> None:
        """Set the chosen event as a breakpoint, or remove it."""
        if self._choice.make is not None:
            self._session.runs.toggle(self._choice.make(self))

    def show_list(self) -> None:
        """Open the list of breakpoints, each of which can be removed."""
        menu = self.list_menu()
        menu.popup(self.list_button.mapToGlobal(QPoint(0, -menu.sizeHint().height())))

    def list_menu(self) -> QMenu:
        """Return the list of breakpoints as a menu."""
        runs = self._session.runs
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.setAccessibleName("Breakpoints")
        for condition in runs.breakpoints:
            action = menu.addAction(f"Remove: {condition.words}")
            action.setIcon(icon("close", self.style_now.theme.text))
            action.triggered.connect(lambda _=False, condition=condition: runs.remove(condition))
        if runs.breakpoints:
            menu.addSeparator()
            menu.addAction("Remove all").triggered.connect(lambda _=False: runs.clear())
        else:
            menu.addAction("None yet: click beside a line").setEnabled(False)
        return menu

    # --- what it shows ----------------------------------------------------------------------

    def _choose(self) -> None:
        self.until.setToolTip(self._choice.tip)
        self.stop_button.setEnabled(self._choice.make is not None)
        self.arrange()

    def _limit(self, trace: Trace) -> None:
        """Take the sizes and the ops of the run on show."""
        w = trace.workload
        for name, most in (("i", w.grid.Tr), ("j", w.grid.Tc), ("row", w.seqlen_q)):
            self.fields[name].setMaximum(most - 1)
        names = list(dict.fromkeys(op.name for op in forms(w.algorithm, w.variant)))
        if names != [self.op.itemText(n) for n in range(self.op.count())]:
            chosen = self.op.currentText()
            self.op.clear()
            self.op.addItems(names)
            self.op.setCurrentText(chosen)
        self.arrange()

    def _count(self) -> None:
        count = len(self._session.runs.breakpoints)
        self.list_button.setText(str(count))
        listed = ", ".join(condition.words for condition in self._session.runs.breakpoints)
        self.list_button.setAccessibleName(f"Breakpoints: {count}")
        self.list_button.setToolTip(f"Breakpoints: {listed or 'none yet'}")
        self.arrange()

    def _forget_stop(self, words: str) -> None:
        self._tell("")

    def _tell_stop(self, words: str) -> None:
        self._tell(f"Stopped: {words}")

    def _tell(self, words: str) -> None:
        self._status = words
        self.status.setToolTip(words)
        self.status.setAccessibleName(words)
        self.arrange()

    def set_style(self, style: Style) -> None:
        """Take theme and text scale."""
        self.style_now = style
        set_sheet(self, bar_sheet(style) + f"QLabel {{ color: {style.theme.muted}; }}")
        for box in (self.until, self.op):
            box.set_style(style)
        self.run_button.setIcon(icon("play", style.theme.text))
        for button in (self.stop_button, self.list_button):
            button.setIcon(icon("breakpoint", style.theme.bad))
        self.arrange()

    def arrange(self) -> None:
        """Place everything in lines that fit the width; the status takes the rest.

        Words are left out if that saves a line.
        """
        gap = round(self.style_now.px(4))
        room = max(self.width() - 2 * gap, 1)
        rows = [self._row(long=long) for long in (True, False)]
        lines = [lines_of([wide for _, wide in row], gap, room) for row in rows]
        long = lines[0][-1] <= lines[1][-1]
        self._words.setVisible(long)
        look = Qt.ToolButtonStyle
        for button in (self.run_button, self.stop_button):
            button.setToolButtonStyle(
                look.ToolButtonTextBesideIcon if long else look.ToolButtonIconOnly
            )
        at = 0 if long else 1
        self._place(rows[at], lines[at], room, gap)

    def _row(self, *, long: bool) -> list[tuple[QWidget, float]]:
        """Return the shown controls, each with its width, with or without words."""
        font, px = self.style_now.text_font(12), self.style_now.px
        shown = self._choice.fields
        row: list[tuple[QWidget, float]] = []
        if long:
            row.append((self._words, text_width(font, self._words.text())))
        widest = max(text_width(font, choice.text) for choice in _CHOICES)
        row.append((self.until, widest + px(36)))
        for name, field in self.fields.items():
            field.setVisible(name in shown)
            if name in shown:
                row.append((field, text_width(font, f"{name} {field.maximum()}") + px(36)))
        self.op.setVisible("op" in shown)
        if "op" in shown:
            ops = [text_width(font, self.op.itemText(n)) for n in range(self.op.count())]
            row.append((self.op, max(ops, default=0) + px(36)))
        for button in (self.run_button, self.stop_button, self.list_button):
            words = long or button is self.list_button
            row.append((button, px(32) + (text_width(font, button.text()) if words else 0)))
        return row

    def _place(
        self, row: list[tuple[QWidget, float]], lines: list[int], room: float, gap: int
    ) -> None:
        font, px = self.style_now.text_font(12), self.style_now.px
        height, side = round(px(24)), round(px(14))
        for button in (self.run_button, self.stop_button, self.list_button):
            button.setIconSize(QSize(side, side))
        x, line = 0.0, 0
        for (widget, wide), at in zip(row, lines, strict=True):
            if at != line:
                x, line = 0.0, at
            widget.setFont(font)
            if isinstance(widget, QSpinBox):
                widget.lineEdit().setFont(font)
            top = gap + line * (height + gap)
            widget.setGeometry(gap + round(x), top, round(min(wide, room)), height)
            x += wide + gap
        left = room - x - gap
        self.status.setFont(font)
        self.status.setVisible(bool(self._status) and left > px(90))
        self.status.setText(fitted(font, self._status, left))
        self.status.setGeometry(
            gap + round(x + gap), gap + line * (height + gap), max(round(left), 0), height
        )
        self.setFixedHeight(gap + (line + 1) * (height + gap))

    def resizeEvent(self, event: QResizeEvent) -> None:
        if event.size().width() != event.oldSize().width():
            self.arrange()
