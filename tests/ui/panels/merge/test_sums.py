"""Sums of a backward pass in any order: what the panel says, its bits, and its picture."""

from itertools import accumulate

import numpy as np
import pytest
from PySide6.QtCore import QPointF, Qt
from PySide6.QtTest import QTest

from simulator.lesson.tables import ChooseTable
from simulator.study.merge.block_sums import BlockSums, block_sums
from simulator.study.merge.choices import DRAWN
from simulator.study.merge.gradient_sums import ORDERS, added_up
from tests.helpers.changes import choose_algorithm
from tests.helpers.runs import scenario, trace_of
from tests.helpers.waiting import settle
from ui.panels.merge.study import words_of_sums

TRACE = trace_of(scenario("flash2-backward", nq=24, d=8, rows=4, cols=3, mask={"causal": True}))
STATE = block_sums(TRACE, 0, 5)
LONE = block_sums(trace_of(scenario("flash2-backward", nq=8, rows=4, cols=8)), 0, 0)
BLIND = block_sums(
    trace_of(scenario("flash2-backward", nq=8, nk=4, rows=4, cols=2, mask={"causal": True})), 0, 0
)
LONG = block_sums(trace_of(scenario("flash2-backward", nq=4, nk=300, rows=4, cols=2)), 0, 0)


def sentences(state: BlockSums) -> tuple[str, ...]:
    return words_of_sums(state).sentences


def test_each_order_is_that_of_its_terms() -> None:
    terms = STATE.sums.terms
    in_order, reverse = (STATE.sums.total(name) for name in ("in order", "from the last"))
    np.testing.assert_array_equal(in_order, added_up(terms))
    np.testing.assert_array_equal(reverse, added_up(terms[::-1]))
    (*_, last) = accumulate(terms, np.add)
    np.testing.assert_array_equal(in_order, last)
    exact = np.sum(np.stack(terms).astype(np.float64), axis=0)
    size = np.abs(np.stack(terms)).sum(axis=0)
    for name in ORDERS:
        off = np.abs(STATE.sums.total(name, seed=3) - exact)
        assert (off <= len(terms) * 2.0**-24 * size).all()


def test_what_is_said_is_what_differs() -> None:
    state = STATE.ordered("from the last")
    one, other = (STATE.sums.total(name) for name in ("in order", "from the last"))
    moved = int((one.view(np.uint32) != other.view(np.uint32)).sum())
    assert moved > 0
    assert sentences(state)[0].startswith(f"{moved} of {one.size} numbers have other bits")
    assert tuple(int(bits, 2) for bits in state.bits) == tuple(
        int(x.view(np.uint32)[state.at]) for x in (one, other)
    )
    assert state.bits[0] != state.bits[1]
    assert STATE.bits[0] == STATE.bits[1]
    assert "the same 32 numbers" in sentences(STATE)[0]
    # A share is written as everywhere, and no line parts the number and its unit.
    assert f"this launch takes {100 * STATE.turns.longer:.0f}\u00a0% longer" in sentences(STATE)[2]


def test_atomics_are_drawn_again_and_give_other_bits() -> None:
    states = [STATE.ordered(DRAWN)]
    for _ in range(5):
        states.append(states[-1].ordered(DRAWN))
    assert [state.seed for state in states] == list(range(6))
    assert len({state.both[1].tobytes() for state in states}) > 1
    assert len({state.both[0].tobytes() for state in states}) == 1
    assert states[-1].ordered("tree").ordered("in order").apart.max() == 0


@pytest.mark.parametrize(
    ("state", "words"),
    [(LONE, "A single term has no order"), (BLIND, "These rows see no key"),
     (LONG, "150 column blocks add to a row block: shown are at most 128.")],
)  # fmt: skip
def test_where_there_is_no_order_it_says_so(state: BlockSums, words: str) -> None:
    assert sentences(state)[0].startswith(words)


def test_in_the_window(open_window, qapp) -> None:
    window = open_window("flash2-backward", (1280, 720))
    window.desk.take("exactness")
    window.docks.open("merge")
    window.session.choose_row(13)
    settle(window)
    panel = window.docks.panel("merge")
    panel.bar.choose("sums", "from the last")
    assert panel.state.sums.order == "from the last"
    assert "from the last" in panel.accessibleDescription()
    cells = panel.picture.scene.where("cells")
    corner = cells.bottomRight() - QPointF(2, 2)
    QTest.mouseClick(panel.picture, Qt.MouseButton.LeftButton, pos=corner.toPoint())
    assert panel.state.sums.chosen == tuple(n - 1 for n in panel.state.sums.apart.shape)
    panel.take_choices(ChooseTable(sums="tree"))
    assert panel.state.sums.order == "tree"
    assert panel.state.shown is panel.state.sums
    said = window.docks["merge"].toolTip()  # of the panel, whichever it shows
    assert all(word in said for word in ("Partials", "sums of a gradient"))
    panel.take_choices(ChooseTable(merge="apart"))
    assert panel.state.shown is panel.state.partials
    panel.bar.choose("subject", "sums")
    assert panel.state.shown is panel.state.sums
    panel.bar.choose("subject", "partials")
    assert panel.state.shown is panel.state.partials
    assert panel.state.shown.parts is not None
    panel.bar.choose("subject", "sums")
    choose_algorithm(window, "flash2")
    settle(window)
    assert panel.state.shown is panel.state.partials
    assert {each.accessibleName() for each in panel.bar.shown()} >= {
        "order: List",
        "order: Tree",
        "lse",
    }
