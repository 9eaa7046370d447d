"""Libraries that the system lacks are told by their names, with the package that holds each."""

import os
import subprocess
import sys
from pathlib import Path

import PySide6
import pytest

from simulator.base.assets import SCENARIOS
from ui.safety.system_libraries import debian_package, missing_libraries, named_platforms

ROOT = Path(__file__).resolve().parents[3]
SITE = Path(PySide6.__path__[0]).parent
PLUGIN = ("PySide6", "Qt", "plugins", "platforms", "libqxcb.so")
GUI = ("PySide6", "Qt", "lib", "libQt6Gui.so.6")
HERE, GONE = b"libxcb-xkb.so.1\0", b"libxcb-xkb.so.9\0"
"""A library that Qt's plugin for X is linked with, and what becomes of its name in a copy."""
OF_GUI = (b"libGL.so.1\0", b"libGL.so.9\0"), (b"libEGL.so.1\0", b"libEGL.so.9\0")
"""The same for what Qt draws with."""

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Qt asks Linux alone")


Names = tuple[tuple[bytes, bytes], ...]


def mirror(old: Path, new: Path, way: tuple[str, ...], names: Names = ((HERE, GONE),)) -> None:
    """Link all of a folder; the file at the end of the way is a copy with other libraries."""
    new.mkdir()
    for each in old.iterdir():
        if each.name != way[0]:
            (new / each.name).symlink_to(each)
        elif len(way) > 1:
            mirror(each, new / each.name, way[1:], names)
        else:
            library = each.read_bytes()
            for here, gone in names:
                assert library.count(here) == 1
                library = library.replace(here, gone)
            (new / each.name).write_bytes(library)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Return a folder with a Qt whose plugin for X wants a library that no system has."""
    mirror(SITE / PLUGIN[0], tmp_path / PLUGIN[0], PLUGIN[1:])
    (tmp_path / "shiboken6").symlink_to(SITE / "shiboken6")
    return tmp_path


def run(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    named = {"PYTHONPATH": str(site), "DISPLAY": ":59999"}
    others = ("QT_QPA_PLATFORM", "WAYLAND_DISPLAY")
    kept = {name: value for name, value in os.environ.items() if name not in others}
    return subprocess.run(
        [sys.executable, "-m", *arguments], cwd=ROOT, env={**kept, **named},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


def test_where_qt_cannot_start_the_library_is_named_and_not_another(site):
    told = run(site, "ui")
    assert told.returncode == 2
    *_, last = told.stderr.splitlines()
    assert last.startswith("tilescope: Qt cannot start: ")
    assert "libxcb-xkb.so.9" in last
    assert "apt-get install" in last
    assert "libxcb-xkb9" in last
    assert "From 6.5.0, xcb-cursor0" not in last


def test_doctor_and_set_up_name_the_same(site):
    row = next(row for row in run(site, "ui", "doctor").stdout.splitlines() if "DISPLAY=" in row)
    assert "MISSING" in row
    assert "libxcb-xkb9" in row
    told = run(site, "ui.safety.system_libraries", "xcb")
    assert "libxcb-xkb.so.9 libxcb-xkb9" in told.stdout.splitlines()
    assert 'python -m ui.safety.system_libraries "$@"' in (ROOT / ".ci" / "setup").read_text(
        "utf-8"
    )


@pytest.mark.long
def test_without_the_libraries_that_qt_draws_with_doctor_ends_well_and_names_them(tmp_path):
    mirror(SITE / GUI[0], tmp_path / GUI[0], GUI[1:], OF_GUI)
    (tmp_path / "shiboken6").symlink_to(SITE / "shiboken6")
    remedy = "sudo apt-get install libegl9 libgl9"
    told = run(tmp_path, "ui", "doctor")
    assert (told.returncode, told.stderr) == (0, "")
    assert remedy in next(row for row in told.stdout.splitlines() if row.startswith("Qt "))
    assert "again" not in told.stdout
    assert "`export`" not in told.stdout.replace("every format of `export`", "")
    demo, picture = str(SCENARIOS / "causal.toml"), tmp_path / "a.png"
    for words in ([demo], ["export", demo, "-o", str(picture)]):
        told = run(tmp_path, "ui", *words)
        assert (told.returncode, told.stdout, told.stderr.count("\n")) == (2, "", 1)
        assert remedy in told.stderr
    assert run(tmp_path, "ui", "run", demo).returncode == 0


def test_nothing_is_told_where_all_is_there():
    assert not missing_libraries([])
    assert not missing_libraries(["offscreen"])


def test_it_runs_before_anything_is_installed():
    done = subprocess.run(
        [sys.executable, "-S", "-m", "ui.safety.system_libraries", "xcb"], cwd=ROOT,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("library", "package"),
    [
        ("libxcb-cursor.so.0", "libxcb-cursor0"),
        ("libX11.so.6", "libx11-6"),
        ("libX11-xcb.so.1", "libx11-xcb1"),
        ("libxkbcommon-x11.so.0", "libxkbcommon-x11-0"),
        ("libwayland-egl.so.1", "libwayland-egl1"),
        ("libdbus-1.so.3", "libdbus-1-3"),
        ("libglib-2.0.so.0", "libglib2.0-0"),
        ("libEGL.so.1", "libegl1"),
        ("libstdc++.so.6", "libstdc++6"),
        ("libz.so.1", "zlib1g"),
    ],
)
def test_packages_of_debian(library, package):
    assert debian_package(library) == package


@pytest.mark.parametrize(
    ("environment", "platforms"),
    [
        ({}, ()),
        ({"DISPLAY": ":0"}, ("xcb",)),
        ({"DISPLAY": ":0", "WAYLAND_DISPLAY": "wayland-0"}, ("xcb", "wayland")),
        ({"DISPLAY": ":0", "QT_QPA_PLATFORM": "wayland-egl;xcb:geometry=1x1"}, ("wayland", "xcb")),
    ],
)
def test_platforms_that_are_named(environment, platforms):
    assert named_platforms(environment) == platforms
