"""What a run is written to: arrays as .npz and .json, traffic as .csv."""

import csv
import json
import zipfile

import numpy as np
import pytest

from simulator.base.assets import SCENARIOS
from simulator.problem.scenario import parse_scenario, with_values
from simulator.problem.workload import resolve
from simulator.run.results import check_output, write_results
from simulator.run.trace import simulate
from tests.helpers.refused import refused
from tests.helpers.scarce import free_memory
from ui.app.cli import main


def hidden_rows():
    """Return a run in which the first rows see nothing."""
    return simulate(parse_scenario({
        "attention": {"seqlen_q": 12, "seqlen_k": 6, "head_dim": 4, "heads": 2},
        "mask": {"causal": True}, "tiling": {"rows": 4, "cols": 3},
    }))  # fmt: skip


def test_json_holds_the_same_numbers_as_npz(tmp_path):
    trace = hidden_rows()
    summary, arrays = trace.run(keep_arrays=True)
    for ending in (".npz", ".json"):
        write_results(tmp_path / f"a{ending}", trace.program, summary, arrays)
    saved = np.load(tmp_path / "a.npz")
    assert set(saved.files) == {*arrays, "summary.json"}
    assert (tmp_path / "summary.json").read_text() == json.dumps(summary, indent=1)
    text = (tmp_path / "a.json").read_text()
    told = json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert told.pop("summary") == summary
    assert set(told) == set(arrays)
    assert np.isinf(arrays["lse"]).any()
    for name, values in told.items():
        back = np.array(values, dtype=np.float64)  # reads "-Infinity" as Python's float does
        assert np.array_equal(back.astype(np.float32), saved[name], equal_nan=True)
        assert np.array_equal(back, saved[name].astype(np.float64), equal_nan=True)
    assert '"-Infinity"' in text


def test_an_array_of_more_than_4_gib_has_room_for_its_size(tmp_path):
    trace = hidden_rows()
    path = tmp_path / "a.npz"
    write_results(path, trace.program, *trace.run(keep_arrays=True))
    data = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            if info.filename.endswith(".npy"):
                # The length of the extra field before the data: 20 bytes of it hold long sizes.
                at = info.header_offset + 28
                assert int.from_bytes(data[at : at + 2], "little") == 20


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_json_has_no_number_for_is_a_string(bad, tmp_path):
    trace = hidden_rows()
    summary, arrays = trace.run(keep_arrays=True)
    arrays = {name: array.copy() for name, array in arrays.items()}
    arrays["o"][1, 2, 3] = bad
    write_results(tmp_path / "a.json", trace.program, summary, arrays)
    told = json.loads((tmp_path / "a.json").read_text(), parse_constant=pytest.fail)
    assert isinstance(told["o"][1][2][3], str)
    assert np.array_equal(float(told["o"][1][2][3]), bad, equal_nan=True)


@pytest.mark.parametrize("name", ["causal", "naive", "flash1", "grouped-heads"])
def test_traffic_is_the_sum_over_the_ops(name, tmp_path):
    trace = simulate(SCENARIOS / f"{name}.toml")
    target = tmp_path / "a.csv"
    assert main(["run", str(SCENARIOS / f"{name}.toml"), "-o", str(target)]) == 0
    with target.open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == len(trace)
    read, write, flops = {}, {}, 0
    for index, line in enumerate(lines):
        visit = trace.program.visit(index)
        assert [int(line[k]) for k in ("visit", "launch", "head", "i", "j")] == [
            index, visit.launch, visit.head, visit.i, visit.j
        ]  # fmt: skip
        for op in trace.program.ops(index):
            flops += op.flops
            for move in op.moves:
                into = read if op.loads else write
                into[move.tensor] = into.get(move.tensor, 0) + move.bytes
        for tensor in trace.program.tensors:
            assert int(line[f"{tensor}_read_bytes"]) == read.get(tensor, 0)
            assert int(line[f"{tensor}_write_bytes"]) == write.get(tensor, 0)
        assert int(line["read_bytes"]) == sum(read.values())
        assert int(line["write_bytes"]) == sum(write.values())
        assert int(line["flops"]) == flops
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert int(lines[-1]["read_bytes"]) == summary["hbm"]["read_bytes"]
    assert int(lines[-1]["flops"]) == summary["matmul_flops"]


@pytest.mark.parametrize("name", ["a.txt", "a", "summary.json", "none/a.json"])
def test_what_cannot_be_written_to_is_refused_beforehand(name, tmp_path):
    assert refused(check_output, tmp_path / name, hidden_rows().workload)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("algorithm", "numbers"),
    # o and lse of 2 heads and 12 rows; but for naive m and l after each of two column blocks.
    [("naive", 2 * 12 * (4 + 1)), ("flash2", 2 * 12 * (4 + 1 + 2 * 2)),
     ("flash1", 2 * 12 * (4 + 1 + 2 * 2))],
)  # fmt: skip
def test_arrays_that_do_not_fit_in_memory_are_refused(algorithm, numbers, tmp_path):
    scenario = with_values(hidden_rows().workload.scenario, {"attention": {"algorithm": algorithm}})
    workload = resolve(scenario)
    with free_memory(4 * numbers / 0.9 + 1):
        check_output(tmp_path / "a.npz", workload)
    with free_memory(4 * numbers / 0.9 - 1):
        check_output(tmp_path / "a.csv", workload)  # it holds no arrays
        told = refused(check_output, tmp_path / "a.npz", workload)
        assert "arrays that fit in memory: these need 0" in told
