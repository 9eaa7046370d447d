"""What a notebook shows in the place of runs and of states."""

import gc
import json
import re
from html import unescape
from typing import Any

import pytest

import tilescope
from simulator.base.assets import SCENARIOS
from tilescope.notebook import MOST_PICTURES

pytestmark = pytest.mark.usefixtures("qapp")


def page_in(shown: str) -> dict[str, Any]:
    """Return what the script of the page in a frame reads."""
    found = re.search(r'<iframe [^>]*sandbox="allow-scripts"[^>]* srcdoc="([^"]*)">', shown)
    assert found
    page = unescape(found[1])
    data = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert data
    return json.loads(data[1])  # type: ignore[no-any-return]


def test_a_short_run_shows_a_page_that_steps_by_tile() -> None:
    run = tilescope.simulate(SCENARIOS / "causal.toml")
    shown = run._repr_html_() or ""
    page = page_in(shown)
    assert len(page["seen"]) == len(run) == 10
    assert list(page["pictures"]) == ["light"]
    assert None not in page["values"]  # numbers under the pointer
    assert "10 steps, one for each tile" in shown
    assert "export SCENARIO -o run.html" in shown


def test_a_longer_run_shows_a_picture_and_how_to_make_the_page() -> None:
    run = tilescope.simulate(SCENARIOS / "multi-query.toml")
    assert len(run) > MOST_PICTURES
    shown = run._repr_html_() or ""
    assert shown.startswith("<img")
    assert "<iframe" not in shown
    assert "export SCENARIO -o run.html" in shown


def test_a_state_shows_the_ops_of_its_visit_from_its_own_on_while_its_run_is_kept() -> None:
    run = tilescope.simulate(SCENARIOS / "causal.toml")
    now = run.snapshot(2, 3)
    page = page_in(now._repr_html_() or "")
    assert len(page["seen"]) == len(now.ops)
    assert page["start"] == 3
    pictures = [len(step) for step in page["pictures"]["light"]]
    assert max(pictures) > 1  # what moves
    assert sum(pictures) <= MOST_PICTURES
    del run
    gc.collect()
    assert (now._repr_html_() or "").startswith("<img")
