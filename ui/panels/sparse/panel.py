"""The dock with sparse patterns: k as a slider, a mask to paint by hand, and one to use."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QEvent, QObject, QPointF, QRectF, QSignalBlocker, Qt
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QLabel, QSlider, QWidget

from simulator.problem.masked_file import needs_file
from simulator.study.sparse.patterns import NAMES, blocks_of
from ui.look.draw import text_width
from ui.look.names import fitting
from ui.panels.sparse.study import SparseState, SparseStudy, block_at, knobs_words
from ui.panels.study_panel import StudyPanel
from ui.safety.overrides import guarded
from ui.session.session import Session
from ui.widgets.choice_bar import Button, bar_sheet
from ui.widgets.mask_file import use_mask
from ui.widgets.sheet import set_sheet

if TYPE_CHECKING:
    from simulator.lesson.tables import ChooseTable

_GAP = 6
_SMALLEST = 0.92
"""Scale of letters of the controls in a small dock."""


@guarded
class SparsePanel(StudyPanel[SparseState, SparseState]):
    """The study of sparse masks; dragging in the picture of one paints blocks."""

    def __init__(self, session: Session) -> None:
        self.label, self.blocks = QLabel(), QSlider(Qt.Orientation.Horizontal)
        self.use_button, self.brush = Button(None), Button(None)
        super().__init__(session, SparseStudy(session.painting))
        self._stroke = False
        self._painting = session.painting
        tip = "How many blocks of keys a row of blocks sees: all patterns but dense get as many."
        self._set_up(self.label)
        self._set_up(self.blocks, "mask_blocks", "k, blocks of keys that a row sees", tip)
        self.blocks.valueChanged.connect(self._slid)
        self._set_up(
            self.use_button, "use_mask", "Use this mask",
            "Run the scenario with this mask in the place of its own. “Use…” saves it in a copy of "
            "the input.",
        )  # fmt: skip
        self.use_button.setText("Use…")
        self.use_button.clicked.connect(self.use)
        self._set_up(
            self.brush, "paint_on_board", "Paint the mask on the board",
            "Show or hide blocks by dragging over S on the board. (Ctrl+B)",
        )  # fmt: skip
        self.brush.setText("Paint")
        self.brush.setCheckable(True)
        self.brush.setChecked(self._painting.on)
        self.brush.clicked.connect(self._painting.switch)
        self._painting.switched.connect(self.brush.setChecked)
        self._painting.changed.connect(self._show_painted)
        self._painting.rested.connect(self._compute_if_seen)
        self.picture.installEventFilter(self)

    def _set_up(self, widget: QWidget, name: str = "", title: str = "", tip: str = "") -> None:
        widget.setParent(self)
        widget.setObjectName(name)
        widget.setAccessibleName(title)
        widget.setToolTip(tip)

    # --- what is shown --------------------------------------------------------------------

    def take_choices(self, choices: ChooseTable) -> None:
        self.chosen["mask"] = choices.mask or NAMES[0]
        if self.state is not None:
            self._go(self.state.named(self.chosen["mask"]))

    def chosen_now(self) -> dict[str, Any]:
        return {"mask": self.chosen["mask"]}

    def show_controls(self, on: bool) -> None:
        for widget in (self.label, self.blocks, self.brush, self.use_button):
            widget.setVisible(on)
        super().show_controls(on)

    def completed(self, state: SparseState) -> SparseState:
        pattern, w = state.chosen.pattern, state.workload
        if self.label.text() != knobs_words(state):
            self.label.setText(knobs_words(state))
            self.arrange()
        self.use_button.setText("Use…" if needs_file(w, pattern.mask) else "Use")
        self.use_button.setEnabled(pattern.of_keys)
        with QSignalBlocker(self.blocks):
            self.blocks.setRange(1, blocks_of(w, state.knobs.block))
            self.blocks.setValue(state.knobs.k)
        self.blocks.setAccessibleDescription(knobs_words(state))
        return super().completed(state)

    def _slid(self, k: int) -> None:
        self.chosen["k"] = str(k)
        self._known()

    def _compute_if_seen(self) -> None:
        if self.isVisible():
            self._known()

    # --- painting and using ---------------------------------------------------------------

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Paint in the picture of the mask while the left button is down."""
        if watched is not self.picture or not isinstance(event, QMouseEvent):
            return super().eventFilter(watched, event)
        kind = event.type()
        if kind == QEvent.Type.MouseButtonPress:
            inside = self._mask.contains(event.position())
            self._stroke = inside and event.button() is Qt.MouseButton.LeftButton
            if self._stroke:
                self._paint(event.position(), begins=True)
            return self._stroke
        if self._stroke and kind == QEvent.Type.MouseMove:
            self._paint(event.position(), begins=False)
        elif self._stroke and kind == QEvent.Type.MouseButtonRelease:
            self._stroke = False
            self._painting.end()
        return self._stroke

    @property
    def _mask(self) -> QRectF:
        """The place of the mask in the picture; empty if there is no room for it."""
        placed = () if self.picture.scene is None else self.picture.scene.placed
        return next((rect for box, rect in placed if box.name == "picture"), QRectF())

    def _paint(self, at: QPointF, *, begins: bool) -> None:
        """Begin to paint over the chosen mask, or go on to a block."""
        state = self.state
        if state is None or state.trace is not self._session.trace:
            # The picture still shows the masks of the run before: this one's are being priced.
            return
        if state.chosen.pattern.of_keys:
            block = block_at(state, self._mask, at)
            if begins:
                self._painting.begin(block, state.chosen.pattern.mask)
            else:
                self._painting.go_on(block)

    def _show_painted(self) -> None:
        """Show what is painted, here or on the board, before its error is known."""
        state = self.state
        if state is not None and state.trace is self._session.trace and self.isVisible():
            after = state.painted(self._painting.mask)
            self.chosen["mask"] = after.chosen.pattern.name
            self._go(after)

    def use(self) -> None:
        """Run the scenario with the chosen mask; ask for a file if it has blocks."""
        if self.state is not None:
            pattern = self.state.chosen.pattern
            use_mask(self, self._session, pattern.name, pattern.mask)

    # --- where it is ----------------------------------------------------------------------

    def arrange(self) -> None:
        """Place the slider between its words and the buttons, and the picture below."""
        super().arrange()
        if self.blocks.isHidden():
            return
        fitted = fitting(self.style_now, QRectF(self.rect()), self.study.room)
        style = replace(fitted, scale=max(fitted.scale, min(self.style_now.scale, _SMALLEST)))
        font, line, place = style.text_font(12), round(style.px(24)), self.picture.geometry()
        self.label.setFont(font)
        words = round(text_width(font, self.label.text()) + style.px(10))
        words = min(words, round(0.55 * place.width()))
        right = place.right() + 1
        for button, text in ((self.use_button, "Use…"), (self.brush, "Paint")):
            set_sheet(button, bar_sheet(style))
            button.setFont(font)
            wide = round(text_width(font, text) + style.px(24))
            right -= wide
            button.setGeometry(right, 5, wide, line)
            right -= round(style.px(_GAP))
        self.label.setGeometry(place.x(), 5, words, line)
        self.blocks.setGeometry(place.x() + words, 5, max(right - words - place.x(), 20), line)
        place.setTop(5 + line + 4)
        self.picture.setGeometry(place)
