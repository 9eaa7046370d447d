"""A dock with choices above a picture, which one pure function paints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from PySide6.QtCore import QRectF, QSizeF
from PySide6.QtGui import QPaintEvent, QResizeEvent

from simulator.base.choices import Choice
from ui.look.names import fitting
from ui.look.theme import Style
from ui.panels.base import Panel, StatePicture
from ui.safety.overrides import guarded
from ui.safety.painting import painting
from ui.widgets.choice_bar import PlotBar

_SIDE = 8


@guarded
class PicturePanel(Panel[None]):
    """Choices, and below them a picture; a panel makes its picture before it is shown.

    Parameters
    ----------
    room : QSizeF
        What the picture needs at scale 1.
    """

    picture: StatePicture[Any]

    def __init__(self, name: str, title: str, choices: Sequence[Choice], room: QSizeF) -> None:
        super().__init__(name, title)
        self._room = room
        self._controls = True
        self.bar = PlotBar(choices)
        self.bar.setParent(self)
        self.bar.fit_button.hide()
        self.bar.chosen.connect(self.choose)

    def choose(self, name: str, value: str) -> None:
        """Accept a choice."""
        raise NotImplementedError

    def describe(self, words: str) -> None:
        """Say in words what the picture shows, and paint it again."""
        self.picture.setAccessibleDescription(words)
        self.setAccessibleDescription(words)
        self.picture.update()

    def show_controls(self, on: bool) -> None:
        self._controls = on
        self.bar.setVisible(on)
        self.arrange()

    def set_style(self, style: Style) -> None:
        super().set_style(style)
        self.picture.style_now = style
        self.picture.update()
        self.arrange()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.arrange()

    def paintEvent(self, event: QPaintEvent) -> None:
        with painting(self) as painter:
            self.clear(painter)

    def arrange(self) -> None:
        """Give the choices their lines, and the picture the rest."""
        fitted = fitting(self.style_now, QRectF(self.rect()), self._room)
        # Controls stay as large as text is without a scale.
        self.bar.set_style(replace(fitted, scale=max(fitted.scale, min(self.style_now.scale, 1))))
        side = round(self.style_now.px(_SIDE))  # on the stage it is at the edge of the screen
        width = self.width() - 2 * side
        deep = self.bar.arrange(width) if self._controls else 0
        self.bar.setGeometry(side, 5, width, deep)
        top = 5 + deep + 3
        self.picture.setGeometry(side, top, width, max(self.height() - top - 6, 40))
