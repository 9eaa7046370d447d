"""Who may import whom, room by room, as ARCHITECTURE.md says.

Imports inside functions count, and what only types need: who gets something of a later room handed
in says in a protocol of its own what it asks of it.
"""

import ast
from itertools import pairwise
from pathlib import Path

import pytest
from pytest_archon import archrule

ROOT = Path(__file__).resolve().parent.parent
ORDER = {
    "simulator": ("base", "language", "problem", "program", "engines", "timing", "run", "study",
                  "code", "lesson"),
    "kernels": ("errors", "build", "cuda", "devices", "checks", "check"),
    "ui": ("look", "safety", "session", "widgets", "kit", "board", "plots", "panels", "talk",
           "export", "window", "app"),
}  # fmt: skip
"""The rooms of each package; none imports one that comes after it."""
STEPS = [(package, a, b) for package, rooms in ORDER.items() for a, b in pairwise(rooms)]
FOR_TYPES = ("ui.talk.presenter",)
"""Modules that may still name a class of a later room in a signature: none is to be added."""


def parts_of(*names: str) -> list[str]:
    """Return the patterns of modules, with all that is inside where they are packages."""
    return [pattern for name in names for pattern in (name, f"{name}.*")]


@pytest.mark.sweep(keep=6)
@pytest.mark.parametrize(("package", "before", "after"), STEPS)
def test_no_room_imports_one_that_comes_after_it(package: str, before: str, after: str) -> None:
    rooms = ORDER[package]
    upto = [f"{package}.{room}" for room in rooms[: rooms.index(after)]]
    (
        archrule(f"{before} before {after}")
        .match(*parts_of(*upto))
        .should_not_import(*parts_of(f"{package}.{after}"))
        .check(package, skip_type_checking=True, only_direct_imports=True)
    )
    (
        archrule(f"{before} before {after}, in types")
        .match(*parts_of(*upto))
        .exclude(*FOR_TYPES)
        .should_not_import(*parts_of(f"{package}.{after}"))
        .check(package, only_direct_imports=True)
    )


@pytest.mark.parametrize("package", ORDER)
def test_every_room_has_its_place_in_the_order(package: str) -> None:
    found = {
        path.stem
        for path in (ROOT / package).iterdir()
        if (path / "__init__.py").is_file() or path.suffix == ".py"
    }
    assert found - {"__init__", "__main__"} == set(ORDER[package])


PANELS = sorted(path.parent.name for path in (ROOT / "ui/panels").glob("*/__init__.py"))


@pytest.mark.parametrize("panel", PANELS)
def test_panels_do_not_import_each_other(panel: str) -> None:
    others = [f"ui.panels.{each}" for each in PANELS if each != panel]
    (
        archrule("a panel knows no other")
        .match(*parts_of(f"ui.panels.{panel}"))
        .should_not_import(*parts_of(*others))
        .check("ui", only_direct_imports=True)
    )


def test_the_panels_were_found() -> None:
    assert len(PANELS) > 10


@pytest.mark.parametrize("package", ORDER)
def test_every_room_says_what_belongs_there(package: str) -> None:
    rooms = {path.parent for path in (ROOT / package).rglob("*.py")}
    silent = {
        room.relative_to(ROOT).as_posix()
        for room in rooms
        if not (room / "__init__.py").is_file()
        or not ast.get_docstring(ast.parse((room / "__init__.py").read_text(encoding="utf-8")))
    }
    assert len(rooms) > 3
    assert not silent
