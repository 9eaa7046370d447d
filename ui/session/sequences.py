"""Goes from one sequence of a batch to the next: each sequence has its own run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from simulator.problem.scenario import Scenario, with_values
from simulator.program.playback import first_cursor, last_cursor
from simulator.run.trace import Trace

if TYPE_CHECKING:
    from ui.session.session import Accept, Session


class Sequences(QObject):
    """Shows the sequences of a batch one after another.

    Like the cursor, the sequence that is shown is no change of the scenario: going to another one
    cannot be undone and needs no saving, and a saved file keeps its author's choice of sequence.
    """

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._session = session
        self._asked: Accept | None = None

    @property
    def moving(self) -> bool:
        """Whether the run of another sequence has been asked for and is awaited."""
        return self._asked is not None and self._session.awaits(self._asked)

    def show(self, number: int, *, at_end: bool = False) -> None:
        """Show another sequence of the batch, if it runs, from its start or at its end."""
        session, scenario = self._session, self._session.scenario
        if scenario is None or number not in scenario.batch.running:
            return
        if number == scenario.batch.shown:
            return
        said, file = self.authored(scenario).batch.sequence, session.file
        wanted = with_values(scenario, {"batch": {"sequence": number}})

        def accept(trace: Trace) -> None:
            self._asked = None
            file.gone_to[wanted.batch] = said
            session.show_trace(trace, last_cursor(trace.program) if at_end else first_cursor())

        self._asked = accept
        session.build(wanted, accept)

    def go_on(self, forward: bool = True) -> bool:
        """Go on in the next sequence, or go back to the end of the previous one.

        Returns: whether there is such a sequence; True, too, while the run of another is awaited.
        """
        scenario = self._session.scenario
        if self.moving:
            return True
        if scenario is None:
            return False
        shown, running = scenario.batch.shown, scenario.batch.running
        rest = [n for n in running if n > shown] if forward else [n for n in running if n < shown]
        if not rest:
            return False
        self.show(rest[0] if forward else rest[-1], at_end=not forward)
        return True

    def start_over(self) -> bool:
        """Go to the next sequence, after the last to the first; return whether there are more."""
        scenario = self._session.scenario
        if scenario is None or len(scenario.batch.running) < 2:
            return False
        if not self.go_on():
            self.show(scenario.batch.running[0])
        return True

    def authored(self, scenario: Scenario) -> Scenario:
        """Return a scenario with the sequence that its author has chosen, if any."""
        said = self._session.file.gone_to.get(scenario.batch, scenario.batch.sequence)
        return with_values(scenario, {"batch": {"sequence": said}})

    def note_said(self, scenario: Scenario, shown: Scenario) -> None:
        """Count a scenario's batch as its author's choice, if another batch is shown."""
        if scenario.batch != shown.batch:
            self._session.file.gone_to.pop(scenario.batch, None)

    def give_up(self) -> None:
        """Stop playing where the run of the next sequence cannot be built."""
        if self.moving:
            self._asked = None
            self._session.play(False)
