"""Wait for what comes from elsewhere."""

import time
from collections.abc import Callable

import pytest


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
