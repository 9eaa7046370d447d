"""Studies keep all conditions of a mask, or say in one line that they cannot."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from simulator.problem.masks import BlockMask
from simulator.problem.workload import Workload, read_inputs, resolve
from simulator.program.algorithms import tile_program
from simulator.study.attention_map import HeadScores, settings_of
from simulator.study.compare import long_workload
from simulator.study.gpu_report import signature
from simulator.study.roofline import decode_workload, roofline_of
from simulator.study.sweep import sweep
from simulator.study.variants import variant_table
from tests.helpers.refused import refused
from tests.helpers.runs import scenario

MASKS: dict[str, dict[str, Any]] = {
    "documents": {"documents": [5, 3, 4]},
    "dilated": {"window": 5, "dilation": 2},
    "global": {"window": 3, "global_tokens": 2},
    "blocks": {},
    "two sides": {"window": [2, 5]},
    "aligned": {"causal": True, "align": "top-left"},
}
TABLE = np.array([[True, False, True], [False, True, False], [True, True, False]])


def workload(name: str, algorithm: str = "flash2") -> Workload:
    nq = 9 if name == "aligned" else 12
    w = resolve(scenario(nq=nq, nk=12, heads=2, d=4, mask=MASKS[name]))
    if name == "blocks":
        w = replace(w, mask=replace(w.mask, blocks=BlockMask(4, TABLE.copy())))
    return w.as_algorithm(algorithm)


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("algorithm", ["flash2", "split-kv"])
def test_the_inspector_shows_the_mask_of_the_run(name: str, algorithm: str) -> None:
    w = workload(name, algorithm)
    single = w.as_algorithm("flash2")
    settings = settings_of(w)
    assert settings.mask(single.seqlen_q, 12) == single.mask
    maps = HeadScores(single, read_inputs(single)).maps(settings_of(single))
    seen = single.mask.visible(range(single.seqlen_q), range(12))
    np.testing.assert_array_equal(maps.weights[0] > 0, seen)
    assert settings.open.mask(12, 12).visible(range(12), range(12)).all()
    # Another window is the same mask with another window.
    other = replace(settings, window=7).mask(single.seqlen_q, 12)
    assert other == replace(single.mask, window=7)


@pytest.mark.parametrize("name", ["documents", "blocks"])
def test_another_length_is_refused_in_one_line(name: str) -> None:
    w = workload(name)
    told = refused(sweep, w, "N", [24])
    assert "none: it is of 12 keys, and undefined for 24" in told
    table = variant_table(w)  # at its own length alone, so no exponent can be fitted
    assert table.rows
    assert len(table.lengths) == 0
    assert long_workload(w) is None
    assert sweep(w, "Bc", [3, 4]).values == (3, 4)


@pytest.mark.parametrize("name", ["dilated", "global", "two sides", "aligned"])
def test_another_length_is_defined(name: str) -> None:
    assert sweep(workload(name), "N", [24]).values == (24,)
    assert long_workload(workload(name)) is not None
    assert variant_table(workload(name)).rows


@pytest.mark.parametrize("name", MASKS)
def test_a_decoding_step_is_the_last_row(name: str) -> None:
    w = workload(name)
    step = decode_workload(w)
    stands = replace(w.mask, align="bottom-right")  # a step's query is the last of the keys
    last = stands.visible(range(w.queries - 1, w.queries), range(12))
    np.testing.assert_array_equal(step.mask.visible(range(1), range(12)), last)
    assert roofline_of(tile_program(w))


def test_a_figure_of_a_gpu_belongs_to_one_mask() -> None:
    said = [str(signature(workload(name))) for name in MASKS]
    other = workload("blocks")
    other = replace(other, mask=replace(other.mask, blocks=BlockMask(4, ~TABLE)))
    assert len({*said, str(signature(other)), str(signature(workload("blocks")))}) == len(MASKS) + 1
