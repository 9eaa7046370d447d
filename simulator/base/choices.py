"""The choices of a panel, declared once for its buttons and lists and for lessons."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

Value = TypeVar("Value", bound=str)


@dataclass(frozen=True, slots=True)
class Option:
    """One button of a group."""

    value: str  # the value that the button stands for
    text: str  # text, short: its words, and the words for small places
    short: str
    tip: str  # what the option shows, in one sentence


@dataclass(frozen=True, slots=True)
class Choice:
    """A group of buttons with one button down, or a list."""

    name: str  # the thing that is chosen
    options: tuple[Option, ...]  # the options
    listed: bool = False  # whether the options are a list that opens instead of a row of buttons
    lesson: str = ""  # the key with which a lesson chooses; empty if none does
    first: str = ""  # the value to begin with; empty: the first option's
    open: bool = False  # whether a run has options of its own

    @property
    def values(self) -> tuple[str, ...]:
        """The values of the options."""
        return tuple(each.value for each in self.options)

    @property
    def lesson_values(self) -> tuple[str | int, ...]:
        """The values as lessons write them: numbers without quotes."""
        return tuple(int(each) if each.isdecimal() else each for each in self.values)

    @property
    def usual(self) -> str:
        """The value that holds until somebody chooses."""
        return self.first or self.options[0].value


def one_of(values: Iterable[Value], value: str) -> Value:
    """Return the one of some values that an option stands for.

    Raises ValueError: the option stands for none of the values.
    """
    for each in values:
        if each == value:
            return each
    raise ValueError(f"{value!r} is none of what can be chosen")
