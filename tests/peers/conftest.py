"""The scripts of docs/capture, which are to be copied and know nothing of Tilescope."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def script() -> dict[str, Any]:
    """What the modules of docs/capture define that record."""
    folder = str(Path(__file__).parents[2] / "docs" / "capture")
    if folder not in sys.path:
        sys.path.append(folder)
    named = ("scores", "tensors", "probe", "recording", "layers")
    return {key: what for name in named for key, what in vars(import_module(name)).items()}
