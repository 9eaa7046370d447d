"""The scripts of docs/capture, which are to be copied and know nothing of Tilescope."""

import shutil
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "capture"
MODULES = ("follow", "scores", "tensors", "probe", "recording", "layers")


def defined_in(folder: Path) -> dict[str, Any]:
    """Return what the modules of a folder define that record."""
    others = {name: sys.modules.pop(name) for name in MODULES if name in sys.modules}
    sys.path.insert(0, str(folder))
    try:
        modules = {name: import_module(name) for name in MODULES}
    finally:
        sys.path.remove(str(folder))
        for name in MODULES:
            sys.modules.pop(name, None)
        sys.modules.update(others)
    return {key: what for module in modules.values() for key, what in vars(module).items()}


@pytest.fixture(scope="session")
def script() -> dict[str, Any]:
    """What the modules of docs/capture define that record."""
    return defined_in(FOLDER)


@pytest.fixture
def planted(tmp_path: Path) -> Callable[[str, str, str], dict[str, Any]]:
    """Return a function that plants a fault in a line of a copy of docs/capture."""

    def plant(module: str, line: str, fault: str) -> dict[str, Any]:
        copy = tmp_path / "capture"
        shutil.copytree(FOLDER, copy, ignore=shutil.ignore_patterns("__pycache__"))
        text = (copy / f"{module}.py").read_text("utf-8")
        assert text.count(line) == 1, line
        (copy / f"{module}.py").write_text(text.replace(line, fault), "utf-8")
        return defined_in(copy)

    return plant
