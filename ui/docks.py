"""The docks of the window: arranged by layout; a panel is made when it is first seen, then fed."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

from PySide6.QtCore import QByteArray, QObject, Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QDockWidget, QLayout, QMainWindow, QTabWidget, QWidget

from simulator.lesson_tables import ChooseTable
from ui.layouts import LayoutSpec, layout_named
from ui.panel_specs import PANELS, Panel, PanelSpec
from ui.panels.dock_title import DockTitle
from ui.session import Session, View
from ui.theme import Style

if TYPE_CHECKING:
    from collections.abc import Iterator

WIDE, TALL = 1600, 960
"""Window sizes from which there is room for the left and for a bottom that needs height."""
LOW = 676
"""Height at scale 1, without a lesson's caption, below which docks share one place as tabs.

Bars and titles take 196 of it. In what is left the text of docks under one another would have to
be smaller than was asked for: at scale 1 below 11 pixels.
"""


class Docks(QObject):
    """All docks of a window.

    A panel is made when it is first seen or asked for: a window starts without those that nobody
    looks at. One that nobody sees is not fed: it is shown the latest view, in the latest style,
    as soon as it is seen.

    Parameters
    ----------
    window : QMainWindow
        Where they are docked.
    session : Session
        What they show.
    """

    def __init__(self, window: QMainWindow, session: Session) -> None:
        super().__init__(window)
        self._window = window
        self._session = session
        self._style: Style | None = None
        self._motion = True
        self._panels: dict[str, QWidget] = {}
        self._styled: dict[str, Style] = {}
        self._seen: set[str] = set()
        self._fed = False
        self._low = False
        """Whether the window was low when its docks were arranged."""
        self.by_name: dict[str, QDockWidget] = {}
        window.setDockNestingEnabled(True)
        window.setTabPosition(Qt.DockWidgetArea.AllDockWidgetAreas, QTabWidget.TabPosition.North)
        for corner in (Qt.Corner.BottomRightCorner, Qt.Corner.TopRightCorner):
            window.setCorner(corner, Qt.DockWidgetArea.RightDockWidgetArea)
        for spec in PANELS:
            self.by_name[spec.name] = self._make(spec)

    def _make(self, spec: PanelSpec) -> QDockWidget:
        dock = QDockWidget(spec.title, self._window)
        dock.setObjectName(spec.name)
        dock.setToolTip(spec.tip)
        dock.setTitleBarWidget(DockTitle(dock))
        toggle = dock.toggleViewAction()
        toggle.setToolTip(spec.tip)
        toggle.setShortcut(QKeySequence(spec.key))
        self._window.addAction(toggle)
        self._window.addDockWidget(Qt.DockWidgetArea.RightDockWidgetArea, dock)
        dock.visibilityChanged.connect(partial(self._see, spec))
        dock.hide()
        return dock

    def __getitem__(self, name: str) -> QDockWidget:
        return self.by_name[name]

    def __iter__(self) -> Iterator[tuple[PanelSpec, QDockWidget]]:
        return ((spec, self.by_name[spec.name]) for spec in PANELS)

    def panel(self, name: str) -> QWidget:
        """Return the panel in a dock, made now if nobody has seen it yet."""
        if name not in self._panels:
            spec = next(spec for spec in PANELS if spec.name == name)
            panel = self._panels[name] = spec.make(self._session)
            self._set_motion(panel)
            self._restyle(name)
            self.by_name[name].setWidget(panel)
            panel.show()  # a dock in sight does not do so by itself
        return self._panels[name]

    # --- what they show -------------------------------------------------------------------

    def _see(self, spec: PanelSpec, seen: bool) -> None:
        """Feed a panel from when it is seen until it is not."""
        if seen == (spec.name in self._seen):
            return
        (self._seen.add if seen else self._seen.discard)(spec.name)
        if self._session.view is not None:
            self._session.want(spec.name, spec.model if seen else None)
        if seen:
            self.panel(spec.name)
            self._restyle(spec.name)
            if self._session.view is not None:
                self._show(spec, self._session.view)

    def show_view(self, view: View) -> None:
        """Show a view in every panel that is seen.

        The very first view comes without what panels need beyond it, which takes longest to make:
        the window is painted before that is asked for.
        """
        for spec in PANELS:
            if spec.name in self._seen:
                self._show(spec, view)
        if not self._fed:
            self._fed = True
            self._window.repaint()
            for spec in PANELS:
                if spec.name in self._seen:
                    self._session.want(spec.name, spec.model)

    def _show(self, spec: PanelSpec, view: View) -> None:
        # What a panel needs may have been wanted only after the view was asked for.
        if spec.show and (spec.model is None or spec.name in view.models):
            spec.show(self.panel(spec.name), view)

    def set_style(self, style: Style) -> None:
        """Take theme and text scale."""
        self._style = style
        for dock in self.by_name.values():
            cast(DockTitle, dock.titleBarWidget()).set_style(style)
        for name in self._seen:
            self._restyle(name)

    def _restyle(self, name: str) -> None:
        if self._style is not None and self._styled.get(name) != self._style:
            self._styled[name] = self._style
            cast(Panel, self.panel(name)).set_style(self._style)

    def set_motion(self, on: bool) -> None:
        """Let pictures move or not."""
        self._motion = on
        for panel in self._panels.values():
            self._set_motion(panel)

    def _set_motion(self, panel: QWidget) -> None:
        if hasattr(panel, "set_motion"):
            panel.set_motion(self._motion)

    def choose(self, layout: str, choices: ChooseTable) -> None:
        """Choose in the panels of a layout what a lesson says."""
        for name in layout_named(layout).docks:
            panel = self.panel(name)
            if hasattr(panel, "take_choices"):
                panel.take_choices(choices)

    # --- where they are -------------------------------------------------------------------

    def restore(self, layout: LayoutSpec, state: QByteArray, scale: float) -> None:
        """Arrange a layout as the user left it."""
        self._window.centralWidget().setVisible(layout.board)
        if self._window.restoreState(state):
            self._low = self._is_low(scale, 0)
            self._make_shown()
        else:
            self.arrange(layout, scale)

    def arrange(self, layout: LayoutSpec, scale: float, caption: int = 0) -> None:
        """Arrange a layout as its table says, for the window's size.

        Parameters
        ----------
        layout : LayoutSpec
            The layout.
        scale : float
            Scale of the window's text.
        caption : int
            Height of a lesson's caption, in pixels.
        """
        window, docks, size = self._window, self.by_name, self._window.size()
        width, height = size.width(), size.height()
        wide, tall = width >= WIDE * scale, height >= TALL * scale
        self._window.centralWidget().setVisible(layout.board)
        for dock in docks.values():
            dock.setFloating(False)
            window.removeDockWidget(dock)
        for name in layout.left:
            window.addDockWidget(Qt.DockWidgetArea.LeftDockWidgetArea, docks[name])
            docks[name].setVisible(wide)
        low = self._low = self._is_low(scale, caption)
        places = (layout.tabs,) if low and layout.right else layout.right
        for place in places:
            first = docks[place[0]]
            window.addDockWidget(Qt.DockWidgetArea.RightDockWidgetArea, first)
            first.show()
            for other in place[1:]:
                window.tabifyDockWidget(first, docks[other])
                docks[other].show()
            first.raise_()
        for name in layout.bottom:
            window.addDockWidget(
                Qt.DockWidgetArea.BottomDockWidgetArea, docks[name], Qt.Orientation.Horizontal
            )
            docks[name].setVisible(tall or not layout.bottom_tall)
        for name in docks.keys() - set(layout.docks):
            window.addDockWidget(Qt.DockWidgetArea.RightDockWidgetArea, docks[name])
            docks[name].hide()
        self._make_shown()
        right = [docks[place[0]] for place in places]
        # Side by side, the titles of tabs are wider than one over the other.
        share = max(380, round(width * (max(layout.width, 0.4) if low else layout.width)))
        window.resizeDocks(right, [share] * len(right), Qt.Orientation.Horizontal)
        window.resizeDocks(right, list(layout.heights[: len(right)]), Qt.Orientation.Vertical)
        left, bottom = ([docks[n] for n in names] for names in (layout.left, layout.bottom))
        window.resizeDocks(left, [round(270 * scale)] * len(left), Qt.Orientation.Horizontal)
        deep = round(height * layout.bottom_height)
        window.resizeDocks(bottom, [deep] * len(bottom), Qt.Orientation.Vertical)
        if layout.bottom_widths:
            widths = [share * width // 100 for share in layout.bottom_widths]
            window.resizeDocks(bottom, widths, Qt.Orientation.Horizontal)
        # Two layouts at once, for a moment, may have wanted more room than either.
        cast(QLayout, window.layout()).activate()
        if window.size() != size and not (window.isFullScreen() or window.isMaximized()):
            window.resize(size)

    def suits(self, layout: LayoutSpec, scale: float, caption: int = 0) -> bool:
        """Return whether a layout can stay where it stands at a text scale.

        It is put elsewhere where the window was low and is not now, or the other way round, unless
        the user has moved its docks.
        """
        if self._low == self._is_low(scale, caption):
            return True
        shown = {name for name, dock in self.by_name.items() if not dock.isHidden()}
        at_right = all(
            self._window.dockWidgetArea(self.by_name[name]) is Qt.DockWidgetArea.RightDockWidgetArea
            and not self.by_name[name].isFloating()
            for name in layout.stack
        )
        return not (set(layout.stack) <= shown <= set(layout.docks) and at_right)

    def _is_low(self, scale: float, caption: int) -> bool:
        return self._window.height() - caption < LOW * scale

    def _make_shown(self) -> None:
        """Make the panels of all docks that are open, those behind a tab too: they need room."""
        for name, dock in self.by_name.items():
            if not dock.isHidden():
                self.panel(name)
