"""Entries that answer a query: by its letters if any entry has them, else by likeness."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, Protocol, TypeVar

from rapidfuzz import fuzz, process


class Findable(Protocol):
    """An entry that can be found by its title, by its other names, or by its purpose."""

    @property
    def title(self) -> str: ...
    @property
    def also(self) -> tuple[str, ...]: ...
    @property
    def does(self) -> str: ...


Entry = TypeVar("Entry", bound=Findable)

TITLE, ALSO, DOES = 3.0, 2.0, 1.0
"""Weights of words found in a title, in another name, in the purpose of an entry."""
LEAST = 75
"""Least per cent of a word's letters, in order, in a likeness."""
NEAREST = 3
"""Entries shown if nothing is found."""
_WHOLE, _START, _WORD, _INSIDE, _LIKE = 1.4, 0.9, 0.8, 0.6, 0.5
"""Worth of a query as a whole text, at its start, at a word's start, inside; of a likeness.

Another name that is the query comes before a title that begins with it.
"""
_APART = 0.8
"""Worth of words that are in several texts, or not beside each other."""
_LEAST_LIKE = 3
"""Least letters of a word for which similar words are looked for."""
_FOLDED = str.maketrans("-_\u2009\u202f\u00a0’", "     '")

Span = tuple[int, int]
"""Begin and end in a text, in letters."""


@dataclass(frozen=True, slots=True)
class Found(Generic[Entry]):
    """Entries that a query has found."""

    entries: tuple[Entry, ...]  # the best first
    nearest: bool = False  # whether they are only the nearest to a query that finds nothing


@lru_cache(maxsize=8192)
def folded(text: str) -> str:
    """Return a text, as long as before, without capitals and with spaces for hyphens."""
    return text.lower().translate(_FOLDED)


def find(query: str, entries: tuple[Entry, ...]) -> Found[Entry]:
    """Return the entries that a query finds; all of them for an empty one."""
    words = folded(query).split()
    if not words:
        return Found(entries)
    texts = _texts(entries)
    for fuzzy in (False, True):
        scores = _scores(words, texts, fuzzy)
        if scores:
            best = sorted(scores, key=lambda number: (-scores[number], number))
            return Found(tuple(entries[number] for number in best))
    titles = [folded(entry.title) for entry in entries]
    near = process.extract(" ".join(words), titles, scorer=fuzz.WRatio, limit=NEAREST)
    return Found(tuple(entries[number] for _, _, number in near), nearest=True)


@dataclass(frozen=True, slots=True)
class _Texts:
    """All texts of all entries, without capitals, each with its entry's number and weight."""

    texts: tuple[str, ...]
    owners: tuple[int, ...]
    weights: tuple[float, ...]


@lru_cache(maxsize=2)
def _texts(entries: tuple[Any, ...]) -> _Texts:
    rows = [
        (folded(text), number, weight)
        for number, entry in enumerate(entries)
        for weight, said in ((TITLE, [entry.title]), (ALSO, entry.also), (DOES, [entry.does]))
        for text in said
    ]
    texts, owners, weights = zip(*rows, strict=True)
    return _Texts(texts, owners, weights)


def _scores(words: Sequence[str], texts: _Texts, fuzzy: bool) -> dict[int, float]:
    """Return the worth of each entry that has the words together, or all of them somewhere."""
    whole = _best(" ".join(words), texts, fuzzy)
    if len(words) == 1:
        return whole
    each = [_best(word, texts, fuzzy) for word in words]
    for number in set(each[0]).intersection(*each[1:]):
        mean = sum(best[number] for best in each) / len(each)
        whole[number] = max(whole.get(number, 0.0), _APART * mean)
    return whole


def _best(asked: str, texts: _Texts, fuzzy: bool) -> dict[int, float]:
    """Return the worth of each entry's best text, by the number of the entry."""
    numbers = [number for number, text in enumerate(texts.texts) if asked in text]
    if fuzzy and len(asked) >= _LEAST_LIKE:
        like = process.extract(
            asked, texts.texts, scorer=fuzz.partial_ratio, score_cutoff=LEAST, limit=None
        )
        numbers = sorted({*numbers, *(number for _, _, number in like)})
    out: dict[int, float] = {}
    for number in numbers:
        worth = _worth(asked, texts.texts[number], fuzzy) * texts.weights[number]
        if worth > out.get(texts.owners[number], 0.0):
            out[texts.owners[number]] = worth
    return out


def _worth(asked: str, text: str, fuzzy: bool) -> float:
    span = _place(asked, text, fuzzy)
    if span is None:
        return 0.0
    begin, end = span
    share = 0.05 * len(asked) / len(text)  # of two, the shorter text has fewer other words
    if text[begin:end] != asked:
        return _LIKE * (fuzz.ratio(asked, text[begin:end]) / 100) ** 2 + share
    if len(text) == len(asked):
        return _WHOLE + share
    if begin == 0:
        return _START + share
    return (_INSIDE if text[begin - 1].isalnum() else _WORD) + share


def _place(asked: str, text: str, fuzzy: bool) -> Span | None:
    """Return where a text has the asked words, if possible at the beginning of a word."""
    at = text.find(asked)
    while at > 0 and text[at - 1].isalnum():
        later = text.find(asked, at + 1)
        if later < 0:
            break
        at = later
    if at >= 0 and (len(asked) > 1 or at == 0 or not text[at - 1].isalnum()):
        return at, at + len(asked)
    if not fuzzy or len(asked) < _LEAST_LIKE or len(text) < len(asked) - 1:
        return None
    like = fuzz.partial_ratio_alignment(asked, text, score_cutoff=LEAST)
    if like is None or not like.score:
        return None
    begin, end = like.dest_start, like.dest_end
    ends = (end, min(end + 1, len(text)))  # with a letter missing, the text has one more
    return begin, max(ends, key=lambda last: fuzz.ratio(asked, text[begin:last]))


def lit(query: str, text: str) -> list[Span]:
    """Return the parts of a text that a query has found, from left to right."""
    asked, plain = folded(query).split(), folded(text)
    if not asked:
        return []
    whole = _place(" ".join(asked), plain, fuzzy=False)
    if whole is not None:
        return [whole]
    places = [_place(word, plain, fuzzy=False) or _place(word, plain, fuzzy=True) for word in asked]
    return list(_joined(sorted(place for place in places if place is not None)))


def _joined(spans: Iterable[Span]) -> Iterable[Span]:
    """Yield spans from left to right; spans that meet become one."""
    last: Span | None = None
    for begin, end in spans:
        if last is not None and begin <= last[1]:
            last = last[0], max(last[1], end)
            continue
        if last is not None:
            yield last
        last = begin, end
    if last is not None:
        yield last
