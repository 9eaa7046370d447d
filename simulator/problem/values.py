"""The values that a scenario may have: bounds, and a sentence for each list or union."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import Field, ValidationError, ValidatorFunctionWrapHandler, WrapValidator

from simulator.base.tables import as_tuple, wrong
from simulator.problem.hardware import gpus

MAX_SEQLEN = 2**24
"""Longest sequence: with it, the byte counts of 4096 heads fit into 64-bit integers."""

MAX_SPLITS = 256  # most splits: FlashAttention's combine takes no more
MAX_DEVICES = 8  # most devices of a ring: a picture has a lane for each
MAX_THRESHOLD = 64.0
"""Largest rescale threshold, in log2: sums of 2**24 exponentials of 2**64 are far from overflow."""
MAX_LOGIT = 1e30  # largest sink logit: float32 holds it and its differences from scores

Heads = Annotated[int, Field(ge=1, le=4096)]
Seqlen = Annotated[int, Field(ge=1, le=MAX_SEQLEN)]
Tokens = Annotated[int, Field(ge=0, le=MAX_SEQLEN)]
Dim = Annotated[int, Field(ge=1, le=4096)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(gt=0, le=1)]


def preset_name(name: object) -> object:
    """Accept the name of a GPU."""
    if isinstance(name, str) and name not in gpus():
        raise wrong(f"one of {', '.join(gpus())}")
    return name


def _said(expected: str) -> WrapValidator:
    """Refuse in one sentence: pydantic's errors of a list or a union name places inside it."""

    def check(value: object, accept: ValidatorFunctionWrapHandler) -> object:
        try:
            return accept(as_tuple(value))
        except ValidationError:
            raise wrong(expected) from None

    return WrapValidator(check)


Lengths = Annotated[tuple[Seqlen, ...], _said("a list of numbers of tokens, each at least 1")]
LengthsOrNone = Annotated[tuple[Tokens, ...], _said("a list of numbers of tokens, each at least 0")]
Splits = Annotated[
    Annotated[int, Field(ge=1, le=MAX_SPLITS)] | Literal["auto"] | None,
    _said(f'a whole number from 1 to {MAX_SPLITS}, or "auto"'),
]
Slopes = Annotated[
    bool
    | Annotated[tuple[Annotated[float, Field(ge=0, lt=math.inf)], ...], Field(min_length=1)]
    | None,
    _said("true, false, or a list of slopes, none below 0"),
]
SinkLogits = Annotated[
    Literal["file", False]
    | Annotated[
        tuple[Annotated[float, Field(ge=-MAX_LOGIT, le=MAX_LOGIT)], ...], Field(min_length=1)
    ]
    | None,
    _said('"file", false, or numbers, one for each query head'),
]


def window_value(value: object) -> object:
    """Accept a number or a pair: a union would name each of its types in an error."""
    if isinstance(value, list | tuple):
        whole = [each for each in value if isinstance(each, int) and not isinstance(each, bool)]
        if len(whole) == len(value) == 2 and all(-1 <= each <= MAX_SEQLEN for each in whole):
            return tuple(whole)
    elif value is None:
        return value
    elif isinstance(value, int) and not isinstance(value, bool):
        if 0 <= value <= MAX_SEQLEN:
            return value
        bound = f"at most {MAX_SEQLEN}" if value > 0 else "at least 0"
        raise wrong(f"{bound}, or a pair [left, right]")
    raise wrong("a number of keys, or a pair [left, right] of numbers from -1, which is no bound")
