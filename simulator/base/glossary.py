"""The words that captions and panels use, each with one line on what it is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from simulator.base.assets import ASSETS
from simulator.base.tables import Table, read_toml

GLOSSARY = ASSETS / "glossary.toml"


@dataclass(frozen=True, slots=True)
class Word:
    """One word of the glossary."""

    name: str  # as captions write it
    says: str  # what it is, in one sentence
    also: tuple[str, ...]  # what else it is called


class _Row(Table):
    says: str
    also: list[str]


@cache
def glossary() -> tuple[Word, ...]:
    """Return all words by the alphabet, whatever their capitals."""
    rows = {name: _Row.model_validate(row) for name, row in read_toml(GLOSSARY).items()}
    words = (Word(name, row.says, tuple(row.also)) for name, row in rows.items())
    return tuple(sorted(words, key=lambda word: (word.name.lower(), word.name)))
