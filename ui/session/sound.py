"""A tick where a tile lands, while the session goes on in its own time."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal

from simulator.program.playback import Granularity, Playhead
from simulator.program.tile_program import TileProgram
from simulator.run.motion import landed_between
from ui.session.session import Session
from ui.session.worker import Worker

if TYPE_CHECKING:
    from ui.session.speaker import Speaker

APART = 0.03  # least seconds between two sounds: more of them, at a high speed, would be a noise


class TickPlayer(QObject):
    """Plays ticks while `on`; its device opens and closes beside the window."""

    failed = Signal(str)  # why there is no sound; the player is off then

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.backend = ""  # backend of miniaudio to use; by default the system's
        self.on = False  # whether ticks are wanted
        self.played = 0  # ticks that have been played
        self._session = session
        self._worker: Worker | None = None
        self._speaker: Speaker | None = None
        self._last = float("-inf")
        session.clock.passed.connect(self._hear)

    @property
    def speaker(self) -> Speaker | None:
        """The open device; None while it is closed."""
        return self._speaker

    def set(self, on: bool) -> None:
        """Turn ticks on or off; at the start of a window, only after its first view."""
        self.on = on
        if on and self._session.view is None:
            once = Qt.ConnectionType.SingleShotConnection
            self._session.view_changed.connect(self._begin, once)
        elif on or self._worker is not None:
            self._begin()

    def close(self) -> None:
        """Give the device back."""
        self.on = False
        if self._speaker is not None:
            self._speaker.close()
            self._speaker = None

    def _begin(self) -> None:
        if self._worker is None:
            self._worker = Worker(self)
            self._worker.failed.connect(self._refuse)
            self._session.attend(self._worker)
        self._worker.submit("sound", partial(self._turn, self.on))

    def _turn(self, on: bool) -> bool:
        """Open or close the device, in the worker's thread."""
        from ui.session.speaker import Speaker

        if on and self._speaker is None:
            self._speaker = Speaker(self.backend)
        elif not on:
            self.close()
        return on

    def _refuse(self, kind: str, error: Exception) -> None:
        from ui.session.speaker import NoSoundError

        if self.on:
            self.on = False
            known = isinstance(error, NoSoundError)
            self.failed.emit(str(error) if known else f"No sound: {type(error).__name__}: {error}")

    def _hear(
        self, program: TileProgram, before: Playhead, after: Playhead, by: Granularity
    ) -> None:
        speaker, now = self._speaker, self._session.clock.now()
        if speaker is None or not self.on or now - self._last < APART:
            return
        for tensor in landed_between(program, before, after, by):
            speaker.play(tensor)
            self.played += 1
            self._last = now
