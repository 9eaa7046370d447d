"""Menus can be reached in a window of any size: layouts leave them their room."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QToolButton

from ui.look.layouts import LAYOUTS


def menus_in_sight(window) -> bool:
    """Return whether all menus stand beside the layouts, none behind the button for the rest."""
    bar = window.menuBar()
    rest = bar.findChild(QToolButton, "qt_menubar_ext_button")
    ends = max(bar.actionGeometry(action).right() for action in bar.actions())
    return not rest.isVisible() and ends < bar.cornerWidget().x()


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("width", [700, 1000, 1280, 1920])
def test_layouts_leave_the_menus_their_room(open_window, qtbot, width):
    window = open_window("causal", (width, 720))
    window.show()
    for by in (0, 2, 2, -2, -2):
        window.change_text(by)
        qtbot.waitUntil(lambda: menus_in_sight(window))
    buttons = window.menuBar().cornerWidget()
    qtbot.waitUntil(lambda: buttons.row.isVisible() is (width >= 1000))
    assert buttons.chooser.isVisible() is not buttons.row.isVisible()


def test_one_button_stands_for_all_layouts_where_the_window_is_narrow(open_window, qtbot):
    window = open_window("causal", (720, 720))
    buttons = window.menuBar().cornerWidget()
    qtbot.waitUntil(buttons.chooser.isVisible)
    offered = buttons.chooser.menu().actions()
    assert [action.text() for action in offered] == [layout.title for layout in LAYOUTS]
    assert buttons.chooser.text().startswith("Steps")
    offered[5].trigger()
    assert window.settings.layout == "cache"
    assert buttons.chooser.text().startswith("Cache")
    qtbot.waitUntil(lambda: menus_in_sight(window))


def test_the_button_for_all_layouts_opens_their_menu(open_window, qtbot):
    window = open_window("causal", (720, 720))
    chooser = window.menuBar().cornerWidget().chooser
    qtbot.waitUntil(chooser.isVisible)
    menu, seen = chooser.menu(), []
    menu.aboutToShow.connect(lambda: seen.append(menu))
    menu.aboutToShow.connect(menu.close, Qt.ConnectionType.QueuedConnection)
    chooser.showMenu()  # until the menu is closed
    assert seen == [menu]
