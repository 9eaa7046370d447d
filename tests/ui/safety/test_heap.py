"""What is free goes back to the system, where the C library can."""

import linecache
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from ui.safety.heap import give_back, share_pools

MIB = 2**20
ROOT = Path(__file__).resolve().parents[3]
LARGE = """
from tests.soak.memory import MIB, parts
from ui.safety.heap import share_pools
share_pools()
bytes(30 * MIB)  # of itself glibc would put what is smaller into its pools from now on
before = parts()["large"]
kept = bytes(3 * MIB)
print(parts()["large"] - before)
"""


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


@pytest.mark.skipif(sys.platform != "linux", reason="glibc alone has these calls")
def test_large_arrays_stand_by_themselves_even_after_larger_ones_have_gone():
    done = subprocess.run(
        [sys.executable, "-c", LARGE], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert float(done.stdout) >= 3


def test_sources_that_were_read_are_not_kept():
    assert linecache.getlines(__file__)
    give_back()
    assert not linecache.cache
