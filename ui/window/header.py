"""The bar at the top: the run as a sentence of chips, and the engine."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QSize, Qt, QTimer, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QMenu, QSizePolicy, QWidget

from simulator.problem.filling import capture_text
from simulator.problem.workload import Workload
from simulator.program.algorithms import algorithm_of
from simulator.program.faults import fault_labels
from simulator.run.trace import Trace
from ui.look.draw import text_width
from ui.look.names import first_that_fits
from ui.look.run_words import (
    batch_words,
    change_words,
    done_words,
    engine_words,
    pattern_words,
    splits_words,
    what_if_words,
)
from ui.look.theme import DARK, Style
from ui.look.units import count_text, plural
from ui.panels.scenario.fields import SPECS
from ui.safety.overrides import guarded
from ui.widgets.choice_bar import Button
from ui.widgets.parts import with_parts
from ui.widgets.progress import ElidedLabel, ProgressStrip
from ui.widgets.sheet import set_sheet

_HIGH, _PAD, _GAP = 32, 11, 8
"""Height of a chip, space beside its words, and space between chips, at scale 1."""
_LETTERS = 52
"""Letters of a sentence that a chip shows where there is room; half of them elsewhere."""
_SHORT_TYPES = {"float16": "fp16", "float32": "fp32", "bfloat16": "bf16"}
_OPENS = "\u2002▾"


@dataclass(frozen=True, slots=True)
class ChipWords:
    """The words of a chip, and the field that it opens."""

    words: tuple[str, ...]  # the longest first; shorter ones for less room
    field: str
    before: str = ""  # a word of the sentence before it
    fault: bool = False

    @property
    def whole(self) -> str:
        """The chip with the word before it."""
        return f"{self.before} {self.words[0]}".strip()


def chip_words(w: Workload, *, asked: bool = False) -> list[ChipWords]:
    """Return the chips of a run, most important first.

    asked: with tile, causal, tokens and width, the fields of the strip of questions.
    """
    out = [ChipWords((algorithm_of(w).title,), "attention.algorithm")]
    faults = fault_labels(w.scenario)
    if faults:
        out.insert(0, ChipWords(faults, f"faults.{w.faults.on[0]}", fault=True))
    out.append(ChipWords(_input_words(w), "input.name", "reads"))
    out.append(ChipWords((_head_words(w),), "input.head", "with"))
    out.append(ChipWords((_SHORT_TYPES[w.dtype],), "attention.dtype", "in"))
    out.append(ChipWords((w.gpu.name, w.gpu.name.partition("-")[0]), "hardware.preset", "on"))
    if done := done_words(w):
        out.insert(1, ChipWords((done,), "input.path"))
    if w.what_if:
        out.append(ChipWords((what_if_words(w), "what if"), "input.what_if"))
    out += [
        ChipWords((words,), field) for words, field in [*_asked_words(w, asked), *_own_words(w)]
    ]
    return list({chip.field: chip for chip in reversed(out)}.values())[::-1]  # one for each field


def _asked_words(w: Workload, asked: bool) -> list[tuple[str, str]]:
    if not asked:
        return []
    tokens = f"N {count_text(w.queries)}"
    if w.queries != w.seqlen_k:
        tokens = f"Nq {count_text(w.queries)} · Nk {count_text(w.seqlen_k)}"
    return [
        (f"{count_text(w.rows)} × {count_text(w.cols)} tiles", "tiling.rows"),
        ("causal" if w.mask.causal else "not causal", "mask.causal"),
        (tokens, "attention.seqlen_q"),
        (f"d {w.head_dim}", "attention.head_dim"),
    ]


def _own_words(w: Workload) -> list[tuple[str, str]]:
    """Return other unusual settings, with their fields; the strip below has sizes and causal."""
    heads, kv_heads = w.input_heads
    sharing = f"{'MQA' if kv_heads == 1 else 'GQA'} {heads}:{kv_heads}"
    words = [
        *((splits, "tiling.splits") for splits in splits_words(w)),
        *([(sharing, "attention.kv_heads")] if kv_heads != heads else []),
        *pattern_words(w.mask),
    ]
    if w.scenario.batch.lengths:
        words.append((batch_words(w), "batch.sequence"))
    return [*words, *change_words(w)]


def _head_words(w: Workload) -> str:
    heads, picked = w.input_heads[0], w.picked
    if len(picked) == heads:
        return plural(heads, "head")
    if len(picked) > 4:
        return f"{len(picked)} of {heads} heads"
    return f"head{'s' * (len(picked) > 1)} {', '.join(map(str, picked))} of {heads}"


def _input_words(w: Workload) -> tuple[str, ...]:
    """Return the source of Q, K and V: a sentence by its text, quoted, longer and shorter."""
    said = w.scenario.input
    if w.file is None:
        return (f"random numbers, seed {said.seed}", "random numbers")
    if said.source == "sentence":
        text = " ".join((said.text or "").split())
    elif said.source == "capture":
        text = capture_text(said.name or "").words
    else:
        return (w.file.path.name, _cut(w.file.path.name, _LETTERS // 2))
    return tuple(f"“{_cut(text, most)}”" for most in (_LETTERS, _LETTERS // 2))


def _cut(text: str, most: int) -> str:
    """Return a text of so many letters, cut between words if that is possible."""
    if len(text) <= most:
        return text
    start = text[: most - 1]
    return f"{start.rpartition(' ')[0] or start} …"


@guarded
class ChipRow(QWidget):
    """The chips, in one row; chips that have no room are in the menu of "…"."""

    field_asked = Signal(str, object)
    """A field, and the chip that asks for it."""
    form_asked = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.style_now = Style(DARK)
        self.chips: dict[str, Button] = {}
        """The chips by their field, also chips that have no room."""
        self._before: dict[str, QLabel] = {}
        self._shown: list[ChipWords] = []
        self.left_out: list[ChipWords] = []
        self._menu = QMenu(self)
        self.more = Button(self)
        self.more.setObjectName("chip")
        self.more.setText("…")
        self.more.setAccessibleName("All fields of the scenario")
        self.more.clicked.connect(self._open_more)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName("Scenario")

    def show_chips(self, chips: list[ChipWords], style: Style) -> None:
        """Show other chips."""
        restyled = style != self.style_now
        self._shown, self.style_now = chips, style
        self.setAccessibleDescription(", ".join(chip.whole for chip in chips))
        wanted = {chip.field for chip in chips}
        for field in self.chips.keys() - wanted:
            for widget in (self.chips.pop(field), self._before.pop(field)):
                widget.hide()
                widget.deleteLater()
        for chip in chips:
            if chip.field not in self.chips:
                self._make(chip)
                restyled = True
            self._before[chip.field].setText(chip.before)
        if restyled:
            self._restyle()
        self._place()
        self.updateGeometry()

    def _make(self, chip: ChipWords) -> None:
        button = Button(self)
        button.setObjectName("fault_chip" if chip.fault else "chip")
        button.setToolTip(f"{SPECS[chip.field].label}: {SPECS[chip.field].help}")
        button.clicked.connect(partial(self._open, chip.field))
        self.chips[chip.field], self._before[chip.field] = button, QLabel(self)

    def _restyle(self) -> None:
        style = self.style_now
        font = style.text_font(14)
        for widget in (*self.chips.values(), *self._before.values(), self.more):
            widget.setFont(font)

    def _open(self, field: str) -> None:
        self.field_asked.emit(field, self.chips[field])

    def _open_more(self) -> None:
        """Open the menu of chips that have no room, or the form if all chips have room."""
        if not self.left_out:
            self.form_asked.emit()
            return
        menu = self._menu
        menu.clear()
        for chip in self.left_out:
            open_it = partial(self._open_soon, chip.field)
            menu.addAction(chip.words[0]).triggered.connect(open_it)
        menu.addSeparator()
        menu.addAction("All fields").triggered.connect(self.form_asked)
        menu.popup(self.more.mapToGlobal(self.more.rect().bottomLeft()))

    def _open_soon(self, field: str, checked: bool = False) -> None:
        """Open a field after the menu has closed: closing would close the field, too."""
        QTimer.singleShot(0, self, partial(self.field_asked.emit, field, self.more))

    def _place(self) -> None:
        """Put as many chips into the row as fit, with their longest words if all of these fit."""
        px, font = self.style_now.px, self.style_now.text_font(14)
        high, gap = round(px(_HIGH)), px(_GAP)
        top = (self.height() - high) // 2
        more = px(_HIGH)
        room = self.width() - more - gap

        def wide(chip: ChipWords, words: str) -> float:
            before = text_width(font, chip.before) + gap if chip.before else 0.0
            return before + text_width(font, words + _OPENS) + px(2 * _PAD) + gap

        whole = sum(wide(chip, chip.words[0]) for chip in self._shown) <= room
        x, full = 0.0, False
        self.left_out = []
        for chip in self._shown:
            button, before = self.chips[chip.field], self._before[chip.field]
            words = chip.words[0] if whole else chip.words[-1]
            if chip.fault and not whole:
                words = first_that_fits(chip.words, room - x - px(2 * _PAD) - gap, font)
            full = not chip.fault and (full or x + wide(chip, words) > room + gap)
            button.setVisible(not full)
            before.setVisible(not full and bool(chip.before))
            if full:
                self.left_out.append(chip)
                continue
            if chip.before:
                width = round(text_width(font, chip.before)) + 1
                before.setGeometry(round(x), top, width, high)
                x += width + gap
            button.setText(words + ("" if chip.fault else _OPENS))
            button.setAccessibleName(chip.whole)
            width = round(text_width(font, button.text()) + px(2 * _PAD))
            button.setGeometry(round(x), top, width, high)
            x += width + gap
        self.more.setGeometry(round(min(x, max(room + gap, 0))), top, round(more), high)
        self.more.setToolTip("\n".join([*(chip.whole for chip in self.left_out), "All fields"]))
        self.setToolTip(self.more.toolTip())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place()

    def minimumSizeHint(self) -> QSize:
        px, font = self.style_now.px, self.style_now.text_font(14)
        first = [chip.words[-1] for chip in self._shown[:1]]
        words = max((text_width(font, each + _OPENS) for each in first), default=0.0)
        return QSize(round(words + px(2 * _PAD + _GAP + _HIGH)), round(px(_HIGH)))

    def sizeHint(self) -> QSize:
        return self.minimumSizeHint()


@guarded
class Header(QWidget):
    """The run as a sentence of chips, work under way, engine badge.

    If there is too little space the badge disappears.
    """

    field_asked = Signal(str, object)
    scenario_asked = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.chips = ChipRow()
        self.chips.field_asked.connect(self.field_asked)
        self.chips.form_asked.connect(self.scenario_asked)
        self.progress = ProgressStrip()
        self.progress.toggled.connect(self._make_room)
        self._who = ""
        self._style = Style(DARK)
        self.engine = ElidedLabel()
        self.engine.setObjectName("engine")
        self.engine.setAlignment(Qt.AlignmentFlag.AlignCenter)
        with_parts(QHBoxLayout(self), (self.chips, 1), self.progress, self.engine)

    def show_trace(self, trace: Trace, style: Style, note: str, *, asked: bool = True) -> None:
        """Show a trace; `note` says in words why this engine was chosen.

        asked: also the settings that the strip of questions has fields for.
        """
        self.chips.show_chips(chip_words(trace.workload, asked=asked), style)
        self._who = engine_words(trace.engine.name, trace.engine.device)
        self.engine.setText(self._who)
        self.engine.setToolTip(f"{self._who}\n{note}")
        self.engine.setAccessibleDescription(note)
        self._make_room(not self.progress.isHidden())

    def show_busy(self, busy: bool, trace: Trace | None) -> None:
        """Show that the engine is at work, or the engine's name."""
        if busy:
            self.engine.setText("computing…")
        elif trace is not None:
            self.engine.setText(engine_words(trace.engine.name, trace.engine.device))

    def set_style(self, style: Style) -> None:
        """Take theme and text scale."""
        edge = round(style.px(8))
        layout = self.layout()
        assert layout is not None
        layout.setContentsMargins(edge * 2, edge, edge * 2, edge)
        layout.setSpacing(edge)
        self.engine.setFont(style.text_font(12))
        self.progress.set_style(style)
        theme, px = style.theme, style.px
        set_sheet(
            self,
            f"#chip, #fault_chip {{ border: 1px solid {theme.border};"
            f" border-radius: {px(6):.0f}px; color: {theme.text}; background: {theme.field};"
            f" padding: 0 {px(_PAD) - 2:.0f}px; }}"
            f"#chip:hover {{ background: {theme.accent}; }}"
            f'#chip[ring="true"] {{ border: {max(px(2), 2):.0f}px solid {theme.current}; }}'
            f"#fault_chip {{ background: {theme.bad}; color: {theme.panel}; }}"
            f"QLabel {{ color: {theme.muted}; }}",
        )
        self.chips.show_chips(self.chips._shown, style)
        self._make_room(not self.progress.isHidden())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._make_room(not self.progress.isHidden())

    def minimumSizeHint(self) -> QSize:
        return self._least_parts()

    def _least_parts(self) -> QSize:
        """Return the room of the parts that are always shown."""
        least, layout = super().minimumSizeHint(), self.layout()
        assert layout is not None
        if not self.engine.isHidden():
            spare = self.engine.minimumSizeHint().width() + layout.spacing()
            least.setWidth(least.width() - spare)
        return least

    def _make_room(self, busy: bool) -> None:
        """Hide the badge if it would make the window wider."""
        layout, strip, badge = self.layout(), self.progress, self.engine
        assert layout is not None
        gap = layout.spacing()
        room = self.width() - self._least_parts().width()
        if busy and strip.isHidden():  # the strip is about to appear
            room -= strip.minimumSizeHint().width() + gap
        badge.setVisible(badge.minimumSizeHint().width() + gap <= room)
