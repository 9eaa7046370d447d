"""When ticks sound, held against what the pictures show; and that a film has them there."""

from itertools import pairwise

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.base.assets import SCENARIOS
from simulator.lesson.course import find_lesson
from simulator.lesson.reader import load_lesson
from simulator.program.algorithms import TENSORS
from simulator.program.playback import Granularity, moved
from simulator.run.motion import flights_of
from simulator.run.trace import simulate
from simulator.study.captions import program_of
from tests.ui.export.helpers import make, options
from ui.export.options import ExportOptions
from ui.export.sound import Landing, Sound, landings_of_lesson, landings_of_run
from ui.export.storyboard import make_storyboard
from ui.export.timeline import make_timeline
from ui.look.layouts import LAYOUT_PANELS
from ui.session.ticks import RATE, pitch

PROGRAMS = {
    name: simulate(SCENARIOS / f"{name}.toml").program
    for name in ("causal", "naive", "flash1", "split-kv")
}
APART = 0.05


def seen(frames, fps, shown):
    """Return when each frame first shows a tile that has landed, at the frame's end."""
    found, before = [], None
    for k in range(frames):
        key, op, phase = shown(k)
        if op is None:
            continue
        if key != before:
            before, left = key, list(flights_of(op.moves, loads=op.loads))
        for flight in [each for each in left if each.landed(moved(phase))]:
            left.remove(flight)
            found.append(Landing((k + 1) / fps, flight.move.tensor))
    return found


@given(
    name=st.sampled_from(sorted(PROGRAMS)), fps=st.integers(20, 60), pace=st.floats(0.5, 3),
    data=st.data(),
)  # fmt: skip
def test_a_tick_sounds_when_its_tile_is_seen_to_land(name, fps, pace, data):
    program = PROGRAMS[name]
    start = data.draw(st.integers(1, len(program) - 2))
    line = make_timeline(program, range(start, start + 2), fps=fps, by=Granularity.OP, pace=pace)

    def shown(k):
        moment = line.moment(k)
        return moment.cursor, program.ops(moment.cursor.visit)[moment.cursor.op], moment.phase

    heard = landings_of_run(line)
    wanted = seen(line.frames, fps, shown)
    assert [each.tensor for each in heard] == [each.tensor for each in wanted]
    for one, other in zip(heard, wanted, strict=True):
        assert abs(one.seconds - other.seconds) < 1.6 / fps
    assert sum(len(op.moves) for v in line.visits for op in program.ops(v)) == len(heard)


@given(name=st.sampled_from(sorted(PROGRAMS)), length=st.floats(0.2, 4), by=st.sampled_from(
    [Granularity.OP, Granularity.TILE]))  # fmt: skip
def test_ticks_of_a_tensor_are_apart_in_films_of_any_pace(name, length, by):
    program = PROGRAMS[name]
    line = make_timeline(program, range(len(program)), fps=30, by=by, length=length)
    heard = landings_of_run(line)
    assert heard
    assert heard == sorted(heard)
    assert 0 <= heard[0].seconds <= heard[-1].seconds <= line.seconds + 1e-9
    for tensor in program.tensors:
        mine = [each.seconds for each in heard if each.tensor == tensor]
        assert all(two - one > APART - 1e-6 for one, two in pairwise(mine))


def test_what_is_shown_at_once_sounds_at_once():
    program = PROGRAMS["causal"]
    line = make_timeline(program, range(1), fps=30)
    first = landings_of_run(line)[0]
    assert first == Landing(0.0, program.ops(0)[0].moves[0].tensor)
    tiles = landings_of_run(make_timeline(program, range(2), fps=30, by=Granularity.TILE, pace=1.0))
    moved_tensors = {m.tensor for op in program.ops(1) for m in op.moves}
    assert {each.tensor for each in tiles if each.seconds == 1.0} == moved_tensors


def test_ticks_of_a_lesson_are_those_of_its_pictures():
    lesson = load_lesson(find_lesson("flash-attention-2"), LAYOUT_PANELS)
    board = make_storyboard(lesson, range(len(lesson.steps)), fps=60)

    def shown(k):
        moment = board.moment(k)
        shot = moment.shot
        if shot.before is None:
            return None, None, 1.0
        program = program_of(lesson.steps[shot.step].scenario)
        key = shot.step, shot.cursor
        return key, program.ops(shot.cursor.visit)[shot.cursor.op], moment.phase

    heard = landings_of_lesson(lesson, board)
    wanted = sorted(seen(board.frames, board.fps, shown))
    assert len(heard) > 5
    for one in heard:
        assert min(abs(one.seconds - other.seconds) for other in wanted
                   if other.tensor == one.tensor) < 2.1 / board.fps  # fmt: skip
    slow = [each for each in wanted if not any(
        each.tensor == other.tensor and 0 < abs(each.seconds - other.seconds) < 2 * APART
        for other in wanted
    )]  # fmt: skip
    assert len(slow) > 5
    for one in slow:
        assert min(abs(one.seconds - other.seconds) for other in heard
                   if other.tensor == one.tensor) < 2.1 / board.fps  # fmt: skip


def test_each_tensor_has_a_pitch_of_its_own():
    pitches = [pitch(name) for name in TENSORS]
    assert pitches == sorted(set(pitches))
    assert pitches[0] == 330
    assert pitches[-1] < 2000


@given(st.lists(st.tuples(st.floats(0, 2), st.sampled_from(sorted(TENSORS))), max_size=30),
       st.lists(st.integers(1, RATE), min_size=1, max_size=6))  # fmt: skip
def test_samples_are_the_same_in_any_parts(landings, parts):
    sound = Sound(Landing(*each) for each in landings)
    whole, at = sound.samples(0, sum(parts)), 0
    for part in parts:
        assert np.array_equal(sound.samples(at, at + part), whole[at : at + part])
        at += part
    assert np.abs(whole).max() < 1
    first = round(min((t for t, _ in landings), default=9.0) * RATE)
    assert not whole[:first].any()


def track(path):
    """Return the samples of a film's sound, and how many seconds its pictures take."""
    with av.open(path) as box:
        stream = box.streams.audio[0]
        assert stream.rate == RATE
        out = np.zeros(60 * RATE, dtype=np.float32)
        end = 0
        for frame in box.decode(stream):
            samples = frame.to_ndarray().reshape(-1)
            at = round(float(frame.pts * frame.time_base) * RATE)
            samples, at = samples[max(-at, 0) :], max(at, 0)
            out[at : at + len(samples)] = samples
            end = at + len(samples)
    with av.open(path) as box:
        frames = sum(1 for _ in box.decode(video=0))
        return out[:end], frames / float(box.streams.video[0].average_rate)


@pytest.mark.long
@pytest.mark.parametrize("ending", [".mp4", ".webm"])
def test_a_film_has_ticks_where_tiles_land(ending, tmp_path):
    path = tmp_path / f"a{ending}"
    trace = simulate(SCENARIOS / "flash2.toml")
    make(ExportOptions(str(path), (320, 240), fps=10, visits=(1, 3), sound=True), trace)
    heard, seconds = track(path)
    assert abs(len(heard) / RATE - seconds) < 0.05
    landings = landings_of_run(make_timeline(trace.program, range(1, 3), fps=10))
    assert len(landings) == 4
    wanted = Sound(landings).samples(0, len(heard))
    for landing in landings:
        at = round(landing.seconds * RATE)
        here = np.abs(heard[at : at + RATE // 20]).max()
        assert here > 0.1
        assert np.abs(heard[at - RATE // 20 : at - RATE // 100]).max() < 0.3 * here
        # It is the tick of its tensor: the strongest frequency is its pitch.
        part = heard[at : at + RATE // 10] * np.hanning(RATE // 10)
        found = np.argmax(np.abs(np.fft.rfft(part, 8 * len(part)))) / 0.8
        assert abs(found - pitch(landing.tensor)) < 0.03 * pitch(landing.tensor)
    quiet = np.abs(wanted) == 0
    assert np.abs(heard[quiet]).max() < 0.05


@pytest.mark.parametrize("ending", [".mp4", ".webm"])
def test_a_film_is_silent_unless_asked(ending, tmp_path):
    wanted = options(tmp_path / f"a{ending}", length=0.3)
    make(wanted)
    with av.open(tmp_path / f"a{ending}") as box:
        assert not box.streams.audio
    assert "--sound" not in wanted.command("a.toml")
    loud = ExportOptions("a.mp4", sound=True)
    assert loud.command("a.toml").endswith(" --sound")
