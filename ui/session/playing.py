"""The part of a session that steps and plays: how far, how fast, and by which clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from simulator.program.playback import (
    SPEEDS,
    Cursor,
    Granularity,
    end_of_visit,
    first_cursor,
    last_cursor,
    step,
    usual_step,
)
from simulator.program.tile_program import TileProgram
from simulator.run.trace import Trace
from ui.session.motion import Clock
from ui.session.view import View

if TYPE_CHECKING:
    from ui.session.runs import RunUntil, Stop
    from ui.session.sequences import Sequences


class Playing(QObject):
    """Goes through a run, step by step or as time passes; a `Session` shows its cursor."""

    moved = Signal(float)
    """The new `share`, about 60 times a second while something moves, and never otherwise."""
    playing_changed = Signal(bool)
    settings_changed = Signal()  # granularity or speed

    trace: Trace | None
    view: View | None
    runs: RunUntil
    sequences: Sequences

    def __init__(self, parent: QObject | None, now: Callable[[], float]) -> None:
        super().__init__(parent)
        self.granularity = Granularity.OP
        self._step_chosen: Granularity | None = None
        """How far a step goes, as the user has chosen; None: the run's size decides."""
        self.clock = Clock(self, now)
        self.clock.moved.connect(self.moved)

    # --- for the session to provide ---------------------------------------------------------

    @property
    def cursor(self) -> Cursor:
        """The cursor that was asked for last; the view follows."""
        raise NotImplementedError

    @property
    def busy(self) -> bool:
        """Whether the engine is at work."""
        raise NotImplementedError

    def go(self, cursor: Cursor, seconds: float | None = None) -> None:
        """Show the nearest existing cursor; a motion to it lasts `seconds` if they are given."""
        raise NotImplementedError

    def play_on(self, cursor: Cursor, seek: Callable[[], Stop] | None = None) -> None:
        """Show the cursor that playing has reached, or the end of a search from there."""
        raise NotImplementedError

    # --- steps ------------------------------------------------------------------------------

    def go_to_tile(self, i: int, j: int) -> None:
        """Show tile (i, j) of the current head and launch, if it is visited."""
        if self.trace is None:
            return
        program = self.trace.program
        here = program.visit(self.cursor.visit)
        index = program.index(here.head, i, j, here.launch)
        if index is not None:
            self.go(end_of_visit(program, index))

    def step(self, forward: bool = True, by: Granularity | None = None) -> None:
        """Go one step forwards or backwards, at either end into the next sequence of a batch."""
        if self.trace is not None:
            to = step(self.trace.program, self.cursor, by or self.granularity, forward)
            if to == self.cursor:
                self.clock.finish()
                if self.sequences.go_on(forward):
                    return
            self.go(to)

    def first(self) -> None:
        """Go to the start."""
        self.go(first_cursor())

    def last(self) -> None:
        """Go to the end."""
        if self.trace is not None:
            self.go(last_cursor(self.trace.program))

    # --- playing ----------------------------------------------------------------------------

    @property
    def share(self) -> float:
        """Share of the op before the shown state that has been done; 1 if nothing moves."""
        return self.clock.share

    @property
    def motion(self) -> bool:
        """Whether ops are seen to move; otherwise only states are shown, at the same times."""
        return self.clock.motion

    @motion.setter
    def motion(self, on: bool) -> None:
        self.clock.motion = on

    @property
    def speed(self) -> float:
        """How fast everything moves."""
        return self.clock.speed

    @property
    def playing(self) -> bool:
        """Whether the run plays."""
        return self.clock.playing

    def play(self, on: bool) -> None:
        """Start or stop playing. An op under way is shown to its end.

        At the end, playing goes on in the next sequence of a batch; after the last it starts over.
        """
        if on == self.playing or self.trace is None:
            return
        at_end = self.cursor == last_cursor(self.trace.program)
        if on and at_end and not self.sequences.start_over():
            self.first()
        self.clock.play(on)
        self.playing_changed.emit(on)

    def set_speed(self, speed: float) -> None:
        """Set how fast everything moves."""
        self.clock.speed = speed
        self.settings_changed.emit()

    def change_speed(self, faster: bool) -> None:
        """Choose the next higher or lower speed."""
        place = SPEEDS.index(self.speed) + (1 if faster else -1)
        self.set_speed(SPEEDS[min(max(place, 0), len(SPEEDS) - 1)])

    def set_granularity(self, granularity: Granularity) -> None:
        """Set how far a step goes, in this run and in later ones."""
        self._step_chosen = self.granularity = granularity
        self.settings_changed.emit()

    def suit_step(self, program: TileProgram) -> None:
        """Let a step go as far as suits the size of a new run, unless somebody has chosen it."""
        suits = self._step_chosen or usual_step(program)
        if suits is not self.granularity:
            self.granularity = suits
            self.settings_changed.emit()
