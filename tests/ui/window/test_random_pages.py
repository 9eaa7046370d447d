"""Random scenarios in all panels, with all that can be chosen there: every page is drawn."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.helpers.random_pages import draw_pages
from tests.helpers.random_scenarios import random_case
from ui.window.main_window import MainWindow

PAGES = 5
"""Of each scenario."""


@pytest.fixture(scope="module")
def window(open_for_all: Callable[..., MainWindow]) -> MainWindow:
    return open_for_all("flash2", (1280, 720))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(16))
def test_every_page_of_a_random_scenario_is_drawn(window, seed, tmp_path):
    faults = draw_pages(window, random_case(seed, tmp_path, longest=40), PAGES)
    assert not faults, "\n".join(faults)
