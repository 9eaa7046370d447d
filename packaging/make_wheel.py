"""`make wheel`: from a checkout to dist/tilescope-*.whl, which `pip install` and `pipx run` take.

Everything lies inside one package, ``tilescope``: an installed top-level ``kernels`` would
overwrite another project's. What the modules import of one another is written anew with
``tilescope.`` before it; nothing else in a line changes, and no line moves. Needs nothing but
Python. The wheel of one commit is the same to the byte wherever it is built.
"""

from __future__ import annotations

import argparse
import ast
import base64
import hashlib
import re
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from contents import DATA

ROOT = Path(__file__).resolve().parent.parent
NAME = "tilescope"
INSIDE = ("simulator", "kernels", "ui")
"""Packages of the checkout that lie inside the package of the wheel."""
ALSO = [("docs/capture/*.py", "docs/capture")]  # the command `capture`, for its extra
NOT_HERE = ("test", "browser", "mutants", "gpu-double", "package", "peers", "gpu-peers", "site")
"""Extras that need files of the checkout."""
MOMENT = (1980, 1, 1, 0, 0, 0)
"""Of every file in the archive: what the zip format begins with."""


def main() -> None:
    """Build the wheel and say where it lies."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "dist", help="folder")
    print(build(parser.parse_args().output))


def build(folder: Path) -> Path:
    """Write the wheel to a folder, and return its file."""
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    version = stated["project"]["version"]
    about = f"{NAME}-{version}.dist-info"
    contents = {
        **modules(),
        **data(),
        f"{about}/METADATA": metadata(stated).encode(),
        f"{about}/WHEEL": f"Wheel-Version: 1.0\nGenerator: {NAME}\n"
        "Root-Is-Purelib: true\nTag: py3-none-any\n".encode(),
        f"{about}/entry_points.txt": f"[console_scripts]\n{NAME} = {NAME}.__main__:main\n".encode(),
        f"{about}/top_level.txt": f"{NAME}\n".encode(),
        f"{about}/licenses/LICENSE": (ROOT / "LICENSE").read_bytes(),
    }
    record = f"{about}/RECORD"
    lines = [f"{name},sha256={_digest(content)},{len(content)}" for name, content in
             sorted(contents.items())]  # fmt: skip
    contents[record] = "\n".join([*lines, f"{record},,", ""]).encode()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{NAME}-{version}-py3-none-any.whl"
    part = path.with_suffix(".part")
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            info = zipfile.ZipInfo(name, MOMENT)
            info.external_attr = 0o644 << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, content)
    return part.replace(path)


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


# --- modules and data ------------------------------------------------------------------------


def modules() -> dict[str, bytes]:
    """Return every module by its place in the wheel."""
    found = {}
    for package in (NAME, *INSIDE):
        for path in sorted((ROOT / package).rglob("*.py")):
            place = path.relative_to(ROOT).as_posix()
            text = path.read_text(encoding="utf-8")
            inside = place if package == NAME else f"{NAME}/{place}"
            found[inside] = rewritten(text, place).encode()
    return found


def rewritten(text: str, place: str) -> str:
    """Return the text of a module that imports the packages from inside the wheel's.

    Raises SystemExit: an import binds the name of one of them, which the wheel does not have.
    """
    lines = text.encode().splitlines(keepends=True)  # places in the tree count bytes
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] in INSIDE:
                    raise SystemExit(f"{place}:{node.lineno}: write from ... import, not import")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in INSIDE:
            n, at = node.lineno - 1, node.col_offset
            begin = re.compile(rb"from[ \t]+").match(lines[n], at)
            if begin is None:
                raise SystemExit(f"{place}:{node.lineno}: the module is not named in that line")
            lines[n] = lines[n][: begin.end()] + f"{NAME}.".encode() + lines[n][begin.end() :]
    return b"".join(lines).decode()


def data() -> dict[str, bytes]:
    """Return what lies beside the modules, by its place in the wheel."""
    return {
        f"{NAME}/{place}": path.read_bytes()
        for pattern, folder in [*DATA, *ALSO]
        if not pattern.startswith("simulator/")  # modules, which are there as their text
        for place, path in _files(pattern, folder)
    }


def _files(pattern: str, folder: str) -> Iterator[tuple[str, Path]]:
    if (ROOT / pattern).is_dir():
        for path in sorted((ROOT / pattern).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield f"{folder}/{path.relative_to(ROOT / pattern).as_posix()}", path
        return
    for path in sorted(ROOT.glob(pattern)):
        yield f"{folder}/{path.name}", path


# --- what pip reads --------------------------------------------------------------------------


def metadata(stated: dict[str, Any]) -> str:
    """Return the file METADATA that follows from pyproject.toml."""
    project, bounds = stated["project"], stated["tool"][NAME]["bounds"]
    head = {
        "Metadata-Version": "2.4",
        "Name": project["name"],
        "Version": project["version"],
        "Summary": project["description"],
        "Author": ", ".join(author["name"] for author in project["authors"]),
        "License-Expression": project["license"],
        "License-File": "LICENSE",
        "Requires-Python": project["requires-python"],
        "Description-Content-Type": "text/markdown",
    }
    lines = [f"{name}: {value}" for name, value in head.items()]
    lines += [f"Requires-Dist: {each}" for each in required(project["dependencies"], bounds)]
    for extra, wanted in project["optional-dependencies"].items():
        if extra in NOT_HERE:
            continue
        lines.append(f"Provides-Extra: {extra}")
        for each in required(wanted, bounds):
            name, _, marker = each.partition("; ")
            condition = f"({marker}) and " if marker else ""
            lines.append(f"Requires-Dist: {name}; {condition}extra == '{extra}'")
    return "\n".join(lines) + "\n\n" + (ROOT / "docs" / "python.md").read_text(encoding="utf-8")


def required(pinned: list[str], bounds: dict[str, str]) -> list[str]:
    """Return requirements with bounds in the place of pins, each once.

    bounds: those of packages that the rule does not suit, by name.
    """
    return list(dict.fromkeys(_bounded(each, bounds) for each in pinned))


def _bounded(pinned: str, bounds: dict[str, str]) -> str:
    """Return a requirement from the minor version that is pinned to the next major one.

    Of a version 0.x the next minor one may differ as much.
    """
    requirement, _, marker = (part.strip() for part in pinned.partition(";"))
    name, version = requirement.split("==")
    if name in bounds:
        stated = bounds[name]
        return name + stated if ";" in stated or not marker else f"{name}{stated}; {marker}"
    major, minor = (int(part) for part in f"{version}.0".split(".")[:2])
    above = f"0.{minor + 1}" if major == 0 else f"{major + 1}"
    return f"{name}>={major}.{minor},<{above}" + (f"; {marker}" if marker else "")


if __name__ == "__main__":
    main()
