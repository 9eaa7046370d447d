"""A machine that has little: free memory, or room on its disk."""

from collections.abc import Iterator
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
