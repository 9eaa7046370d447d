"""PTX has a cache of its own: in that of the host's kernels it would push others out."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernels.build.cache import cache_folder


@pytest.fixture(autouse=True, scope="module")
def cache_of_ptx(cache_of_the_checkout: None) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(Path(os.environ["XDG_CACHE_HOME"]) / "ptx"))
        cache_folder.cache_clear()
        yield
    cache_folder.cache_clear()
