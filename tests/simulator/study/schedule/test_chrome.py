"""Traces: what is written is read again, and files of others are read or refused in one line."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.base.errors import InputError
from simulator.base.limits import TRACE_BYTES
from simulator.study.schedule.blocks import MOST_BLOCKS
from simulator.study.schedule.chrome import read_trace, trace_text, write_trace
from simulator.study.schedule.events import Events, events_of
from tests.helpers.refused import refused
from tests.helpers.runs import scenario
from tests.simulator.study.schedule.test_schedule import schedule

ABOUT = {"model": "a model"}


def some(starts: list[int], lasts: list[int], lanes: list[int]) -> Events:
    """Return events of whole nanoseconds."""
    start, last = np.array(starts) * 1e-9, np.array(lasts) * 1e-9
    ones = np.ones(len(starts))
    names = tuple(f"piece {n}" for n in range(len(starts)))
    shown = tuple(f"SM {n}" for n in range(12))
    return Events(shown, np.array(lanes), 0 * ones, ones, start, start + last, ones, names)


pieces = st.lists(
    st.tuples(st.integers(0, 10**9), st.integers(0, 10**6), st.integers(0, 11)), min_size=1
)


@given(pieces)
def test_what_is_written_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, drawn: list
) -> None:
    own = some(*(list(column) for column in zip(*drawn, strict=True)))
    path = tmp_path_factory.getbasetemp() / "trace.json"
    write_trace(path, [("model", own)], ABOUT)
    found = read_trace(path)
    first = own.start.min()
    expected = sorted(
        (own.names[n], own.lanes[own.lane[n]], own.start[n] - first, own.end[n] - first)
        for n in range(len(own.names))
    )
    again = sorted(
        (found.names[n], found.lanes[found.lane[n]], found.start[n], found.end[n])
        for n in range(len(found.names))
    )
    for one, other in zip(expected, again, strict=True):
        assert one[:2] == other[:2]
        assert one[2:] == pytest.approx(other[2:], abs=1e-11)


def test_a_schedule_is_a_trace_with_a_process_and_lanes_that_have_names() -> None:
    own = schedule(scenario("flash2", nq=64, heads=3))
    said = json.loads(trace_text([("model", events_of(own))], ABOUT))
    assert said["otherData"] == ABOUT
    named = {
        (e["name"], e["tid"]): e["args"]["name"] for e in said["traceEvents"] if e["ph"] == "M"
    }
    assert named["process_name", 0] == "model"
    assert named["thread_name", 7] == "SM 7"
    blocks = [e for e in said["traceEvents"] if e["ph"] == "X"]
    assert len(blocks) == len(own.launches[0].blocks)
    ends = max(e["ts"] + e["dur"] for e in blocks)
    assert ends == pytest.approx(1e6 * own.seconds, abs=1e-5)


def test_the_longest_schedule_that_is_written_can_be_read() -> None:
    count = MOST_BLOCKS
    name = "scores, KV head 4095, row block 65535, split 255"
    ones = np.ones(count)
    start = np.linspace(0, 1, count)
    lanes = tuple(f"SM {n}" for n in range(132))
    own = Events(
        lanes, np.arange(count) % 132, 0 * ones, ones, start, start + 0.1, ones, (name,) * count
    )
    assert len(trace_text([("model", own)], ABOUT)) < TRACE_BYTES


def written(folder: Path, text: str) -> Path:
    path = folder / "trace.json"
    path.write_text(text, encoding="utf-8")
    return path


def test_pairs_of_begin_and_end_are_events_too(tmp_path: Path) -> None:
    events = [
        {"ph": "B", "ts": 10, "name": "outer", "tid": 2},
        {"ph": "B", "ts": 11, "name": "inner", "tid": 2},
        {"ph": "E", "ts": 12, "tid": 2},
        {"ph": "E", "ts": 20, "tid": 2},
        {"ph": "E", "ts": 30, "tid": 2},
        {"ph": "i", "ts": 1, "name": "instant", "tid": 10},
        {"ph": "X", "ts": 15, "dur": 1, "name": "alone", "pid": "gpu", "tid": 10},
    ]
    found = read_trace(written(tmp_path, json.dumps(events)))
    assert found.names == ("outer", "inner", "alone")
    assert found.lanes == (" 2", "gpu 10")  # process and thread, which have no other names
    assert found.lane.tolist() == [0, 0, 1]
    assert found.start.tolist() == pytest.approx([0, 1e-6, 5e-6])
    assert found.end.tolist() == pytest.approx([10e-6, 2e-6, 6e-6])
    assert found.weight.tolist() == pytest.approx([1.0, 0.1, 0.1])
    instants = [{"ph": "X", "ts": ts, "dur": 0, "tid": 12 - ts} for ts in (2, 3)]
    found = read_trace(written(tmp_path, json.dumps(instants)))
    assert (found.weight.tolist(), found.lanes) == ([1.0, 1.0], (" 9", " 10"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected a Chrome trace: JSON"),
        ("[" * 100_000, "expected a Chrome trace: JSON"),
        ("{}", "traceEvents: expected a list of events"),
        ("[]", "expected an event with a duration"),
        ('[{"ph": "X", "ts": NaN, "dur": 1}]', "expected an event with a duration"),
        ('[{"ph": "X", "ts": 1e300, "dur": 1}]', "expected an event with a duration"),
        ('[{"ph": "X", "ts": 1, "dur": -1}]', "expected an event with a duration"),
        ('[{"ph": "X", "ts": "1", "dur": 1}]', "expected an event with a duration"),
        ("1" * 5000, "expected a Chrome trace: JSON"),
        (
            json.dumps([{"ph": "X", "ts": 1, "dur": 1, "tid": n} for n in range(5000)]),
            "threads = 5000: expected at most 4096",
        ),
        ("[" + "{}," * 300_000 + "{}]", "events = 300001: expected at most 262144"),
        ("[" + "{}," * (2**18 - 1) + "{}]", "expected an event with a duration"),  # the most
    ],
)
def test_what_is_no_trace_is_refused_in_one_line(tmp_path: Path, text: str, said: str) -> None:
    assert said in refused(read_trace, written(tmp_path, text))


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected a trace of at most 8388608"):
        read_trace(written(tmp_path, "[" + " " * TRACE_BYTES + "]"))
    assert refused(read_trace, tmp_path / "none.json")
