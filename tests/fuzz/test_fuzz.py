"""The fuzzer itself, and a short run of it: `make fuzz` is the long one."""

import sys
from itertools import chain
from pathlib import Path
from random import Random

import pytest

from tests.fuzz.bombs import bombs
from tests.fuzz.mutate import MOST_BYTES, mutated
from tests.fuzz.runner import Case, Worker, case_of, judged, run
from tests.fuzz.seeds import KINDS, write_seeds

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="measured in /proc")

FILES = 80


@pytest.fixture(scope="module")
def seeds(qapp, tmp_path_factory) -> list[Path]:
    return write_seeds(tmp_path_factory.mktemp("seeds"))


@pytest.mark.long
def test_every_kind_has_seeds_that_open(seeds, tmp_path) -> None:
    worker = Worker(tmp_path, [])
    try:
        came = {(s, worker.open(Case(s.name, s.read_bytes(), 0))[0]) for s in seeds}
    finally:
        worker.close()
    assert {path.name.partition(".")[0] for path in seeds} == set(KINDS)
    refused = {path.name for path, outcome in came if outcome != "read"}
    assert refused == {"model.all.toml"}  # it holds more than one


@pytest.mark.long
def test_small_files_that_claim_much_and_some_damaged_ones(seeds, tmp_path) -> None:
    hard = [Case(name, data, -1) for name, data in bombs()]
    cases = chain(hard, (case_of(seeds, 1, n) for n in range(FILES)))
    tally = run(cases, seeds, tmp_path, jobs=2)
    assert [(finding.case.name, finding.why) for finding in tally.findings] == []
    assert sum(tally.outcomes.values()) == len(hard) + FILES
    assert {kind for kind, _ in tally.outcomes} == set(KINDS)


def test_a_file_comes_from_its_numbers_alone(seeds) -> None:
    numbers = range(20)
    first = [case_of(seeds, 3, n) for n in numbers]
    assert first == [case_of(seeds, 3, n) for n in numbers]
    assert len({case.data for case in first}) > 15
    assert [case.data for case in first] != [case_of(seeds, 4, n).data for n in numbers]
    data = seeds[0].read_bytes()
    many = [mutated(data, seeds[0].suffix, Random(n), [data]) for n in range(60)]
    assert max(map(len, many)) <= MOST_BYTES


@pytest.mark.parametrize(
    ("outcome", "seconds", "over", "words"),
    [
        ("read", 1.9, 499_000_000, ""),
        ("refused", 0.0, 0, ""),
        ("raised", 0.0, 0, "ValueError: x"),
        ("died", 0.0, 0, "segmentation fault"),
        ("read", 2.1, 0, "2.1 s of the processor"),
        ("refused", 0.0, 501_000_000, "501 MB over its own"),
    ],
)
def test_what_counts_as_a_finding(outcome, seconds, over, words) -> None:
    found = judged(Case("npz.1.npz", b"x", 1), outcome, seconds, over, words)
    assert (found is None) is (words == "")
    assert found is None or words in found.why


@pytest.mark.long
def test_a_worker_tells_of_faults_and_goes_on_after_its_death(tmp_path) -> None:
    worker = Worker(tmp_path, [])
    try:
        outcome, _, _, told = worker.open(Case("no such kind.toml", b"", 0))
        assert (outcome, "KeyError" in told) == ("raised", True)
        assert worker.open(Case("scenario.a.toml", b"[mask]\n", 0))[0] == "refused"
        worker.process.kill()
        worker.process.wait()
        assert worker.open(Case("scenario.a.toml", b"", 0))[0] == "died"
        assert worker.open(Case("report.a.json", b"", 0))[0] == "read"
    finally:
        worker.close()
