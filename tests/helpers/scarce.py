"""Memory and files: how much a test takes, and a machine that has little of them."""

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import psutil
import pytest


@contextmanager
def free_memory(size: float) -> Iterator[None]:
    """Let so many bytes of memory be free."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=size))
        yield


@contextmanager
def longest_file(size: int) -> Iterator[None]:
    """Let files be no longer than so many bytes, as on a disk that is full then."""
    resource = pytest.importorskip("resource", reason="no limit can be set here")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@contextmanager
def peak_memory() -> Iterator[Callable[[], int]]:
    """Yield a question: how many bytes has Python had at once since?"""
    tracemalloc.start()
    try:
        yield lambda: tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
