"""Makes a bundle for Linux smaller, by what its spec cannot say: symbols, dead libraries.

Three things happen to dist/tilescope: debug symbols go; libraries that nothing in the bundle is
linked with any more go (those of Qt plugins that the spec drops); and libraries that others are
linked with but that Tilescope never calls are replaced by empty ones of the same name.

The last is for the limits of tests/package/test_bundle.py alone: 210 MB unpacked, and 260 MB with
CuPy. The bundles take 208.8 and 246.0 MB; with ICU's data (32.0 MB), x265 (20.6 MB) and SVT-AV1
(7.0 MB) as they come it would be 268.4 and 305.6 MB, and the smaller one has room for none of them.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

STRIPPED = ("libpython3*", "python3*/lib-dynload/*.so", "av/**/*.so", "psutil/*.so", "lib*.so*",
            "_cffi_backend*.so", "_miniaudio*.so", "PySide6/Qt/lib/libicu[iu]*.so*",
            "cupy/**/*.so", "cupy_backends/**/*.so")  # fmt: skip
"""Not NumPy's: strip corrupts its OpenBLAS. CuPy's shrink to a quarter."""

EMPTIED = ("av.libs/libx265-*", "av.libs/libSvtAv1Enc-*")
"""Encoders of HEVC and AV1, which FFmpeg is linked with; Tilescope writes neither."""

ICU_DATA = "PySide6/Qt/lib/libicudata.so.*"
"""32 MB of collations, calendars and converters. Qt has its own locales and falls back."""

LEFT_TO_THE_SYSTEM = ("libstdc++.so.6", "libgcc_s.so.1", "libmvec.so.1")
"""An older copy of these would keep kernels from loading that the user's own g++ has compiled; the
last is a part of the C library, which miniaudio is linked with, and belongs to the system's."""

# What ICU itself builds as `stubdata`: a package of data with a header and no entries.
_NO_DATA = """
#include <stdint.h>
const struct {{
  uint16_t header_size; uint8_t magic[2];
  uint16_t info_size, reserved; uint8_t little_endian[4], format[4], version[4], data_version[4];
  char padding[8]; uint32_t entries, unused; int32_t names[4];
}} {symbol} = {{
  32, {{0xda, 0x27}}, 20, 0, {{0, 0, 2, 0}}, {{0x54, 0x6f, 0x43, 0x50}}, {{1, 0, 0, 0}}, {{0}},
  {{0}}, 0, 0, {{0}}
}};
"""


def slim(bundle: Path) -> None:
    """Make a bundle smaller.

    Parameters
    ----------
    bundle : Path
        The folder that holds the program and ``_internal``.
    """
    inside = bundle / "_internal"
    for name in LEFT_TO_THE_SYSTEM:
        (inside / name).unlink(missing_ok=True)
    files = {path for pattern in STRIPPED for path in inside.glob(pattern) if _is_file(path)}
    subprocess.run(["strip", "--strip-unneeded", *sorted(files)], check=True)
    for pattern in EMPTIED:
        for path in inside.glob(pattern):
            _empty(path, inside)
    for path in inside.glob(ICU_DATA):
        if _is_file(path):
            _build(_NO_DATA.format(symbol=_exported(path).pop()), path)
    _drop_unneeded(inside)


def _is_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _empty(path: Path, inside: Path) -> None:
    """Replace a library by one whose functions, those that others call, return 0."""
    exported = _exported(path)
    called = {
        symbol
        for other in inside.glob("av.libs/*.so*")
        if other != path
        for symbol in _symbols(other, "--undefined-only") & exported
    }
    called = {symbol for symbol in called if re.fullmatch(r"(x265|svt)_\w+", symbol)}
    if not called:
        raise SystemExit(f"{path.name}: nothing calls it, or its names have changed")
    _build("".join(f"void *{symbol}(void) {{ return 0; }}\n" for symbol in sorted(called)), path)


def _build(code: str, path: Path) -> None:
    """Compile C to a library in the place of another."""
    with tempfile.TemporaryDirectory() as folder:
        made, text = Path(folder) / path.name, Path(folder) / "empty.c"
        text.write_text(code)
        command = ["cc", "-shared", "-fPIC", "-O1", "-s", f"-Wl,-soname,{path.name}"]
        subprocess.run([*command, str(text), "-o", str(made)], check=True)
        shutil.copy(made, path)


def _exported(path: Path) -> set[str]:
    return _symbols(path, "--defined-only")


def _symbols(path: Path, which: str) -> set[str]:
    told = subprocess.run(
        ["nm", "-D", which, "--without-symbol-versions", str(path)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return {line.split()[-1] for line in told.stdout.splitlines()}


def _drop_unneeded(inside: Path) -> None:
    """Remove libraries of the build machine that nothing is linked with, until none is left."""
    libraries = {path for path in inside.glob("lib*.so*") if "python3" not in path.name}
    while True:
        linked = _linked(inside)
        dead = {path for path in libraries if path.name not in linked}
        if not dead:
            return
        for path in dead:
            path.unlink()
        libraries -= dead


def _linked(inside: Path) -> set[str]:
    """Return the names of all libraries that something in the bundle asks for."""
    files = [str(path) for path in inside.rglob("*.so*") if _is_file(path)]
    told = subprocess.run(["readelf", "-d", *files], capture_output=True, text=True, check=True)
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", told.stdout))
