"""What is free goes back to the system, where the C library can."""

import linecache
import sys

import psutil
import pytest

from ui.safety.heap import give_back, share_pools

MIB = 2**20


@pytest.mark.skipif(sys.platform != "linux", reason="glibc alone has these calls")
def test_free_memory_is_given_back():
    assert share_pools()
    blocks = [bytes(100_000) for _ in range(2000)]
    kept = blocks[::200]  # what is free lies between what is in use
    del blocks
    before = psutil.Process().memory_info().rss
    assert give_back()
    assert before - psutil.Process().memory_info().rss > 100 * MIB
    assert len(kept) == 10


def test_sources_that_were_read_are_not_kept():
    assert linecache.getlines(__file__)
    give_back()
    assert not linecache.cache
