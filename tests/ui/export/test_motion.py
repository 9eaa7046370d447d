"""Between two states: frames that are a function of the share alone, and that show what happens."""

from hashlib import sha1

import numpy as np
import pytest
from PySide6.QtCore import QRectF
from PySide6.QtGui import QImage, QPainter

from simulator.base.assets import SCENARIOS
from simulator.problem.scenario import load_scenario
from simulator.program.algorithms import ALGORITHMS
from simulator.program.op import Gesture
from simulator.program.playback import Granularity, first_cursor, last_cursor, step
from simulator.run.motion import Motion
from simulator.run.rescales import shrinking
from simulator.run.row_report import row_report
from simulator.run.trace import Trace
from tests.helpers.demos import first_users
from tests.helpers.runs import trace_of
from ui.board.flights import in_flight
from ui.board.layout import board_layout
from ui.export.scenes import ComposedMoment, scene_places, scene_style
from ui.look.theme import THEMES, Style

FRAMES = 42
"""Of an op of 0.7 s at 60 frames a second."""
RECT = QRectF(0, 0, 960, 540)


def frame(motion: Motion, share: float, style: Style) -> QImage:
    """Return a frame of the composed picture."""
    image = QImage(960, 540, QImage.Format.Format_RGB32)
    shown = motion.after if share > 0 else motion.before
    report = row_report(shown, shown.visit.rows.start)
    with QPainter(image) as painter:
        if 0 < share < 1:
            moment = ComposedMoment(motion.after, report, style, RECT)
            moment.paint_around(painter, ground=True)
            moment.paint_moving(painter, motion, share)
        else:
            ComposedMoment(motion.at(share), report, style, RECT).paint(painter)
    return image


def ops_of(trace: Trace) -> list[Motion]:
    """Return a motion for each kind of op of each launch, and one in which α is not 1."""
    found: dict[tuple[int, str], Motion] = {}
    after = first_cursor()
    while (before := after) != last_cursor(trace.program):
        after = step(trace.program, before, Granularity.OP)
        visit = trace.program.visit(after.visit)
        op = trace.program.ops(after.visit)[after.op]
        key = visit.launch, op.name
        known = found.get(key)
        if known is not None and (op.gesture is not Gesture.SHRINK or shrinks(known)):
            continue
        one, two = (trace.snapshot(each.visit, each.op) for each in (before, after))
        found[key] = Motion(one, two)
    return list(found.values())


def shrinks(motion: Motion) -> bool:
    return bool(shrinking(motion.after).any())


@pytest.fixture(scope="module", params=ALGORITHMS)
def motions(request: pytest.FixtureRequest, qapp: object) -> list[Motion]:
    return ops_of(trace_of(load_scenario(SCENARIOS / f"{request.param}.toml")))


@pytest.fixture
def new_motions(motions: list[Motion]) -> list[Motion]:
    """Return those of ops that no earlier algorithm has: frames of all of them take minutes."""
    name = motions[0].after.program.algorithm.name
    return [each for each in motions if first_users()[type(each.after.op)] == name]


@pytest.mark.long
def test_at_least_twenty_frames_differ_where_something_changes(new_motions):
    style = scene_style(THEMES["dark"], RECT.size())
    for each in new_motions:
        motion = Motion(each.before, each.after)  # what is kept of it goes with it
        kinds: set[bytes] = set()
        for n in range(FRAMES + 1):
            image = frame(motion, n / FRAMES, style)  # held: its bytes go with it
            kinds.add(sha1(image.constBits()).digest())
            if len(kinds) == 20:
                break
        assert len(kinds) == 20, (motion.after.op.name, len(kinds))


@pytest.mark.long
def test_it_begins_with_the_state_before_and_ends_with_the_state_after(motions):
    style = scene_style(THEMES["light"], RECT.size())
    for motion in motions:
        for share, now in ((0.0, motion.before), (1.0, motion.after)):
            whole = QImage(960, 540, QImage.Format.Format_RGB32)
            report = row_report(now, now.visit.rows.start)
            with QPainter(whole) as painter:
                ComposedMoment(now, report, style, RECT).paint(painter)
            fresh = Motion(motion.before, motion.after)
            assert frame(fresh, share, style) == whole


@pytest.mark.sweep(keep=1)
def test_equal_shares_are_equal_frames_in_any_order(new_motions):
    style = scene_style(THEMES["contrast"], RECT.size())
    for each in new_motions:
        motion = Motion(each.before, each.after)
        for share in (0.37, 0.97, 0.37):  # what is kept of a later one is not shown
            fresh = Motion(motion.before, motion.after)
            assert frame(motion, share, style) == frame(fresh, share, style)


def test_tiles_that_fly_stay_in_the_picture_and_are_seen(motions):
    style = scene_style(THEMES["dark"], RECT.size())
    board = scene_places(style, RECT).board
    seen = 0
    for each in motions:
        motion = Motion(each.before, each.after)
        if motion.gesture is not Gesture.CARRY:
            continue
        for share in np.linspace(0.02, 0.98, 25):
            lay = board_layout(motion.after.program.workload, style, board)
            for tile in in_flight(motion, float(share), lay):
                assert RECT.contains(tile.box)
                assert min(tile.box.width(), tile.box.height()) >= 4
                seen += 1
    assert seen > 20
