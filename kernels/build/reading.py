"""The kernels as people read them: the text of the fast build, without code that records."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, lru_cache

from kernels.build.preprocess import CLOSING, OPENING, Preprocessor, Token
from kernels.build.sources import (
    ANCHOR,
    INCLUDE,
    SourceLine,
    source_lines,
    whole_lines,
    whole_source,
)

_RECORDS = re.compile(r"visit ?[.=]|(?:const )?(?:Visit|Trace) \w|\w+\.count\(visit\b")
"""The beginning of a statement that only records."""
_RECORDED = re.compile(
    r"visit|trace|counter|trace\.visit\(.*\)|(?:READ|WRITE)_\w+|const (?:Visit|Trace) ?& ?\w+"
    r"|Counter counter(?: = \w+)?"
)
"""Arguments and parameters that only the recording needs."""
_TYPES = re.compile(r"struct (?:Visit|Trace|\w*Detail)\b|.*\bVisit \w+\(\)")
"""The beginning of a type for records, and of a function that returns such a type."""
_TRACED = re.compile(r"// ptxas \w+ trace\b")
_COUNTER = re.compile(r"(const )?(?:int|Index) \w+ =")
_WIDE, _COMMENTED = 92, 44
"""Most letters of a line of parameters, and of a line that comments are aligned with."""


def readable(name: str, options: Iterable[str]) -> tuple[SourceLine, ...]:
    """Return the lines of `stripped` that people read, with the headers that do some ops only."""
    asked = _asked(name)
    decisive = (o for o in options if o.removeprefix("-D").partition("=")[0] in asked)
    return stripped(name, tuple(decisive), headers=False)


@cache
def _asked(name: str) -> frozenset[str]:
    """Return the words of a kernel's conditions: tile sizes are not among them."""
    guards = re.findall(r"^\s*#\s*(?:el)?if.*", whole_source(name), re.MULTILINE)
    return frozenset(word for text in guards for word in re.findall(r"\w+", text))


@lru_cache(maxsize=8)
def stripped(
    name: str, options: tuple[str, ...], *, headers: bool = True
) -> tuple[SourceLine, ...]:
    """Return the text of a kernel for one build, without the code that records.

    Conditions of the build are decided. Macros that differ between builds are expanded, and so are
    parameters. With its headers the text compiles to the same arithmetic.

    name: the algorithm, or the name of the file without its ending.
    options: definitions of the build; none is ``-DTRACE``.
    headers: whether the text has all headers, or only headers that do some ops, as people read it.
    """
    source = whole_lines(name)
    build = Preprocessor([line.text for line in source], options)
    tokens = build.tokens()
    if not headers:
        tokens = [t for t in tokens if t.line >= 0 and source[t.line].number is not None]
    lines = _Stripped(source, tokens, build).lines()
    return tuple(_tidy(lines if headers else _with_includes(name, lines)))


def _with_includes(name: str, lines: Iterator[SourceLine]) -> Iterator[SourceLine]:
    """Add the ``#include`` lines of headers that people do not read."""
    todo = [line for line in source_lines(name) if INCLUDE.match(line.text)]
    for line in lines:
        while todo and (line.number or 0) > (todo[0].number or 0):
            yield todo.pop(0)
        yield line


def _tidy(lines: Iterator[SourceLine]) -> Iterator[SourceLine]:
    """Leave out empty lines that follow an empty line or an opening brace."""
    before = ""
    for line in lines:
        if line.text or (before and not before.endswith("{")):
            yield line
        before = line.text


class _Stripped:
    """The tokens of a kernel's whole text in one build; code that records is removed."""

    def __init__(
        self, source: Sequence[SourceLine], tokens: list[Token], build: Preprocessor
    ) -> None:
        self._source, self._tokens = source, tokens
        self._touched, self._gone = build.expanded, build.unused
        self._in_line: dict[int, list[int]] = {}
        for n, token in enumerate(tokens):
            self._in_line.setdefault(token.line, []).append(n)

    def lines(self) -> Iterator[SourceLine]:
        """Yield the lines that are left."""
        for n, token in enumerate(self._tokens):
            if token.kind == "comment" and _TRACED.match(token.text):
                self._remove(n, n)
        self._drop_types()
        for first, last in list(self._statements(0, len(self._tokens))):
            if _RECORDS.match(self._words(first, last)):
                self._drop(first, last)
        self._drop_pieces()
        while self._drop_counters():
            pass
        lists = dict(self._parameter_lists())
        self._join_brackets({n for lines in lists.values() for n in lines})
        for n, line in enumerate(self._source):
            tokens = [self._tokens[place] for place in self._in_line.get(n, ())]
            text = "".join(t.text for t in tokens if t.kind != "line").rstrip()
            text = re.sub(r"(?<=\w) ,", ",", text)  # a macro begins with it, or is empty
            code = any(t.is_code or (t.kind == "directive" and t.text) for t in tokens)
            for lines in lists.values():
                if n in lines:
                    yield from lines[n]
                    break
            else:
                if tokens and (code or n not in self._touched) and (text or not line.text):
                    yield replace(line, text=text)

    # --- navigation -------------------------------------------------------------------------

    def _text(self, at: int) -> str:
        """Return the text of a token of code or a directive; "" for others and past the ends."""
        token = self._tokens[at] if 0 <= at < len(self._tokens) else None
        return token.text if token and (token.is_code or token.kind == "directive") else ""

    def _next(self, at: int, step: int = 1) -> int:
        """Return the place of the code or directive after a place, or before it."""
        at += step
        while 0 <= at < len(self._tokens) and not self._text(at):
            at += step
        return at

    def _match(self, at: int, step: int = 1) -> int:
        """Return the place of the bracket that matches another one."""
        depth = 0
        while 0 <= at < len(self._tokens):
            depth += (self._text(at) in OPENING) - (self._text(at) in CLOSING)
            if depth == 0:
                break
            at += step
        return at

    def _words(self, first: int, last: int) -> str:
        """Return the code from one place to another, as one line."""
        parts = (t.text if t.is_code else " " for t in self._tokens[first : last + 1])
        return re.sub(r"\s+", " ", "".join(parts)).strip()

    def _is_directive(self, at: int) -> bool:
        return self._text(at).lstrip().startswith("#")

    def _is_head(self, at: int) -> bool:
        """Return whether a bracket closes the head of a loop or of a condition."""
        return self._text(at) == ")" and self._text(self._next(self._match(at, -1), -1)) in (
            "if", "for", "while"
        )  # fmt: skip

    def _statements(self, first: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the places of the first and the last token of simple statements."""
        at = self._next(first - 1)
        while at < end:
            begins = self._text(at) in (";", "{", "}", "else") or self._is_directive(at)
            begins = begins or self._is_head(at)
            at = self._next(at)
            if not begins or self._is_directive(at):
                continue
            last = at
            while last < end and self._text(last) not in (";", "{", "}"):
                last = self._next(self._match(last) if self._text(last) in OPENING else last)
            if self._text(last) == ";":
                yield at, last

    # --- removal ----------------------------------------------------------------------------

    def _remove(self, first: int, last: int) -> None:
        for token in self._tokens[first : last + 1]:
            self._touched.add(token.line)
            if token.kind == "word":
                self._gone.add(token.text)
            if token.kind != "line":
                token.kind, token.text = "space", ""

    def _drop_types(self) -> None:
        """Take away the types for records, and functions that return such a type."""
        at = start = self._next(-1)
        while at < len(self._tokens):
            ends = self._text(at) == ";" or self._is_directive(at)
            if self._text(at) == "{":
                body, at = at, self._match(at)
                ends = True
                if self._text(self._next(at)) == ";":
                    at = self._next(at)
                if _TYPES.match(self._words(start, body)):
                    self._drop(start, at)
            at = self._next(at)
            start = at if ends else start

    def _drop(self, first: int, last: int) -> None:
        """Take away a statement, heads that are then left without a body, and the comment above."""
        before, after = self._next(first, -1), self._next(last)
        if self._text(before) == "{" and self._text(after) == "}":
            head = self._next(before, -1)
            if self._is_head(head):
                before, last = head, after
        if self._is_head(before):
            self._drop(self._next(self._match(before, -1), -1), last)
            return
        if self._text(before).lstrip().startswith("#pragma"):
            first = before
        line = self._tokens[first].line - 1
        while (text := self._source[line].text.lstrip()).startswith("//") and not (
            ANCHOR.search(text) or text.startswith("// ptxas")
        ):
            self._remove(self._in_line[line][0], self._in_line[line][-1])
            line -= 1
        self._remove(first, last)

    def _drop_pieces(self) -> None:
        """Take away the arguments and parameters that only the recording needs."""
        for at in range(len(self._tokens)):
            if self._text(at) != "(":
                continue
            kept = False
            for first, last in list(self._pieces(at)):
                if not _RECORDED.fullmatch(self._words(first, last)):
                    kept = True
                    continue
                if kept:  # with the comma before it, else with the comma after it
                    self._remove(self._next(first, -1), last)
                else:
                    after = self._next(last)
                    self._remove(first, last if self._text(after) == ")" else after)

    def _pieces(self, at: int) -> Iterator[tuple[int, int]]:
        """Yield the first and last place of each piece between the commas in a bracket."""
        first = here = self._next(at)
        end = self._match(at)
        while here < end:
            here = self._match(here) if self._text(here) in OPENING else here
            after = self._next(here)
            if self._text(after) in (",", ")"):
                yield first, here
                after = first = self._next(after)
            here = after

    def _drop_counters(self) -> bool:
        """Take away the variables that only removed code used; return whether there were any."""
        dropped = False
        for first, last in list(self._statements(0, len(self._tokens))):
            found = _COUNTER.match(self._words(first, last))
            if found is None:
                continue
            pieces = list(self._declarations(self._next(first) if found[1] else first, last))
            unused = [
                (start, end) for start, end in pieces if self._drop_uses(self._text(start), end)
            ]
            dropped |= bool(unused)
            if len(unused) == len(pieces):
                self._drop(first, last)
                continue
            for start, end in unused:
                after = self._next(end)
                comma = after if self._text(after) == "," else self._next(start, -1)
                self._remove(min(start, comma), max(end, comma))
        return dropped

    def _declarations(self, of_type: int, last: int) -> Iterator[tuple[int, int]]:
        """Yield the places of each name that a statement declares, and of the end of its value."""
        start = here = self._next(of_type)
        while here < last:
            here = self._match(here) if self._text(here) in OPENING else here
            after = self._next(here)
            if self._text(after) in (",", ";"):
                yield start, here
                start = after = self._next(after)
            here = after

    def _drop_uses(self, name: str, after: int) -> bool:
        """Take away the counting in a variable without other use; return whether it had none."""
        if name not in self._gone:
            return False
        depth, end = 0, after
        while depth >= 0 and end < len(self._tokens):
            end = self._next(end)
            depth += (self._text(end) == "{") - (self._text(end) == "}")
        places = {n for n in range(after, end) if self._text(n) == name}
        counts = re.compile(rf"\+\+{name};|{name} \+= ")
        counting = [
            (first, last)
            for first, last in (self._statements(after, end) if places else ())
            if counts.match(self._words(first, last))
        ]
        if any(all(not first <= n <= last for first, last in counting) for n in places):
            return False
        for first, last in counting[::-1]:
            self._drop(first, last)
        return True

    # --- layout -----------------------------------------------------------------------------

    def _join_brackets(self, others: set[int]) -> None:
        """Move a bracket that is left alone in its line to the end of the code before it."""
        for line in sorted(self._touched - others):
            code = [n for n in self._in_line.get(line, ()) if self._text(n)]
            words = "".join(self._text(n) for n in code).replace("const", " const")
            if re.fullmatch(r"\)+(?: const)?[;,]?", words):
                self._tokens[self._next(code[0], -1)].text += words
                self._remove(code[0], code[-1])

    def _parameter_lists(self) -> Iterator[tuple[int, dict[int, list[SourceLine]]]]:
        """Yield lists of expanded parameters, by the lines in which they were written."""
        for at in range(len(self._tokens)):
            if self._text(at) != "(" or self._tokens[at + 1].kind != "line":
                continue
            end = self._match(at)
            inside = self._tokens[at + 1 : end]
            if not any(t.is_code and t.macro.endswith("_PARAMETERS") for t in inside):
                continue
            lines: dict[int, list[SourceLine]] = {
                n: [] for n in range(self._tokens[at].line + 1, self._tokens[end].line + 1)
            }
            entries = _entries(inside)
            rest = "".join(
                t.text for t in self._tokens[end + 1 : self._in_line[self._tokens[end].line][-1]]
            )
            widths = [len(text) for text, comment, _ in entries if comment]
            wide = max((width for width in widths if width <= _COMMENTED), default=0) + 3
            for n, (text, comment, line) in enumerate(entries):
                text += "," if n < len(entries) - 1 else ")" + rest
                text = f"    {f'{text}  '.ljust(wide)}// {comment}" if comment else f"    {text}"
                again = bool(lines[line])
                told = self._source[line]
                number = 0 if again and told.number is not None else told.number
                lines[line].append(replace(told, number=number, text=text.rstrip()))
            yield at, lines


def _entries(tokens: Sequence[Token]) -> list[tuple[str, str, int]]:
    """Return the parameters among tokens: one or more, the comment beside them, and their line."""
    out: list[tuple[str, str, int]] = []
    words, macro, line = "", "", 0

    def close(comment: str = "") -> None:
        nonlocal words
        said = re.sub(r"\s+", " ", words).strip(" ,")
        words = ""
        while len(said) > _WIDE:
            cut = said.rindex(", ", 0, _WIDE)
            out.append((said[:cut], "", line))
            said = said[cut + 2 :]
        if said:
            out.append((said, comment, line))
        elif comment and out:
            last = out[-1]
            out[-1] = (last[0], "; ".join(filter(None, (last[1], comment))), last[2])

    for token in tokens:
        if token.kind == "line" or token.macro != macro:
            close()
            macro = token.macro
        if token.kind == "comment":
            close(token.text.strip("/* "))
        elif token.kind != "line":
            line = token.line
            words += token.text
    close()
    return out
