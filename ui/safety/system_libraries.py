"""Which system libraries Qt needs and does not find.

Qt always names xcb-cursor, whichever library its plugin for X lacks; the linker knows the right
one. Only the standard library is imported, because set-up asks before anything else is installed.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

DRAWING = "offscreen"  # the platform that draws into pictures; it is always needed
PLATFORMS = {"DISPLAY": "xcb", "WAYLAND_DISPLAY": "wayland"}
"""The variable that names a display, and Qt's platform for it."""
_USELESS = "(?:file too short|invalid ELF header)"
"""The linker's words for a file that is no library."""
_LIBRARIES = ("Gui", "Widgets", "Svg", "OpenGLWidgets")  # parts of Qt that Tilescope uses

_PACKAGES = {
    "libglib-2.0.so.0": "libglib2.0-0",
    "libgthread-2.0.so.0": "libglib2.0-0",
    "libgobject-2.0.so.0": "libglib2.0-0",
    "libz.so.1": "zlib1g",
}
"""Debian's packages whose names do not follow the rule."""


def debian_package(library: str) -> str:
    """Return the Debian package of a library: libxcb1 has libxcb.so.1, libx11-6 libX11.so.6."""
    name, _, number = library.lower().partition(".so.")
    return _PACKAGES.get(library) or f"{name}{'-' if name[-1].isdigit() else ''}{number}"


def named_platforms(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the platforms of Qt for the displays that an environment names."""
    asked = environment.get("QT_QPA_PLATFORM", "")
    if asked:  # "xcb:geometry" or "wayland;xcb" or "wayland-egl"
        return tuple(re.split("[:-]", each)[0] for each in asked.split(";"))
    return tuple(name for variable, name in PLATFORMS.items() if environment.get(variable))


def missing_libraries(platforms: Iterable[str]) -> list[str]:
    """Return the names of the libraries that are missing.

    platforms: platforms of Qt, such as "xcb", in addition to `DRAWING`.
    Returns: such as "libxcb-cursor.so.0"; none if there is no linker to ask.
    """
    found = importlib.util.find_spec("PySide6")
    if not sys.platform.startswith("linux") or shutil.which("ldd") is None or found is None:
        return []
    qt = Path(next(iter(found.submodule_search_locations or ()))) / "Qt"
    files = [qt / "lib" / f"libQt6{name}.so.6" for name in _LIBRARIES]
    files += [qt / "plugins" / "platforms" / f"libq{name}.so" for name in (DRAWING, *platforms)]
    asked = [str(file) for file in files if file.is_file()]
    told = subprocess.run(["ldd", *asked], capture_output=True, text=True, check=False)
    missing = re.findall(r"^\s*(\S+) => not found", told.stdout, re.MULTILINE)
    broken = re.findall(rf"loading shared libraries: (?:.*/)?(\S+): {_USELESS}", told.stderr)
    return sorted({*missing, *broken})


def why_not_imported(error: ImportError) -> str:
    """Return in words which libraries an import of Qt lacked; empty if it failed otherwise."""
    found = re.match(rf"(?:.*/)?(lib[^/:]+\.so[.\d]*): (?:.*No such file|{_USELESS})", str(error))
    return advice(sorted({found[1], *missing_libraries(())})) if found else ""


def advice(libraries: Iterable[str]) -> str:
    """Return in words the missing libraries, and the command to type; empty if there are none."""
    names = list(libraries)
    if not names:
        return ""
    packages = sorted({debian_package(name) for name in names})
    what = "a library" if len(names) == 1 else "libraries"
    return (
        f"the system has no {', '.join(names)}, {what} that Qt needs; "
        f"on Debian: sudo apt-get install {' '.join(packages)}"
    )


if __name__ == "__main__":  # .ci/setup reads this: a library and its package on each line
    for each in missing_libraries(sys.argv[1:]):
        print(each, debian_package(each))
