"""The declarations of studies for lessons: choices of their panels, numbers of their captions.

A study's module ``choices`` declares the choices, its module ``captions`` the numbers, when they
are imported; `load` imports these modules of all studies.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pkgutil import walk_packages
from typing import Literal

from simulator.base.choices import Choice

CHOICES: dict[str, tuple[Choice, ...]] = {}
"""The choices of studies by the title of their panel; a lesson can make choices with a key."""


def declared(title: str, *choices: Choice) -> tuple[Choice, ...]:
    """Return the choices of a panel, and let lessons make them."""
    CHOICES[title] = choices
    return choices


def load(part: Literal["choices", "captions"]) -> None:
    """Import the modules of all studies that declare choices, or numbers."""
    assert __package__
    for module in walk_packages(sys.modules[__package__].__path__, f"{__package__}."):
        if module.name.endswith(part):
            import_module(module.name)
