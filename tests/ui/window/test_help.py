"""What the Help menu opens ends when it is closed."""

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QObject
from PySide6.QtWidgets import QDialog


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize(
    ("action", "name"),
    [("show_keys", "keys"), ("about", "message"), ("first_minutes", "page"), ("glossary", "page")],
)
def test_a_dialog_that_is_closed_is_gone(open_window, qapp, action, name):
    window = open_window()
    counts = []
    for _ in range(3):
        window.actions_by_name[action].trigger()
        dialog = window.findChild(QDialog, name)
        assert dialog.isVisible()
        dialog.close()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        qapp.processEvents()
        assert window.findChild(QDialog, name) is None
        counts.append(len(window.findChildren(QObject)))
    assert counts[2] <= counts[0]
