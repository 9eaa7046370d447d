"""The stage: what an audience sees of the window, as one scene without the frames of its docks."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QPoint, QRect, QRectF, QSize, QTimer
from PySide6.QtGui import QColor, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from simulator.base.errors import safe_text
from simulator.program.faults import fault_labels
from simulator.program.playback import last_cursor
from simulator.run.trace import Trace
from ui.look.draw import CENTRE, LEFT, RIGHT, card, draw_text, text_width
from ui.look.names import first_that_fits
from ui.look.run_words import engine_words, scenario_words
from ui.look.theme import DARK, LABEL, Style
from ui.panels.base import StatePicture
from ui.panels.compare.costs import Costs, costs_of, paint_costs
from ui.panels.transport.bar import TransportBar
from ui.safety.overrides import guarded
from ui.safety.painting import painting
from ui.session.view import View
from ui.window.what_if.band import WhatIfBand

if TYPE_CHECKING:
    from ui.window.main_window import MainWindow

REST_MS = 1800
"""How long the last state of a run that has played is seen before its costs cover it."""
_TITLE, _HIGH, _PAD, _GAP = 12.0, 17.5, 10.0, 14.0


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
        if title == self.title and trace is self._trace:
            return
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
                # Less high than the line, so that its border is seen at the edge of the screen.
                card(painter, box.adjusted(0, px(1), 0, -px(1)), theme.bad, theme.bad, px(4))
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

    on: whether it is on the stage.
    title: the line above the scene.
    transport: the transport that lies over the scene.
    slide: what a run has cost, over the whole scene.
    what_if: the strip of questions, in the lowest part of the scene.
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
        self.slide: StatePicture[Costs] = StatePicture(window, "What it cost", paint_costs)
        self.slide.hide()
        self.what_if = WhatIfBand(window, window.session)
        self._rest = QTimer(self, singleShot=True, interval=REST_MS)
        self._rest.timeout.connect(partial(self.show_slide, True))

    def set(self, on: bool) -> None:
        """Enter the stage or leave it; sizes of text, and what is off it, come with the style."""
        if on == self.on:
            return
        self.on = on
        self.show_transport(False)
        self.show_slide(False)
        self.what_if.leave(at_once=True)
        if on:
            self._show_parts()

    def _show_parts(self) -> None:
        """Show the parts of the window that belong on the stage, or those that belong off it."""
        window, on = self._window, self.on
        # The contents of bars and not the bars: a layout that is remembered meanwhile is
        # remembered with its bars.
        window.header.setVisible(not on)
        window.what_if.setVisible(not on)
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
        self.slide.style_now = style
        self.slide.update()
        self.what_if.set_theme(style.theme)

    def settle(self) -> None:
        """Show what is off the stage, now that text has its own size again.

        In the letters of the stage these parts might be higher than the screen.
        """
        if self.lasts:
            self._show_parts()

    @property
    def lasts(self) -> bool:
        """Whether the stage has been left, and what is off it is still hidden."""
        return not self.on and not self.title.isHidden()

    # --- what a run has cost ----------------------------------------------------------------

    @property
    def ended(self) -> bool:
        """Whether the run that is shown has been done to its end."""
        view = self._window.session.view
        return view is not None and view.snapshot.cursor == last_cursor(view.snapshot.program)

    def show_slide(self, on: bool) -> None:
        """Show over the scene what the run has cost, or hide it."""
        self._rest.stop()
        view = self._window.session.view
        if on and self.on and view is not None:
            self.slide.state = costs_of(view.snapshot.program)
            self.place()
            self.slide.show()
            self.slide.raise_()
            self.slide.update()
        else:
            self.slide.hide()

    def show_view(self, view: View) -> None:
        """Say of which run a view is, and hide the slide where a run goes on."""
        session = self._window.session
        self.title.show_run(
            safe_text(session.scenario.title) if session.scenario else "", session.trace
        )
        if not self._window.lessons.player.ended and self.slide.isVisible() and not self.ended:
            self.show_slide(False)

    def rest(self, playing: bool) -> None:
        """Show the slide a moment after a run has played to its end, outside of lessons."""
        lesson = self._window.lessons.player.lesson
        if self.on and not playing and lesson is None and self.ended:
            self._rest.start()
        else:
            self._rest.stop()

    # --- what if ------------------------------------------------------------------------------

    def ask_what_if(self, name: str = "") -> None:
        """Let the strip come, and put the focus in one of its fields; never over a spotlight."""
        if self.on and not self._window.presenter.overlay.spotlight:
            self.what_if.come()
            if name:
                self.what_if.strip.put_focus(name)

    # --- transport ----------------------------------------------------------------------------

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
        """Put slide and transport above the caption of a lesson, or at the lower end."""
        window, bar = self._window, self.transport
        high = bar.sizeHint().height()
        caption = window.lessons.bar
        low = window.height()
        if caption.isVisibleTo(window):
            low = caption.mapTo(window, QPoint()).y()
        bar.setGeometry(QRect(0, low - high, window.width(), high))
        top = self.title.mapTo(window, QPoint(0, self.title.height())).y()
        self.slide.setGeometry(QRect(0, top, window.width(), low - top))
        self.what_if.place()

    def holds(self, place: QPoint) -> bool:
        """Return whether the pointer, at a place of the screen, is on the transport."""
        bar = self.transport
        return bar.isVisible() and bar.rect().contains(bar.mapFromGlobal(place))
