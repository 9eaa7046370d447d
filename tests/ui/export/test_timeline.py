"""Which state a frame shows, held against a list of all steps."""

from bisect import bisect_left
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.base.assets import SCENARIOS
from simulator.base.errors import InputError
from simulator.problem.scenario import load_scenario
from simulator.program.playback import Cursor, Granularity, eased
from simulator.run.trace import simulate
from tests.helpers.runs import program_of
from ui.export.timeline import make_timeline

PROGRAMS = {
    name: simulate(SCENARIOS / f"{name}.toml").program for name in ("causal", "naive", "flash1")
}


def steps_of(program, visits, by):
    """Return every cursor that is stepped to, one after another."""
    ops = {v: len(program.ops(v)) for v in visits}
    if by is Granularity.TILE:
        return [Cursor(v, ops[v] - 1) for v in visits]
    return [Cursor(v, o) for v in visits for o in range(ops[v])]


@given(
    name=st.sampled_from(sorted(PROGRAMS)),
    by=st.sampled_from([Granularity.OP, Granularity.TILE]),
    fps=st.integers(1, 60),
    length=st.floats(0.05, 40),
    data=st.data(),
)
def test_frames_pass_all_steps_in_order(name, by, fps, length, data):
    program = PROGRAMS[name]
    start = data.draw(st.integers(0, len(program) - 1))
    visits = range(start, data.draw(st.integers(start + 1, len(program))))
    line = make_timeline(program, visits, fps=fps, by=by, length=length)
    steps = steps_of(program, visits, by)
    assert line.steps == len(steps)
    assert line.frames == max(1, round(length * fps))
    moments = [line.moment(k) for k in range(line.frames)]
    place_of = {cursor: n for n, cursor in enumerate(steps)}
    places = [place_of[m.cursor] for m in moments]
    assert places == sorted(places)
    assert places[-1] == len(steps) - 1  # the end is always seen
    counts = np.bincount(places, minlength=len(steps))
    lasts = np.array([lasting(program, cursor, by) for cursor in steps])
    wanted = lasts / lasts.sum() * line.frames
    assert np.abs(counts - wanted).max() < 1  # each as long as it lasts, to a frame
    if wanted.min() >= 1:
        assert counts.min() >= 1  # no step is left out
    every = {cursor: n for n, cursor in enumerate(steps_of(program, range(len(program)), by))}
    ordered = list(every)
    for k, moment in enumerate(moments):
        first = k - bisect_left(places, places[k])
        if by is Granularity.TILE:
            assert (moment.phase, moment.before) == (1, None)  # states only
            continue
        assert moment.phase == (first + 1) / counts[places[k]]  # at first above 0, at last 1
        place = every[moment.cursor]
        assert moment.before == (ordered[place - 1] if place else None)


def lasting(program, cursor, by):
    """Return how long a step lasts at speed 1: a load or store a second, a rescale 3.9."""
    op, visit = program.ops(cursor.visit)[cursor.op], program.visit(cursor.visit)
    if by is Granularity.OP and op.name == "rescale":
        row = visit.head, visit.i
        before = (program.visit(n) for n in range(cursor.visit))
        return 3.9 if any((each.head, each.i) == row for each in before) else 0.7
    return 1.0 if by is Granularity.OP and op.moves and (op.loads or op.stores) else 0.7


def test_a_pace_is_that_of_an_op_that_moves_nothing():
    program = PROGRAMS["causal"]
    line = make_timeline(program, range(10), fps=30, pace=1.4)
    cursors = [line.moment(k).cursor for k in range(line.frames)]
    for cursor in set(cursors):
        wanted = 2 * 30 * lasting(program, cursor, Granularity.OP)
        assert cursors.count(cursor) == pytest.approx(wanted, abs=1)
    assert "of 1.40 s, loads and stores of 2.00 s, rescales of 7.80 s" in line.words
    without = make_timeline(PROGRAMS["naive"], range(10), fps=30, pace=1.4)
    assert without.words.endswith("of 1.40 s, loads and stores of 2.00 s")
    line = make_timeline(program, range(10), fps=30, by=Granularity.TILE, pace=1.4)
    assert "10 tiles of 1.40 s" in line.words
    assert line.frames == 420
    line = make_timeline(program, range(10), fps=30, length=1.0)
    assert line.words == "30 frames, 1.0 s at 30 fps, some of 90 ops"


def test_the_easing_is_that_of_qt():
    from PySide6.QtCore import QEasingCurve

    curve = QEasingCurve(QEasingCurve.Type.InOutCubic)
    for share in np.linspace(0, 1, 41):
        assert eased(share) == pytest.approx(curve.valueForProgress(share), abs=1e-12)


def test_without_a_word_a_short_run_goes_op_by_op_and_a_long_one_is_thinned():
    line = make_timeline(PROGRAMS["causal"], range(10), fps=30)
    assert (line.by, line.seconds) == (Granularity.OP, 60.0)
    program = program_of(load_scenario(SCENARIOS / "real-scale.toml"))
    line = make_timeline(program, range(len(program)), fps=30)
    assert (line.by, line.seconds) == (Granularity.TILE, 60.0)
    assert line.moment(line.frames - 1).cursor.visit == len(program) - 1
    assert "524\u2009800" in line.words


@pytest.mark.parametrize(
    ("values", "word"),
    [({"pace": 1.0}, "--pace"), ({"length": 80_000.0}, "--length"),
     ({"by": Granularity.OP, "length": 1.0}, "--by")],
)  # fmt: skip
def test_an_endless_film_is_refused(values, word):
    program = program_of(load_scenario(SCENARIOS / "real-scale.toml"))
    with pytest.raises(InputError, match=word):
        make_timeline(program, range(len(program)), fps=30, **values)


def test_a_frame_needs_no_list_of_visits():
    calls = []

    class Endless:
        def __len__(self):
            return 10**12

        def ops(self, visit):
            calls.append(visit)
            return (SimpleNamespace(),) * 9

    line = make_timeline(Endless(), range(10**12), fps=30, length=2.0)
    assert line.moment(59).cursor == Cursor(10**12 - 1, 8)
    assert calls == [10**12 - 1]
