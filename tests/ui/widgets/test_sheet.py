"""A style sheet that a widget has is not set again."""

from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QLabel

from ui.widgets.sheet import set_sheet


class Changes(QObject):
    """Counts how often a widget is polished anew."""

    count = 0

    def eventFilter(self, watched, event):
        self.count += event.type() is QEvent.Type.StyleChange
        return False


def test_only_another_style_sheet_is_set(qtbot):
    label, changes = QLabel("a"), Changes()
    qtbot.addWidget(label)
    set_sheet(label, "color: green")
    label.show()
    label.installEventFilter(changes)
    for colour, expected in (("red", 1), ("red", 1), ("blue", 2), ("blue", 2)):
        set_sheet(label, f"color: {colour}")
        assert label.styleSheet() == f"color: {colour}"
        assert changes.count == expected
