"""The view as a string: copied, pasted, and opened from the recent files and the command line."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError
from PySide6.QtCore import QObject
from PySide6.QtGui import QGuiApplication

from simulator.base.errors import InputError, refuse
from simulator.lesson.link import ViewLink, is_link, read_link
from ui.look.layouts import LAYOUT_PANELS, layout_named
from ui.look.units import count_text

if TYPE_CHECKING:
    from simulator.lesson.tables import ChooseTable
    from ui.window.main_window import MainWindow


class Links(QObject):
    """Links of a window."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window

    def link(self) -> ViewLink | None:
        """Return the view on show; None before the first view."""
        window, view = self._window, self._window.session.view
        scenario = window.session.scenario
        if view is None or scenario is None:
            return None
        from ui.talk.record_dialog import front_panel

        layout = window.desk.current
        return ViewLink(
            scenario, view.snapshot.cursor, view.report.row, layout,
            front_panel(window, layout), self._choices(layout),
        )  # fmt: skip

    def _choices(self, layout: str) -> ChooseTable:
        """Return the choices in the panels on show; if two share a key, the first counts."""
        from simulator.lesson.tables import ChooseTable  # imports the choices of every study

        docks = self._window.docks
        found: dict[str, Any] = {}
        for name in layout_named(layout).docks:
            if docks[name].visibleRegion().isEmpty():
                continue
            for key, value in docks.panel(name).chosen_now().items():
                with suppress(ValidationError):  # a model of the user's own has no name for others
                    found.setdefault(key, getattr(ChooseTable.model_validate({key: value}), key))
        return ChooseTable().model_copy(update=found)

    def copy(self) -> None:
        """Copy the view as a link, or say why the view has no link."""
        found = self.link()
        if found is None:
            return
        try:
            text = found.text
        except InputError as error:
            self._window.show_error(error)
            return
        QGuiApplication.clipboard().setText(text)
        letters = count_text(len(text))
        self._window.say(
            f"Copied: a link of {letters} letters. Paste it here or in another window."
        )

    def paste(self) -> None:
        """Show the view of the link on the clipboard."""
        self.open(QGuiApplication.clipboard().text())

    def open(self, text: str) -> None:
        """Show the view of a link, after asking about changes that it replaces."""
        try:
            found = self.read(text)
        except InputError as error:
            self._window.show_error(error)
        else:
            self._window.unsaved.before(lambda: self.show(found, text.strip()))

    def read(self, text: str) -> ViewLink:
        """Return the view of a link.

        Raises InputError: the text is no link, or a window cannot show the view.
        """
        if not is_link(text):
            raise refuse("link", "", text.strip(), "a link on the clipboard: tilescope:1/…")
        found = read_link(text)
        if found.layout and found.layout not in LAYOUT_PANELS:
            raise refuse("link", "layout", found.layout, f"one of {', '.join(LAYOUT_PANELS)}")
        if found.panel and found.panel not in LAYOUT_PANELS.get(found.layout, ()):
            raise refuse("link", "panel", found.panel, "a panel of its layout")
        return found

    def title(self, text: str) -> str:
        """Return a link's name among the recent files; "" if the link cannot be used."""
        try:
            found = self.read(text)
        except InputError:
            return ""
        said = found.scenario.title or found.scenario.attention.algorithm
        return f"{said} · visit {count_text(found.cursor.visit)}, op {found.cursor.op}"

    def show(self, found: ViewLink, text: str) -> None:
        """Show a view; `text` is put among the recent files."""
        window = self._window
        window.lessons.player.leave()
        window.session.start(found.scenario, None, at=(found.cursor, found.row))
        if found.layout:
            window.desk.take(found.layout)
            for name in layout_named(found.layout).docks:
                window.docks.panel(name).take_choices(found.choices)
        if found.panel:
            window.docks.open(found.panel)
        window.settings.add_recent(text)
