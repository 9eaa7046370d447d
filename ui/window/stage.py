"""The stage: the window for an audience, as one scene without the frames of its docks."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QPoint, QRect, QRectF, QTimer
from PySide6.QtGui import QColor, QPainter
from PySide6.QtWidgets import QSizePolicy

from simulator.base.errors import safe_text
from simulator.program.faults import fault_labels
from simulator.program.playback import last_cursor
from simulator.run.trace import Trace
from ui.look.draw import CENTRE, LEFT, card, draw_text, text_width
from ui.look.names import first_that_fits
from ui.look.slide import FREE, MARGIN, NAME, SEGMENT, TOP, beside, unit
from ui.look.theme import LABEL, Style
from ui.panels.base import StatePicture
from ui.panels.compare.costs import Costs, costs_of, paint_costs
from ui.panels.transport.bar import TransportBar
from ui.session.view import View
from ui.talk.predict_card import TEXT, PredictCard
from ui.widgets.painted import Painted
from ui.window.what_if.band import WhatIfBand

if TYPE_CHECKING:
    from ui.window.main_window import MainWindow

REST_MS = 1800
"""How long the last state of a run that has played is seen before its costs cover it."""
_SEGMENTS, _GAP = 16.0, 8.0
"""Distance of the steps' segments from the top, and between two segments, in u."""


class StageTop(Painted):
    """The line at the top of a slide: a segment for each step, and the lesson's name.

    title: the name of the lesson or of the run.
    number, count: the step that is shown, from 0, and the count of steps; 0 without a lesson.
    question: a what-if question, which stands in the place of the name.
    """

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("stage_title")
        self.title, self.number, self.count, self.question = "", 0, 0, ""
        self._trace: Trace | None = None
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def show_place(self, title: str, number: int = 0, count: int = 0) -> None:
        """Take the name, the number of the step on show, and the count of steps."""
        if (title, number, count) != (self.title, self.number, self.count):
            self.title, self.number, self.count = title, number, count
            place = f"step {number + 1} of {count}" if number < count else ""
            self.setAccessibleName(", ".join(filter(None, (title, place))))
            self.update()

    def ask(self, question: str) -> None:
        """Show a question, or the name again."""
        if question != self.question:
            self.question = question
            self.update()

    def show_run(self, trace: Trace | None) -> None:
        """Take the run that is shown: a run with faults is marked."""
        if trace is not self._trace:
            self._trace = trace
            self.update()

    def arrange(self) -> None:
        """Take the height for the window's size."""
        self.setFixedHeight(max(1, round(TOP * unit(self.window().size()))))

    def segments(self) -> list[QRectF]:
        """Return the places of the steps' segments."""
        u, count = self.height() / TOP, self.count
        left, wide = MARGIN * u, (self.width() - (2 * MARGIN - _GAP) * u) / max(count, 1)
        high = max(2, round(SEGMENT * u))
        return [
            QRectF(round(left + n * wide), round(_SEGMENTS * u), round(wide - _GAP * u), high)
            for n in range(count)
        ]

    def paint(self, painter: QPainter) -> None:
        theme, u = self.style_now.theme, self.height() / TOP
        for n, place in enumerate(self.segments()):
            here = theme.current if n == self.number else theme.grid
            painter.fillRect(place, QColor(theme.muted if n < self.number else here))
        own = Style(theme, NAME * u / LABEL)
        font, top = own.text_font(LABEL), 32 * u
        place = QRectF(MARGIN * u, top, self.width() - 2 * MARGIN * u, self.height() - top)
        if self._trace is not None and (
            faults := fault_labels(self._trace.workload.scenario)
        ):  # never left out: the numbers are wrong on purpose
            word = first_that_fits(faults, place.width(), font)
            box = QRectF(place)
            box.setLeft(place.right() - text_width(font, word) - 2 * _GAP * u)
            card(painter, box, theme.bad, theme.bad, 4 * u)
            draw_text(painter, box, word, font, theme.panel, CENTRE)
            place.setRight(box.left() - _GAP * u)
        title, ink = self.title, theme.muted
        if self.question:
            title, ink, font = self.question, theme.current, own.text_font(LABEL, bold=True)
        title = first_that_fits((title, ""), place.width(), font)
        draw_text(painter, place, title, font, ink, LEFT)


class StageBand(Painted):
    """The empty band below the caption, for controls, and for a number that is typed."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("stage_band")
        self.words = ""
        self.card: PredictCard | None = None
        """The card of a question, which is answered here."""

    def say(self, words: str) -> None:
        """Show the typed number, or nothing."""
        if words != self.words:
            self.words = words
            self.setAccessibleName(words)
            self.update()

    def arrange(self) -> None:
        """Take the height for the window's size."""
        self.setFixedHeight(max(1, round(FREE * unit(self.window().size()))))
        if self.card is not None:
            u = self.height() / FREE
            self.card.set_style(Style(self.style_now.theme, NAME * u / TEXT, NAME * u))
            high, side = self.card.high, round(MARGIN * u)
            self.card.setGeometry(side, 0, self.width() - 2 * side, min(high, self.height()))

    def paint(self, painter: QPainter) -> None:
        theme, u = self.style_now.theme, self.height() / FREE
        if self.words:
            font = Style(theme, NAME * u / LABEL).text_font(LABEL)
            place = QRectF(self.rect()).adjusted(MARGIN * u, 0, -MARGIN * u, 0)
            draw_text(painter, place, self.words, font, theme.current, LEFT)


class Stage(QObject):
    """Puts a window on the stage, and takes it off again.

    The stage has no menus, header, controls or frames of docks: it is a slide, with a line at the
    top, the board, the panel of the step and a caption. The band below them is empty; the transport
    comes there.

    on: whether the window is on the stage.
    title: the line above the scene.
    band: the empty band below the caption.
    transport: the transport that comes there.
    slide: the costs of a run, over the whole scene.
    what_if: the strip of questions, in the lowest part of the scene.
    """

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self.on = False
        self._whole = False
        self.title = StageTop()
        self.title.hide()
        self.band = StageBand()
        self.band.hide()
        window.lessons.bar.placed.connect(self.title.show_place)
        self.transport = TransportBar(window)
        self.transport.setObjectName("stage_transport")
        self.transport.setAutoFillBackground(True)
        self.transport.hide()
        self.slide: StatePicture[Costs] = StatePicture(window, "What it cost", paint_costs)
        self.slide.hide()
        self.what_if = WhatIfBand(window, window.session)
        self.what_if.asked.connect(self.title.ask)
        self._rest = QTimer(self, singleShot=True, interval=REST_MS)
        self._rest.timeout.connect(partial(self.show_slide, True))

    def set(self, on: bool, *, whole: bool = False) -> None:
        """Enter the stage or leave it; text sizes and parts off the stage follow with the style.

        whole: whether the caption is shown whole, for a page that is read alone.
        """
        if on == self.on:
            return
        self.on, self._whole = on, whole
        self.show_transport(False)
        self.show_slide(False)
        self.what_if.leave(at_once=True)
        if on:
            self._show_parts()

    def _show_parts(self) -> None:
        """Show the parts of the window that an audience sees, or the parts that a user needs."""
        window, on = self._window, self.on
        # The contents of bars are hidden, not the bars: a layout that is remembered meanwhile
        # keeps its bars.
        self.title.setVisible(on)
        window.fit_top()
        window.transport.setVisible(not on)
        self.band.setVisible(on and not self._whole)
        window.lessons.bar.set_large(on, whole=self._whole)
        window.lessons.bar.lend_card(self.band if on and not self._whole else None)
        self.band.card = window.lessons.bar.card if on and not self._whole else None
        window.docks.set_stage(on)
        window.docks.show_controls(not on)
        self.fit()
        if not on and window.session.view is not None:
            window.transport.show_snapshot(window.session.view.snapshot)

    def set_style(self, style: Style) -> None:
        """Take theme and text scale."""
        self.title.set_style(style)
        self.band.set_style(style)
        self.transport.set_style(style)
        self.slide.set_style(style)
        self.what_if.set_theme(style.theme)

    def fit(self) -> None:
        """Take the sizes for the window's size; an audience sees 16 : 9 at most."""
        side = beside(self._window.size()) if self.on else 0
        self._window.setContentsMargins(side, 0, side, 0)
        self.title.arrange()
        self.band.arrange()

    def settle(self) -> None:
        """Show the parts off the stage, now that text has its own size again.

        In the letters of the stage these parts might be higher than the screen.
        """
        if self.lasts:
            self._show_parts()

    @property
    def lasts(self) -> bool:
        """Whether the stage has been left, and the parts off the stage are still hidden."""
        return not self.on and not self.title.isHidden()

    # --- costs of a run ---------------------------------------------------------------------

    @property
    def ended(self) -> bool:
        """Whether the run that is shown has been done to its end."""
        view = self._window.session.view
        return view is not None and view.snapshot.cursor == last_cursor(view.snapshot.program)

    def show_slide(self, on: bool) -> None:
        """Show the costs of the run over the scene, or hide them."""
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
        """Name the run of a view, and hide the slide while a run goes on."""
        session = self._window.session
        self.title.show_run(session.trace)
        if self._window.lessons.bar.isHidden():
            title = safe_text(session.scenario.title) if session.scenario else ""
            self.title.show_place(title or view.snapshot.program.algorithm.title)
        if not self._window.lessons.player.ended and self.slide.isVisible() and not self.ended:
            self.show_slide(False)

    def rest(self, playing: bool) -> None:
        """Show the slide a moment after a run has played to its end, outside of lessons."""
        lesson = self._window.lessons.player.lesson
        if self.on and not playing and lesson is None and self.ended:
            self._rest.start()
        else:
            self._rest.stop()

    # --- strip of questions -------------------------------------------------------------------

    def ask_what_if(self, name: str = "") -> None:
        """Show the strip, and put the focus in one of its fields; never over a spotlight."""
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
        """Put the transport into the empty band, and the slide between the top and the caption."""
        window, band = self._window, self.band
        self.fit()
        low = band.mapTo(window, QPoint()).y()
        self.transport.setGeometry(QRect(band.mapTo(window, QPoint()), band.size()))
        caption = window.lessons.bar
        if caption.isVisibleTo(window):
            low = caption.mapTo(window, QPoint()).y()
        top = self.title.mapTo(window, QPoint(0, self.title.height())).y()
        self.slide.setGeometry(QRect(band.x(), top, band.width(), low - top))
        self.what_if.place()

    def holds(self, place: QPoint) -> bool:
        """Return whether the pointer, at a place of the screen, is on the transport."""
        bar = self.transport
        return bar.isVisible() and bar.rect().contains(bar.mapFromGlobal(place))
