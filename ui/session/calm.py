"""Says when the window shows all results of a session."""

from __future__ import annotations

from ui.session.session import Session

_TURNS = 5
"""Turns of events after the last work: first docks get their places, then scroll bars appear."""


class Calm:
    """Counts turns of events since engine and panels have computed all results of a session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._turns = 0

    def turn(self) -> bool:
        """Count a turn that has passed; return whether the picture in the window is whole."""
        self._turns = self._turns + 1 if self._session.shown else 0
        return self._turns >= _TURNS
