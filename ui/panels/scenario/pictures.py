"""The editors of the form that show their choices: sentences, maps of heads, two masks."""

from __future__ import annotations

import math
from functools import lru_cache, partial

import numpy as np
from PySide6.QtCore import QEvent, QItemSelectionModel, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QIcon,
    QKeyEvent,
    QPainter,
    QPixmap,
    QStandardItem,
    QStandardItemModel,
)
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QListView,
    QSizePolicy,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from simulator.base.dtypes import F32
from simulator.base.matmul import matmul
from simulator.base.softmax import softmax_rows
from simulator.problem.filling import capture_names, capture_text
from simulator.problem.scenario import Scenario, with_values
from simulator.problem.workload import Workload, read_inputs, resolve
from simulator.program.algorithms import algorithm_of
from ui.look.draw import card, draw_text, fitted, text_width
from ui.look.heat import colour_map, heat_image, pooled
from ui.look.theme import DARK, Style, Theme
from ui.panels.scenario.blanks import Blank
from ui.panels.scenario.editors import LineEditor
from ui.panels.scenario.fields import Texts
from ui.safety.overrides import guarded
from ui.widgets.choice_bar import Button, bar_sheet
from ui.widgets.parts import with_parts
from ui.widgets.sheet import set_sheet

_ROW = 24
"""Height of a sentence, at scale 1."""
_ASIDE, _CHANGE = Qt.ItemDataRole.UserRole + 1, Qt.ItemDataRole.UserRole + 2
"""Roles of a row: the words at its right; the field that it changes and its text."""
_MOST_HEADS, _MOST_TOKENS = 32, 1024
"""Inputs with more heads or tokens have no maps to choose from."""
_ICON, _LEAST_ICON, _GAP = 30, 20, 5
"""Side of a map at scale 1, the least with which all are in one line, and the space between."""
_PIXELS = 38
"""Rows and columns of a map."""


@guarded
class _PictureRows(QStyledItemDelegate):
    """Draws a row: its words, and at the right its tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.style_now = Style(DARK)

    def sizeHint(self, option: QStyleOptionViewItem, index: object) -> QSize:
        return QSize(10, round(self.style_now.px(_ROW)))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: object) -> None:
        style, theme, px = self.style_now, self.style_now.theme, self.style_now.px
        chosen = bool(option.state & QStyle.StateFlag.State_Selected)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = QRectF(option.rect).adjusted(0, 0, -1, -px(2))
        link = theme.tensors["Q"]
        ground = theme.accent if chosen else theme.field
        card(painter, box, ground, link if chosen else theme.border, px(4), px(1 + 0.5 * chosen))
        aside = index.data(_ASIDE)  # type: ignore[attr-defined]
        font, small = style.text_font(12.5), style.code_font(11)
        wide = text_width(small, aside) + px(16)
        inside = box.adjusted(px(8), 0, -wide, 0)
        words = fitted(font, index.data(), inside.width())  # type: ignore[attr-defined]
        draw_text(painter, inside, words, font, theme.text)
        place = QRectF(box.right() - wide + px(8), box.y(), wide, box.height())
        draw_text(painter, place, aside, small, theme.muted)
        painter.restore()


@guarded
class _List(QListView):
    """A list that is as high as its rows; Enter, Space and a click choose."""

    chosen = Signal(object)
    """The index that a user has chosen."""

    def __init__(self) -> None:
        super().__init__()
        self.setModel(QStandardItemModel(self))
        self.setFrameShape(QListView.Shape.NoFrame)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.viewport().setAutoFillBackground(False)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.setMinimumWidth(40)
        self.clicked.connect(self.chosen.emit)

    @property
    def rows(self) -> QStandardItemModel:
        """The rows of the list."""
        model = self.model()
        assert isinstance(model, QStandardItemModel)
        return model

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space):
            if self.currentIndex().isValid():
                self.chosen.emit(self.currentIndex())
        elif event.text() and event.text().isprintable():
            event.ignore()
        else:
            super().keyPressEvent(event)

    def wheelEvent(self, event: QEvent) -> None:
        event.ignore()


@guarded
class SentenceEditor(QWidget):
    """The source of Q, K and V: sentences that ship, by their text, one's own, random numbers."""

    committed = Signal(str, str)
    """The field that is changed, and its text."""
    framed = False

    def __init__(self) -> None:
        super().__init__()
        self.list, self.own = _List(), LineEditor()
        self._rows = _PictureRows()
        self._offered: list[tuple[str, str, tuple[str, str]]] = []
        self.list.setItemDelegate(self._rows)
        self.list.setAccessibleName("Sentences")
        self.list.chosen.connect(self._choose)
        self.own.setPlaceholderText("type your own sentence …")
        self.own.setAccessibleName("Your own sentence")
        self.own.committed.connect(self._type)
        self.setFocusProxy(self.list)
        with_parts(QVBoxLayout(self), self.list, self.own, margin=0, gap=2)

    @property
    def parts(self) -> tuple[QWidget, ...]:
        """Parts that may have the focus."""
        return self.list, self.own

    def has_focus(self) -> bool:
        """Return whether the keyboard is here."""
        return any(part.hasFocus() for part in self.parts)

    def set_style(self, style: Style) -> None:
        """Take theme and text scale."""
        self._rows.style_now = style
        self.own.set_style(style)
        self.list.doItemsLayout()
        self._fit()

    def show_blank(self, blank: Blank) -> None:
        """Do nothing: a blank means the input's source."""

    def show_input(self, said: Texts, workload: Workload) -> None:
        """Offer the choices, and choose the one that the texts say."""
        source, name = said["input.source"] or "random", said["input.name"]
        rows = [
            (text.words, f"layer {text.layer} · {text.tokens} tokens", ("input.name", each))
            for each, text in ((each, capture_text(each)) for each in capture_names())
        ]
        seed = said["input.seed"] or "0"
        rows.append(("random numbers", f"seed {seed}", ("input.source", "random")))
        if source in ("file", "layer") and workload.file is not None:
            tokens = f"{workload.seqlen_k} tokens"
            rows.append((workload.file.path.name, tokens, ("input.source", source)))
        chosen = ("input.name", name) if source == "capture" else ("input.source", source)
        model = self.list.rows
        if self._offered != rows:
            self._offered = rows
            model.clear()
            for words, aside, change in rows:
                item = QStandardItem(words)
                item.setData(aside, _ASIDE)
                item.setData(change, _CHANGE)
                item.setToolTip(words)
                item.setAccessibleText(f"{words}, {aside}")
                model.appendRow(item)
        at = next((n for n, row in enumerate(rows) if row[2] == chosen), -1)
        self.list.setCurrentIndex(model.index(at, 0))
        if at < 0:
            self.list.clearSelection()
        self.own.show_text(said["input.text"] if source == "sentence" else "", force=False)
        self._fit()

    def _fit(self) -> None:
        count = self.list.rows.rowCount()
        self.list.setFixedHeight(round(self._rows.style_now.px(_ROW)) * count)

    def _choose(self, index: object) -> None:
        self.committed.emit(*index.data(_CHANGE))  # type: ignore[attr-defined]

    def _type(self, text: str) -> None:
        if text.strip():
            self.committed.emit("input.text", text)


@lru_cache(maxsize=8)
def head_weights(scenario: Scenario) -> tuple[F32, ...]:
    """Return the weights of every head of a scenario's input, (rows, keys) each.

    With many tokens some rows are taken, and means of keys beside each other.
    """
    w = resolve(with_values(scenario, {"input": {"head": "all"}, "batch": {"sequence": None}}))
    inputs = read_inputs(w)
    step = math.ceil(w.seqlen_q / _PIXELS)
    rows = range(0, w.seqlen_q, step)
    group = len(inputs.q) // len(inputs.k)
    keys = range(w.seqlen_k)
    seen = w.mask.of_head(0).visible(range(w.seqlen_q), keys)[::step]
    out = []
    for head, q in enumerate(inputs.q):
        products = w.scoring.of(matmul(q[::step], inputs.k[head // group].T))
        scores = w.changed(head, rows, keys, products)
        shown = np.where(seen, scores, -np.inf).astype(np.float64)
        weights = softmax_rows(shown, w.scoring.sink(head))
        out.append(pooled(np.ascontiguousarray(weights.T, np.float32), _PIXELS).T)
    return tuple(out)


def _maps(workload: Workload) -> tuple[F32, ...]:
    """Return the maps that a form offers, or none."""
    w, heads = workload, workload.input_heads[0]
    real = w.file is not None and w.scenario.input.source in ("capture", "sentence")
    few = 1 < heads <= _MOST_HEADS and max(w.queries, w.seqlen_k) <= _MOST_TOKENS
    if not (real and few and w.group == 1 and algorithm_of(w).softmax):
        return ()
    changes = {"attention": {"algorithm": None}, "faults": dict.fromkeys(w.scenario.faults.on)}
    try:
        return head_weights(with_values(w.scenario, changes))
    except (OSError, ValueError):
        return ()


@guarded
class HeadMaps(QWidget):
    """The heads of a layer as their maps: a click chooses one, with Ctrl several, and "all"."""

    committed = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.list = _List()
        self.list.setViewMode(QListView.ViewMode.IconMode)
        self.list.setMovement(QListView.Movement.Static)
        self.list.setResizeMode(QListView.ResizeMode.Adjust)
        self.list.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.list.setAccessibleName("Heads")
        self.list.chosen.connect(self._choose)
        self.style_now = Style(DARK)
        self._shown: tuple[tuple[F32, ...], Theme | None, int] = ((), None, 0)
        self.all = Button()
        self.all.setText("all")
        self.all.setCheckable(True)
        self.all.clicked.connect(partial(self.committed.emit, "all"))
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.list, 1)
        row.addWidget(self.all, 0, Qt.AlignmentFlag.AlignTop)
        self._maps: tuple[F32, ...] = ()
        self._wide = 0
        """The width to fit into, also beside a scroll bar, which more lines of maps may bring."""

    def set_style(self, style: Style) -> None:
        """Take theme and text scale."""
        self.style_now = style
        side = round(style.px(_ICON))
        self.list.setFont(style.code_font(11))
        self.all.setFont(style.text_font(12))
        self.all.setFixedSize(round(style.px(34)), side)
        set_sheet(self.all, bar_sheet(style))
        theme = style.theme
        set_sheet(
            self.list,
            f"QListView {{ background: transparent; color: {theme.muted}; }}"
            f"QListView::item:selected {{ background: {theme.accent}; color: {theme.text};"
            f" border: {max(style.px(1.5), 1):.0f}px solid {theme.current}; }}",
        )
        self._draw()

    def show_workload(self, workload: Workload, text: str) -> bool:
        """Show the heads of an input, and which are chosen; return whether it has maps."""
        self._maps = _maps(workload)
        self.setVisible(bool(self._maps))
        if not self._maps:
            return False
        self._draw()
        every = text in ("", "all")
        self.all.setChecked(every)
        selection = self.list.selectionModel()
        selection.clear()
        for head in () if every else workload.picked:
            flag = QItemSelectionModel.SelectionFlag.Select
            selection.select(self.list.rows.index(head, 0), flag)
        if not every:
            flag = QItemSelectionModel.SelectionFlag.NoUpdate
            selection.setCurrentIndex(self.list.rows.index(workload.picked[0], 0), flag)
        return True

    def _draw(self) -> None:
        """Draw the maps, unless they are drawn already."""
        theme, rows = self.style_now.theme, self.list.rows
        px, count = self.style_now.px, max(len(self._maps), 1)
        room = (self._wide - self.all.width() - px(8)) / count - px(_GAP)
        side = round(min(px(_ICON), room) if room > px(_LEAST_ICON) else px(_ICON))
        now = self._maps, theme, side
        if self._shown[0] is now[0] and self._shown[1:] == now[1:]:
            return
        self._shown = now
        self.list.setIconSize(QSize(side, side))
        self.list.setGridSize(QSize(side + round(px(_GAP)), side + round(px(18))))
        if rows.rowCount() != len(self._maps):
            rows.clear()
            for head in range(len(self._maps)):
                item = QStandardItem(str(head))
                item.setToolTip(f"head {head}: Ctrl and click adds it to others")
                rows.appendRow(item)
        words = colour_map(theme, "P")
        for head, weights in enumerate(self._maps):
            image = heat_image(weights, 0.0, float(weights.max()) or 1.0, words)
            rows.item(head).setIcon(QIcon(QPixmap.fromImage(image.scaled(side, side))))
        self._fit()

    def _fit(self) -> None:
        grid, row = self.list.gridSize(), self.layout()
        assert row is not None
        room = self._wide - self.all.width() - row.spacing()  # the list has it only later
        across = max(room // max(grid.width(), 1), 1)
        lines = math.ceil(max(len(self._maps), 1) / across)
        self.list.setFixedHeight(lines * grid.height() + 2)

    def resizeEvent(self, event: QEvent) -> None:
        wide = self.width()
        near = abs(wide - self._wide) <= 2 * self.style_now.px(12)
        self._wide = min(wide, self._wide) if near else wide
        if self._maps:
            self._draw()
            self._fit()

    def _choose(self, index: object) -> None:
        heads = sorted(each.row() for each in self.list.selectionModel().selectedIndexes())
        if heads:
            self.committed.emit(", ".join(map(str, heads)))


def _mask_picture(theme: Theme, side: int, causal: bool) -> QPixmap:
    """Return four rows of four pairs; hidden pairs are empty."""
    out = QPixmap(side, side)
    out.fill(Qt.GlobalColor.transparent)
    step = side / 4
    with QPainter(out) as painter:
        for row in range(4):
            for col in range(4):
                hidden = causal and col > row
                box = QRectF(col * step, row * step, step - 1.5, step - 1.5)
                ground = QColor(theme.field) if hidden else theme.tensor("S")
                card(painter, box, ground, theme.grid if hidden else ground, 1)
    return out


class TwoPictures(QWidget):
    """Causal or not, as two pictures of the pairs that are seen."""

    committed = Signal(str)
    framed = False
    CHOICES = (("false", "all pairs"), ("true", "only back"))

    def __init__(self) -> None:
        super().__init__()
        self.buttons: dict[str, Button] = {}
        self._blank = "false"
        self._told = ""
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        for text, words in self.CHOICES:
            button = Button()
            button.setText(words)
            button.setCheckable(True)
            button.setAutoExclusive(True)
            button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
            button.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
            button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
            button.setAccessibleName(f"Causal {words}")
            button.clicked.connect(partial(self._choose, text))
            row.addWidget(button, 1)
            self.buttons[text] = button
        self.setFocusProxy(self.buttons["false"])

    def has_focus(self) -> bool:
        """Return whether the keyboard is here; the buttons show it themselves."""
        return False

    def set_style(self, style: Style) -> None:
        """Take theme and text scale."""
        side = round(style.px(22))
        for text, button in self.buttons.items():
            button.setFont(style.text_font(12.5))
            button.setIconSize(QSize(side, side))
            button.setIcon(QIcon(_mask_picture(style.theme, side, text == "true")))
            button.setFixedHeight(side + round(style.px(10)))
            padded = f"QToolButton {{ padding: 0 {style.px(8):.0f}px; }}"
            set_sheet(button, bar_sheet(style) + padded)

    def show_text(self, text: str, *, force: bool) -> None:
        """Choose the picture of `text`, or else of the blank value."""
        self._told = text
        self.buttons[text if text in self.buttons else self._blank].setChecked(True)

    def show_blank(self, blank: Blank) -> None:
        """Take the input's own value."""
        self._blank = blank.value if blank.value in self.buttons else "false"
        self.show_text(self._told, force=False)

    def _choose(self, text: str) -> None:
        said = "" if text == self._blank else text
        if said != self._told:
            self._told = said
            self.committed.emit(said)
