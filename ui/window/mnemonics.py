"""Mnemonics: a letter for each line of a menu, no two alike."""

from __future__ import annotations

import re
from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMenu, QMenuBar

_MARK = re.compile(r"&(.)")


def plain(text: str) -> str:
    """Return a text of a menu without its mnemonic."""
    return _MARK.sub(r"\1", text)


def with_mnemonics(texts: list[str]) -> list[str]:
    """Return the texts of a menu, each with ``&`` before a letter of its own.

    The first letters of words come first. A text whose letters are all taken has none.
    """
    taken: set[str] = set()
    out = []
    for text in texts:
        words = [found.start() for found in re.finditer(r"(?<![^\W_])[^\W_]", text)]
        places = [*words, *range(len(text))]
        free = (n for n in places if text[n].isascii() and text[n].isalnum())
        at = next((n for n in free if text[n].lower() not in taken), None)
        if at is not None:
            taken.add(text[at].lower())
        parts = (text,) if at is None else (text[:at], text[at:])
        out.append("&".join(part.replace("&", "&&") for part in parts))
    return out


def keep_mnemonics(menu: QMenu | QMenuBar) -> None:
    """Give the lines of a menu their mnemonics; menus in it get theirs each time they open."""
    actions = [action for action in menu.actions() if action.text()]
    texts = with_mnemonics([plain(action.text()) for action in actions])
    for action, text in zip(actions, texts, strict=True):
        if action.text() != text:
            action.setText(text)
    # With `QAction.menu` a menu would be deleted with the Python object of its action.
    for inner in menu.findChildren(QMenu, options=Qt.FindChildOption.FindDirectChildrenOnly):
        if inner.property("mnemonics") is None:
            inner.setProperty("mnemonics", True)
            inner.aboutToShow.connect(partial(keep_mnemonics, inner))
