"""The stage: what an audience sees of the window, as one scene without the frames of its docks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QPoint, QRect, QRectF, QSize
from PySide6.QtGui import QColor, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from simulator.program.faults import fault_labels
from simulator.run.trace import Trace
from ui.look.draw import CENTRE, LEFT, RIGHT, card, draw_text, text_width
from ui.look.names import first_that_fits
from ui.look.run_words import engine_words, scenario_words
from ui.look.theme import DARK, LABEL, Style
from ui.panels.transport.bar import TransportBar
from ui.safety.overrides import guarded
from ui.safety.painting import painting

if TYPE_CHECKING:
    from ui.window.main_window import MainWindow

_TITLE, _HIGH, _PAD, _GAP = 12.5, 20.0, 10.0, 14.0


@guarded
class StageTitle(QWidget):
    """One line above the scene: what is shown, of which run, and what computes it."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("stage_title")
        self.style_now = Style(DARK)
        self.title = ""
        self._trace: Trace | None = None
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def show_run(self, title: str, trace: Trace | None) -> None:
        """Take the title, and the run that is shown."""
        self.title, self._trace = title, trace
        self.setAccessibleName(", ".join(filter(None, (title, self.engine))))
        self.update()

    @property
    def engine(self) -> str:
        """What computes."""
        trace = self._trace
        return engine_words(trace.engine.name, trace.engine.device) if trace else ""

    def set_style(self, style: Style) -> None:
        """Take theme and text scale."""
        self.style_now = style
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(0, round(self.style_now.px(_HIGH)))

    def paintEvent(self, event: QPaintEvent) -> None:
        with painting(self) as painter:
            style, theme, px = self.style_now, self.style_now.theme, self.style_now.px
            painter.fillRect(self.rect(), QColor(theme.panel))
            small, large = style.text_font(LABEL), style.text_font(_TITLE, bold=True)
            place = QRectF(self.rect()).adjusted(px(_PAD), 0, -px(_PAD), 0)
            draw_text(painter, place, self.engine, small, theme.muted, RIGHT)
            place.setRight(place.right() - text_width(small, self.engine) - px(_GAP))
            if self._trace is None:
                return
            workload, algorithm = self._trace.workload, self._trace.program.algorithm
            faults = fault_labels(workload.faults)
            if faults:  # never left out: what is shown is wrong on purpose
                word = first_that_fits(faults, place.width(), small)
                box = QRectF(place.topLeft(), place.bottomLeft())
                box.setWidth(text_width(small, word) + px(_GAP))
                card(painter, box, theme.bad, theme.bad, px(4))
                draw_text(painter, box, word, small, theme.panel, CENTRE)
                place.setLeft(box.right() + px(_GAP))
            title = first_that_fits((self.title, algorithm.title, ""), place.width(), large)
            draw_text(painter, place, title, large, theme.text, LEFT)
            place.setLeft(place.left() + text_width(large, title) + px(_GAP) * bool(title))
            said = [algorithm.short_title, *scenario_words(workload)]
            choices = (" · ".join(said[:count]) for count in range(len(said), -1, -1))
            words = first_that_fits(tuple(choices), place.width(), small)
            draw_text(painter, place, words, small, theme.muted, LEFT)


class Stage(QObject):
    """Puts a window on the stage, and takes it off again.

    On it, nothing is left of menus, header and the frames of docks; a line says what is shown, text
    is as large as the last row needs it, and the transport lies over the scene while the pointer
    moves.

    Parameters
    ----------
    window : MainWindow
        The window.

    Attributes
    ----------
    on : bool
        Whether it is on the stage.
    title : StageTitle
        The line above the scene.
    transport : TransportBar
        The transport that lies over the scene.
    """

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self.on = False
        self.title = StageTitle()
        self.title.hide()
        self.transport = TransportBar(window)
        self.transport.setObjectName("stage_transport")
        self.transport.setAutoFillBackground(True)
        self.transport.hide()

    def set(self, on: bool) -> None:
        """Enter the stage or leave it; sizes of text, and what is off it, come with the style."""
        if on == self.on:
            return
        self.on = on
        self.show_transport(False)
        if on:
            self._show_parts()

    def _show_parts(self) -> None:
        """Show the parts of the window that belong on the stage, or those that belong off it."""
        window, on = self._window, self.on
        # The contents of bars and not the bars: a layout that is remembered meanwhile is
        # remembered with its bars.
        window.header.setVisible(not on)
        window.transport.setVisible(not on)
        self.title.setVisible(on)
        window.lessons.bar.set_large(on)
        window.docks.set_stage(on)
        if not on and window.session.view is not None:
            window.transport.show_snapshot(window.session.view.snapshot)

    def set_style(self, style: Style) -> None:
        """Take theme and text scale."""
        self.title.set_style(style)
        self.transport.set_style(style)
        if not self.on and not self.title.isHidden():
            # Not before: in the letters of the stage, these parts might be higher than the screen.
            self._show_parts()

    def show_transport(self, on: bool) -> None:
        """Show the transport over the scene, or hide it."""
        bar, view = self.transport, self._window.session.view
        if on and self.on and view is not None:
            bar.show_snapshot(view.snapshot)
            self.place()
            bar.show()
            bar.raise_()
        elif not on:
            bar.hide()

    def place(self) -> None:
        """Put the transport above the caption of a lesson, or at the lower end."""
        window, bar = self._window, self.transport
        high = bar.sizeHint().height()
        caption = window.lessons.bar
        low = window.height()
        if caption.isVisibleTo(window):
            low = caption.mapTo(window, QPoint()).y()
        bar.setGeometry(QRect(0, low - high, window.width(), high))

    def holds(self, place: QPoint) -> bool:
        """Return whether the pointer, at a place of the screen, is on the transport."""
        bar = self.transport
        return bar.isVisible() and bar.rect().contains(bar.mapFromGlobal(place))
