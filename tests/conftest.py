"""What all tests share."""

import gc
import os
import signal
from collections import defaultdict
from collections.abc import Iterator

import psutil
import pytest
from hypothesis import HealthCheck, Phase, settings

from ui.safety.heap import give_back

# Qt ends the process where it finds no display; the tests never need one.
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

# In the background a shell lets SIGINT and SIGQUIT be ignored, nohup SIGHUP, and so would all
# processes that tests start and interrupt: those inherit what is ignored, and nothing else.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
for _name in ("SIGHUP", "SIGQUIT"):  # Windows has neither
    if signal.getsignal(_number := getattr(signal, _name, signal.SIGINT)) is signal.SIG_IGN:
        signal.signal(_number, signal.SIG_DFL)

# The same examples on every run, so that a red suite means a change and not a draw.
# HYPOTHESIS_PROFILE=explore looks for new ones, at length.
settings.register_profile(
    "fixed",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("some", settings.get_profile("fixed"), max_examples=12)
settings.register_profile(
    "explore", deadline=None, max_examples=1000, suppress_health_check=[HealthCheck.too_slow]
)
# For `make mutants`: a failing example need not be made small.
settings.register_profile(
    "mutants", settings.get_profile("fixed"), database=None, phases=[Phase.explicit, Phase.generate]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))

MUCH = 200 * 2**20
"""Bytes that tests of a file may leave before they are collected."""
LEFT = {"bytes": 0}
"""What was in memory after the last collection."""


@pytest.fixture(autouse=True, scope="module")
def forgotten(request: pytest.FixtureRequest) -> Iterator[None]:
    """Collect after each file: once a window has been open, nothing does so by itself.

    What a file keeps for its tests, runs above all, goes as well: a process goes through some
    hundred files.
    """
    yield
    for made in vars(request.module).values():
        forget = getattr(made, "cache_clear", None)
        if forget is not None and str(made.__module__).rpartition(".")[2].startswith(
            ("test_", "demos")
        ):
            forget()  # also what another file of tests has, where it is borrowed
    collect()


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Collect within a file, too, once its tests have left much: windows of large runs, say."""
    yield
    if memory() > LEFT["bytes"] + MUCH:
        collect()


def memory() -> int:
    """Return the bytes that this process has in memory."""
    return psutil.Process().memory_info().rss


def collect() -> None:
    """Collect, and note what is left."""
    gc.collect()
    give_back()
    LEFT["bytes"] = memory()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--all", action="store_true", help="long tests, too, and every case of every sweep"
    )


def tries_all(config: pytest.Config) -> bool:
    """Return whether every case of every sweep is asked for, or a test by its name."""
    by_name = config.option.keyword or any("::" in arg for arg in config.args)
    return bool(config.option.all or by_name)


def pytest_configure(config: pytest.Config) -> None:
    """Try fewer examples of a property, as of a sweep; test modules are imported after this."""
    if not tries_all(config) and "HYPOTHESIS_PROFILE" not in os.environ:
        settings.load_profile("some")


def pytest_collection_finish() -> None:
    """Look no more through what was imported, half a million objects, each time that we collect."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out long tests and most cases of a sweep, unless all or one are asked for."""
    if tries_all(config):
        return
    sweeps: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sweep"):
            sweeps[item.nodeid.partition("[")[0]].append(item)
    left = [item for item in items if item.get_closest_marker("long")]
    for cases in sweeps.values():
        marker = cases[0].get_closest_marker("sweep")
        assert marker is not None
        keep = marker.kwargs["keep"]
        kept = {round(n * (len(cases) - 1) / max(keep - 1, 1)) for n in range(keep)}
        left += [case for n, case in enumerate(cases) if n not in kept]
    gone = set(map(id, left))
    items[:] = [item for item in items if id(item) not in gone]
    config.hook.pytest_deselected(items=left)
