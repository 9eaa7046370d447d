"""Unsaved changes are copied while they are made, and offered again after a crash."""

from __future__ import annotations

import os
import secrets
import time
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QLockFile, QObject, Qt, QTimer
from PySide6.QtWidgets import QMessageBox

from simulator.base.errors import InputError, safe_text
from simulator.base.files import clear_stale, write_atomically
from simulator.problem.scenario import Scenario, load_scenario, save_scenario, scenario_toml
from ui.safety.log import LOG
from ui.session.session import Session
from ui.window.main_window import MainWindow

WAIT_MS = 2000
"""How long changes may be older than their copy."""
_OF = "# unsaved changes of "
_FOLDER = "autosave"


class Autosave(QObject):
    """Keeps a copy of the scenario while it has changes that are not saved.

    A lock beside the copy says that its instance is running: the lock ends with the process in any
    case. Changes that a lesson makes to its own scenarios are not kept.

    folder: folder of the settings; copies are in a subfolder.
    """

    def __init__(self, session: Session, folder: Path, wait_ms: int | None = None) -> None:
        super().__init__(session)
        self._session = session
        self._own = session.undo_stack
        name = f"{os.getpid()}-{secrets.token_hex(4)}"
        self.path = folder / _FOLDER / f"{name}.toml"
        self._lock: QLockFile | None = None
        self._waiting: tuple[Scenario, Path | None] | None = None
        self._timer = QTimer(
            self, singleShot=True, interval=WAIT_MS if wait_ms is None else wait_ms
        )
        self._timer.timeout.connect(self.flush)
        session.file_changed.connect(self._look)

    @property
    def kept(self) -> bool:
        """Whether a copy exists, and contains all changes."""
        return not self.pending and self.path.exists()

    @property
    def pending(self) -> bool:
        """Whether there are changes that are not in a copy yet."""
        return self._waiting is not None

    def flush(self) -> None:
        """Copy now the changes since the last copy."""
        self._timer.stop()
        if self._waiting is None:
            return
        scenario, file = self._waiting
        of = f"{_OF}{file}\n" if file and str(file).isprintable() else ""
        text = of + scenario_toml(scenario)
        try:
            self._hold()
            write_atomically(self.path, lambda out: out.write(text.encode("utf-8")))
        except (InputError, OSError) as error:  # reported when `kept` is asked for
            LOG.warning("unsaved changes could not be copied: %s", error)
        else:
            self._waiting = None

    def finish(self) -> None:
        """Remove the copy, because the program ends normally, or all changes are saved."""
        self._timer.stop()
        self._waiting = None
        if self._lock is not None:
            _remove(self.path)
            self._lock.unlock()
            self._lock = None

    def _look(self) -> None:
        if self._session.undo_stack is not self._own:
            return  # a lesson is shown; the user's scenario waits, and its copy, too
        scenario = self._session.scenario
        if self._own.isClean() or scenario is None:
            self.finish()
        else:
            self._waiting = scenario, self._session.path
            self._timer.start()

    def _hold(self) -> None:
        if self._lock is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            lock = _lock_of(self.path)
            if not lock.tryLock(0):
                raise OSError(f"no lock in {self.path.parent}")
            self._lock = lock


@dataclass(frozen=True, slots=True)
class Orphan:
    """A copy whose instance has ended without removing it."""

    path: Path  # the copy
    scenario: Scenario  # the scenario in it
    file: Path | None  # the file whose unsaved changes it has
    saved: float  # when the copy was written, in seconds since 1970
    lock: QLockFile  # locked, so that only one instance offers it

    @property
    def name(self) -> str:
        """The name that the user knows."""
        return safe_text(self.scenario.title or (self.file.stem if self.file else "Untitled"))

    def discard(self) -> None:
        """Remove the copy."""
        _remove(self.path)
        self.lock.unlock()

    def leave(self) -> None:
        """Leave the copy for the next start."""
        self.lock.unlock()


def find_orphans(folder: Path) -> list[Orphan]:
    """Return the copies in a settings folder that no running instance owns, the latest first."""
    _clear_remains(folder / _FOLDER)
    out = []
    for path in (folder / _FOLDER).glob("*.toml"):
        lock = _lock_of(path)
        if not lock.tryLock(0):
            continue
        try:
            scenario, saved = load_scenario(path), path.stat().st_mtime
            first = path.read_text(encoding="utf-8").partition("\n")[0]
        except (InputError, OSError) as error:  # it may be of a later version, for example
            LOG.warning("unsaved changes cannot be read: %s", error)
            lock.unlock()
            continue
        file = Path(first.removeprefix(_OF)) if first.startswith(_OF) else None
        out.append(Orphan(path, scenario, file, saved, lock))
    return sorted(out, key=lambda orphan: orphan.saved, reverse=True)


def _clear_remains(folder: Path) -> None:
    """Remove the files of instances that were killed before their copy was complete.

    These are a lock without a copy, and a file that has not got the copy's name yet.
    """
    for path in folder.glob("*.lock"):
        lock = _lock_of(path)
        if lock.tryLock(0):
            lock.unlock()  # this removes the lock
    for part in folder.glob(".*.toml.*.part"):
        clear_stale(part.with_name(part.name[1:].partition(".")[0] + ".toml"))


class Offer(QMessageBox):
    """Asks whether to restore copies that a crash has left; none is removed before the answer.

    The latest copy is restored; older ones are then added to the recent files.

    orphans: the copies, the latest first; at least one.
    """

    def __init__(self, window: MainWindow, autosave: Autosave, orphans: list[Orphan]) -> None:
        super().__init__(window)
        self._window, self._autosave, self._orphans = window, autosave, orphans
        self.setObjectName("restore")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Unsaved changes")
        self.setTextFormat(Qt.TextFormat.PlainText)
        latest = orphans[0]
        self.setText(
            f"Tilescope ended without closing. The scenario “{latest.name}” had changes that were "
            f"not saved, last kept {_when(latest.saved)}."
        )
        older = len(orphans) - 1
        more = f"\n{older} older: Restore puts it among the recent files." if older == 1 else ""
        if older > 1:
            more = f"\n{older} older: Restore puts them among the recent files."
        self.setInformativeText(f"Later: you are asked again at the next start.{more}")
        self._ways = []
        for text, role, act in (
            ("Restore", QMessageBox.ButtonRole.AcceptRole, self._restore),
            ("Discard", QMessageBox.ButtonRole.DestructiveRole, self._discard),
            ("Later", QMessageBox.ButtonRole.RejectRole, self._leave),
        ):
            button = self.addButton(text, role)
            button.setObjectName(text.lower())
            self._ways.append((button, act))
        self.setDefaultButton(self._ways[0][0])
        self.setEscapeButton(self._ways[-1][0])
        self.finished.connect(self._act)

    def _act(self) -> None:
        """Do the chosen act; a box that is closed in another way means later."""
        chosen = self.clickedButton()
        next((act for button, act in self._ways if button == chosen), self._leave)()

    def _restore(self) -> None:
        latest, *older = self._orphans
        for orphan in older:
            self._put_among_recent(orphan)
        restore(self._window, self._autosave, latest)

    def _put_among_recent(self, orphan: Orphan) -> None:
        settings = self._window.settings
        stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(orphan.saved))
        path = settings.folder / f"unsaved-{stamp}-{orphan.path.stem}.toml"
        try:
            save_scenario(orphan.scenario, path)
        except InputError as error:
            orphan.leave()
            self._window.show_error(error)
        else:
            settings.add_recent(path)
            orphan.discard()

    def _discard(self) -> None:
        for orphan in self._orphans:
            orphan.discard()

    def _leave(self) -> None:
        for orphan in self._orphans:
            orphan.leave()


def restore(window: MainWindow, autosave: Autosave, orphan: Orphan) -> None:
    """Show a copy as a scenario with unsaved changes; once there is a new copy, remove the old."""
    session = window.session

    def end() -> None:
        session.file_changed.disconnect(accepted)
        session.refused.disconnect(refused)

    def accepted() -> None:
        if session.scenario == orphan.scenario:
            end()
            QTimer.singleShot(0, take_over)  # after the scenario counts as opened, and so as saved

    def take_over() -> None:
        session.undo_stack.resetClean()
        autosave.flush()
        if autosave.kept:
            orphan.discard()
        else:
            orphan.leave()

    def refused(error: InputError) -> None:
        end()
        orphan.leave()

    window.lessons.player.leave()
    session.file_changed.connect(accepted)
    session.refused.connect(refused)
    session.start(orphan.scenario, orphan.file)


def offer(window: MainWindow, autosave: Autosave) -> Offer | None:
    """Ask once, beside the window, what to do with copies that a crash has left, if any."""
    orphans = find_orphans(window.settings.folder)
    if not orphans:
        return None
    box = Offer(window, autosave, orphans)
    box.open()
    return box


def _lock_of(path: Path) -> QLockFile:
    lock = QLockFile(str(path.with_suffix(".lock")))
    lock.setStaleLockTime(0)  # locked as long as its process lives
    return lock


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        LOG.warning("%s could not be removed: %s", path, error)


def _when(saved: float) -> str:
    then, now = time.localtime(saved), time.localtime()
    return time.strftime("at %H:%M" if then[:3] == now[:3] else "on %d %B %Y at %H:%M", then)
