"""What all tests share."""

import gc
import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# Qt ends the process where it finds no display; the tests never need one.
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

# The same examples on every run, so that a red suite means a change and not a draw.
# HYPOTHESIS_PROFILE=explore looks for new ones, at length.
settings.register_profile(
    "fixed",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "explore",
    deadline=None,
    max_examples=1000,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


@pytest.fixture(autouse=True, scope="module")
def collected() -> Iterator[None]:
    """Collect after each file: once a window has been open, nothing does so by itself."""
    yield
    gc.collect()
