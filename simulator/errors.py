"""What Tilescope says when an input cannot be used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

SCENARIO = "scenario"
"""Stands for the file of a scenario that has none, or has been changed since."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """One value that cannot be used.

    Attributes
    ----------
    key : str
        Dotted name in the scenario (``attention.kv_heads``) or the part of a file
        (``tensor k``); empty when the whole file is at fault.
    value : str
        The offending value, as it is shown.
    expected : str
        What would have been accepted.
    """

    key: str
    value: str
    expected: str

    def __str__(self) -> str:
        head = f"{self.key} = {self.value}" if self.key and self.value else self.key or self.value
        return f"{head}: expected {self.expected}" if head else f"expected {self.expected}"


class InputError(ValueError):
    """A scenario or an input file that cannot be used, told in one line.

    Parameters
    ----------
    source : str
        The file, or what stands for it ("scenario" for one that is being edited).
    mistakes : sequence of Mistake
        All that is wrong, most important first; at least one.
    """

    def __init__(self, source: str, mistakes: Sequence[Mistake]) -> None:
        self.source = source
        self.mistakes = tuple(mistakes)
        super().__init__(source, self.mistakes)

    def __str__(self) -> str:
        more = len(self.mistakes) - 1
        text = f"{self.source}: {self.mistakes[0]}" + (f" (and {more} more)" if more else "")
        # Names in files may hold anything, line breaks and terminal codes included.
        return "".join(c if c.isprintable() else " " for c in text)


def refuse(source: str, key: str, value: object, expected: str) -> InputError:
    """Return the error for one value, "" for none; the caller raises it."""
    return InputError(source, [Mistake(key, "" if value == "" else shown(value), expected)])


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


def shortened(text: str) -> str:
    """Return `text` on one line, cut to a length that still leaves the line readable."""
    text = " ".join(text.split())
    return text if len(text) <= 80 else text[:77] + "..."


def reason(error: Exception) -> str:
    """Return why the system would not read or write a file."""
    return shortened(getattr(error, "strerror", None) or str(error) or type(error).__name__)
