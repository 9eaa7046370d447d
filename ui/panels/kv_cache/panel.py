"""The dock of the KV cache: what it takes, and what it costs to keep less of it."""

from __future__ import annotations

from PySide6.QtWidgets import QStackedLayout

from simulator.lesson.tables import ChooseTable
from ui.look.theme import Style
from ui.panels.base import Panel
from ui.panels.kv_cache.calculator import Calculator
from ui.panels.kv_cache.pressure_view import PressureView
from ui.panels.kv_cache.views import BYTES, PRESSURE, VIEWS
from ui.session.session import Session
from ui.session.view import View
from ui.widgets.choice_bar import PlotBar


class CachePanel(Panel[None]):
    """Two views, of which one is seen: the calculator, and a captured layer under pressure.

    session: it gives the run, and reports files that cannot be used.
    """

    def __init__(self, session: Session) -> None:
        super().__init__("cache_panel", "KV cache")
        self.calculator = Calculator(session)
        self.pressure = PressureView(session)
        self._pages = QStackedLayout(self)
        self._pages.setContentsMargins(0, 0, 0, 0)
        for view in (self.calculator, self.pressure):
            self._pages.addWidget(view)
            view.bar.chosen.connect(self._chosen)
        self.take(BYTES)

    @property
    def bar(self) -> PlotBar:
        """The choices of the view that is seen."""
        return self.pressure.bar if self._under_pressure else self.calculator.bar

    @property
    def _under_pressure(self) -> bool:
        return self._pages.currentWidget() is self.pressure

    def take(self, name: str) -> None:
        """Show one of the views."""
        self._pages.setCurrentWidget(self.pressure if name == PRESSURE else self.calculator)
        for view in (self.calculator, self.pressure):
            view.bar.show_chosen(VIEWS.name, name)
        if name == PRESSURE:
            self.pressure.follow()

    def _chosen(self, name: str, value: str) -> None:
        if name == VIEWS.name:
            self.take(value)

    def forget(self) -> None:
        self.pressure.forget()

    def show_view(self, view: View, model: None = None) -> None:
        self.calculator.show_view(view)
        if self._under_pressure:
            self.pressure.follow()

    def take_choices(self, choices: ChooseTable) -> None:
        """Show what a lesson has chosen."""
        self.take(BYTES)
        self.calculator.take_choices(choices)

    def show_controls(self, on: bool) -> None:
        self.calculator.show_controls(on)
        self.pressure.show_controls(on)

    def set_style(self, style: Style) -> None:
        super().set_style(style)
        self.calculator.set_style(style)
        self.pressure.set_style(style)
