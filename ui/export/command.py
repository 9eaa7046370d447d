"""The ``export`` command."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from kernels.registry import make_engine
from simulator.errors import refuse
from simulator.row_report import row_report
from simulator.trace import Trace, simulate
from ui.session import View


def export_still(
    scenario: str,
    output: Path,
    size: tuple[int, int],
    visits: tuple[int | None, int | None] | None,
    theme: str,
    engine: str,
) -> None:
    """Draw the scene once a visit is done.

    Parameters
    ----------
    scenario : str
        Scenario file.
    output : Path
        Picture to write.
    size : tuple of int
        Width and height in pixels.
    visits : tuple or None
        Range of visits, the last of which is drawn; None for the middle of the run.
    theme : str
        Name of a theme.
    engine : str
        What computes.

    Raises
    ------
    InputError
        The scenario, the range or the output cannot be used.
    """
    if not output.parent.is_dir():
        raise refuse("export", "-o", str(output), f"a folder {output.parent} that exists")
    trace = simulate(scenario, partial(make_engine, engine))
    total = len(trace)
    visit = total // 2
    if visits is not None:
        start, stop = visits[0] or 0, total if visits[1] is None else visits[1]
        if not 0 <= start < stop <= total:
            shown = f"{start}:{stop}"
            raise refuse("export", "--visits", shown, f"A:B with 0 <= A < B <= {total}")
        visit = stop - 1
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    from ui.export.picture import save_picture
    from ui.theme import THEMES

    snapshot = trace.snapshot(visit)
    view = View(snapshot, row_report(snapshot, _middle_row(trace, visit)))
    save_picture(view, THEMES[theme], size, output)


def _middle_row(trace: Trace, visit: int) -> int:
    """Return the middle row of the visit's row block."""
    rows = trace.program.visit(visit).rows
    return rows.start + len(rows) // 2
