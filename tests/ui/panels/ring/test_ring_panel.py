"""The dock of ring attention: who works when, what the links carry, numbers after each step."""

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtTest import QTest

from simulator.lesson.tables import ChooseTable
from simulator.problem.scenario import load_scenario, parse_scenario, save_scenario, with_values
from simulator.study.ring.dealing import DEVICES, LAYOUTS
from simulator.study.ring.state import CHOSEN, DONE, HIDDEN, LATER, NOW
from tests.helpers.drawn_words import drawn_words
from ui.kit.boxes import scene
from ui.look.theme import DARK, Style
from ui.panels.ring.study import RING, heading
from ui.panels.study_panel import StudyPanel, whole
from ui.session.session import Session


def run(**tiling):
    attention = {"heads": 2, "seqlen_q": 32, "head_dim": 4, "dtype": "float16"}
    return parse_scenario(
        {
            "attention": attention,
            "mask": {"causal": True},
            "tiling": {"rows": 4, "cols": 4, **tiling},
        }
    )


@pytest.fixture
def session(qapp):
    session = Session("numpy")
    session.motion = False
    session.propose(run(), "a run")
    session.settle()
    yield session
    session.close()


@pytest.fixture
def panel(session, qtbot):
    panel = StudyPanel(session, RING)
    qtbot.addWidget(panel)
    panel.resize(640, 540)
    panel.show()
    panel.show_view(session.view)
    session.settle()
    return panel


def around(state):
    return RING.words(state)


def placed(state, wide, high):
    return scene(whole(RING, state), Style(DARK), QRectF(0, 0, wide, high))


def words_in(state, wide, high):
    return drawn_words(placed(state, wide, high).paint, QRectF(0, 0, wide, high))


def mark(panel, step, device):
    panel.change(panel.state.at(step, device))


def pixels(picture):
    return bytes(picture.grab().toImage().constBits())


def propose(session, panel, scenario):
    session.propose(scenario, "another run")
    session.settle()
    panel.show_view(session.view)
    session.settle()


def test_it_begins_with_the_first_step_of_the_usual_ring(panel):
    ring = panel.state.found.work.ring
    assert (ring.devices, ring.layout) == (DEVICES, LAYOUTS[0])
    assert (panel.state.step, panel.slider.maximum()) == (0, DEVICES - 1)
    assert around(panel.state).title.startswith("A model, not measured")


def test_it_begins_with_a_device_to_which_something_is_merged(session, panel):
    """Under a causal mask the first device's rows see no block of another one."""
    assert panel.state.device == DEVICES - 1
    merged = panel.state.found.numbers.m[:, panel.state.rows]
    assert any((merged[0] != merged[-1]).ravel())


def test_a_scenario_says_devices_and_layout_and_keeps_them(session, panel, tmp_path):
    save_scenario(run(devices=3, layout="zigzag"), tmp_path / "ring.toml")
    assert load_scenario(tmp_path / "ring.toml") == run(devices=3, layout="zigzag")
    propose(session, panel, load_scenario(tmp_path / "ring.toml"))
    ring = panel.state.found.work.ring
    assert (ring.devices, ring.layout) == (3, "zigzag")
    panel.choose("devices", "8")
    session.settle()
    assert panel.state.found.work.ring.devices == 8


def test_a_click_marks_a_device_and_keys_mark_steps(panel, qapp):
    lay = panel.picture.scene
    place = lay.where(("lane", 2)).center().toPoint()
    QTest.mouseClick(panel.picture, Qt.MouseButton.LeftButton, pos=place)
    assert panel.state.device == 2
    assert not lay.at(QPointF(60, 100))
    for key, marked in ((Qt.Key.Key_Right, (1, 2)), (Qt.Key.Key_Down, (1, 3)),
                        (Qt.Key.Key_Down, (1, 3)), (Qt.Key.Key_Left, (0, 3)),
                        (Qt.Key.Key_Left, (0, 3)), (Qt.Key.Key_Up, (0, 2))):  # fmt: skip
        QTest.keyClick(panel.picture, key)
        assert (panel.state.step, panel.state.device) == marked
    panel.slider.setValue(3)
    assert panel.state.step == 3
    assert "sends nothing on" in around(panel.state).told
    panel.slider.setValue(0)
    assert " kFLOP, " in around(panel.state).told
    assert "NVLink 4 at 450 GB/s" in " ".join(around(panel.state).sentences)


def test_blocks_are_seen_on_their_way_to_the_next_devices(session, panel):
    first, pictures = around(panel.state).told, [pixels(panel.picture)]
    session.motion, at = True, session.clock.now()
    session.clock.now = lambda: at
    panel.slider.setValue(1)
    assert (panel.state.step, panel.state.seen, panel.state.gone) == (1, 0, 0)
    assert around(panel.state).told == first
    shares = [0.0]
    for passed in (0.3, 0.7):
        session.clock.now = lambda passed=passed: at + passed * panel.clock.seconds
        panel.clock.tick()
        shares.append(panel.state.gone)
        pictures.append(pixels(panel.picture))
    assert shares == sorted(set(shares))
    mark(panel, 1, 2)  # another device: what is under way goes on
    assert (panel.state.seen, panel.state.device, panel.state.gone) == (0, 2, shares[-1])
    assert panel.state.block(2) == 2
    mark(panel, 2, 2)  # a key finishes what is under way, and begins the next
    assert (panel.state.step, panel.state.seen, panel.state.gone) == (2, 1, 0)
    assert panel.state.block(2) == 1
    session.clock.now = lambda: at + 9 * panel.clock.seconds
    panel.clock.tick()
    assert (panel.state.seen, panel.clock.running) == (2, False)
    pictures.append(pixels(panel.picture))
    assert len(set(pictures)) == len(pictures)


def test_other_steps_are_there_at_once_and_all_are_without_motion(session, panel):
    session.motion = True
    panel.slider.setValue(2)
    assert panel.state.seen == 2
    panel.slider.setValue(3)
    assert (panel.state.seen, panel.clock.running) == (2, True)
    panel.slider.setValue(0)
    assert (panel.state.seen, panel.clock.running) == (0, False)
    panel.slider.setValue(1)
    panel.choose("shows", "numbers")
    assert (panel.state.seen, panel.clock.running) == (1, False)
    panel.slider.setValue(2)
    assert (panel.state.seen, panel.clock.running) == (2, False)
    panel.choose("shows", "time")
    panel.show_controls(False)  # a film
    panel.slider.setValue(3)
    assert panel.state.seen == 3
    panel.show_controls(True)
    session.motion = False
    panel.slider.setValue(0)
    panel.slider.setValue(1)
    assert (panel.state.seen, panel.clock.running) == (1, False)


def test_what_leaves_the_last_device_comes_to_the_first_from_above(panel):
    state = replace(panel.state.at(1, 0), share=0.5)
    drawn = words_in(state, 640, 500)
    lanes = [placed(state, 640, 500).where(("lane", n)) for n in range(4)]
    pitch = lanes[1].y() - lanes[0].y()
    tops = [(each.text, each.ink.center().y()) for each in drawn if each.text.startswith("K, V")]
    assert [name for name, _ in tops] == [f"K, V {n}" for n in (0, 1, 2, 3, 3)]
    wanted = [lanes[n].center().y() + pitch / 2 for n in range(4)]
    wanted.append(lanes[0].center().y() - pitch / 2)
    assert [y for _, y in tops] == pytest.approx(wanted, abs=1)
    assert replace(state, share=1.0).block(0) == 3
    assert state.at(0, 0).seen == 0  # nothing is on its way to another step


def test_what_no_device_sends_is_not_on_its_way(session, panel):
    attention = {"seqlen_q": 3, "head_dim": 4, "dtype": "float16"}
    propose(session, panel, parse_scenario({"attention": attention}))
    state = replace(panel.state.at(1, 0), share=0.25)
    drawn = words_in(state, 640, 500)
    sent = np.flatnonzero(state.found.work.sent[:, 0])
    assert 0 < len(sent) < DEVICES
    blocks = {each.text for each in drawn if each.text.startswith("K, V")}
    assert blocks == {f"K, V {device}" for device in sent}


def test_the_square_says_who_computes_which_pairs_when(panel):
    mark(panel, 1, 2)
    kinds = panel.state.kinds
    assert kinds.shape == (32, 32)
    later = np.triu(np.ones((32, 32), dtype=bool), 1)
    assert (kinds[later] == HIDDEN).all()
    for row, key, kind in ((20, 10, CHOSEN), (28, 18, NOW), (20, 17, DONE), (28, 3, LATER)):
        assert kinds[row, key] == kind


def test_links_and_overlap_change_the_time_and_nothing_else(session, panel):
    fast = panel.state.timeline
    panel.choose("link", "PCIe-5")
    slow = panel.state.timeline
    assert slow.seconds > fast.seconds
    np.testing.assert_array_equal(slow.works, fast.works)
    panel.choose("sending", "after")
    assert panel.state.timeline.seconds > slow.seconds
    assert panel.state.found.numbers is not None


def test_numbers_are_those_of_each_step_and_the_same_in_every_layout(session, panel):
    panel.take_choices(ChooseTable(ring="numbers", step=1, link="PCIe-5"))
    chosen = panel.chosen
    assert (chosen["shows"], panel.state.step, chosen["link"]) == ("numbers", 1, "PCIe-5")
    outputs = []
    for layout in LAYOUTS:
        panel.choose("layout", layout)
        session.settle()
        outputs.append(panel.state.found.numbers.o[-1])
        assert panel.state.found.numbers.error < 1e-5
        assert "from float64" in around(panel.state).sentences[0]
    for each in outputs[1:]:
        np.testing.assert_allclose(each, outputs[0], atol=1e-5)


# --- keys that stay ------------------------------------------------------------------------------


def decode(**tiling):
    attention = {"algorithm": "split-kv", "heads": 8, "kv_heads": 2, "seqlen_q": 1,
                 "seqlen_k": 512, "head_dim": 16, "dtype": "float16"}  # fmt: skip
    return parse_scenario({
        "attention": attention, "mask": {"causal": True},
        "tiling": {"rows": 16, "cols": 32, **tiling},
    })  # fmt: skip


def test_splits_on_devices_send_o_and_lse_and_say_how_much(session, panel):
    propose(session, panel, decode(devices=4))
    state = panel.state
    assert state.stays
    assert panel.chosen["travels"] == "partials"
    assert panel.slider.isHidden()
    assert (state.found.work.sent == 8 * (16 + 1) * 4).all()
    said = panel.accessibleDescription()
    assert "each sends O and LSE of all rows once, 544 B, 2.1 KiB in all" in said
    assert "in a ring 192.0 KiB of K and V would travel" in said  # 2 · 512 · 32 · 2 B, three times
    assert f"Device {state.device} with its own keys" in said
    assert "merged: at most" in said


def test_a_run_without_devices_is_a_ring_until_somebody_chooses(session, panel):
    propose(session, panel, decode())
    assert not panel.state.stays
    assert not panel.slider.isHidden()
    panel.choose("travels", "partials")
    session.settle()
    assert panel.state.stays
    propose(session, panel, run(devices=3))  # without splits
    assert not panel.state.stays
    assert panel.state.last == 2


def test_each_device_shows_what_its_own_keys_leave(session, panel):
    propose(session, panel, decode(devices=4))
    panel.choose("shows", "numbers")
    session.settle()
    told = []
    for device in range(4):
        mark(panel, 0, device)
        numbers = panel.state.found.numbers
        assert f"m {float(numbers.m[device, 0]):.3f}" in panel.accessibleDescription()
        drawn = [each.text for each in words_in(panel.state, 640, 540)]
        assert f"device {device}, all rows, its own keys" in drawn
        told.append(panel.accessibleDescription())
    assert len(set(told)) == 4
    keys = np.unique(panel.state.kinds)
    assert set(keys.tolist()) == {CHOSEN, NOW}


def test_a_choice_between_a_new_run_and_its_view_is_of_the_new_run(session, panel):
    """The session has the new run a moment before there is a view of it."""
    visit = next(n for n in range(len(session.trace)) if session.trace.program.visit(n).head == 1)
    session.go(replace(session.cursor, visit=visit))
    session.settle()
    panel.show_view(session.view)
    session.settle()
    failed = []
    session.tasks.failed.connect(failed.append)
    session.trace_changed.connect(lambda trace: panel.choose("devices", "2"))
    session.propose(with_values(run(), {"attention": {"heads": 1}}), "one head")
    session.settle()
    panel.show_view(session.view)
    session.settle()
    assert not failed
    assert panel.chosen["devices"] == "2"
    assert panel.state is not None


def test_after_a_run_that_no_ring_can_do_the_busiest_device_is_marked(session):
    def found(scenario):
        session.propose(scenario, "another")
        session.settle()
        chosen = {name: str(value) for name, value in RING.said(session.trace).items()}
        chosen |= {"shows": "time", "link": "NVLink-4", "sending": "overlapped"}
        needs = RING.needs(session.trace, session.view, chosen)
        return RING.compute(session.trace, needs, lambda share: None), chosen

    without = with_values(run(), {"attention": {"algorithm": "gla"}})
    before = RING.state(*found(without), None, "")
    assert before.found.work is None
    assert RING.state(*found(run()), before, "").device == DEVICES - 1


@pytest.mark.parametrize(("rows", "layout", "said"), [
    (3, "striped", "device 1, row 1, after step 1"),
    (3, "contiguous", "device 1, row 0, after step 1"),
    (9, "striped", "device 1, rows every 4th from 1, after step 1"),
])  # fmt: skip
def test_rows_of_few_and_devices_without_rows_are_told(session, panel, rows, layout, said):
    sizes = {"attention": {"heads": 2, "seqlen_q": rows, "seqlen_k": 30, "head_dim": 4}}
    session.propose(parse_scenario({**sizes, "tiling": {"rows": 4, "cols": 4}}), "few rows")
    session.settle()
    panel.show_view(session.view)
    panel.bar.choose("layout", layout)
    session.settle()
    state = panel.state.at(0, 1)
    assert heading(state)[0] == said
    empty = next((n for n, own in enumerate(state.found.work.ring.rows) if not len(own[0])), None)
    assert (empty is None) == (rows > 3)
    if empty is not None:
        assert "it has no rows" in around(state.at(0, empty)).told
    assert "each link carries at most 1.4 KiB" in " ".join(around(state).sentences)
