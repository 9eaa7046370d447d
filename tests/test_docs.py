"""README and docs: links, commands, keys and menus exist; the notebook's numbers are right."""

import argparse
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from PySide6.QtGui import QKeySequence

from simulator.base.assets import SCENARIOS
from simulator.problem.scenario import load_scenario
from simulator.run.trace import simulate
from tests.helpers.process import python
from ui.app.cli import COMMANDS, _command_parser, _window_parser
from ui.export.writers.metadata import read_note, read_scenario
from ui.look.layouts import LAYOUTS
from ui.talk.presenter_keys import KEYS as TALK_KEYS
from ui.window.actions import ACTIONS, MENUS

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
NOTEBOOK = ROOT / "docs" / "traces.ipynb"
PAGES = sorted([
    *ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "assets").rglob("README.md")
])  # fmt: skip
FENCE = re.compile(r"^(`{3,})(\S*)[^\n]*\n(.*?)^\1\n", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def page_name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def prose(path: Path) -> str:
    """Return a page without its fenced blocks."""
    return FENCE.sub("", path.read_text(encoding="utf-8"))


def blocks(path: Path, *languages: str) -> Iterator[str]:
    """Yield the fenced blocks in these languages."""
    for _, language, text in FENCE.findall(path.read_text(encoding="utf-8")):
        if language in languages:
            yield text


def notebook_cells(kind: str) -> list[str]:
    """Return the sources of the notebook's cells of a kind."""
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == kind]


# --- links and pictures --------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_relative_links_lead_to_a_file(page):
    for target in LINK.findall(prose(page)):
        if "://" not in target:
            path, _, heading = target.partition("#")
            assert not heading, f"{target}: headings are renamed, link the page"
            assert (page.parent / path).exists(), target


def exporting_lines() -> list[str]:
    """Return the lines of the Makefile that make the pictures."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    demo = re.search(r"^DEMO = (\S+)", text, re.MULTILINE)
    lines = [line.strip() for line in text.splitlines() if "-o docs/pictures/" in line]
    return [line.replace("$(PY)", "python").replace("$(DEMO)", demo[1]) for line in lines]


def exports_in_makefile() -> dict[str, argparse.Namespace]:
    """Return the commands that make the pictures, parsed, under the files' names."""
    return {Path(options.output).name: options for options in map(parsed, exporting_lines())}


def test_every_picture_is_shown_and_made_by_the_makefile():
    shown = {
        (page.parent / target).resolve()
        for page in PAGES
        for target in LINK.findall(prose(page))
        if target.endswith((".png", ".gif"))
    }
    assert set(PICTURES.iterdir()) == shown
    made = exports_in_makefile()
    assert {path.name for path in shown} == made.keys()
    for path in shown:
        told = vars(parsed(read_note(path).command))
        wanted = vars(made[path.name]) | {"engine": told["engine"], "theme": "dark"}
        assert told == wanted, "make docs-pictures"
        assert path.stat().st_size < (2e6 if path.suffix == ".gif" else 3e5)


def some_frames(path: Path) -> list[np.ndarray]:
    """Return a picture's colours, of a film those of five frames."""
    with Image.open(path) as picture:
        count = getattr(picture, "n_frames", 1)
        found = []
        for k in sorted({n * (count - 1) // 4 for n in range(5)}):
            picture.seek(k)
            found.append(np.asarray(picture.convert("RGB"), dtype=int))
        return found


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize(
    "line",
    sorted(exporting_lines(), key=lambda line: ".gif" in line),  # a still is quick
    ids=lambda line: Path(parsed(line).output).name,
)
def test_pictures_are_what_would_be_made_now(line, tmp_path):
    kept = ROOT / parsed(line).output
    now = tmp_path / kept.name
    words = [str(now) if word == parsed(line).output else word for word in shlex.split(line)]
    python(*words[1:], check=True, text=False)
    ours, theirs = some_frames(now), some_frames(kept)
    assert [frame.shape for frame in ours] == [frame.shape for frame in theirs]
    # Another processor rounds otherwise: a last digit, and of a palette the colour of a few cells.
    far = 16 if kept.suffix == ".gif" else 8
    for one, other in zip(ours, theirs, strict=True):
        off = (np.abs(one - other) > far).any(axis=2)
        assert off.mean() < 1e-3, f"{kept.name} is of another day: make docs-pictures"


def test_readme_opens_with_a_film_of_our_own():
    opening = (ROOT / "README.md").read_text(encoding="utf-8").split("\n\n")[1]
    assert LINK.findall(opening) == ["docs/pictures/demo.gif"]
    path = PICTURES / "demo.gif"
    with Image.open(path) as film:
        assert film.is_animated
        assert 800 <= film.width <= 1000
    made = exports_in_makefile()["demo.gif"]
    assert read_scenario(path) == load_scenario(ROOT / made.scenario)


# --- commands ------------------------------------------------------------------------------


def parsed(line):
    """Return what the command line makes of a command; it ends the test where it refuses it."""
    words = shlex.split(line.strip())
    words = words[1:] if words[0] == "tilescope" else words[words.index("ui") + 1 :]
    if words and words[0] in COMMANDS:
        return _command_parser(words[0]).parse_args(words[1:])
    return _window_parser().parse_args(words)


def without_signs(line: str) -> str:
    """Return a line of usage as a command: no comment, all that is optional, first choices."""
    line = re.sub(r"\s#.*", "", line).replace("[options]", "")
    return re.sub(r"\|\S+", "", re.sub(r"[\[\]]", " ", re.sub(r"\|[^\s\]]+", "", line)))


def commands() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        for block in blocks(page, "", "sh"):
            for line in block.replace("\\\n", " ").splitlines():
                yield page_name(page), without_signs(line)


UI = [(page, line) for page, line in commands() if re.search(r"-m ui\b|^tilescope\b", line)]


@pytest.mark.parametrize(("page", "line"), UI)
def test_commands_are_understood(page, line):
    line = re.sub(r"\bN\b", "1", line)
    options = parsed(line)
    named = getattr(options, "scenario", None) or ""
    if named.endswith(".toml"):
        assert (ROOT / named).is_file()


def test_other_commands_are_there():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    lines = [line for _, line in commands()]
    lines += [code for page in PAGES for code in re.findall(r"`([^`\n]+)`", prose(page))]
    for line in lines:
        for target in re.findall(r"\bmake ([a-z][a-z-]*)\b", line):
            assert target in targets, line
        for module in re.findall(r"-m ((?:ui|kernels)(?:\.\w+)*)", line):
            path = ROOT / module.replace(".", "/")
            assert path.is_dir() or path.with_suffix(".py").is_file(), line
        for script in re.findall(r"(?:^|\s)((?:\.ci|docs|packaging)/\S+?)(?:\s|$)", line):
            assert (ROOT / script).exists(), line
    assert len(UI) > 12


def test_extras_that_pages_name_are_in_pyproject():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    extras = set(re.findall(r"^([a-z0-9-]+) = \[", text, re.MULTILINE))
    told = "\n".join([*(p.read_text(encoding="utf-8") for p in PAGES), *notebook_cells("markdown")])
    named = set(re.findall(r"EXTRAS=([a-z0-9-]+)", told))
    for words in re.findall(r"\.ci/setup ((?:[a-z0-9-]+ ?)+)", told):
        named |= set(words.split())
    assert {"notebook", "gpu-cuda13"} <= named
    assert named - {"does"} <= extras


def test_python_in_pages_runs(monkeypatch):
    monkeypatch.chdir(ROOT)
    pages = [page_name(page) for page in PAGES for _ in blocks(page, "python")]
    assert pages.pop(1) == "assets/fonts/README.md"  # it needs fonts from elsewhere
    assert pages == ["README.md", "docs/python.md"]
    names: dict = {}
    exec(next(blocks(ROOT / "README.md", "python")), names)
    assert names["trace"].program.visit(5).rows == range(32, 48)
    assert names["trace"].summary()["visits"] == 10
    exec(next(blocks(ROOT / "docs" / "python.md", "python")), names)
    assert names["now"].m.shape == (16,)
    assert names["picture"].svg.startswith("<?xml")


# --- keys ----------------------------------------------------------------------------------

NAMED = {"→": "Right", "←": "Left", "PageDown": "PgDown", "PageUp": "PgUp", "PgDn": "PgDown"}
MEANS = {
    "F5": "present", "PageDown": "lesson_next", "PageUp": "lesson_back", "B": "blank",
    "A": "reveal", "Ctrl+W": "leave_lesson", "Ctrl+E": "export", "T": "next_theme",
    "Ctrl+Shift++": "larger_text", "→": "forward", "←": "back", "Space": "play", "Home": "first",
    "?": "show_keys", "Ctrl+S": "save_scenario", "F11": "full_screen", "M": "set_motion",
    "W": "weights", "Backspace": "restore",
}  # fmt: skip
"""Keys that pages name, and the actions of the window that they say these are."""
TALK = {
    "PageDown": "next", "PageUp": "back", "B": "toggle_blank", "S": "link.toggle", "F5": "end",
    "X": "link.swap_screens", "Ctrl+P": "toggle_pen", "Ctrl+L": "toggle_spotlight",
    "E": "overlay.clear", "0": "toggle_what_if", "Ctrl+Z": "overlay.undo", "Esc": "off_or_end",
}  # fmt: skip
"""The same while presenting."""


def sequence(key: str) -> str:
    return QKeySequence(NAMED.get(key, key)).toString()


def keys_of(specs, name: str) -> set[str]:
    """Return the keys of the rows of a table that do this."""
    rows = [row for row in specs if name == getattr(row, "name", getattr(row, "does", ""))]
    return {QKeySequence(key).toString() for row in rows for key in row.keys}


def test_keys_do_what_pages_say():
    for key, name in MEANS.items():
        assert sequence(key) in keys_of(ACTIONS, name), key
    for key, name in TALK.items():
        assert sequence(key) in keys_of(TALK_KEYS, name), key


def test_keys_in_the_lecturers_page_are_those():
    text = prose(ROOT / "docs" / "first-ten-minutes.md")
    cells = re.findall(r"^\| ([^|]+) \| ", text, re.MULTILINE)[2:]
    keys = [key for cell in cells for key in cell.split(", ")]
    assert len(keys) > 8
    assert set(keys) <= MEANS.keys() | TALK.keys()


def test_the_readme_names_every_layout():
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert f"one question: {', '.join(spec.title for spec in LAYOUTS)}." in text


def test_menus_that_pages_name_exist():
    for page in PAGES:
        text = prose(page)
        for title in re.findall(r"[Mm]enu (\w+)", text) + re.findall(r"(\w+) → [A-Z]", text):
            if title[0].isupper():
                assert title in MENUS, f"{page_name(page)}: {title}"


# --- the notebook --------------------------------------------------------------------------


@pytest.mark.long
def test_the_notebook_computes_what_the_summary_says(monkeypatch, capsys):
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib import pyplot

    monkeypatch.chdir(NOTEBOOK.parent)
    shown = []
    monkeypatch.setattr(pyplot, "show", lambda: shown.append(pyplot.gcf()))
    names: dict = {}
    for source in notebook_cells("code"):
        exec(compile(source, NOTEBOOK.name, "exec"), names)
    names["folder"].cleanup()
    pyplot.close("all")
    trace = simulate(SCENARIOS / "flash2.toml")
    summary, arrays = trace.run(keep_arrays=True)
    for name, array in arrays.items():
        assert np.array_equal(names["trace"][name], array)
        assert np.array_equal(np.array(names["told"][name], np.float32), array)
    assert names["error"] == pytest.approx(summary["max_abs_error"], rel=1e-9)
    assert np.abs(names["weights"].sum(1) - 1).max() < 1e-5
    assert np.abs(names["weights"] @ names["v"] - arrays["o"][0]).max() < 1e-3
    m = arrays["m"][0, names["ROW"]]
    assert names["alpha"].min() == pytest.approx(np.exp(m[2] - m[3]), rel=1e-6)
    assert names["m"][-1] + np.log(names["l"][-1]) == pytest.approx(arrays["lse"][0, names["ROW"]])
    for name, total in names["requested"].items():
        hbm = simulate(SCENARIOS / f"{name}.toml").summary()["hbm"]
        assert total[-1] == hbm["read_bytes"] + hbm["write_bytes"]
    told = summary["hbm"]["by_tensor"]
    for tensor, part in zip(names["names"], names["parts"], strict=True):
        assert part[-1] == told[tensor]["read"] + told[tensor]["write"]
    assert len(shown) == 3
    assert "lse" in capsys.readouterr().out


def test_the_notebook_is_kept_without_outputs():
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)


def test_the_notebook_needs_only_numpy_matplotlib_and_tilescope():
    packages = {
        line.split()[1].partition(".")[0]
        for source in notebook_cells("code")
        for line in source.splitlines()
        if line.startswith(("import ", "from "))
    }
    standard = {"csv", "json", "subprocess", "sys", "tempfile", "pathlib"}
    assert packages == standard | {"numpy", "matplotlib", "tilescope"}
