"""A question that a student answers before the run does: the answer, and how far a guess is off."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,2})?", re.IGNORECASE)
_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(?!\d)")


@dataclass(frozen=True, slots=True)
class Prediction:
    """A question with its answer computed."""

    ask: str  # ask, hint: Markdown; "" for no hint
    hint: str
    # the number in its unit; or the place of the right choice; or the column of the right cell
    truth: float
    digits: int = 0  # digits after the point with which a number is written
    unit: str = ""
    within: float = 0.0  # a number that is no further off counts as right
    span: tuple[float, float] | None = None  # ends of the scale, if a number has one
    choices: tuple[str, ...] = ()  # texts to choose from, Markdown
    # a tensor and its row in which the student clicks a cell
    click: tuple[str, int] | None = None

    @property
    def is_number(self) -> bool:
        """Whether a number is asked for."""
        return not self.choices and self.click is None


@dataclass(frozen=True, slots=True)
class GuessOutcome:
    """How a guess compares with the answer."""

    guess: float
    right: bool
    apart: float  # guess minus answer; for choices and cells 0 or 1
    factor: float  # how many times too large, or too small, from 1; 0 where signs differ


def outcome(prediction: Prediction, guess: float) -> GuessOutcome:
    """Return how a guess compares with the answer."""
    truth = prediction.truth
    if not prediction.is_number:
        return GuessOutcome(guess, guess == truth, float(guess != truth), 0.0)
    apart = guess - truth
    # A distance that only rounding makes larger than allowed counts as right.
    right = abs(apart) <= prediction.within * (1 + 1e-9)
    ratio = guess / truth if truth and guess and guess / truth > 0 else 0.0
    return GuessOutcome(guess, right, apart, max(ratio, 1 / ratio) if ratio else 0.0)


def read_number(text: str, unit: str = "") -> float | None:
    """Return the number that somebody has typed, or None: 0.45, 0,45, 131 072, 12 %, 1e6."""
    plain = "".join(text.split())
    if unit:
        plain = plain.removesuffix("".join(unit.split()))
    plain = plain.replace("−", "-").removesuffix("%").removesuffix("×")
    plain = plain.replace(",", "") if _GROUPED.fullmatch(plain) else plain.replace(",", ".")
    if not _NUMBER.fullmatch(plain):
        return None
    number = float(plain)
    return number if math.isfinite(number) else None
