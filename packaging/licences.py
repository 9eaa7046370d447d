"""Gathers the licences of all that a bundle contains; run by the Python that builds it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

ALSO = ("pyinstaller",)
"""Its bootloader is the program that starts Python."""
TEXTS = Path(__file__).resolve().parent / "texts"
"""Of the GPL and the LGPL, which the parts name and do not bring."""

HEAD = """\
What this bundle of Tilescope contains, and under which licences
================================================================

Tilescope itself: MIT (LICENSE). Its fonts: SIL Open Font License 1.1 (assets/fonts).
The captures in assets/captures: made from all-MiniLM-L6-v2, Apache-2.0; those in its folders small
and by-hand are Tilescope's own.
reveal.js and its speaker notes, with marked in them: MIT (assets/reveal).

Films, GIF and WebP are written by PyAV (BSD), whose wheel contains FFmpeg (GNU Lesser General
Public License, version 3 or later) linked with x264 and, where it has not been left out, x265
(GNU General Public License, version 2 or later): together the GPL, version 3 or later. Whoever
passes this bundle on passes them on under it; their source is at ffmpeg.org and videolan.org.
Without the folders av and av.libs the program works, and writes PNG, APNG, SVG and PDF.

Qt, PySide6 and shiboken6: GNU Lesser General Public License, version 3. Their libraries lie in
the folder PySide6 as separate files that can be replaced; their source is at download.qt.io.

"""


NVIDIA = """\
CuPy (MIT) runs the kernels on a GPU. The CUDA runtime, cudart, is linked into its modules: NVIDIA's
CUDA Toolkit End User License Agreement, whose attachment A lists it as redistributable, is in the
folder nvidia-cuda-runtime. The kernels in kernels/cubins are Tilescope's own, compiled by NVRTC,
which may link parts of libdevice into them; it is listed there as well. No compiler, no NVRTC and
no driver of NVIDIA's is in this bundle.

"""


def main(folder: Path, more: tuple[str, ...] = ()) -> None:
    """Write a folder with CONTENTS.txt and the licence files of each part.

    Parameters
    ----------
    folder : Path
        Where they go.
    more : tuple of str
        Distributions in the bundle beside those that Tilescope requires.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    lines = [_python(folder)]
    for found in sorted(_needed("tilescope", *more), key=lambda d: d.name.lower()):
        lines.append(f"{found.name} {found.version}: {_words(found)}")
        _copy(found, folder / found.name)
    for text in TEXTS.iterdir():
        shutil.copy(text, folder)
    if more:
        _copy(distribution("nvidia-cuda-runtime"), folder / "nvidia-cuda-runtime")
    head = HEAD + NVIDIA if more else HEAD
    (folder / "CONTENTS.txt").write_text(head + "\n".join(lines) + "\n", encoding="utf-8")


def add_system_libraries(bundle: Path) -> None:
    """Add the licences of the libraries that came from the Debian packages of the build machine."""
    inside = bundle / "_internal"
    folder = inside / "licences"
    owners: dict[str, list[str]] = {}
    for path in sorted(inside.glob("lib*.so*")):
        if path.is_symlink() or not shutil.which("dpkg-query"):
            continue
        told = subprocess.run(
            ["dpkg-query", "--search", f"*/{path.name}"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        owner = re.match(r"([\w.+-]+)", told.stdout)
        if owner:
            owners.setdefault(owner[1], []).append(path.name)
    lines = ["", "Libraries of the system that it was built on:", ""]
    for owner, names in owners.items():
        lines.append(f"{owner}: {', '.join(names)}")
        text = Path("/usr/share/doc") / owner / "copyright"
        if text.exists():
            (folder / "system").mkdir(exist_ok=True)
            shutil.copy(text, folder / "system" / f"{owner}.txt")
    with (folder / "CONTENTS.txt").open("a", encoding="utf-8") as out:
        out.write("\n".join(lines) + "\n")


def _needed(*names: str) -> list[Distribution]:
    """Return distributions and all that they require here, extras left out."""
    found: dict[str, Distribution] = {}
    todo = [*names, *ALSO]
    while todo:
        wanted = todo.pop().lower().replace("_", "-")
        if wanted in found:
            continue
        try:
            found[wanted] = distribution(wanted)
        except PackageNotFoundError:  # for another system
            continue
        if wanted in ALSO:
            continue
        for requirement in found[wanted].requires or []:
            if "extra ==" not in requirement:
                todo.append(re.split(r"[^\w.-]", requirement)[0])
    return list(found.values())


def _words(found: Distribution) -> str:
    meta = found.metadata
    stated = meta.get("License-Expression") or meta.get("License") or ""
    classifiers = [c for c in meta.get_all("Classifier") or [] if c.startswith("License ::")]
    first = stated.strip().partition("\n")[0]
    return first or "; ".join(c.rpartition(":: ")[2] for c in classifiers) or "see its folder"


def _copy(found: Distribution, target: Path) -> None:
    for file in found.files or []:
        if re.search(r"(licen[cs]e|copying|notice|authors)", file.name, re.IGNORECASE):
            source = Path(str(found.locate_file(file)))
            if source.is_file() and source.suffix not in (".py", ".pyc"):
                target.mkdir(exist_ok=True)
                shutil.copy(source, target / "-".join(file.parts[1:]).replace("licenses-", ""))
    if not target.exists():  # what names its author and licence, where no licence came along
        target.mkdir()
        (target / "METADATA.txt").write_text(found.read_text("METADATA") or "", encoding="utf-8")


def _python(folder: Path) -> str:
    for place in (sysconfig.get_path("stdlib"), sys.base_prefix):
        text = Path(place) / "LICENSE.txt"
        if text.exists():
            (folder / "Python").mkdir()
            shutil.copy(text, folder / "Python")
    return f"Python {sys.version.split()[0]}: PSF-2.0"


if __name__ == "__main__":
    main(Path(sys.argv[1]), tuple(sys.argv[2:]))
