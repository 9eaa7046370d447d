"""The strip of questions: what if the tile were larger, the mask causal, the sequence longer?"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache, partial

from PySide6.QtCore import QEvent, QObject, QPointF, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent, QPainter
from PySide6.QtWidgets import QApplication, QSizePolicy

from simulator.base.assets import CAPTURES
from simulator.base.errors import InputError, shortened
from simulator.problem.filling import capture_names
from simulator.problem.hardware import gpus
from simulator.problem.input_files import read_header
from simulator.problem.scenario import Scenario
from simulator.study.what_if import (
    MOST_TILE,
    MOST_TOKENS,
    MOST_WIDTH,
    AskedFor,
    plain,
    settings_of,
    with_causal,
    with_gpu,
    with_temperature,
    with_tiles,
    with_tokens,
    with_width,
)
from ui.look.run_words import input_words
from ui.look.theme import DARK, Style, Theme
from ui.panels.scenario.fields import with_input
from ui.safety.overrides import guarded
from ui.session.session import Session
from ui.widgets.choice_box import ChoiceBox
from ui.widgets.named import named
from ui.widgets.painted import Painted
from ui.window.what_if.fields import Stepper, Switch
from ui.window.what_if.painter import StripState, paint_strip
from ui.window.what_if.places import COMPACT, ROOMY, STAGE, Control, Sizes, StripPlaces, places
from ui.window.what_if.words import (
    FigureWords,
    back_words,
    figures_words,
    question_words,
    tile_text,
)

QUESTIONS = ("tile", "causal", "tokens", "width", "sentence", "gpu")
"""Names of the fields."""
_IN_HEADER = ("sentence", "gpu")
"""Fields that the window, which has a header, shows only while somebody asks for them."""
_LABELS = {
    "tile": "Tile", "causal": "Causal", "tokens": "N, tokens", "width": "d, head width",
    "sentence": "Sentence", "gpu": "GPU",
}  # fmt: skip
_SHORT = {**_LABELS, "tokens": "N", "width": "d"}
_MODIFIERS = (Qt.Key.Key_Shift, Qt.Key.Key_Control, Qt.Key.Key_Alt, Qt.Key.Key_Meta,
              Qt.Key.Key_AltGr)  # fmt: skip
ROOMY_HIGH = 1000
"""Height of a window, at scale 1, from which the strip is two lines high."""
LOW = 720
"""Height of a window in which the strip's letters have scale 1 at most."""
_EDGE, _ABOVE = 16.0, 3.0
_LIST = 12.0
"""Letters of a `ChoiceBox` at scale 1."""
_LONG = 28


@cache
def sentences() -> dict[str, str]:
    """Return the texts of the captured layers that ship, by name."""
    out = {}
    for name in capture_names():
        file = read_header(CAPTURES / f"{name}.safetensors")
        words = " ".join(each for each in file.said.tokens if each[:1] != "[")
        text = words if len(words) <= _LONG else f"{words[: _LONG - 1].rstrip()}…"
        out[name] = f"“{shortened(text)}” layer {file.said.layer}"
    return out


@guarded
class WhatIfStrip(Painted):
    """Fields that change the run at once, and the effect of a change on the run's figures.

    fields: the widgets, by the names of `QUESTIONS`.
    question: the question as a sentence, while the answer stands in the strip.
    """

    ground = False
    touched = Signal()
    """Somebody uses the strip."""
    rested = Signal()
    """Maybe nobody uses the strip any longer."""

    def __init__(self, session: Session, *, stage: bool = False) -> None:
        super().__init__()
        self.setObjectName("stage_what_if" if stage else "what_if")
        self.setAccessibleName("What if")
        self._session, self._stage = session, stage
        self._what_ifs = session.what_ifs
        self._given = self._style = Style(DARK)
        self._sizes = STAGE if stage else COMPACT
        self._places: StripPlaces | None = None
        self._figures: tuple[FigureWords, ...] = ()
        self._back = self._changed = self.question = ""
        self._filters = False
        self._later = QTimer(self, singleShot=True, interval=0)
        """Waits until the focus has moved: only then is its new place known."""
        self._later.timeout.connect(self.arrange)
        self._later.timeout.connect(self.rested)
        self.fields: dict[str, Stepper | Switch | ChoiceBox] = {}
        self._make_fields()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setEnabled(False)
        self._what_ifs.changed.connect(self.refresh)
        self._what_ifs.changed.connect(self.rested)
        self._what_ifs.moved.connect(self.update)

    def _make_fields(self) -> None:
        tile = Stepper("tile", "the tile, rows × columns", "0123456789x×* ,", "64 × 64")
        tokens = Stepper("tokens", "the number of tokens", "0123456789", "4 096")
        width = Stepper("width", "the width of a head", "0123456789", "128")
        causal = Switch("causal", "a causal mask", ("off", "on"))
        self.fields |= {"tile": tile, "causal": causal, "tokens": tokens, "width": width}
        for name, stepper in (("tile", tile), ("tokens", tokens), ("width", width)):
            stepper.stepped.connect(partial(self._step, name))
            stepper.typed.connect(partial(self._type, name))
            stepper.restored.connect(self._restore)
        causal.clicked.connect(self._set_causal)
        causal.restored.connect(self._restore)
        for name, tip in (("sentence", "The sentence whose layer is read"), ("gpu", "GPU")):
            self.fields[name] = named(
                ChoiceBox(), f"what_if_{name}", f"What if: {tip}", f"{tip}: ↑ or ↓ chooses another"
            )
        self._box("gpu").addItems(list(gpus()))
        self._box("gpu").activated.connect(self._choose_gpu)
        self._box("sentence").activated.connect(self._choose_sentence)
        for field in self.fields.values():
            field.setParent(self)
            (getattr(field, "edit", field)).installEventFilter(self)

    def _box(self, name: str) -> ChoiceBox:
        box = self.fields[name]
        assert isinstance(box, ChoiceBox)
        return box

    # --- input ------------------------------------------------------------------------------

    def put_focus(self, name: str) -> None:
        """Let the arrow keys change a field."""
        self._changed = name
        self.refresh()  # where there is little room, the field takes the place of another
        self.fields[name].setFocus(Qt.FocusReason.ShortcutFocusReason)
        if isinstance(stepper := self.fields[name], Stepper):
            stepper.edit.selectAll()
        self.touched.emit()

    @property
    def unfinished(self) -> bool:
        """Whether a typed text has not been reported yet, or a list is open."""
        if QApplication.activePopupWidget() is not None:
            return True
        steppers = (each for each in self.fields.values() if isinstance(each, Stepper))
        return any(each.edit.unfinished and each.edit.hasFocus() for each in steppers)

    @property
    def used(self) -> bool:
        """Whether a field has the focus, a list is open, or an answer stands in the strip."""
        popup = QApplication.activePopupWidget()
        opened = popup is not None and popup.parent() in self.fields.values()
        return opened or bool(self._focused) or self._what_ifs.compared is not None

    @property
    def settings(self) -> AskedFor | None:
        """The settings that were asked for last."""
        trace, scenario = self._session.trace, self._what_ifs.scenario
        if trace is None or scenario is None:
            return None
        return settings_of(scenario, trace.workload)

    def _ask(self, name: str, scenario: Scenario, what: str) -> None:
        self._changed = name
        self.touched.emit()
        self._what_ifs.ask(scenario, what)

    def _refuse(self, error: InputError) -> None:
        self._session.refused.emit(error)
        self.refresh(forced=True)

    def _step(self, name: str, by: int, fine: bool) -> None:
        now, trace = self.settings, self._session.trace
        if now is None or trace is None:
            return
        if name == "tile":
            page = trace.workload.page_size if fine and trace.workload.pages is not None else 1
            if by > 0 and not fine and now.rows >= now.queries and now.cols >= now.keys:
                return  # all scores are in one tile
            self._set_tile(_stepped(now.rows, by, fine, MOST_TILE),
                           _stepped(now.cols, by, fine, MOST_TILE, page))  # fmt: skip
        elif name == "tokens":
            self._set_number(name, _stepped(now.keys, by, fine, MOST_TOKENS))
        else:
            self._set_number(name, _stepped(now.width, by, fine, MOST_WIDTH))

    def drag_number(self, setting: str, by: int, fine: bool) -> None:
        """Change a number of a caption, by its name there: double it, halve it, or a little."""
        now, scenario = self.settings, self._what_ifs.scenario
        if now is None or scenario is None:
            return
        if setting == "Br":
            self._set_tile(_stepped(now.rows, by, fine, MOST_TILE), now.cols)
        elif setting == "Bc":
            self._set_tile(now.rows, _stepped(now.cols, by, fine, MOST_TILE))
        elif setting == "temperature":
            times = (1.1 if fine else 2.0) ** by
            temperature = min(max(scenario.attention.temperature * times, 1 / 64), 64.0)
            self.touched.emit()
            changed = with_temperature(scenario, temperature)
            self._what_ifs.ask(changed, f"temperature {temperature:.3g}")
        else:
            self._step("width" if setting == "d" else "tokens", by, fine)

    def _type(self, name: str, text: str) -> None:
        numbers = [int(digits) for digits in re.findall(r"\d+", text)[:2]]
        if not numbers:
            self.refresh(forced=True)
        elif name == "tile":
            self._set_tile(numbers[0], numbers[-1])
        else:
            self._set_number(name, numbers[0])

    def _set_tile(self, rows: int, cols: int) -> None:
        scenario = self._what_ifs.scenario
        assert scenario is not None
        try:
            changed = with_tiles(scenario, rows, cols)
        except InputError as error:
            self._refuse(error)
        else:
            self._ask("tile", changed, f"tiles {tile_text(rows, cols)}")

    def _set_number(self, name: str, number: int) -> None:
        scenario, now = self._what_ifs.scenario, self.settings
        assert scenario is not None
        assert now is not None
        try:
            if name == "tokens":
                changed, what = with_tokens(scenario, number, now), f"N = {number}"
            else:
                changed, what = with_width(scenario, number), f"d = {number}"
        except InputError as error:
            self._refuse(error)
        else:
            self._ask(name, changed, what)

    def _set_causal(self, on: bool) -> None:
        if (scenario := self._what_ifs.scenario) is not None:
            words = "a causal mask" if on else "no causal mask"
            self._ask("causal", with_causal(scenario, on), words)

    def _choose_gpu(self) -> None:
        name = self._box("gpu").currentText()
        if (scenario := self._what_ifs.scenario) is not None:
            self._ask("gpu", with_gpu(scenario, name), f"GPU preset {name}")

    def _choose_sentence(self) -> None:
        name, trace = self._box("sentence").currentData(), self._session.trace
        scenario = self._what_ifs.scenario
        if name is None or trace is None or scenario is None:
            return
        values = {"source": "capture", "name": name}
        changed = with_input(plain(scenario), values, trace.workload)
        self._ask("sentence", changed, f"input {name}")

    def _restore(self) -> None:
        self.touched.emit()
        self._what_ifs.restore()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Notice which field has the focus, and without motion the next key."""
        kind = event.type()
        if kind in (QEvent.Type.FocusIn, QEvent.Type.FocusOut) and self._places is not None:
            if kind is QEvent.Type.FocusOut and not self._what_ifs.compared:
                self._changed = ""
            self._later.start()
        elif isinstance(event, QKeyEvent) and kind is not QEvent.Type.KeyRelease:
            # A key that is a shortcut is no KeyPress, only a question before it.
            if any(watched is getattr(field, "edit", field) for field in self.fields.values()):
                self.touched.emit()
            elif self._filters and not self._focused and event.key() not in _MODIFIERS:
                self._what_ifs.end()
        return False

    # --- contents ---------------------------------------------------------------------------

    @property
    def _focused(self) -> str:
        """Name of the field that has the focus; empty for none."""
        for name, field in self.fields.items():
            if getattr(field, "edit", field).hasFocus():
                return name
        return ""

    def refresh(self, *, forced: bool = False) -> None:
        """Show the settings in the fields, and tiles, bytes and time of the run."""
        now, trace, found = self.settings, self._session.trace, self._what_ifs
        self.setEnabled(now is not None)
        if now is None or trace is None:
            return
        for name, text in (
            ("tile", tile_text(now.rows, now.cols)), ("tokens", str(now.keys)),
            ("width", str(now.width)),
        ):  # fmt: skip
            stepper = self.fields[name]
            assert isinstance(stepper, Stepper)
            edit = stepper.edit
            if forced or not (edit.hasFocus() and edit.unfinished):
                edit.show_text(text)
        causal = self.fields["causal"]
        assert isinstance(causal, Switch)
        causal.setChecked(now.causal)
        causal.update()
        if self._stage or self._changed in _IN_HEADER:
            self._show_lists(now)
        if found.figures is not None or not self._figures:
            self._figures = figures_words(found.figures, found.compared)
        self._back = self.question = ""
        if found.before is not None:
            was = settings_of(found.before.scenario, found.before.workload)
            self._back = back_words(was, now)
            self.question = question_words(was, now) if found.compared else ""
        if found.compared is None and not self._focused:
            self._changed = self._changed if found.wanted is not None else ""
        said = [f"{f.name} {f.was + ' → ' if f.was else ''}{f.now} {f.after} {f.factor}".strip()
                for f in self._figures]  # fmt: skip
        self.setAccessibleDescription("; ".join(said))
        still = not self._session.motion and self.isVisible()
        self._watch_keys(found.compared is not None and still)
        self.arrange()
        self.update()

    def _show_lists(self, now: AskedFor) -> None:
        gpu, box, trace = self._box("gpu"), self._box("sentence"), self._session.trace
        gpu.setCurrentIndex(gpu.findText(now.gpu))
        if not box.count():
            for name, text in sentences().items():
                box.addItem(text, name)
        while box.itemData(0) is None:
            box.removeItem(0)
        if not now.name and trace is not None:
            box.insertItem(0, input_words(trace.workload))
        box.setCurrentIndex(box.findData(now.name) if now.name else 0)

    def _watch_keys(self, on: bool) -> None:
        app = QApplication.instance()
        if on is not self._filters and app is not None:
            self._filters = on
            (app.installEventFilter if on else app.removeEventFilter)(self)

    @property
    def figures(self) -> tuple[FigureWords, ...]:
        """The words about tiles, bytes and time."""
        return self._figures

    @property
    def theme(self) -> Theme:
        """The present colours."""
        return self._style.theme

    def set_style(self, style: Style) -> None:
        """Take theme and text scale; on the stage, the scale of the picture."""
        self._given = style
        self.fit()

    def fit(self) -> None:
        """Take the height that suits the window."""
        style = self._given
        if not self._stage:  # in a low window large letters would take the board's room
            most = self.window().height() / LOW
            style = replace(style, scale=min(style.scale, max(most, 0.8)))
            roomy = self.window().height() >= ROOMY_HIGH * style.scale
            self._sizes = ROOMY if roomy else COMPACT
        self._style, size = style, self._sizes.field
        for field in self.fields.values():
            if isinstance(field, ChoiceBox):
                field.set_style(Style(style.theme, style.scale * max((size - 4) / _LIST, 1)))
            else:
                field.set_style(style, size)
        if not self._stage:
            self.setFixedHeight(round(style.px(self._sizes.high + 2 * _ABOVE)))
        self.arrange()
        self.update()

    @property
    def sizes(self) -> Sizes:
        """The present lengths and letters."""
        return self._sizes

    def sizeHint(self) -> QSize:
        return QSize(round(self._style.px(600)), round(self._style.px(self._sizes.high)))

    def minimumSizeHint(self) -> QSize:
        return QSize(0, self.sizeHint().height())

    def _card(self) -> QRectF:
        """Return the strip without the free space around it."""
        if self._stage:
            return QRectF(self.rect())
        edge, above = self._style.px(_EDGE) / 2, self._style.px(_ABOVE)
        return QRectF(self.rect()).adjusted(edge, above, -edge, -above)

    def _controls(self) -> tuple[Control, ...]:
        labels = _LABELS if self._sizes.stacked else _SHORT
        out = []
        asked = self._changed, self._focused
        for name, field in self.fields.items():
            if name in _IN_HEADER and not self._stage and name not in asked:
                continue
            if isinstance(field, ChoiceBox):
                wide = float(field.sizeHint().width())
                least = min(wide, self._style.px(9 * self._sizes.field))
            else:
                wide = least = field.width_wanted
            out.append(Control(name, labels[name], wide, least))
        return tuple(out)

    def arrange(self) -> None:
        place = self._card()
        first = self._changed, self._focused, "tile", "causal"
        found = places(
            (place.width(), place.height()), self._sizes, self._style, self._controls(),
            self._figures, self._back, first,
        )  # fmt: skip
        self._places = found
        for name, field in self.fields.items():
            rect = found.fields.get(name)
            field.setVisible(rect is not None)
            if rect is not None:
                field.setGeometry(rect.translated(place.topLeft()).toRect())
        self.update()

    def tip(self, at: QPointF) -> str:
        found, at = self._places, at - self._card().topLeft()
        for figure, place in zip(self._figures, found.figures if found else (), strict=False):
            if place.contains(at):
                return figure.tip
        if found is not None and found.more.contains(at):
            return "Other questions: Alt+T, Alt+C, Alt+N, Alt+D, Alt+S, Alt+G"
        return ""

    def paint(self, painter: QPainter) -> None:
        if self._places is None:
            return
        what_ifs, place = self._what_ifs, self._card()
        current = self._focused or (self._changed if what_ifs.compared else "")
        state = StripState(
            self._controls(), self._figures, self._back, current,
            what_ifs.compared is not None, what_ifs.left, what_ifs.faded,
        )  # fmt: skip
        painter.translate(place.topLeft())
        rect = QRectF(0, 0, place.width(), place.height())
        paint_strip(painter, state, self._places, self._sizes, self._style, rect)


def _stepped(number: int, by: int, fine: bool, most: int, least: int = 1) -> int:
    """Return a number doubled or halved, or a little more or less."""
    if fine:
        return min(max(number + by * least, least), most)
    return min(2 * number, most) if by > 0 else max(number // 2, 1)
