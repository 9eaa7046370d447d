"""The dock of the KV cache: how much memory the cache takes, and the cost of a smaller cache."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QRect, QSignalBlocker, QSizeF, Qt, QTimer, Signal
from PySide6.QtGui import QHideEvent
from PySide6.QtWidgets import QDoubleSpinBox, QFileDialog, QStackedLayout, QWidget

from simulator.base.choices import one_of
from simulator.base.errors import InputError
from simulator.problem.hardware import gpus
from simulator.problem.models import load_model, models
from simulator.study.kv_cache.counts import CONVENTIONS, decode_step
from simulator.study.kv_cache.memory import sharings
from ui.kit.boxes import Box
from ui.look.draw import fitted, text_width
from ui.look.theme import Style
from ui.look.units import count_text, decimal_bytes_text
from ui.panels.base import Panel
from ui.panels.kv_cache.card import BAR, LESS, CardPicture, SentenceWord
from ui.panels.kv_cache.choices import CHOICES, OPEN, OWN, WORDS
from ui.panels.kv_cache.details import DECODE, formula_columns, gpu_lines, step_words, time_words
from ui.panels.kv_cache.details import OWN as AS_PUBLISHED
from ui.panels.kv_cache.plot import cache_plot
from ui.panels.kv_cache.pressure_view import BYTES, PRESSURE, VIEWS, PressureView
from ui.panels.kv_cache.sentence import TokenBox, WordBox
from ui.panels.kv_cache.state import CURVE, MOST_TOKENS, CacheChoice
from ui.panels.plot_panel import PlotPanel
from ui.panels.study import Study, Words
from ui.panels.study_panel import StudyPicture
from ui.safety.overrides import guarded
from ui.session.model_choice import LESSON_MODEL, LESSON_TOKENS
from ui.session.session import Session
from ui.session.view import View

if TYPE_CHECKING:
    from simulator.lesson.tables import ChooseTable

_FIELDS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "axes": ("log", lambda value: value == "log"),
    "convention": ("convention", lambda value: one_of(CONVENTIONS, value)),
    "GPU": ("gpu", lambda value: gpus()[value]),
    "batch": ("batch", int),
    "page size": ("page_size", int),
    "cache type": ("dtype", str),
    "weights type": ("weights_dtype", str),
}
"""The field that a choice sets, and a converter of its value."""
_TICK_MS = 60
"""How long a token is shown while decoding plays."""
_SIDE = 12


class CardStudy(Study[None, CacheChoice]):
    """The card as a picture: a press changes the sentence, or opens a view."""

    name, title, pictured = "cache", "KV cache", "How much memory"
    room, smallest = QSizeF(1100, 690), 1.0

    def picture(self, state: CacheChoice) -> Box:
        return CardPicture(state)

    def words(self, state: CacheChoice) -> Words:
        return Words("")

    def press(self, state: CacheChoice, at: Hashable) -> CacheChoice | None:
        match at:
            case ("bar", str(kind), str(dtype)):
                return state.taking(kind, dtype)
            case ("open", str(name)):
                return replace(state, opened="" if name == state.opened else name, decodes=False)
            case ("shape", str(name), int(more)):
                return state.shaped(name, more)
        if at == (DECODE,):
            return replace(state, decodes=not state.decodes)
        return replace(state, changed=None) if at == (AS_PUBLISHED,) else None

    def key(self, state: CacheChoice, key: Qt.Key, *, ctrl: bool) -> CacheChoice | None:
        if key == Qt.Key.Key_Escape and state.opened:
            return replace(state, opened="", decodes=False)
        step = {Qt.Key.Key_Down: 1, Qt.Key.Key_Up: -1}.get(key)
        if step is None or ctrl:
            return None
        bars = [(kind, dtype) for kind in sharings(state.base) for dtype in state.types]
        at = bars.index((state.model.kind, state.dtype)) + step
        return state.taking(*bars[min(max(at, 0), len(bars) - 1)])

    def described(self, state: CacheChoice) -> tuple[str, ...]:
        found = state.needed()
        needs = (
            "weights not known" if found.gpus is None else f"needs {found.gpus} × {state.gpu.name}"
        )
        step = decode_step(state.model, state.tokens, state.dtype, state.batch)
        lines = [each if isinstance(each, str) else each[0] for each in gpu_lines(state)]
        return (
            f"{state.model.name} with {count_text(state.tokens)} tokens: "
            f"{decimal_bytes_text(found.cache)}, {needs}",
            " ".join(text for text, _ in formula_columns(state)), *lines,
            step_words(state, step)[0], time_words(state, step)[0],
        )  # fmt: skip


CARD = CardStudy()


@guarded
class MemoryCard(PlotPanel[None]):
    """A sentence whose words are its controls, and the figures that follow from it.

    session: gives the first GPU, and reports files that cannot be used.
    """

    less = Signal()
    """A user asks for the cost of a smaller cache."""

    def __init__(self, session: Session) -> None:
        super().__init__("memory_card", CARD.title, CHOICES)
        self._session, self._model = session, session.model_choice
        self._gpu_seen: str | None = None
        self._shown_controls, self._stage = True, False
        self._model.changed.connect(self._follow)
        m = self._model
        self.choice = CacheChoice(m.model, next(iter(gpus().values())), m.tokens, m.dtype)
        self.picture: StudyPicture[CacheChoice] = StudyPicture(self, CARD)
        self.picture.changed.connect(self.take)
        self.picture.lower()
        self.tokens = TokenBox(self)
        self.tokens.entered.connect(lambda n: self.take(self.choice.at(n)))
        self.words = {each.name: WordBox(self, each) for each in WORDS}
        for name, box in self.words.items():
            box.activated.connect(lambda _, n=name, b=box: self.choose(n, b.currentData()))
        self._own_item(False)
        self.parameters = QDoubleSpinBox(self)
        self.parameters.setRange(0.0, 1e5)
        self.parameters.setDecimals(1)
        self.parameters.setAccessibleName("Parameters, in billions")
        self.parameters.setToolTip("Parameters of the model in billions: all its weights.")
        self.parameters.setKeyboardTracking(False)
        self.parameters.valueChanged.connect(self._weigh)
        self._clock = QTimer(self, interval=_TICK_MS)
        self._clock.timeout.connect(self._tick)
        self.plot.picked.connect(self._pick)

    # --- what is shown --------------------------------------------------------------------

    def show_view(self, view: View, model: None = None) -> None:
        """Show a view: only another GPU of the scenario changes anything."""
        gpu = view.snapshot.program.workload.gpu
        if gpu.name != self._gpu_seen:
            self._gpu_seen = gpu.name
            self._show(replace(self.choice, gpu=gpu))

    def choose(self, name: str, value: str) -> None:
        choice = self.choice
        if name == "model":
            if value == OPEN:
                self.ask_file()
                return
            model = self._model.own if value == OWN else models()[value]
            assert model is not None  # the entry is disabled until a file has been read
            choice = replace(choice, published=model, changed=None, kind="")
        else:
            key, taken = _FIELDS[name]
            choice = replace(choice, **{key: taken(value)})
        self.take(choice)

    def take_choices(self, choices: ChooseTable) -> None:
        """Show a lesson's choices; everything else is as in a new window."""
        model = models()[choices.model or LESSON_MODEL]
        opened = "" if choices.card in (None, LESS) else choices.card
        self._show(CacheChoice(model, self.choice.gpu, choices.tokens or LESSON_TOKENS,
                               opened=opened))  # fmt: skip
        self._tell(by_hand=False)

    def ask_file(self) -> None:
        """Ask for a model file and show it."""
        name, _ = QFileDialog.getOpenFileName(self, "Open a model", "", "Models (*.toml)")
        if name:
            self.open_model(Path(name))
        self._show(self.choice)

    def open_model(self, path: Path) -> None:
        """Show the model in a file; if it cannot be used, say why and change nothing."""
        try:
            model = load_model(path)
        except InputError as error:
            self._session.refused.emit(error)
            return
        self.take(replace(self.choice, published=model, changed=None, kind=""))

    def take(self, choice: CacheChoice) -> None:
        """Show a user's choice, here and in the panels that follow."""
        if choice.opened == LESS:
            self.less.emit()
            return
        self._show(choice)
        m = self._model
        if (m.model, m.tokens, m.dtype) != (choice.published, choice.tokens, choice.dtype):
            self._tell(by_hand=True)

    def _tell(self, *, by_hand: bool) -> None:
        c = self.choice
        self._model.take(c.published, c.tokens, c.dtype, by_hand=by_hand)

    def _follow(self) -> None:
        """Show the model that was chosen in another panel."""
        m, c = self._model, self.choice
        if (m.model, m.tokens, m.dtype) != (c.published, c.tokens, c.dtype):
            changed = c.changed if m.model is c.published else None
            self._show(replace(c, published=m.model, changed=changed, tokens=m.tokens,
                               dtype=m.dtype, kind=""))  # fmt: skip

    def _pick(self, tokens: object) -> None:
        assert isinstance(tokens, int)
        self.take(self.choice.at(tokens))

    def _weigh(self, billions: float) -> None:
        if billions:
            changed = replace(self.choice.base, params_billion=billions)
            self.take(replace(self.choice, changed=changed))

    def _own_item(self, on: bool) -> None:
        box = self.words["model"]
        box.model().item(box.findData(OWN)).setEnabled(on)  # type: ignore[attr-defined]

    def _show(self, choice: CacheChoice) -> None:
        controls = self._shown_controls and not self._stage
        self.choice = c = replace(choice, controls=controls, slide=self._stage)
        self.picture.state = c
        shipped = c.published in models().values()
        if not shipped:
            box = self.words["model"]
            widest = max(text_width(box.font(), name) for name in models())
            box.setItemText(box.findData(OWN), fitted(box.font(), c.published.name, widest))
            self._own_item(True)
        listed = c.published.name if shipped else OWN
        for name, value in (("model", listed), ("cache type", c.dtype), ("GPU", c.gpu.name),
                            ("weights type", c.weights_dtype)):  # fmt: skip
            self.words[name].setCurrentIndex(self.words[name].findData(value))
        self.tokens.show_value(c.tokens)
        for name, value in (
            ("convention", c.convention),
            ("batch", str(c.batch)),
            ("axes", "log" if c.log else "linear"),
            ("page size", str(c.page_size)),
        ):
            self.bar.show_chosen(name, value)
        with QSignalBlocker(self.parameters):
            self.parameters.setValue(c.model.params_billion or 0.0)
        if c.opened == CURVE:
            self.show_plot(cache_plot(c))
        (self._clock.start if c.decodes else self._clock.stop)()
        self.picture.setAccessibleDescription(". ".join(CARD.described(c)))
        self.picture.update()
        self.arrange()

    def _tick(self) -> None:
        after = self.choice.at(self.choice.tokens + 1)
        self.take(replace(after, decodes=after.tokens < MOST_TOKENS))

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        if self.choice.decodes:
            self._show(replace(self.choice, decodes=False))

    # --- where it is ----------------------------------------------------------------------

    def show_controls(self, on: bool) -> None:
        self._shown_controls = on
        self._show_again()

    def set_stage(self, on: bool) -> None:
        self._stage = on
        self._show_again()

    def _show_again(self) -> None:
        if self.picture.state is not None:
            self._show(self.choice)

    def set_style(self, style: Style) -> None:
        self.picture.style_now = style
        super().set_style(style)
        self.picture.update()

    def arrange(self) -> None:
        """Place the picture, the controls on their words, and the open view."""
        style, edge = self.style_now, round(self.style_now.px(_SIDE))
        self.picture.setGeometry(self.rect().adjusted(edge, edge // 2, -edge, -edge // 2))
        found, c = self.picture.scene, self.choice
        placed = () if found is None else found.placed
        at = {box.name: (box, rect.translated(self.picture.pos()).toRect())
              for box, rect in placed if box.name is not None}  # fmt: skip
        parts: dict[str, QWidget] = {CURVE: self.plot, BAR: self.bar}
        for name, widget in parts.items():
            widget.setVisible(name in at)
            if name in at:
                widget.setGeometry(at[name][1])
        boxes: dict[str, QWidget] = {
            **self.words, "tokens": self.tokens, "parameters": self.parameters,
        }  # fmt: skip
        for name, widget in boxes.items():
            word, place = at.get(("word", name), (None, QRect()))
            held = isinstance(word, SentenceWord) and word.held
            widget.setVisible(held)
            if isinstance(word, SentenceWord) and held:
                widget.setGeometry(place.adjusted(-2, 0, 2, 0))
                if isinstance(widget, WordBox | TokenBox):
                    widget.set_letters(style, word.font)
                else:
                    widget.setFont(word.font)
        if found is not None and BAR in at:
            self.bar.show_choice("axes", c.opened == CURVE)
            self.bar.fit_button.setVisible(c.opened == CURVE)
            self.bar.set_style(replace(style, scale=min(style.scale, found.style.scale)))
            self.bar.arrange(at[BAR][1].width())


class CachePanel(Panel[None]):
    """Two views, one at a time: the card, or a captured layer under pressure.

    session: gives the run, and reports files that cannot be used.
    """

    def __init__(self, session: Session) -> None:
        super().__init__("cache_panel", "KV cache")
        self.card = MemoryCard(session)
        self.pressure = PressureView(session)
        self._pages = QStackedLayout(self)
        self._pages.setContentsMargins(0, 0, 0, 0)
        for view in (self.card, self.pressure):
            self._pages.addWidget(view)
        self.card.less.connect(lambda: self.take(PRESSURE))
        self.pressure.bar.chosen.connect(self._chosen)

    @property
    def _under_pressure(self) -> bool:
        return self._pages.currentWidget() is self.pressure

    def take(self, name: str) -> None:
        """Show one of the views."""
        self._pages.setCurrentWidget(self.pressure if name == PRESSURE else self.card)
        self.pressure.bar.show_chosen(VIEWS.name, name)
        if name == PRESSURE:
            self.pressure.follow()

    def _chosen(self, name: str, value: str) -> None:
        if name == VIEWS.name:
            self.take(value)

    def forget(self) -> None:
        self.pressure.forget()

    def show_view(self, view: View, model: None = None) -> None:
        self.card.show_view(view)
        if self._under_pressure:
            self.pressure.follow()

    def take_choices(self, choices: ChooseTable) -> None:
        self.card.take_choices(choices)
        self.pressure.take_choices(choices)
        self.take(PRESSURE if choices.card == LESS else BYTES)

    def chosen_now(self) -> dict[str, Any]:
        if self._under_pressure:
            return {"card": LESS, **self.pressure.chosen_now()}
        choice = self.card.choice
        said = {"model": choice.published.name, "tokens": choice.tokens}
        return {**said, "card": choice.opened} if choice.opened else said

    def set_stage(self, on: bool) -> None:
        self.card.set_stage(on)

    def show_controls(self, on: bool) -> None:
        self.card.show_controls(on)
        self.pressure.show_controls(on)

    def set_style(self, style: Style) -> None:
        super().set_style(style)
        self.card.set_style(style)
        self.pressure.set_style(style)
