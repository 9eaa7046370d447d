"""The errors that say why an input cannot be used."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

SCENARIO = "scenario"
"""The source of a scenario that has no file, or was changed since its file was read."""

_JOINERS = "\u00ad\u200c\u200d"
"""Soft hyphen and the two joiners: invisible, but part of ordinary words and emoji."""
_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_LINE = 80
"""Characters of a value that an error shows."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change of the scenario that makes a refused value usable."""

    words: str  # the result, as a button says it
    # The change: tables and keys as in the file, e.g. ``{"input": {"source": "random"}}``.
    values: Mapping[str, Mapping[str, object]]

    def __str__(self) -> str:
        each = (
            f"{table}.{key} = {shown(value)}"
            for table, values in self.values.items()
            for key, value in values.items()
        )
        return f"{self.words}: {', '.join(each)}"


@dataclass(frozen=True, slots=True)
class Mistake:
    """One value that cannot be used."""

    # dotted name in the scenario (``attention.kv_heads``) or the part of a file (``tensor k``);
    # empty when the whole file is at fault
    key: str
    value: str  # the offending value, as it is shown
    expected: str  # values that would have been accepted
    remedy: Remedy | None = None  # how the value can be used after all

    def __str__(self) -> str:
        head = f"{self.key} = {self.value}" if self.key and self.value else self.key or self.value
        return f"{head}: expected {self.expected}" if head else f"expected {self.expected}"


class InputError(ValueError):
    """An error of a scenario or an input file that cannot be used, told in one line.

    All functions that read a user's input raise this error: docstrings name it only to say more.

    source: the file, or a name in its place ("scenario" for a scenario that is being edited).
    mistakes: the mistakes, most important first; at least one.
    """

    def __init__(self, source: str, mistakes: Sequence[Mistake], others: int = 0) -> None:
        self.source = source
        self.mistakes = tuple(mistakes)
        self.others = others
        super().__init__(source, self.mistakes, others)

    def __str__(self) -> str:
        more = len(self.mistakes) - 1 + self.others
        text = ": ".join(filter(None, (self.source, str(self.mistakes[0]))))
        text += f" (and {more} more)" if more else ""
        return safe_text(text)  # names in files may hold anything

    @property
    def advice(self) -> str:
        """The error and its remedy, in one line."""
        remedy = self.mistakes[0].remedy
        return safe_text(f"{self}. {remedy}") if remedy else str(self)


def safe_text(text: str) -> str:
    """Return a text in a form that can be printed or shown in one line, whoever wrote it.

    Codes that control a terminal, break the line or change the direction of writing are written
    out, such as ``\\x1b``; so are halves of letters, which cannot be encoded. Everything else
    stays.
    """
    if text.isprintable():
        return text
    return "".join(c if _is_harmless(c) else _escaped(c) for c in text)


def _is_harmless(letter: str) -> bool:
    return letter.isprintable() or letter in _JOINERS or unicodedata.category(letter) == "Zs"


def _escaped(letter: str) -> str:
    code = ord(letter)
    if letter in _ESCAPES:
        return _ESCAPES[letter]
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def refuse(source: str, key: str, value: object, expected: str) -> InputError:
    """Return the error for one value, "" for no value; the caller raises it."""
    return InputError(source, [Mistake(key, "" if value == "" else shown(value), expected)])


def unusable(source: object, expected: str, error: Exception) -> InputError:
    """Return the error for a file that the system or the file's reader refuses."""
    return refuse(str(source) or '""', "", "", f"{expected} ({reason(error)})")


def shown(value: object) -> str:
    """Return `value` as an error message shows it: TOML-like and never longer than a line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return ""
    try:
        text = f'"{value}"' if isinstance(value, str) else str(value)
    except ValueError:  # Python does not write out whole numbers of thousands of digits
        return "a number of thousands of digits"
    return shortened(text)


def spaced(count: int) -> str:
    """Return a whole number in a sentence, with thin spaces between thousands."""
    return f"{count:,}".replace(",", "\u2009")


def shortened(text: str) -> str:
    """Return `text` on one line, cut to a length that still leaves the line readable."""
    # The words of a very long text take many times its memory, so no more than is shown is split.
    text = " ".join(text[: 16 * _LINE].split())
    return text if len(text) <= _LINE else text[: _LINE - 3] + "..."


def reason(error: Exception) -> str:
    """Return why the system could not read or write a file."""
    return shortened(getattr(error, "strerror", None) or str(error) or type(error).__name__)
