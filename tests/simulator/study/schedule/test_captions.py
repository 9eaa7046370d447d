"""Numbers of the lesson on schedules are those that its panel shows beside them."""

import numpy as np
import pytest

from simulator.base.assets import LESSONS
from simulator.base.errors import InputError
from simulator.lesson.reader import load_lesson
from simulator.problem.scenario import Scenario, with_values
from simulator.problem.workload import resolve
from simulator.program.algorithms import algorithm_of
from simulator.run.trace import simulate
from simulator.study.schedule.state import TimelineRow
from tests.helpers.lesson_texts import computed
from tests.helpers.refused import refused
from tests.helpers.runs import program_of
from ui.look.layouts import LAYOUT_PANELS
from ui.panels.schedule.study import schedule_state

LESSON = load_lesson(LESSONS / "24-schedules.md", LAYOUT_PANELS)
TOGETHER = load_lesson(LESSONS / "30-batch-invariance.md", LAYOUT_PANELS).steps[1].scenario
ROWS, CAUSAL, DECODING = (LESSON.steps[n].scenario for n in (1, 2, 4))


def check(row: TimelineRow, arguments: str, scenario: Scenario) -> None:
    """Compare what a lesson says of a run with a row of the panel."""
    found = row.schedule
    assert {each.residency.blocks for each in found.launches[:1]} == {1}
    assert computed(f"schedule_seconds({arguments})", scenario) == pytest.approx(found.seconds)
    assert computed(f"schedule_idle({arguments})", scenario) == pytest.approx(found.idle)


def test_algorithms() -> None:
    for row in schedule_state(program_of(ROWS), "algorithms", "model").rows[1:]:
        name = algorithm_of(row.schedule.program.workload).name
        check(row, f'"{name}"', ROWS)
        blocks = len(row.schedule.launches[0].blocks)
        assert computed(f'schedule_blocks("{name}")', ROWS) == blocks


def test_orders() -> None:
    rows = schedule_state(program_of(CAUSAL), "orders", "model").rows
    for row in rows:
        check(row, f'"", "{row.schedule.order}"', CAUSAL)
    works = rows[0].schedule.launches[0].works
    assert computed("schedule_uneven()", CAUSAL) == pytest.approx(max(works) / min(works))


def test_splits() -> None:
    state = schedule_state(program_of(DECODING), "splits", "model")
    for row in state.rows:
        splits = row.schedule.program.workload.splits
        check(row, f'"split-kv", "model", {splits}', DECODING)
        blocks = len(row.schedule.launches[0].blocks)
        assert computed(f'schedule_blocks("split-kv", {splits})', DECODING) == blocks
    assert computed("auto_splits()", DECODING) == splits > 1


@pytest.mark.long
def test_bits_that_move_are_those_of_other_runs() -> None:
    """Of the same sequence alone, or with another number of splits."""

    def output(**tiling: object) -> np.ndarray:
        return simulate(with_values(TOGETHER, {"tiling": tiling})).output

    ours = output()
    alone = simulate(with_values(TOGETHER, {"batch": {"lengths": [60]}}))
    assert alone.workload.splits != resolve(TOGETHER).splits
    assert computed("batch_moves()", TOGETHER) == np.sum(ours != alone.output) > 0
    for splits in (1, 2, 4, 8, 16):
        moved = np.sum(ours != output(splits=splits))
        assert computed(f"split_moves({splits})", TOGETHER) == moved > 0
    assert computed("split_moves(3)", TOGETHER) == 0
    sized = with_values(TOGETHER, {"tiling": {"splits": None, "split_size": 8}})
    assert computed("batch_moves()", sized) == 0
    assert computed("split_moves(3)", sized) > 0
    assert "expected one that deals keys out to splits" in refused(computed, "batch_moves()", ROWS)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ('schedule_seconds("flash3")', "expected one of naive"),
        ('schedule_seconds("", "shortest")', "expected one of model, index, longest, persistent"),
        ('schedule_idle("", "model", 1000)', "tiling.splits = 1000"),
    ],
)
def test_what_is_not_known_is_refused(asked: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        computed(asked, DECODING)
