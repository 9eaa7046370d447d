"""Where the data files are, in the checkout and in the frozen bundle."""

from __future__ import annotations

from pathlib import Path

ASSETS = Path(__file__).resolve().parents[2] / "assets"
CAPTURES = ASSETS / "captures"
SCENARIOS = ASSETS / "scenarios"
LESSONS = ASSETS / "lessons"
PAGES = ASSETS.parent / "docs"
"""Pages that the window shows, too."""
DEMO = SCENARIOS / "flash2.toml"
"""The scenario that a window shows by default."""
