"""Sliders for the shapes of a model: layers, KV heads, head size."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QLabel, QSlider, QWidget

from simulator.problem.models import AttentionModel, with_shapes
from simulator.study.heads.sharing import kv_head_counts
from ui.look.draw import text_width
from ui.look.theme import DARK, Style
from ui.look.units import plural
from ui.widgets.choice_bar import Button, bar_sheet
from ui.widgets.sheet import set_sheet

MOST_LAYERS, MOST_SIZE, SIZE_STEP = 160, 512, 8
"""Ends of the sliders unless a model has more, and between which head sizes they move."""
_LINE, _GAP = 24.0, 10.0


class ShapeSliders(QWidget):
    """Three sliders that begin at a model's own shapes, and a button that goes back to them."""

    changed = Signal(object)
    """The model with the shapes that were set."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.model: AttentionModel | None = None
        self._style = Style(DARK)
        self.sliders: dict[str, QSlider] = {}
        self.labels: dict[str, QLabel] = {}
        for name, tip in (
            ("layers", "Attention layers; as large a share as before has a window."),
            ("KV heads", "Heads of K and V, from one for all query heads to one for each."),
            ("head size", f"Numbers of a key and of a value, in steps of {SIZE_STEP}."),
        ):
            slider = self.sliders[name] = QSlider(Qt.Orientation.Horizontal, self)
            slider.setObjectName(name)
            slider.setAccessibleName(name)
            slider.setToolTip(tip)
            slider.setPageStep(4)
            slider.valueChanged.connect(self._moved)
            self.labels[name] = QLabel(self)
        self.own = Button(self)
        self.own.setText("As published")
        self.own.setAccessibleName("As published")
        self.own.setToolTip("The shapes of the chosen model again.")
        self.own.clicked.connect(self._go_back)

    def show_model(self, model: AttentionModel, shown: AttentionModel) -> None:
        """Show the shapes of `shown`, which is `model` or a change of it."""
        self.model = model
        ends = {
            "layers": (1, max(MOST_LAYERS, model.layers), shown.layers),
            "KV heads": (0, len(_kv_heads(model)) - 1, _place(model, shown)),
            "head size": (1, max(MOST_SIZE, model.head_dim) // SIZE_STEP,
                          round(shown.head_dim / SIZE_STEP)),
        }  # fmt: skip
        for name, (low, high, value) in ends.items():
            slider = self.sliders[name]
            blocked = slider.blockSignals(True)
            slider.setRange(low, high)
            slider.setValue(value)
            slider.blockSignals(blocked)
        self.labels["layers"].setText(plural(shown.layers, "layer"))
        self.labels["KV heads"].setText(plural(shown.kv_heads or 0, "KV head"))
        self.labels["head size"].setText(f"size {shown.head_dim}")
        for name in ("KV heads", "head size"):  # a latent has neither
            self.sliders[name].setVisible(not model.is_latent)
            self.labels[name].setVisible(not model.is_latent)
        self.arrange(self.width())  # those that have appeared, too
        self.own.setEnabled(shown is not model)

    def _moved(self) -> None:
        """Take the shapes of the sliders; a size that no step meets stays until it is moved."""
        model = self.model
        assert model is not None
        size = self.sliders["head size"].value()
        own = size == round(model.head_dim / SIZE_STEP)
        heads = _kv_heads(model)[self.sliders["KV heads"].value()]
        layers = self.sliders["layers"].value()
        width = model.head_dim if own else size * SIZE_STEP
        self.changed.emit(with_shapes(model, layers, None if model.is_latent else heads, width))

    def _go_back(self) -> None:
        self.changed.emit(self.model)

    def set_style(self, style: Style) -> None:
        """Take theme and text scale; `arrange` follows."""
        self._style = style
        set_sheet(self.own, bar_sheet(style))
        font = style.text_font(12)
        for widget in (self.own, *self.labels.values()):
            widget.setFont(font)

    def arrange(self, width: int) -> int:
        """Place everything in a line of a width; return the height."""
        style = self._style
        font, line, gap = style.text_font(12), round(style.px(_LINE)), round(style.px(_GAP))
        press = round(text_width(font, self.own.text()) + style.px(16))
        self.own.setGeometry(width - press, 0, press, line)
        shown = [name for name in self.sliders if not self.sliders[name].isHidden()]
        wide = (width - press - gap) // len(shown)
        widest = ("999 layers", "128 KV heads", "size 512")
        for n, name in enumerate(shown):
            side = round(text_width(font, widest[list(self.sliders).index(name)]) + gap / 2)
            self.labels[name].setGeometry(n * wide, 0, side, line)
            self.sliders[name].setGeometry(n * wide + side, 0, max(wide - side - gap, 10), line)
        return line


def _kv_heads(model: AttentionModel) -> tuple[int, ...]:
    """Return how many KV heads the model could have, fewest first."""
    return kv_head_counts(model.heads)[::-1]


def _place(model: AttentionModel, shown: AttentionModel) -> int:
    return _kv_heads(model).index(shown.kv_heads) if shown.kv_heads else 0
