"""Numbers in captions: they light the cells that they come from, and settings are dragged."""

import re

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QApplication

from simulator.lesson.course import find_lesson
from simulator.lesson.expressions import fill
from simulator.lesson.origins import fill_placed
from simulator.lesson.places import NumberPlace, Origin, Pointer
from simulator.lesson.reader import load_lesson, resolve_step
from simulator.run.cell_values import cell_value
from simulator.run.snapshot import Cell
from simulator.study.captions import Numbers, usual_run
from ui.look.layouts import LAYOUT_PANELS
from ui.look.lesson_text import FORMATS
from ui.look.theme import DARK, Style
from ui.talk.caption import Caption, caption_layout, caption_numbers

M8 = Pointer(cell=Cell("m", 8, 0))
LEFT = Qt.MouseButton.LeftButton


@pytest.fixture(scope="module")
def lesson():
    return load_lesson(find_lesson("online-softmax"), LAYOUT_PANELS)


def test_a_number_says_which_cells_or_which_setting_it_comes_from(lesson):
    step = lesson.steps[1]
    numbers = Numbers(step.scenario, step.cursor)
    origins = {
        '{{ value("m", 8) }}': Origin((M8,)),
        '{{ value("m", 8) - value("S", 8, 2 + 0) | number 1 }}':
            Origin((M8, Pointer(cell=Cell("S", 8, 2)))),
        "{{ weight(8, strongest(8)) | percent }}": None,
        "{{ visible(8) }}": Origin((Pointer(row=8),)),
        "{{ Br }}": Origin((), "Br"),
        "{{ 2 * Br }}": None, "{{ requested() | bytes }}": None, "{{ token(8) }}": None,
    }  # fmt: skip
    text = " and ".join(f"it is {content}," for content in origins)
    written, places = fill_placed(text, numbers, FORMATS, "caption")
    assert written == fill(text, numbers, FORMATS)
    found = [place.origin for place in places]
    wanted = list(origins.values())
    weight = found[2].points
    assert len(weight) == 2
    assert weight[0].cell.tensor == "S"
    assert weight[1] == Pointer(row=8)
    assert [*found[:2], *found[3:]] == [origin for origin in wanted if origin is not None]
    for place in places:
        assert written[place.start :].startswith(place.text)


def test_the_cell_of_a_number_has_that_number(lesson):
    seen = 0
    for n in range(len(lesson.steps)):
        step = resolve_step(lesson, n, FORMATS)
        snapshot = usual_run(step.scenario).snapshot(step.cursor.visit, step.cursor.op)
        raw = {"caption": lesson.steps[n].caption, "answer": lesson.steps[n].said.answer}
        for place in step.places:
            text = step.caption if place.part == "caption" else step.answer
            assert text[place.start :].startswith(place.text)
            points = place.origin.points
            alone = re.findall(r'\{\{ value\("\w", \d+\) \}\}', raw[place.part])
            if len(points) == 1 and points[0].cell is not None and alone:
                value = cell_value(snapshot, points[0].cell).value
                seen += FORMATS["number"](value, 3) == place.text
    assert seen >= 3


SAID = Caption(
    "A number", "The maximum is (**3.317**, or $m = 3.317$): tiles of 4 × 3.", numbers=(
        NumberPlace("caption", 18, "3.317", Origin((M8,))),
        NumberPlace("caption", 35, "3.317", Origin((M8,))),
        NumberPlace("caption", 53, "4", Origin((), "Br")),
        NumberPlace("caption", 57, "9", Origin((), "Bc")),  # it does not stand there
        NumberPlace("answer", 3, "5", Origin((M8,))),
    ), question="Why?", answer="As 5.",
)  # fmt: skip


def test_numbers_have_their_places_and_leave_no_trace_in_the_text(qapp):
    for n, (at, text) in enumerate(((18, "3.317"), (35, "3.317"), (53, "4"))):
        assert SAID.body[at:].startswith(text), n
    style = Style(DARK)
    found = caption_numbers(SAID, style, 1000, 200)
    assert [number for number, _ in found] == list(SAID.numbers[:3])
    laid = caption_layout(SAID, style, 1000, 200)
    said = "".join(piece.text for piece in laid.body)
    assert said == "Themaximumis(3.317,orm = 3.317):tilesof4×3."
    assert max(map(ord, said)) < 0xE000
    for n, (_, box) in enumerate(found):
        assert box.width() > 5
        assert not any(box.intersects(other) for _, other in found[n + 1 :])


def moved(widget, at, buttons=Qt.MouseButton.NoButton, modifiers=Qt.KeyboardModifier.NoModifier):
    kind, none = QEvent.Type.MouseMove, Qt.MouseButton.NoButton
    at = QPointF(at)
    event = QMouseEvent(kind, at, widget.mapToGlobal(at), none, buttons, modifiers)
    QApplication.sendEvent(widget, event)


def test_a_number_under_the_mouse_is_told_until_the_mouse_leaves(bar, qtbot):
    told = []
    bar.number_pointed.connect(told.append)
    (_, first), *_ = bar.caption.numbers
    for at in (first.center(), first.center(), QPointF(1, 1)):
        moved(bar.caption, at)
    moved(bar.caption, first.center())
    QApplication.sendEvent(bar.caption, QEvent(QEvent.Type.Leave))
    assert told == [(M8,), (), (M8,), ()]
    bar.set_large(True)
    assert bar.caption.numbers == []


def test_a_setting_is_dragged_by_steps(bar, qtbot):
    told = []
    bar.number_dragged.connect(lambda *step: told.append(step))
    box = bar.caption.numbers[2][1]
    start = box.center().toPoint()
    qtbot.mousePress(bar.caption, LEFT, pos=start)
    assert bar.caption.cursor().shape() is not None
    for x, modifiers in (
        (20, Qt.KeyboardModifier.NoModifier), (50, Qt.KeyboardModifier.NoModifier),
        (26, Qt.KeyboardModifier.ShiftModifier), (-30, Qt.KeyboardModifier.NoModifier),
    ):  # fmt: skip
        moved(bar.caption, start + QPoint(x, 0), LEFT, modifiers)
    qtbot.mouseRelease(bar.caption, LEFT, pos=start + QPoint(-30, 0))
    moved(bar.caption, start + QPoint(300, 0))
    assert told == [("Br", 1, False)] * 2 + [("Br", -1, True)] + [("Br", -1, False)] * 2


def test_the_board_lights_the_cell_and_dragging_changes_the_run(open_window, qapp):
    window = open_window("causal", (1280, 720))
    window.lessons.open(find_lesson("online-softmax"), 1)
    window.session.settle()
    QApplication.processEvents()
    window.session.settle()
    caption, board = window.lessons.bar.caption, window.board
    number, box = next(found for found in caption.numbers if found[0].origin.points == (M8,))
    dark = board.grab().toImage()
    moved(caption, box.center())
    assert board.lit == number.origin.points
    row = Pointer(row=3)
    board.light((row,))
    assert board.grab().toImage() != dark
    board.light((Pointer(cell=Cell("m", 10**6, 0)),))  # of a run that had more rows
    assert board.grab().toImage() == dark
    board.light(())
    before = window.session.trace.workload
    for setting, by in (("Br", 1), ("temperature", -1)):
        window.lessons.bar.number_dragged.emit(setting, by, False)
        window.session.settle()
    after = window.session.trace.workload
    assert (after.rows, after.cols) == (2 * before.rows, before.cols)
    assert after.temperature == before.temperature / 2
    window.restore()
    window.session.settle()
    assert window.session.trace.workload.rows == before.rows
