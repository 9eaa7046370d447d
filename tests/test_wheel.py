"""The wheel that packaging/make_wheel.py builds: what is in it, what it does once installed."""

import ast
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.helpers.process import python
from ui.export.writers.metadata import read_note

ROOT = Path(__file__).resolve().parent.parent
INSIDE = ("simulator", "kernels", "ui")
LEFT = re.compile(rf"(?:{'|'.join(INSIDE)})(?:\.\w+)+")
FILES = {"kernels.toml"}
DEMO = "assets/scenarios/causal.toml"
STATED = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    made = python("packaging/make_wheel.py", "-o", folder, check=True)
    return Path(made.stdout.strip())


def modules(wheel: Path) -> Iterator[tuple[str, str]]:
    """Yield the place and the text of every module in it."""
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.endswith(".py"):
                yield name, archive.read(name).decode()


def names(tree: ast.Module) -> Iterator[str]:
    """Yield every name of a module that a text imports, asks importlib for, or starts with -m."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
        elif isinstance(node, ast.List | ast.Tuple):
            words = [getattr(each, "value", None) for each in node.elts]
            after = words[words.index("-m") + 1] if "-m" in words[:-1] else None
            yield after if isinstance(after, str) else ""
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            named = LEFT.fullmatch(node.value.rstrip(".:")) and node.value not in FILES
            yield node.value if named else ""


@pytest.mark.long
def test_no_module_in_it_asks_for_one_outside_of_its_package(wheel: Path) -> None:
    found = {place: text for place, text in modules(wheel) if "/capture/" not in place}
    left = [
        f"{place}: {name}"
        for place, text in found.items()
        for name in names(ast.parse(text))
        if name.partition(".")[0] in INSIDE
    ]
    assert not left
    assert len(found) > 600


def test_a_line_of_it_differs_in_the_name_of_the_package_alone(wheel: Path) -> None:
    for place, text in modules(wheel):
        source = ROOT / place
        if not source.exists():
            source = ROOT / place.removeprefix("tilescope/")
        before = source.read_text(encoding="utf-8")
        assert re.sub(r"(from )tilescope\.(?=(?:simulator|kernels|ui)\b)", r"\1", text) == before


def test_it_brings_one_name_and_all_files(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        assert archive.testzip() is None
        found = set(archive.namelist())
    tops = {name.partition("/")[0] for name in found}
    assert tops == {"tilescope", f"tilescope-{STATED['version']}.dist-info"}
    listed = subprocess.run(
        ["git", "ls-files", "assets", "kernels/cuda", "docs/*.md"],
        cwd=ROOT, check=False, capture_output=True, text=True,
    ).stdout.splitlines()  # fmt: skip
    assert {f"tilescope/{name}" for name in listed if name.count("docs/") <= 1} <= found


def test_it_asks_for_what_the_checkout_pins_within_bounds(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        place = f"tilescope-{STATED['version']}.dist-info/METADATA"
        said = Parser().parsestr(archive.read(place).decode())
    wanted = [Requirement(line) for line in said.get_all("Requires-Dist")]
    pins = [*STATED["dependencies"], *chain(*STATED["optional-dependencies"].values())]
    pinned = {(each.name, str(each.specifier)[2:]) for each in map(Requirement, pins)
              if len(each.specifier) == 1}  # fmt: skip
    for each in wanted:
        versions = [version for name, version in pinned if name == each.name]
        assert versions
        assert all(each.specifier.contains(version) for version in versions), str(each)
        signs = {part.operator for part in each.specifier}
        assert signs in ({">=", "<"}, {"=="}), str(each)
        assert signs != {"=="} or str(each.specifier).endswith(".*")
    torch = {str(each.specifier) for each in wanted if each.name == "torch"}
    assert torch == {"<3,>=2.13"}
    assert {"gpu-cuda12", "gpu-cuda13", "capture", "notebook"} <= set(
        said.get_all("Provides-Extra")
    )
    assert said["Requires-Python"] == STATED["requires-python"]


IMPORTED = """
import sys
import tilescope
trace = tilescope.simulate(sys.argv[1], engine="auto")
assert trace.output.shape[0] == trace.workload.heads
assert tilescope.show(trace, visit=3).svg.startswith("<?xml")
assert "<iframe" in trace._repr_html_()
from tilescope.ui.window.panel_specs import PANELS
assert all(spec.need for spec in PANELS)
from tilescope.ui.safety.program import KIND, started_again
import subprocess
words, folder = started_again()
said = subprocess.run([*words, "--version"], cwd=folder, capture_output=True, text=True)
print(KIND, said.stdout)
print({"simulator", "kernels", "ui"} & set(sys.modules))
"""


@pytest.mark.long
def test_installed_alone_it_exports_prices_masks_and_is_imported(
    wheel: Path, tmp_path: Path
) -> None:
    place = tmp_path / "fresh"
    venv.create(place)
    bin_ = place / ("Scripts" if os.name == "nt" else "bin")
    python = bin_ / Path(sys.executable).name
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet"]
    subprocess.run([*pip, "--no-deps", "--no-index", wheel], check=True)
    asked = "import sysconfig; print(sysconfig.get_path('purelib'))"
    own = subprocess.run([python, "-c", asked], check=True, capture_output=True, text=True).stdout
    # What it depends on is that of the suite.
    (Path(own.strip()) / "of-the-suite.pth").write_text(sysconfig.get_path("purelib"))

    def said(*words: object) -> str:
        done = subprocess.run(
            list(map(str, words)), cwd=tmp_path, check=False, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    demo = ROOT / DEMO
    assert said(bin_ / "tilescope", "--version").strip() == STATED["version"]
    said(bin_ / "tilescope", "export", demo, "-o", "x.png", "--size", "640x360")
    assert "# tilescope export" in read_note(tmp_path / "x.png").text
    assert "NSA, compressed" in said(bin_ / "tilescope", "masks", demo)
    assert "causal" in said(python, "-m", "tilescope", "verify", demo)
    assert said(python, "-c", IMPORTED, demo).split() == ["wheel", STATED["version"], "set()"]
