"""Opens a file the way the program does, as far as no window is needed for it.

What a scenario asks for is not done where it is much: a run that its author wants may take as long
and as much memory as it takes. What is held here is that *reading* a file never does.
"""

from __future__ import annotations

import math
import shutil
from pathlib import Path

from simulator.base.errors import InputError, safe_text
from simulator.engines.numpy_engine import numpy_engine
from simulator.lesson.reader import load_lesson, resolve_step
from simulator.problem.filling import input_bytes
from simulator.problem.models import find_model
from simulator.problem.scenario import Scenario, load_scenario, parse_scenario
from simulator.problem.workload import Workload, read_inputs, resolve
from simulator.program.playback import Cursor
from simulator.run.row_report import row_report
from simulator.run.trace import tile_program, trace_of
from simulator.study.gpu_report import measured_dram, measured_run, read_report
from simulator.study.schedule.events import Events

MOST_INPUT, MOST_SCORES = 2**22, 2**20
"""Bytes of Q, K and V and scores of all heads up to which a run is begun."""
LONGEST_LINE = 2000
"""Characters of a refusal: paths take most of them."""


class NotClean(Exception):  # noqa: N818 - it is the finding
    """A refusal that is not one line that can be printed."""


def open_as(kind: str, path: Path) -> str:
    """Open a file of a kind; return what came of it: ``read`` or ``refused``."""
    try:
        _OPENERS[kind](path)
    except InputError as error:
        _check_line(str(error))
        return "refused"
    return "read"


def _check_line(text: str) -> None:
    if safe_text(text) != text or len(text) > LONGEST_LINE:
        raise NotClean(f"{len(text)} characters: {text[:300]!r}")


def _is_small(w: Workload) -> bool:
    scores = w.heads * w.seqlen_q * w.seqlen_k
    return input_bytes(w) <= MOST_INPUT and scores <= MOST_SCORES


def _show(scenario: Scenario) -> None:
    """Work out what the window would show of a scenario."""
    w = resolve(scenario)
    program = tile_program(w)
    len(program)
    if _is_small(w):
        trace = trace_of(w, read_inputs(w), numpy_engine)
        for cursor in (Cursor(0, 0), Cursor(len(program) - 1, 0)):
            row_report(trace.snapshot(cursor.visit, cursor.op), 0)


def _open_scenario(path: Path) -> None:
    _show(load_scenario(path))


def _open_lesson(path: Path) -> None:
    from ui.look.layouts import LAYOUT_PANELS
    from ui.look.lesson_text import FORMATS
    from ui.talk.caption_text import typeset_text

    lesson = load_lesson(path, LAYOUT_PANELS)
    for mistake in lesson.mistakes:
        _check_line(str(mistake))
    count = len(lesson.steps)
    for number in sorted({0, count // 2, count - 1} & set(range(count))):
        if not _is_small(resolve(lesson.steps[number].scenario)):
            continue
        step = resolve_step(lesson, number, FORMATS)
        typeset_text(step.title, step.caption, step.question, step.answer)


def _open_model(path: Path) -> None:
    find_model(str(path))


def _open_tensors(path: Path) -> None:
    said = {"input": {"source": "file", "path": str(path)}}
    w = resolve(parse_scenario(said))
    inputs = read_inputs(w)
    if _is_small(w):
        row_report(trace_of(w, inputs, numpy_engine).snapshot(0, 0), 0)


def _open_export(path: Path) -> None:
    from ui.export.writers.metadata import read_scenario

    _show(read_scenario(path))


def _open_settings(path: Path) -> None:
    from PySide6.QtWidgets import QDockWidget, QMainWindow

    from ui.look.layouts import LAYOUT_NAMES
    from ui.safety.settings import Settings
    from ui.widgets.application import application

    application()
    settings = Settings(path)
    window, dock = QMainWindow(), QDockWidget()
    dock.setObjectName("memory")
    window.addDockWidget(_right(), dock)
    assert settings.theme
    assert math.isfinite(settings.text_scale)
    assert isinstance(settings.motion, bool)
    assert settings.layout in LAYOUT_NAMES
    assert all(isinstance(name, Path) for name in settings.recent)
    assert settings.recorded is None or settings.recorded.is_file()
    assert settings.lesson_place is None or settings.lesson_place[1] >= 0
    assert all(isinstance(name, str) for name in settings.lessons_done)
    if settings.geometry is not None:
        window.restoreGeometry(settings.geometry)
    for layout in LAYOUT_NAMES:
        state = settings.state(layout)
        if state is not None:
            window.restoreState(state)
    window.deleteLater()


def _right():  # type: ignore[no-untyped-def]  # Qt is imported where it is used
    from PySide6.QtCore import Qt

    return Qt.DockWidgetArea.RightDockWidgetArea


def _open_autosave(path: Path) -> None:
    from ui.window.autosave import find_orphans

    home = path.parent / "home"
    shutil.rmtree(home, ignore_errors=True)
    (home / "autosave").mkdir(parents=True)
    shutil.copy(path, home / "autosave" / "1-0123abcd.toml")
    for orphan in find_orphans(home):
        _check_line(orphan.name)
        orphan.leave()


def _open_report(path: Path) -> None:
    w = resolve(parse_scenario({"attention": {"seqlen_q": 16, "head_dim": 8}}))
    report = read_report(path)
    measured_run(w, 1, report)
    measured_dram(w, report)


def _open_trace(path: Path) -> None:
    from simulator.study.schedule.chrome import read_trace

    _check_events(read_trace(path))


def _open_clc_log(path: Path) -> None:
    from simulator.study.schedule.clc_log import read_clc_log

    _check_events(read_clc_log(path))


def _check_events(events: Events) -> None:
    assert len(events.names) == len(events.start)
    assert math.isfinite(events.seconds)
    for name in (*events.lanes, *events.names):
        _check_line(name)


_OPENERS = {
    "scenario": _open_scenario,
    "lesson": _open_lesson,
    "model": _open_model,
    "npz": _open_tensors,
    "safetensors": _open_tensors,
    "export": _open_export,
    "settings": _open_settings,
    "autosave": _open_autosave,
    "report": _open_report,
    "trace": _open_trace,
    "clc": _open_clc_log,
}
