"""The row of choices above a plot: groups of buttons and lists, on as many lines as they need."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFont, QKeyEvent
from PySide6.QtWidgets import QToolButton, QWidget

from simulator.base.choices import Choice, Option
from ui.look.draw import text_width
from ui.look.theme import DARK, Style
from ui.safety.overrides import guarded
from ui.widgets.choice_box import ChoiceBox
from ui.widgets.named import named
from ui.widgets.sheet import set_sheet


def bar_sheet(style: Style) -> str:
    """Return the style of the buttons and lists of a bar."""
    t, px = style.theme, style.px
    return (
        f"QToolButton {{ color: {t.muted}; background: {t.field}; padding: 0;"
        f" border: 1px solid {t.border}; border-radius: {round(px(4))}px; }}"
        f"QToolButton:hover {{ color: {t.text}; }}"
        f"QToolButton:checked {{ color: {t.text}; background: {t.accent};"
        f" border-color: {t.current}; }}"
        f'QToolButton[ring="true"] {{ border: 1px solid {t.text}; color: {t.text}; }}'
        f"QToolButton:disabled {{ color: {t.faint}; }}"
    )


@guarded
class Button(QToolButton):
    """A button that Enter presses, too: Space plays the run."""

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.click()
        else:
            super().keyPressEvent(event)


class PlotBar(QWidget):
    """Some choices, and a button that shows the whole plot."""

    chosen = Signal(str, str)
    """Name of the choice, and the value chosen."""
    fit_pressed = Signal()

    def __init__(self, choices: Sequence[Choice]) -> None:
        super().__init__()
        self.style_now = Style(DARK)
        self.choices = tuple(choices)
        self.buttons: dict[tuple[str, str], QToolButton] = {}
        self.lists: dict[str, ChoiceBox] = {}
        self._hidden: set[str] = set()
        for choice in self.choices:
            if choice.listed:
                self._make_list(choice)
            else:
                for option in choice.options:
                    self.buttons[choice.name, option.value] = self._make_button(choice, option)
        tip = "Show the whole plot again: the wheel zooms, dragging pans."
        self.fit_button = named(Button(self), "fit", "Fit", tip)
        self.fit_button.setText("Fit")
        self.fit_button.setEnabled(False)
        self.fit_button.clicked.connect(self.fit_pressed)

    def _make_button(self, choice: Choice, option: Option) -> QToolButton:
        name, said = f"{choice.name}_{option.value}", f"{choice.name}: {option.text}"
        strong = Qt.FocusPolicy.StrongFocus
        button = named(Button(self), name, said, option.tip, strong)
        button.setCheckable(True)
        button.clicked.connect(lambda _=False: self.choose(choice.name, option.value))
        return button

    def _make_list(self, choice: Choice) -> None:
        tip = choice.options[0].tip
        box = self.lists[choice.name] = named(ChoiceBox(self), choice.name, choice.name, tip)
        for option in choice.options:
            box.addItem(option.text, option.value)
        box.activated.connect(lambda _: self.chosen.emit(choice.name, box.currentData()))

    def choose(self, name: str, value: str) -> None:
        """Choose as if a button were pressed, and emit the signal."""
        self.show_chosen(name, value)
        self.chosen.emit(name, value)

    def show_chosen(self, name: str, value: str) -> None:
        """Show a choice without emitting the signal."""
        if name in self.lists:
            self.lists[name].setCurrentIndex(self.lists[name].findData(value))
        for (owner, other), button in self.buttons.items():
            if owner == name:
                button.setChecked(other == value)

    def offer(self, name: str, options: Sequence[Option]) -> None:
        """List the options of a run, or let only their buttons be pressed."""
        values = [each.value for each in options]
        for (owner, value), button in self.buttons.items():
            if owner == name:
                button.setEnabled(value in values)
        if name in self.lists:
            box = self.lists[name]
            box.clear()
            for each in options:
                box.addItem(each.text, each.value)

    def show_choice(self, name: str, shown: bool) -> None:
        """Show or hide a whole group, and arrange the others."""
        (self._hidden.discard if shown else self._hidden.add)(name)
        self.arrange(self.width())

    def shown(self) -> list[QWidget]:
        """Return the controls that are not hidden."""
        all_of: list[QWidget] = [*self.buttons.values(), *self.lists.values(), self.fit_button]
        return [control for control in all_of if not control.isHidden()]

    def set_style(self, style: Style) -> None:
        """Take theme and text scale; `arrange` follows."""
        self.style_now = style
        set_sheet(self, bar_sheet(style))
        for box in self.lists.values():
            box.set_style(style)

    def arrange(self, width: float) -> int:
        """Place everything in lines of at most `width` pixels; return the height."""
        style = self.style_now
        font = style.text_font(12)
        fit = self.fit_button
        fit_width = text_width(font, fit.text()) + style.px(16)
        kept = 0.0 if fit.isHidden() else fit_width + style.px(10)
        for long in (True, False):
            groups = self._groups(font, long=long)
            if not groups:
                return 0
            lines = lines_of([sum(sizes) for _, sizes in groups], style.px(10), width, kept)
            if lines[-1] == 0:
                break
        x, height = put_in_lines(groups, lines, style)
        # Fit is at the end of the first line and never begins a line.
        left = width - fit_width if lines[-1] else x
        fit.setFont(font)
        fit.setGeometry(round(left), 0, round(fit_width), round(style.px(24)))
        return height

    def _groups(self, font: QFont, *, long: bool) -> list[tuple[list[QWidget], list[float]]]:
        """Return the widgets of each group with their widths."""
        px = self.style_now.px
        out: list[tuple[list[QWidget], list[float]]] = []
        for choice in self.choices:
            shown = choice.name not in self._hidden
            if choice.listed:
                box = self.lists[choice.name]
                box.setVisible(shown)
                widest = max(text_width(font, option.text) for option in choice.options)
                if shown:
                    out.append(([box], [widest + px(40)]))
                continue
            widgets: list[QWidget] = []
            sizes = []
            for option in choice.options:
                button = self.buttons[choice.name, option.value]
                button.setVisible(shown)
                button.setText(option.text if long else option.short)
                widgets.append(button)
                sizes.append(text_width(font, button.text()) + px(16 if long else 11) + 2)
            if shown:
                out.append((widgets, sizes))
        return out


def put_in_lines(
    groups: Sequence[tuple[list[QWidget], list[float]]], lines: Sequence[int], style: Style
) -> tuple[float, int]:
    """Place the widgets of each group in its line; return the last group's end, and the height."""
    height, gap = round(style.px(24)), round(style.px(3))
    x, line = 0.0, 0
    for (widgets, sizes), at in zip(groups, lines, strict=True):
        if at != line:
            x, line = 0.0, at
        for widget, size in zip(widgets, sizes, strict=True):
            widget.setFont(style.text_font(12))
            widget.setGeometry(round(x), line * (height + gap), round(size - 2), height)
            x += size
        x += style.px(10)
    return x, (lines[-1] + 1) * (height + gap)


def lines_of(widths: Sequence[float], gap: float, room: float, kept: float = 0.0) -> list[int]:
    """Return the line of each of some boxes; `kept` pixels of the first line are not for them."""
    out, x, line = [], 0.0, 0
    for width in widths:
        if x > 0 and x + width > room - (kept if line == 0 else 0.0):
            x, line = 0.0, line + 1
        out.append(line)
        x += width + gap
    return out
