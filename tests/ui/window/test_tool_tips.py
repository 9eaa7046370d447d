"""Tool tips of docks: over what reads by a card or a line of its own they stay away."""

import pytest
from PySide6.QtCore import QEvent
from PySide6.QtGui import QHelpEvent
from PySide6.QtWidgets import QApplication, QGraphicsView, QToolTip


def rest_on(widget):
    """Let the pointer rest on the middle of a widget, as long as a tool tip takes to come."""
    at = widget.rect().center()
    QToolTip.hideText()
    event = QHelpEvent(QEvent.Type.ToolTip, at, widget.mapToGlobal(at))
    QApplication.sendEvent(widget, event)
    return QToolTip.text()


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("name", ["sweep", "roofline", "sqrt_d", "traffic", "inspector"])
def test_no_tool_tip_of_the_dock_lies_over_what_reads_by_itself(open_window, qapp, name):
    window = open_window("causal", (1920, 1080))
    dock = window.docks[name]
    dock.show()
    dock.raise_()
    qapp.processEvents()
    window.session.settle()
    panel = window.docks.panel(name)
    views = [view.viewport() for view in panel.findChildren(QGraphicsView)]
    assert rest_on((views or [getattr(panel, "canvas", panel)])[0]) == ""
    assert rest_on(dock.titleBarWidget()) == dock.toolTip()


def test_what_has_no_card_is_still_explained(open_window):
    window = open_window("causal", (1920, 1080))
    dock = window.docks["memory"]
    assert rest_on(window.docks.panel("memory")) == dock.toolTip()
