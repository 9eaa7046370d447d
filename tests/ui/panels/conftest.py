"""A window with the panel in front that a file of tests is about.

A file says PANEL, its name, and LAYOUT, where that is not the first one.
"""

from typing import Any

import pytest

from tests.helpers.waiting import settle
from ui.window.main_window import MainWindow


@pytest.fixture
def size(request: pytest.FixtureRequest) -> tuple[int, int]:
    return getattr(request.module, "SIZE", (1280, 720))


@pytest.fixture
def window(request: pytest.FixtureRequest, window: MainWindow) -> MainWindow:
    file = request.module
    return in_front(window, file.PANEL, getattr(file, "LAYOUT", None))


@pytest.fixture
def panel(request: pytest.FixtureRequest, window: MainWindow) -> Any:
    return window.docks.panel(request.module.PANEL)


def in_front(window: MainWindow, name: str, layout: str | None = None) -> MainWindow:
    """Open a panel, in a layout if one is named, and wait for what it computes."""
    if layout is not None:
        window.desk.take(layout)
    window.docks.open(name)
    settle(window)
    return window
