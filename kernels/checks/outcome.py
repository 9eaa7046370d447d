"""The setting of a check, its findings, and its outcome in the report."""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from kernels.cuda.launch import Device

ROOT = Path(__file__).resolve().parents[2]  # the checkout

Status = Literal["passed", "goal missed", "failed", "not run"]
STATUSES: tuple[Status, ...] = get_args(Status)
DONE: tuple[Status, ...] = ("passed", "goal missed")
"""Statuses of checks that need no repetition: the kernels are right, whatever their speed."""


class CannotRunError(Exception):
    """A check cannot be done on this machine; the words say why, so that a user can act on them."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The setting of a check."""

    device: Device  # where the kernels run
    quick: bool = False  # whether only short work is wanted


@dataclass(frozen=True, slots=True)
class ReportTable:
    """Figures for people."""

    title: str  # what the figures are
    header: tuple[str, ...]  # names of the columns
    rows: tuple[tuple[str, ...], ...]  # as many texts each as there are columns


@dataclass(frozen=True, slots=True)
class Finding:
    """The findings of a check."""

    summary: str  # what was checked, in one line
    faults: tuple[str, ...] = ()  # everything that is wrong; none if the check is passed
    tables: tuple[ReportTable, ...] = ()  # figures for people
    # the figures for programs, in a form that JSON allows
    figures: dict[str, Any] = field(default_factory=dict)
    misses: tuple[str, ...] = ()  # where right kernels are slower than they should be


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a check."""

    name: str  # name of the check
    status: Status  # one of `STATUSES`
    summary: str  # what was checked, or why nothing was
    faults: tuple[str, ...] = ()  # faults, tables, figures, misses: as in `Finding`
    tables: tuple[ReportTable, ...] = ()
    figures: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0  # time of the check
    misses: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the outcome in a form that JSON allows; `from_json` is the inverse."""
        said: dict[str, Any] = _plain(asdict(self))
        return said

    @staticmethod
    def from_json(said: dict[str, Any]) -> Outcome:
        """Return the outcome that `as_json` has written."""
        tables = tuple(
            ReportTable(t["title"], tuple(t["header"]), tuple(tuple(row) for row in t["rows"]))
            for t in said["tables"]
        )
        words = {name: tuple(said.get(name, ())) for name in ("faults", "misses")}
        return Outcome(**{**said, **words, "tables": tables})


def _plain(value: Any) -> Any:
    """Return a value in a form that JSON allows: no infinity, no NaN, no numbers of NumPy."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


Check = Callable[[Setting], Finding]


def capability(on: Setting) -> int | None:
    """Return the GPU's compute capability, such as 90; None: the device is no GPU."""
    if on.device.name != "cupy":
        return None
    import cupy

    return int(cupy.cuda.Device(0).compute_capability)


def carry_out(name: str, check: Check, make_setting: Callable[[], Setting]) -> Outcome:
    """Do one check; whatever it raises becomes its outcome."""
    started = time.perf_counter()
    try:
        found = check(make_setting())
    except CannotRunError as reason:
        return Outcome(name, "not run", str(reason), seconds=time.perf_counter() - started)
    except Exception as error:
        words = f"{type(error).__name__}: {error}"
        place = traceback.format_exception(error)[-3:]
        return Outcome(
            name,
            "failed",
            "it broke off",
            faults=(words[:2000],),
            figures={"traceback": "".join(place)[-4000:]},
            seconds=time.perf_counter() - started,
        )
    return Outcome(
        name,
        "failed" if found.faults else "goal missed" if found.misses else "passed",
        found.summary,
        found.faults,
        found.tables,
        found.figures,
        time.perf_counter() - started,
        found.misses,
    )
