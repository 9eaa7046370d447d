"""Finds comments, keywords and names of tensors in lines of code.

A colour keeps its meaning: a tensor's name has the tensor's colour. Keywords are bold, comments are
pale.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from pygments.token import Comment, Keyword, Name, Operator, String

_TENSOR = re.compile(r"[\"']?(Q|K|V|O|S|P|m|l|LSE)(?:_\w+)?[\"']?")


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a line."""

    start: int  # start, length: in letters
    length: int
    kind: str  # ``comment``, ``keyword``, or the name of a tensor


@lru_cache(maxsize=8)  # two texts of each of the latest four algorithms
def spans(language: str, text: str) -> tuple[tuple[Span, ...], ...]:
    """Return the highlighted parts of each line.

    language: ``python`` or ``cuda``.
    """
    lines: list[list[Span]] = [[]]
    at = 0
    # Tokens cover the text letter by letter; they may span lines. A view has no text at first, and
    # its window must not wait until a lexer is made.
    for token, value in _lexer(language).get_tokens(text) if text else ():
        kind = _kind(token, value)
        for n, part in enumerate(value.split("\n")):
            if n:
                lines.append([])
                at = 0
            if part and kind:
                lines[-1].append(Span(at, len(part), kind))
            at += len(part)
    return tuple(tuple(line) for line in lines)


@cache
def _lexer(language: str) -> Any:
    """Return the lexer of a language; to import and make it takes a tenth of a second."""
    from pygments.lexers.c_like import CudaLexer
    from pygments.lexers.python import PythonLexer

    kinds: dict[str, Any] = {"python": PythonLexer, "cuda": CudaLexer}
    return kinds[language](stripnl=False, ensurenl=False)


def _kind(token: Any, value: str) -> str:
    if token in Comment or token in String.Doc:
        return "comment"
    if token in Keyword or token in Operator.Word:
        return "keyword"
    found = _TENSOR.fullmatch(value) if token in Name or token in String else None
    return found[1] if found else ""
