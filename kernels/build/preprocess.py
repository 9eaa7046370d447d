"""A kernel's text before it is compiled: a build's conditions are decided, macros expanded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

_TOKEN = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<directive>(?<=\n)[ ]*\#(?:\\\n|[^\n])*)|(?P<line>\n)"
    r"|(?P<space>[ \t]+)|(?P<word>[A-Za-z_]\w*)"
    r"|(?P<other>\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|[0-9][\w.]*|\+\+|--|->|::|[-+*/]=|.)",
    re.DOTALL,
)
_DEFINITION = re.compile(r"\s*#define (\w+)(?:\(([^)]*)\))?[ ]?(.*)", re.DOTALL)
_GUARD = re.compile(r"\s*#(ifdef|ifndef|if|elif|else|endif)\b[ ]*(.*)")
_TERM = re.compile(r"(!?)(?:defined\((\w+)\)|(\w+)(?: *(==|!=|>=|<=|>|<) *(\d+))?)")
_ON_A_GPU = "__CUDA_ARCH__"  # a macro of the compiler, not of the build: its conditions stay
OPENING, CLOSING = ("(", "{", "["), (")", "}", "]")


@dataclass(slots=True)
class Token:
    """A piece of a kernel's text."""

    kind: str  # comment, directive, line (the end of a line), space, word or other
    text: str
    line: int  # number of its line, from 0; a token out of a macro has the line of the macro's name
    macro: str = ""  # the macro that was expanded to it

    @property
    def is_code(self) -> bool:
        """Whether a compiler sees the token."""
        return self.kind in ("word", "other")


def tokens_of(text: str, line: int = -1, macro: str = "") -> Iterator[Token]:
    """Yield the tokens of a text; all tokens out of a `macro` have the same line."""
    for found in _TOKEN.finditer(text):
        yield Token(found.lastgroup or "", found[0], line, macro)
        if not macro:
            line += found[0].count("\n")


class Preprocessor:
    """Decides a build's conditions, and expands the macros that differ between builds.

    Other macros, such as ``ROWS``, stay as they are; so do conditions that depend on the compiler.

    options: definitions of the build, ``-DBR=64``.
    """

    def __init__(self, lines: Sequence[str], options: Sequence[str]) -> None:
        self._text = "\n" + "\n".join(lines)  # a directive follows the end of a line
        names = re.findall(r"^#define (\w+)", self._text, re.MULTILINE)
        self._by_build = {n for n in names if names.count(n) > 1 or n.endswith("_PARAMETERS")}
        given = (option.removeprefix("-D").partition("=") for option in options)
        self._macros: dict[str, tuple[list[str], str]] = {
            name: ([], value or "1") for name, _, value in given
        }
        self.expanded: set[int] = set()  # lines in which a macro has been expanded
        self.unused: set[str] = set()  # words of arguments that no macro has used

    def tokens(self) -> list[Token]:
        """Return the tokens that are left of the text."""
        return self._expand(self._decide(list(tokens_of(self._text))))

    def _decide(self, tokens: list[Token]) -> Iterator[Token]:
        """Yield the tokens of the branches that are taken."""
        stay = _asking_for_the_compiler(tokens)
        was_taken: list[bool] = []  # for each enclosing condition: whether a branch has been taken
        skips: list[bool] = []
        for number, token in enumerate(tokens):
            guard = _GUARD.match(token.text) if token.kind == "directive" else None
            if guard is None or number in stay:
                if any(skips) or (token.kind == "directive" and self._define(token.text)):
                    continue
                yield token
            elif guard[1] == "endif":
                was_taken.pop()
                skips.pop()
            else:
                if guard[1].startswith("if"):
                    was_taken.append(False)
                    skips.append(True)
                holds = self._holds(guard[1], guard[2].partition("//")[0].strip())
                skips[-1] = was_taken[-1] or not holds
                was_taken[-1] |= holds

    def _define(self, text: str) -> bool:
        """Learn a definition; return whether its macro is one to expand."""
        found = _DEFINITION.match(text)
        if found is None:
            return False
        meant = re.sub(r"(?:\s|\\\n)+", " ", found[3]).strip()
        self._macros[found[1]] = (re.findall(r"\w+", found[2] or ""), meant)
        return found[1] in self._by_build

    def _holds(self, word: str, condition: str) -> bool:
        if word in ("ifdef", "ifndef"):
            return (condition in self._macros) == (word == "ifdef")
        return word == "else" or any(
            all(self._term_holds(term.strip()) for term in part.split("&&"))
            for part in condition.split("||")
        )

    def _term_holds(self, term: str) -> bool:
        found = _TERM.fullmatch(term)
        if found is None:
            raise ValueError(f"{term}: expected a name, defined(name), or a name and a number")
        if found[2]:
            return (found[2] in self._macros) != bool(found[1])
        has, wanted = int(self._macros.get(found[3], ([], "0"))[1]), int(found[5] or 0)
        return {
            "==": has == wanted, "!=": has != wanted, ">=": has >= wanted, "<=": has <= wanted,
            ">": has > wanted, "<": has < wanted,
        }.get(found[4], (has != 0) != bool(found[1]))  # fmt: skip

    def _expand(self, tokens: Iterable[Token]) -> list[Token]:
        """Return the tokens with macros replaced by their meaning."""
        out: list[Token] = []
        todo = list(tokens)[::-1]
        while todo:
            token = todo.pop()
            if token.kind != "word" or token.text not in self._by_build:
                out.append(token)
                continue
            names, body = self._macros.get(token.text, ([], ""))
            given = _arguments(todo) if todo and todo[-1].text == "(" else []
            values = dict(zip(names, given, strict=False))
            meant = [
                each
                for part in tokens_of(body, token.line, token.macro or token.text)
                for each in values.get(part.text, [part])
            ]
            self.expanded |= {token.line, *(each.line for piece in given for each in piece)}
            if not values:
                self.unused |= {each.text for piece in given for each in piece}
            todo += meant[::-1]
        return out


def _arguments(todo: list[Token]) -> list[list[Token]]:
    """Take a macro's arguments from the end of a list."""
    todo.pop()
    pieces: list[list[Token]] = [[]]
    depth = 1
    while depth:
        token = todo.pop()
        depth += (token.text in OPENING) - (token.text in CLOSING)
        if depth == 1 and token.text == ",":
            pieces.append([])
        elif depth and (pieces[-1] or token.kind != "space"):
            pieces[-1].append(token)
    return pieces


def _asking_for_the_compiler(tokens: Sequence[Token]) -> set[int]:
    """Return the places of the directives of conditions that depend on the compiler."""
    found: set[int] = set()
    around: list[list[int]] = []
    for number, token in enumerate(tokens):
        guard = _GUARD.match(token.text) if token.kind == "directive" else None
        if guard is None:
            continue
        if guard[1].startswith("if"):
            around.append([])
        around[-1].append(number)
        if guard[1] == "endif":
            group = around.pop()
            if any(_ON_A_GPU in tokens[n].text for n in group):
                found |= set(group)
    return found
