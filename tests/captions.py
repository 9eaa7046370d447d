"""Readability of lessons: ``python -m tests.captions`` lists what a reader may stumble over.

Candidates, not mistakes: a pronoun without a noun before it, a word that neither the glossary nor
tests/plain_words.txt has, and the Flesch-Kincaid grade of each lesson.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pyphen

from simulator.base.glossary import glossary, mentions
from simulator.lesson.course import course, parts
from simulator.lesson.expressions import replaced
from simulator.lesson.reader import load_lesson
from simulator.lesson.steps import Lesson
from ui.look.layouts import LAYOUT_PANELS

PLAIN = Path(__file__).parent / "plain_words.txt"
"""Words that somebody has looked at and found plain, or known to who studies linear algebra."""
SYLLABLES = pyphen.Pyphen(lang="en_US")
_NUMBER = "0"
_SOURCE = re.compile(r"\s*\([A-Z][^()]*?\d{4}\)")
_MARKED = re.compile(r"\$[^$]*\$|`[^`]*`|“[^”]*”")
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_END = re.compile(r"(?<=[.?!])\s+|\n\n")
_PRONOUN = re.compile(r"\b(it|its|they|them|their|this|that|these|those)\b", re.IGNORECASE)
_VERB = (
    r"(?:is|are|was|were|has|have|had|can|may|must|do|does|will|would|could|[a-z]+s"
    r"|alone|too|and|or|but|at|in|of|for|by|from|with|to|on|itself)\b"
)
_BARE = re.compile(rf"\W*(?:[,.;:?!]|$|\s+{_VERB})")
_NOUN = re.compile(
    r"\b(?:an?|the|each|every|no|one|two|both|all|its|their|this|that|these|those|0)\s+[a-zA-Z]|\b0\b"
    r"|\b[a-z]{3,}s\b",
    re.IGNORECASE,
)


class Said(NamedTuple):
    """A text of a lesson."""

    step: int  # from 1
    kind: str  # caption, question, answer or notes
    text: str  # without sources; a number, a formula, code or a quoted word is a zero


def texts_of(lesson: Lesson) -> Iterator[Said]:
    """Yield what a lesson says, step by step."""
    for n, step in enumerate(lesson.steps, start=1):
        said = {
            "caption": step.caption, "question": step.said.question,
            "answer": step.said.answer, "notes": step.said.notes,
        }  # fmt: skip
        for kind, text in said.items():
            if text:
                yield Said(n, kind, plain(text))


def plain(text: str) -> str:
    """Return a text without sources; a number, a formula, code or a quoted word is a zero."""
    text = re.sub(r"“\s*0\s*”", _NUMBER, replaced(text, lambda _: _NUMBER))
    return _MARKED.sub(_NUMBER, _SOURCE.sub("", text))


def sentences(text: str) -> list[str]:
    """Return the sentences of a text."""
    return [each.strip() for each in _END.split(text) if _WORD.search(each)]


def syllables(word: str) -> int:
    """Return the syllables of a word; of a number or a name with digits one."""
    return 1 if re.search(r"\d", word) else 1 + len(SYLLABLES.positions(word.lower()))


def grade(text: str) -> float:
    """Return the Flesch-Kincaid grade of a text: years at school that it takes to read it."""
    words = _WORD.findall(text)
    spoken = sum(map(syllables, words))
    return 0.39 * len(words) / len(sentences(text)) + 11.8 * spoken / len(words) - 15.59


def grade_of(lesson: Lesson) -> float:
    """Return the grade of all captions of a lesson, with questions and answers."""
    return grade("\n\n".join(said.text for said in texts_of(lesson) if said.kind != "notes"))


def pronouns(text: str) -> Iterator[str]:
    """Yield the sentences with a pronoun that has no noun before it, nor in the sentence before."""
    before = ""
    for sentence in sentences(text):
        for found in _PRONOUN.finditer(sentence):
            points = found[0].lower() in ("this", "that", "these", "those")
            if points and not _BARE.match(sentence[found.end() :]):
                continue  # it has a noun behind it
            if found[0].lower() == "that" and found.start():
                continue  # mostly a conjunction
            if not _NOUN.search(before + sentence[: found.start()]):
                yield f"{found[0]}: {sentence}"
        before = sentence + " "


@cache
def known_words() -> frozenset[str]:
    """Return the words of the glossary and the plain ones, in small letters."""
    own = (text for word in glossary() for text in (word.name, *word.also))
    written = PLAIN.read_text(encoding="utf-8") if PLAIN.exists() else ""
    return frozenset(word.lower() for text in (*own, written) for word in _WORD.findall(text))


def is_known(word: str) -> bool:
    """Whether a word is known, maybe in another form of it; numbers and names are."""
    word = word.lower().removesuffix("'s").removesuffix("’s")
    if len(word) < 3 or re.search(r"\d", word):
        return True
    return any(form in known_words() for form in _forms(word))


def _forms(word: str) -> Iterator[str]:
    yield word
    for end, others in (
        ("s", ("",)), ("es", ("",)), ("ies", ("y",)), ("ed", ("", "e")), ("d", ("",)),
        ("ied", ("y",)), ("ing", ("", "e")), ("ly", ("", "le")), ("er", ("", "e")),
        ("est", ("", "e")), ("y", ("e",)),
    ):  # fmt: skip
        if word.endswith(end):
            stem = word.removesuffix(end)
            yield from (stem + other for other in others)
            if stem[-2:-1] == stem[-1:]:  # bigger, getting
                yield stem[:-1]


def unknown(text: str) -> list[str]:
    """Return the words of a text that are known from nowhere, names with capitals apart."""
    spans = [(each.start, each.stop) for each in mentions(text)]
    found = []
    for word in _WORD.finditer(text):
        begins = word.start() == 0 or text[: word.start()].rstrip()[-1:] in "\n.?!:"
        name = word[0] != word[0].lower() and not begins
        inside = any(start <= word.start() < stop for start, stop in spans)
        if not (name or inside or is_known(word[0])):
            found.append(word[0])
    return found


def main() -> int:
    """Print the candidates of each lesson."""
    for title in (title for part in parts() for title in part.lessons):
        lesson = load_lesson(title.path, LAYOUT_PANELS)
        mark = f"part {title.part}, " if title in course() else ""
        print(f"\n{title.path.stem}: {mark}grade {grade_of(lesson):.1f}")
        for said in texts_of(lesson):
            for line in pronouns(said.text):
                print(f"  {said.step} {said.kind}, pronoun {line}")
            if words := unknown(said.text):
                print(f"  {said.step} {said.kind}, words: {', '.join(words)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
