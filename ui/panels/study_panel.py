"""The dock of any study: choices, a slider, and a picture of boxes between words, or a plot."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, Generic

from pydantic import ValidationError
from PySide6.QtCore import QEvent, QPoint, QPointF, QRect, QRectF, QSignalBlocker, Qt, Signal
from PySide6.QtGui import QHideEvent, QKeyEvent, QMouseEvent, QPainter, QResizeEvent
from PySide6.QtWidgets import QSlider, QWidget

from simulator.base.choices import Choice, one_of
from simulator.lesson.tables import ChooseTable
from simulator.run.trace import Trace
from ui.kit.boxes import Box, Column, Scene, scene
from ui.kit.shapes import Paragraph, Sentence
from ui.look.draw import text_width
from ui.look.names import fitting, readable
from ui.look.terms import TermSpot
from ui.look.theme import Style
from ui.panels.base import Panel
from ui.panels.study import Act, Chosen, Found, State, Study
from ui.plots.widget import PlotView
from ui.safety.overrides import guarded
from ui.session.panel_clock import PanelClock
from ui.session.session import Session
from ui.session.view import View
from ui.widgets.choice_bar import Button, PlotBar, bar_sheet, lines_of, put_in_lines
from ui.widgets.named import named
from ui.widgets.painted import Painted
from ui.widgets.sheet import set_sheet

_SIDE = 8
_SLIDER = 22
"""Height of the slider, pixels."""
_GAP = 8
"""Space between a button and the slider beside it, pixels."""
_BOTH = 165
"""Height below which there is no room for a picture above a plot."""
_KEYS = {Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Home, Qt.Key.Key_End}
_KEPT = 2
"""Results of a run that are kept: going back and forth between two choices computes nothing."""


def whole(study: Study[Any, State], state: State) -> Column:
    """Return a picture with the words around it; with little room the last ones go first."""
    (title, told, sentences), picture = study.words(state), study.picture(state)
    parts: list[Box] = [Paragraph(title, bold=True, size=12.5), Box(high=4)] if title else []
    parts += [replace(picture, share=study.share, grow=1)] if picture else []
    parts += [Sentence(told, "current", may_go=True)] if told else []
    parts += [Sentence(each, "muted", may_go=picture is not None) for each in sentences]
    parts += [] if picture else [Box(grow=1)]
    return Column(tuple(parts), gap=0)


@guarded
class StudyPicture(Painted, Generic[State]):
    """The picture of a study and the words around it; keys and the pointer give another state."""

    changed = Signal(object)
    """The state after a user's action."""
    word_asked = Signal(str)
    """A word of the glossary that was clicked, or the first word with Enter."""

    def __init__(self, parent: QWidget, study: Study[Any, State]) -> None:
        super().__init__(parent)
        self.setAccessibleName(study.pictured)
        self.state: State | None = None
        self._study = study
        self._scene: tuple[object, Scene] | None = None
        self._gone = ""
        """The sentences that have no room."""
        self._pressed: list[Hashable] = []
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)

    @property
    def scene(self) -> Scene | None:
        """All boxes and their places, which are found once for a state, a style and a size."""
        if self.state is None:
            return None
        asked = self.state, self.style_now, self.size()
        if self._scene is None or self._scene[0] != asked:
            rect = QRectF(self.rect())
            fitted, least = fitting(self.style_now, rect, self._study.room), self._study.smallest
            scale = max(fitted.scale, min(self.style_now.scale, least))
            style = readable(replace(fitted, scale=scale))
            box = whole(self._study, self.state)
            self._scene = asked, scene(box, style, rect)
            there = {each for each, _ in self._scene[1].placed}
            gone = (each for each in box.parts if each not in there)
            self._gone = "\n".join(each.wordings[-1] for each in gone if isinstance(each, Sentence))
        return self._scene[1]

    def forget(self) -> None:
        """Forget a state, and the boxes that show it."""
        self.state = self._scene = None
        self._pressed = []

    def paint(self, painter: QPainter) -> None:
        if self.scene is not None:
            self.scene.paint(painter)

    def _spots(self, at: QPointF) -> list[Hashable]:
        return [] if self.scene is None else self.scene.at(at)

    def _take(self, answers: Iterable[State | None]) -> None:
        """Take the first answer of the study that is a state: the highest box comes first."""
        after = next((each for each in answers if each is not None), None)
        if after is not None and after is not self.state:
            self.changed.emit(after)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        state, self._pressed = self.state, self._spots(event.position())
        term = next((at for at in self._pressed if isinstance(at, TermSpot)), None)
        if term is not None:
            self.word_asked.emit(term.name)
        elif state is not None:
            self._take(self._study.press(state, at) for at in self._pressed)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        state, spots = self.state, self._spots(event.position())
        if state is not None:
            self._take(self._study.drag(state, a, b) for a in self._pressed for b in spots)

    def point(self, at: QPointF | None) -> None:
        state, spots = self.state, [] if at is None else self._spots(at)
        over = any(isinstance(at, TermSpot) or self._study.hand(at) for at in spots)
        self.setCursor(Qt.CursorShape.PointingHandCursor if over else Qt.CursorShape.ArrowCursor)
        if state is not None:
            self._take(self._study.hover(state, at) for at in (*spots, None))

    def tip(self, at: QPointF) -> str:
        scene = self.scene
        if scene is None:
            return ""
        words = any(isinstance(box, Paragraph) for box, _ in scene.under(at))
        return scene.tip(at) or (self._gone if words else "")

    def keeps(self, event: QKeyEvent) -> bool:
        return self._after(event) is not None

    def key(self, event: QKeyEvent) -> bool:
        after = self._after(event)
        enters = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        placed = self.scene.placed if self.scene is not None and enters and after is None else ()
        term = next((box.id for box, _ in placed if isinstance(box.id, TermSpot)), None)
        if term is not None:
            self.word_asked.emit(term.name)
        elif after is not None:
            self.changed.emit(after)
        return term is not None or after is not None

    def _after(self, event: QKeyEvent) -> State | None:
        """Return the state after a key; None if the study has none for it."""
        ctrl = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        key = Qt.Key(event.key())
        return None if self.state is None else self._study.key(self.state, key, ctrl=ctrl)


@guarded
class _Slider(QSlider):
    """A slider that takes its keys while it has the focus; otherwise these keys step the run."""

    def event(self, event: QEvent) -> bool:
        """Keep the slider's keys from the run."""
        asks = event.type() is QEvent.Type.ShortcutOverride
        if asks and isinstance(event, QKeyEvent) and event.key() in _KEYS:
            event.accept()
            return True
        return super().event(event)


@guarded
class StudyPanel(Panel[None], Generic[Found, State]):
    """A study in a dock.

    The way to a state is shown for the study's `seconds`; in films, which have no clock, and
    without motion, the state is there at once.
    """

    def __init__(self, session: Session, study: Study[Found, State]) -> None:
        super().__init__(f"{study.name}_panel", study.title)
        self._controls = True
        self.bar = PlotBar(study.choices)
        self.bar.setParent(self)
        self.bar.fit_button.hide()
        self.bar.chosen.connect(self.choose)
        self.study, self._session = study, session
        self.chosen = {each.name: each.usual for each in study.choices}
        self._said: Chosen = {}
        self._hidden: frozenset[str] = frozenset()
        self._asked: tuple[Trace, Hashable] | None = None
        self._mark = (
            0 if study.slider is None else study.slider.first
        )  # the wanted place of the slider, also in numbers that are still being computed.
        self._kept: dict[tuple[Trace, Hashable], Found] = {}
        self._found: Found | None = None
        self._view: View | None = None
        self.picture: StudyPicture[State] = StudyPicture(self, study)
        self.picture.changed.connect(self.change)
        self.picture.word_asked.connect(session.word_asked)
        self.plot = PlotView()
        self.plot.setParent(self)
        self.plot.hide()
        self.bar.fit_pressed.connect(self.plot.fit)
        self.plot.zoomed.connect(self.bar.fit_button.setEnabled)
        self.plot.picked.connect(self.pick)
        self.plot.moved.connect(self._move)
        self.slider = _Slider(Qt.Orientation.Horizontal, self)
        self.slider.setPageStep(1)
        self.slider.setVisible(study.slider is not None)
        if study.slider is not None:
            named(self.slider, study.slider.name, study.slider.title, study.slider.tip)
        self.slider.valueChanged.connect(self._slide)
        self.buttons = {each.name: Button(self) for each in study.acts}
        for act in study.acts:
            button = self.buttons[act.name]
            named(button, act.name, act.title, act.tip, Qt.FocusPolicy.StrongFocus)
            button.setText(act.title)
            button.clicked.connect(partial(self._act, act))
        self.clock = PanelClock(session, self, study.seconds)
        self.clock.moved.connect(self._moved)
        self._show_chosen()

    @property
    def state(self) -> State | None:
        """The state on show."""
        return self.picture.state

    def forget(self) -> None:
        self.clock.finish()
        self._kept.clear()
        self._asked = self._found = self._view = None
        self.picture.forget()

    def show_view(self, view: View, model: None = None) -> None:
        """Show a view: compute its result, or follow the place in the run."""
        trace = self._session.trace
        if trace is None or view.snapshot.program is not trace.program:
            return
        self._view, said = view, self.study.said(trace)
        if said != self._said:
            self._said = said
            self.chosen.update(said)
            self._show_chosen()
        self._hide_choices()
        if self._known() and self.state is not None:
            state = self.study.follow(self.state, view)
            if state is not self.state:
                self._draw(state)

    def choose(self, name: str, value: str) -> None:
        """Accept a choice."""
        choice = next(each for each in self.study.choices if each.name == name)
        self.clock.finish()
        self.chosen[name] = value if choice.open else one_of(choice.values, value)
        self._hide_choices()
        if self._known() and self._found is not None:
            self._go(self.study.state(self._found, self.chosen, self.state, name))

    def take_choices(self, choices: ChooseTable) -> None:
        asked = [each for each in self.study.choices if each.lesson]
        told = {each.name: getattr(choices, each.lesson) for each in asked}
        said = {name: str(value) for name, value in told.items() if value is not None}
        for name, value in self.study.lesson(said).items():
            self.bar.choose(name, value)
        if self.study.slider is not None:
            told = getattr(choices, self.study.slider.lesson)
            self._mark = self.study.slider.first if told is None else told
            if self.state is not None:
                self._go(self.study.marked(self.state, self._mark))

    def chosen_now(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for each in self.study.choices:
            value = self.chosen[each.name]
            if each.lesson and value != each.usual:
                numbers = [int(number) for number in re.findall(r"[0-9]+", value)]
                # A choice is a text; a lesson says some choices in another type.
                ways = (value, *numbers[:1], True, numbers)
                told = [way for way in ways if self._told(each, way) == value]
                if told:
                    found[each.lesson] = told[0]
        slider = self.study.slider
        if slider is not None and self._mark != slider.first:
            found[slider.lesson] = self._mark
        return found

    def _told(self, choice: Choice, value: object) -> str | None:
        """Return the choice where a lesson says a value; None: a lesson may not say the value."""
        try:
            table = ChooseTable.model_validate({choice.lesson: value})
        except ValidationError:
            return None
        said = str(getattr(table, choice.lesson))
        return self.study.lesson({choice.name: said}).get(choice.name)

    def completed(self, state: State) -> State:
        """Return a state with the panel's own data added."""
        return self.study.seen(state, controls=self._controls)

    def change(self, state: State) -> None:
        """Show the state after a user's action."""
        before, trace = self.state, self._session.trace
        if before is not None and (taken := self.study.takes(before, state)):
            self.chosen.update(taken)
            self._show_chosen()
        self._mark, _ = self.study.mark(state)
        self._go(state)
        explained = None if before is None else self.study.explains(before, state)
        asked = None if self._found is None else self._asked
        if explained is not None and asked is not None and asked[0] is trace:
            self._session.explain(*explained)
        run = None if before is None else self.study.leads(before, state)
        if run is not None:
            self._session.propose(*run)
        self._known()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.clock.finish()

    def show_controls(self, on: bool) -> None:
        self._controls = on
        self.bar.setVisible(on)
        self._show_parts()
        if self.state is not None:
            self._draw(self.state)

    def set_style(self, style: Style) -> None:
        with self.plot.laid_out_once():
            self.plot.set_style(style)
            for button in self.buttons.values():
                set_sheet(button, bar_sheet(style))
            self.picture.set_style(style)
            super().set_style(style)

    def resizeEvent(self, event: QResizeEvent) -> None:
        with self.plot.laid_out_once():
            super().resizeEvent(event)

    def arrange(self) -> None:
        """Give choices, buttons and slider their lines, and picture and plot the rest."""
        fitted = fitting(self.style_now, QRectF(self.rect()), self.study.room)
        # Controls stay as large as text is without a scale.
        self.bar.set_style(replace(fitted, scale=max(fitted.scale, min(self.style_now.scale, 1))))
        side = round(self.style_now.px(_SIDE))  # on the stage the dock is at the edge of the screen
        width = self.width() - 2 * side
        deep = self.bar.arrange(width) if self._controls else 0
        self.bar.setGeometry(side, 5, width, deep)
        top = 5 + deep + 3
        place = QRect(side, top, width, max(self.height() - top - 6, 40))
        deep = self._put_buttons(place)
        if not self.slider.isHidden():
            shown = [each.geometry() for each in self.buttons.values() if not each.isHidden()]
            start = max((each.right() + _GAP for each in shown), default=place.x())
            deep = max(deep, _SLIDER)
            self.slider.setGeometry(start, place.y(), place.right() + 1 - start, deep)
        place.adjust(0, deep, 0, 0)
        above, below = QRect(place), place
        if not (self.picture.isHidden() or self.plot.isHidden()):
            both = place.height() >= self.style_now.px(_BOTH)
            above.setHeight(round((1 - self.study.plotted) * place.height()) if both else 0)
            below.setTop(above.bottom() + 1)
        self.picture.setGeometry(above)
        self.plot.setGeometry(below)

    def describe(self, words: str) -> None:
        """Say in words what the picture shows, and paint it again."""
        self.picture.setAccessibleDescription(words)
        self.setAccessibleDescription(words)
        self.picture.update()

    def _put_buttons(self, place: QRect) -> int:
        """Put buttons behind the last choice or below; return how high their own lines are."""
        shown = [each for each in self.buttons.values() if not each.isHidden()]
        if not shown:
            return 0
        style, controls = self.bar.style_now, self.bar.shown()
        font, gap = style.text_font(12), style.px(10)
        sizes = [text_width(font, each.text()) + style.px(16) for each in shown]
        groups: list[tuple[list[QWidget], list[float]]] = [
            ([each], [size]) for each, size in zip(shown, sizes, strict=True)
        ]
        last = max(each.y() for each in controls)
        used = max(each.geometry().right() for each in controls if each.y() == last) + gap
        lines, corner = lines_of(sizes, gap, place.width()), place.topLeft()
        beside = self.slider.isHidden() and not any(lines)
        beside = beside and used + sum(sizes) + gap * (len(sizes) - 1) <= place.width()
        _, deep = put_in_lines(groups, lines, style)
        if beside:
            corner, deep = self.bar.pos() + QPoint(round(used), last), 0
        for each in shown:
            each.move(each.pos() + corner)
        return deep

    def _show_chosen(self) -> None:
        for name, value in self.chosen.items():
            self.bar.show_chosen(name, value)

    def _hide_choices(self) -> None:
        trace = self._session.trace
        hidden = self._hidden if trace is None else self.study.hidden(trace, self.chosen)
        if hidden != self._hidden:
            self._hidden = hidden
            for name in self.chosen:
                self.bar.show_choice(name, name not in hidden)
            self._show_parts()

    def _show_parts(self) -> None:
        slider = self.study.slider
        shown = slider is not None and slider.name not in self._hidden
        self.slider.setVisible(shown and self._controls)
        for name, button in self.buttons.items():
            button.setVisible(name not in self._hidden and self._controls)
        self.arrange()

    def _act(self, act: Act) -> None:
        if act.anew:
            self.study.forget()
            self._kept.clear()
            self._asked = None
            self._known()
        elif self.state is not None:
            self._take(self.study.act(self.state, act.name))

    def pick(self, at: Hashable) -> None:
        """Take a click on a point of a plot."""
        if self.state is not None:
            proposed = self.study.proposes(self.state, at)
            if proposed is not None:
                self._session.propose(*proposed)
            self._take(self.study.press(self.state, at))

    def _move(self, x: float, y: float) -> None:
        if self.state is not None:
            self._take(self.study.move(self.state, x, y))

    def _take(self, after: State | None) -> None:
        if after is not None:
            self.change(after)

    def _slide(self, value: int) -> None:
        if self.state is not None:
            self.change(self.study.marked(self.state, value))

    def _known(self) -> bool:
        """Return whether the result is there; ask for it if nobody has."""
        trace, view = self._session.trace, self._view
        # The session has a new run a moment before the run has a view.
        if trace is None or view is None or view.snapshot.program is not trace.program:
            return False
        needs = self.study.needs(trace, view, self.chosen)
        asked = trace, needs
        if asked == self._asked:
            return self._found is not None
        self._asked, self._found = asked, None

        def show(found: Found) -> None:
            if self._asked == asked:
                self.clock.finish()
                self._found = found
                self._offer(found)
                state = self.study.state(found, self.chosen, self.state, "")
                if self._view is not None:
                    state = self.study.follow(state, self._view)
                self._go(self.study.marked(state, self._mark))

        def done(found: Found) -> None:
            if self._asked == asked:
                of_run = [(a, b) for a, b in self._kept.items() if a[0] is trace and a != asked]
                self._kept = dict([*of_run, (asked, found)][-_KEPT:])
            show(found)

        if asked in self._kept:
            done(self._kept[asked])
        else:
            self._session.derive(self.study, needs, done, show)
        return False

    def _offer(self, found: Found) -> None:
        """Offer the options that exist; a choice that does not exist becomes the first option."""
        for name, options in self.study.options(found).items():
            self.bar.offer(name, options)
            values = [each.value for each in options]
            if self.chosen[name] not in values:
                self.chosen[name] = values[0]
            self.bar.show_chosen(name, self.chosen[name])

    def _moved(self) -> None:
        if self.state is not None:
            state = self.study.on_the_way(self.state, self.clock.share)
            if self.clock.running:
                self.picture.state = state
                self.picture.update()
            else:
                self._draw(state)

    def _go(self, state: State) -> None:
        """Show another state and the way to it, if any; a change of the mark ends an old way."""
        before = self.state
        self._draw(state)
        if before is not None and self._controls and self.study.moves(before, state):
            self.clock.start()
        elif before is not None and self.study.mark(before) != self.study.mark(state):
            self.clock.finish()

    def _draw(self, state: State) -> None:
        value, most = self.study.mark(state)
        with QSignalBlocker(self.slider):
            self.slider.setRange(0, most)
            self.slider.setValue(value)
        for act in self.study.acts:
            does = act.anew or self.study.act(state, act.name) is not None
            self.buttons[act.name].setEnabled(does)
        self.picture.state = state = self.completed(state)
        plot = self.study.plot(state)
        if (plot is None) != self.plot.isHidden():
            self.plot.setHidden(plot is None)
            self.picture.setHidden(plot is not None and self.study.plotted == 1)
            self.bar.fit_button.setHidden(plot is None)
            self.arrange()
        said = [] if self.picture.isHidden() else self.study.described(state)
        words = [". ".join(each.rstrip(".") for each in said if each) + "."] if said else []
        if plot is not None:
            self.plot.show_model(plot)
            words.append(plot.summary)
        self.describe(" ".join(words))
