"""Recipes of other package managers are whole, and what a software centre reads is right."""

import hashlib
import re
import shutil
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
METAINFO = ROOT / "packaging" / "tilescope.metainfo.xml"
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
URL = "https://example.org/releases/download"


def sums(*ends: str) -> str:
    """Return lines as those of SHA256SUMS, of archives that end so."""
    names = [f"tilescope-{VERSION}-{end}" for end in ends]
    return "".join(f"{hashlib.sha256(name.encode()).hexdigest()}  {name}\n" for name in names)


def filled(folder: Path, *ends: str) -> dict[str, str]:
    """Return the recipes that are written for archives that end so, by their names."""
    (folder / "SHA256SUMS").write_text(sums(*ends))
    out = folder / "out"
    subprocess.run(
        [sys.executable, ROOT / "packaging" / "fill_recipes.py", "--url", URL, "--home",
         "https://example.org", "--out", out, folder / "SHA256SUMS"],
        check=True, capture_output=True,
    )  # fmt: skip
    return {path.name: path.read_text("utf-8") for path in out.rglob("*") if path.is_file()}


def test_recipes_of_all_systems_name_the_archives_and_their_sums(tmp_path: Path) -> None:
    ends = ("linux-x86_64.tar.xz", "macos-arm64.zip", "windows-x86_64.zip")
    found = filled(tmp_path, *ends, "linux-x86_64-cpu.tar.xz")
    assert len(found) == 5
    assert not [name for name, text in found.items() if "$" in text.replace("$schema", "")]
    read = {name: yaml.safe_load(text) for name, text in found.items() if name.endswith("ml")}
    flatpak = read["org.tilescope.Tilescope.yml"]
    archive = flatpak["modules"][0]["sources"][0]
    (windows,) = read["Tilescope.Tilescope.installer.yaml"]["Installers"]
    cask = found["tilescope.rb"]
    (mac,) = re.findall(r'sha256 "(\w+)"', cask)
    told = [
        (archive["url"], archive["sha256"]),
        (*re.findall(r'url "(\S+)"', cask), mac),
        (windows["InstallerUrl"], windows["InstallerSha256"]),
    ]
    assert told == [
        (f"{URL}/tilescope-{VERSION}-{end}",
         hashlib.sha256(f"tilescope-{VERSION}-{end}".encode()).hexdigest()) for end in ends
    ]  # fmt: skip
    winget = [each for name, each in read.items() if name.startswith("Tilescope.")]
    assert {each["ManifestType"] for each in winget} == {"version", "installer", "defaultLocale"}
    assert {each["PackageVersion"] for each in winget} == {VERSION}
    # The network stays closed.
    assert not [each for each in flatpak["finish-args"] if "network" in each]


def test_a_system_without_an_archive_has_no_recipe(tmp_path: Path) -> None:
    assert "tilescope.rb" not in filled(tmp_path, "linux-x86_64.tar.xz")


def test_a_software_centre_knows_the_newest_release() -> None:
    component = ET.parse(METAINFO).getroot()
    days = dict(
        re.findall(r"^## \[(\d[\d.]*)\] - (\S+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)
    )
    told = {each.attrib["version"]: each.attrib["date"] for each in component.iter("release")}
    assert told == days
    assert VERSION in told


LINTS = {
    "tilescope.metainfo.xml": ("appstreamcli", "validate", "--no-net"),
    "tilescope.desktop": ("desktop-file-validate",),
    "tilescope.rb": ("ruby", "-c"),
    "org.tilescope.Tilescope.yml": ("flatpak-builder", "--show-manifest"),
}
"""What other programs say of a file, where they are installed."""


@pytest.mark.parametrize("name", LINTS)
def test_its_own_program_finds_a_file_valid(name: str, tmp_path: Path) -> None:
    if shutil.which(LINTS[name][0]) is None:
        pytest.skip(f"{LINTS[name][0]} is not installed")
    path = ROOT / "packaging" / name
    if not path.exists():
        filled(tmp_path, "linux-x86_64.tar.xz", "macos-arm64.zip")
        path = tmp_path / "out" / name
        for beside in ("tilescope.metainfo.xml", "tilescope.desktop"):
            shutil.copy(ROOT / "packaging" / beside, tmp_path)
    done = subprocess.run(
        [*LINTS[name], path], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
