"""What the driver asks when it is given a cubin or PTX: the library that runs it on the CPU.

Nothing can carry out a cubin here. NVRTC has made it of PTX, which `keep` puts aside for it.
"""

from __future__ import annotations

import ctypes
import hashlib
import re
import struct
import sys
from pathlib import Path

from kernels.build.cache import cache_folder, kept
from kernels.build.elf import architecture, elf_size
from kernels.devices.host.module import HostModule
from kernels.errors import KernelError
from tests.kernels.ptx.grammar import PtxError, parsed
from tests.kernels.ptx.translate import translated

NO_BINARY_FOR_GPU, INVALID_PTX, TOO_LONG = 209, 218, 999  # of CUDA; the last is one of its own
_ELF = b"\x7fELF"
_TARGET = re.compile(r"^\.target sm_(\d+)", re.MULTILINE)
_THREADS = re.compile(r"\.entry\s+(\w+)\s*\([^)]*\)\s*\.maxntid\s+(\d+)")
MOST_THREADS = 1024

Loader = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(ctypes.c_char), ctypes.c_int
)


def keep(cubin: bytes, ptx: str) -> None:
    """Put the PTX of a cubin aside, as CuPy returns it: without its last byte, if that is zero."""
    whole = cubin.ljust(elf_size(cubin), b"\0")
    kept(_name(whole), lambda path: _write(path, ptx))


@Loader
def load(image: int, capability: int, answer: ctypes.Array[ctypes.c_char], size: int) -> int:
    """Answer with a library's path and a line for each kernel, or return an error of CUDA."""
    try:
        ptx = _ptx(image, capability)
        module, fixed = HostModule(translated(ptx)), parsed(ptx).fixed_bytes
    except (KernelError, PtxError) as error:
        print(f"GPU double: {error}", file=sys.stderr)
        return INVALID_PTX
    except OSError as error:
        print(f"GPU double: {error}", file=sys.stderr)
        return NO_BINARY_FOR_GPU
    threads = {name: int(most) for name, most in _THREADS.findall(ptx)}
    lines = [f"{name} {fixed} {threads.get(name, MOST_THREADS)}" for name in module.kernels]
    text = "\n".join([str(module.path), *lines]).encode() + b"\0"
    if len(text) > size:
        return TOO_LONG
    ctypes.memmove(answer, text, len(text))
    return 0


def _ptx(image: int, capability: int) -> str:
    """Return the PTX at an address, or that of the cubin there.

    Raises OSError: it is of another GPU, or nobody has kept the PTX of the cubin.
    """
    if ctypes.string_at(image, len(_ELF)) == _ELF:
        cubin = _elf(image)
        target = architecture(cubin)
        fits = target // 10 == capability // 10 and target <= capability
        ptx = (cache_folder() / _name(cubin)).read_text("utf-8") if fits else ""
    else:
        ptx = ctypes.string_at(image).decode()
        found = _TARGET.search(ptx)
        target = int(found[1]) if found else 0
        fits = target <= capability
    if not fits:
        raise OSError(f"code for sm_{target} on sm_{capability}")
    return ptx


def _elf(image: int) -> bytes:
    """Return the file at an address: its size is in its headers, and those are in the file."""
    head = ctypes.string_at(image, 64)
    (sections,) = struct.unpack_from("<Q", head, 40)
    each, many = struct.unpack_from("<HH", head, 58)
    return ctypes.string_at(image, elf_size(ctypes.string_at(image, sections + each * many)))


def _name(cubin: bytes) -> str:
    return f"{hashlib.sha256(cubin).hexdigest()[:24]}-of-cubin.ptx"


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
