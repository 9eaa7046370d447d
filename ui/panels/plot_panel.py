"""A dock with choices above a plot, for sweeps and the roofline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from PySide6.QtCore import QRectF, QSizeF
from PySide6.QtGui import QResizeEvent

from simulator.base.choices import Choice
from ui.look.names import fitting
from ui.look.theme import Style
from ui.panels.base import Panel
from ui.plots.model import PlotModel
from ui.plots.widget import PlotView
from ui.safety.overrides import guarded
from ui.session.view import Model
from ui.widgets.choice_bar import PlotBar

_SIDE = 8
_ROOM = QSizeF(320, 230)
"""A dock smaller than this at scale 1 has smaller controls."""
_SMALLEST = 0.92


@guarded
class PlotPanel(Panel[Model]):
    """Choices, and below them a plot."""

    room = _ROOM

    def __init__(self, name: str, title: str, choices: Sequence[Choice]) -> None:
        super().__init__(name, title)
        self.bar = PlotBar(choices)
        self.bar.setParent(self)
        self.plot = PlotView()
        self.plot.setParent(self)
        self.bar.fit_pressed.connect(self.plot.fit)
        self.plot.zoomed.connect(self.bar.fit_button.setEnabled)
        self.bar.chosen.connect(self.choose)

    def show_controls(self, on: bool) -> None:
        self.bar.setVisible(on)
        self.arrange()

    def choose(self, name: str, value: str) -> None:
        """Accept a choice."""
        raise NotImplementedError

    def show_plot(self, model: PlotModel) -> None:
        """Show a plot."""
        self.plot.show_model(model)
        self.setAccessibleDescription(model.summary)

    def set_style(self, style: Style) -> None:
        with self.plot.laid_out_once():
            self.plot.set_style(style)
            super().set_style(style)

    def arrange(self) -> None:
        """Give the choices the lines that they need, and the plot the rest."""
        side = round(self.style_now.px(_SIDE))  # on the stage the dock is at the edge of the screen
        width, height = self.width() - 2 * side, self.height()
        # In a small dock the choices are written smaller, so that the plot keeps its share.
        fitted = fitting(self.style_now, QRectF(self.rect()), self.room)
        small = min(self.style_now.scale, _SMALLEST)
        self.bar.set_style(replace(fitted, scale=max(fitted.scale, small)))
        deep = 0 if self.bar.isHidden() else self.bar.arrange(width)
        self.bar.setGeometry(side, 5, width, deep)
        top = 5 + deep + 3
        self.plot.setGeometry(side, top, width, max(height - top - 4, 40))

    def resizeEvent(self, event: QResizeEvent) -> None:
        with self.plot.laid_out_once():
            super().resizeEvent(event)
