"""Exports from the window: the same job as the command's, done beside the window."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

from simulator.base.version import version
from ui.export.job import prepare
from ui.export.options import ExportOptions
from ui.export.pipe import make_beside
from ui.look.layouts import LAYOUT_NAMES
from ui.session.session import Session
from ui.session.tasks import Report

KIND = "export"  # kind of the session's task


@dataclasses.dataclass(frozen=True, slots=True)
class Made:
    """A finished export."""

    target: str  # the file, absolute
    words: str  # length and kind of the file, for users


def still_options(session: Session, options: ExportOptions) -> ExportOptions | None:
    """Return the options for a picture of the state on show; None if nothing is shown."""
    if session.view is None:
        return None
    cursor, row = session.view.snapshot.cursor, session.view.report.row
    visits = cursor.visit, cursor.visit + 1
    return dataclasses.replace(options, visits=visits, op=cursor.op, row=row)


def submit(
    session: Session,
    options: ExportOptions,
    done: Callable[[Made], None],
    lesson: Path | None = None,
) -> None:
    """Make an export of the current run, or of a lesson, as a task of the session.

    Layouts and lessons, which widgets draw, are made in another process.

    done: gets the finished export, unless it was cancelled or failed.
    """
    trace = session.trace
    if trace is None:
        return
    options = dataclasses.replace(options, target=_absolute(options.target))
    scenario = str(session.path or "scenario.toml")
    engine = session.engines.name

    def job(report: Report) -> Made:
        if options.lesson:
            assert lesson is not None
            file = lesson.absolute()
            words = make_beside(options, file, str(lesson), engine, report)
        elif options.scene in LAYOUT_NAMES:
            words = make_beside(options, trace.workload.scenario, scenario, engine, report)
        else:
            export = prepare(trace, options, scenario, version())
            export.make(report)
            words = export.words
        return Made(options.target, words)

    session.tasks.start(KIND, words_of(options), job, done, aside=True)


def words_of(options: ExportOptions) -> str:
    """Return the words that the user reads during the export."""
    return f"exporting {Path(options.target).name}"


def _absolute(target: str) -> str:
    folder = "/" if target.endswith(("/", "\\")) else ""
    return str(Path(target).absolute()) + folder
