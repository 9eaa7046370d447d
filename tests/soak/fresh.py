"""What the window shows, held against a session that has just been made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass

import numpy as np
from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QApplication

from simulator.program import TileProgram
from simulator.scenario import scenario_toml
from simulator.trace import Trace
from ui.main_window import MainWindow
from ui.panel_specs import PANELS
from ui.panels.board_panel import BoardPanel
from ui.panels.values_panel import value_row
from ui.session import Session, View


def differences(window: MainWindow) -> list[str] | None:
    """Return where the view on show differs from that of a new session at the same place.

    The new session has its own engine, reads its input anew and has never been anywhere else.
    None where the window would not stand still: a lesson was on its way.
    """
    session = window.session
    session.play(False)
    session.settle()
    view, scenario = session.view, session.scenario
    if view is None or scenario is None or session.trace is None:
        return None
    if view.snapshot.program is not session.trace.program:
        return ["the view is of another run than the session's"]
    other = Session(session.engines.name)
    try:
        for spec in PANELS:
            if spec.name in view.models:
                other.want(spec.name, spec.model)
        other.start(scenario, None)
        other.settle()
        other.go(view.snapshot.cursor)
        other.choose_row(view.report.row)
        other.settle()
        assert other.view is not None
        out = compare(view.snapshot, other.view.snapshot, "snapshot")
        out += compare(view.report, other.view.report, "report")
        for name, model in view.models.items():
            known = other.view.models.get(name)
            # What is worked out little by little is further on in a session that lasts.
            if not any(getattr(each, "missing", False) for each in (model, known)):
                out += compare(model, known, name)
        out += _shown(window, view, other.view)
    finally:
        other.close()
        other.deleteLater()
    return out if session.view is view else None


def _shown(window: MainWindow, view: View, fresh: View) -> list[str]:
    """Compare what is seen: the picture of the board, and the texts of the pinned cells."""
    out = []
    QApplication.processEvents()
    # A board that is hidden takes the size of its picture only as that is painted.
    if window.board.isVisible() and not _looks_new(window, view, fresh):
        size, at = window.board.size().toTuple(), view.snapshot.cursor
        out.append(f"the board looks otherwise than a new one: {size}, {at}, {scenario_of(view)}")
    values = window.docks.panel("values")
    if not values.visibleRegion().isEmpty():  # Qt calls a dock behind a tab visible too
        for row, cell in enumerate(values.pinned):
            items = [values.table.item(row, column) for column in range(5)]
            texts = tuple(item.text() if item else "" for item in items)
            if texts != value_row(fresh.snapshot, cell):
                out.append(f"pinned {cell}: {texts}, not {value_row(fresh.snapshot, cell)}")
    return out


def _looks_new(window: MainWindow, view: View, fresh: View) -> bool:
    """Return whether the window's board looks as a new one that shows the same."""
    window.board.zoom_fit()
    window.board.clearFocus()
    QApplication.sendEvent(window.board, QEvent(QEvent.Type.Leave))
    board = BoardPanel()
    board.set_style(window.style_now)
    board.resize(window.board.size())
    board.show_snapshot(fresh.snapshot, fresh.report.row, view.cell, view.points)
    board.zoom_fit()
    same = window.board.grab().toImage() == board.grab().toImage()
    board.deleteLater()
    return same


def scenario_of(view: View) -> str:
    """Return the scenario of a view, as a file would say it."""
    return scenario_toml(view.snapshot.program.workload.scenario).replace("\n", " ")


def compare(one: object, other: object, where: str) -> list[str]:
    """Return where two values differ, through dataclasses, arrays and collections."""
    out: list[str] = []
    _compare(one, other, where, out)
    return out


def _compare(one: object, other: object, where: str, out: list[str], depth: int = 0) -> None:
    if one is other or depth > 12 or len(out) > 20:
        return
    if type(one) is not type(other):
        out.append(f"{where}: {type(one).__name__}, not {type(other).__name__}")
    elif isinstance(one, np.ndarray):
        if one.shape != other.shape or not np.array_equal(
            one, other, equal_nan=one.dtype.kind == "f"
        ):
            out.append(f"{where}: other numbers")
    elif isinstance(one, TileProgram):
        _compare(one.workload.scenario, other.workload.scenario, f"{where}.scenario", out)
        _compare(one.totals, other.totals, f"{where}.totals", out, depth + 1)
    elif isinstance(one, Trace) or callable(one):
        return
    elif is_dataclass(one):
        for field in fields(one):
            if field.compare:
                inner = getattr(one, field.name), getattr(other, field.name)
                _compare(*inner, f"{where}.{field.name}", out, depth + 1)
    elif isinstance(one, Mapping):
        if one.keys() != other.keys():
            out.append(f"{where}: other keys")
        else:
            for key in one:
                _compare(one[key], other[key], f"{where}[{key!r}]", out, depth + 1)
    elif isinstance(one, list | tuple):
        if len(one) != len(other):
            out.append(f"{where}: {len(one)} of them, not {len(other)}")
        for n, pair in enumerate(zip(one, other, strict=False)):
            _compare(*pair, f"{where}[{n}]", out, depth + 1)
    elif isinstance(one, float):
        if one != other and not (one != one and other != other):
            out.append(f"{where}: {one}, not {other}")
    elif type(one).__eq__ is not object.__eq__ and one != other:
        out.append(f"{where}: {one}, not {other}")
