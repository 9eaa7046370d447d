"""Unsaved changes: the window asks before they are lost, and keeps them in the recent files.

The window asks only about acts of a person: the button of the window's frame, the Quit action, and
files opened by hand. Changes of a demo, which nobody has written, are kept without a question. No
question delays a program that calls `close`, or the end of the desktop's session.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, QTimer
from PySide6.QtWidgets import QApplication, QCheckBox, QMessageBox

from simulator.base.assets import ASSETS
from simulator.base.errors import InputError
from simulator.problem.scenario import Scenario, save_scenario

if TYPE_CHECKING:
    from ui.window.main_window import MainWindow

_NAMES = ("unsaved{}.toml", "unsaved{}-other.toml")
"""Names of the copy, with a demo's name; the second is used if the first is the file that is being
opened."""


class Unsaved(QObject):
    """Unsaved changes of a window.

    window: the window with the changed scenario; during a lesson this is the scenario from before
        the lesson, which comes back.
    """

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self.session_ends = False
        """Whether the desktop's session ends."""
        self.box: QMessageBox | None = None
        """The question, while it is asked."""
        app = QApplication.instance()
        assert isinstance(app, QApplication)
        app.commitDataRequest.connect(self.end_session)

    @property
    def scenario(self) -> Scenario | None:
        """The scenario that would be lost if the window closed now; None if all is saved."""
        session, aside = self._window.session, self._window.lessons.player.aside
        if aside is not None:
            return None if aside.stack.isClean() else aside.trace.workload.scenario
        return None if session.undo_stack.isClean() else session.scenario

    @property
    def path(self) -> Path | None:
        """The file from which this scenario was read."""
        aside = self._window.lessons.player.aside
        return aside.file.path if aside is not None else self._window.session.path

    @property
    def _of_demo(self) -> bool:
        path = self.path
        return path is not None and path.is_relative_to(ASSETS)

    @property
    def asks(self) -> bool:
        """Whether there are changes to ask about, and a person who wants to be asked."""
        wanted = self._window.settings.ask_unsaved and not self.session_ends
        return wanted and self.scenario is not None and not self._of_demo

    def set_asking(self, on: bool) -> None:
        """Ask from now on, or only keep the copy."""
        self._window.settings.ask_unsaved = on

    def end_session(self, manager: object = None) -> None:
        """Stop asking, and keep the copy now, because nobody may be there to answer."""
        self.session_ends = True
        self.keep()

    def before(self, act: Callable[[], object], opened: Path | None = None) -> None:
        """Ask about unsaved changes, then do an act that replaces or closes the scenario.

        act: the act; not called if the answer is Cancel.
        opened: the file that replaces the scenario.
        """
        if self.box is not None:
            self.box.raise_()
        elif self.asks:
            self._ask(act, opened)
        else:
            kept = self.keep(opened)
            act()
            if kept is not None and self._window.isVisible():
                self._window.say(f"Your changes are in {kept.name}, under File, Recent.")

    def keep(self, opened: Path | None = None) -> Path | None:
        """Put a scenario that is not saved among the recent files; return the copy."""
        scenario, settings = self.scenario, self._window.settings
        if scenario is None:
            return None
        of = f"-{self.path.stem}" if self.path is not None and self._of_demo else ""
        paths = (settings.folder / name.format(of) for name in _NAMES)
        path = next(path for path in paths if opened is None or path != opened.absolute())
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            save_scenario(scenario, path)
            settings.add_recent(path)
        except (InputError, OSError) as error:
            print(f"unsaved changes are lost: {error}", file=sys.stderr)
            return None
        return path

    # --- asking -----------------------------------------------------------------------------

    def _ask(self, act: Callable[[], object], opened: Path | None) -> None:
        scenario, path = self.scenario, self.path
        assert scenario is not None
        name = scenario.title or (path.stem if path else "Untitled")
        box = self.box = QMessageBox(self._window)
        box.setObjectName("unsaved")
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        box.setIcon(QMessageBox.Icon.Question)
        box.setWindowTitle("Unsaved changes")
        box.setTextFormat(Qt.TextFormat.PlainText)
        box.setText(f"Save the changes to “{name}”?")
        box.setInformativeText("If you do not, a copy of them stays under File, Recent.")
        check = QCheckBox("Do not ask again (the File menu turns it on again)", box)
        box.setCheckBox(check)
        roles = QMessageBox.ButtonRole
        save = box.addButton("Save", roles.AcceptRole)
        drop = box.addButton("Don't save", roles.DestructiveRole)
        cancel = box.addButton("Cancel", roles.RejectRole)
        box.setDefaultButton(save)
        box.setEscapeButton(cancel)
        box.finished.connect(partial(self._answer, box, (save, drop), act, opened))
        box.open()

    def _answer(
        self,
        box: QMessageBox,
        buttons: tuple[object, object],
        act: Callable[[], object],
        opened: Path | None,
        result: int = 0,
    ) -> None:
        self.box = None
        save, drop = buttons
        chosen = box.clickedButton()
        if chosen not in (save, drop):
            return
        if box.checkBox().isChecked():
            self._window.actions_by_name["ask_unsaved"].setChecked(False)
        if chosen is save and not self._save():
            return
        self.keep(opened)
        # Not here, because Qt is still busy with the box, whose window may be about to close.
        QTimer.singleShot(0, self, act)

    def _save(self) -> bool:
        """Save, asking for a file if there is none; return whether the scenario was saved."""
        self._window.lessons.player.leave()  # the scenario from before the dialog is to be saved
        self._window.files.save()
        return self.scenario is None
