"""The texts of the Help menu."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QMessageBox, QTextBrowser, QVBoxLayout

from simulator.base.assets import PAGES
from simulator.base.version import built, version
from ui.look.run_words import engine_note
from ui.talk.presenter_keys import KEYS, LETTERS
from ui.widgets.parts import with_parts
from ui.window.mnemonics import plain
from ui.window.panel_specs import GROUPS

if TYPE_CHECKING:
    from ui.window.main_window import MainWindow


def show_keys(window: MainWindow) -> None:
    """List the keys of actions, docks and layouts, and of a talk."""
    panels = [(str(n), f"{g.title}: {g.tip}") for n, g in enumerate(GROUPS, start=1)]
    layouts = [(a.shortcut().toString(), plain(a.text())) for a in window.desk.actions.values()]
    parts = [*_actions(window), ("Panels", panels), ("Layouts", layouts)]
    talk = [(", ".join(key.keys), key.words) for key in KEYS]
    letters = [window.actions_by_name[name] for name in LETTERS]
    talk += [(action.shortcut().toString(), plain(action.text())) for action in letters]
    parts.append(("In a talk, where other letters do nothing", talk))
    dialog = QDialog(window)
    dialog.setObjectName("keys")
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.setWindowTitle("Keys")
    text = QTextBrowser()
    text.setHtml("".join(_table(title, rows) for title, rows in parts if rows))
    _open_reading(window, dialog, text, 560)


def show_page(window: MainWindow, name: str) -> None:
    """Show a page of docs by its name; its links lead to other pages."""
    dialog = QDialog(window)
    dialog.setObjectName("page")
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    text = QTextBrowser()
    text.setOpenLinks(False)

    def show(name: str) -> None:
        page = (PAGES / f"{name}.md").read_text(encoding="utf-8")
        title, _, body = page.partition("\n")
        # Pictures are wider than the dialog, and the window itself shows the same.
        text.setMarkdown(re.sub(r"<!--.*?-->|!\[.*?\]\(.*?\)", "", body))
        dialog.setWindowTitle(title.removeprefix("# "))

    def follow(url: QUrl) -> None:
        path = Path(url.path())
        if url.isRelative() and path.suffix == ".md" and (PAGES / path.name).exists():
            show(path.stem)
        elif not url.isRelative():
            QDesktopServices.openUrl(url)

    text.anchorClicked.connect(follow)
    show(name)
    _open_reading(window, dialog, text, 760)


def _open_reading(window: MainWindow, dialog: QDialog, text: QTextBrowser, wide: int) -> None:
    """Open a dialog with a text, as high as fits."""
    buttons = QDialogButtonBox()
    buttons.addButton("Close", QDialogButtonBox.ButtonRole.RejectRole)
    buttons.rejected.connect(dialog.reject)
    with_parts(QVBoxLayout(dialog), text, buttons)
    width = min(round(wide * window.settings.text_scale), window.width())
    dialog.resize(width, round(window.height() * 0.85))
    dialog.open()


def _actions(window: MainWindow) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield each menu with the keys and words of its actions."""
    for title, menu in window.menus.items():
        actions = [a for a in menu.actions() if a in window.actions_by_name.values()]
        rows = [(", ".join(k.toString() for k in a.shortcuts()), plain(a.text())) for a in actions]
        yield title, [(keys, words) for keys, words in rows if keys]


def _table(title: str, rows: list[tuple[str, str]]) -> str:
    lines = "".join(
        f'<tr><td width="200"><b>{escape(keys)}</b></td><td>{escape(words)}</td></tr>'
        for keys, words in rows
    )
    return f"<h3>{escape(title)}</h3><table>{lines}</table>"


def about(window: MainWindow) -> None:
    """Show the name and version of the program, and its engine."""
    trace = window.session.trace
    engine = trace and trace.engine
    note = engine_note(engine.name, engine.device, window.session.why) if engine else ""
    day = built()
    name = f"<b>Tilescope</b> {version()}{f' of {day}' if day else ''}"
    _tell(window, "About Tilescope", f"{name}<br>Attention, tile by tile.<br>{note}")


def _tell(window: MainWindow, title: str, text: str) -> None:
    box = QMessageBox(window)
    box.setObjectName("message")
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.setWindowTitle(title)
    box.setText(text)
    box.addButton("OK", QMessageBox.ButtonRole.AcceptRole)  # a standard button has an icon
    box.open()
