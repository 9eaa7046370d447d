"""The bar at the top: algorithm, what is special about the scenario, and who computes."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import (
    QButtonGroup,
    QHBoxLayout,
    QLabel,
    QMenu,
    QSizePolicy,
    QToolButton,
    QWidget,
)

from simulator.program.algorithms import ALGORITHMS
from simulator.program.faults import fault_labels
from simulator.run.trace import Trace
from ui.look.draw import CENTRE, card, draw_text, text_width
from ui.look.names import first_that_fits
from ui.look.run_words import engine_words, scenario_words
from ui.look.theme import Style
from ui.panels.scenario.fields import FIELDS
from ui.safety.overrides import guarded
from ui.safety.painting import painting
from ui.widgets.progress import ElidedLabel, ProgressStrip

_EXPLAINED = ("seqlen_q", "seqlen_k", "head_dim", "rows", "cols", "causal", "kv_heads", "dtype")
_MEANINGS = tuple(f"{spec.label}: {spec.help}" for spec in FIELDS if spec.key in _EXPLAINED)
"""What the words in the chips mean, as the form of the scenario has it."""


@guarded
class _Chips(QWidget):
    """Words in small boxes; if there is no space, the last ones are left out first."""

    clicked = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._words: list[str] = []
        self._style: Style | None = None
        self._faults: tuple[str, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self.setAccessibleName("Scenario")

    def show_words(self, words: list[str], style: Style, faults: tuple[str, ...] = ()) -> None:
        """Show words; before them `fault_labels`, which are always shown."""
        self._words, self._style, self._faults = words, style, faults
        self.setAccessibleDescription(", ".join([*faults[:1], *words]))
        self._explain()
        self.updateGeometry()
        self.update()

    def _explain(self) -> None:
        """Say in the tool tip what the words mean, and those for which there is no space."""
        shown = {word for word, _ in self._boxes()}
        rest = [word for word in self._words if word not in shown]
        self.setToolTip("\n".join([*rest, *_MEANINGS, "Click to change."]))

    def _boxes(self) -> list[tuple[str, QRectF]]:
        """Return the words that fit, and their places."""
        style, out, x = self._style, [], 0.0
        if style is None:
            return []
        font, height = style.text_font(12), style.px(22)
        room = self.width() - style.px(18)
        fault = [first_that_fits(self._faults, room, font)] if self._faults else []
        for word in fault + self._words:
            width = text_width(font, word) + style.px(18)
            if x + width <= self.width():
                out.append((word, QRectF(x, (self.height() - height) / 2, width, height)))
                x += width + style.px(6)
        return out

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._explain()

    def minimumSizeHint(self) -> QSize:
        fault = 0.0
        if self._style is not None and self._faults:
            font = self._style.text_font(12)
            fault = text_width(font, self._faults[-1]) + self._style.px(18)
        return QSize(max(40, round(fault)), round(self._style.px(26)) if self._style else 26)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.LeftButton:
            self.clicked.emit()

    def paintEvent(self, event: QPaintEvent) -> None:
        with painting(self) as painter:
            style = self._style
            if style is None:
                return
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            theme, font = style.theme, style.text_font(12)
            for word, box in self._boxes():
                bad = word in self._faults
                ground, border = (theme.bad, theme.bad) if bad else (theme.field, theme.border)
                card(painter, box, ground, border, box.height() / 2)
                draw_text(painter, box, word, font, theme.panel if bad else theme.text, CENTRE)


@guarded
class _Algorithms(QWidget):
    """A button for each algorithm; where they have no room, one with a menu of them all.

    row: the buttons.
    chooser: the one that stands for all, with the name of the algorithm on show.
    """

    chosen = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.row, self.chooser = QWidget(), QToolButton()
        self._buttons: dict[str, QToolButton] = {}
        place, buttons = QHBoxLayout(self), QHBoxLayout(self.row)
        for layout in (place, buttons):
            layout.setContentsMargins(0, 0, 0, 0)
        place.addWidget(self.row)
        place.addWidget(self.chooser)
        group, menu = QButtonGroup(self), QMenu(self.chooser)
        for name, algorithm in ALGORITHMS.items():
            button = QToolButton()
            button.setObjectName("algorithm")
            button.setText(algorithm.short_title)
            button.setToolTip(f"{algorithm.title}: {algorithm.about} ({algorithm.source})")
            button.setCheckable(True)
            button.clicked.connect(partial(self.chosen.emit, name))
            group.addButton(button)
            buttons.addWidget(button)
            self._buttons[name] = button
            menu.addAction(algorithm.title).triggered.connect(partial(self.chosen.emit, name))
        self.chooser.setObjectName("algorithm")
        self.chooser.setAccessibleName("Algorithms")
        self.chooser.setToolTip("Algorithms")
        self.chooser.setMenu(menu)
        self.chooser.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.chooser.setStyleSheet("QToolButton::menu-indicator { image: none; }")  # ▾ is larger
        self.chooser.hide()

    def show_chosen(self, name: str) -> None:
        """Mark the algorithm on show."""
        self._buttons[name].setChecked(True)
        self.chooser.setText(f"{self._buttons[name].text()} ▾")
        self.updateGeometry()

    def set_style(self, style: Style) -> None:
        """Take the text scale."""
        row = self.row.layout()
        assert row is not None
        row.setSpacing(round(style.px(6)))
        for button in (*self._buttons.values(), self.chooser):
            button.setFont(style.text_font(13))
        self.updateGeometry()

    def minimumSizeHint(self) -> QSize:
        """Return the room of the one button, whichever is shown."""
        self.chooser.ensurePolished()
        return self.chooser.sizeHint()

    def spread(self, wide: bool) -> None:
        """Show a button for each, or the one for all."""
        self.row.setVisible(wide)
        self.chooser.setVisible(not wide)

    @property
    def spared(self) -> int:
        """Pixels by which the one button is narrower than all."""
        for each in (self.row, self.chooser):
            each.ensurePolished()
        return self.row.sizeHint().width() - self.chooser.sizeHint().width()


@guarded
class Header(QWidget):
    """Brand, algorithm buttons, scenario chips, engine badge.

    If there is too little space, first the brand disappears, then one button replaces those of the
    algorithms, then the badge gets shorter, and then it disappears, too.
    """

    algorithm_chosen = Signal(str)
    scenario_asked = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.brand = QLabel("Tilescope")
        self.brand.setObjectName("brand")
        self.algorithms = _Algorithms()
        self.algorithms.chosen.connect(self.algorithm_chosen)
        row = QHBoxLayout(self)
        row.addWidget(self.brand)
        row.addWidget(self.algorithms)
        self._chips = _Chips()
        self._chips.clicked.connect(self.scenario_asked)
        row.addSpacing(8)
        row.addWidget(self._chips, 1)
        self.progress = ProgressStrip()
        self.progress.toggled.connect(self._make_room)
        row.addWidget(self.progress)
        self._who = ""
        self._least = 0
        self.engine = ElidedLabel()
        self.engine.setObjectName("engine")
        self.engine.setAlignment(Qt.AlignmentFlag.AlignCenter)
        row.addWidget(self.engine)

    def keep_width(self, width: int) -> None:
        """Keep the window at least so many pixels wide: what stands above needs them."""
        if width != self._least:
            self._least = width
            self.updateGeometry()

    def show_trace(self, trace: Trace, style: Style, note: str, *, asked: bool = True) -> None:
        """Show a trace; `note` says in words why this engine computes.

        asked: also what the strip of questions has fields for.
        """
        self.algorithms.show_chosen(trace.workload.algorithm)
        faults = fault_labels(trace.workload.faults)
        words = scenario_words(trace.workload, asked=asked)
        self._chips.show_words(words, style, faults)
        self._who = engine_words(trace.engine.name, trace.engine.device)
        self.engine.setText(self._who)
        self.engine.setToolTip(f"{self._who}\n{note}")
        self.engine.setAccessibleDescription(note)
        self._make_room(not self.progress.isHidden())

    def show_busy(self, busy: bool, trace: Trace | None) -> None:
        """Say that the engine is at work, or which engine it is."""
        if busy:
            self.engine.setText("computing…")
        elif trace is not None:
            self.engine.setText(engine_words(trace.engine.name, trace.engine.device))

    def set_style(self, style: Style) -> None:
        """Take theme and text scale."""
        edge = round(style.px(6))
        layout = self.layout()
        assert layout is not None
        layout.setContentsMargins(edge * 2, edge, edge * 2, edge)
        layout.setSpacing(edge)
        self.brand.setFont(style.text_font(17, bold=True))
        self.algorithms.set_style(style)
        self.engine.setFont(style.text_font(12))
        self.progress.set_style(style)
        self._chips.show_words(self._chips._words, style, self._chips._faults)
        self._make_room(not self.progress.isHidden())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._make_room(not self.progress.isHidden())

    def minimumSizeHint(self) -> QSize:
        return self._least_parts().expandedTo(QSize(self._least, 0))

    def _least_parts(self) -> QSize:
        """Return the room of what is always shown."""
        least, layout = super().minimumSizeHint(), self.layout()
        assert layout is not None
        for widget in (self.brand, self.engine):
            if not widget.isHidden():
                spare = widget.minimumSizeHint().width() + layout.spacing()
                least.setWidth(least.width() - spare)
        return least

    def _make_room(self, busy: bool) -> None:
        """Hide brand, buttons and badge if they would make the window wider."""
        layout, strip, badge = self.layout(), self.progress, self.engine
        assert layout is not None
        gap = layout.spacing()
        room = self.width() - self._least_parts().width()
        work = strip.minimumSizeHint().width() + gap
        whole, spared = badge.width_of(self._who) + gap, self.algorithms.spared
        # Work comes and goes: the buttons stay as they are for it.
        wide = whole + spared + work * strip.isHidden() <= room
        self.algorithms.spread(wide)
        room -= spared * wide + work * (busy and strip.isHidden())  # it is about to appear
        self.brand.setVisible(whole + self.brand.minimumSizeHint().width() + gap <= room)
        badge.setVisible(badge.minimumSizeHint().width() + gap <= room)
