"""Lessons in the window: steps forward and back, borrowed layouts, what comes back at the end."""

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QTabBar

from simulator.base.assets import LESSONS, SCENARIOS
from simulator.lesson.course import course, course_paths, parts
from simulator.problem.scenario import with_values
from simulator.program.playback import Cursor, end_of_visit
from ui.app.start import make_window
from ui.look.layouts import LAYOUT_PANELS
from ui.session.session import Session
from ui.talk.caption import caption_of
from ui.talk.lessons import Lessons
from ui.window.main_window import MainWindow
from ui.window.mnemonics import plain

Open = Callable[..., MainWindow]
ONLINE = LESSONS / "05-online-softmax.md"
ROOT_D = LESSONS / "02-why-sqrt-d.md"

SHORT = """\
+++
title = "Short"
+++

## One

```toml step
scenario = "flash2"
at = { tile = [0, 1], op = "scores" }
row = 3
point = [{ tile = [0, 1] }]
```

First.

## Two

```toml step
play = [{ tile = [0, 1] }, { tile = [1, 0] }]
question = "Why?"
answer = "Because."
```

Second.

## Three

```toml step
scenario = "causal"
at = "last"
layout = "exactness"
```

Third.
"""


@pytest.fixture
def lesson(tmp_path: Path) -> Path:
    path = tmp_path / "short.md"
    path.write_text(SHORT, encoding="utf-8")
    return path


def begin(window: MainWindow, path: Path) -> Lessons:
    window.files.open_path(path)
    window.session.settle()
    return window.lessons


def wait(window: MainWindow) -> None:
    """Let a walk come to its end."""
    for _ in range(4000):
        window.session.settle()
        if not window.lessons.player.walking:
            return
        QTest.qWait(5)
    raise AssertionError("the walk never ends")


@pytest.mark.long
def test_a_lesson_shows_its_steps_by_the_keys_of_a_clicker(open_window, lesson):
    window = open_window("grouped-heads")
    lessons = begin(window, lesson)
    player, bar = lessons.player, lessons.bar
    assert bar.isVisible()
    assert player.step.title == "One"
    assert window.session.cursor.visit == 1
    assert window.session.view.report.row == 3
    assert [point.tile for point in window.session.view.points] == [(0, 1)]

    QTest.keyClick(window, Qt.Key.Key_PageDown)
    window.session.settle()
    assert player.step.title == "Two"
    assert not player.revealed
    program = window.session.view.snapshot.program
    index = program.index(0, 1, 0)
    assert index is not None
    assert window.session.cursor == end_of_visit(program, index)
    assert window.session.view.points == ()

    QTest.keyClick(window, Qt.Key.Key_PageDown)
    assert player.step.title == "Two"
    assert player.revealed, "the answer comes before the next step"
    QTest.keyClick(window, Qt.Key.Key_PageDown)
    window.session.settle()
    assert player.step.title == "Three"
    assert window.session.scenario.mask.causal
    assert window.desk.lent == ("exactness", "")
    assert window.docks["exactness"].isVisible()

    QTest.keyClick(window, Qt.Key.Key_PageDown)
    window.session.settle()
    assert player.step.title == "Three"
    assert player.ended, "after the last step the end is told"
    caption = bar.caption.shown
    assert caption.title == "End of lesson: Short"
    assert "Next" not in caption.body, "it is none of those that ship"
    assert "last lesson" not in caption.body
    assert not bar.buttons["next"].isEnabled()
    QTest.keyClick(window, Qt.Key.Key_PageDown)
    window.session.settle()
    assert player.step.title == "Three", "nothing more comes"
    QTest.keyClick(window, Qt.Key.Key_PageUp)
    assert not player.ended
    assert bar.caption.shown == caption_of(player.step, False)
    QTest.keyClick(window, Qt.Key.Key_PageUp)
    window.session.settle()
    assert player.step.title == "Two"
    assert player.revealed, "going back, the answer is known"
    assert window.desk.lent == ("steps", "")


def at_its_last_step(window: MainWindow, name: str) -> Lessons:
    lessons = begin(window, LESSONS / name)
    lesson = lessons.player.lesson
    lessons.player.go(len(lesson.steps) - 1)
    wait(window)
    lessons.player.reveal()
    return lessons


@pytest.mark.long
def test_after_the_last_step_the_next_lesson_is_offered_and_opened(open_window):
    window = open_window("grouped-heads")
    lessons = at_its_last_step(window, "01-soft-lookup.md")
    player, bar = lessons.player, lessons.bar
    assert window.windowTitle().startswith("Soft lookup[*] — Tilescope")
    QTest.keyClick(window, Qt.Key.Key_PageDown)
    assert player.path == LESSONS / "01-soft-lookup.md", "one key too many only tells the end"
    caption, button = bar.caption.shown, bar.buttons["next"]
    assert caption.title == "End of lesson: Soft lookup"
    assert "Next: **One token through a layer**" in caption.body
    assert (button.text(), button.isEnabled()) == ("Next lesson", True)
    assert button.toolTip() == "Next lesson: One token through a layer (PgDn)"
    QTest.keyClick(window, Qt.Key.Key_A)
    assert bar.caption.shown == caption, "no answer in the place of the end"

    QTest.mouseClick(button, Qt.MouseButton.LeftButton)
    wait(window)
    assert player.path == LESSONS / "13-whole-layer.md"
    assert player.step_number == 0
    assert not player.ended
    assert button.text() == "Next"
    assert bar.caption.shown.lesson == "One token through a layer"
    assert window.windowTitle().startswith("One token through a layer[*] — Tilescope")

    player.leave()
    wait(window)
    assert window.windowTitle().startswith("Grouped heads: six query heads share two")


@pytest.mark.long
def test_the_last_lesson_says_that_it_was(open_window):
    window = open_window("causal")
    last = course()[-1].path
    lessons = at_its_last_step(window, last.name)
    for _ in range(3):
        QTest.keyClick(window, Qt.Key.Key_PageDown)
        wait(window)
    assert lessons.player.path == last
    caption = lessons.bar.caption.shown
    assert caption.body.startswith("This was the last lesson.")
    assert not lessons.bar.buttons["next"].isEnabled()
    lessons.player.go(0)
    wait(window)
    assert not lessons.player.ended


def test_a_key_that_is_held_does_not_run_into_the_next_lesson(open_window):
    window = open_window("causal")
    assert not window.actions_by_name["lesson_next"].autoRepeat()


@pytest.mark.long
def test_leaving_puts_back_what_was_on_show(open_window):
    window = open_window("grouped-heads")
    window.desk.take("memory")
    session = window.session
    session.propose(with_values(window.session.scenario, {"mask": {"causal": False}}), "not causal")
    session.settle()
    session.go(Cursor(7, 2))
    session.choose_row(50)
    session.settle()
    scenario, title, row = session.scenario, window.windowTitle(), window.session.view.report.row
    docks = {spec.name for spec, dock in window.docks if dock.isVisible()}

    lessons = begin(window, ROOT_D)
    lessons.player.go(2)
    session.settle()
    assert window.desk.lent == ("inspector", "sqrt_d")
    assert not window.docks.panel("sqrt_d").visibleRegion().isEmpty()
    assert not session.undo_stack.canUndo(), "a lesson has its own history"
    session.propose(
        with_values(window.session.scenario, {"mask": {"causal": True}}), "in the lesson"
    )
    session.settle()
    assert session.undo_stack.undoText() == "in the lesson"

    QTest.keyClick(window, Qt.Key.Key_W, Qt.KeyboardModifier.ControlModifier)
    session.settle()
    assert not lessons.bar.isVisible()
    assert window.desk.lent is None
    assert session.scenario == scenario
    assert window.windowTitle() == title
    assert session.cursor == Cursor(7, 2)
    assert window.session.view.report.row == row
    assert session.path == SCENARIOS / "grouped-heads.toml"
    assert {spec.name for spec, dock in window.docks if dock.isVisible()} == docks
    assert window.settings.layout == "memory"
    assert session.undo_stack.undoText() == "not causal"
    session.undo_stack.undo()
    session.settle()
    assert window.session.scenario.mask.causal


def test_undo_never_shows_the_scenario_of_another_step(window, session, lesson):
    lessons = begin(window, lesson)
    session.propose(with_values(window.session.scenario, {"tiling": {"rows": 8}}), "rows 8")
    session.settle()
    assert session.undo_stack.canUndo()
    assert window.isWindowModified()
    lessons.player.go(2)
    session.settle()
    third = session.scenario
    assert third.mask.causal
    assert not session.undo_stack.canUndo()
    assert not window.isWindowModified()
    session.propose(with_values(third, {"tiling": {"rows": 8}}), "rows 8")
    session.settle()
    session.undo_stack.undo()
    session.settle()
    assert session.scenario == third


def motions_cut_short(session: Session) -> list[bool]:
    """Return a list that says of each view that comes whether something was moving still."""
    told, cut = [1.0], []
    session.moved.connect(told.append)
    # A view is told before its own share.
    session.view_changed.connect(lambda view: cut.append(told[-1] < 1))
    return cut


@pytest.mark.long
def test_motion_walks_op_by_op_and_back(window, session, lesson):
    window.set_motion(True)
    lessons = begin(window, ONLINE)
    player = lessons.player
    wait(window)
    start = session.cursor
    seen: list[Cursor] = []
    session.view_changed.connect(lambda view: seen.append(view.snapshot.cursor))
    cut = motions_cut_short(session)
    player.next()
    wait(window)
    assert session.cursor == player.step.cursor
    assert window.session.view.points == player.step.points
    player.next()
    wait(window)
    there = player.step.cursor
    assert there.op - start.op > 2
    assert sorted(set(seen)) == [Cursor(start.visit, op) for op in range(start.op, there.op + 1)]
    assert cut == [False] * len(seen)
    seen.clear()
    player.back()
    wait(window)
    assert seen == sorted(seen, reverse=True), "back, it walks back"
    assert session.cursor == player.step.cursor


@pytest.mark.long
def test_a_step_that_plays_starts_at_its_start(window, lesson):
    window.set_motion(True)
    window.session.set_speed(20.0)
    lessons = begin(window, lesson)
    wait(window)
    seen: list[Cursor] = []
    window.session.view_changed.connect(lambda view: seen.append(view.snapshot.cursor))
    cut = motions_cut_short(window.session)
    lessons.player.next()
    wait(window)
    step = lessons.player.step
    assert step.start is not None
    assert seen[0] == step.start
    assert seen[-1] == step.cursor
    assert len(set(seen)) > 20, "every op is seen"
    assert cut[1:] == [False] * (len(seen) - 1), "to its end"
    lessons.player.reveal()
    lessons.player.next()
    wait(window)
    seen.clear()
    lessons.player.back()
    wait(window)
    assert seen[-1] == step.cursor
    assert step.start not in seen, "back: the end, not the play again"


@pytest.mark.long
def test_who_goes_elsewhere_meanwhile_is_not_pulled_back(window, lesson):
    window.set_motion(True)
    lessons = begin(window, lesson)
    wait(window)
    lessons.player.next()
    window.session.settle()
    assert lessons.player.walking
    window.session.go(Cursor(9, 0))
    wait(window)
    assert window.session.cursor == Cursor(9, 0)


@pytest.mark.long
def test_layouts_chosen_in_a_lesson_are_not_remembered(window, lesson):
    before = window.settings.layout
    begin(window, lesson)
    window.desk.actions["cache"].trigger()
    assert window.docks["cache"].isVisible()
    assert window.settings.layout == before
    window.lessons.player.next()
    window.session.settle()
    assert window.docks["memory"].isVisible()
    assert not window.docks["cache"].isVisible()


def test_a_broken_step_is_told_and_the_rest_opens(open_window, tmp_path):
    path = tmp_path / "broken.md"
    path.write_text(SHORT.replace('layout = "exactness"', 'layout = "exact"'), encoding="utf-8")
    window = open_window()
    lessons = begin(window, path)
    assert len(lessons.player.lesson.steps) == 2
    told = window.messages.text()
    assert "broken.md:" in told
    assert "layout" in told
    assert "exactness" in told
    assert lessons.bar.isVisible()
    assert window.messages.isVisible()


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize(
    ("text", "words"),
    [("", "front matter"), ('+++\ntitle = "x"\n+++\n', "a step"), (None, "readable file")],
)
def test_what_is_no_lesson_changes_nothing(open_window, tmp_path, text, words):
    path = tmp_path / "none.md"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    window = open_window()
    scenario = window.session.scenario
    lessons = begin(window, path)
    assert lessons.player.lesson is None
    assert not lessons.bar.isVisible()
    assert words in window.messages.text()
    assert "none.md" in window.messages.text()
    assert window.session.scenario == scenario
    assert window.desk.lent is None


def test_a_panel_that_a_layout_has_not_is_told(tmp_path):
    from simulator.lesson.reader import load_lesson

    path = tmp_path / "panel.md"
    path.write_text(SHORT.replace('"exactness"', '"exactness"\npanel = "cache"'), encoding="utf-8")
    found = load_lesson(path, LAYOUT_PANELS).mistakes
    assert [str(m) for m in found] == [
        f'{path}:32: panel = "cache": expected one of exactness, merge, softmax, scenario'
    ]


@pytest.mark.long
def test_closing_within_a_lesson_keeps_the_users_own_things(open_window, settings, lesson):
    window = open_window("grouped-heads")
    session = window.session
    session.propose(with_values(window.session.scenario, {"mask": {"causal": False}}), "not causal")
    session.settle()
    window.desk.take("memory")
    begin(window, lesson)
    window.close()
    assert settings.layout == "memory"
    assert settings.recent[0].name == "unsaved-grouped-heads.toml"
    assert "causal = true" not in settings.recent[0].read_text(encoding="utf-8")
    assert "kv_heads = 2" in settings.recent[0].read_text(encoding="utf-8")


@pytest.mark.long
def test_the_menu_lists_the_shipped_lessons_by_part(window):
    menu = window.menus["Lessons"]
    orders = []
    for _ in range(3):
        menu.aboutToShow.emit()
        orders.append([plain(action.text()) for action in menu.actions()])
    assert orders[0] == orders[1] == orders[2]
    found = parts()
    assert orders[0][0].startswith("I  What attention computes\t")
    assert orders[0][4:6] == ["For lecturers\t3 min", ""]
    assert [text.partition("\t")[0] for text in orders[0][6:10]] == [
        "Path: Linear algebra only", "Path: ML engineer", "Path: CUDA engineer", "",
    ]  # fmt: skip
    inner = [action.menu() for action in menu.actions()[: len(found)]]
    for each, part in zip(inner, found, strict=True):
        assert [action.text() for action in each.actions()] == [
            f"{n}  {lesson.title}\t{lesson.minutes} min"
            for n, lesson in enumerate(part.lessons, start=1)
        ]
    assert sum(len(each.actions()) for each in inner) == len(list(LESSONS.glob("*.md")))
    next(a for a in inner[1].actions() if "Online softmax" in a.text()).trigger()
    window.session.settle()
    assert window.lessons.player.path == ONLINE
    menu.aboutToShow.emit()
    shown = [action.text() for each in inner for action in each.actions() if action.isChecked()]
    assert shown == ["3  Online softmax\t8 min"]


def test_the_menu_has_the_lanes_of_the_course_map(window):
    window.settings.add_lesson_done("01-soft-lookup")
    menu, paths = window.menus["Lessons"], course_paths()
    menu.aboutToShow.emit()
    *own, first, second, third = (a.menu() for a in menu.actions() if a.menu() is not None)
    seen = [action for each in own for lane in each.lanes for action in lane.stops]
    assert len(seen) == sum(len(path.lessons) for path in paths)
    for inner, path in zip((first, second, third), paths, strict=True):
        (lane,) = inner.lanes
        listed = [action.text() for action in inner.actions() if action.isEnabled()]
        titles = [text.split("\t")[0].split("  ")[1] for text in listed]
        assert titles == [lesson.title for lesson in path.lessons]
        assert [action.text() for action in lane.stops] == listed
        assert sum("next" in text for text in listed) == 1
    (next_,) = (action for action in first.actions() if "next" in action.text())
    assert next_.text().startswith("2  One token through a layer")
    look = [each.menuAction().icon().pixmap(16).toImage() for each in (first, second, third)]
    assert all(look[n] != look[n - 1] for n in range(3))  # each is told by its lane
    shown, x = first.grab().toImage(), round(window.style_now.px(14))
    above = first.actionGeometry(next_).top()
    assert shown.pixelColor(x, above).name() == window.style_now.theme.current.lower()


def test_without_a_lesson_its_keys_are_free(window):
    names = ("lesson_next", "lesson_back", "reveal", "leave_lesson")
    assert not any(window.actions_by_name[name].isEnabled() for name in names)
    begin(window, ONLINE)
    assert all(window.actions_by_name[name].isEnabled() for name in names)
    window.lessons.player.leave()
    assert not any(window.actions_by_name[name].isEnabled() for name in names)


@pytest.mark.long
def test_opening_a_scenario_leaves_the_lesson(open_window, lesson):
    window = open_window("grouped-heads")
    begin(window, lesson)
    window.files.open_path(lesson.with_suffix(".toml"))
    window.session.settle()
    assert window.lessons.player.lesson is not None, "what cannot be opened changes nothing"
    window.files.open_path(SCENARIOS / "causal.toml")
    window.session.settle()
    assert window.lessons.player.lesson is None
    assert not window.lessons.bar.isVisible()
    assert window.session.path == SCENARIOS / "causal.toml"
    window.session.undo_stack.undo()
    window.session.settle()
    assert window.session.path == SCENARIOS / "grouped-heads.toml"


@pytest.mark.long
def test_a_lesson_fits_the_window_of_a_small_screen(open_window):
    # 1280 x 720 less a title bar.
    window = open_window(size=(1264, 672))
    lessons = begin(window, ONLINE)
    for layout in (None, *LAYOUT_PANELS):
        if layout is not None:
            window.desk.lend(layout)
        window.session.settle()
        assert (window.width(), window.height()) == (1264, 672), layout
    assert lessons.bar.isVisible()


def test_a_lesson_that_was_the_first_to_be_shown_leaves_no_marks(qapp, settings, qtbot, tmp_path):
    path = tmp_path / "short.md"
    path.write_text(SHORT, encoding="utf-8")
    window = make_window(path, settings=settings)
    qtbot.addWidget(window)
    window.show()
    window.session.settle()
    assert window.session.view.points
    window.lessons.player.leave()
    window.session.settle()
    assert not window.session.view.points
    window.close()


@pytest.mark.long
def test_a_step_in_a_low_window_has_its_panel_in_front_and_tabs_above(open_window):
    window = open_window("flash2", (1280, 720))
    window.files.open_path(ONLINE)
    for front in ("memory", "softmax", "softmax"):
        window.session.settle()
        QApplication.processEvents()
        seen = {spec.name for spec, dock in window.docks if not dock.visibleRegion().isEmpty()}
        assert seen == {front}
        bars = [bar for bar in window.findChildren(QTabBar) if bar.isVisible() and bar.count()]
        assert [bar.tabText(bar.currentIndex()) for bar in bars] == [
            window.docks[front].windowTitle()
        ]
        window.lessons.player.next()
