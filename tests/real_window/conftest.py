"""All cases are tried at once, before the first test looks at its own."""

import os
from functools import partial
from pathlib import Path

import pytest

from tests.real_window.cases import LARGE_SCREEN, LEAVING, Case
from tests.real_window.crew import Screen, try_all
from tests.real_window.screens import WHY_NO_WAYLAND, WHY_NO_X, wayland_screen, x_screen

Outcomes = dict[Case, str]
"""What went wrong with each case; empty where nothing did."""


def _asked_for(request: pytest.FixtureRequest, test: str) -> list[Case]:
    """Return the cases of this run's tests: pytest may have been asked for a few of them."""
    items = (item for item in request.session.items if isinstance(item, pytest.Function))
    here = (item for item in items if item.path.parent == Path(__file__).parent)
    return [i.callspec.params["case"] for i in here if i.name.startswith(test)]


def _tried(
    cases: list[Case], screen: Screen, large: Screen, kind: str, folder: Path, workers: int
) -> Outcomes:
    """Leave behind what the cases are to find, then try them."""
    left, wanted = folder / "left", {case.left for case in cases}
    left.mkdir()
    told: Outcomes = {}
    for on, place in ((screen, "screens"), (large, "large")):
        here = [c for c in LEAVING if c.left.startswith("4K") is (place == "large")]
        todo = [case for case in here if case.left in wanted]
        told |= try_all(todo, on, kind, left, left, left / place, workers)
    faulty = {case.left: fault for case, fault in told.items() if fault}
    good = [case for case in cases if case.left not in faulty]
    out = try_all(good, screen, kind, folder, left, folder / "screens", workers)
    return out | {case: faulty[case.left] for case in cases if case.left in faulty}


@pytest.fixture(scope="session")
def on_x(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """Try what is asked for on X servers: one to spare, for each waits for keys at times."""
    if WHY_NO_X:
        pytest.skip(WHY_NO_X)
    cases, folder = _asked_for(request, "test_x_"), tmp_path_factory.mktemp("x")
    large = partial(x_screen, size=LARGE_SCREEN)
    return _tried(cases, x_screen, large, "x", folder, len(os.sched_getaffinity(0)) + 1)


@pytest.fixture(scope="session")
def on_wayland(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Outcomes:
    """Try what is asked for on Wayland."""
    if WHY_NO_WAYLAND:
        pytest.skip(WHY_NO_WAYLAND)
    cases, folder = _asked_for(request, "test_wayland_"), tmp_path_factory.mktemp("wayland")
    return _tried(cases, wayland_screen, wayland_screen, "wayland", folder, 1)
