"""Pen and spotlight: what they paint, what they leave alone, and how little they repaint."""

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QColor, QImage, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QPushButton, QWidget

from tests.helpers.painted import channels
from ui.look.theme import THEMES, Style
from ui.talk.pen_overlay import RADII, PenOverlay

LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def ground(qtbot) -> QWidget:
    """A grey window with a button in it."""
    out = QWidget()
    out.setStyleSheet("background: #808080;")
    out.resize(800, 600)
    button = QPushButton("press", out)
    button.setGeometry(20, 20, 100, 40)
    qtbot.addWidget(out)
    out.show()
    return out


@pytest.fixture
def overlay(ground: QWidget) -> PenOverlay:
    return PenOverlay(ground)


def picture(widget: QWidget) -> QImage:
    return widget.grab().toImage()


def draw(overlay: PenOverlay, *places: tuple[int, int]) -> None:
    points = [QPoint(*place) for place in places]
    QTest.mousePress(overlay, LEFT, pos=points[0])
    for point in points[1:]:
        QTest.mouseMove(overlay, point)
    QTest.mouseRelease(overlay, LEFT, pos=points[-1])


def wheel(overlay: PenOverlay, up: int) -> None:
    at = QPointF(300, 300)
    event = QWheelEvent(
        at, at, QPoint(), QPoint(0, 120 * up), Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(overlay, event)


@pytest.mark.parametrize("theme", THEMES)
def test_a_stroke_has_its_colour_and_a_rim_that_sets_it_off(overlay, ground, theme) -> None:
    overlay.set_style(Style(THEMES[theme]))
    overlay.set_pen(True)
    draw(overlay, (100, 300), (200, 300), (300, 300), (400, 300))
    image = picture(ground)
    assert image.pixelColor(250, 300) == QColor(THEMES[theme].current)
    assert image.pixelColor(250, 303) == QColor(THEMES[theme].window)
    assert image.pixelColor(250, 306) == QColor("#808080")
    assert image.pixelColor(399, 300) == QColor(THEMES[theme].current)  # up to the very tip


def test_a_click_leaves_a_dot(overlay, ground) -> None:
    overlay.set_pen(True)
    draw(overlay, (300, 300))
    assert picture(ground).pixelColor(300, 300) == QColor(THEMES["dark"].current)


def test_only_the_left_button_draws(overlay) -> None:
    overlay.set_pen(True)
    QTest.mousePress(overlay, Qt.MouseButton.RightButton, pos=QPoint(200, 200))
    QTest.mouseMove(overlay, QPoint(300, 300))
    QTest.mouseRelease(overlay, Qt.MouseButton.RightButton, pos=QPoint(300, 300))
    assert overlay.strokes == []


def test_undo_and_clear_give_the_picture_back(overlay, ground) -> None:
    bare = picture(ground)
    overlay.set_pen(True)
    draw(overlay, (100, 300), (400, 300))
    one = picture(ground)
    draw(overlay, (100, 400), (400, 450))
    assert picture(ground) != one
    overlay.undo()
    assert picture(ground) == one
    draw(overlay, (100, 100), (400, 150))
    overlay.clear()
    assert picture(ground) == bare
    overlay.undo()  # nothing is left: nothing happens


def test_a_stroke_looks_the_same_while_it_is_drawn_and_after(overlay, ground) -> None:
    overlay.set_pen(True)
    draw(overlay, (50, 500), (90, 520))
    QTest.mousePress(overlay, LEFT, pos=QPoint(100, 300))
    for place in ((200, 350), (300, 250), (400, 330)):
        QTest.mouseMove(overlay, QPoint(*place))
    drawing = picture(ground)
    QTest.mouseRelease(overlay, LEFT, pos=QPoint(400, 330))
    done = picture(ground)
    assert np.abs(channels(done) - channels(drawing)).max() <= 4  # edges are rounded twice


def test_while_off_strokes_stay_and_the_mouse_goes_through(overlay, ground, qapp) -> None:
    button = ground.findChild(QPushButton)
    pressed = []
    button.clicked.connect(lambda: pressed.append(1))

    def click() -> None:
        QTest.mouseClick(ground.windowHandle(), LEFT, pos=QPoint(60, 40))
        qapp.processEvents()

    overlay.set_pen(True)
    draw(overlay, (100, 300), (400, 300))
    click()
    assert not pressed
    overlay.set_pen(False)
    assert overlay.isVisible()
    assert picture(ground).pixelColor(250, 300) == QColor(THEMES["dark"].current)
    strokes = len(overlay.strokes)
    click()
    assert pressed
    assert len(overlay.strokes) == strokes


def test_with_nothing_to_show_it_is_not_there(overlay) -> None:
    assert overlay.isHidden()
    overlay.set_spotlight(True)
    assert overlay.isVisible()
    overlay.set_spotlight(False)
    assert overlay.isHidden()


def test_pen_and_spotlight_take_turns(overlay) -> None:
    told = []
    overlay.changed.connect(lambda: told.append((overlay.pen, overlay.spotlight)))
    overlay.set_pen(True)
    overlay.set_spotlight(True)
    overlay.set_spotlight(True)
    overlay.set_pen(True)
    overlay.set_pen(False)
    assert told == [(True, False), (False, True), (True, False), (False, False)]


def test_the_spotlight_dims_all_but_a_soft_circle(overlay, ground) -> None:
    overlay.set_spotlight(True)
    QTest.mouseMove(overlay, QPoint(300, 300))
    radius = overlay.radius
    image = picture(ground)
    lights = [image.pixelColor(300 + d, 300).lightness() for d in range(0, 2 * radius, 4)]
    grey = QColor("#808080").lightness()
    assert lights[0] == grey
    assert lights == sorted(lights, reverse=True)  # no ring, no step up
    assert lights[-1] < 0.4 * grey
    assert len(set(lights)) > 5  # a soft edge


def test_the_wheel_changes_the_size_within_bounds(overlay) -> None:
    overlay.set_spotlight(True)
    before = overlay.radius
    wheel(overlay, 1)
    assert overlay.radius > before
    for _ in range(20):
        wheel(overlay, 1)
    assert overlay.radius == RADII[-1]
    for _ in range(20):
        wheel(overlay, -1)
    assert overlay.radius == RADII[0]


def test_it_stays_as_large_as_the_window_and_forgets_strokes_then(overlay, ground) -> None:
    overlay.set_pen(True)
    draw(overlay, (100, 300), (400, 300))
    ground.resize(1000, 700)
    assert overlay.size() == ground.size()
    assert overlay.strokes == []
    assert overlay.pen
