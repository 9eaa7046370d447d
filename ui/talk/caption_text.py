"""The Markdown of a lesson's texts as words and formulas.

Paragraphs, lists, bold, emphasis, code and formulas between dollar signs are understood; everything
else stays as it was typed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from simulator.base.limits import FORMULA_LETTERS, FORMULA_STEPS
from simulator.lesson.places import NumberPlace
from ui.look.flow import Face, FlowWord
from ui.look.formula import formula, steps, typeset

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_RULES = ("list", "emphasis", "backticks", "escape", "newline")
_BULLET = "•"
_ANY_SIZE = 48.0
_BREAKS = " \t\n"


_OPEN, _CLOSE, _FIRST = "\ue000", "\ue001", 0xE100
"""Marks that are no letters: around a number that has an origin, and before it for its index."""
_NUMBER = re.compile(f"({_OPEN}.[^{_CLOSE}]*{_CLOSE})")
_MARKS = re.compile(f"{_OPEN}.|{_CLOSE}")


def with_numbers(text: str, places: Sequence[NumberPlace], part: str) -> str:
    """Return a text in which the numbers of a part are marked for `blocks`."""
    for n, place in reversed(list(enumerate(places))):
        stop = place.start + len(place.text)
        if place.part == part and text[place.start : stop] == place.text:
            marked = f"{_OPEN}{chr(_FIRST + n)}{place.text}{_CLOSE}"
            text = text[: place.start] + marked + text[stop:]
    return text


class _Room:
    """Steps that the typesetter may still take for the formulas of one text."""

    def __init__(self) -> None:
        self._left = FORMULA_STEPS

    def takes(self, latex: str) -> bool:
        """Return whether a formula can be typeset: it may have a mistake or be too long."""
        if len(latex) > FORMULA_LETTERS or (needed := _steps(latex)) > self._left:
            return False
        self._left -= needed
        return _can_be_typeset(latex)


@dataclass(frozen=True, slots=True)
class TextBlock:
    """A paragraph, or an item of a list."""

    words: tuple[FlowWord, ...]  # its text
    level: int = 0  # 0 for a paragraph, else how deep the list is
    # the mark before the item; "" for a paragraph, and for an item's further paragraphs
    mark: str = ""


@lru_cache(maxsize=32)
def blocks(markdown: str) -> tuple[TextBlock, ...]:
    """Return the paragraphs and list items of a text."""
    out: list[TextBlock] = []
    numbers: list[int] = []  # the next item's number in each open list, 0 for bullets
    mark, room = "", _Room()
    for token in _parser().parse(markdown):
        match token.type:
            case "bullet_list_open":
                numbers.append(0)
            case "ordered_list_open":
                numbers.append(int(token.attrs.get("start", 1)))
            case "bullet_list_close" | "ordered_list_close":
                numbers.pop()
            case "list_item_open":
                mark = f"{numbers[-1]}." if numbers[-1] else _BULLET
                numbers[-1] += 1 if numbers[-1] else 0
            case "inline":
                words = _words(token.children or (), room)
                out.append(TextBlock(words, len(numbers), mark))
                mark = ""
    return tuple(out)


def words_of(markdown: str, *, bold: bool = False) -> tuple[FlowWord, ...]:
    """Return all words of a text in one list; bold if they are not code or formulas."""
    words = [word for block in blocks(markdown) for word in block.words]
    if bold:
        loud = (Face.TEXT, Face.ITALIC)
        words = [replace(w, face=Face.BOLD) if w.face in loud else w for w in words]
    return tuple(words)


def spoken(*parts: str) -> str:
    """Return texts for screen readers, a line each."""
    return "\n".join(plain_text(part) for part in parts if part)


def plain_text(markdown: str) -> str:
    """Return a text for screen readers: without marks, with formulas as LaTeX."""
    out = ""
    for word in words_of(markdown):
        out += word.text if word.glued or not out else f" {word.text}"
    return out


def typeset_text(*texts: str) -> None:
    """Typeset the formulas of some texts; in another thread, so that no window waits."""
    for text in texts:
        typeset(word.text for word in words_of(text) if word.face is Face.MATHS)


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # only a lesson needs it
    from mdit_py_plugins.dollarmath import dollarmath_plugin

    parser = MarkdownIt("zero").enable(_RULES)
    parser.use(dollarmath_plugin, allow_labels=False, allow_space=False, allow_digits=False)
    return parser.disable("math_block")


def _words(tokens: Sequence[Token], room: _Room) -> tuple[FlowWord, ...]:
    out: list[FlowWord] = []
    bold = italic = 0
    glued = False  # whether the next word follows the last one without a space

    def add(text: str, face: Face) -> None:
        nonlocal glued
        found = _NUMBER.split(text) if face is not Face.MATHS else [text]
        for piece in filter(None, found):
            mark = piece.find(_OPEN)
            number = ord(piece[mark + 1]) - _FIRST if 0 <= mark < len(piece) - 1 else -1
            out.append(FlowWord(_MARKS.sub("", piece), face, glued and bool(out), number=number))
            glued = True

    for token in tokens:
        match token.type:
            case "strong_open" | "strong_close":
                bold += token.nesting
            case "em_open" | "em_close":
                italic += token.nesting
            case "math_inline":
                latex = token.content.strip()
                if room.takes(_MARKS.sub("", latex)):
                    add(latex, Face.MATHS)
                else:
                    add(f"${token.content}$", Face.CODE)
            case "code_inline":
                for n, part in enumerate(_parts(token.content)):
                    glued = glued and n == 0
                    add(part, Face.CODE)
            case "softbreak" | "hardbreak":
                glued = False
            case _:
                face = Face.BOLD if bold else Face.ITALIC if italic else Face.TEXT
                text = token.content
                for n, part in enumerate(_parts(text)):
                    glued = glued and n == 0 and text[0] not in _BREAKS
                    add(part, face)
                if text and text[-1] in _BREAKS:
                    glued = False
    return tuple(out)


def _parts(text: str) -> list[str]:
    """Return the words of a text; no-break and thin spaces, as in 131 072, separate no words."""
    return [part for part in re.split(f"[{_BREAKS}]", text) if part]


def _steps(latex: str) -> int:
    """Return how many steps a formula takes; more than the limit if it is no formula."""
    try:
        return steps(latex)
    except Exception:  # the errors of the typesetter have no common class
        return FORMULA_STEPS + 1


@lru_cache(maxsize=256)
def _can_be_typeset(latex: str) -> bool:
    try:
        set_in: Any = formula(latex, _ANY_SIZE)
    except Exception:  # the errors of the typesetter have no common class
        return False
    return bool(set_in.width > 0)
