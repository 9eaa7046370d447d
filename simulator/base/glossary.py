"""The words that captions and panels use, each with one line on what it is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache

from simulator.base.assets import ASSETS
from simulator.base.tables import Table, read_toml

GLOSSARY = ASSETS / "glossary.toml"


@dataclass(frozen=True, slots=True)
class Word:
    """One word of the glossary."""

    name: str  # as captions write it
    says: str  # what the word means, in one sentence
    also: tuple[str, ...]  # its other names


class _WordRow(Table):
    says: str
    also: list[str]


@cache
def glossary() -> tuple[Word, ...]:
    """Return all words in alphabetical order, whatever their capitals."""
    rows = {name: _WordRow.model_validate(row) for name, row in read_toml(GLOSSARY).items()}
    words = (Word(name, row.says, tuple(row.also)) for name, row in rows.items())
    return tuple(sorted(words, key=lambda word: (word.name.lower(), word.name)))


@dataclass(frozen=True, slots=True)
class Mention:
    """A place in a text where a word of the glossary stands."""

    start: int  # start, stop: its letters, without an ending such as a plural s
    stop: int
    word: Word


@lru_cache(maxsize=512)
def mentions(text: str) -> tuple[Mention, ...]:
    """Return where each word of the glossary stands first in a text, also as a plural.

    Words of one letter, which are symbols, are left out, and so are words inside a longer word of
    the glossary. Names keep their capitals; other words may begin with a capital.
    """
    first: dict[str, Mention] = {}
    for found in _pattern().finditer(text):
        word = _by_spelling()[_spelling(found[1])]
        first.setdefault(word.name, Mention(found.start(), found.end(), word))
    return tuple(first.values())


def word_called(name: str) -> Word:
    """Return a word by its name."""
    return next(word for word in glossary() if word.name == name)


def line_of(word: Word) -> str:
    """Return a word and its meaning, for its tooltip."""
    return f"{word.name}: {word.says}"


def _spelling(text: str) -> str:
    return text if text in _by_spelling() else text[:1].lower() + text[1:]


@cache
def _by_spelling() -> dict[str, Word]:
    return {word.name: word for word in glossary() if len(word.name) > 1}


@cache
def _pattern() -> re.Pattern[str]:
    names = sorted(_by_spelling(), key=len, reverse=True)
    spelled = (
        f"[{name[0]}{name[0].upper()}]{re.escape(name[1:])}" if name.islower() else re.escape(name)
        for name in names
    )
    return re.compile(rf"(?<![\w-])({'|'.join(spelled)})(?:e?s)?(?![\w-])")
