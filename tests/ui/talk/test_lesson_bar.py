"""The strip of a lesson: it holds every caption, keeps its height, and says what the user wants."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtWidgets import QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from simulator.lesson.steps import ResolvedStep
from tests.helpers.shown_lessons import shipped_steps
from ui.look.theme import DARK, Style
from ui.talk.caption import BODY, SMALLEST, LessonEnd, caption_height, caption_layout, caption_of
from ui.talk.lesson_bar import LONGEST, LessonBar, strip_height, text_rect, text_style
from ui.talk.slide import line_count

pytestmark = pytest.mark.usefixtures("qapp")

SIZES = ((1280, 720), (1920, 1080), (3840, 2160))
LEFT = Qt.MouseButton.LeftButton


@pytest.fixture(scope="module")
def steps() -> dict[str, ResolvedStep]:
    """All steps of all lessons that ship, by lesson and number."""
    return {f"{stem}, step {n + 1}": step for (stem, n), step in shipped_steps().items()}


@pytest.fixture(scope="module")
def step(steps: dict[str, ResolvedStep]) -> ResolvedStep:
    """Return one with a question, in the middle of its lesson."""
    return next(s for s in steps.values() if s.question and 0 < s.number < s.count - 1)


# --- room -------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("large", [False, True], ids=["window", "page"])
@pytest.mark.parametrize("size", SIZES[::2], ids=str)
def test_every_caption_of_every_lesson_fits_at_full_size(steps, size, large) -> None:
    style, window = Style(DARK), QSize(*size)
    own = text_style(style, window, large=large)
    height = strip_height(style, window, large=large)
    place = text_rect(style, window, height, large=large)
    assert len(steps) >= 80
    for name, each in steps.items():
        laid = caption_layout(caption_of(each, True), own, place.width(), place.height())
        assert laid.scale == own.scale, name
        assert laid.height <= place.height(), name
        assert laid.right <= place.width(), name


@pytest.mark.long
def test_every_caption_has_two_lines_on_the_stage(steps) -> None:
    """Before the answer and with it; what is longer stands in a second paragraph, for the notes."""
    for name, each in steps.items():
        lines = [line_count(caption_of(each, shown)) for shown in (False, True)]
        if each.prediction is not None:
            asks = replace(each, caption=each.prediction.ask, question="", answer="")
            lines.append(line_count(caption_of(asks, False)))
        assert max(lines) <= 2, name


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize(
    ("size", "scale", "large"),
    [
        ((1024, 700), 2.0, False),
        (SIZES[0], 1.5, True),
        (SIZES[0], 2.0, True),
        (SIZES[2], 1.5, False),
    ],
    ids=str,
)
def test_at_any_text_scale_they_are_made_smaller_rather_than_cut(steps, size, scale, large) -> None:
    style, window = Style(DARK, scale), QSize(*size)
    own = text_style(style, window, large=large)
    height = strip_height(style, window, large=large)
    place = text_rect(style, window, height, large=large)
    for name, each in steps.items():
        laid = caption_layout(caption_of(each, True), own, place.width(), place.height())
        assert laid.height <= place.height(), name
        assert laid.right <= place.width(), name
        assert round(BODY * laid.scale) > SMALLEST, name


@pytest.mark.long
def test_the_longest_caption_is_what_the_docs_allow(steps) -> None:
    for text, key in ((LONGEST.body, "caption"), (LONGEST.question, "question"),
                      (LONGEST.answer, "answer")):  # fmt: skip
        assert len(text.split()) >= max(len(getattr(s, key).split()) for s in steps.values())
    style = Style(DARK)
    longest = max(caption_height(caption_of(s, True), style, 1700) for s in steps.values())
    assert caption_height(LONGEST, style, 1700) >= longest


# --- the widget -------------------------------------------------------------------------------


@pytest.fixture
def bar(qtbot: QtBot, step: ResolvedStep) -> Iterator[LessonBar]:
    """The strip at the foot of a window of 1280 × 720."""
    window = QWidget()
    qtbot.addWidget(window)
    column = QVBoxLayout(window)
    column.setContentsMargins(0, 0, 0, 0)
    column.addStretch(1)
    bar = LessonBar()
    column.addWidget(bar)
    window.resize(1280, 720)
    window.show()
    qtbot.waitExposed(window)
    bar.show_step(step, False)
    yield bar
    window.close()


def test_the_height_is_the_same_for_every_step(bar, steps) -> None:
    heights, places = set(), set()
    for each in steps.values():
        for revealed in (False, True):
            bar.show_step(each, revealed)
            heights.add(bar.height())
            places.add(bar.buttons["next"].geometry().getRect())
    assert heights == {strip_height(Style(DARK), QSize(1280, 720), large=False)}
    assert len(places) == 1


@pytest.mark.parametrize("scale", [1.0, 1.5, 2.0])
@pytest.mark.parametrize("size", [(800, 500), *SIZES], ids=str)
def test_the_parts_are_inside_and_apart(bar, size, scale) -> None:
    bar.set_style(Style(DARK, scale))
    bar.window().resize(*size)
    bar.show_end(LessonEnd("This", "The next", last=False))
    assert bar.buttons["next"].text() == "Next lesson"
    parts = [bar.caption, bar.ticks, *bar.buttons.values()]
    inside = QRect(0, 0, bar.width(), bar.height())
    for n, part in enumerate(parts):
        assert inside.contains(part.geometry()), part.objectName()
        for other in parts[:n]:
            assert not part.geometry().intersects(other.geometry())
    for name in ("back", "next", "reveal", "exercises"):
        button = bar.buttons[name]
        words = button.fontMetrics().horizontalAdvance(button.text())
        assert words + 4 <= button.width()
        assert button.fontMetrics().height() <= button.height()


def test_the_buttons_say_what_the_user_wants(bar, qtbot) -> None:
    for name, signal in (
        ("next", bar.next_asked), ("back", bar.back_asked),
        ("reveal", bar.reveal_asked), ("exercises", bar.exercises_asked),
        ("leave", bar.leave_asked),
    ):  # fmt: skip
        with qtbot.waitSignal(signal):
            qtbot.mouseClick(bar.buttons[name], LEFT)
    with qtbot.waitSignal(bar.next_asked):
        qtbot.keyClick(bar.buttons["next"], Qt.Key.Key_Return)


def test_buttons_are_off_where_they_lead_nowhere(bar, step) -> None:
    def on() -> list[str]:
        return [name for name, button in bar.buttons.items() if button.isEnabled()]

    assert on() == ["back", "next", "reveal", "exercises", "leave"]
    bar.show_step(step, True)
    assert on() == ["back", "next", "exercises", "leave"]
    bar.show_step(replace(step, number=0, question="", answer=""), False)
    assert on() == ["next", "exercises", "leave"]
    bar.show_step(replace(step, number=step.count - 1), True)
    assert on() == ["back", "next", "exercises", "leave"]
    bar.show_end(LessonEnd("This", "The next", last=False))
    assert on() == ["back", "next", "exercises", "leave"]
    bar.show_end(LessonEnd("This", "", last=True))
    assert on() == ["back", "exercises", "leave"]


@pytest.mark.parametrize("count", [1, 8, 60])
def test_a_click_on_a_step_goes_there(bar, step, qtbot, count) -> None:
    bar.show_step(replace(step, number=0, count=count), False)
    boxes = bar.ticks.boxes()
    assert len(boxes) == count
    assert boxes[-1].right() <= bar.ticks.width() + 0.01
    for n in {0, count // 2, count - 1}:
        at = QPoint(int(boxes[n].center().x()), bar.ticks.height() // 2)
        with qtbot.waitSignal(bar.step_chosen) as told:
            qtbot.mouseClick(bar.ticks, LEFT, pos=at)
        assert told.args == [n]


def test_up_and_down_on_the_steps_go_to_those_beside(bar, step, qtbot) -> None:
    for key, way in ((Qt.Key.Key_Up, -1), (Qt.Key.Key_Down, 1)):
        with qtbot.waitSignal(bar.step_chosen) as told:
            qtbot.keyClick(bar.ticks, key)
        assert told.args == [step.number + way]
    bar.show_step(replace(step, number=0), False)
    with qtbot.assertNotEmitted(bar.step_chosen):
        qtbot.keyClick(bar.ticks, Qt.Key.Key_Up)


def test_on_the_stage_the_controls_are_away_and_the_text_is_larger(bar, step) -> None:
    def scale() -> float:
        size = bar.caption.size()
        caption, style = bar.caption.shown, bar.caption.style_now
        return caption_layout(caption, style, size.width(), size.height()).scale

    before, high = scale(), bar.height()
    bar.set_large(True)
    assert round(BODY * bar.caption.style_now.scale) == 25  # 38 of 1080
    assert bar.height() == round(110 * 720 / 1080)
    assert not bar.ticks.isVisible()
    assert not any(button.isVisible() for button in bar.buttons.values())
    assert bar.caption.shown.place == f"{step.number + 1} of {step.count}"
    bar.set_large(False)
    assert (scale(), bar.height()) == (before, high)
    assert all(button.isVisible() for button in bar.buttons.values())


def test_those_who_hear_it_are_told_the_same(bar, step) -> None:
    words = bar.caption.accessibleDescription()
    assert words.startswith(f"{step.title}, {step.number + 1} of {step.count}")
    assert step.question in words
    assert step.answer not in words
    bar.show_step(step, True)
    assert step.answer in bar.caption.accessibleDescription()
    for widget in (bar, bar.caption, bar.ticks, *bar.buttons.values()):
        assert widget.accessibleName()
