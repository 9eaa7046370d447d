"""The picture that fades over the next one."""

from PySide6.QtWidgets import QWidget

from ui.widgets.fade import Fade


def test_what_has_faded_is_not_kept(qtbot):
    over = QWidget()
    qtbot.addWidget(over)
    over.resize(80, 60)
    over.show()
    fade = Fade(over)
    fade.take()
    assert fade.picture.size() == over.size()
    fade.start()
    qtbot.waitUntil(fade.isHidden)
    assert fade.picture.isNull()
