"""The dock that shows pages taken and given back while sequences grow and end."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from PySide6.QtCore import QEvent, QRectF, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QLabel, QSlider, QToolButton, QWidget

from simulator.lesson.tables import ChooseTable
from simulator.problem.workload import Workload
from simulator.study.serving.by_hand import FIRST, CacheMove, Kind, may
from simulator.study.serving.choices import CHOICES, HAND, RUN, SHARED
from simulator.study.serving.state import PagesState, hand_state, pages_state, run_state
from ui.look.draw import text_width
from ui.look.names import fitting
from ui.look.theme import LABEL, Style
from ui.panels.base import Panel, StatePicture
from ui.panels.pages.painter import MIN_SIZE, paint_pages, sequence_at
from ui.panels.pages.words import sentences, title
from ui.safety.overrides import guarded
from ui.safety.painting import painting
from ui.session.session import Session
from ui.session.view import View
from ui.widgets.choice_bar import Button, PlotBar, bar_sheet, lines_of, put_in_lines
from ui.widgets.sheet import set_sheet

_SIDE = 8
_HIGH = 22
_KEYS = {Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Home, Qt.Key.Key_End}


@guarded
class StepSlider(QSlider):
    """A slider that has the arrow keys while it has the focus, which otherwise step the run."""

    def event(self, event: QEvent) -> bool:
        kept = event.type() is QEvent.Type.ShortcutOverride
        if kept and isinstance(event, QKeyEvent) and event.key() in _KEYS:
            event.accept()
            return True
        return super().event(event)


_MOVES: tuple[tuple[Kind, str, str], ...] = (
    ("admit", "Admit", "A new sequence: it takes pages for its prompt, or waits."),
    ("grow", "Grow", "One token more for the chosen sequence. Without room it takes a page, "
     "and it copies a page that others read."),
    ("fork", "Fork", "Another sequence with the same pages: one is copied when it is written to."),
    ("end", "End", "The chosen sequence ends; pages that nobody else reads are free again."),
)  # fmt: skip


@guarded
class PagesPicture(StatePicture[PagesState]):
    """The cache; a click on a sequence is told."""

    clicked = Signal(int)
    """The running sequence that was clicked."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, "Pages of a cache", paint_pages)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if self.state is None or event.button() != Qt.MouseButton.LeftButton:
            return
        found = sequence_at(self.state, self.style_now, QRectF(self.rect()), event.position())
        if found is not None:
            self.clicked.emit(found)


@guarded
class PagesPanel(Panel[None]):
    """A server's cache, step by step: the slider, or the arrow keys on it, choose the step.

    Or a cache that is changed by hand: a click chooses a sequence, buttons grow, fork or end it.

    Parameters
    ----------
    session : Session
        Not asked: the server is an example of its own, and the view has the run.
    """

    def __init__(self, session: Session) -> None:
        super().__init__("pages_panel", "Pages")
        self._said = {each.name: each.usual for each in CHOICES}
        self.moves: tuple[CacheMove, ...] = FIRST
        """What has been done by hand."""
        self.chosen = 0
        self._workload: Workload | None = None
        self._controls = True
        self.bar = PlotBar(CHOICES)
        self.bar.setParent(self)
        self.bar.fit_button.hide()
        self.bar.chosen.connect(self.choose)
        for name, value in self._said.items():
            self.bar.show_chosen(name, value)
        self.slider = StepSlider(Qt.Orientation.Horizontal, self)
        self.slider.setObjectName("pages_step")
        self.slider.setAccessibleName("Step")
        self.slider.setToolTip("The step: each running sequence gets one token more.")
        self.slider.setPageStep(5)
        self.slider.valueChanged.connect(self.go)
        self.label = QLabel("step", self)
        self.buttons: dict[str, QToolButton] = {}
        for kind, text, tip in _MOVES:
            self._add_button(kind, text, tip).clicked.connect(partial(self.move_by_hand, kind))
        self._add_button("undo", "Undo", "Take the last move back.").clicked.connect(self.undo)
        self._add_button("reset", "Reset", "One sequence alone.").clicked.connect(self.reset)
        self.picture = PagesPicture(self)
        self.picture.clicked.connect(self.choose_sequence)
        self._renew()

    @property
    def state(self) -> PagesState:
        """The server on show."""
        assert self.picture.state is not None
        return self.picture.state

    def show_view(self, view: View, model: None = None) -> None:
        """Show the cache of another run, if that is what is chosen."""
        workload = view.snapshot.program.workload
        if workload is not self._workload:
            self._workload = workload
            if self._said["cache"] == RUN:
                self._renew()

    def choose(self, name: str, value: str) -> None:
        """Accept a choice."""
        self._said[name] = value
        if name == "page":
            # Other pages may have kept other sequences, whose moves would be about nobody.
            self.moves, self.chosen = FIRST, 0
        self._renew()

    def take_choices(self, choices: ChooseTable) -> None:
        """Show what a lesson has chosen."""
        for each in CHOICES:
            said = getattr(choices, each.lesson)
            self.bar.choose(each.name, each.usual if said is None else str(said))
        self.slider.setValue(choices.step or 0)
        self.go(self.slider.value())

    def go(self, step: int) -> None:
        """Show another step."""
        self._draw(replace(self.state, step=step))

    # --- by hand --------------------------------------------------------------------------

    def _add_button(self, name: str, text: str, tip: str) -> QToolButton:
        button = self.buttons[name] = Button(self)
        button.setObjectName(f"pages_{name}")
        button.setText(text)
        button.setAccessibleName(text)
        button.setToolTip(tip)
        button.setAccessibleDescription(tip)
        return button

    def move_by_hand(self, kind: Kind) -> None:
        """Do something to the chosen sequence, or admit a new one."""
        move = CacheMove(kind, 0 if kind == "admit" else self.chosen)
        if self.state.by_hand and may(self.state.now, move):
            self._take_moves((*self.moves, move))

    def undo(self) -> None:
        """Take the last move back; the first sequence stays."""
        if len(self.moves) > len(FIRST):
            self._take_moves(self.moves[:-1])

    def reset(self) -> None:
        """Begin again with one sequence."""
        self._take_moves(FIRST)

    def choose_sequence(self, which: int) -> None:
        """Choose the sequence that the next move is about."""
        if self.state.by_hand:
            self.chosen = which
            self._take_moves(self.moves)

    def _take_moves(self, moves: tuple[CacheMove, ...]) -> None:
        self.moves = moves
        state = hand_state(int(self._said["page"]), moves, self.chosen)
        self.chosen = max(state.chosen, 0)
        for kind, *_ in _MOVES:
            self.buttons[kind].setEnabled(may(state.now, CacheMove(kind, state.chosen)))
        self.buttons["undo"].setEnabled(len(moves) > len(FIRST))
        self._draw(state)

    def _renew(self) -> None:
        shows, page = self._said["cache"], int(self._said["page"])
        of_run = run_state(self._workload) if shows == RUN and self._workload else None
        state = of_run or pages_state(page, sharing=self._said["prompts"] == SHARED)
        if shows == HAND:
            state = hand_state(page, self.moves, self.chosen)
        self.bar.show_choice("page", not state.of_run)
        self.bar.show_choice("prompts", not (state.of_run or state.by_hand))
        blocked = self.slider.blockSignals(True)
        self.slider.setRange(0, state.steps - 1)
        self.show_controls(self._controls)
        self.slider.blockSignals(blocked)
        if state.by_hand:
            self._take_moves(self.moves)
        else:
            self._draw(replace(state, step=self.slider.value()))

    def _draw(self, state: PagesState) -> None:
        self.picture.state = state
        words = " ".join((f"{title(state)[0]}.", *sentences(state)))
        self.picture.setAccessibleDescription(words)
        self.setAccessibleDescription(words)
        self.picture.update()

    def show_controls(self, on: bool) -> None:
        self._controls = on
        self.bar.setVisible(on)
        for widget in (self.slider, self.label):
            widget.setVisible(on and self.slider.maximum() > 0)
        for button in self.buttons.values():
            button.setVisible(on and self._said["cache"] == HAND)
        self._arrange()

    def set_style(self, style: Style) -> None:
        super().set_style(style)
        self.picture.style_now = style
        self.picture.update()
        for button in self.buttons.values():
            set_sheet(button, bar_sheet(style))
        set_sheet(self.label, f"color: {style.theme.text}; background: transparent;")
        self._arrange()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def paintEvent(self, event: QPaintEvent) -> None:
        with painting(self) as painter:
            self.clear(painter)

    def _arrange(self) -> None:
        """Give the choices and the slider their lines, and the picture the rest."""
        fitted = fitting(self.style_now, QRectF(self.rect()), MIN_SIZE)
        small = replace(fitted, scale=max(fitted.scale, min(self.style_now.scale, 1)))
        self.bar.set_style(small)
        side, width = (
            round(self.style_now.px(_SIDE)),
            self.width() - 2 * round(self.style_now.px(_SIDE)),
        )
        deep = self.bar.arrange(width) if self._controls else 0
        self.bar.setGeometry(side, 5, width, deep)
        top = 5 + deep + 3
        if self._controls and self.slider.maximum() > 0:
            font, high = small.text_font(LABEL), round(small.px(_HIGH))
            self.label.setFont(font)
            wide = round(text_width(font, self.label.text()) + small.px(8))
            self.label.setGeometry(side, top, wide, high)
            self.slider.setGeometry(side + wide, top, max(width - wide, 40), high)
            top += high + 3
        if self._controls and self._said["cache"] == HAND:
            font = small.text_font(12)
            sizes = [text_width(font, each.text()) + small.px(16) for each in self.buttons.values()]
            groups: list[tuple[list[QWidget], list[float]]] = [
                ([each], [size]) for each, size in zip(self.buttons.values(), sizes, strict=True)
            ]
            lines = lines_of(sizes, small.px(10), width)
            _, high = put_in_lines(groups, lines, small)
            for each in self.buttons.values():
                each.move(each.x() + side, each.y() + top)
            top += high
        self.picture.setGeometry(side, top, width, max(self.height() - top - 6, 40))
