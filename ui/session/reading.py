"""Reading files beside the window: a file may be large, on a slow disk or made to be slow."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from simulator.base.errors import InputError, refuse, safe_text
from ui.session.tasks import Report, Tasks

T = TypeVar("T")
_KIND = "file"


class Reading(Tasks):
    """Reads files in another thread; if several are asked for, the last one counts."""

    def read(
        self,
        path: Path,
        reader: Callable[[Path], T],
        done: Callable[[T], object],
        refused: Callable[[InputError], object],
        *,
        beside: bool = True,
    ) -> None:
        """Read a file.

        done, refused: called in this thread with the result of the reader, or with its
            `InputError`, unless another file or scenario has been asked for.
        beside: whether the window can be used in the meantime; files of Tilescope are read at once.
        """
        self.cancel(_KIND)

        def job(report: Report | None = None) -> T:
            try:
                return reader(path)
            except MemoryError:
                raise refuse(str(path), "", "", "a file that fits in memory") from None

        if not beside:
            try:
                found = job()
            except InputError as error:
                refused(error)
            else:
                done(found)
            return
        words = f"reading {safe_text(path.name)}"
        self.start(_KIND, words, job, done, refused=refused)
        self.progressed.emit(words, 0.0, math.nan)
