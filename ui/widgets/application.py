"""Qt's application, as the window and all that is painted without one want it."""

from __future__ import annotations

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
"""Of buttons and the like, kept by Qt: of itself it keeps three times that, of sizes long gone."""


def application() -> QApplication:
    """Return the Qt application, made now if there is none: Fusion, own fonts, its words logged."""
    app = QApplication.instance()
    if not isinstance(app, QApplication):
        share_pools()  # before there are threads
        qInstallMessageHandler(QtStart())
        app = QApplication(sys.argv[:1])
        qInstallMessageHandler(take_qt_message)
    load_fonts()
    if app.findChild(FocusRing) is None:  # made now, or by somebody who asked Qt a question
        app.setApplicationName("Tilescope")
        app.setApplicationVersion(version())
        app.setStyle("Fusion")
        QPixmapCache.setCacheLimit(PICTURES_KIB)
        FocusRing(app)
    return app
