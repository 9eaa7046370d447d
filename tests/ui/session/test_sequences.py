"""A session goes through the sequences of a batch as if they were one run."""

import pytest

from simulator.base.assets import SCENARIOS
from simulator.problem.scenario import load_scenario
from simulator.program.playback import Cursor, first_cursor, last_cursor
from tests.helpers.changes import change
from tests.helpers.sessions import make_session
from ui.session.engines import Engines
from ui.session.session import Session, out_of_memory


@pytest.fixture
def batch(qapp):
    """A run of the first of three sequences of 38, 13 and 61 keys."""
    session = make_session("batch")
    yield session
    session.close()


def shown(session):
    return session.scenario.batch.shown, session.view.snapshot.cursor


def end(session):
    return last_cursor(session.trace.program)


def sequences_that_come(session):
    """Return a list that is given the sequence of every run that is shown from now on.

    The clock also ticks while a test waits, so that on a slow machine one that looks only
    afterwards may find that a short sequence has come and gone.
    """
    come = []
    session.trace_changed.connect(lambda _: come.append(session.scenario.batch.shown))
    return come


def wait_for(session, happened, turns=2000):
    for _ in range(turns):
        session.clock.tick()
        session.settle()
        if happened():
            return
    raise AssertionError("it has not happened")


def test_a_step_at_the_end_goes_on_in_the_next_sequence_and_a_step_back_returns(batch):
    ends = []
    for number in range(3):
        assert shown(batch) == (number, first_cursor())
        assert batch.trace.workload.seqlen_k == (38, 13, 61)[number]
        batch.last()
        ends.append(end(batch))
        batch.settle()
        batch.step()
        batch.settle()
    assert shown(batch) == (2, ends[2])  # the last one ends the batch
    for number in (1, 0):
        batch.first()
        batch.step(forward=False)
        batch.settle()
        assert shown(batch) == (number, ends[number])
    batch.first()
    batch.step(forward=False)
    batch.settle()
    assert shown(batch) == (0, first_cursor())


def test_playing_goes_through_all_sequences_and_starts_over(batch):
    clock = [0.0]
    batch.clock.now = lambda: clock.__setitem__(0, clock[0] + 9.0) or clock[0]
    batch.set_speed(20.0)
    come = sequences_that_come(batch)
    for expected in ([1, 2], [0, 1, 2]):
        come.clear()
        batch.play(True)
        wait_for(batch, lambda: not batch.playing)
        assert come == expected
        assert shown(batch) == (2, end(batch))


def test_playing_from_the_end_of_a_sequence_goes_on(batch):
    come = sequences_that_come(batch)
    batch.last()
    batch.settle()
    batch.play(True)
    wait_for(batch, lambda: come)
    assert come[0] == 1
    batch.play(False)


def test_keys_that_are_held_at_the_end_ask_once(batch):
    built = []
    batch.trace_changed.connect(built.append)
    batch.last()
    for _ in range(30):
        batch.step()
    batch.settle()
    assert len(built) == 1
    assert batch.scenario.batch.shown == 1


def test_what_is_asked_for_meanwhile_counts(batch):
    batch.last()
    batch.step()
    batch.go(Cursor(1, 0))
    batch.settle()
    assert shown(batch) == (0, Cursor(1, 0))
    batch.sequences.show(2)
    change(batch, {"input": {"seed": 5}}, "another seed")
    assert batch.scenario.input.seed == 5
    assert batch.scenario.batch.shown == 0
    batch.first()
    batch.step(forward=False)
    batch.settle()
    assert shown(batch) == (0, first_cursor())


def test_moving_is_no_change_and_a_file_keeps_what_its_author_said(batch, tmp_path):
    author = load_scenario(SCENARIOS / "batch.toml")
    batch.sequences.show(1)
    batch.settle()
    assert batch.undo_stack.isClean()
    assert not batch.undo_stack.canUndo()
    change(batch, {"attention": {"head_dim": 16}}, "head size")
    batch.sequences.show(2)
    batch.settle()
    batch.save(tmp_path / "kept.toml")
    kept = load_scenario(tmp_path / "kept.toml")
    assert kept.batch == author.batch
    assert kept.batch.sequence is None
    assert kept.attention.head_dim == 16
    batch.undo_stack.undo()
    batch.settle()
    assert batch.scenario.attention.head_dim == author.attention.head_dim
    batch.save(tmp_path / "undone.toml")
    assert load_scenario(tmp_path / "undone.toml").batch == author.batch
    # A sequence that is typed is the author's word.
    change(batch, {"batch": {"sequence": 2}}, "sequence")
    batch.sequences.show(0)
    batch.settle()
    batch.save(tmp_path / "said.toml")
    assert load_scenario(tmp_path / "said.toml").batch.sequence == 2


def test_there_is_no_other_sequence_without_a_batch(qapp):
    session = Session("numpy")
    session.sequences.show(1)
    assert not session.sequences.go_on()
    assert not session.sequences.start_over()
    session.open(SCENARIOS / "causal.toml")
    session.settle()
    trace = session.trace
    session.last()
    session.step()
    session.sequences.show(1)
    session.settle()
    assert session.trace is trace
    session.play(True)  # starts over
    assert session.cursor == first_cursor()
    session.play(False)
    session.close()


class FirstAlone(Engines):
    """Refuses all sequences but the first, as a machine does that has too little memory."""

    def trace(self, scenario):
        if scenario.batch.shown:
            raise out_of_memory()
        return super().trace(scenario)


def test_playing_stops_where_the_next_sequence_cannot_be_built(qapp):
    session, refusals = Session(FirstAlone("numpy")), []
    session.refused.connect(refusals.append)
    session.open(SCENARIOS / "batch.toml")
    session.settle()
    session.last()
    session.settle()
    session.play(True)
    wait_for(session, lambda: not session.playing)
    assert len(refusals) == 1
    assert shown(session) == (0, end(session))
    session.close()
