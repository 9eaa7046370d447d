"""Kernels that tests compile are kept in the checkout, not among the user's own."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernels.build.cache import cache_folder


@pytest.fixture(autouse=True, scope="session")
def cache_of_the_checkout() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        root = Path(__file__).parents[2]
        patch.setenv("XDG_CACHE_HOME", os.environ.get("TEST_CACHE", str(root / "build" / "cache")))
        cache_folder.cache_clear()
        yield
    cache_folder.cache_clear()
