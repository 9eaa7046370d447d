"""The controls above the attention inspector: sliders, switches and buttons on lines that fit."""

from __future__ import annotations

import math
from dataclasses import replace

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtGui import QFont, QWheelEvent
from PySide6.QtWidgets import QLabel, QSlider, QToolButton, QWidget

from simulator.problem.masks import counted_back
from simulator.study.attention_map import MapSettings
from ui.look.draw import text_width
from ui.look.run_words import window_words
from ui.look.theme import DARK, Style
from ui.look.units import count_text
from ui.safety.overrides import guarded
from ui.widgets.choice_bar import Button, bar_sheet, lines_of, put_in_lines
from ui.widgets.named import named
from ui.widgets.sheet import set_sheet

TEMPERATURE_ENDS = -100, 100
"""Places of the slider: hundredths of a power of ten, so from 0.1 to 10."""

_ROOM_FOR_PARTS = 380
"""Width of the bar, at scale 1, from which the row is explained beside or below the map."""

_TIPS = {
    "temperature": "Divides the scaled scores before the softmax: below 1 a row reads fewer keys, "
    "above 1 more (Hinton et al. 2015).",
    "window": "Keys that a row sees, counted back from its own place (Beltagy et al. 2020).",
    "sinks": "First keys, which the window never hides (Xiao et al. 2023).",
    "causal": "Whether a row sees no later key (Vaswani et al. 2017, section 3.2.3).",
    "compare": "Two heads: the map shows the weights of one less those of the other. A click on a "
    "small map chooses the second.",
    "jacobian": "How each weight of the row moves with each of its scores: diag(p) − p pᵀ, in the "
    "place of what it reads. Where it is near 0, little is learned (Vaswani et al. 2017, section "
    "3.2.1).",
    "blend": "How the row's output adds up: the value of each key times its weight, and their sum, "
    "in the place of what it reads.",
    "reset": "Temperature and mask of the scenario again.",
    "put": "Change the scenario to this temperature and mask; undo takes it back.",
}


_BUTTONS = {
    "causal": "causal", "compare": "Compare", "jacobian": "Jacobian", "blend": "Blend",
    "reset": "As scenario", "put": "Put into scenario",
}  # fmt: skip


@guarded
class _KeyedSlider(QSlider):
    """A slider that does not move when one scrolls over it."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


def temperature_at(place: int) -> float:
    """Return the temperature of a place of the slider, to three digits."""
    return float(f"{10 ** (place / 100):.3g}")


class InspectorBar(QWidget):
    """Temperature, causal, window and sinks, and the buttons that use them."""

    changed = Signal(object)
    """The new `MapSettings`, at every move of a slider."""
    compared = Signal(bool)
    jacobian_asked = Signal(bool)
    blend_asked = Signal(bool)
    reset_pressed = Signal()
    put_pressed = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.style_now = Style(DARK)
        self.settings = MapSettings()
        self.keys = 1
        self.labels: dict[str, QLabel] = {}
        self.sliders: dict[str, QSlider] = {}
        for name in ("temperature", "window", "sinks"):
            self._make_slider(name)
        self.buttons = {name: self._make_button(name, words) for name, words in _BUTTONS.items()}
        self.buttons["causal"].clicked.connect(lambda on: self._take("causal", on))
        self.buttons["compare"].clicked.connect(self.compared)
        self.buttons["jacobian"].clicked.connect(self.jacobian_asked)
        self.buttons["blend"].clicked.connect(self.blend_asked)
        self.buttons["reset"].clicked.connect(lambda _: self.reset_pressed.emit())
        self.buttons["put"].clicked.connect(lambda _: self.put_pressed.emit())

    def _make_slider(self, name: str) -> None:
        self.labels[name] = QLabel(self)
        tip = f"{_TIPS[name]} Up and Down move it."
        slider = self.sliders[name] = named(_KeyedSlider(self), name, name, tip)
        self.labels[name].setToolTip(tip)
        warm = name == "temperature"
        if warm:
            slider.setRange(*TEMPERATURE_ENDS)
        slider.valueChanged.connect(lambda at: self._take(name, temperature_at(at) if warm else at))

    def _make_button(self, name: str, words: str) -> QToolButton:
        button = named(Button(self), name, words, _TIPS[name])
        button.setText(words)
        button.setCheckable(name not in ("reset", "put"))
        button.setAccessibleDescription(_TIPS[name])
        button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        return button

    def _take(self, name: str, value: float) -> None:
        self.settings = replace(self.settings, **{name: value})  # type: ignore[arg-type]
        self._write()
        self.changed.emit(self.settings)

    def show_settings(self, settings: MapSettings, keys: int) -> None:
        """Show settings without emitting them; a window has at most `keys` keys."""
        self.settings, self.keys = settings, keys
        at = round(100 * math.log10(settings.temperature)) if settings.temperature > 0 else 0
        places = {
            "temperature": at,
            "window": counted_back(settings.window),
            "sinks": settings.sinks,
        }
        for name, place in places.items():
            slider = self.sliders[name]
            with QSignalBlocker(slider):
                if name != "temperature":
                    slider.setRange(0, max(keys, place))
                    slider.setPageStep(max(keys // 20, 1))
                slider.setValue(place)
        self.buttons["causal"].setChecked(settings.causal)
        self._write()

    def show_put(self, can: bool, why: str) -> None:
        """Say whether the scenario can take the settings, and why not."""
        self.buttons["put"].setEnabled(can)
        self.buttons["put"].setToolTip(f"{_TIPS['put']} {why}".strip())

    def _words(self, name: str) -> str:
        if name == "temperature":
            return f"temperature {self.settings.temperature:.3g}"
        if name == "window" and self.settings.window:
            return window_words(self.settings.window)
        value = int(getattr(self.settings, name))
        return f"{name} {count_text(value)}" if value or name == "sinks" else f"{name} none"

    def _write(self) -> None:
        for name, label in self.labels.items():
            label.setText(self._words(name))
            self.sliders[name].setAccessibleDescription(f"{self._words(name)}. {_TIPS[name]}")

    def set_style(self, style: Style) -> None:
        """Take theme and text scale; `arrange` follows."""
        self.style_now = style
        t, px = style.theme, style.px
        deep, high = round(px(4)), round(px(5))
        set_sheet(
            self,
            f"""{bar_sheet(style)}
            QLabel {{ color: {t.text}; background: transparent; }}
            QSlider::groove:horizontal, QSlider::sub-page:horizontal
            {{ height: {deep}px; background: {t.border}; border-radius: {deep // 2}px; }}
            QSlider::sub-page:horizontal {{ background: {t.muted}; }}
            QSlider::handle:horizontal {{ background: {t.current}; border: 1px solid {t.panel};
            width: {2 * high}px; margin: -{high}px 0; border-radius: {high}px; }}
            QSlider[ring="true"] {{ border: 1px solid {t.text}; }}""",
        )

    def arrange(self, width: float) -> int:
        """Place everything in lines of at most `width` pixels; return the height."""
        style = self.style_now
        px, font = style.px, style.text_font(12)
        groups: list[tuple[list[QWidget], list[float]]] = [
            ([self.labels[name], slider], self._slider_sizes(name, font))
            for name, slider in self.sliders.items()
        ]
        # A panel without space for the row's own part has no Jacobian and no blend either.
        for name in ("jacobian", "blend"):
            self.buttons[name].setVisible(width >= px(_ROOM_FOR_PARTS))
        groups += [
            ([each], [text_width(font, each.text()) + px(16)])
            for each in self.buttons.values()
            if not each.isHidden()
        ]
        # Causal is beside the controls that belong to it.
        groups.insert(1, groups.pop(3))
        lines = lines_of([sum(sizes) for _, sizes in groups], px(10), width)
        return put_in_lines(groups, lines, style)[1]

    def _slider_sizes(self, name: str, font: QFont) -> list[float]:
        """Return the widths of a label, for the longest words that it may have, and its slider."""
        longest = {"temperature": "temperature 0.000"}.get(name, f"{name} {count_text(self.keys)}")
        words = (longest, f"{name} none", self._words(name))
        label = max(text_width(font, each) for each in words)
        return [label + self.style_now.px(12), self.style_now.px(76)]
