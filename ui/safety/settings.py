"""What the window remembers from start to start. Settings never stop it from starting."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

from PySide6.QtCore import QByteArray, QSettings, QStandardPaths

from ui.look.layouts import LAYOUT_NAMES
from ui.look.theme import TEXT_SCALES, THEMES

MAX_RECENT = 8
_DOCKS_VERSION = 3
"""It is increased when docks change in such a way that an old state would hide them."""


def settings_path() -> Path:
    """Return the settings file: ``TILESCOPE_SETTINGS``, else a file in the user's configuration."""
    override = os.environ.get("TILESCOPE_SETTINGS")
    if override:
        return Path(override)
    place = QStandardPaths.StandardLocation.GenericConfigLocation
    return Path(QStandardPaths.writableLocation(place)) / "tilescope" / "tilescope.ini"


class Store(Protocol):
    """The place where values are kept: as much of `QSettings` as `Settings` uses."""

    def value(self, key: str, default: object = None, /) -> object:
        """Return a value, or a default if there is none."""

    def setValue(self, key: str, value: object, /) -> None:
        """Keep a value."""

    def fileName(self) -> str:
        """Return the file."""

    def sync(self) -> None:
        """Write the file."""


class Settings:
    """Typed access to the settings file; a value that cannot be used counts as absent.

    Parameters
    ----------
    path : Path, optional
        The file; by default `settings_path`.
    store : Store, optional
        Where values are kept instead of a file.
    """

    def __init__(self, path: Path | None = None, store: Store | None = None) -> None:
        # A path and a format: QSettings(organisation, application) ignores redirection.
        self._store: Store = store or QSettings(
            str(path or settings_path()), QSettings.Format.IniFormat
        )
        self.system_reduces = False
        """Whether the system is known to ask for less motion."""

    @property
    def folder(self) -> Path:
        """The path of the settings file."""
        return Path(self._store.fileName()).parent

    @property
    def first_start(self) -> bool:
        """Whether no window has been opened with these settings yet."""
        return str(self._store.value("started", "false")).lower() != "true"

    @first_start.setter
    def first_start(self, on: bool) -> None:
        self._store.setValue("started", "false" if on else "true")

    @property
    def theme(self) -> str:
        """Name of the theme."""
        name = str(self._store.value("theme", "dark"))
        return name if name in THEMES else "dark"

    @theme.setter
    def theme(self, name: str) -> None:
        self._store.setValue("theme", name)

    @property
    def text_scale(self) -> float:
        """Text scale, 1 to 2."""
        try:
            scale = float(str(self._store.value("text_scale", 1.0)))
        except ValueError:
            return 1.0
        return min(TEXT_SCALES, key=lambda known: abs(known - scale))

    @text_scale.setter
    def text_scale(self, scale: float) -> None:
        self._store.setValue("text_scale", scale)

    @property
    def motion(self) -> bool:
        """Whether ops are seen to move, not states only: as chosen, else as the system wants it."""
        chosen = self._motion_chosen
        return not self.system_reduces if chosen is None else chosen

    @motion.setter
    def motion(self, on: bool) -> None:
        self._store.setValue("motion", "on" if on else "off")

    @property
    def follows_system(self) -> bool:
        """Whether nobody has chosen motion or none."""
        return self._motion_chosen is None

    @property
    def _motion_chosen(self) -> bool | None:
        # What was written as "true" was no choice: until 0.2 every window wrote it.
        name = str(self._store.value("motion", "")).lower()
        return {"on": True, "off": False, "false": False}.get(name)

    @property
    def sound(self) -> bool:
        """Whether a tick is heard where a tile lands."""
        return str(self._store.value("sound", "false")).lower() == "true"

    @sound.setter
    def sound(self, on: bool) -> None:
        self._store.setValue("sound", "true" if on else "false")

    @property
    def ask_unsaved(self) -> bool:
        """Whether the window asks before unsaved changes are lost."""
        return str(self._store.value("ask_unsaved", "true")).lower() != "false"

    @ask_unsaved.setter
    def ask_unsaved(self, on: bool) -> None:
        self._store.setValue("ask_unsaved", "true" if on else "false")

    @property
    def recent(self) -> list[Path]:
        """Scenario files opened lately, the latest first."""
        value = self._store.value("recent", [])
        names = [value] if isinstance(value, str) else value if isinstance(value, list) else []
        return [Path(str(name)) for name in names if name][:MAX_RECENT]

    def add_recent(self, path: Path) -> None:
        """Put a file at the top of the recent ones."""
        absolute = path.absolute()
        others = [known for known in self.recent if known != absolute]
        self._store.setValue("recent", [str(p) for p in [absolute, *others][:MAX_RECENT]])

    @property
    def recorded(self) -> Path | None:
        """The lesson to which a step was last added; None if the file no longer exists."""
        name = str(self._store.value("recorded", ""))
        return Path(name) if name and Path(name).is_file() else None

    @recorded.setter
    def recorded(self, path: Path) -> None:
        self._store.setValue("recorded", str(path.absolute()))

    @property
    def layout(self) -> str:
        """Name of the layout."""
        name = str(self._store.value("layout", ""))
        return name if name in LAYOUT_NAMES else LAYOUT_NAMES[0]

    @layout.setter
    def layout(self, name: str) -> None:
        self._store.setValue("layout", name)

    @property
    def geometry(self) -> QByteArray | None:
        """Place and size of the window, None if there is nothing usable."""
        value = self._store.value("geometry")
        return value if isinstance(value, QByteArray) else None

    @geometry.setter
    def geometry(self, geometry: QByteArray) -> None:
        self._store.setValue("geometry", geometry)

    def state(self, layout: str) -> QByteArray | None:
        """Return how the docks of a layout were left, None if there is nothing usable."""
        value = self._store.value(f"docks{_DOCKS_VERSION}/{layout}")
        return value if isinstance(value, QByteArray) else None

    def save_state(self, layout: str, state: QByteArray) -> None:
        """Remember how the docks of a layout are."""
        self._store.setValue(f"docks{_DOCKS_VERSION}/{layout}", state)

    def shares(self, layout: str) -> str:
        """Return the sizes that the user has given to a layout, in the form of `Shares.to_text`."""
        return str(self._store.value(f"docks{_DOCKS_VERSION}/{layout}_shares", ""))

    def save_shares(self, layout: str, shares: str) -> None:
        """Remember the sizes that the user has given to a layout."""
        self._store.setValue(f"docks{_DOCKS_VERSION}/{layout}_shares", shares)

    def sync(self) -> None:
        """Write what has changed; a file that cannot be written is ignored."""
        self._store.sync()
