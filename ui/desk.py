"""Which layout the window shows: the user's own, as it was left, or one that a lesson lends."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer
from PySide6.QtGui import QAction, QActionGroup, QKeySequence
from PySide6.QtWidgets import QHBoxLayout, QToolButton, QWidget

from ui.layouts import LAYOUTS, LayoutSpec, layout_named

if TYPE_CHECKING:
    from ui.main_window import MainWindow


class Desk(QObject):
    """The layouts of a window: an action and a button for each, and the one on show.

    Parameters
    ----------
    window : MainWindow
        Whose docks it arranges.

    Attributes
    ----------
    actions : dict
        Name of a layout to the action that takes it.
    lent : tuple of str, optional
        Layout and panel in front while a lesson has them; the user's own come back.
    """

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self.lent: tuple[str, str] | None = None
        self.actions: dict[str, QAction] = {}
        self._refit = QTimer(self, singleShot=True, interval=0)
        self._refit.timeout.connect(self._fit_lent)
        self._make_actions()

    def _make_actions(self) -> None:
        """Make an action for each layout, and the row of buttons beside the menus."""
        window = self._window
        group, bar = QActionGroup(self), window.menuBar()
        buttons = QWidget(bar)
        row = QHBoxLayout(buttons)
        row.setContentsMargins(0, 0, 8, 0)
        row.setSpacing(2)
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
            button = QToolButton()
            button.setObjectName("layout")
            button.setAccessibleName(f"Layout {spec.title}")
            button.setDefaultAction(action)
            row.addWidget(button)
        # A menu bar of the system's own has no place for them.
        bar.setNativeMenuBar(False)
        bar.setCornerWidget(buttons)

    @property
    def current(self) -> str:
        """Name of the layout on show."""
        return self.lent[0] if self.lent else self._window.settings.layout

    # --- the user's own -------------------------------------------------------------------

    def take(self, name: str) -> None:
        """Show a layout as it was left; what this one looks like is remembered."""
        if self.lent is not None:
            self.lend(name)
            return
        self.remember()
        self._window.settings.layout = name
        self.show()

    def _take(self, name: str, checked: bool = True) -> None:
        self.take(name)

    def remember(self) -> None:
        """Write down how the docks of the user's own layout stand."""
        window = self._window
        window.settings.save_state(window.settings.layout, window.presenter.state())

    def show(self) -> None:
        """Show the user's own layout as it was left, or as a new window has it."""
        window = self._window
        layout = layout_named(window.settings.layout)
        self.actions[layout.name].setChecked(True)
        state = window.settings.state(layout.name)
        if state is None:
            self._arrange(layout)
        else:
            window.docks.restore(layout, state, window.scale)
        window.presenter.tidy()

    def reset(self) -> None:
        """Put the docks of this layout where a new window has them."""
        if self.lent is not None:
            self.lend(*self.lent)
        else:
            self._arrange(layout_named(self._window.settings.layout))

    # --- lent -----------------------------------------------------------------------------

    def lend(self, name: str, panel: str = "") -> None:
        """Show a layout as a new window has it, with a panel in front; the user's own is kept."""
        if self.lent is None:
            self.remember()
        self.lent = name, panel
        self.actions[name].setChecked(True)
        self._arrange(layout_named(name))
        if panel:
            self._window.docks[panel].raise_()
        self._window.presenter.tidy()

    def take_back(self) -> None:
        """Show the user's own layout as it was before it was lent."""
        if self.lent is not None:
            self.lent = None
            self.show()

    # --- room -----------------------------------------------------------------------------

    def fit_text(self) -> None:
        """Arrange the layout anew where larger or smaller text wants it otherwise."""
        if self.lent is not None:
            self._fit_lent()
        elif not self._suits(self._window.settings.layout):
            self.reset()

    def fit_later(self) -> None:
        """Once the window has its size: arrange a layout that is lent anew, where it wants that.

        The user's own is left as it is.
        """
        self._refit.start()  # not at once: what is arranged may resize the window

    def _fit_lent(self) -> None:
        if self.lent is not None and not self._suits(self.lent[0]):
            self.lend(*self.lent)

    def _suits(self, name: str) -> bool:
        window = self._window
        return window.docks.suits(layout_named(name), window.scale, self._caption())

    def _arrange(self, layout: LayoutSpec) -> None:
        self._window.docks.arrange(layout, self._window.scale, self._caption())

    def _caption(self) -> int:
        """Return the height of a lesson's caption, in pixels: the user's own layout has none."""
        bar = self._window.lessons.bar
        return 0 if self.lent is None or bar.isHidden() else bar.height()
