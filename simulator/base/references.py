"""The papers that lessons and panels cite, by the words of the citation."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from pydantic import Field

from simulator.base.assets import ASSETS
from simulator.base.tables import Table, read_toml

REFERENCES = ASSETS / "references.toml"


@dataclass(frozen=True, slots=True)
class Reference:
    """One paper."""

    name: str  # as it is cited: ``Dao et al. 2022``
    authors: str
    title: str
    venue: str  # where it appeared, and when
    link: str
    also: tuple[str, ...] = ()  # how else it is cited

    @property
    def line(self) -> str:
        """Authors, title and venue in one line."""
        return f"{self.authors.removesuffix('.')}. {self.title}. {self.venue}."


class _PaperRow(Table):
    authors: str
    title: str
    venue: str
    link: str
    also: list[str] = Field(default_factory=list)


@cache
def references() -> tuple[Reference, ...]:
    """Return all papers in alphabetical order."""
    rows = {name: _PaperRow.model_validate(row) for name, row in read_toml(REFERENCES).items()}
    found = (
        Reference(name, row.authors, row.title, row.venue, row.link, tuple(row.also))
        for name, row in rows.items()
    )
    return tuple(sorted(found, key=lambda paper: paper.name.lower()))


@dataclass(frozen=True, slots=True)
class Citation:
    """A place in a text where a paper is cited."""

    start: int  # start, stop: its letters
    stop: int
    paper: Reference


def citations(text: str) -> tuple[Citation, ...]:
    """Return where each paper is cited first in a text."""
    first: dict[str, Citation] = {}
    for found in _pattern().finditer(text):
        paper = _by_name()[found[0]]
        first.setdefault(paper.name, Citation(found.start(), found.end(), paper))
    return tuple(first.values())


def reference_called(name: str) -> Reference | None:
    """Return a paper by its name; None if no paper has this name."""
    return _by_name().get(name)


@cache
def _by_name() -> dict[str, Reference]:
    return {name: paper for paper in references() for name in (paper.name, *paper.also)}


@cache
def _pattern() -> re.Pattern[str]:
    names = "|".join(re.escape(name) for name in _by_name())
    return re.compile(rf"(?<![\w-])(?:{names})(?!\w)")
