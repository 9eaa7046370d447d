"""Exports, and parts of them, that another process makes: `ui.session.shards` says where."""

from __future__ import annotations

import io
import pickle
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simulator.base.errors import refuse
from simulator.lesson.steps import Lesson
from simulator.problem.scenario import Scenario
from ui.export.options import ExportOptions
from ui.export.writers.metadata import Note
from ui.session.shards import Shards

if TYPE_CHECKING:
    from ui.export.job import Export


@dataclass(frozen=True, slots=True)
class ExportJob:
    """What a process must know to make any part of an export."""

    source: Scenario | Lesson
    options: ExportOptions
    engine: str  # what computes, the same for all parts
    note: Note


class ExportParts:
    """Makes the parts of an export on shards."""

    def __init__(self, shards: Shards, job: ExportJob) -> None:
        self._shards, self._job = shards, pickle.dumps(job)

    def frames(self, parts: Sequence[range], look: Callable[[], None]) -> Iterator[list[Any]]:
        """Yield the frames of each part, in order."""
        yield from self._shards.results([(made_part, (self._job, part)) for part in parts], look)

    def whole(self, note: Note, look: Callable[[], None]) -> bytes:
        """Return the whole file, made by one process."""
        (data,) = self._shards.results([(made_whole, (self._job,))], look)
        return bytes(data)


def parts_on(export: Export, source: Scenario | Lesson, engine: str, shards: Shards) -> ExportParts:
    """Return what makes the parts of an export on shards."""
    return ExportParts(shards, ExportJob(source, export.options, engine, export.note))


def made_part(job: bytes, frames: range) -> list[Any]:
    """Return some frames of an export, in another process than it."""
    from ui.export.job import part_frames

    return part_frames(_prepared(job), frames)


def made_whole(job: bytes) -> bytes:
    """Return the file of an export, in another process than it."""
    export = _prepared(job)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"whole{export.options.format.ending}"
        options = replace(export.options, target=str(path))
        replace(export, options=options).make(lambda share: None)
        return path.read_bytes()


def made_by(words: Sequence[str]) -> tuple[bytes, str]:
    """Return the file that a command of `export` writes, and what it prints, in another process.

    words: those after `export`; paths are those of the checkout in which that process is.
    Raises InputError: what the command refuses.
    """
    from ui.app.cli import main

    printed, refused = io.StringIO(), io.StringIO()
    target = Path(words[words.index("-o") + 1])
    target.parent.mkdir(parents=True, exist_ok=True)
    with redirect_stdout(printed), redirect_stderr(refused):
        code = main(["export", *words])
    if code:
        raise refuse("export", "", "", refused.getvalue().strip())
    return target.read_bytes(), printed.getvalue().strip()


@lru_cache(maxsize=1)
def _prepared(job: bytes) -> Export:
    """Return an export, kept for the next of its parts."""
    from kernels.devices.registry import make_engine
    from simulator.run.trace import simulate
    from ui.app.windows import new_window
    from ui.export.job import prepare, prepare_lesson
    from ui.safety.imports import import_qt
    from ui.widgets.application import application

    import_qt()
    application()
    wanted: ExportJob = pickle.loads(job)
    # The target's folder need not be here.
    ending = wanted.options.format.ending
    target = "frames/" if ending == "frames" else f"part{ending}"
    options = replace(wanted.options, target=target, token="")
    if isinstance(wanted.source, Lesson):
        export = prepare_lesson(
            wanted.source, options, "", "", new_window, wanted.engine
        )  # fmt: skip
    else:
        trace = simulate(wanted.source, partial(make_engine, wanted.engine))
        export = prepare(trace, options, "", "", new_window)
    return replace(export, note=wanted.note)
