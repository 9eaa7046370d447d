"""The settings, which the window keeps from start to start. They never stop it from starting."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

from PySide6.QtCore import QByteArray, QStandardPaths

from simulator.base.errors import refuse
from ui.look.layouts import LAYOUT_NAMES
from ui.look.theme import TEXT_SCALES, THEMES
from ui.safety.ini import IniFile, Value

MAX_RECENT, MAX_SEARCHED = 8, 6
LINK = "tilescope:"  # the prefix of links among the recent files
_DOCKS_VERSION = 4
"""Increase this number when an old state of docks would hide new docks, or mix groups."""


def settings_path() -> Path:
    """Return the settings file: ``TILESCOPE_SETTINGS``, else a file in the user's configuration."""
    override = os.environ.get("TILESCOPE_SETTINGS")
    if override:
        if not Path(override).name:
            raise refuse("TILESCOPE_SETTINGS", "", override, "the name of a file")
        return Path(override)
    place = QStandardPaths.StandardLocation.GenericConfigLocation
    return Path(QStandardPaths.writableLocation(place)) / "tilescope" / "tilescope.ini"


class Store(Protocol):
    """The place where values are kept."""

    @property
    def path(self) -> Path:
        """The file."""

    def get(self, key: str) -> Value | None:
        """Return a value, None if there is none."""

    def put(self, key: str, value: Value) -> None:
        """Keep a value."""


class Settings:
    """Typed access to the settings file; a value that cannot be used counts as absent."""

    def __init__(self, path: Path | None = None, store: Store | None = None) -> None:
        self._store: Store = store or IniFile(path or settings_path())
        self.system_reduces = False  # whether the system is known to ask for less motion

    @property
    def folder(self) -> Path:
        """The folder of the settings file."""
        return self._store.path.parent

    @property
    def theme(self) -> str:
        """Name of the theme."""
        name = self._text("theme", "dark")
        return name if name in THEMES else "dark"

    @theme.setter
    def theme(self, name: str) -> None:
        self._store.put("theme", name)

    @property
    def text_scale(self) -> float:
        """Text scale, 1 to 2."""
        try:
            scale = float(self._text("text_scale"))
        except ValueError:
            return 1.0
        return min(TEXT_SCALES, key=lambda known: abs(known - scale))

    @text_scale.setter
    def text_scale(self, scale: float) -> None:
        self._store.put("text_scale", str(scale))

    @property
    def motion(self) -> bool:
        """Whether ops are seen to move, not states only: as chosen, else as the system wants it."""
        chosen = self._motion_chosen
        return not self.system_reduces if chosen is None else chosen

    @motion.setter
    def motion(self, on: bool) -> None:
        self._store.put("motion", "on" if on else "off")

    @property
    def follows_system(self) -> bool:
        """Whether nobody has chosen motion or none."""
        return self._motion_chosen is None

    @property
    def _motion_chosen(self) -> bool | None:
        # The value "true" was no choice: until 0.2 every window wrote it.
        name = self._text("motion").lower()
        return {"on": True, "off": False, "false": False}.get(name)

    @property
    def sound(self) -> bool:
        """Whether a tick is heard where a tile lands."""
        return self._text("sound", "false").lower() == "true"

    @sound.setter
    def sound(self, on: bool) -> None:
        self._store.put("sound", "true" if on else "false")

    @property
    def ask_unsaved(self) -> bool:
        """Whether the window asks before unsaved changes are lost."""
        return self._text("ask_unsaved", "true").lower() != "false"

    @ask_unsaved.setter
    def ask_unsaved(self, on: bool) -> None:
        self._store.put("ask_unsaved", "true" if on else "false")

    @property
    def recent(self) -> list[Path]:
        """Scenario files opened lately, the latest first."""
        return [Path(name) for name in self.recent_names if not name.startswith(LINK)]

    @property
    def recent_names(self) -> list[str]:
        """Scenario files and links opened lately, as texts, the latest first."""
        return self._names("recent")[:MAX_RECENT]

    def add_recent(self, opened: Path | str) -> None:
        """Put a file, or a link as a text, at the top of the recent ones."""
        name = opened if isinstance(opened, str) else str(opened.absolute())
        others = [known for known in self.recent_names if known != name]
        self._store.put("recent", [name, *others][:MAX_RECENT])

    @property
    def searched(self) -> list[str]:
        """Names of entries taken from the search, the latest first."""
        return self._names("searched")[:MAX_SEARCHED]

    def add_searched(self, name: str) -> None:
        """Put an entry's name at the top of `searched`."""
        names = dict.fromkeys((name, *self.searched))
        self._store.put("searched", list(names)[:MAX_SEARCHED])

    @property
    def lesson_place(self) -> tuple[str, int] | None:
        """The lesson of Tilescope that was shown last, by its file's name, and its step, from 0."""
        name, _, step = self._text("lesson").rpartition(":")
        return (name, int(step)) if name and step.isdecimal() else None

    @lesson_place.setter
    def lesson_place(self, place: tuple[str, int]) -> None:
        self._store.put("lesson", f"{place[0]}:{place[1]}")

    @property
    def lessons_done(self) -> list[str]:
        """Lessons of Tilescope that have been seen to the end, by their files' names."""
        return self._names("lessons_done")

    def add_lesson_done(self, name: str) -> None:
        """Note that a lesson has been seen to its end."""
        self._store.put("lessons_done", list(dict.fromkeys((*self.lessons_done, name))))

    @property
    def course_path(self) -> str:
        """The path through the course that was chosen last; "" for none."""
        return self._text("course_path")

    @course_path.setter
    def course_path(self, name: str) -> None:
        self._store.put("course_path", name)

    @property
    def recorded(self) -> Path | None:
        """The lesson to which a step was last added; None if the file no longer exists."""
        name = self._text("recorded")
        return Path(name) if name and Path(name).is_file() else None

    @recorded.setter
    def recorded(self, path: Path) -> None:
        self._store.put("recorded", str(path.absolute()))

    @property
    def layout(self) -> str:
        """Name of the layout."""
        name = self._text("layout")
        return name if name in LAYOUT_NAMES else LAYOUT_NAMES[0]

    @layout.setter
    def layout(self, name: str) -> None:
        self._store.put("layout", name)

    @property
    def geometry(self) -> QByteArray | None:
        """Place and size of the window, None if there is nothing usable."""
        return self._bytes("geometry")

    @geometry.setter
    def geometry(self, geometry: QByteArray) -> None:
        self._store.put("geometry", bytes(geometry.data()))

    def state(self, layout: str) -> QByteArray | None:
        """Return how the docks of a layout were left, None if there is nothing usable."""
        return self._bytes(f"docks{_DOCKS_VERSION}/{layout}")

    def save_state(self, layout: str, state: QByteArray) -> None:
        """Remember how the docks of a layout are."""
        self._store.put(f"docks{_DOCKS_VERSION}/{layout}", bytes(state.data()))

    def shares(self, layout: str) -> str:
        """Return the sizes that the user has given to a layout, in the form of `Shares.to_text`."""
        return self._text(f"docks{_DOCKS_VERSION}/{layout}_shares")

    def save_shares(self, layout: str, shares: str) -> None:
        """Remember the sizes that the user has given to a layout."""
        self._store.put(f"docks{_DOCKS_VERSION}/{layout}_shares", shares)

    def _text(self, key: str, default: str = "") -> str:
        value = self._store.get(key)
        return value if isinstance(value, str) else default

    def _names(self, key: str) -> list[str]:
        value = self._store.get(key)
        names = [value] if isinstance(value, str) else value if isinstance(value, list) else []
        return [name for name in names if name]

    def _bytes(self, key: str) -> QByteArray | None:
        value = self._store.get(key)
        return QByteArray(value) if isinstance(value, bytes) else None
