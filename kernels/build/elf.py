"""The headers of cubins, which are ELF files."""

from __future__ import annotations

import struct

_NO_BITS = 8
"""The kind of a section that takes no space in its file."""


def architecture(cubin: bytes) -> int:
    """Return what a cubin was compiled for, 90 for sm_90; 0 if it is not a cubin."""
    if len(cubin) < 64 or not cubin.startswith(b"\x7fELF"):
        return 0
    (flags,) = struct.unpack_from("<I", cubin, 48)
    return int(flags >> 8 & 0xFF)


def elf_size(elf: bytes) -> int:
    """Return the bytes that an ELF file must have, as its headers say.

    Parameters
    ----------
    elf : bytes
        A 64-bit little-endian one that has its section headers.
    """
    programs, sections = struct.unpack_from("<QQ", elf, 32)
    each_program, count, each_section, many = struct.unpack_from("<HHHH", elf, 54)
    size = max(programs + each_program * count, sections + each_section * many)
    for n in range(many):
        header = elf[sections + n * each_section :].ljust(64, b"\0")[:64]
        kind, offset, length = struct.unpack("<4xI16xQQ24x", header)
        size = max(size, 0 if kind == _NO_BITS else offset + length)
    return int(size)
