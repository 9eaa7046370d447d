"""The layout that the window shows: the user's own, as it was left, or a lesson's."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer
from PySide6.QtGui import QAction, QActionGroup, QKeySequence

from ui.look.layouts import LAYOUTS, LayoutSpec, layout_named
from ui.window.dock_sizes import Shares

if TYPE_CHECKING:
    from ui.window.main_window import MainWindow


class Desk(QObject):
    """The layouts of a window: an action for each, and the current one.

    actions: name of a layout to the action that shows it.
    lent: a lesson's layout and its panel in front; the user's own layout comes back afterwards.
    """

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self.lent: tuple[str, str] | None = None
        self._shown = False
        """Whether the docks have been arranged, so that there are places to remember."""
        self.actions: dict[str, QAction] = {}
        self._refit = QTimer(self, singleShot=True, interval=0)
        self._refit.timeout.connect(self.fit_text)
        self._make_actions()

    def _make_actions(self) -> None:
        """Make an action for each layout."""
        window, group = self._window, QActionGroup(self)
        for number, spec in enumerate(LAYOUTS, start=1):
            action = QAction(spec.title, window)
            action.setObjectName(f"layout_{spec.name}")
            action.setToolTip(f"{spec.tip} (Ctrl+{number})")
            action.setShortcut(QKeySequence(f"Ctrl+{number}"))
            action.setCheckable(True)
            action.triggered.connect(partial(self._take, spec.name))
            group.addAction(action)
            window.addAction(action)
            self.actions[spec.name] = action

    @property
    def current(self) -> str:
        """Name of the current layout."""
        return self.lent[0] if self.lent else self._window.settings.layout

    # --- the user's own -------------------------------------------------------------------

    def begin(self) -> None:
        """Arrange the docks of a window that is shown for the first time."""
        if self._shown:
            return
        if self.lent is None:
            self.show()
        else:
            self.lend(*self.lent)

    def take(self, name: str) -> None:
        """Show a layout as it was left, after remembering the current one."""
        if self.lent is not None:
            self.lend(name)
            return
        self.remember()
        self._window.settings.layout = name
        self.show()

    def _take(self, name: str, checked: bool = True) -> None:
        self.take(name)

    def remember(self) -> None:
        """Remember the docks of the user's own layout."""
        window = self._window
        if self._shown:
            layout, own = window.settings.layout, window.docks.sizes.own
            window.settings.save_state(layout, window.presenter.state())
            window.settings.save_shares(layout, own.to_text())

    def show(self) -> None:
        """Show the user's own layout as it was left, or as in a new window.

        A window that is not shown yet arranges its docks when it is shown.
        """
        window = self._window
        layout = layout_named(window.settings.layout)
        self.actions[layout.name].setChecked(True)
        window.board.plain = layout.plain
        if not window.isVisible():
            return
        self._shown = True
        state = window.settings.state(layout.name)
        if state is None:
            self._arrange(layout)
        else:
            shares = Shares.from_text(window.settings.shares(layout.name))
            window.docks.restore(layout, state, shares, window.scale)
        window.presenter.tidy()

    def reset(self) -> None:
        """Put the docks of this layout at their places in a new window."""
        if self.lent is not None:
            self.lend(*self.lent)
        else:
            self._arrange(layout_named(self._window.settings.layout))

    def show_board(self, wanted: bool = True) -> None:
        """Show the first layout with the board if the board is wanted and not visible."""
        if wanted and not self._window.board.isVisibleTo(self._window):
            self.take(next(spec.name for spec in LAYOUTS if spec.board))

    # --- lent -----------------------------------------------------------------------------

    def lend(self, name: str, panel: str = "") -> None:
        """Show a layout as in a new window; the user's own layout is kept.

        panel: name of the panel in front; "" for the layout's first.
        """
        if self.lent is None:
            self.remember()
        self.lent = name, panel
        self.actions[name].setChecked(True)
        self._window.board.plain = layout_named(name).plain
        self._arrange(layout_named(name), panel)
        if panel:
            self._window.docks[panel].raise_()
        self._window.presenter.tidy()

    def take_back(self) -> None:
        """Show the user's own layout as it was before the lesson's."""
        if self.lent is not None:
            self.lent = None
            self.show()

    # --- room -----------------------------------------------------------------------------

    def fit_text(self) -> None:
        """Arrange the layout again if the size of text or window needs it."""
        window = self._window
        if self._shown or self.lent is not None:
            if window.docks.suits(window.scale, self._caption()):
                window.docks.sizes.fit()
            else:
                window.docks.rearrange(window.scale, self._caption())
                if self.lent is not None and self.lent[1]:
                    window.docks[self.lent[1]].raise_()

    def fit_later(self) -> None:
        """Fit the docks after the window has its size, because arranging may resize the window."""
        self._refit.start()

    def _arrange(self, layout: LayoutSpec, panel: str = "") -> None:
        self._window.docks.arrange(layout, self._window.scale, self._caption(), panel)

    def _caption(self) -> int:
        """Return the height of a lesson's caption, in pixels; 0 for the user's own layout."""
        bar = self._window.lessons.bar
        return 0 if self.lent is None or bar.isHidden() else bar.height()
