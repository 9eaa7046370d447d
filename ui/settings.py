"""What the window remembers between starts. Settings never stop it from starting."""

from __future__ import annotations

import os
from pathlib import Path

from PySide6.QtCore import QByteArray, QSettings, QStandardPaths

from ui.theme import TEXT_SCALES, THEMES

MAX_RECENT = 8
_LAYOUT_VERSION = 1
"""Raised when docks change so that an old layout would hide them."""


def settings_path() -> Path:
    """Return the settings file: ``TILESCOPE_SETTINGS``, else in the user's configuration."""
    override = os.environ.get("TILESCOPE_SETTINGS")
    if override:
        return Path(override)
    place = QStandardPaths.StandardLocation.GenericConfigLocation
    return Path(QStandardPaths.writableLocation(place)) / "tilescope" / "tilescope.ini"


class Settings:
    """Typed access to the settings file; a value that makes no sense counts as absent.

    Parameters
    ----------
    path : Path, optional
        The file; by default `settings_path`.
    """

    def __init__(self, path: Path | None = None) -> None:
        # A path and a format: QSettings(organisation, application) ignores redirection.
        self._store = QSettings(str(path or settings_path()), QSettings.Format.IniFormat)

    @property
    def folder(self) -> Path:
        """Where the settings file lies."""
        return Path(self._store.fileName()).parent

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
        """Whether moves are animated."""
        return str(self._store.value("motion", "true")).lower() != "false"

    @motion.setter
    def motion(self, on: bool) -> None:
        self._store.setValue("motion", "true" if on else "false")

    @property
    def recent(self) -> list[Path]:
        """Scenario files opened lately, the latest first."""
        value = self._store.value("recent", [])
        names = [value] if isinstance(value, str) else value if isinstance(value, list) else []
        return [Path(str(name)) for name in names if name][:MAX_RECENT]

    def add_recent(self, path: Path) -> None:
        """Put a file at the head of the recent ones."""
        absolute = path.absolute()
        others = [known for known in self.recent if known != absolute]
        self._store.setValue("recent", [str(p) for p in [absolute, *others][:MAX_RECENT]])

    def layout(self) -> tuple[QByteArray, QByteArray] | None:
        """Return geometry and dock state as saved, None where there is nothing usable."""
        geometry, state = self._store.value("geometry"), self._store.value("state")
        version = str(self._store.value("layout_version", ""))
        if version != str(_LAYOUT_VERSION):
            return None
        if isinstance(geometry, QByteArray) and isinstance(state, QByteArray):
            return geometry, state
        return None

    def save_layout(self, geometry: QByteArray, state: QByteArray) -> None:
        """Remember geometry and dock state."""
        self._store.setValue("geometry", geometry)
        self._store.setValue("state", state)
        self._store.setValue("layout_version", _LAYOUT_VERSION)

    def sync(self) -> None:
        """Write what has changed; a file that cannot be written is no reason to fail."""
        self._store.sync()
