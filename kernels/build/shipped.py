"""Kernels as machine code in a bundle, so that a GPU needs no compiler and no NVRTC.

A kernel's file is a .tar.xz named by a hash of its source and options, so code from another source
is never found. The file contains cubins, and PTX that the driver compiles for other GPUs.
"""

from __future__ import annotations

import hashlib
import io
import json
import lzma
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from kernels.build.elf import architecture, elf_size
from kernels.build.nvrtc import OPTIONS
from kernels.build.sources import whole_source
from kernels.errors import KernelError

FOLDER = Path(__file__).parents[1] / "cubins"
"""The folder that `make package` makes; a checkout has none."""
ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_100", "sm_120")
"""The first of each kind of GPU; `fitting` gives sm_86 and sm_89 the code of sm_80."""
PTX = "compute_75"  # the PTX that drivers of all these GPUs and of later ones can compile
_INDEX = "index.json"


@dataclass(frozen=True, slots=True)
class ShippedKernel:
    """A kernel source with the options that it was compiled with."""

    source: str  # such as ``flash2``
    options: tuple[str, ...]  # its definitions
    targets: tuple[str, ...]  # its targets, such as ``sm_90`` or ``compute_75``

    @property
    def key(self) -> str:
        """The key in the name of its file, if its source has not changed since."""
        return key(whole_source(self.source), self.options)


def key(code: str, options: Sequence[str]) -> str:
    """Return the key by which a source with its options is kept."""
    return hashlib.sha256(repr((code, tuple(options), OPTIONS)).encode()).hexdigest()[:24]


def file_name(target: str) -> str:
    """Return the name of the code for a target."""
    return f"{target}.cubin" if target.startswith("sm_") else f"{target}.ptx"


def kept_name(code: str, options: Sequence[str], version: str, target: str) -> str:
    """Return the name in the user's cache of code that a version of NVRTC has made."""
    return f"{key(code, options)}-nvrtc-{version}-{file_name(target)}"


def packed(machine: Mapping[str, bytes]) -> bytes:
    """Return the file with a kernel's code."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:xz", preset=6) as archive:
        for target, content in machine.items():
            info = tarfile.TarInfo(file_name(target))
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def unpacked(path: Path) -> dict[str, bytes]:
    """Return the code in a file by its target. Raises KernelError: the file is damaged."""
    found: dict[str, bytes] = {}
    try:
        plain = lzma.decompress(path.read_bytes())  # checks the checksum, which tarfile does not
        with tarfile.open(fileobj=io.BytesIO(plain)) as archive:
            for info in archive:
                content = archive.extractfile(info)
                found[info.name.partition(".")[0]] = content.read() if content else b""
    except (OSError, EOFError, lzma.LZMAError, tarfile.TarError) as error:
        raise KernelError(f"{path} is damaged: {error}") from error
    return found


def write_index(folder: Path, entries: Sequence[ShippedKernel]) -> None:
    """Write the index of a folder."""
    text = json.dumps({entry.key: asdict(entry) for entry in entries}, indent=1)
    (folder / _INDEX).write_text(text + "\n", encoding="utf-8")


def read_index(folder: Path = FOLDER) -> dict[str, ShippedKernel]:
    """Return the index of a folder, by key; empty if there is none."""
    path = folder / _INDEX
    if not path.exists():
        return {}
    listed = json.loads(path.read_text(encoding="utf-8"))
    return {
        name: ShippedKernel(row["source"], tuple(row["options"]), tuple(row["targets"]))
        for name, row in listed.items()
    }


def fitting(targets: Sequence[str], capability: int) -> str | None:
    """Return the target whose code a GPU runs: its own, an earlier one of its kind, or PTX.

    capability: of the GPU, 90 for sm_90.

    References: CUDA C++ Programming Guide, "Binary Compatibility": a cubin runs where the major
    number is the same and the minor one at least as high.
    """
    cubins = {int(target[3:]): target for target in targets if target.startswith("sm_")}
    same = [n for n in cubins if n // 10 == capability // 10 and n <= capability]
    if same:
        return cubins[max(same)]
    portable = {int(t.partition("_")[2]): t for t in targets if t.startswith("compute_")}
    older = [n for n in portable if n <= capability]
    return portable[max(older)] if older else None


def machine_code(
    code: str, options: Sequence[str], capability: int, folder: Path = FOLDER
) -> tuple[str, bytes] | None:
    """Return the shipped code of a source for a GPU, and its file name; None if there is none."""
    path = folder / f"{key(code, options)}.tar.xz"
    if not path.exists():
        return None
    found = unpacked(path)
    target = fitting(tuple(found), capability)
    return None if target is None else (file_name(target), found[target])


def faults(folder: Path = FOLDER) -> list[str]:
    """Return the faults of shipped kernels: missing, damaged, or from another source."""
    wrong = []
    for name, entry in read_index(folder).items():
        said = f"{entry.source} {' '.join(entry.options)}"
        if entry.key != name:
            wrong.append(f"{said}: its source has changed since it was compiled")
            continue
        try:
            found = unpacked(folder / f"{name}.tar.xz")
        except KernelError as error:
            wrong.append(f"{said}: {error}")
            continue
        wrong += [f"{said}: no {t}" for t in entry.targets if not _whole(t, found.get(t, b""))]
    return wrong


def _whole(target: str, content: bytes) -> bool:
    if not target.startswith("sm_"):
        return f".target sm_{target.partition('_')[2]}".encode() in content
    return architecture(content) == int(target[3:]) and elf_size(content) == len(content)
