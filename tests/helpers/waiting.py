"""Wait for what comes from elsewhere."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from PySide6.QtWidgets import QApplication


def wait_until(holds: Callable[[], object], pause: Callable[[int], object] | None = None) -> None:
    """Wait until something holds, 10 s or more.

    `pause` is given milliseconds: `QTest.qWait` where Qt's events shall go on meanwhile.
    """
    for _ in range(1000):
        if holds():
            return
        if pause is None:
            time.sleep(0.01)
        else:
            pause(10)
    pytest.fail("nothing came of it in 10 s")


def settle(window: Any) -> None:
    """Let a window's events and its session end; what they ask for in turn, too."""
    for _ in range(2):
        QApplication.processEvents()
        window.session.settle()
