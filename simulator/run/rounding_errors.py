"""Errors of O where P and S are rounded to the storage type, beside P in float32.

Standard attention is naive: it stores S and P in the type. FlashAttention-2 rounds P before P V.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from simulator.base.dtypes import F32, F64, UNIT, DType
from simulator.engines.numpy_engine import numpy_engine
from simulator.engines.reference import error_rows, reference_rows
from simulator.problem.scenario import Algorithm, PairDType, with_values
from simulator.problem.workload import Inputs, Workload
from simulator.program.faults import honest

Way = Literal["standard", "flash", "float32"]
WAYS: dict[Way, tuple[Algorithm, PairDType]] = {
    "standard": ("naive", "storage"),
    "flash": ("flash2", "storage"),
    "float32": ("flash2", "float32"),
}
"""How O is computed: the algorithm, and the type of its P."""


@dataclass(frozen=True, slots=True)
class RoundingError:
    """How far O of a head is from float64, over all rows that are compared."""

    largest: float
    mean: float
    # the largest error of a row in units in the last place of the storage type, at the row's
    # largest exact magnitude
    ulp: float


def rounding_errors(w: Workload, inputs: Inputs, head: int) -> dict[Way, RoundingError]:
    """Return the errors of each way for a head of a run, heads one by one.

    w: a run with a softmax; its algorithm, faults and type of P do not count.
    """
    honest_one = honest(w)
    found: dict[Way, RoundingError] = {}
    for way, (algorithm, p) in WAYS.items():
        said = with_values(honest_one.scenario, {"attention": {"p_dtype": p}})
        own = replace(honest_one, scenario=said).as_algorithm(algorithm)
        posed = own.posed(inputs)
        engine, parts = numpy_engine(own, posed), []
        for i in error_rows(own):
            rows = own.grid.row_range(i)
            parts.append((engine.row_block(head, i).o, reference_rows(own, posed, head, rows)[0]))
        ours, exact = (np.concatenate(each) for each in zip(*parts, strict=True))
        off = np.abs(ours - exact)
        ulp = float((off.max(axis=1) / unit_of(exact, own.dtype)).max())
        found[way] = RoundingError(float(off.max()), float(off.mean()), ulp)
    return found


def unit_of(exact: F64 | F32, dtype: DType) -> F64:
    """Return the unit in the last place of a type at each row's largest magnitude, (rows,)."""
    power = np.frexp(np.abs(exact).max(axis=1))[1] - 1  # frexp's fraction is from 0.5 to 1
    unit: F64 = np.ldexp(UNIT[dtype], power)
    return unit
