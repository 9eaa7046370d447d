"""The docks of the window: arranged by layout; a panel is made when it is first seen."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, overload

from PySide6.QtCore import QByteArray, QCoreApplication, QEvent, QObject, QPointF, QSize, Qt, Signal
from PySide6.QtGui import QAction, QCursor, QMouseEvent
from PySide6.QtWidgets import QDockWidget, QTabWidget, QWidget

from ui.look.layouts import AT_LEFT, LayoutSpec, layout_named
from ui.look.theme import DARK, Style
from ui.panels.base import Panel
from ui.session.model_choice import ModelChoice
from ui.session.session import Session
from ui.session.view import View
from ui.widgets.drops import leave_drops
from ui.window.answer_cover import AnswerCover
from ui.window.dock_sizes import DockSizes, Shares
from ui.window.dock_title import DockTitle
from ui.window.panel_specs import GROUPED, GROUPS, PANELS, GroupSpec, PanelSpec

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from simulator.lesson.tables import ChooseTable
    from ui.window.main_window import MainWindow

_Panel = TypeVar("_Panel", bound=Panel[Any])

LOW = 800
"""Height at scale 1, without a lesson's caption, below which docks share one place as tabs; on the
stage docks always share one place: beside the board is the panel of the step.

In a window, bars and titles take 280 of this height. In the rest, docks above each other would
need smaller text than was asked for: at scale 1 less than 11 pixels.
"""


class Docks(QObject):
    """All docks of a window.

    A panel is made when it is first seen or asked for: a window starts without the panels that are
    not visible. A hidden panel gets no views; a panel that comes in sight gets the latest view, in
    the latest style.
    """

    sight_changed = Signal()
    """A panel has come in sight or gone out of sight."""

    def __init__(self, window: MainWindow, session: Session) -> None:
        super().__init__(window)
        self._window = window
        self._session = session
        self._style: Style | None = None
        self._panels: dict[str, Panel[Any]] = {}
        self._titles: dict[str, DockTitle] = {}
        self._styled: dict[str, Style] = {}
        self._own: dict[str, Panel[Any] | None] = {}
        """The user's panels that a lesson's panels replace; None: the panel was not made before."""
        self._lent: dict[str, Panel[Any]] = {}
        """Panels of lessons while no lesson is shown."""
        self._model: ModelChoice | None = None
        """The user's model while a lesson is shown, and the lessons' model otherwise."""
        self._covers: dict[str, AnswerCover] = {}
        self._lends = False
        self._seen: set[str] = set()
        self._front = {group.name: group.panels[0] for group in GROUPS}
        """The panel of each group that was in front last."""
        self._under: dict[str, str] = {}
        """Name of an opened panel to the panel that was in front in its place before."""
        self._fed = False
        self._stage = False
        self._controls = True
        """Whether an audience sees the window."""
        self._busy = False
        """Whether docks are being arranged."""
        self._aside = QWidget()
        """The parent of panels of closed docks that have been put aside."""
        self.destroyed.connect(self._aside.deleteLater)
        self.by_name: dict[str, QDockWidget] = {}
        self.actions: dict[str, QAction] = {}
        """Name of a panel to its action in the menu, ticked while the panel is in sight."""
        self.sizes = DockSizes(window, self.by_name)
        session.trace_changed.connect(self._forget)
        window.setDockNestingEnabled(True)
        window.setTabPosition(Qt.DockWidgetArea.AllDockWidgetAreas, QTabWidget.TabPosition.North)
        for corner in (Qt.Corner.BottomRightCorner, Qt.Corner.TopRightCorner):
            window.setCorner(corner, Qt.DockWidgetArea.RightDockWidgetArea)
        with self._arranging():
            for spec in PANELS:
                self.by_name[spec.name] = self._make(spec)

    def _make(self, spec: PanelSpec) -> QDockWidget:
        dock = QDockWidget(spec.title, self._window)
        dock.setObjectName(spec.name)
        dock.setToolTip(spec.tip)
        title = DockTitle(dock)
        dock.setTitleBarWidget(title)
        self._titles[spec.name] = title
        action = self.actions[spec.name] = QAction(spec.title, self._window)
        action.setToolTip(spec.tip)
        action.setCheckable(True)
        action.triggered.connect(partial(self._switch, spec.name))
        dock.toggleViewAction().toggled.connect(self._opened)
        dock.dockLocationChanged.connect(self._moved)
        self._window.addAction(action)
        self._window.addDockWidget(Qt.DockWidgetArea.RightDockWidgetArea, dock)
        dock.visibilityChanged.connect(partial(self._see, spec))
        dock.topLevelChanged.connect(partial(self._float, spec))
        dock.hide()
        return dock

    def __getitem__(self, name: str) -> QDockWidget:
        return self.by_name[name]

    def __iter__(self) -> Iterator[tuple[PanelSpec, QDockWidget]]:
        return ((spec, self.by_name[spec.name]) for spec in PANELS)

    @property
    def made(self) -> frozenset[str]:
        """Names of the panels that have been made."""
        return frozenset(self._panels)

    @overload
    def panel(self, which: str) -> Panel[Any]: ...
    @overload
    def panel(self, which: type[_Panel]) -> _Panel: ...
    def panel(self, which: str | type[Panel[Any]]) -> Panel[Any]:
        """Return the panel in a dock; it is made now if nobody has seen it yet.

        which: the panel's name, if its class does not matter, or its class.
        """
        if isinstance(which, str):
            spec = next(spec for spec in PANELS if spec.name == which)
        else:
            spec = next(spec for spec in PANELS if spec.makes(which))
        name = spec.name
        if name not in self._panels:
            panel = spec.make(self._session)
            leave_drops(panel)
            if self._lends and _chooses(panel):
                self._own.setdefault(name, None)
            self._take(name, panel)
        panel = self._panels[name]
        if panel.parent() is not self.by_name[name]:
            self.by_name[name].setWidget(panel)
            panel.show()  # a dock in sight does not show it by itself
        return panel

    def _take(self, name: str, panel: Panel[Any]) -> None:
        """Let a dock have another panel, in the style of the window."""
        self._panels[name] = panel
        panel.set_stage(self._stage)
        panel.show_controls(self._controls)
        self._styled.pop(name, None)
        self._restyle(name)
        self._titles[name].hold(panel.title_bar)

    def put_aside(self) -> None:
        """Take the panels of closed docks out of the window, until they are seen or asked for.

        Qt works out a new style sheet of the window for every widget in it, seen or not.
        """
        for name, panel in self._panels.items():
            if self.by_name[name].isHidden() and panel.parent() is not self._aside:
                panel.setParent(self._aside)

    def in_sight(self, name: str) -> Any:
        """Return a panel if it can be seen now, else None."""
        return self._panels.get(name) if name in self._seen else None

    # --- contents -------------------------------------------------------------------------

    def _see(self, spec: PanelSpec, seen: bool) -> None:
        """Give a panel views as long as it is seen."""
        if seen == (spec.name in self._seen):
            return
        (self._seen.add if seen else self._seen.discard)(spec.name)
        self.actions[spec.name].setChecked(seen)
        if seen and spec.name in GROUPED:
            self._front[GROUPED[spec.name].name] = spec.name
        self.sight_changed.emit()
        if self._session.view is not None:
            self._session.want(spec.need, seen)
        if seen:
            self.panel(spec.name)
            self._restyle(spec.name)
            self._show_latest(spec)

    def _show_latest(self, spec: PanelSpec) -> None:
        view, trace = self._session.view, self._session.trace
        # A new run is there before its first view, which every panel in sight gets.
        if view is not None and trace is not None and view.snapshot.program is trace.program:
            self._show(spec, view)

    def _forget(self) -> None:
        """Let panels out of sight forget the run that was shown."""
        for name in self._panels.keys() - self._seen:
            self._panels[name].forget()
        for panel in (*self._own.values(), *self._lent.values()):
            if panel is not None:
                panel.forget()

    def _float(self, spec: PanelSpec, floating: bool) -> None:
        """Show a dock that was behind a tab, where Qt leaves it hidden."""
        dock = self.by_name[spec.name]
        if floating and not (dock.isHidden() or spec.name in self._seen):
            dock.move(self._window.geometry().center() - dock.rect().center())
            self._see(spec, True)

    def show_view(self, view: View) -> None:
        """Show a view in every visible panel.

        The very first view comes without the panels' own models, because they take longest to
        make: the window is painted before they are asked for.
        """
        for spec in PANELS:
            if spec.name in self._seen:
                self._show(spec, view)
        if not self._fed:
            self._fed = True
            self._window.repaint()
            for spec in PANELS:
                if spec.name in self._seen:
                    self._session.want(spec.need)

    def _show(self, spec: PanelSpec, view: View) -> None:
        # The need of a panel may be newer than the request for the view.
        if view.has(spec.need):
            panel = self.panel(spec.name)
            panel.show_view(view, view.model(spec.need))
            panel.show_share(self._session.share)
            dock, title = self.by_name[spec.name], panel.dock_title(view)
            if title and title != dock.windowTitle():
                dock.setWindowTitle(title)
                panel.setAccessibleName(title)
                self._titles[spec.name].update()

    def set_style(self, style: Style) -> None:
        """Take theme and text scale."""
        self._style = style
        self.sizes.scale = style.scale
        for title in self._titles.values():
            title.set_style(style)
        for name in self._seen:
            self._restyle(name)

    def set_stage(self, on: bool) -> None:
        """Show the panels without their titles and controls, or with them again."""
        self._stage = self.sizes.stage = on
        for title in self._titles.values():
            title.set_stage(on)
        for panel in self._panels.values():
            panel.set_stage(on)

    def show_controls(self, on: bool) -> None:
        """Show the controls that change the panels' pictures, or hide them in a film."""
        self._controls = on
        for panel in self._panels.values():
            panel.show_controls(on)

    def _restyle(self, name: str) -> None:
        if self._style is not None and self._styled.get(name) != self._style:
            self._styled[name] = self._style
            self.panel(name).set_style(self._style)

    def show_share(self, share: float) -> None:
        """Show in every visible panel how much of the op has been done."""
        for name in self._seen & self._panels.keys():
            self._panels[name].show_share(share)

    def choose(self, layout: str, choices: ChooseTable) -> None:
        """Make a lesson's choices in the panels of a layout, until `take_back`.

        Beside the board, the panels show its run, which belongs to no model. These are panels of
        the lesson: the user's own panels keep all their choices, zooms and typed texts.
        """
        if not self._lends:
            self._lends = True
            self._change_model()
        spec = layout_named(layout)
        if spec.board:
            choices = choices.model_copy(update={"model": None})
        for name in spec.docks:
            panel = self._panels.get(name)
            if panel is not None and name not in self._own and _chooses(panel):
                self._own[name] = panel
                self._swap(name, self._lent.pop(name, None))
            self.panel(name).take_choices(choices)

    def cover(self, names: Collection[str]) -> None:
        """Cover some panels, because they would tell an answer, and show all others."""
        for name in sorted({*names, *self._covers}):
            if name not in self._covers:
                self._covers[name] = AnswerCover(self[name])
            self._covers[name].style_now = self._style or Style(DARK)
            self._covers[name].lay(name in names)

    def take_back(self) -> None:
        """Show the user's own panels again, as they were before a lesson."""
        if not self._lends:
            return
        self._lends = False
        self._change_model()
        own, self._own = self._own, {}
        for name, panel in own.items():
            self._lent[name] = self._panels[name]
            self._swap(name, panel)

    def _change_model(self) -> None:
        """Change the user's model for the lessons' model, or back."""
        session = self._session
        session.model_choice, self._model = (
            self._model or ModelChoice(session),
            session.model_choice,
        )

    def _swap(self, name: str, panel: Panel[Any] | None) -> None:
        """Put a panel aside and show another in its place; None: a new panel, when it is seen."""
        self._panels.pop(name).setParent(self._aside)
        if panel is not None:
            self._take(name, panel)
        if name in self._seen:
            spec = next(spec for spec in PANELS if spec.name == name)
            self.panel(name)
            self._show_latest(spec)
        elif not self.by_name[name].isHidden():
            self.panel(name)

    # --- places ---------------------------------------------------------------------------

    def restore(self, layout: LayoutSpec, state: QByteArray, shares: Shares, scale: float) -> None:
        """Arrange a layout as the user left it, in a visible window.

        In a hidden window that will be maximised, Qt keeps the state and restores it once more at a
        later size, with docks that have been freed in the meantime.

        state: the open docks and their places, from `QMainWindow.saveState`.
        """
        assert self._window.isVisible()
        self._window.centralWidget().setVisible(layout.board)
        sizes = self.sizes
        sizes.layout, sizes.own, sizes.scale = layout, shares, scale
        with self._arranging():
            restored = self._window.restoreState(state)
        if not restored:
            self.arrange(layout, scale)
        elif not self.suits(scale):
            self.rearrange(scale)
        else:
            self._make_shown()
            sizes.fit()

    def put_back(self, state: QByteArray, shares: Shares) -> None:
        """Restore the docks of this layout, exactly if the size of the window is the same."""
        self._window.top.lay_out()  # bars first, because docks share the rest
        with self._arranging():
            self._window.restoreState(state)
        self.sizes.own = shares

    def arrange(self, layout: LayoutSpec, scale: float, caption: int = 0, panel: str = "") -> None:
        """Arrange a layout by its table, for the window's size.

        caption: height of a lesson's caption, in pixels.
        panel: name of a panel that opens as well; "" for none.
        """
        size = self._window.size()
        self.sizes.layout, self.sizes.scale = layout, scale
        self.sizes.own = Shares(low=self._is_low(scale, caption))
        self._window.centralWidget().setVisible(layout.board)
        with self._arranging():
            self._place({*layout.docks, panel})
        self._settle(size)

    def rearrange(self, scale: float, caption: int = 0) -> None:
        """Arrange the layout again if it needs more or fewer places; open docks stay open."""
        size, own = self._window.size(), self.sizes.own
        opened = {name for name, dock in self.by_name.items() if not dock.isHidden()}
        in_front = self._seen - set(self.sizes.layout.docks)
        self.sizes.scale = scale
        self.sizes.own = replace(own, low=self._is_low(scale, caption))
        with self._arranging():
            self._place(opened)
            for name in in_front:
                self.by_name[name].raise_()
        self._settle(size)

    def _place(self, opened: Collection[str]) -> None:
        """Put every dock at its place in the layout; other docks open where there is space."""
        window, docks, layout = self._window, self.by_name, self.sizes.layout
        for dock in docks.values():
            if dock.isFloating():  # Qt hides and shows a dock that is in the window already
                dock.setFloating(False)
            window.removeDockWidget(dock)
        # Without the board, the left is as high as the docks below the board.
        corner = Qt.DockWidgetArea.LeftDockWidgetArea
        if layout.board:
            corner = Qt.DockWidgetArea.BottomDockWidgetArea
        window.setCorner(Qt.Corner.BottomLeftCorner, corner)
        for name in AT_LEFT:
            window.addDockWidget(Qt.DockWidgetArea.LeftDockWidgetArea, docks[name])
        for place in self._places():
            first = docks[place[0]]
            window.addDockWidget(Qt.DockWidgetArea.RightDockWidgetArea, first)
            for other in place[1:]:
                window.tabifyDockWidget(first, docks[other])
        for name in layout.bottom:
            window.addDockWidget(
                Qt.DockWidgetArea.BottomDockWidgetArea, docks[name], Qt.Orientation.Horizontal
            )
        # Other docks open in front in the largest place, docks of a group side by side.
        largest = docks[layout.largest]
        if layout.largest not in layout.docks:
            window.addDockWidget(Qt.DockWidgetArea.RightDockWidgetArea, largest)
        for name in dict.fromkeys((*GROUPED, *docks)):
            if name not in (*layout.docks, *AT_LEFT, layout.largest):
                window.tabifyDockWidget(largest, docks[name])
        for name, dock in docks.items():
            dock.setVisible(name in opened)
        for place in self._places():
            docks[place[0]].raise_()

    def _places(self) -> tuple[tuple[str, ...], ...]:
        """Return the places at the right; in a low window all docks share one, as tabs."""
        layout = self.sizes.layout
        low = self.sizes.own.low and layout.right
        return (layout.tabs(stage=self._stage),) if low else layout.right

    def _settle(self, size: QSize) -> None:
        """Give docks their sizes after they were placed in a window of that size."""
        window = self._window
        self._make_shown()
        self.sizes.fit()
        # For a moment there are two layouts, which may need more space than either.
        layout = window.layout()
        assert layout is not None
        for _ in range(3):  # a lower window has lower bars, so it can become lower still
            layout.activate()
            if window.size() == size or window.isFullScreen() or window.isMaximized():
                break
            window.resize(size)

    def _end_drag(self) -> None:
        """Stop the dragging of a dock.

        Qt keeps the state before the drag, and would return to docks that have been freed by then.
        """
        window, at = self._window, QPointF(QCursor.pos())
        animated = window.isAnimated()
        window.setAnimated(False)  # otherwise the dock arrives later
        for dock in self.by_name.values():
            QCoreApplication.sendEvent(dock, QMouseEvent(
                QEvent.Type.MouseButtonRelease, QPointF(dock.mapFromGlobal(at)), at,
                Qt.MouseButton.LeftButton, Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier,
            ))  # fmt: skip
        window.setAnimated(animated)

    @contextmanager
    def _arranging(self) -> Iterator[None]:
        """Many docks open and close: their sizes are set once, when all have done so."""
        self._end_drag()
        self._busy = True
        try:
            yield
        finally:
            self._busy = False

    def suits(self, scale: float, caption: int = 0) -> bool:
        """Return whether the layout can stay as it is at a text scale.

        The layout is arranged again if the window was low and is not now, or the other way round,
        unless the user has moved its docks.
        """
        if self.sizes.own.low == self._is_low(scale, caption):
            return True
        right = Qt.DockWidgetArea.RightDockWidgetArea
        docks = [self.by_name[name] for name in self.sizes.layout.stack]
        return not all(
            self._window.dockWidgetArea(dock) is right and not dock.isFloating() for dock in docks
        )

    def _is_low(self, scale: float, caption: int) -> bool:
        return self._stage or self._window.height() - caption < LOW * scale

    def open(self, name: str) -> None:
        """Open a panel in front of the others in its place."""
        dock = self.by_name[name]
        dock.show()
        beside = {other.objectName() for other in self._window.tabifiedDockWidgets(dock)}
        if name not in self._seen and (covered := beside & self._seen):
            self._under[name] = covered.pop()
        dock.raise_()
        self.sizes.fit()

    def shows(self, group: GroupSpec) -> bool:
        """Return whether a panel of a group is in sight."""
        return not self._seen.isdisjoint(group.panels)

    def switch(self, name: str) -> None:
        """Bring the panels of a group to the front, or close them if one is in sight."""
        group = next(group for group in GROUPS if group.name == name)
        if self.shows(group):
            self._close(group.panels)
        else:
            self.open_group(name)

    def open_group(self, name: str) -> None:
        """Open the panels of a group; the panel that was in front last is in front again.

        If the group belongs to the board and the board is not visible, the board is shown instead.
        """
        group = next(group for group in GROUPS if group.name == name)
        if group.board and not self._window.board.isVisible():
            self._window.desk.show_board()
            return
        for each in group.panels:
            self.by_name[each].show()
        self.open(self._front[name])

    def _switch(self, name: str) -> None:
        """Bring a panel to the front, or close a panel that is in front."""
        if self.actions[name].isChecked():
            self.open(name)
        else:
            self._close((name,))

    def _close(self, names: Collection[str]) -> None:
        """Close panels; the panel that was in front before comes back, or gets their space."""
        under = next((name for name in names if name in self._seen), "")
        while under in names:
            under = self._under.pop(under, "")
        for name in names:
            self.by_name[name].close()
        if under and not self.by_name[under].isHidden():
            self.by_name[under].raise_()
        self.sizes.fit()

    def _opened(self, on: bool) -> None:
        if not self._busy:
            self.sizes.fit_soon()

    def _moved(self, area: Qt.DockWidgetArea) -> None:
        if not self._busy:
            self.sizes.moved()

    def _make_shown(self) -> None:
        """Make the panels of all open docks, also behind a tab, because they need space."""
        for name, dock in self.by_name.items():
            if not dock.isHidden():
                self.panel(name)


def _chooses(panel: Panel[Any]) -> bool:
    """Return whether a lesson can make choices in a panel."""
    return type(panel).take_choices is not Panel.take_choices
