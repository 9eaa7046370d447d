"""The running sum as a bar: what each tile has given to it, relative to the maximum of now."""

from typing import Any

import numpy as np
import pytest

from simulator.problem.scenario import with_values
from simulator.program.playback import Granularity, step
from simulator.run.motion import Motion
from simulator.run.row_report import row_report
from simulator.run.trace import Trace
from tests.helpers.runs import scenario, trace_of
from ui.panels.softmax.model import moves_softmax, sum_bar, sum_by_now

SHAPE: dict[str, Any] = {"nq": 14, "nk": 17, "d": 8, "rows": 4, "cols": 3, "temperature": 0.4}


def states(trace: Trace) -> Any:
    for visit in range(len(trace.program)):
        for op in range(len(trace.program.ops(visit))):
            yield trace.snapshot(visit, op)


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("algorithm", ["flash1", "flash2"])
@pytest.mark.parametrize("mask", [{}, {"causal": True}])
def test_its_parts_come_to_the_recorded_sum(algorithm: str, mask: dict[str, Any]) -> None:
    found = 0
    for now in states(trace_of(scenario(algorithm, mask=mask, **SHAPE))):
        for row in now.visit.rows:
            bar = sum_bar(now, row_report(now, row))
            r = row - now.visit.rows.start
            total = now.l[r] if now.made("l") else now.tile.l_prev[r]
            if bar is None:
                assert total == 0
                continue
            found += 1
            assert sum(bar.parts) == pytest.approx(total, rel=1e-4)
            assert sum(bar.parts) <= bar.most
            before = now.visit.j + now.made("l")
            assert len(bar.parts) == before
    assert found > 100


def test_a_sum_that_forgets_alpha_has_no_parts() -> None:
    wrong = with_values(scenario("flash2", **SHAPE), {"faults": {"forget_alpha": True}})
    trace = trace_of(wrong)
    whole = [sum_bar(now, row_report(now, now.visit.rows.start)) is None for now in states(trace)]
    assert any(whole)


def test_a_sum_that_is_larger_than_any_or_infinite_has_no_parts() -> None:
    wrong = with_values(
        scenario("flash2", **SHAPE), {"attention": {"scale": 1e4}, "faults": {"no_maximum": True}}
    )
    trace = trace_of(wrong)
    infinite = 0
    for now in states(trace):
        for row in now.visit.rows:
            bar = sum_bar(now, row_report(now, row))
            assert bar is None or bar.parts.sum() <= 1.001 * bar.most
            infinite += not np.isfinite(now.l[row - now.visit.rows.start])
    assert infinite > 10


@pytest.mark.parametrize("algorithm", ["naive", "split-kv"])
def test_other_sums_have_no_bar_where_they_are_not_of_tiles(algorithm: str) -> None:
    trace = trace_of(scenario(algorithm, **SHAPE))
    last = trace.snapshot(len(trace.program) - 1)
    assert sum_bar(last, row_report(last, last.visit.rows.start)) is None


@pytest.mark.parametrize("algorithm", ["flash1", "flash2"])
def test_old_parts_shrink_by_alpha_while_the_new_one_grows_by_its_terms(algorithm: str) -> None:
    trace = trace_of(scenario(algorithm, **SHAPE))
    tried = 0
    for after in states(trace):
        if "l" not in after.op.makes or after.visit.j == 0:
            continue
        at = step(trace.program, after.cursor, Granularity.OP, forward=False)
        motion = Motion(trace.snapshot(at.visit, at.op), after)
        assert moves_softmax(after.op)
        for row in after.visit.rows:
            report = row_report(after, row)
            begin, end = sum_bar(motion.before, report), sum_bar(after, report)
            frames = [sum_by_now(motion, share, report) for share in (1e-9, 0.3, 0.7, 1 - 1e-9)]
            assert begin is not None
            assert end is not None
            parts = np.array([frame.parts for frame in frames if frame is not None])
            tried += 1
            np.testing.assert_allclose(parts[0, :-1], begin.parts, rtol=1e-3, atol=1e-9)
            assert parts[0, -1] < 1e-12
            np.testing.assert_allclose(parts[-1, :-1], end.parts[:-1], rtol=1e-3, atol=1e-9)
            assert (np.diff(parts[:, :-1], axis=0) <= 1e-9).all()  # alpha is at most 1
            assert (np.diff(parts[:, -1]) >= 0).all()
            assert parts[-1, -1] <= end.parts[-1] * (1 + 1e-6)
    assert tried > 20
