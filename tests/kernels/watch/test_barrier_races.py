"""A kernel without a barrier: what a lesson says of it is seen here, or was, and says which."""

import os
import subprocess
import sys
import tomllib
from dataclasses import replace

import pytest

from kernels.build.sources import FOLDER
from kernels.devices.barriers import SEEN, UNSEEN, race_without
from simulator.base.assets import ASSETS, LESSONS
from simulator.base.errors import InputError
from simulator.lesson.reader import load_lesson, resolve_step
from simulator.lesson.record import MOST_WORDS, word_count
from simulator.problem.scenario import parse_scenario
from simulator.problem.workload import Workload, resolve
from simulator.study.barrier import RECORDED, BarrierRace, recorded_race
from tests.helpers.refused import refused
from tests.kernels.watch.watched import needs_watch
from ui.look.layouts import LAYOUT_PANELS
from ui.look.lesson_text import FORMATS

RECORDS = tomllib.loads((ASSETS / "barriers.toml").read_text("utf-8"))
LESSON = load_lesson(LESSONS / "08-tiles-and-sram.md", LAYOUT_PANELS)
(STEP,) = (n for n, step in enumerate(LESSON.steps) if any(p.barrier for p in step.points))
NO_COMPILER = """
import sys
from kernels.devices.barriers import race_without
from simulator.problem.scenario import parse_scenario
from simulator.problem.workload import resolve
from tests.kernels.watch.test_barrier_races import LESSON, STEP
print(race_without(resolve(LESSON.steps[STEP].scenario), sys.argv[1]))
"""


def workload(of: dict[str, object], **more: object) -> Workload:
    """Return a workload of two blocks each way."""
    of = {**of, **more}
    sizes = {name: of.pop(name) for name in ("rows", "cols")}
    return resolve(parse_scenario({"attention": {**of, "seqlen_q": 128}, "tiling": sizes}))


@pytest.mark.long
@needs_watch
@pytest.mark.parametrize("barrier", RECORDS)
def test_what_is_recorded_is_what_is_seen(barrier: str) -> None:
    w = workload(RECORDS[barrier]["of"])
    assert race_without(w, barrier) == replace(recorded_race(w, barrier), seen=SEEN)


@pytest.mark.long
@needs_watch
def test_a_lesson_tells_what_is_seen() -> None:
    step = resolve_step(LESSON, STEP, FORMATS, race_without)
    race = race_without(resolve(step.scenario), step.points[0].barrier)
    assert race.seen in step.caption
    assert f"struck out, at {race.at}," in step.caption
    assert f"Thread {race.writer} writes {race.tensor} at {race.writes}" in step.caption
    assert f"thread {race.reader} reads it at {race.reads}" in step.caption
    for place, words in (
        (race.at, step.points[0].barrier), (race.writes, f"load_tile({race.tensor}_shared"),
        (race.reads, f"{race.tensor}_shared"),
    ):  # fmt: skip
        file, _, line = place.partition(":")
        assert words in (FOLDER / file).read_text("utf-8").split("\n")[int(line) - 1]
    assert race.writer // 32 != race.reader // 32  # or __syncwarp would be enough


def test_without_a_detector_it_says_that_it_is_recorded() -> None:
    step = resolve_step(LESSON, STEP, FORMATS)
    assert step.caption.endswith(f"{RECORDED}.")

    def unseen(w: Workload, barrier: str) -> BarrierRace:
        return replace(recorded_race(w, barrier), seen=UNSEEN)

    assert word_count(resolve_step(LESSON, STEP, FORMATS, unseen).caption) <= MOST_WORDS


def test_a_machine_without_a_compiler_shows_the_record_and_says_so() -> None:
    barrier = next(iter(RECORDS))
    done = subprocess.run(
        [sys.executable, "-c", NO_COMPILER, barrier], capture_output=True, text=True, check=False,
        env={**os.environ, "CXX": "/none/g++", "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert done.stderr == ""
    assert UNSEEN in done.stdout
    assert str(RECORDS[barrier]["at"]) in done.stdout


@needs_watch
@pytest.mark.parametrize(
    ("barrier", "more", "words"),
    [
        ("a barrier that is not there", {}, "one of every warp is done with the tiles of the vis"),
        ("the tiles are whole", {"heads": 4096, "kv_heads": 1}, "at most 2097152 pairs"),
    ],
)
def test_what_cannot_be_watched_is_refused_in_a_line(
    barrier: str, more: dict[str, object], words: str
) -> None:
    of = RECORDS["the tiles are whole"]["of"]
    with pytest.raises(InputError, match=words):
        race_without(workload(of, **more), barrier)


def test_a_record_is_of_one_barrier_and_of_its_sizes() -> None:
    of = RECORDS["the tiles are whole"]["of"]
    assert "one that is recorded" in refused(recorded_race, workload(of), "another")
    with pytest.raises(InputError, match="one that is recorded"):
        recorded_race(workload(of, rows=32), "the tiles are whole")
