"""The values that a seed draws for an exercise, and their places in its texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any
from zlib import crc32

import numpy as np

from simulator.base.errors import refuse
from simulator.lesson.expressions import replaced

Drawn = int | float | str | bool
MOST = 2**32 - 1  # the largest seed
_NAME = re.compile(r"<([a-z][a-z0-9_]*)>")
_DIGITS = 9  # digits behind the point that a drawn number has at most


def drawn(draws: Mapping[str, Any], seed: int, salt: str) -> dict[str, Drawn]:
    """Return the values that a seed draws, by name: the same for the same seed and salt."""
    rng = np.random.default_rng([seed, crc32(salt.encode())])
    return {name: _drawn(name, given, rng) for name, given in draws.items()}


def _drawn(name: str, given: object, rng: np.random.Generator) -> Drawn:
    if isinstance(given, list) and given:
        picked: Drawn = given[int(rng.integers(len(given)))]
        return picked
    if isinstance(given, dict) and {"from", "to"} <= given.keys() <= {"from", "to", "step"}:
        step = given.get("step", 1)
        count = round((given["to"] - given["from"]) / step) + 1
        value = given["from"] + step * int(rng.integers(count))
        return value if isinstance(value, int) else round(float(value), _DIGITS)
    raise refuse("", f"draw.{name}", "", "a list, or { from = 0, to = 9 }")


def put_in(value: Any, names: Mapping[str, Drawn]) -> Any:
    """Return a value of TOML with drawn values in the place of ``<name>`` in all its texts."""
    if isinstance(value, dict):
        return {key: put_in(each, names) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [put_in(each, names) for each in value]
    return _in_text(value, names) if isinstance(value, str) else value


def _in_text(text: str, names: Mapping[str, Drawn]) -> Drawn:
    whole = _NAME.fullmatch(text)
    if whole and whole[1] in names:
        return names[whole[1]]
    inside = replaced(text, lambda content: f"{{{{{_named(content, names, _bracketed)}}}}}")
    return _named(inside, names, str)


def _named(text: str, names: Mapping[str, Drawn], write: Callable[[Drawn], str]) -> str:
    return _NAME.sub(lambda found: write(names[found[1]]) if found[1] in names else found[0], text)


def _bracketed(value: Drawn) -> str:
    """Return a value as a part of an expression."""
    return f"({value})" if isinstance(value, int | float) and value < 0 else str(value)
