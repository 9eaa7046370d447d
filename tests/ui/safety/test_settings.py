"""The file of settings: text alone is read, and nothing but a file is written."""

import os
import stat
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import QByteArray, QSettings

from simulator.base.errors import InputError
from ui.look.layouts import LAYOUT_NAMES
from ui.safety.settings import Settings, settings_path

NAMES = ["/a b/größe, 1.toml", '/x"y;z=1\\q.toml', "/@me", "/\x01bc\n", "/\u65e5/\U0001f600.toml"]


class Harmful:
    """Makes a file when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self._mark = mark

    def __reduce__(self) -> object:
        return os.mkdir, (str(self._mark),)


def read_all(settings: Settings) -> list[object]:
    """Return everything that settings say."""
    names = [name for name, kind in vars(Settings).items() if isinstance(kind, property)]
    told = [getattr(settings, name) for name in names]
    return told + [f(layout) for f in (settings.state, settings.shares) for layout in LAYOUT_NAMES]


@pytest.mark.parametrize("hidden", [False, True])
def test_no_object_is_made_of_a_file(hidden, tmp_path):
    made, file, mark = tmp_path / "made.ini", tmp_path / "a.ini", tmp_path / "mark"
    store = QSettings(str(made), QSettings.Format.IniFormat)
    for key in ("theme", "recent", "geometry", "started", f"docks3/{LAYOUT_NAMES[0]}"):
        store.setValue(key, Harmful(mark))
    store.sync()
    text = made.read_text("utf-8")
    assert "PyObjectWrapper" in text
    file.write_text(text.replace("@Variant", r"\x40V\x61riant") if hidden else text, "utf-8")
    settings = Settings(file)
    assert "dark" in read_all(settings)
    settings.theme = "light"
    assert "light" in read_all(Settings(file))
    assert not mark.exists()


def test_what_qt_wrote_is_read_and_what_is_written_qt_reads(tmp_path):
    file, odd = tmp_path / "a.ini", bytes(range(256)) + b"\x000a\xff1"
    store = QSettings(str(file), QSettings.Format.IniFormat)
    store.setValue("recent", NAMES)
    store.setValue("geometry", QByteArray(odd))
    store.setValue("text_scale", 1.25)
    store.setValue("docks4/steps_shares", "a:1,b:2")
    store.sync()
    settings, own = Settings(file), Settings(tmp_path / "own.ini")
    for each in (settings, own):
        if each is own:
            for name in reversed(NAMES):
                own.add_recent(Path(name))
            own.geometry, own.text_scale = QByteArray(odd), 1.25
            own.save_shares("steps", "a:1,b:2")
        assert each.recent == [Path(name) for name in NAMES]
        assert bytes(each.geometry.data()) == odd
        assert (each.text_scale, each.shares("steps")) == (1.25, "a:1,b:2")
    again = QSettings(str(tmp_path / "own.ini"), QSettings.Format.IniFormat)
    assert again.value("recent") == NAMES
    assert again.value("geometry") == odd
    assert again.value("docks4/steps_shares") == "a:1,b:2"


def test_two_windows_share_a_file(tmp_path):
    one, other = Settings(tmp_path / "a.ini"), Settings(tmp_path / "a.ini")
    one.theme = "light"
    other.sound = True
    one.add_recent(tmp_path / "1.toml")
    other.add_recent(tmp_path / "2.toml")
    for each in (one, other, Settings(tmp_path / "a.ini")):
        assert (each.theme, each.sound) == ("light", True)
        assert each.recent == [tmp_path / "2.toml", tmp_path / "1.toml"]


def test_a_name_of_bytes_does_not_keep_the_rest_from_being_written(tmp_path):
    settings = Settings(tmp_path / "a.ini")
    settings.add_recent(Path("/\udc80.toml"))
    settings.theme = "light"
    again = Settings(tmp_path / "a.ini")
    assert (again.theme, again.recent) == ("light", [Path("/\udc80.toml")])


@pytest.mark.skipif(sys.platform == "win32", reason="no such pipes")
def test_neither_a_pipe_nor_a_folder_is_written_over(tmp_path):
    pipe, folder = tmp_path / "pipe.ini", tmp_path / "folder.ini"
    os.mkfifo(pipe)
    folder.mkdir()
    (tmp_path / "folder.ini.lock").mkdir()
    for path in (pipe, folder):
        settings = Settings(path)
        settings.theme = "light"
        assert settings.theme == "light"
        assert read_all(settings)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert folder.is_dir()


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege")
def test_a_link_to_the_file_stays_a_link(tmp_path):
    link = tmp_path / "a.ini"
    link.symlink_to(tmp_path / "b.ini")
    Settings(link).theme = "light"
    assert link.is_symlink()
    assert Settings(tmp_path / "b.ini").theme == "light"


def test_a_place_without_a_name_is_refused(monkeypatch):
    monkeypatch.setenv("TILESCOPE_SETTINGS", os.sep)
    with pytest.raises(InputError, match="TILESCOPE_SETTINGS"):
        settings_path()
