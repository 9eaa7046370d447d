"""The dock with sparse patterns: their price beside dense, and a mask to paint by hand."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QPointF, QRectF, QSizeF, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QLabel, QSlider, QWidget

from simulator.lesson.tables import ChooseTable
from simulator.problem.masked_file import needs_file
from simulator.problem.masks import Mask
from simulator.run.trace import Trace
from simulator.study.sparse.compressed import compressed
from simulator.study.sparse.patterns import (
    NAMES,
    Knobs,
    Pattern,
    Priced,
    blocks_of,
    patterns,
    priced,
    usual_knobs,
)
from ui.look.draw import text_width
from ui.look.names import fitting
from ui.look.theme import Style
from ui.panels.base import Panel, StatePicture
from ui.panels.sparse.painter import (
    MasksState,
    block_at,
    knobs_words,
    paint_masks,
    picture_of,
    places_of,
)
from ui.safety.overrides import guarded
from ui.safety.painting import painting
from ui.session.painting import PAINTED
from ui.session.session import Session
from ui.session.tasks import Report
from ui.session.view import View
from ui.widgets.choice_bar import Button, bar_sheet
from ui.widgets.mask_file import use_mask
from ui.widgets.sheet import set_sheet

_SIDE, _GAP = 8, 6
_ROOM = QSizeF(480, 320)
_SMALLEST = 0.92


@guarded
class MasksPicture(StatePicture[MasksState]):
    """The table and the mask: a click chooses a row, dragging in the mask paints blocks."""

    chosen = Signal(int)
    painted = Signal(int, int, bool)
    """Row and column of a block, and whether a new stroke begins there."""
    released = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, "Masks", paint_masks)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._painting = False

    def _block(self, at: QPointF, *, inside: bool) -> tuple[int, int] | None:
        assert self.state is not None
        _, places = places_of(self.state, self.style_now, QRectF(self.rect()))
        if inside and not places.picture.contains(at):
            return None
        return block_at(self.state, places.picture, at.x(), at.y())

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if self.state is None or event.button() != Qt.MouseButton.LeftButton:
            return
        block = self._block(event.position(), inside=True)
        if block is not None:
            self._painting = True
            self.painted.emit(*block, True)
            return
        _, places = places_of(self.state, self.style_now, QRectF(self.rect()))
        row = places.row_at(event.position().y())
        if places.table.contains(event.position()) and 0 <= row < len(self.state.rows):
            self.chosen.emit(row)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._painting and self.state is not None:
            block = self._block(event.position(), inside=False)
            if block is not None:
                self.painted.emit(*block, False)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if self._painting:
            self._painting = False
            self.released.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        steps = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}
        step = steps.get(Qt.Key(event.key()))
        if step is None or self.state is None:
            super().keyPressEvent(event)
            return
        row = self.state.at + step
        if 0 <= row < len(self.state.rows):
            self.chosen.emit(row)


@guarded
class MasksPanel(Panel[None]):
    """Longformer, BigBird, packed documents, NSA and DSA beside dense; k as a slider.

    Prices follow the slider at once; how far O is from dense is computed beside the window.
    """

    def __init__(self, session: Session) -> None:
        super().__init__("masks_panel", "Masks")
        self._session = session
        self._trace: Trace | None = None
        self.state: MasksState | None = None
        self.knobs: Knobs | None = None
        self._painted: Mask | None = None
        """The mask by hand that is painted and in the table."""
        self._wanted = NAMES[0]
        self.label = QLabel(self)
        self.slider = QSlider(Qt.Orientation.Horizontal, self)
        self.slider.setObjectName("mask_blocks")
        self.slider.setAccessibleName("k, blocks of keys that a row sees")
        tip = "How many blocks of keys a row of blocks sees: all patterns but dense get as many."
        self.slider.setToolTip(tip)
        self.slider.valueChanged.connect(self._slid)
        self.button = Button(self)
        self.button.setText("Use…")
        self.button.setObjectName("use_mask")
        self.button.setAccessibleName("Use this mask")
        self.button.setToolTip(
            "Run the scenario with this mask in the place of its own. “Use…” saves it in a copy of "
            "the input."
        )
        self.button.clicked.connect(self.use)
        self.brush = Button(self)
        self.brush.setText("Paint")
        self.brush.setObjectName("paint_on_board")
        self.brush.setCheckable(True)
        self.brush.setChecked(session.painting.on)
        self.brush.setAccessibleName("Paint the mask on the board")
        self.brush.setToolTip("Show or hide blocks by dragging over S on the board. (Ctrl+B)")
        self.brush.clicked.connect(session.painting.switch)
        session.painting.switched.connect(self.brush.setChecked)
        session.painting.changed.connect(self._show_painted)
        session.painting.rested.connect(self._compute_if_seen)
        self.picture = MasksPicture(self)
        self.picture.chosen.connect(self.choose_row)
        self.picture.painted.connect(self._stroke)
        self.picture.released.connect(session.painting.end)

    # --- what is shown --------------------------------------------------------------------

    def forget(self) -> None:
        self._trace = None

    def show_view(self, view: View, model: None = None) -> None:
        """Show a view: only another run changes anything, and what was painted elsewhere."""
        trace, painted = self._session.trace, self._session.painting.mask
        if trace is None or view.snapshot.program is not trace.program:
            return
        if trace is self._trace and painted is self._painted:
            return
        before, w = self.state, trace.workload
        self._trace = trace
        usual = usual_knobs(w)
        same = before is not None and (before.workload.queries, before.workload.seqlen_k) == (
            w.queries,
            w.seqlen_k,
        )
        if not same or self.knobs is None or self.knobs.block != usual.block:
            self.knobs = usual
        blocked = self.slider.blockSignals(True)
        self.slider.setRange(1, blocks_of(w, self.knobs.block))
        self.slider.setValue(self.knobs.k)
        self.slider.blockSignals(blocked)
        self._compute()

    def show_controls(self, on: bool) -> None:
        for widget in (self.label, self.slider, self.brush, self.button):
            widget.setVisible(on)
        if self.state is not None:
            self._take(replace(self.state, paints=on))
        self.arrange()

    @property
    def table_shape(self) -> tuple[int, int]:
        """How many blocks of rows and of keys can be painted."""
        if self.state is None:
            return 0, 0
        w, size = self.state.workload, self.state.knobs.block
        return -(-w.queries // size), -(-w.seqlen_k // size)

    def take_choices(self, choices: ChooseTable) -> None:
        """Show the mask that a lesson has chosen, now or when there are prices."""
        self._wanted = choices.mask or NAMES[0]
        if self.state is not None:
            self.choose_row(self._place_of(self.state.rows, self._wanted))

    @staticmethod
    def _place_of(rows: tuple[Priced, ...], name: str) -> int:
        """Return which mask has a name, the first if none has."""
        return next((n for n, each in enumerate(rows) if each.pattern.name == name), 0)

    def choose_row(self, at: int) -> None:
        """Show another mask."""
        if self.state is not None:
            self._wanted = self.state.rows[at].pattern.name
            kinds = picture_of(self.state.rows[at].pattern.mask)
            self._take(replace(self.state, at=at, kinds=kinds))

    def _slid(self, k: int) -> None:
        if self.knobs is not None:
            self.knobs = replace(self.knobs, k=k)
            self._compute()

    def _compute_if_seen(self) -> None:
        if self.isVisible():
            self._compute()

    def _compute(self) -> None:
        """Price all masks, then compute the errors: the second takes seconds."""
        trace, knobs, painted = self._trace, self.knobs, self._session.painting.mask
        if trace is None or knobs is None:
            return
        self._painted = painted
        own = () if painted is None else (_painted_pattern(painted),)

        def quick(report: Report) -> tuple[Priced, ...]:
            found = (*patterns(trace.workload, trace.inputs, knobs), *own)
            rows = priced(trace.workload, trace.inputs, found, report, errors=False)
            return (*rows, *compressed(trace.workload, trace.inputs, knobs, errors=False))

        def whole(report: Report) -> tuple[Priced, ...]:
            found = (*patterns(trace.workload, trace.inputs, knobs), *own)
            rows = priced(trace.workload, trace.inputs, found, report)
            return (*rows, *compressed(trace.workload, trace.inputs, knobs))

        def show(rows: tuple[Priced, ...]) -> None:
            if (trace, knobs, painted) == (self._trace, self.knobs, self._painted):
                self._show(trace, knobs, rows)

        def then(rows: tuple[Priced, ...]) -> None:
            show(rows)
            self._session.tasks.start("masks", "errors of sparse masks", whole, show)

        self._session.tasks.start("masks", "prices of masks", quick, then)

    def _show(self, trace: Trace, knobs: Knobs, rows: tuple[Priced, ...]) -> None:
        at = self._place_of(rows, self._wanted)
        kinds = picture_of(rows[at].pattern.mask)
        self._take(MasksState(trace.workload, knobs, rows, at, kinds, not self.slider.isHidden()))

    def _take(self, state: MasksState) -> None:
        self.state = self.picture.state = state
        self.label.setText(knobs_words(state))
        asks = needs_file(state.workload, state.chosen.pattern.mask)
        self.button.setText("Use…" if asks else "Use")
        self.button.setEnabled(state.chosen.pattern.of_keys)
        self.setAccessibleDescription(state.summary)
        self.picture.setAccessibleDescription(state.summary)
        self.slider.setAccessibleDescription(knobs_words(state))
        self.picture.update()
        self.arrange()

    # --- painting and using ---------------------------------------------------------------

    def _stroke(self, row: int, column: int, begins: bool) -> None:
        """Begin to paint over the chosen mask, or go on to a block."""
        painting, state, trace = self._session.painting, self.state, self._session.trace
        if state is None or trace is None or state.workload is not trace.workload:
            # The picture still shows the masks of the run before: this one's are being priced.
            return
        if not state.chosen.pattern.of_keys:
            return
        if begins:
            painting.begin((row, column), state.chosen.pattern.mask)
        else:
            painting.go_on((row, column))

    def _show_painted(self) -> None:
        """Show what is painted, here or on the board, with its price but not yet with its error."""
        trace, state, painted = self._trace, self.state, self._session.painting.mask
        if trace is None or state is None or not self.isVisible():
            return
        self._painted = painted
        rows = tuple(each for each in state.rows if each.pattern.name != PAINTED)
        if painted is not None:
            pattern = _painted_pattern(painted)
            rows += priced(trace.workload, trace.inputs, (pattern,), errors=False)
            self._wanted = PAINTED
        at = self._place_of(rows, self._wanted)
        kinds = picture_of(rows[at].pattern.mask)
        self._take(replace(state, rows=rows, at=at, kinds=kinds))

    def use(self) -> None:
        """Run the scenario with the chosen mask; ask for a file if it has blocks."""
        if self.state is not None:
            pattern = self.state.chosen.pattern
            use_mask(self, self._session, pattern.name, pattern.mask)

    # --- where it is ----------------------------------------------------------------------

    def set_style(self, style: Style) -> None:
        super().set_style(style)
        self.picture.style_now = style
        self.arrange()
        self.picture.update()

    def arrange(self) -> None:
        """Place the slider between its words and the button, and the picture below."""
        side = round(self.style_now.px(_SIDE))  # on the stage it is at the edge of the screen
        width = self.width() - 2 * side
        if self.slider.isHidden():
            self.picture.setGeometry(side, 5, width, max(self.height() - 9, 20))
            return
        fitted = fitting(self.style_now, QRectF(self.rect()), _ROOM)
        style = replace(fitted, scale=max(fitted.scale, min(self.style_now.scale, _SMALLEST)))
        font, line = style.text_font(12), round(style.px(24))
        self.label.setFont(font)
        words = round(text_width(font, self.label.text()) + style.px(10))
        words = min(words, round(0.55 * width))
        right = side + width
        for button, text in ((self.button, "Use…"), (self.brush, "Paint")):
            set_sheet(button, bar_sheet(style))
            button.setFont(font)
            wide = round(text_width(font, text) + style.px(24))
            right -= wide
            button.setGeometry(right, 5, wide, line)
            right -= round(style.px(_GAP))
        self.label.setGeometry(side, 5, words, line)
        self.slider.setGeometry(side + words, 5, max(right - words - side, 20), line)
        top = 5 + line + 4
        self.picture.setGeometry(side, top, width, max(self.height() - top - 4, 20))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.arrange()

    def paintEvent(self, event: QPaintEvent) -> None:
        with painting(self) as painter:
            self.clear(painter)


def _painted_pattern(mask: Mask) -> Pattern:
    assert mask.blocks is not None
    return Pattern(PAINTED, f"blocks of {mask.blocks.size}, painted by hand", mask)
