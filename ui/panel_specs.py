"""The docks of the window, one row each: to add a panel is to add a row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from ui.panels.memory_panel import MemoryPanel
from ui.panels.scenario_panel import ScenarioPanel
from ui.panels.softmax_panel import SoftmaxPanel
from ui.session import Session, View
from ui.theme import Style


class Panel(Protocol):
    """What the window asks of the widget in a dock."""

    def set_style(self, style: Style) -> None:
        """Take theme and text scale."""


@dataclass(frozen=True, slots=True)
class PanelSpec:
    """One dock.

    Attributes
    ----------
    name : str
        Object name of the dock, which saved layouts refer to.
    title : str
        Shown on the dock and in the View menu.
    area : Qt.DockWidgetArea
        Where it opens.
    make : callable
        The session to the panel, already connected to it.
    show : callable or None
        Shows a view in the panel; None where the panel follows the session by itself.
    wide_only : bool
        Whether a new window opens it only where there is room for it.
    """

    name: str
    title: str
    area: Qt.DockWidgetArea
    make: Callable[[Session], QWidget]
    show: Callable[[QWidget, View], None] | None
    wide_only: bool = False


def _scenario(session: Session) -> QWidget:
    panel = ScenarioPanel()
    panel.proposed.connect(session.propose)
    session.trace_changed.connect(panel.show_trace)
    session.refused.connect(panel.show_refusal)
    return panel


def _memory(session: Session) -> QWidget:
    return MemoryPanel()


def _softmax(session: Session) -> QWidget:
    return SoftmaxPanel()


def _show_memory(panel: QWidget, view: View) -> None:
    assert isinstance(panel, MemoryPanel)
    panel.show_snapshot(view.snapshot)


def _show_softmax(panel: QWidget, view: View) -> None:
    assert isinstance(panel, SoftmaxPanel)
    panel.show_snapshot(view.snapshot, view.report)


_LEFT = Qt.DockWidgetArea.LeftDockWidgetArea
_RIGHT = Qt.DockWidgetArea.RightDockWidgetArea

PANELS = (
    PanelSpec("scenario", "Scenario", _LEFT, _scenario, None, wide_only=True),
    PanelSpec("memory", "Memory traffic", _RIGHT, _memory, _show_memory),
    PanelSpec("softmax", "Online softmax", _RIGHT, _softmax, _show_softmax),
)
