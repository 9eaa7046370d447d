"""What was measured on a GPU is shown for the very workload it was measured on, and no other."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from simulator.base.assets import SCENARIOS
from simulator.problem.scenario import load_scenario, parse_scenario
from simulator.problem.workload import Workload, resolve
from simulator.program.algorithms import tile_program
from simulator.study.gpu_report import (
    REPORT,
    WORKLOAD,
    gpu_report,
    measured_dram,
    measured_run,
    read_report,
    signature,
)
from simulator.study.traffic_curve import run_traffic

ATTENTION = {"algorithm": "flash2", "heads": 8, "seqlen_q": 512, "head_dim": 64,
             "dtype": "float16"}  # fmt: skip
TABLES: dict[str, dict[str, Any]] = {
    "attention": ATTENTION,
    "tiling": {"rows": 64, "cols": 64},
    "mask": {"causal": True, "window": 100, "sinks": 4},
}
CHANGES = [
    {"attention": {"algorithm": "naive"}}, {"attention": {"heads": 4}},
    {"attention": {"kv_heads": 2}}, {"attention": {"seqlen_q": 500}},
    {"attention": {"seqlen_k": 600}}, {"attention": {"head_dim": 32}},
    {"attention": {"value_dim": 32}}, {"attention": {"dtype": "bfloat16"}},
    {"tiling": {"rows": 32}}, {"tiling": {"cols": 32}}, {"mask": {"causal": False}},
    {"mask": {"window": 99}}, {"mask": {"sinks": 3}}, {"mask": {"window": 0, "sinks": 0}},
    {"faults": {"late_scale": True}},
]  # fmt: skip


def workload(**changes: dict[str, Any]) -> Workload:
    names = {*TABLES, *changes}
    return resolve(parse_scenario({n: {**TABLES.get(n, {}), **changes.get(n, {})} for n in names}))


def report(w: Workload, status: str = "passed") -> dict[str, Any]:
    """Return a report of one workload, as it comes back from its file."""
    said = {
        "machine": {"GPU": "a card"},
        "checks": [
            {"name": "other", "status": "passed", "figures": {"lines": [{"ms": {"fast": 1.0}}]}},
            {"status": status, "figures": {"lines": [{WORKLOAD: signature(w), "ms": 0.5}]}},
            {
                "status": status,
                "figures": {"dram": [{WORKLOAD: signature(w), "read": 11, "write": 31}]},
            },
        ],
    }
    found: dict[str, Any] = json.loads(json.dumps(said))
    return found


def test_a_run_that_was_measured_is_found() -> None:
    w = workload()
    found = measured_run(w, 10**9, report(w))
    assert (found.algorithm, found.gpu, found.seconds, found.rate) == (
        "flash2", "a card", 5e-4, 2e12,
    )  # fmt: skip
    assert measured_dram(w, report(w)) == 42


@pytest.mark.parametrize("changes", CHANGES, ids=str)
def test_no_other_workload_has_its_figures(changes: dict[str, dict[str, Any]]) -> None:
    other = workload(**changes)
    assert measured_run(other, 1, report(workload())) is None
    assert measured_dram(other, report(workload())) is None


def test_heads_that_share_otherwise_are_another_workload() -> None:
    w = workload(attention={"heads": 4, "kv_heads": 2})
    other = replace(w, kv_head_of=(0, 0, 0, 1))
    assert measured_dram(w, report(w)) == 42
    assert measured_dram(other, report(w)) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"input": {"seed": 7}},
        {"attention": {"scale": 0.5}},
        {"hardware": {"preset": "T4"}},
        {"position": {"kind": "rope"}},
    ],
    ids=str,
)
def test_what_no_kernel_takes_longer_for_is_the_same_workload(
    changes: dict[str, dict[str, Any]],
) -> None:
    assert measured_dram(workload(**changes), report(workload())) == 42


@pytest.mark.parametrize(
    "changes", [{"softcap": 30.0}, {"alibi": True}, {"sink_logits": [1.0] * 8}], ids=str
)
def test_changed_scores_are_another_workload(changes: dict[str, Any]) -> None:
    assert measured_dram(workload(scores=changes), report(workload())) is None
    assert measured_dram(workload(scores=changes), report(workload(scores=changes))) == 42


def test_sinks_without_a_window_change_nothing() -> None:
    without = {"window": 0, "sinks": 0}
    said = {"causal": True, "window": 0, "sinks": 0}
    assert signature(workload(mask={**without, "sinks": 9}))["mask"] == said
    assert signature(workload())["mask"] == {"causal": True, "window": 100, "sinks": 4}
    w = workload(mask=without)
    assert measured_dram(workload(mask={**without, "sinks": 9}), report(w)) == 42


def test_a_check_that_failed_is_not_trusted() -> None:
    w = workload()
    assert measured_run(w, 1, report(w, "failed")) is None
    assert measured_dram(w, report(w, "failed")) is None


def test_a_run_out_of_memory_has_no_time() -> None:
    said = report(workload())
    del said["checks"][1]["figures"]["lines"][0]["ms"]
    assert measured_run(workload(), 1, said) is None


@pytest.mark.parametrize("value", [-1, 1e18, math.inf, math.nan, True, "1", None, [1]], ids=str)
def test_what_is_no_number_that_can_be_measured_is_left_out(value: object) -> None:
    w = workload()
    for key, change in (("lines", "ms"), ("dram", "read"), ("dram", "write")):
        said = report(w)
        (figure,) = (f for c in said["checks"][1:] for f in c["figures"].get(key, ()))
        figure[change] = value
        assert measured_run(w, 1, said) is None or key == "dram"
        assert measured_dram(w, said) is None or key == "lines"


def test_no_bytes_may_be_measured_but_no_time_may_not() -> None:
    w, said = workload(), report(workload())
    said["checks"][1]["figures"]["lines"][0]["ms"] = 0
    said["checks"][2]["figures"]["dram"][0] |= {"read": 0, "write": 10**17}
    assert measured_run(w, 1, said) is None
    assert measured_dram(w, said) == 10**17


@pytest.mark.parametrize("said", [{}, {"checks": []}, {"machine": {}, "not_run": "no GPU"}])
def test_without_a_machine_nothing_is_claimed(said: dict[str, Any]) -> None:
    w = workload()
    for nothing in (said, {**report(w), "machine": {}}):
        assert measured_run(w, 1, nothing) is None
        assert measured_dram(w, nothing) is None


@pytest.mark.parametrize("content", [None, b"", b"\xff", b"[1]", b"{"])
def test_a_report_that_is_not_there_is_no_measurement(
    tmp_path: Path, content: bytes | None
) -> None:
    path = tmp_path / "report.json"
    if content is not None:
        path.write_bytes(content)
    assert read_report(path) == {}


def test_the_report_is_the_one_in_docs_and_ships() -> None:
    root = Path(__file__).resolve().parents[3]
    assert root / "docs" / "gpu" / "report.json" == REPORT
    assert gpu_report() == json.loads(REPORT.read_text("utf-8"))
    assert '("docs/gpu", "docs/gpu")' in (root / "packaging" / "contents.py").read_text("utf-8")


def test_a_report_that_says_not_yet_run_shows_nothing() -> None:
    said = gpu_report()
    assert said.get("machine") or not said["checks"]
    for path in sorted(SCENARIOS.glob("*.toml")) if not said.get("machine") else ():
        program = tile_program(resolve(load_scenario(path)))
        assert measured_run(program.workload, 1, said) is None
        assert run_traffic(program).dram is None
