"""Pages that step, used in Chromium as a reader uses them.

`make test-browser` installs Playwright; Chromium is the system's own, `TILESCOPE_CHROMIUM` or
`chromium` on the path. `TILESCOPE_PAGES` names a folder of `make site` whose pages are used.
"""

import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tilescope
from simulator.base.assets import LESSONS, SCENARIOS
from simulator.lesson.reader import load_lesson
from simulator.problem.scenario import load_scenario
from simulator.program.algorithms import TENSORS
from simulator.program.tensors import symbol
from simulator.run.cell_values import cell_value
from simulator.run.snapshot import Cell, Snapshot
from simulator.run.trace import simulate
from ui.export.stepping import stops_of
from ui.look.layouts import LAYOUT_PANELS
from ui.look.units import number_text

pytestmark = pytest.mark.browser
ROOT = Path(__file__).resolve().parents[2]
DEMOS = ("flash2", "causal", "naive", "window-sinks", "split-kv", "grouped-heads")
ALL = [*(SCENARIOS / f"{name}.toml" for name in DEMOS), *sorted(LESSONS.glob("*.md"))]
VALUES = 10
NAMES = {symbol(name): name for name in TENSORS}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="no Playwright: make test-browser")
    program = os.environ.get("TILESCOPE_CHROMIUM") or shutil.which("chromium")
    if program is None:
        pytest.skip("no chromium on the path, and no TILESCOPE_CHROMIUM")
    sandbox = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with sync_api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=program, args=sandbox)
        yield found
        found.close()


def page_of(source: Path, folder: Path) -> Path:
    """Return the page of a lesson or a demo: that of the site, or a new one."""
    if made := os.environ.get("TILESCOPE_PAGES"):
        return (
            Path(made) / ("lessons" if source.suffix == ".md" else "runs") / f"{source.stem}.html"
        )
    target = folder / f"{source.stem}.html"
    command = [sys.executable, "-m", "ui", "export", str(source), "-o", str(target)]
    subprocess.run(command, cwd=ROOT, check=True, env={"QT_QPA_PLATFORM": "offscreen"} | os.environ)
    return target


class States:
    """The state that each step of a page shows; None where it asks."""

    def __init__(self, source: Path) -> None:
        self._places: list[Any] = []
        if source.suffix == ".md":
            for step in load_lesson(source, LAYOUT_PANELS).steps:
                self._places += [None] if step.said.predict is not None else []
                self._places.append((step.scenario, step.cursor))
        else:
            scenario = load_scenario(source)
            program = simulate(scenario).program
            stops, _ = stops_of(program, range(len(program)), None)
            self._places = [(scenario, stop.cursor) for stop in stops]

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, n: int) -> Snapshot | None:
        if self._places[n] is None:
            return None
        scenario, cursor = self._places[n]
        return simulate(scenario).snapshot(cursor.visit, cursor.op)


@pytest.mark.parametrize("source", ALL, ids=lambda path: path.stem)
def test_a_page_steps_and_tells_the_numbers_of_the_trace(
    browser: Any, source: Path, tmp_path: Path
) -> None:
    path, states = page_of(source, tmp_path), States(source)
    page = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme="dark")
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    try:
        asks = _steps_by_key(page, len(states))
        assert asks == [n for n in range(len(states)) if states._places[n] is None]
        _link_leads_to_its_step(page, path, len(states))
        read = _values_are_those_of_the_trace(page, states)
        assert read >= VALUES or source.suffix == ".md"  # lessons show larger runs, and no board
        if shots := os.environ.get("TILESCOPE_SHOTS"):
            page.keyboard.press("Home")
            page.screenshot(path=str(Path(shots) / f"{source.stem}.png"))
    finally:
        page.close()
    assert not said
    assert [url for url in asked if not url.startswith((path.as_uri(), "data:"))] == []


_HERE = """() => {
  const here = document.querySelector("article.here"), picture = document.getElementById("picture");
  const answer = here.querySelector(".answer");
  return {
    id: here.id, link: location.hash, parts: picture.childElementCount,
    told: document.getElementById("live").innerText, title: here.querySelector("h2").innerText,
    formulas: [...here.querySelectorAll(".said > p svg.formula")].map((e) => e.ariaLabel),
    seen: picture.ariaLabel, asks: here.querySelector("[data-truth]") !== null,
    waits: answer !== null && answer.checkVisibility() === false,
    answered: answer !== null && answer.checkVisibility(),
  };
}"""


def _steps_by_key(page: Any, count: int) -> list[int]:
    """Go from the first to the last step and back; return the steps that ask to be predicted."""
    assert page.locator("article").count() == count
    page.emulate_media(reduced_motion="reduce")
    for button in page.locator("button").all():
        assert button.get_attribute("aria-label") or button.text_content()
    asks = []
    page.keyboard.press("Home")
    for n in range(count):
        here = page.evaluate(_HERE)
        assert (here["id"], here["link"]) == (str(n + 1), f"#{n + 1}")
        assert here["parts"]
        first = here["title"].split()[0]
        assert first in here["told"]
        assert here["seen"].startswith(first)
        for formula in here["formulas"]:
            assert " ".join(formula.split()) in here["told"]
        if here["asks"]:
            asks.append(n)
        assert not here["answered"]
        if here["waits"]:
            page.keyboard.press("ArrowRight")
            assert page.evaluate(_HERE)["answered"], "a question waits in its step"
        if n < count - 1:
            page.keyboard.press("ArrowRight")
    for n in reversed(range(max(count - 3, 0), count - 1)):
        page.keyboard.press("ArrowLeft")
        assert page.evaluate(_HERE)["id"] == str(n + 1)
    return asks


def _link_leads_to_its_step(page: Any, path: Path, count: int) -> None:
    page.goto("about:blank")
    page.goto(f"{path.as_uri()}#{count}")
    assert page.locator("article.here").get_attribute("id") == str(count)


def _values_are_those_of_the_trace(page: Any, states: States) -> int:
    """Compare numbers under the pointer with those of the trace; return how many there were."""
    data = page.evaluate("JSON.parse(document.getElementById('data').textContent)")
    with_values = [n for n, found in enumerate(data["values"]) if found is not None]
    draw, total = random.Random(0), 0
    for n in draw.sample(with_values, min(VALUES, len(with_values))):
        page.evaluate(f"location.hash = '{n + 1}'")
        page.wait_for_function(f"document.querySelector('article.here').id === '{n + 1}'")
        snapshot, read = states[n], 0
        if snapshot is None:
            continue
        boxes = data["places"][data["values"][n][0]]["boxes"]
        page.locator("#picture").scroll_into_view_if_needed()
        area = page.locator("#picture").bounding_box()
        left, top, wide, high = data["view"]
        scale = min(area["width"] / wide, area["height"] / high)
        for _ in range(-(-VALUES // min(VALUES, len(with_values))) + 2):
            _, _, x, y, w, h, _ = draw.choice(boxes)
            x, y = x + w * draw.uniform(0.05, 0.95), y + h * draw.uniform(0.05, 0.95)
            page.mouse.move(
                area["x"] + (area["width"] - wide * scale) / 2 + (x - left) * scale,
                area["y"] + (area["height"] - high * scale) / 2 + (y - top) * scale,
            )
            text = page.locator("#value").inner_text()
            if not text:
                continue
            found = re.match(r"(.+?)\[(\d+)(?:, (\d+))?\](?: = |: )(.*)", text)
            assert found, text
            name = "S" if found[1] == "P" else NAMES.get(found[1])
            if name is None:
                continue
            value = cell_value(snapshot, Cell(name, int(found[2]), int(found[3] or 0)))
            assert found[4] == (value.state if value.value is None else number_text(value.value)), (
                n, text)  # fmt: skip
            read += 1
        assert read
        total += read
    return total


def test_films_of_slides_play_and_the_speaker_has_stills(browser: Any, tmp_path: Path) -> None:
    folder = tmp_path / "run.reveal"
    command = [sys.executable, "-m", "ui", "export", str(SCENARIOS / "flash2.toml"), "-o",
               f"{folder}/", "--visits", "8:10", "--size", "640x360"]  # fmt: skip
    subprocess.run(command, cwd=ROOT, check=True, env={"QT_QPA_PLATFORM": "offscreen"} | os.environ)
    context = browser.new_context()
    said: list[str] = []
    asked: list[str] = []
    context.on("console", lambda message: said.append(message.text))
    context.on("weberror", lambda error: said.append(str(error.error)))
    context.on("request", lambda request: asked.append(request.url))
    page = context.new_page()
    try:
        page.goto((folder / "index.html").as_uri())
        for _ in range(2):
            page.wait_for_function(
                "window.Reveal && Reveal.isReady() && "
                "Reveal.getCurrentSlide().querySelector('video').currentTime > 0.2"
            )
            page.keyboard.press("ArrowRight")
        with page.expect_popup() as opened:
            page.keyboard.press("s")
        speaker = opened.value
        stills = "document.querySelectorAll('section > figure > img').length === 2"
        for name in ("current", "upcoming"):
            frame = speaker.wait_for_selector(f"#{name}-slide iframe").content_frame()
            frame.wait_for_function(stills)
    finally:
        context.close()
    assert not said
    here = (folder.as_uri(), "data:", "about:", "blob:")
    assert [url for url in asked if not url.startswith(here)] == []


def test_a_page_in_the_frame_of_a_notebook_steps_and_stays_in_it(
    browser: Any, tmp_path: Path
) -> None:
    run = tilescope.simulate(SCENARIOS / "causal.toml")
    path = tmp_path / "notebook.html"
    shown = run.snapshot(2, 3)._repr_html_()
    path.write_text(f'<!DOCTYPE html><meta charset="utf-8">{shown}', encoding="utf-8")
    page = browser.new_page(viewport={"width": 1000, "height": 900}, reduced_motion="reduce")
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(path.as_uri())
    try:
        frame = page.frames[1]
        count = frame.locator("#count")
        assert count.inner_text().startswith("4 of ")  # at the op of the state
        frame.locator("article.here h2 a").click()
        frame.locator("#picture").click()
        page.keyboard.press("ArrowRight")
        assert count.inner_text().startswith("5 of ")
        assert frame.url == "about:srcdoc"
    finally:
        page.close()
    assert not said
