"""Qt's application, for the window and for everything that is painted without a window."""

from __future__ import annotations

import atexit
import os
import sys

from PySide6.QtCore import qInstallMessageHandler
from PySide6.QtGui import QPixmapCache
from PySide6.QtWidgets import QApplication

from simulator.base.version import version
from ui.look.theme import load_fonts
from ui.safety.heap import share_pools
from ui.safety.log import QtStart, take_qt_message
from ui.widgets.focus import FocusRing

PICTURES_KIB = 3072
"""Pictures of buttons and the like that Qt keeps; by default Qt keeps three times as much, also in
sizes no longer used."""
ONE_THREAD = "QT_NO_GUI_THREADPOOL"
"""Tells Qt to fill in one thread. Otherwise Qt divides each smooth, translucent line among several
threads and waits for them: four times as long as the line takes, with two processors. A film has
own threads."""


def application() -> QApplication:
    """Return the Qt application, made now if there is none: Fusion, own fonts, messages logged."""
    os.environ.setdefault(ONE_THREAD, "1")
    app = QApplication.instance()
    if not isinstance(app, QApplication):
        share_pools()  # before there are threads
        qInstallMessageHandler(QtStart())
        app = QApplication(sys.argv[:1])
        qInstallMessageHandler(take_qt_message)
        atexit.register(qInstallMessageHandler, None)  # Qt speaks when Python no longer runs
    load_fonts()
    if app.findChild(FocusRing) is None:  # made now, or earlier by a question to Qt
        app.setApplicationName("Tilescope")
        app.setApplicationVersion(version())
        app.setStyle("Fusion")
        QPixmapCache.setCacheLimit(PICTURES_KIB)
        FocusRing(app)
    return app
