"""The rail at the left: a button for each group of panels, and a button that finds the others."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QAction, QColor, QKeySequence, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QToolBar, QToolButton, QVBoxLayout, QWidget

from ui.look.draw import CENTRE, LEFT, RIGHT, card, draw_text
from ui.look.icons import icon
from ui.look.theme import DARK, Style
from ui.safety.overrides import guarded
from ui.safety.painting import painting
from ui.widgets.focus import has_ring
from ui.window.panel_specs import GROUPS

if TYPE_CHECKING:
    from ui.window.main_window import MainWindow

WIDE, NARROW, _ROW = 124, 56, 66
"""Widths of the rail with names and without, and the height of a row that has room, at scale 1."""
_FROM = 1600
"""Width of the window at scale 1 from which the rail has names."""
_FULL = 900
"""Width of the window from which the rail's letters may have scale 1."""
_ICON, _NAME, _DIGIT = 22, 15, 13


@guarded
class _RailButton(QToolButton):
    """A pictogram, the name if there is room for it, and the digit that does the same."""

    def __init__(self, action: QAction, picture: str, digit: str) -> None:
        super().__init__()
        self.setDefaultAction(action)
        self.setAccessibleName(action.text())
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self._picture, self._digit = picture, digit
        self.style_now = Style(DARK)
        self.named = True

    def sizeHint(self) -> QSize:
        return QSize(0, round(self.style_now.px(_ROW)))

    def minimumSizeHint(self) -> QSize:
        return QSize(0, round(self.style_now.px(_ICON)))

    def paintEvent(self, event: QPaintEvent) -> None:
        with painting(self) as painter:
            style, theme, px = self.style_now, self.style_now.theme, self.style_now.px
            whole, chosen = QRectF(self.rect()), self.isChecked()
            painter.fillRect(whole, QColor(theme.panel))
            box = whole.adjusted(px(6), px(1), -px(5), -px(1))
            ground = theme.panel
            if chosen or self.isDown():
                ground = theme.accent
            elif self.underMouse():
                ground = theme.field
            ring = has_ring(self)
            card(painter, box, ground, theme.current if ring else ground, px(6), px(2.5))
            if chosen:
                edge = QRectF(0, box.y(), px(3), box.height())
                painter.fillRect(edge, QColor(theme.current))
            elif not self._digit:
                painter.fillRect(QRectF(box.x(), 0, box.width(), px(1)), QColor(theme.border))
            colour = theme.text if chosen else theme.muted
            inside = box.adjusted(px(9), px(4), -px(8), -px(4))
            digit = style.text_font(_DIGIT)
            two = self.named and inside.height() >= px(_ICON + _NAME + 4)
            side = min(px(_ICON), inside.height())
            if self._picture:
                at = inside.top() if two else inside.center().y() - side / 2
                left = inside.left() if two or not self._digit else inside.left() - px(3)
                place = QRectF(left, at, side, side).toRect()
                icon(self._picture, colour).paint(painter, place)
            low = inside.adjusted(0, 0, px(4), 0) if not self.named else inside
            draw_text(painter, low.adjusted(0, 0, 0, -low.height() / 2) if two else low,
                      self._digit, digit, colour, RIGHT)  # fmt: skip
            if self.named and (two or not self._picture):
                line = inside.adjusted(0, inside.height() / 2 if two else 0, 0, 0)
                name = style.text_font(_NAME, bold=chosen)
                draw_text(painter, line, self.text(), name, colour, LEFT)
            elif not self._picture:
                draw_text(painter, inside, "…", style.text_font(_NAME, bold=True), colour, CENTRE)


@guarded
class Rail(QToolBar):
    """Brings the panels of a group to the front with a click or a digit, or closes them there.

    actions_of: name of a group to its action, ticked while a panel of the group is in sight.
    rows: the buttons, from top to bottom; the last button opens the search at the panels.
    """

    def __init__(self, window: MainWindow) -> None:
        super().__init__("Panels", window)
        self._window = window
        self.setObjectName("rail")
        self.setMovable(False)
        self.setFloatable(False)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.PreventContextMenu)
        self.toggleViewAction().setVisible(False)
        self.actions_of: dict[str, QAction] = {}
        self.rows: list[_RailButton] = []
        self._box = QWidget()
        column = QVBoxLayout(self._box)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        for number, group in enumerate(GROUPS, start=1):
            action = QAction(group.title, window)
            action.setObjectName(f"group_{group.name}")
            action.setToolTip(f"{group.tip} ({number})")
            action.setShortcut(QKeySequence(str(number)))
            action.setCheckable(True)
            action.triggered.connect(partial(self._switch, group.name))
            self._add(action, f"panels-{group.name}", str(number))
            self.actions_of[group.name] = action
        more = QAction("More …", window)
        more.setObjectName("more_panels")
        more.setToolTip("All other panels, in the search.")
        more.triggered.connect(self._more)
        self._add(more, "", "")
        column.addStretch(1)
        self.addWidget(self._box)
        window.addToolBar(Qt.ToolBarArea.LeftToolBarArea, self)
        window.docks.sight_changed.connect(self._tick)

    def _add(self, action: QAction, picture: str, digit: str) -> None:
        row = _RailButton(action, picture, digit)
        self._window.addAction(action)
        column = self._box.layout()
        assert column is not None
        column.addWidget(row)
        self.rows.append(row)

    def _switch(self, name: str) -> None:
        self._window.docks.switch(name)
        self._tick()

    def _more(self) -> None:
        from ui.window.search.dialog import open_search
        from ui.window.search.entries import Kind

        open_search(self._window, Kind.PANEL)

    def _tick(self) -> None:
        for group in GROUPS:
            self.actions_of[group.name].setChecked(self._window.docks.shows(group))

    def set_style(self, style: Style) -> None:
        """Take theme and text scale; a narrow window has smaller letters."""
        for row in self.rows:
            row.update()
        self.fit()

    def fit(self) -> None:
        """Show the names if the window is wide enough; on the stage there is no rail."""
        window, style = self._window, self._window.style_now
        named = window.width() >= _FROM * style.scale
        own = replace(style, scale=min(style.scale, window.width() / _FULL))
        for row in self.rows:
            if row.style_now != own:
                row.style_now = own
                row.updateGeometry()
            row.named = named
        wide = 0 if window.stage.on else round(own.px(WIDE if named else NARROW))
        if wide != self._box.width():
            self._box.setFixedWidth(wide)
            self.setFixedWidth(wide)  # by itself the rail would not shrink to this width
