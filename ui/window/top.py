"""The window's top, above the board: the chips of the run, and the strip of questions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QVBoxLayout, QWidget

from ui.widgets.parts import with_parts
from ui.window.header import Header
from ui.window.what_if.strip import WhatIfStrip

if TYPE_CHECKING:
    from ui.window.main_window import MainWindow

_CROWDED = 540, 210
"""Height below which a window with a caption has no room for chips and questions: fixed pixels, and
pixels at scale 1 that are added."""


class WindowTop(QWidget):
    """Chips and strip, or one of them in a low window with a caption.

    In such a window the strip comes when it is asked for, and stays while it is used.

    asks: whether there is a strip of questions.
    """

    def __init__(self, window: MainWindow) -> None:
        super().__init__()
        self._window = window
        self.header, self.what_if = Header(), WhatIfStrip(window.session)
        self.asks = True
        self._asking = False
        """Whether the strip is about to be used."""
        self.column = with_parts(QVBoxLayout(self), self.header, self.what_if, margin=0, gap=0)
        self.what_if.rested.connect(self.fit)

    def fit(self, *, captioned: bool = False) -> None:
        """Show the parts that have room; captioned: whether a caption is about to be shown."""
        window = self._window
        off = not (window.stage.on or window.stage.lasts)
        least, more = _CROWDED
        captioned |= not window.lessons.bar.isHidden()
        crowded = captioned and window.height() < least + more * window.scale
        asked = self.asks and (not crowded or self._asking or self.what_if.used)
        parts = {self.what_if: off and asked, self.header: off and not (crowded and asked)}
        for part, on in sorted(parts.items(), key=lambda each: each[1]):  # room first
            part.setVisible(on)
        if captioned:  # the room is free at once, else the caption would make the window higher
            self.lay_out()

    def lay_out(self) -> None:
        """Take the new height at once, from the inside outwards."""
        above: QWidget | None = self
        while above is not None:
            if (layout := above.layout()) is not None:
                layout.activate()
            above = above.parentWidget()

    def ask(self, name: str) -> None:
        """Let the arrow keys change a field of the strip."""
        self._asking = True
        self.fit()  # a field that is hidden takes no focus
        self.what_if.put_focus(name)
        self._asking = False
