"""The dock of the schedule, with traces of others beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from simulator.base.errors import InputError, safe_text
from simulator.study.schedule.chrome import read_trace, write_trace
from simulator.study.schedule.clc_log import read_clc_log
from simulator.study.schedule.events import Events
from simulator.study.schedule.state import ScheduleState, TimelineRow
from ui.panels.schedule.study import SCHEDULE
from ui.panels.schedule.words import title
from ui.panels.study_panel import StudyPanel
from ui.safety.overrides import guarded
from ui.session.session import Session

LOGS = (".log", ".txt")
"""A file that ends so is read as a log of CLC, any other as a trace."""


@guarded
class SchedulePanel(StudyPanel[ScheduleState, ScheduleState]):
    """The study of schedules; a trace or a log of others is set below the model."""

    def __init__(self, session: Session) -> None:
        super().__init__(session, SCHEDULE)
        self._beside: tuple[TimelineRow, ...] = ()

    def forget(self) -> None:
        super().forget()
        self._beside = ()

    def completed(self, state: ScheduleState) -> ScheduleState:
        return replace(state, beside=self._beside)

    def write(self, path: Path, failed: Callable[[InputError], None]) -> None:
        """Write the model's rows as a trace, beside the window; say why if that fails."""
        state = self.state
        if state is None:
            return
        rows = [(row.title, row.events) for row in state.rows if row.events]
        note = " ".join(state.sentences)
        about = {"source": "Tilescope", "model": title(state)[0], "note": note}

        self._session.tasks.start(
            "schedule trace", "writing the trace", lambda _: write_trace(path, rows, about),
            lambda _: None, refused=failed,
        )  # fmt: skip

    def open(self, path: Path, failed: Callable[[InputError], None]) -> None:
        """Set a trace or a log of others below the model; say why if it cannot be read."""

        def done(found: Events) -> None:
            what = "trace" if found.timed else "log"
            name = f"{safe_text(path.name)}: a {what} from elsewhere"
            self._beside = (TimelineRow(name, "muted", events=found),)
            if self.state is not None:
                self.change(replace(self.state, pointed=None))

        is_log = path.suffix.lower() in LOGS
        self._session.reading.read(path, read_clc_log if is_log else read_trace, done, failed)
