"""Formulas are typeset in the engine's thread and in the window's, which share one font file."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import ziamath

from ui.look.formula import typeset


def test_two_threads_typeset_one_after_the_other(
    qapp: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    real: Any = ziamath.Latex
    inside, overlaps = threading.Semaphore(1), []

    def watched(*args: Any, **options: Any) -> Any:
        overlaps.append(not inside.acquire(blocking=False))
        time.sleep(0.002)  # lets another thread in, if any may come
        found = real(*args, **options)
        inside.release()
        return found

    monkeypatch.setattr(ziamath, "Latex", watched)
    latex = [rf"\mathfrak{{{letter}}}_{{77}}" for letter in "ABCDEFGH"]
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(typeset, [latex[:4], latex[4:]]))
    assert overlaps == [False] * 8
