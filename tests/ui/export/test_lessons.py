"""Lessons as films, handouts and pictures."""

import math
import shlex
import subprocess
import sys
import threading
import time
from itertools import groupby, pairwise
from types import SimpleNamespace

import numpy as np
import pypdf
import pypdfium2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.base.assets import LESSONS
from simulator.base.errors import InputError
from simulator.lesson.course import find_lesson, list_lessons
from simulator.lesson.reader import load_lesson
from simulator.lesson.record import word_count
from simulator.problem.scenario import load_scenario
from simulator.program.playback import LONGEST_WAY, SECONDS_PER_RESCALE, seconds_of
from simulator.run.rescales import rescale_seconds_at
from simulator.study.captions import program_of, usual_run
from tests.ui.export.helpers import MOST, ROOT, decoded, frames_of, names, off, picture
from ui.export.command import _lesson_file as lesson_file
from ui.export.frames import new_image, paint_frame
from ui.export.handout import Handout, PrintedSection, after_steps, exercises_in
from ui.export.job import prepare_lesson
from ui.export.options import ExportOptions
from ui.export.storyboard import BETWEEN, READING, REST, SHORTEST, LessonFrame, make_storyboard
from ui.export.writers.metadata import read_note, read_scenario
from ui.export.writers.pixels import pixels_of
from ui.look.layouts import LAYOUT_PANELS
from ui.session.tasks import Cancelled
from ui.talk.lesson_player import WALK_SECONDS
from ui.widgets.application import application
from ui.window.main_window import MainWindow

LESSON = """+++
title = "Three steps"
+++

## The first tile

```toml step
scenario = "causal"
at = { tile = [1, 0], op = "scores" }
row = 20
layout = "steps"
```

The row sees {{ visible(20) }} keys.

## The maximum

```toml step
at = { tile = [1, 0], op = "row max" }
point = [{ cell = ["m", 20, 0] }]
question = "What is it for?"
answer = "So that no exponential is larger than one."
notes = "Let them guess for 30 s."
```

Of the scores so far it is $m$ = {{ value("m", 20) }}.

## All of it

```toml step
play = [{ tile = [1, 0] }, { tile = [1, 1] }]
layout = "memory"
```

So far {{ requested_so_far() | bytes }} were asked for.
"""
PAPER = {"per_page": 2, "notes": True}
FILM = {"size": (480, 320), "fps": 10, "length": 2.4}


@pytest.fixture(scope="module")
def lesson(tmp_path_factory):
    path = tmp_path_factory.mktemp("lesson") / "three-steps.md"
    path.write_text(LESSON, encoding="utf-8")
    return path


def prepared(lesson, target, **changes):
    application()
    wanted = ExportOptions(str(target), lesson=True, **{"size": (480, 320), **changes})
    return prepare_lesson(
        load_lesson(lesson, LAYOUT_PANELS), wanted, str(lesson), "0.1.0", MainWindow, "numpy"
    )


def texts_of(path):
    """Return the text of each page of a PDF."""
    document = pypdfium2.PdfDocument(path)
    try:
        return [page.get_textpage().get_text_range() for page in document]
    finally:
        document.close()


def make(lesson, target, **changes):
    export = prepared(lesson, target, **changes)
    export.make(lambda share: None)
    return export


def painted(source, k):
    """Return frame `k` as it is painted, RGB."""
    image = paint_frame(source, k, new_image(source))
    return pixels_of(image)[..., 2::-1].astype(int)


@pytest.fixture
def source(lesson, qapp):
    out = prepared(lesson, "a.mp4", **FILM).source
    yield out
    out.close()


def command(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "ui", "export", *map(str, arguments)],
        capture_output=True, text=True, cwd=ROOT, check=False,
    )  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(("asked", "light"), [((), True), (("--theme", "dark"), False)])
def test_a_handout_is_light_unless_another_theme_is_asked_for(asked, light, lesson, tmp_path):
    done = command(lesson, "-o", tmp_path / "a.pdf", "--steps", "0", "--size", "480x320", *asked)
    assert done.returncode == 0, done.stderr
    document = pypdfium2.PdfDocument(tmp_path / "a.pdf")
    assert bool(document[0].render().to_numpy().mean() > 128) is light
    document.close()


# --- films -----------------------------------------------------------------------------------


@pytest.mark.long
def test_frame_k_of_a_film_is_picture_k(lesson, source, tmp_path):
    for name in ("a.mp4", "a.apng", "f/"):
        make(lesson, f"{tmp_path}/{name}", **FILM)
    stills = [picture(tmp_path / "f" / name) for name in names(tmp_path / "f")]
    assert len(stills) == len(source) == 24
    keys = [source.key(k) for k in range(24)]
    assert 8 < len(set(keys)) < 24
    for k in range(0, 24, 3):
        assert np.array_equal(stills[k], painted(source, k))
    for shown, still in zip(frames_of(tmp_path / "a.apng"), stills, strict=True):
        assert np.array_equal(shown[..., :3], still)
    film = decoded(tmp_path / "a.mp4")
    assert len(film) == 24
    errors = np.array([[np.abs(a - b).mean() for b in stills] for a in film])
    assert errors.diagonal().max() < 4
    for k, nearest in enumerate(errors.argmin(axis=1)):
        # At the beginning of a fade, pictures differ by less than the encoder loses.
        assert keys[nearest] == keys[k] or np.abs(stills[nearest] - stills[k]).mean() < 1


@pytest.mark.long
def test_a_frame_depends_on_its_number_alone(lesson, source):
    other = prepared(lesson, "b.mp4", **FILM).source
    try:
        there = [painted(source, k) for k in range(24)]
        for k in reversed(range(24)):
            assert np.array_equal(painted(other, k), there[k])
    finally:
        other.close()


@pytest.mark.long
def test_equal_keys_are_equal_pictures(source):
    seen = {}
    for k in range(24):
        pixels = painted(source, k).tobytes()
        assert seen.setdefault(source.key(k), pixels) == pixels
    assert len(set(seen.values())) > len(seen) / 2  # an op need not change anything


@pytest.mark.long
def test_only_some_steps(lesson, source, tmp_path):
    some = prepared(lesson, "a.mp4", **FILM, steps=(1, 2)).source
    assert {some.key(k)[0] for k in range(len(some))} == {1}
    end = next(k for k in range(24) if source.key(k)[0] == 1 and source.key(k)[3])
    try:
        assert np.array_equal(painted(some, len(some) - 1), painted(source, end))
    finally:
        some.close()


# --- in time ---------------------------------------------------------------------------------


def test_steps_walk_play_and_rest():
    shown = load_lesson(find_lesson("online-softmax")).steps
    board = make_storyboard(load_lesson(find_lesson("online-softmax")), range(8), fps=30)
    assert [n for n, _ in groupby(shot.step for shot in board.shots)] == list(range(8))
    *_, slide = board.shots
    assert slide.ended
    for n, shots in groupby(board.shots[:-1], lambda shot: shot.step):
        step = load_lesson(find_lesson("online-softmax")).steps[n]
        *way, last = shots
        asked = [shot for shot in way if shot.arrived]
        way = [shot for shot in way if not shot.arrived and not shot.asks]
        assert last.cursor == step.cursor
        assert last.arrived
        assert last.before is None
        assert last.revealed is bool(step.said.answer) is bool(asked)
        assert not any(shot.revealed for shot in way + asked)
        # What is said is there to be read for long enough, also while something moves.
        (told,) = asked or [last]
        goes_on = n < 7 and shown[n + 1].start == step.cursor and not asked
        assert told.seconds >= (BETWEEN if way and goes_on else REST if way else SHORTEST)
        words = word_count(step.slide) + word_count(step.said.question)
        assert sum(shot.seconds for shot in [*way, told]) >= max(SHORTEST, words / READING) - 1e-9
        if asked:
            assert last.seconds >= max(SHORTEST, word_count(step.said.answer) / READING)
        # The op to which a step walks is seen to happen, and lasts as long as any.
        longest = LONGEST_WAY if step.start else WALK_SECONDS + SECONDS_PER_RESCALE
        assert sum(shot.seconds for shot in way) <= longest + 1e-9
        for before, after in pairwise(way):
            assert after.before in (None, before.cursor)
        if step.start:
            seen = n and shown[n - 1].cursor == step.start  # and not shown once more
            assert (way[0].before if seen else way[0].cursor) == step.start
            way = way if seen else way[1:]
            # Ops take their share of it where it goes op by op.
            lasts = []
            for at in (shot.cursor for shot in way):
                op = program_of(step.scenario).ops(at.visit)[at.op]
                rescale = rescale_seconds_at(usual_run(step.scenario), at)
                lasts.append(rescale or seconds_of(op))
            lasts = [at if shot.before else 0.7 for at, shot in zip(lasts, way, strict=True)]
            paces = [shot.seconds / at for shot, at in zip(way, lasts, strict=True)]
            assert max(paces) == pytest.approx(min(paces))
            assert max(paces) <= 1 / step.pace + 1e-9
    steps = load_lesson(find_lesson("online-softmax")).steps
    scenario = [step.scenario for step in steps]
    walked = {shot.step for shot in board.shots if not shot.arrived}
    same = {n for n in range(1, 8) if scenario[n] == scenario[n - 1]}
    assert walked == same | {n for n, step in enumerate(steps) if step.start}
    assert same != set(range(1, 8))


@pytest.mark.long
@given(
    fps=st.integers(1, 60), length=st.none() | st.floats(0.1, 200), start=st.integers(0, 7),
    more=st.integers(0, 7),
)  # fmt: skip
def test_frames_pass_all_shots_in_order(fps, length, start, more):
    lesson = load_lesson(find_lesson("online-softmax"))
    steps = range(start, min(start + more + 1, 8))
    board = make_storyboard(lesson, steps, fps=fps, length=length)
    moments = [board.moment(k) for k in range(board.frames)]
    places = [board.shots.index(moment.shot) for moment in moments]
    assert places == sorted(places)
    assert all(0 <= moment.phase <= 1 for moment in moments)
    for one, other in pairwise(moments):
        if one.shot is other.shot:
            assert one.phase < other.phase
        assert other.since > one.since or other.shot.step > one.shot.step or other.shot.ended
    assert places[-1] == len(board.shots) - 1
    assert board.frames == max(1, round((length or board.ends[-1]) * fps))
    for place, count in enumerate(np.bincount(places, minlength=len(board.shots))):
        share = board.shots[place].seconds / board.ends[-1]
        assert abs(count - share * board.frames) <= 2


def test_pace_is_the_mean_of_the_steps():
    lesson = load_lesson(find_lesson("online-softmax"))
    assert make_storyboard(lesson, range(2, 5), fps=20, pace=4.0).frames == 240
    with pytest.raises(InputError, match="--pace"):
        make_storyboard(lesson, range(8), fps=60, pace=8000.0)


@pytest.mark.long
def test_every_shipped_lesson_takes_minutes_and_not_hours():
    lessons = list_lessons()
    assert len(lessons) > 9
    for title in lessons:
        lesson = load_lesson(title.path)
        board = make_storyboard(lesson, range(len(lesson.steps)), fps=30)
        assert 40 < board.ends[-1] < 300


# --- handouts and pictures -------------------------------------------------------------------


@pytest.mark.long
def test_a_handout_has_a_page_for_each_step(lesson, tmp_path):
    make(lesson, tmp_path / "a.pdf")
    reader = pypdf.PdfReader(tmp_path / "a.pdf")
    assert reader.metadata.title == "Three steps"
    assert [float(page.mediabox.width) for page in reader.pages] == [240, 240, 240, 240]
    texts = ["".join(page.extract_text().split()) for page in reader.pages]
    for text, title in zip(
        texts, ("Thefirsttile", "Themaximum", "Allofit", "Answers"), strict=True
    ):
        assert "Threesteps" in text
        assert title in text
    make(lesson, tmp_path / "b.pdf", steps=(1, 3), answers="none")
    assert len(pypdf.PdfReader(tmp_path / "b.pdf").pages) == 2


@pytest.mark.long
@pytest.mark.parametrize(
    ("asked", "question", "answer"),
    [({}, 1, 3), ({"answers": "none"}, 1, None), ({"answers": "beside"}, 1, 1), (PAPER, 0, 2)],
)
def test_answers_of_a_handout_are_where_they_are_wanted(asked, question, answer, lesson, tmp_path):
    made = make(lesson, tmp_path / "a.pdf", **asked)
    pages = [" ".join(text.split()) for text in texts_of(tmp_path / "a.pdf")]
    assert "What is it for?" in pages[question]
    answered = [n for n, text in enumerate(pages) if "no exponential" in text]
    assert answered == ([] if answer is None else [answer])
    assert ("then answers" in made.words) is (answer in (2, 3))
    assert ("Let them guess for 30 s." in " ".join(pages)) is asked.get("notes", False)


@pytest.mark.long
def test_a_sheet_of_two_steps_is_a4_and_drawn_as_its_pixels_are(lesson, tmp_path):
    source = make(lesson, tmp_path / "a.pdf", **PAPER).source
    document = pypdfium2.PdfDocument(tmp_path / "a.pdf")
    try:
        assert [page.get_size() for page in document] == [(595, 842)] * 3
        for k, page in enumerate(document):
            drawn = page.render(scale=2).to_numpy()[..., 2::-1].astype(int)
            assert off(painted(source, k), drawn, 17).max() <= MOST, f"page {k + 1}"
    finally:
        document.close()
        source.close()


def test_after_the_steps_come_exercises_papers_and_at_last_the_answers():
    class Said(SimpleNamespace):
        number, title, caption, notes = 0, "A row", "Shown (Dao 2023).", "See Dao et al. 2022."
        question, answer = "Why?", "So (Shazeer 2019)."

    exercises = exercises_in(load_lesson(find_lesson("online-softmax")))
    assert len(exercises) > 2
    whole = list(after_steps([Said()], exercises, notes=True))
    assert [section.title for section in whole] == ["Exercises", "References", "Answers"]
    assert [section.apart for section in whole] == [True, False, True]
    tasks, papers, answers = (section.texts for section in whole)
    assert [text.split("**")[1] for text in papers] == [
        "Dao 2023.", "Dao et al. 2022.", "Shazeer 2019."
    ]  # fmt: skip
    assert "https://arxiv.org/abs/2307.08691" in papers[0]
    for exercise, task, answer in zip(exercises, tasks, answers[1:], strict=True):
        assert exercise.ask in task
        assert exercise.answer_text.splitlines()[0].replace(" ", "\u00a0") in answer.replace(
            " ", "\u00a0"
        )
    hidden = list(after_steps([Said()], exercises, questions=False, answers=False))
    assert [section.title for section in hidden] == ["Exercises", "References"]
    assert len(hidden[1].texts) == 2


def test_long_texts_after_the_steps_go_on_in_the_next_column_and_page(lesson):
    frames = SimpleNamespace(size=(960, 540))
    paper = Handout(load_lesson(lesson), frames, ExportOptions("a.pdf", lesson=True))
    words = [f"w{n}" for n in range(2500)]
    texts = [" ".join(words[n : n + size]) for n, size in ((0, 1500), (1500, 900), (2400, 100))]
    pages = list(
        paper._laid_out(
            [PrintedSection("One", tuple(texts[:2])), PrintedSection("Two", (texts[2],))]
        )
    )
    placed = [(part, piece) for page in pages for part in page for piece in part.flow.pieces]
    said = [piece.text for _, piece in placed]
    assert said == ["One", *words[:2400], "Two", *words[2400:]]
    assert len(pages) > 2
    for part, piece in placed:
        assert 0 < part.x + piece.x < 960 - 20
        assert 10 < part.y + piece.baseline < 540 - 20
    assert list(paper._laid_out([])) == []


@pytest.mark.parametrize("target", ["a.pdf", "a.png"])
def test_pictures_show_the_part_that_the_camera_comes_to(target, qapp):
    source = prepared(find_lesson("one-minute"), target, steps=(3, 4)).source
    frames = source if target == "a.png" else source._frames
    try:
        frames.make_ready(0, lambda: None)
        shown = frames.unseen.window.board.view
        frames.show(LessonFrame(frames._board.shots[0], 1.0, math.inf), lambda: None)
        assert shown == frames.unseen.window.board.view
    finally:
        source.close()


@pytest.mark.long
def test_a_picture_is_of_the_first_step_or_the_one_asked_for(lesson, source, tmp_path):
    ends = {source.key(k)[0]: k for k in range(24) if not source.key(k)[4]}
    for steps, n in ((None, 0), ((1, 2), 1), ((0, None), 2)):
        make(lesson, tmp_path / "a.png", steps=steps)
        assert np.array_equal(picture(tmp_path / "a.png"), painted(source, ends[n]))
    make(lesson, tmp_path / "a.svg", steps=(1, 2))
    text = (tmp_path / "a.svg").read_text()
    assert 'aria-label="exponential"' in text  # the answer


# --- what a file says about itself -----------------------------------------------------------


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("ending", [".png", ".pdf", ".gif"])
def test_an_export_opens_as_the_scenario_of_its_first_step(ending, lesson, tmp_path):
    target = tmp_path / f"a{ending}"
    changes = {"fps": 5, "length": 1.0} if ending == ".gif" else {}
    export = make(lesson, target, **changes, steps=(1, None))
    assert read_scenario(target) == load_scenario(ROOT / "assets/scenarios/causal.toml")
    words = shlex.split(read_note(target).command)
    assert words[:5] == ["python", "-m", "ui", "export", str(lesson)]
    assert words[words.index("--steps") + 1] == "1:"
    assert "--scene" not in words
    assert read_note(target) == export.note


# --- the command -----------------------------------------------------------------------------


@pytest.mark.long
def test_the_command_takes_a_file_or_a_name(lesson, tmp_path):
    done = command(lesson, "-o", tmp_path / "a.png", "--size", "480x320", "--steps", "1",
                   "--engine", "numpy")  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "step 1" in done.stdout
    make(lesson, tmp_path / "b.png", steps=(1, 2))
    assert np.array_equal(picture(tmp_path / "a.png"), picture(tmp_path / "b.png"))
    assert find_lesson("online-softmax") == find_lesson("05-online-softmax")
    assert find_lesson("05-online-softmax") == LESSONS / "05-online-softmax.md"
    assert find_lesson("mine.md").name == "mine.md"


def test_a_folder_does_not_hide_the_lesson_of_its_name(tmp_path, monkeypatch):
    (tmp_path / "kernels").mkdir()
    monkeypatch.chdir(tmp_path)
    assert lesson_file("kernels") == LESSONS / "15-kernels.md"
    (tmp_path / "window").write_text("")
    assert lesson_file("window") is None


@pytest.mark.long
def test_a_broken_step_is_told_and_left_out(tmp_path):
    path = tmp_path / "broken.md"
    path.write_text(LESSON.replace('[1, 0], op = "row max"', "[1, 9]"), encoding="utf-8")
    done = command(path, "-o", tmp_path / "a.pdf", "--size", "480x320", "--engine", "numpy")
    assert done.returncode == 0
    assert "2 pages" in done.stdout
    assert "at.tile" in done.stderr
    assert done.stderr.count("\n") == 1


# --- when something goes wrong ---------------------------------------------------------------


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("ending", [".mp4", ".pdf", "/"])
def test_cancel_leaves_what_was_there(ending, lesson, tmp_path):
    target = f"{tmp_path}/a{ending}"
    if ending != "/":
        (tmp_path / f"a{ending}").write_bytes(b"old")
    before = names(tmp_path)
    changes = {} if ending == ".pdf" else {"fps": 30, "length": 60.0}
    export = prepared(lesson, target, **changes)

    def report(share):
        if share > 0:
            raise Cancelled

    threads = threading.active_count()
    with pytest.raises(Cancelled):
        export.make(report)
    assert names(tmp_path) == before
    deadline = time.monotonic() + 5
    while threading.active_count() > threads and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() == threads


def test_a_panel_that_fails_is_told_and_leaves_nothing(lesson, tmp_path, monkeypatch):
    from ui.panels.memory.panel import MemoryPanel

    def broken(panel, snapshot, before):
        raise ValueError("no picture")

    monkeypatch.setattr(MemoryPanel, "show_snapshot", broken)
    with pytest.raises(InputError, match="no picture"):
        make(lesson, tmp_path / "a.mp4", **FILM)
    assert names(tmp_path) == []


def test_an_input_that_is_gone_is_told(tmp_path):
    tensors = tmp_path / "mine.npz"
    q = np.zeros((1, 16, 8), np.float32)
    np.savez(tensors, q=q, k=q, v=q)
    path = tmp_path / "mine.md"
    steps = '## One\n\n```toml step\nchange.input = { source = "file", path = "mine.npz" }\n```\n'
    path.write_text(f'+++\ntitle = "Mine"\n+++\n\n{steps}\nNothing.\n', encoding="utf-8")
    (tmp_path / "out").mkdir()
    export = prepared(path, tmp_path / "out" / "a.mp4", **FILM)
    tensors.unlink()
    with pytest.raises(InputError, match=r"mine\.npz"):
        export.make(lambda share: None)
    assert names(tmp_path / "out") == []
