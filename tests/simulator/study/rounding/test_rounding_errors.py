"""Errors of P and S in the storage type."""

import numpy as np
import pytest

from simulator.base.errors import InputError
from simulator.problem.scenario import parse_scenario
from simulator.program.playback import Cursor
from simulator.run.rounding_errors import rounding_errors, unit_of
from simulator.run.trace import simulate
from simulator.study.captions import Numbers
from simulator.study.rounding.captions import rounding_error


def test_a_unit_is_the_spacing_of_the_type() -> None:
    rows = np.random.default_rng(0).standard_normal((50, 8))
    largest = np.abs(rows).max(axis=1)
    assert np.array_equal(unit_of(rows, "float16"), np.spacing(largest.astype(np.float16)))
    assert np.array_equal(unit_of(rows, "float32"), np.spacing(largest.astype(np.float32)))


@pytest.mark.parametrize("algorithm", ["naive", "split-kv", "flash2-backward"])
def test_the_errors_are_those_of_the_problem_whatever_runs(algorithm: str) -> None:
    found = []
    for each in (algorithm, "flash2"):
        said = {"algorithm": each, "heads": 4, "kv_heads": 2, "seqlen_q": 20, "head_dim": 8,
                "dtype": "bfloat16"}  # fmt: skip
        trace = simulate(parse_scenario({"attention": said, "tiling": {"rows": 8, "cols": 8}}))
        found.append(rounding_errors(*trace.single_heads, 3))
    assert found[0] == found[1]
    ways = found[0]
    assert ways["standard"].largest > ways["flash"].largest
    assert 0.3 < ways["float32"].ulp <= 0.51  # O is rounded once


def test_a_caption_needs_a_way_that_there_is() -> None:
    said = {"heads": 1, "seqlen_q": 4, "head_dim": 4, "dtype": "float16"}
    chosen = parse_scenario({"attention": said})
    with pytest.raises(InputError, match="one of standard, flash, float32"):
        rounding_error(Numbers(chosen, Cursor(0, 0)), "fp8")
