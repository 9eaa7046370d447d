"""Random pages: a panel at a place of a run, with something chosen in it, painted."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Literal, get_args, get_origin

from PySide6.QtCore import QPoint, QPointF, QRect, Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSlider,
    QApplication,
    QCheckBox,
    QComboBox,
    QLabel,
    QScrollBar,
    QSpinBox,
    QToolButton,
    QWidget,
)

from simulator.lesson.tables import ChooseTable
from simulator.problem.scenario import load_scenario
from simulator.program.playback import Cursor
from simulator.run.trace import Trace
from tests.helpers.random_scenarios import Case
from ui.look.layouts import LAYOUT_NAMES
from ui.safety.faults import raising
from ui.window.main_window import MainWindow
from ui.window.panel_specs import PANELS

KEYS = (
    Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Return,
    Qt.Key.Key_Home, Qt.Key.Key_End, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown,
)  # fmt: skip
EDITS = ("scenario",)
"""Panels whose controls make another scenario of the one that was drawn."""


def draw_pages(window: MainWindow, case: Case, count: int) -> list[str]:
    """Draw panels of a scenario; return what went wrong, each with what was shown.

    Layouts, panels and choices are those of the program's own tables and of the controls that a
    panel shows, so a new one is drawn without a change here.
    """
    pick, faults = random.Random(case.seed), []
    page = _Page(window, pick)
    steps: list[Callable[[], object]] = [lambda: page.open(case), *[page.draw] * count]
    for step in steps:
        try:
            with raising():
                step()
        except Exception as error:
            notes = "".join(getattr(error, "__notes__", []))
            faults.append(f"seed {case.seed}, {', '.join(page.said)}: {error!r}\n{notes}")
    return faults


def overlapping(panel: QWidget) -> list[str]:
    """Return the pairs of controls and labels of a panel that lie upon each other."""
    kinds = QAbstractButton, QComboBox, QAbstractSlider, QSpinBox, QLabel
    placed: list[tuple[QWidget, QRect]] = []
    found = []
    for kind in kinds:
        for widget in panel.findChildren(kind):
            place, inside = _seen_of(widget, panel), widget.parentWidget()
            if place.isEmpty() or isinstance(inside, (*kinds, QScrollBar)):
                continue
            for other, its in placed:
                shared = place.intersected(its)
                if shared.width() > 1 and shared.height() > 1 and other is not widget:
                    found.append(f"{_name(widget)} {place} on {_name(other)} {its}")
            placed.append((widget, place))
    return found


def _seen_of(widget: QWidget, panel: QWidget) -> QRect:
    """Return what of a widget no parent cuts off, where it is in the panel."""
    if not widget.isVisible():
        return QRect()
    out, at = QRect(widget.mapTo(panel, QPoint()), widget.size()), widget
    while at is not panel:
        at = at.parentWidget()
        out &= QRect(at.mapTo(panel, QPoint()), at.size())
    return out


def _name(widget: QWidget) -> str:
    said = widget.text() if isinstance(widget, QLabel) else ""
    return f"{type(widget).__name__} “{said or widget.accessibleName() or widget.objectName()}”"


def _offered(box: QComboBox) -> list[int]:
    """Return the places of a list that a user can choose."""
    model, enabled = box.model(), Qt.ItemFlag.ItemIsEnabled
    return [n for n in range(box.count()) if model.flags(model.index(n, 0)) & enabled]


class _Page:
    """One window that shows page after page."""

    def __init__(self, window: MainWindow, pick: random.Random) -> None:
        self.window, self.pick = window, pick
        self.said: list[str] = []
        self._impatient = QTimer(window)
        self._impatient.timeout.connect(self.cancel)
        self._impatient.start(20)

    def cancel(self) -> None:
        """Cancel a dialog or close a menu that a control has opened."""
        open_now = QApplication.activeModalWidget() or QApplication.activePopupWidget()
        if open_now is not None:
            open_now.close()

    def settle(self) -> None:
        self.window.session.settle()

    def open(self, case: Case) -> None:
        self.said = [case.algorithm]
        self.window.session.start(load_scenario(case.path), None)
        self.settle()

    def draw(self) -> None:
        pick, window = self.pick, self.window
        spec, layout = pick.choice(PANELS), pick.choice(LAYOUT_NAMES)
        self.said = [layout, spec.name]
        trace = window.session.trace
        assert trace is not None
        self.go(trace)
        window.desk.take(layout)
        if pick.random() < 0.5:
            self.choose_as_a_lesson(layout)
        window.docks.open(spec.name)
        self.settle()
        panel = window.docks.panel(spec.name)
        self.look(panel)
        if spec.name not in EDITS:
            for _ in range(2):
                self.choose(panel)
                self.settle()
                self.look(panel)
        for _ in range(4):
            self.point(panel)
        for key in self.pick.choices(KEYS, k=2):
            QTest.keyClick(panel, key)
        self.settle()
        window.grab()

    def look(self, panel: QWidget) -> None:
        """Paint a panel; its controls lie beside each other."""
        panel.grab()
        assert not (found := overlapping(panel)), found

    def go(self, trace: Trace) -> None:
        """Go to a random visit, op and row; ends are as likely as all between them."""
        pick, last = self.pick, len(trace) - 1
        visit = pick.choice((0, last, pick.randint(0, last)))
        ops = len(trace.program.ops(visit)) - 1
        cursor = Cursor(visit, pick.choice((0, ops, pick.randint(0, ops))))
        rows = trace.workload.seqlen_q - 1
        row = pick.choice((0, rows, pick.randint(0, rows)))
        self.said.append(f"visit {visit}, op {cursor.op}, row {row}")
        self.window.session.go(cursor)
        self.window.session.choose_row(row)
        self.settle()

    def choose_as_a_lesson(self, layout: str) -> None:
        """Choose what a step of a lesson may choose, of what has fixed values."""
        fields = {
            name: get_args(kind)
            for name, field in ChooseTable.model_fields.items()
            for kind in get_args(field.annotation)
            if get_origin(kind) is Literal
        }
        name = self.pick.choice(sorted(fields))
        value = self.pick.choice(fields[name])
        self.said.append(f"choose {name} = {value!r}")
        self.window.docks.choose(layout, ChooseTable.model_validate({name: value}))
        self.settle()

    def choose(self, panel: QWidget) -> None:
        """Use one of the controls that the panel shows, but for buttons that do something else."""
        kinds = QToolButton, QComboBox, QCheckBox, QAbstractSlider, QSpinBox
        found = [
            control
            for kind in kinds
            for control in panel.findChildren(kind)
            if control.isVisible()
            and control.isEnabled()
            and (not isinstance(control, QToolButton) or control.isCheckable())
        ]
        if not found:
            return
        control = self.pick.choice(found)
        name = control.accessibleName() or control.objectName()
        if isinstance(control, QComboBox):
            control.setCurrentIndex(self.pick.choice(_offered(control)))
            control.activated.emit(control.currentIndex())
            name += f" = {control.currentText()}"
        elif isinstance(control, QAbstractSlider | QSpinBox):
            ends = control.minimum(), control.maximum()
            control.setValue(self.pick.choice((*ends, self.pick.randint(*ends))))
            name += f" = {control.value()}"
        else:
            control.click()
        self.said.append(name)

    def point(self, panel: QWidget) -> None:
        """Move the pointer over a place of a panel, or of what is in it."""
        inside = [panel, *(w for w in panel.findChildren(QWidget) if w.isVisible())]
        widget = self.pick.choice(inside)
        place = QPointF(self.pick.random() * widget.width(), self.pick.random() * widget.height())
        QTest.mouseMove(widget, place.toPoint())
        if self.pick.random() < 0.3 and not isinstance(widget, QToolButton | QComboBox | QCheckBox):
            self.said.append(f"click {type(widget).__name__} at {place.x():.0f}, {place.y():.0f}")
            QTest.mouseClick(widget, Qt.MouseButton.LeftButton, pos=place.toPoint())
