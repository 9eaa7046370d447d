"""How commands make windows: the window's module is imported only when a window is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ui.safety.settings import Settings
    from ui.session.session import Session
    from ui.window.main_window import MainWindow


def new_window(session: Session, settings: Settings) -> MainWindow:
    """Return a window that shows a session."""
    from ui.window.main_window import MainWindow

    return MainWindow(session, settings)
