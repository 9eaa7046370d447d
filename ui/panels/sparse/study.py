"""Sparse patterns as masks of a run, beside dense attention, and a mask to paint: the dock."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QObject, QPointF, QRectF, QSignalBlocker, QSizeF, Qt
from PySide6.QtGui import QMouseEvent, QPainter
from PySide6.QtWidgets import QLabel, QSlider, QWidget

from simulator.problem.masked_file import needs_file
from simulator.problem.masks import Mask
from simulator.problem.tiling import TileGrid
from simulator.problem.workload import Workload
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
from ui.kit.boxes import Box, Column, Either, Placed, Row
from ui.kit.shapes import LINE, Text
from ui.kit.table import BoxRow, BoxTable, FigureText, Head
from ui.look.draw import RIGHT, hairline, outline, text_width
from ui.look.mask_picture import mask_image
from ui.look.names import fitting
from ui.look.theme import LABEL, Style
from ui.look.units import bytes_text, count_text, flops_text, time_text
from ui.panels.study import Chosen, Study, Words
from ui.panels.study_panel import StudyPanel
from ui.safety.overrides import guarded
from ui.session.painting import PAINTED, MaskPainting
from ui.session.session import Session
from ui.session.tasks import Report
from ui.session.view import View
from ui.widgets.choice_bar import Button, bar_sheet
from ui.widgets.mask_file import use_mask
from ui.widgets.named import named
from ui.widgets.sheet import set_sheet

if TYPE_CHECKING:
    from simulator.lesson.tables import ChooseTable


_FINEST = 256
"""Cells of the picture along a side, at most."""
_AXES = "queries ↓ keys →"
_HEADS = (
    Head("mask"), Head("tiles"), Head("bytes", goes=2), Head("FLOPs", goes=3),
    Head("time", goes=1), Head(("error of O", "error")),
)  # fmt: skip
"""If not all columns fit, the columns that say least are left out first."""


@dataclass(frozen=True, eq=False)
class SparseState:
    """The masks with their prices, dense first, and the one that is chosen."""

    trace: Trace
    knobs: Knobs
    rows: tuple[Priced, ...]
    at: int = 0
    paints: bool = True  # whether a user can paint the mask: not in a film

    @property
    def workload(self) -> Workload:
        """The run that would have the masks."""
        return self.trace.workload

    @property
    def chosen(self) -> Priced:
        """The mask in the picture."""
        return self.rows[self.at]

    @property
    def shape(self) -> tuple[int, int]:
        """How many blocks of rows and of keys can be painted."""
        w, size = self.workload, self.knobs.block
        return -(-w.queries // size), -(-w.seqlen_k // size)

    @cached_property
    def kinds(self) -> NDArray[np.uint8]:
        """The kinds of the parts of the chosen mask, (down, across)."""
        return picture_of(self.chosen.pattern.mask)

    def named(self, name: str) -> SparseState:
        """Return the state with another mask, the first if none has that name."""
        names = [each.pattern.name for each in self.rows]
        return replace(self, at=names.index(name) if name in names else 0)

    def painted(self, mask: Mask | None) -> SparseState:
        """Return the state with another mask by hand, with its price but without its error."""
        rows = tuple(each for each in self.rows if each.pattern.name != PAINTED)
        if mask is None:
            return replace(self, rows=rows).named(self.chosen.pattern.name)
        own = priced(self.workload, self.trace.inputs, by_hand(mask), errors=False)
        return replace(self, rows=rows + own).named(PAINTED)


def by_hand(mask: Mask | None) -> tuple[Pattern, ...]:
    """Return a painted mask as a pattern; none if nothing is painted."""
    if mask is None or mask.blocks is None:
        return ()
    return (Pattern(PAINTED, f"blocks of {mask.blocks.size}, painted by hand", mask),)


def picture_of(mask: Mask) -> NDArray[np.uint8]:
    """Return which parts of a mask are hidden, partly visible or visible, by arithmetic."""
    size = max(1, -(-max(mask.seqlen_q, mask.seqlen_k) // _FINEST))
    return TileGrid(mask, size, size).kinds()


class SparseStudy(Study[SparseState, SparseState]):
    """Longformer, BigBird, packed documents, NSA and DSA beside dense, and a painted mask.

    Prices are there at once; the error of O against dense is computed after them.
    """

    name, title, doing, pictured = "masks", "Masks", "errors of sparse masks", "Masks"
    room, share = QSizeF(560, 280), 0.75

    def __init__(self, painting: MaskPainting) -> None:
        self._painting = painting

    def said(self, trace: Trace) -> Chosen:
        """Return the usual number of blocks; a run of another size does not keep the last one."""
        w, usual = trace.workload, usual_knobs(trace.workload)
        return {"k": str(usual.k), "size": f"{w.queries} {w.seqlen_k} {usual.block}"}

    def needs(self, trace: Trace, view: View, chosen: Chosen) -> Hashable:
        usual = usual_knobs(trace.workload)
        return replace(usual, k=int(chosen["k"])), self._painting.mask

    def results(self, trace: Trace, needs: Any, report: Report) -> Iterator[SparseState]:
        (knobs, painted), (w, inputs) = needs, (trace.workload, trace.inputs)
        found = (*patterns(w, inputs, knobs), *by_hand(painted))
        for errors in (False, True):
            rows = priced(w, inputs, found, report, errors=errors)
            last = compressed(w, inputs, knobs, errors=errors)
            yield SparseState(trace, knobs, (*rows, *last))

    def state(
        self, found: SparseState, chosen: Chosen, before: SparseState | None, changed: str
    ) -> SparseState:
        return found.named(chosen.get("mask", NAMES[0]))

    def seen(self, state: SparseState, *, controls: bool) -> SparseState:
        return replace(state, paints=controls)

    def key(self, state: SparseState, key: Qt.Key, *, ctrl: bool) -> SparseState | None:
        step = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}.get(key)
        if step is None or not 0 <= state.at + step < len(state.rows):
            return None
        return replace(state, at=state.at + step)

    def press(self, state: SparseState, at: Hashable) -> SparseState | None:
        return replace(state, at=at[1]) if isinstance(at, tuple) else None

    def takes(self, before: SparseState, after: SparseState) -> Chosen:
        return {"mask": after.chosen.pattern.name}

    def words(self, state: SparseState) -> Words:
        w, pattern = state.workload, state.chosen.pattern
        note = f"{w.gpu.name}, tiles of {w.rows} × {w.cols}"
        if not all(each.modelled for each in state.rows):
            note += "; times “≥” are the least that the data sheet allows"
        if state.paints and pattern.of_keys:
            note += "; drag in the picture to paint blocks"
        return Words(f"{pattern.name}: {pattern.words}", "", (f"{note}.",))

    def described(self, state: SparseState) -> tuple[str, ...]:
        title, told, *said = super().described(state)
        names = [Text(each.words).wordings[0] for each in _HEADS[1:]]
        rows = (
            f"{each.pattern.name}: "
            + ", ".join(f"{n} {text}" for n, text in zip(names, _figures(each), strict=True))
            for each in state.rows
        )
        return title, told, *said, *rows

    def picture(self, state: SparseState) -> Box:
        rows = tuple(
            BoxRow(Text((name, name.replace(", selected", "")), size=12),
                     tuple(FigureText(words, align=RIGHT, size=12) for words in _figures(each)))
            for each, name in ((each, each.pattern.name) for each in state.rows)
        )  # fmt: skip
        table = BoxTable(_HEADS, rows, chosen=state.at, heights=(15, 24), names=0.6, align=RIGHT,
                      id="mask", grow=1)  # fmt: skip
        beside = Row((table, MaskPicture(state, name="picture", share=0.33, may_go=True)), gap=12)
        below = Column((table, MaskPicture(state, name="picture", share=0.5)), gap=8)
        return Either(beside, below, 1.25, grow=1)


@dataclass(frozen=True, eq=False)
class MaskPicture(Box):
    """The chosen mask in its proportions; no narrower than half, no wider than twice its height."""

    state: SparseState

    def most_width(self, style: Style, height: float) -> float:
        w = self.state.workload
        return max(height, 0.0) * min(max(w.seqlen_k / w.queries, 0.5), 2.0)

    def place(self, style: Style, rect: QRectF) -> Iterator[Placed]:
        w = self.state.workload
        scale = min(rect.width() / w.seqlen_k, rect.height() / w.queries)
        wide, high = max(w.seqlen_k * scale, 4.0), max(w.queries * scale, 4.0)
        x = rect.x() + (rect.width() - wide) / 2
        yield Placed(self, QRectF(x, rect.y(), wide, high))
        under = QRectF(x, rect.y() + high + style.px(3), wide, style.px(LINE))
        if under.bottom() <= rect.bottom() and wide >= text_width(style.text_font(LABEL), _AXES):
            whole = f"{_AXES}, filled: seen"
            yield Placed(Text((whole, _AXES), "muted"), under)

    def paint(self, painter: QPainter, style: Style, rect: QRectF) -> None:
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
        # The last row and column of the picture may stand for fewer rows and keys.
        w = self.state.workload
        size = max(1, -(-max(w.queries, w.seqlen_k) // _FINEST))
        part = QRectF(0, 0, w.seqlen_k / size, w.queries / size)
        painter.drawImage(rect, mask_image(self.state.kinds, style.theme), part)
        outline(painter, rect.adjusted(-1, -1, 1, 1), style.theme.grid, hairline(style))


def block_at(state: SparseState, rect: QRectF, at: QPointF) -> tuple[int, int]:
    """Return which block of rows and keys is at a point, the nearest one for a point outside."""
    w, size = state.workload, state.knobs.block
    row = int(np.clip((at.y() - rect.y()) / rect.height() * w.queries, 0, w.queries - 1))
    key = int(np.clip((at.x() - rect.x()) / rect.width() * w.seqlen_k, 0, w.seqlen_k - 1))
    return row // size, key // size


def knobs_words(state: SparseState) -> str:
    """Return how much the patterns leave."""
    most = blocks_of(state.workload, state.knobs.block)
    return f"k = {state.knobs.k} of {most} blocks of {count_text(state.knobs.block)} keys"


def _figures(each: Priced) -> tuple[str, ...]:
    """Return the figures of a mask in the order of the columns."""
    f, error = each.figures, "–" if each.error is None else f"{100 * each.error:.1f} %"
    return (count_text(each.visited), bytes_text(f.bytes), flops_text(f.flops),
            f"{'≈' if each.modelled else '≥'} {time_text(each.seconds)}", error)  # fmt: skip


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
        named(widget, name, title, tip)

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
            # The picture still shows the masks of the run before: new ones are being priced.
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
