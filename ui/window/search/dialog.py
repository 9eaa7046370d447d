"""The box of the search: a query, the kinds of entries found, and a row for each entry."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from html import escape
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QModelIndex, QObject, QPoint, QPointF, QRectF, Qt, QTimer, QUrl
from PySide6.QtGui import (
    QAccessible,
    QAccessibleAnnouncementEvent,
    QColor,
    QDesktopServices,
    QKeyEvent,
    QKeySequence,
    QPainter,
    QPaintEvent,
    QPalette,
    QPen,
)
from PySide6.QtWidgets import (
    QAbstractItemView,
    QDialog,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QListView,
    QStackedWidget,
    QTabBar,
    QVBoxLayout,
    QWidget,
)

from simulator.base.references import reference_called
from ui.kit.boxes import Box, Row, scene
from ui.kit.shapes import Cap, Text
from ui.look.draw import RIGHT, draw_lens
from ui.look.theme import Style, palette
from ui.safety.overrides import guarded
from ui.safety.painting import painting
from ui.widgets.matching import Found, find
from ui.widgets.parts import with_parts
from ui.window.search.entries import Kind, SearchEntry, entries
from ui.window.search.field_page import FieldPage
from ui.window.search.rows import SearchModel, SearchRows

if TYPE_CHECKING:
    from ui.window.main_window import MainWindow

NAME = "search"
AT_MOST = 9
"""Rows in sight; the list scrolls to more."""
_WIDTH, _LEAST_WIDTH, _TOP, _HEAD, _KINDS, _FOOT, _RADIUS = 1140, 720, 96, 84, 40, 52, 14
_SMALLEST = 0.8
"""Least size of letters in a low window, as a share of their size in a window of 1080 pixels."""
_HINTS = (
    (("↑", "↓"), "choose"), (("Enter",), "go there"), (("Shift+Enter",), "do it and stay"),
    (("Tab",), "one kind only"), (("Esc",), "back, nothing changed"),
)  # fmt: skip
_PAGE_HINTS = (("Enter",), "close"), (("Esc",), "back to what was found")
_OWN = "Ctrl+K", "F1", "Ctrl+Shift+P"
"""Keys that open the box, and close it."""
_DIMMED = 0.62
_EDGE = 2
_TEXT = 18


def open_search(window: MainWindow, kind: Kind | None = None) -> SearchDialog:
    """Open the search over a window, perhaps for one kind of entries only."""
    dialog = SearchDialog(window, kind)
    dialog.open()
    return dialog


def open_word(window: MainWindow, name: str) -> SearchDialog:
    """Open the search at a word of the glossary or a paper, with its line in the box."""
    dialog = open_search(window)
    dialog.show_word(name)
    return dialog


@guarded
class _Veil(QWidget):
    """Dims the window below the box."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._theme = window.style_now.theme
        self.setGeometry(window.rect())
        self.setVisible(self._theme.name != "contrast")

    def paintEvent(self, event: QPaintEvent) -> None:
        with painting(self, covers=False) as painter:
            ground = QColor(self._theme.window if self._theme.dark else self._theme.text)
            ground.setAlphaF(_DIMMED)
            painter.fillRect(self.rect(), ground)


@guarded
class _Foot(QWidget):
    """The meanings of keys in the box."""

    def __init__(self, style: Style) -> None:
        super().__init__()
        self._style = style
        self.setFixedHeight(round(style.px(_FOOT)))
        self.setAccessibleName("Keys")
        self.show_hints(_HINTS)

    def show_hints(self, hints: Sequence[tuple[Sequence[str], str]]) -> None:
        """Show the meanings of keys now."""
        self._hints = hints
        self.setAccessibleDescription(", ".join(f"{' '.join(k)}: {words}" for k, words in hints))
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        with painting(self, covers=False) as painter:
            side = Box(wide=28)
            own = Text("  ·  ".join(_OWN), "muted", RIGHT, size=14.5, may_go=True)
            hints = (_hint(n, *each) for n, each in enumerate(self._hints))
            row = Row((side, *hints, Box(grow=1), own, side), gap=0)
            scene(row, self._style, QRectF(self.rect())).paint(painter)


def _hint(number: int, keys: Sequence[str], words: str) -> Row:
    """Return the meaning of some keys."""
    caps = (part for key in keys for part in (Cap(key), Box(wide=5)))
    said = Box(wide=4), Text(words, "muted", size=14.5)
    return Row((Box(wide=30 * (number > 0)), *caps, *said), gap=0, may_go=True)


@guarded
class SearchDialog(QDialog):
    """The search over a window.

    Enter takes an entry and closes the box, Shift+Enter takes it and keeps the box, Tab chooses a
    kind. A field opens in the box, a word is explained there.
    """

    def __init__(self, window: MainWindow, kind: Kind | None = None) -> None:
        super().__init__(window, Qt.WindowType.FramelessWindowHint)
        self._window = window
        self._kind = kind
        self._found: Found[SearchEntry] = Found(())
        self.style_now = _style_in(window)
        self._veil = _Veil(window)
        self.setObjectName(NAME)
        self.setWindowTitle("Search everything")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setAttribute(Qt.WidgetAttribute.WA_TranslucentBackground)
        self.query = QLineEdit()
        self.count = QLabel()
        self.kinds = QTabBar()
        self.model = SearchModel(window)
        self.rows = SearchRows(self.model)
        self.list = QListView()
        self.page: QWidget | None = None
        """The page in the place of the list: a field, or the line of a word."""
        self._stack = QStackedWidget()
        self.foot = _Foot(self.style_now)
        self._assemble()
        self.finished.connect(self._veil.hide)
        self.finished.connect(self._veil.deleteLater)
        window.installEventFilter(self)
        self.search("")

    # --- assembly -------------------------------------------------------------------------

    def _assemble(self) -> None:
        style, theme, px = self.style_now, self.style_now.theme, self.style_now.px
        colours = palette(theme)
        for role in (QPalette.ColorRole.Window, QPalette.ColorRole.Base):
            colours.setColor(role, QColor(theme.panel))
        self.setPalette(colours)
        self.list.setPalette(colours)
        colours.setColor(QPalette.ColorRole.WindowText, QColor(theme.muted))
        self.count.setPalette(colours)
        self.query.setObjectName("query")
        self.query.setFrame(False)
        self.query.setStyleSheet(f"background: {theme.panel};")
        self.query.setFont(style.text_font(28))
        self.query.setPlaceholderText("Search actions, lessons, fields, models, words")
        self.query.setAccessibleName("Search everything")
        self.query.textChanged.connect(self.search)
        self.query.installEventFilter(self)
        self.count.setFont(style.text_font(15))
        self.kinds.setDrawBase(False)
        self.kinds.setExpanding(False)
        self.kinds.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.kinds.setFont(style.text_font(14))
        self.kinds.setAccessibleName("Kinds")
        self.kinds.setStyleSheet(
            f"QTabBar::tab {{ background: {theme.panel}; color: {theme.muted}; border: none;"
            f" padding: {px(8):.0f}px {px(2):.0f}px {px(6):.0f}px {px(2):.0f}px;"
            f" margin-right: {px(18):.0f}px; }}"
            f"QTabBar::tab:selected {{ color: {theme.text};"
            f" border-bottom: {max(px(2.5), 2):.0f}px solid {theme.current}; }}"
        )
        self.kinds.tabBarClicked.connect(self._choose_tab)
        self.list.setModel(self.model)
        self.list.setItemDelegate(self.rows)
        self.list.setFrameShape(QFrame.Shape.NoFrame)
        self.list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.list.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.list.setAccessibleName("Found")
        self.list.clicked.connect(self._click)
        self.list.selectionModel().currentChanged.connect(self._tell)
        self._stack.addWidget(self.list)
        head = QWidget()
        head.setFixedHeight(round(px(_HEAD)))
        side = round(px(28))
        line = with_parts(QHBoxLayout(head), (self.query, 1), self.count)
        line.setContentsMargins(round(px(76)), 0, side, 0)
        kinds = QWidget()
        kinds.setFixedHeight(round(px(_KINDS)))
        with_parts(QHBoxLayout(kinds), (self.kinds, 1)).setContentsMargins(side, 0, side, 0)
        with_parts(QVBoxLayout(self), head, kinds, self._stack, self.foot, margin=_EDGE, gap=0)
        self._fixed = round(px(_HEAD)) + round(px(_KINDS)) + round(px(_FOOT)) + 2 * _EDGE
        room = self._window.width() - 32
        self._wide = min(room, round(max(0.6 * self._window.width(), px(_LEAST_WIDTH))))
        self.rows.style_now = style

    def _fit(self) -> None:
        """Be as high as nine rows, or as the rows found, and stand below the window's top."""
        window, px = self._window, self.style_now.px
        top = round(min(px(_TOP), 0.09 * window.height()))
        room = window.height() - top - round(px(16)) - self._fixed
        self.rows.width = self._wide - 2 * _EDGE
        shown = self.model.shown
        wanted = _height(self.page, self._wide - 2 * _EDGE) if self.page else self._rows_height()
        scrolls = self.page is None and (len(shown) > AT_MOST or wanted > room)
        bar = Qt.ScrollBarPolicy  # the bar of an earlier, longer list would still be there
        self.list.setVerticalScrollBarPolicy(
            bar.ScrollBarAlwaysOn if scrolls else bar.ScrollBarAlwaysOff
        )
        if scrolls:
            self.rows.width -= self.list.verticalScrollBar().sizeHint().width()
            wanted = self._rows_height()
        self.setFixedSize(self._wide, self._fixed + max(min(wanted, room), 1))
        corner = window.mapToGlobal(QPoint((window.width() - self._wide) // 2, top))
        self.move(corner)
        self._veil.setGeometry(window.rect())
        self._veil.raise_()

    def _rows_height(self) -> int:
        shown = self.model.shown[:AT_MOST]
        return sum(round(self.rows.height(entry)) for entry in shown)

    # --- finding --------------------------------------------------------------------------

    def search(self, query: str) -> None:
        """Show the entries that a query finds, of the chosen kind or of all."""
        self._close_page()
        self._found = find(query, entries())
        if self._kind is not None and query and not self._of(self._kind):
            self._kind = None
        self._show_kinds(query)
        self._show_rows(query)

    def _of(self, kind: Kind) -> tuple[SearchEntry, ...]:
        """Return the entries found of one kind."""
        return tuple(entry for entry in self._found.entries if entry.kind is kind)

    def _show_kinds(self, query: str) -> None:
        """Show the kinds of the entries found, each with its count."""
        counts = {kind: len(self._of(kind)) for kind in Kind}
        counts = {kind: count for kind, count in counts.items() if count}
        names = ["All" if self._found.nearest else f"All {len(self._found.entries)}"]
        names += [f"{kind.titles if n > 1 else kind.title} {n}" for kind, n in counts.items()]
        self._tabs: list[Kind | None] = [None, *counts]
        while self.kinds.count() > len(names):
            self.kinds.removeTab(self.kinds.count() - 1)
        for number, name in enumerate(names):
            if number == self.kinds.count():
                self.kinds.addTab(name)
            elif self.kinds.tabText(number) != name:
                self.kinds.setTabText(number, name)
        self.kinds.setCurrentIndex(self._tabs.index(self._kind) if self._kind in counts else 0)

    def _show_rows(self, query: str) -> None:
        found = self._found
        shown = found.entries if self._kind is None else self._of(self._kind)
        self.count.setText("" if found.nearest or not query.strip() else f"{len(shown)} found")
        if found.nearest:
            self.count.setText(f"Nothing called “{query.strip()[:24]}”. Nearest:")
        if not query.strip() and self._kind is None:
            shown = self._first()
        self.model.show(shown, query)
        self.list.setCurrentIndex(self.model.index(0))
        self.list.scrollToTop()
        self._fit()

    def _first(self) -> tuple[SearchEntry, ...]:
        """Return the entries used last, then the groups of panels."""
        known = {entry.id: entry for entry in entries()}
        groups = (entry.id for entry in known.values() if entry.kind is Kind.GROUP)
        ids = dict.fromkeys((*self._window.settings.searched, *groups))
        return tuple(known[each] for each in ids if each in known)

    @property
    def current(self) -> SearchEntry | None:
        """The entry that Enter takes."""
        index = self.list.currentIndex()
        return self.model.shown[index.row()] if index.isValid() else None

    def _choose_tab(self, number: int) -> None:
        if number >= 0:
            self._close_page()
            self._kind = self._tabs[number]
            self.kinds.setCurrentIndex(number)
            self._show_rows(self.query.text())

    def _tell(self, index: QModelIndex, before: QModelIndex) -> None:
        """Tell a screen reader which row is chosen: the focus stays in the query."""
        entry = self.current
        if entry is not None and self.isVisible():
            said = QAccessibleAnnouncementEvent(self.query, entry.said(self._window))
            QAccessible.updateAccessibility(said)

    # --- going ----------------------------------------------------------------------------

    def take(self, *, stay: bool = False) -> None:
        """Do the act of the chosen entry; close, or stay."""
        entry = self.current
        if entry is None:
            return
        self._window.settings.add_searched(entry.id)
        if entry.kind is Kind.FIELD:
            self._open_page(FieldPage(self._window, entry.name, self.style_now))
        elif entry.go is None:
            self._open_page(self._word(entry))
        elif stay:
            entry.go(self._window)
            self._stay()
        else:
            self.accept()
            QTimer.singleShot(0, self._window, partial(entry.go, self._window))

    def _stay(self) -> None:
        """Show the present values; after a change of the window's style, in a new box."""
        row, window = self.list.currentIndex().row(), self._window
        box = self
        if _style_in(window) != self.style_now:
            box = open_search(window, self._kind)
            box.query.setText(self.query.text())
            self.accept()
        else:
            self.model.forget()
            self.model.show(self.model.shown, self.model.query)
        box.list.setCurrentIndex(box.model.index(row))
        box.activateWindow()

    def _click(self, index: QModelIndex) -> None:
        self.take()

    def show_word(self, name: str) -> None:
        """Explain a word of the glossary, or show a cited paper, found by its name."""
        self.query.setText(name)
        kinds = Kind.WORD, Kind.PAPER
        found = next(each for each in entries() if each.kind in kinds and each.name == name)
        self._open_page(self._word(found))

    def _word(self, entry: SearchEntry) -> QLabel:
        """Return the line of a word or a paper, whole; a paper's link opens the browser."""
        text = f"<b>{escape(entry.title)}</b><br>{escape(entry.does)}"
        paper = reference_called(entry.name) if entry.kind is Kind.PAPER else None
        if paper is None:
            more = f"<i>Also: {escape(', '.join(entry.also))}</i>"
        else:
            colour = self.style_now.theme.text
            more = f'<a href="{paper.link}" style="color: {colour}">{escape(paper.link)}</a>'
        label = QLabel(f"{text}<br>{more}", wordWrap=True)
        if paper is not None:
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextBrowserInteraction)
            label.linkActivated.connect(lambda link: QDesktopServices.openUrl(QUrl(link)))
        label.setFont(self.style_now.text_font(_TEXT))
        label.setMargin(round(self.style_now.px(28)))
        label.setAccessibleName(entry.said(self._window))
        return label

    def _open_page(self, page: QWidget) -> None:
        """Show a field or a word in the place of the list."""
        self._close_page()
        self.page = page
        self._stack.addWidget(page)
        self._stack.setCurrentWidget(page)
        self.foot.show_hints(_PAGE_HINTS)
        if isinstance(page, FieldPage):
            page.grown.connect(self._fit)
            page.field.editor.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self._fit()

    def _close_page(self) -> bool:
        """Show the list again; return whether a page was shown."""
        page, self.page = self.page, None
        if page is None:
            return False
        self._stack.setCurrentWidget(self.list)
        self.foot.show_hints(_HINTS)
        self._stack.removeWidget(page)
        self.model.forget()
        page.deleteLater()
        self.query.setFocus()
        return True

    # --- events ---------------------------------------------------------------------------

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Go back from a page on Escape, close it on Enter if nothing is wrong; else close."""
        enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if event.key() == Qt.Key.Key_Escape:
            if self._close_page():
                self._show_rows(self.query.text())
            else:
                self.reject()
        elif enter and isinstance(self.page, FieldPage):
            if not self.page.wrong:
                self.accept()
        elif QKeySequence(event.keyCombination()) in self._own_keys():
            self.reject()
        else:
            super().keyPressEvent(event)

    def _own_keys(self) -> list[QKeySequence]:
        return self._window.actions_by_name[NAME].shortcuts()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Move in the list with the keys of the query; follow the window's size."""
        if watched is self._window:
            if event.type() is QEvent.Type.Resize:
                self._fit()
        elif event.type() is QEvent.Type.KeyPress:
            assert isinstance(event, QKeyEvent)
            return self._key(event)
        return False

    def _key(self, event: QKeyEvent) -> bool:
        """Do the act of a key in the query for the list; return whether the key has one."""
        key, rows = Qt.Key(event.key()), self.model.rowCount()
        by = _MOVES.get(key)
        if by is not None and rows and self.page is None:
            row = self.list.currentIndex().row() + by
            if row >= rows and self.model.canFetchMore():
                self.model.fetchMore()
                rows = self.model.rowCount()
            row = row % rows if abs(by) == 1 else min(max(row, 0), rows - 1)
            self.list.setCurrentIndex(self.model.index(row))
        elif key in (Qt.Key.Key_Tab, Qt.Key.Key_Backtab):
            by = 1 if key == Qt.Key.Key_Tab else -1
            self._choose_tab((self.kinds.currentIndex() + by) % self.kinds.count())
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            if self.page is None:
                self.take(stay=bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier))
            else:
                self.accept()
        else:
            return False
        return True

    def paintEvent(self, event: QPaintEvent) -> None:
        with painting(self, covers=False) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            px, theme = self.style_now.px, self.style_now.theme
            width = 2.0 if theme.name == "contrast" else px(1.5)
            box = QRectF(self.rect()).adjusted(width / 2, width / 2, -width / 2, -width / 2)
            painter.setPen(QPen(QColor(theme.border), width))
            painter.setBrush(QColor(theme.panel))
            painter.drawRoundedRect(box, px(_RADIUS), px(_RADIUS))
            painter.setPen(QPen(QColor(theme.border), max(px(1), 1)))
            for y in (px(_HEAD) + _EDGE, self.height() - px(_FOOT) - _EDGE):
                painter.drawLine(QPointF(_EDGE, y), QPointF(self.width() - _EDGE, y))
            draw_lens(painter, QPointF(px(38), px(40)), px(10), theme.muted)


_MOVES = {
    Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1,
    Qt.Key.Key_PageUp: -AT_MOST, Qt.Key.Key_PageDown: AT_MOST,
}  # fmt: skip


def _height(page: QWidget, width: int) -> int:
    """Return the height that a page needs at a width."""
    page.ensurePolished()
    layout = page.layout()
    high = layout.totalHeightForWidth(width) if layout is not None else page.heightForWidth(width)
    return high if high > 0 else page.sizeHint().height()


def _style_in(window: MainWindow) -> Style:
    """Return the box's theme and scale: a window of less than 1080 pixels has smaller letters."""
    share = min(1.0, max(_SMALLEST, window.height() / 1080))
    return Style(window.style_now.theme, window.style_now.scale * share)
