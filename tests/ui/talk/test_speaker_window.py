"""The speaker's window: what it says about a step, its clock, and that all of it fits."""

from dataclasses import replace
from itertools import combinations

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QLabel, QWidget

from simulator.lesson.steps import ResolvedStep
from tests.helpers.shown_lessons import shipped_steps
from ui.look.theme import DARK, Style
from ui.talk.caption import LessonEnd, caption_layout, caption_of, end_caption
from ui.talk.slide import left_out
from ui.talk.speaker_window import ZOOMS, SpeakerWindow, elapsed_words, next_caption, now_caption

SIZES = [(560, 360), (1000, 640), (1280, 720), (1920, 1080), (3840, 2160)]


@pytest.fixture(scope="module")
def steps() -> list[ResolvedStep]:
    return [step for (stem, _), step in shipped_steps().items() if stem == "05-online-softmax"]


@pytest.fixture
def asking(steps: list[ResolvedStep]) -> ResolvedStep:
    return next(step for step in steps if step.question)


@pytest.fixture
def window(qtbot) -> SpeakerWindow:
    out = SpeakerWindow()
    qtbot.addWidget(out)
    out.resize(1280, 720)
    out.show()
    return out


# --- what it says ---------------------------------------------------------------------------


def test_the_speaker_always_sees_the_answer(window, asking) -> None:
    for revealed in (False, True):
        window.show_step(asking, None, revealed)
        shown = window.now.prose.caption
        assert (shown.question, shown.answer) == (asking.question, asking.answer)
        assert shown.revealed
    assert asking.answer.split()[0] in window.now.prose.accessibleDescription()


def test_notes_take_the_place_of_what_the_audience_reads(steps) -> None:
    step = replace(steps[1], notes="Wait here.")
    aside = left_out(caption_of(step, False))
    assert now_caption(step).body == "\n\n".join(filter(None, (aside, "Wait here.")))
    assert steps[1].caption in now_caption(replace(step, notes="")).body
    shown = now_caption(step)
    assert (shown.title, shown.place) == (step.title, f"2 of {len(steps)}")


def test_the_next_step_is_shown_without_its_answer(steps, asking) -> None:
    shown = next_caption(steps[asking.number - 1], asking)
    assert (shown.title, shown.body) == (asking.title, asking.caption)
    assert shown.answer == ""


def test_the_last_step_and_no_lesson_are_said(steps) -> None:
    assert next_caption(steps[-1], None).title == "The last step is on show"
    assert next_caption(steps[0], None).title == ""  # not known yet
    assert now_caption(None).title == "No lesson is open"


def test_the_reveal_button_says_what_the_audience_sees(window, steps, asking) -> None:
    reveal = window.buttons["reveal"]
    window.show_step(asking, None, False)
    assert (reveal.isEnabled(), reveal.text()) == (True, "Reveal answer")
    window.show_step(asking, None, True)
    assert (reveal.isEnabled(), reveal.text()) == (True, "Hide answer")
    window.show_step(replace(asking, question="", answer=""), None, False)
    assert (reveal.isEnabled(), reveal.text()) == (False, "Reveal answer")


@pytest.mark.parametrize(
    ("button", "signal"),
    [(name, f"{name}_asked") for name in ("back", "next", "reveal", "blank", "swap")],
)
def test_buttons_ask(window, steps, asking, qtbot, button, signal) -> None:
    window.show_step(asking, None, False)
    window.show_swap(True)
    with qtbot.waitSignal(getattr(window, signal), timeout=1000):
        qtbot.mouseClick(window.buttons[button], Qt.MouseButton.LeftButton)


def test_there_is_no_step_before_the_first_and_after_the_last(window, steps) -> None:
    window.show_step(steps[0], steps[1], False)
    assert not window.buttons["back"].isEnabled()
    assert window.buttons["next"].isEnabled()
    window.show_step(replace(steps[-1], question="", answer=""), None, False)
    assert window.buttons["back"].isEnabled()
    assert not window.buttons["next"].isEnabled()
    end = LessonEnd("Soft lookup", "Why √d", last=False)
    window.show_step(replace(steps[-1], question="", answer=""), None, False, end)
    assert window.buttons["next"].isEnabled()
    assert "Why √d" in window.following.prose.caption.body
    window.show_step(steps[-1], None, False, end, ended=True)
    assert window.now.prose.caption == end_caption(end)
    assert window.following.prose.caption.title == "Why √d"
    assert window.buttons["next"].isEnabled()
    window.show_step(steps[-1], None, False, replace(end, following=""), ended=True)
    assert not window.buttons["next"].isEnabled()
    window.show_step(None, None, False)  # the run goes on without a lesson
    assert window.buttons["back"].isEnabled()
    assert window.buttons["next"].isEnabled()


def test_every_control_says_what_it_is(window) -> None:
    for button in window.buttons.values():
        told = QAccessible.queryAccessibleInterface(button)
        assert told.text(QAccessible.Text.Name)
        assert told.text(QAccessible.Text.Description) == button.toolTip() != ""


# --- time -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "0:00"), (59, "0:59"), (462, "7:42"), (36_061, "10:01:01")]
)
def test_durations(seconds, words) -> None:
    assert elapsed_words(seconds) == words


def test_time_runs_stands_and_starts_anew(window, qtbot) -> None:
    assert window.seconds == 0  # no talk has begun
    window.reset()
    qtbot.waitUntil(lambda: window.seconds >= 1)
    pause = window.buttons["pause"]
    pause.click()
    stood = window.seconds
    assert pause.text() == "Go on"
    assert window.elapsed.text() == elapsed_words(stood)
    qtbot.wait(1100)
    assert window.seconds == stood
    pause.click()
    qtbot.waitUntil(lambda: window.seconds > stood)
    pause.click()
    window.buttons["reset"].click()
    assert window.seconds == 0
    assert not pause.isChecked()
    qtbot.waitUntil(lambda: window.elapsed.text() == "0:01")


# --- how it looks ---------------------------------------------------------------------------


def place(widget: QWidget) -> QRect:
    return QRect(widget.mapTo(widget.window(), QPoint()), widget.size())


@pytest.mark.sweep(keep=4)
@pytest.mark.parametrize("scale", [1.0, 1.5, 2.0])
@pytest.mark.parametrize("size", SIZES)
def test_everything_has_its_room(window, qapp, steps, asking, size, scale) -> None:
    window.resize(*size)
    window.set_style(Style(DARK, scale))
    window.show_step(asking, steps[0], True)
    window.set_note("The screen may go to sleep: no answer from org.freedesktop.ScreenSaver.")
    window.show_swap(True)
    window.reset()
    qapp.processEvents()
    assert (window.width(), window.height()) == size
    controls = [*window.buttons.values(), window.clock, window.elapsed, window.note]
    controls = [control for control in controls if control.isVisible()]
    assert len(controls) >= 12
    for control in controls:
        assert window.rect().contains(place(control))
        if not isinstance(control, QLabel) or not control.wordWrap():
            assert control.width() >= control.minimumSizeHint().width()
            text = control.fontMetrics().horizontalAdvance(control.text())
            assert control.width() >= text
        assert control.fontInfo().pixelSize() >= min(11, 12 * min(size[0] / 860, size[1] / 480))
    for one, other in combinations([*controls, window.now, window.following], 2):
        assert not place(one).intersects(place(other))


@pytest.mark.long
@pytest.mark.parametrize("zoom", [-len(ZOOMS), 0, len(ZOOMS)])
def test_no_text_of_a_lesson_is_cut_off_at_any_size(window, qapp, zoom) -> None:
    window.zoom(zoom)
    assert len(shipped_steps()) > 100
    for step in shipped_steps().values():
        window.show_step(step, step, False)
        qapp.processEvents()
        for pane in (window.now, window.following):
            prose = pane.prose
            style, room = prose.style_now, prose.room_in(prose.style_now, prose.width())
            laid = caption_layout(prose.caption, style, room, prose.height())
            wide = caption_layout(prose.caption, style, room, 1e6)
            assert laid.scale == wide.scale  # no smaller than its longest formula makes it
            assert laid.height <= prose.height()
            assert laid.right <= room


def test_a_long_text_scrolls_and_a_new_one_begins_at_its_top(window, qapp, steps) -> None:
    window.show_step(replace(steps[0], notes="word " * 3000), steps[1], False)
    qapp.processEvents()
    bar = window.now.area.verticalScrollBar()
    assert bar.maximum() > 0
    assert window.following.area.verticalScrollBar().maximum() == 0
    bar.setValue(bar.maximum())
    window.show_step(steps[1], steps[2], False)
    qapp.processEvents()
    assert bar.value() == 0


def test_zoom_has_ends(window) -> None:
    sizes = []
    for _ in range(len(ZOOMS) + 2):
        window.zoom(1)
        sizes.append(window.now.prose.style_now.scale)
    assert sizes == sorted(sizes)
    assert not window.buttons["larger"].isEnabled()
    for _ in range(len(ZOOMS) + 2):
        window.zoom(-1)
    assert not window.buttons["smaller"].isEnabled()
    assert window.now.prose.style_now.scale < sizes[0]
