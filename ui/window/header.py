"""The bar at the top: algorithm, what is special about the scenario, and who computes."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import (
    QButtonGroup,
    QHBoxLayout,
    QLabel,
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
from ui.safety.overrides import guarded
from ui.safety.painting import painting
from ui.widgets.progress import ProgressStrip, Words


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
        everything = [*faults[:1], *words]
        self.setToolTip(" · ".join(everything))
        self.setAccessibleDescription(", ".join(everything))
        self.updateGeometry()
        self.update()

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
            theme, font, height, x = style.theme, style.text_font(12), style.px(22), 0.0
            room = self.width() - style.px(18)
            fault = [first_that_fits(self._faults, room, font)] if self._faults else []
            for word in fault + self._words:
                width = text_width(font, word) + style.px(18)
                if x + width > self.width():
                    continue
                box = QRectF(x, (self.height() - height) / 2, width, height)
                bad = word in self._faults
                ground, border = (theme.bad, theme.bad) if bad else (theme.field, theme.border)
                card(painter, box, ground, border, height / 2)
                draw_text(painter, box, word, font, theme.panel if bad else theme.text, CENTRE)
                x += width + style.px(6)


@guarded
class Header(QWidget):
    """Brand, algorithm buttons, scenario chips, engine badge.

    If there is too little space, first the brand disappears, then the badge gets shorter, and then
    it disappears, too.
    """

    algorithm_chosen = Signal(str)
    scenario_asked = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.brand = QLabel("Tilescope")
        self.brand.setObjectName("brand")
        self._buttons: dict[str, QToolButton] = {}
        group = QButtonGroup(self)
        row = QHBoxLayout(self)
        row.addWidget(self.brand)
        for name, algorithm in ALGORITHMS.items():
            button = QToolButton()
            button.setObjectName("algorithm")
            # A hyphen that is as narrow as usual beside figures of equal width (U+2010).
            button.setText(algorithm.short_title.replace("-", "\u2010"))
            button.setToolTip(f"{algorithm.title} ({algorithm.source})")
            button.setCheckable(True)
            button.clicked.connect(lambda _=False, name=name: self.algorithm_chosen.emit(name))
            group.addButton(button)
            row.addWidget(button)
            self._buttons[name] = button
        self._chips = _Chips()
        self._chips.clicked.connect(self.scenario_asked)
        row.addSpacing(8)
        row.addWidget(self._chips, 1)
        self.progress = ProgressStrip()
        self.progress.toggled.connect(self._make_room)
        row.addWidget(self.progress)
        self._who = ""
        self.engine = Words()
        self.engine.setObjectName("engine")
        self.engine.setAlignment(Qt.AlignmentFlag.AlignCenter)
        row.addWidget(self.engine)

    def show_trace(self, trace: Trace, style: Style, note: str) -> None:
        """Show a trace; `note` says in words why this engine computes."""
        self._buttons[trace.workload.algorithm].setChecked(True)
        faults = fault_labels(trace.workload.faults)
        self._chips.show_words(scenario_words(trace.workload), style, faults)
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
        for button in self._buttons.values():
            button.setFont(style.text_font(13))
        self.engine.setFont(style.text_font(12))
        self.progress.set_style(style)
        self._chips.show_words(self._chips._words, style, self._chips._faults)
        self._make_room(not self.progress.isHidden())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._make_room(not self.progress.isHidden())

    def minimumSizeHint(self) -> QSize:
        least, layout = super().minimumSizeHint(), self.layout()
        assert layout is not None
        for widget in (self.brand, self.engine):
            if not widget.isHidden():
                spare = widget.minimumSizeHint().width() + layout.spacing()
                least.setWidth(least.width() - spare)
        return least

    def _make_room(self, busy: bool) -> None:
        """Hide brand and badge if they would make the window wider."""
        layout, strip, badge = self.layout(), self.progress, self.engine
        assert layout is not None
        gap = layout.spacing()
        room = self.width() - self.minimumSizeHint().width()
        if busy and strip.isHidden():  # it is about to appear
            room -= strip.minimumSizeHint().width() + gap
        whole = badge.width_of(self._who) + gap + self.brand.minimumSizeHint().width() + gap
        self.brand.setVisible(whole <= room)
        badge.setVisible(badge.minimumSizeHint().width() + gap <= room)
