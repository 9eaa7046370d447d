"""Turns a bundle into what is downloaded: .tar.xz and .deb, or .zip, and their checksums."""

from __future__ import annotations

import hashlib
import lzma
import os
import platform
import shutil
import subprocess
import sys
import tarfile
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import IO

HERE = Path(__file__).resolve().parent
PART = 2**25
"""Bytes of a stream of an .xz file, which one processor compresses."""
DEPENDS = (HERE / "debian-depends").read_text(encoding="utf-8").split()
"""What the program needed in a bare chroot: packaging/debootstrap-test.sh."""

CONTROL = """\
Package: {package}
Version: {version}
Architecture: {architecture}
Maintainer: The Tilescope authors <tilescope@localhost>
Installed-Size: {kilobytes}
Depends: {depends}
{conflicts}Section: education
Priority: optional
Description: Visual simulator of attention, tile by tile
 See attention computed tile by tile, as FlashAttention does: what is on chip,
 what crosses between HBM and SRAM, and how every number comes about.
"""
METAINFO = "tilescope.metainfo.xml"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def make(bundle: Path, version: str, target: Path, build: Path, kind: str) -> list[Path]:
    """Return the files made for this system.

    Parameters
    ----------
    bundle : Path
        dist/tilescope or dist/tilescope-cpu.
    version : str
        Of the program.
    target : Path
        Where they go.
    build : Path
        Where icons lie, and where the tree of the .deb may be put.
    kind : str
        ``-cpu`` for the smaller of two bundles.
    """
    machine = platform.machine().lower().replace("amd64", "x86_64")
    if sys.platform != "linux":
        system = "windows" if os.name == "nt" else "macos"
        name = f"tilescope-{version}-{system}-{machine}{kind}"
        app = target / "Tilescope.app"
        what = app if app.exists() else bundle
        if app.exists():  # keeps links and permissions, which a plain .zip loses
            archive = target / f"{name}.zip"
            subprocess.run(["ditto", "-c", "-k", "--keepParent", app, archive], check=True)
            return [archive]
        return [Path(shutil.make_archive(str(target / name), "zip", what.parent, what.name))]
    made = [tar(bundle, target / f"tilescope-{version}-linux-{machine}{kind}.tar.xz")]
    if shutil.which("dpkg-deb"):
        made.append(_deb(bundle, version, machine, target, build, kind))
    return made


def write_sums(folder: Path, version: str) -> None:
    """Write the checksums of a version's files in the form that ``sha256sum --check`` reads."""
    found = sorted(p for end in ("tar.xz", "deb", "zip") for p in folder.glob(f"*{version}*.{end}"))
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in found]
    (folder / "SHA256SUMS").write_text("".join(lines), encoding="ascii")


def size_of(folder: Path) -> int:
    """Return the bytes of all files in a folder, links not counted."""
    return sum(p.stat().st_size for p in folder.rglob("*") if p.is_file() and not p.is_symlink())


def _owned_by_root(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = "root"
    return info


def tar(bundle: Path, target: Path, part: int = PART) -> Path:
    """Write a folder as a .tar.xz of streams of `part` bytes; return the file."""
    with (
        target.open("wb") as file,
        Xz(file, part) as packed,
        tarfile.open(fileobj=packed, mode="w|", bufsize=2**20) as out,
    ):
        out.add(bundle, "tilescope", filter=_owned_by_root)
    return target


class Xz:
    """Compresses on all processors what is written: every part is a stream of the .xz file.

    With the filter for x86 code preset 4 is quicker than 6 is without it and packs closer: 25 MB of
    libraries become 5.2 MB in 7 s rather than 6.1 MB in 15 s, a whole bundle 82.0 rather than
    83.5 MB.

    Parameters
    ----------
    file : file
        Where to.
    part : int
        Bytes of a stream.
    """

    _CODE = ({"id": lzma.FILTER_X86},) if platform.machine().lower() in ("x86_64", "amd64") else ()
    FILTERS = (*_CODE, {"id": lzma.FILTER_LZMA2, "preset": 4})

    def __init__(self, file: IO[bytes], part: int = PART) -> None:
        self._file = file
        self._most = part
        self._part = bytearray()
        self._pool = ThreadPoolExecutor(os.cpu_count())
        self._streams: deque[Future[bytes]] = deque()

    def __enter__(self) -> Xz:
        return self

    def write(self, data: bytes) -> int:
        """Take some more."""
        self._part += data
        if len(self._part) >= self._most:
            self._start(wait=len(self._streams) > 2 * (os.cpu_count() or 1))
        return len(data)

    def _start(self, *, wait: bool) -> None:
        part = bytes(self._part)
        self._streams.append(self._pool.submit(lzma.compress, part, filters=self.FILTERS))
        self._part.clear()
        if wait:
            self._file.write(self._streams.popleft().result())

    def __exit__(self, *error: object) -> None:
        self._start(wait=False)
        while self._streams:
            self._file.write(self._streams.popleft().result())
        self._pool.shutdown()


def _deb(bundle: Path, version: str, machine: str, target: Path, build: Path, kind: str) -> Path:
    """Make the package: the program in /opt, a link, a desktop entry, icons, the type of files."""
    tree = build / "deb"
    shutil.rmtree(tree, ignore_errors=True)
    share = tree / "usr" / "share"
    for folder in (tree / "opt", tree / "usr" / "bin", tree / "DEBIAN"):
        folder.mkdir(parents=True)
    shutil.copytree(bundle, tree / "opt" / "tilescope", symlinks=True)
    (tree / "usr" / "bin" / "tilescope").symlink_to("/opt/tilescope/tilescope")
    for source, place in (
        (HERE / "tilescope.desktop", share / "applications" / "tilescope.desktop"),
        (HERE / "tilescope.xml", share / "mime" / "packages" / "tilescope.xml"),
        (HERE / METAINFO, share / "metainfo" / METAINFO),
        (bundle / "_internal" / "licences" / "CONTENTS.txt",
         share / "doc" / "tilescope" / "copyright"),
        *((icon, share / "icons" / "hicolor" / f"{size}x{size}" / "apps" / "tilescope.png")
          for icon in build.glob("tilescope-*.png") for size in [icon.stem.rpartition("-")[2]]),
    ):  # fmt: skip
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, place)
    architecture = _ARCHITECTURES.get(machine, machine)
    other = "tilescope" if kind else "tilescope-cpu"  # both lie in /opt/tilescope
    control = CONTROL.format(
        package=f"tilescope{kind}",
        conflicts=f"Conflicts: {other}\nReplaces: {other}\n",
        version=version,
        architecture=architecture,
        kilobytes=size_of(tree) // 1024,
        # Python and the shims are linked with the C library of this machine.
        depends=", ".join([f"libc6 (>= {platform.libc_ver()[1]})", *DEPENDS]),
    )
    (tree / "DEBIAN" / "control").write_text(control, encoding="utf-8")
    package = target / f"tilescope{kind}_{version}_{architecture}.deb"
    # A fifteenth of the work that xz -z3 is, for 8 % more bytes: 99.1 rather than 92.0 MB. Every
    # Debian and Ubuntu whose C library is as new as those that bundles are built on reads it.
    command = ["dpkg-deb", "--root-owner-group", "-Zzstd", "-z9", "--build", tree, package]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(tree)
    return package
