"""Controls that Qt does not draw: lists of choices and the title bars of docks."""

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from ui.look.theme import CONTRAST, DARK, THEMES, Style
from ui.widgets.choice_box import ChoiceBox


@pytest.fixture
def box(qtbot):
    box = ChoiceBox()
    qtbot.addWidget(box)
    box.addItems(["H100-SXM", "A much longer name-with-hyphens"])
    return box


@pytest.mark.parametrize("theme", THEMES.values(), ids=lambda theme: theme.name)
def test_a_list_has_a_frame_that_is_seen(box, theme):
    box.set_style(Style(theme))
    box.resize(box.sizeHint())
    picture = box.grab().toImage()
    edge = picture.pixelColor(picture.width() // 2, 0)
    assert edge.name() == theme.border.lower()
    assert picture.pixelColor(4, picture.height() // 2).name() == theme.field.lower()


@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_its_arrow_grows_with_the_text(box, scale):
    style = Style(CONTRAST, scale)
    box.set_style(style)
    box.setCurrentIndex(-1)
    box.resize(box.sizeHint())
    picture = box.grab().toImage()
    inked = [
        x for x in range(round(style.px(6)), picture.width() - round(style.px(3)))
        if any(picture.pixelColor(x, y).lightness() > 128
               for y in range(round(style.px(4)), picture.height() - round(style.px(4))))
    ]  # fmt: skip
    assert style.px(5) <= inked[-1] - inked[0] <= style.px(12)


def test_all_its_words_have_room(box):
    box.set_style(Style(DARK))
    hint = box.sizeHint().width()
    box.removeItem(1)
    assert box.sizeHint().width() < hint


def test_what_opens_is_among_the_windows_widgets_only_while_it_is_open(box, qapp):
    box.set_style(Style(DARK))
    assert box.findChildren(QWidget) == []
    box.show()
    for _ in range(2):
        box.showPopup()
        qapp.processEvents()
        popup = box.view().window()
        assert popup.isVisible()
        assert popup.parent() is box
        box.hidePopup()
        box.set_style(Style(DARK, 2.0))
        assert box.findChildren(QWidget) == []


def test_keys_choose_and_scrolling_past_does_not(box):
    box.set_style(Style(DARK))
    box.resize(box.sizeHint())
    QTest.keyClick(box, Qt.Key.Key_Down)
    assert box.currentIndex() == 1
    at = QPointF(box.rect().center())
    QApplication.sendEvent(
        box,
        QWheelEvent(
            at, at, QPoint(), QPoint(0, 120), Qt.MouseButton.NoButton,
            Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
        ),
    )  # fmt: skip
    assert box.currentIndex() == 1


# --- title bars -------------------------------------------------------------------------------


def title(window, name):
    return window.docks[name].titleBarWidget()


@pytest.mark.long
def test_a_tab_says_the_name_and_the_bar_what_it_is_for(open_window, qapp):
    window = open_window("flash2", (1600, 900))
    window.desk.take("algorithm")
    qapp.processEvents()
    assert title(window, "code").words == "Code"
    assert title(window, "formula").words == window.docks["formula"].toolTip() != "Formula"
    window.resize(1280, 900)  # where the purpose has no room, the name again and no part of it
    qapp.processEvents()
    assert title(window, "formula").words == "Formula"
    window.resize(1600, 900)
    qapp.processEvents()
    window.docks["values"].close()
    assert title(window, "formula").words == "Formula"
    window.docks["values"].show()
    window.docks["formula"].setFloating(True)
    assert title(window, "formula").words == "Formula"


def test_its_buttons_float_and_close(open_window, qapp):
    window = open_window()
    window.desk.take("algorithm")
    dock, bar = window.docks["code"], title(window, "code")
    QTest.mouseClick(bar.float_button, Qt.MouseButton.LeftButton)
    assert dock.isFloating()
    QTest.mouseClick(bar.float_button, Qt.MouseButton.LeftButton)
    assert not dock.isFloating()
    assert bar.close_button.accessibleName() == "Close Code"
    QTest.mouseClick(bar.close_button, Qt.MouseButton.LeftButton)
    assert dock.isHidden()


def test_a_double_click_floats_the_dock(open_window, qapp):
    window = open_window()
    window.desk.take("algorithm")
    qapp.processEvents()
    dock, bar = window.docks["code"], title(window, "code")
    at = bar.mapTo(dock, QPoint(40, bar.height() // 2))
    QTest.mouseDClick(dock, Qt.MouseButton.LeftButton, pos=at)
    assert dock.isFloating()


def test_title_bars_grow_with_the_text(open_window, qapp):
    window = open_window()
    bar = title(window, "memory")
    before = bar.sizeHint().height(), bar.close_button.iconSize().height()
    window.settings.text_scale = 2.0
    window.change_text(0)
    after = bar.sizeHint().height(), bar.close_button.iconSize().height()
    assert [new / old for new, old in zip(after, before, strict=True)] == [2.0, 2.0]
