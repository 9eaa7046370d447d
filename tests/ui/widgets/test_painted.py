"""What `Painted` tells its subclasses, and what it leaves to the widgets around them."""

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QHelpEvent, QKeyEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QVBoxLayout, QWidget

from tests.helpers.pointer import move
from ui.look.theme import LIGHT, Style
from ui.widgets.painted import Painted

NONE = Qt.KeyboardModifier.NoModifier


class Halves(Painted):
    """A widget of which only the left half, and only the key A, mean anything."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[object] = []
        self.setMouseTracking(True)

    def arrange(self) -> None:
        self.told.append(("arrange", self.width(), self.style_now.theme.name))

    def tip(self, at: QPointF) -> str | None:
        return "left" if at.x() < self.width() / 2 else None

    def point(self, at: QPointF | None) -> None:
        self.told.append(("point", None if at is None else at.x()))

    def press(self, at: QPointF) -> bool:
        self.told.append(("press", at.x()))
        return True

    def drag(self, at: QPointF) -> None:
        self.told.append(("drag", at.x()))

    def key(self, event: QKeyEvent) -> bool:
        return event.key() == Qt.Key.Key_A

    def keeps(self, event: QKeyEvent) -> bool:
        return event.key() == Qt.Key.Key_A


@pytest.fixture
def halves(qapp: QApplication) -> Iterator[Halves]:
    around = QWidget()
    QVBoxLayout(around).addWidget(out := Halves())
    around.resize(220, 120)
    around.show()
    out.told.clear()
    yield out
    around.close()
    around.deleteLater()


def test_places_are_found_for_each_size_and_style(halves):
    halves.resize(150, 50)
    halves.set_style(Style(LIGHT))
    assert halves.told == [("arrange", 150, "dark"), ("arrange", 150, "light")]


def test_the_pointer_drags_only_while_the_left_button_is_held(halves):
    QTest.mousePress(halves, Qt.MouseButton.RightButton, pos=QPoint(9, 9))
    QTest.mousePress(halves, Qt.MouseButton.LeftButton, pos=QPoint(10, 9))
    move(halves, QPointF(20, 9), Qt.MouseButton.LeftButton)
    move(halves, QPointF(30, 9))
    QApplication.sendEvent(halves, QEvent(QEvent.Type.Leave))
    assert halves.told == [
        ("press", 10.0), ("drag", 20.0), ("point", 20.0), ("point", 30.0), ("point", None),
    ]  # fmt: skip


@pytest.mark.parametrize(("x", "words"), [(10, ["left"]), (190, [])])
def test_where_there_is_no_tip_the_widget_around_is_asked(halves, monkeypatch, x, words):
    shown: list[str] = []
    monkeypatch.setattr(
        "ui.widgets.painted.QToolTip.showText", lambda at, words, widget: shown.append(words)
    )
    event = QHelpEvent(QEvent.Type.ToolTip, QPoint(x, 9), halves.mapToGlobal(QPoint(x, 9)))
    event.ignore()
    QApplication.sendEvent(halves, event)
    assert shown == words


@pytest.mark.parametrize(("key", "own"), [(Qt.Key.Key_A, True), (Qt.Key.Key_B, False)])
@pytest.mark.parametrize("kind", [QEvent.Type.ShortcutOverride, QEvent.Type.KeyPress])
def test_other_keys_are_left_to_the_window(halves, kind, key, own):
    event = QKeyEvent(kind, key, NONE)
    event.setAccepted(kind is QEvent.Type.KeyPress)  # as Qt sends them
    halves.event(event)
    assert event.isAccepted() is own
