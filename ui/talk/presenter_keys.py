"""The meanings of keys during a talk: this table comes before the meanings elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QKeyCombination, Qt
from PySide6.QtGui import QKeyEvent, QKeySequence


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a talk."""

    keys: tuple[str, ...]  # the keys
    does: str  # the method that the key calls, from `Presenter` on
    words: str  # the method's effect, for the list of keys
    typed: bool = False  # whether a field that has the focus takes it as a letter
    drawing: bool = False  # whether the key has this meaning only while the pen is on


KEYS = (
    Key(("PgDown",), "next", "Next step, or first an answer; at the end the next lesson; or step"),
    Key(("PgUp",), "back", "The step before; before the first, the lesson before"),
    Key(("G",), "begin_jump", "Go to a step: its number, then Enter; also without G", typed=True),
    Key(("B", "."), "toggle_blank", "Black screen", typed=True),
    Key(("0",), "toggle_what_if", "What if: the strip comes, or goes", typed=True),
    Key(("R",), "toggle_transport", "Place and speed of the run, or not", typed=True),
    Key(("Ctrl+P",), "toggle_pen", "Pen"),
    Key(("Ctrl+L",), "toggle_spotlight", "Spotlight; the wheel makes it larger or smaller"),
    Key(("Backspace", "Ctrl+Z"), "overlay.undo", "Take the last stroke back", drawing=True),
    Key(("E",), "overlay.clear", "Erase all strokes", typed=True),
    Key(("S",), "link.toggle", "Speaker's window", typed=True),
    Key(("X",), "link.swap_screens", "Change screens with the speaker's window", typed=True),
    Key(("Esc",), "off_or_end", "Pen, spotlight and black screen off; then the end"),
    Key(("F5", "Shift+F5"), "end", "The end of the talk"),
)
"""The keys of a talk. A clicker sends PgDown, PgUp, B or a full stop, and F5 and Esc in turns."""

IN_SPEAKER = (
    "first", "back", "forward", "last", "play", "row_block_back", "row_block_forward",
    "head_back", "head_forward", "slower", "faster", "reveal", "next_theme",
)  # fmt: skip
"""Actions of the window whose keys also work in the speaker's window."""
ENTER = "Return", "Enter"
"""Keys that go to the step whose number has been typed."""
LETTERS = ("reveal", "next_theme", "set_motion", "weights")
"""Actions of the window whose letters also work in a talk; other letters do nothing."""
ZOOM = {"+": 1, "=": 1, "-": -1}
"""Keys of the speaker's window for the size of its text."""

PLAIN = {text: key for key in KEYS if not key.drawing for text in key.keys}
DRAWING = {text: key for key in KEYS if key.drawing for text in key.keys}
"""The row of each key, and the row of keys that have another meaning while the pen is on."""


def key_text(event: QKeyEvent) -> str:
    """Return the text of a key, wherever on the keyboard the key is."""
    modifiers = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
    if event.text().isprintable() and not event.text().isalnum():
        modifiers &= ~Qt.KeyboardModifier.ShiftModifier  # on some keyboards a full stop needs Shift
    return QKeySequence(QKeyCombination(modifiers, Qt.Key(event.key()))).toString()
