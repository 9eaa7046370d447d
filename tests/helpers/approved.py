"""Texts that somebody has read: `make approve` writes them anew, and git shows what changed."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e−\d+)?")


def check(text: str, path: Path) -> None:
    """Fail where a text differs from the approved one by more than rounding.

    Another machine sums in another order: last digits differ, and errors of rounding wholly.
    """
    if os.environ.get("APPROVE"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    approved = path.read_text(encoding="utf-8") if path.exists() else ""
    if NUMBER.sub("#", text) == NUMBER.sub("#", approved):
        pairs = zip(NUMBER.findall(text), NUMBER.findall(approved), strict=True)
        if all(same(found, told) for found, told in pairs):
            return
    assert text == approved, f"look at the difference, then: make approve ({path.name})"


def same(found: str, told: str) -> bool:
    if "e" in found and "e" in told:
        return True
    return found == told or ("." in told and float(found) == pytest.approx(float(told), 0.01))
