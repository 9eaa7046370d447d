"""Sink logits: a logit of each head joins its softmax and gives no value."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from simulator.base.errors import InputError
from simulator.problem.scenario import Scenario, parse_scenario, with_values
from simulator.problem.workload import read_inputs, resolve
from simulator.run.provenance import explain
from simulator.run.snapshot import Cell
from simulator.study.attention_map import HeadScores
from tests.helpers.runs import program_of, scenario, trace_of

LOGITS = [0.5, -2.0, 3.0, 9.0]
MASKS: tuple[dict[str, Any], ...] = ({}, {"causal": True}, {"causal": True, "window": 3})


def told(algorithm: str, nq: int = 9, nk: int = 9, **said: Any) -> Scenario:
    """Return a run of four heads with sinks; split-kv deals its keys out to three."""
    one = scenario(algorithm, nq=nq, nk=nk, d=4, heads=4, kv_heads=2, rows=4, cols=3,
                   scores={"sink_logits": LOGITS}, **said)  # fmt: skip
    return with_values(one, {"tiling": {"splits": 3}}) if algorithm == "split-kv" else one


@pytest.mark.parametrize("algorithm", ["naive", "flash1", "flash2", "split-kv"])
def test_a_row_that_sees_no_key_has_the_sink_as_its_lse(algorithm):
    trace = trace_of(told(algorithm, nq=12, nk=5, mask={"causal": True}))
    assert not trace.output[:, :7].any()
    np.testing.assert_allclose(trace.lse[:, :7], np.repeat([LOGITS], 7, axis=0).T)


@pytest.mark.parametrize(
    ("algorithm", "loads"),
    [("naive", 4 * 3), ("flash2", 4 * 3), ("flash1", 4), ("split-kv", 2 * 5 + 2)],
)
def test_a_row_block_loads_the_logit_of_each_head_of_its_rows(algorithm, loads):
    """Nine rows in blocks of four; packed, eighteen rows of two heads, one block with both."""
    totals = program_of(told(algorithm)).totals
    assert totals.read["sink"] == 4 * loads
    assert totals.write["sink"] == 0


def test_the_weights_of_a_row_lack_what_the_sink_has():
    w = resolve(told("flash2", mask={"causal": True}))
    maps = HeadScores(w, read_inputs(w)).maps()
    lse = trace_of(told("flash2", mask={"causal": True})).lse
    for head, logit in enumerate(LOGITS):
        np.testing.assert_allclose(
            maps.of(head).sum(axis=1), 1 - np.exp(logit - lse[head]), atol=2e-6
        )


def file_of(folder: Path, **more: np.ndarray) -> Path:
    rng = np.random.default_rng(0)
    path = folder / "in.safetensors"
    one = {name: rng.standard_normal((2, 5, 4)).astype(np.float32) for name in "qkv"}
    save_file({**one, **more}, path)
    return path


@pytest.mark.parametrize("said", [{}, {"sink_logits": "file"}], ids=str)
def test_logits_of_a_file_are_used_unless_the_scenario_says_otherwise(tmp_path, said):
    path = file_of(tmp_path, sink_logits=np.array([1.5, -3.0], dtype=np.float32))
    tables = {"input": {"source": "file", "path": str(path)}}
    w = resolve(parse_scenario({**tables, "scores": said}))
    assert w.sink_logits == (1.5, -3.0)
    assert not resolve(parse_scenario({**tables, "scores": {"sink_logits": False}})).sink_logits
    own = parse_scenario({**tables, "scores": {"sink_logits": [4, 2]}, "input": {
        "source": "file", "path": str(path), "head": [1]}})  # fmt: skip
    assert resolve(own).sink_logits == (2.0,)


@pytest.mark.parametrize(
    ("more", "said", "expected"),
    [
        ({}, "file", 'scores.sink_logits = "file": expected a list, or an input file'),
        ({}, [1.0], "number of sink_logits = 1: expected 2, one for each query head"),
        ({"sink_logits": np.zeros(3, np.float32)}, "file", "number of sink_logits = 3"),
        ({"sink_logits": np.zeros((1, 2), np.float32)}, "file", "expected one axis, not empty"),
        ({"sink_logits": np.array([0, np.nan], np.float32)}, "file", "tensor sink_logits"),
        ({}, "always", 'expected "file", false, or numbers'),
        ({}, [1e40, 0], 'expected "file", false, or numbers'),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_line(tmp_path, more, said, expected):
    path = file_of(tmp_path, **more)
    with pytest.raises(InputError) as refused:
        resolve(parse_scenario({"input": {"source": "file", "path": str(path)},
                                "scores": {"sink_logits": said}}))  # fmt: skip
    assert expected in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("algorithm", ["flash1", "flash2"])
def test_what_a_row_begins_with_is_told_at_its_first_tile(algorithm):
    trace = trace_of(scenario(algorithm, nq=4, nk=8, rows=4, cols=4,
                              scores={"sink_logits": [0.5]}))  # fmt: skip
    for visit, told in ((0, True), (1, False)):
        now = trace.snapshot(visit, len(trace.program.ops(visit)) - 1)
        for cell in (Cell("m", 2, 0), Cell("l", 2, 0)):
            lines = explain(now, cell).lines
            assert any("sink logit: a key" in str(part) for line in lines for part in line) is told
