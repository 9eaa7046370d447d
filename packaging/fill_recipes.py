"""`make recipes URL=… HOMEPAGE=…`: recipes for Flatpak, Homebrew and winget, for a release's files.

    python packaging/fill_recipes.py --url URL --home URL SHA256SUMS...

The sums are those that `make package` writes on each system. Nothing is fetched.
"""

from __future__ import annotations

import argparse
import re
import tomllib
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from string import Template

HERE = Path(__file__).resolve().parent
RECIPES = HERE / "recipes"
SYSTEMS = {
    "linux": "linux-x86_64.tar.xz",
    "macos": "macos-arm64.zip",
    "windows": "windows-x86_64.zip",
}
ENTRY = re.compile(r"^([0-9a-f]{64})  (\S+)$", re.M)


def main() -> None:
    """Write the recipes of all systems whose archive has a sum."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True, help="the folder on the web that has the archives")
    parser.add_argument("--home", required=True, help="the page of the project")
    parser.add_argument("--out", type=Path, default=HERE.parent / "build" / "recipes")
    parser.add_argument("sums", nargs="+", type=Path, help="files SHA256SUMS of one version")
    asked = parser.parse_args()
    version = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]["version"]
    found = [pair for path in asked.sums for pair in ENTRY.findall(path.read_text("ascii"))]
    values = values_of(version, found, asked.url, asked.home)
    for path in written(values, asked.out):
        print(path)


def values_of(version: str, sums: Iterable[tuple[str, str]], url: str, home: str) -> dict[str, str]:
    """Return what the recipes leave open, by the archives whose sums are known."""
    by_name = {name: digest for digest, name in sums}
    values = {"version": version, "url": url.rstrip("/"), "home": home, "date": f"{date.today()}"}
    for system, end in SYSTEMS.items():
        name = f"tilescope-{version}-{end}"
        if name in by_name:
            values |= {system: name, f"{system}_sha256": by_name[name]}
    return values


def written(values: dict[str, str], out: Path) -> list[Path]:
    """Write each recipe for which everything is known; return the files."""
    files = []
    for source in sorted(path for path in RECIPES.rglob("*") if path.is_file()):
        try:
            text = Template(source.read_text(encoding="utf-8")).substitute(values)
        except KeyError:
            continue  # its system's archive has no sum
        path = out / source.relative_to(RECIPES)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        files.append(path)
    return files


if __name__ == "__main__":
    main()
