"""What a session keeps from one run to the next: a title claims no more than holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtGui import QUndoCommand

from simulator.base.assets import SCENARIOS
from simulator.problem.scenario import load_scenario, with_values
from simulator.program.playback import Cursor
from simulator.run.snapshot import Cell
from tests.helpers.changes import change
from tests.helpers.runs import scenario, scenarios, trace_of, visits_in_order
from tests.helpers.sessions import make_session
from ui.session.history import MOST_STEPS, Steps, carried, kept_cell


def changed(session, table, **values):
    """Change values of the scenario on show, as a panel would."""
    change(session, {table: values}, "a change")


def test_a_title_claims_no_more_than_holds(qapp):
    session = make_session("flash2")
    title = "A real sentence, FlashAttention-2: O, m and l stay on chip for a row"
    assert session.scenario.title == title
    changed(session, "hardware", preset="T4")
    assert session.scenario.title == title, "the same run on another GPU"
    shapes = {"heads": 12, "kv_heads": 4, "seqlen_q": 13, "head_dim": 32}
    session.propose(
        with_values(session.scenario, {"attention": shapes, "input": {"source": "random",
                    "name": None}}), "input random")  # fmt: skip
    session.settle()
    assert session.scenario.title == f"{title} (changed)"
    changed(session, "attention", algorithm="naive")
    assert session.scenario.title == f"{title} (changed)", "said once"
    for _ in range(2):
        session.undo_stack.undo()
        session.settle()
    assert session.scenario.title == title
    session.close()


def test_back_at_what_was_opened_the_title_is_too(qapp):
    session = make_session("causal")
    title = session.scenario.title
    changed(session, "attention", algorithm="naive")
    assert session.scenario.title == f"{title} (changed)"
    changed(session, "attention", algorithm="flash2")
    assert session.scenario.title == title
    assert session.scenario == load_scenario(SCENARIOS / "causal.toml")
    session.close()


def test_a_title_that_was_just_written_stays(qapp, tmp_path):
    session = make_session("causal")
    changed(session, "mask", causal=False)
    change(session, {"title": "Every tile"}, "title")
    assert session.scenario.title == "Every tile"
    session.save(tmp_path / "mine.toml")
    assert load_scenario(tmp_path / "mine.toml").title == "Every tile"
    changed(session, "attention", seqlen_q=32)
    assert session.scenario.title == "Every tile (changed)"
    changed(session, "attention", seqlen_q=64)
    assert session.scenario.title == "Every tile"
    session.close()


def test_what_has_no_title_gets_none(qapp):
    session = make_session("causal")
    session.start(with_values(session.scenario, {"title": ""}), None)
    session.settle()
    changed(session, "attention", seqlen_q=32)
    assert session.scenario.title == ""
    session.close()


def test_undo_keeps_a_bounded_number_of_steps(qapp):
    steps = Steps(qapp)
    for _ in range(MOST_STEPS + 50):
        steps.push(QUndoCommand("a change"))
        steps.show()
    assert steps.count() == MOST_STEPS
    assert not steps.moving
    steps.deleteLater()


@given(scenarios(longest=9), scenarios(longest=9), st.data())
def test_another_run_shows_the_same_part_of_the_matrix(before, after, data):
    old, new = trace_of(before), trace_of(after)
    w = new.workload
    number = data.draw(st.integers(0, len(old.program) - 1))
    cursor = Cursor(number, data.draw(st.integers(0, len(old.program.ops(number)) - 1)))
    found = carried(cursor, old, new)
    visit = old.program.visit(number)
    row, key = min(visit.rows.start, w.seqlen_q - 1), min(visit.cols.start, w.seqlen_k - 1)
    launch = min(visit.launch, len(new.program.launches) - 1)
    wanted = {
        (launch, min(visit.head, w.heads - 1), row // w.rows, key // w.cols),
        (launch, min(visit.head, w.heads - 1), row // w.rows, 0),  # it takes whole rows
    }
    whole = new.program.launches[launch].whole_rows
    at = [
        n for n, place in enumerate(visits_in_order(w))
        if place in wanted and (whole or place[3] == key // w.cols)
    ]  # fmt: skip
    if cursor == Cursor(0, 0):
        assert found == Cursor(0, 0)
    elif at:
        assert found == Cursor(at[0], min(cursor.op, len(new.program.ops(at[0])) - 1))
    else:  # the tile is skipped now
        there = min(number, len(new.program) - 1)
        assert found == Cursor(there, min(cursor.op, len(new.program.ops(there)) - 1))


@pytest.mark.parametrize(
    ("cell", "kept"),
    [
        (Cell("S", 5, 3), True),
        (Cell("S", 6, 3), False),
        (Cell("S", 5, 4), False),
        (Cell("K", 3, 1), True),
        (Cell("K", 4, 1), False),
        (Cell("m", 5, 0), True),
    ],
)
def test_a_cell_is_kept_where_the_run_has_it(cell, kept):
    trace = trace_of(scenario(nq=6, nk=4, d=2))
    assert kept_cell(cell, trace) == (cell if kept else None)
    assert kept_cell(None, trace) is None
