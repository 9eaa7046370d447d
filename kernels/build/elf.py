"""The headers of cubins, which are ELF files."""

from __future__ import annotations

import struct

_NO_BITS = 8  # the kind of a section that takes no space in its file
_CODE = ".text."
_SIZED, _REGISTERS = 4, 0x2F
"""In `.nv.info`: the form of an entry that states its size, and the attribute for registers."""


def architecture(cubin: bytes) -> int:
    """Return the architecture of a cubin, 90 for sm_90; 0 if the bytes are not a cubin."""
    if len(cubin) < 64 or not cubin.startswith(b"\x7fELF"):
        return 0
    (flags,) = struct.unpack_from("<I", cubin, 48)
    return int(flags >> 8 & 0xFF)


def elf_size(elf: bytes) -> int:
    """Return the bytes that a 64-bit little-endian ELF file must have, as its headers say."""
    programs, sections = struct.unpack_from("<QQ", elf, 32)
    each_program, count, each_section, many = struct.unpack_from("<HHHH", elf, 54)
    size = max(programs + each_program * count, sections + each_section * many)
    for n in range(many):
        header = elf[sections + n * each_section :].ljust(64, b"\0")[:64]
        kind, offset, length = struct.unpack("<4xI16xQQ24x", header)
        size = max(size, 0 if kind == _NO_BITS else offset + length)
    return int(size)


def registers(cubin: bytes) -> dict[str, int]:
    """Return the registers of a thread by kernel, from a cubin's section ``.nv.info``."""
    by_name = _sections(cubin)
    if not {".nv.info", ".symtab"} <= set(by_name):
        return {}
    (at, size, _), (symbols, _, names) = by_name[".nv.info"], by_name[".symtab"]
    found, end = {}, at + size
    while at < end:
        form, about, value = struct.unpack_from("<BBH", cubin, at)
        if (form, about) == (_SIZED, _REGISTERS):
            symbol, number = struct.unpack_from("<II", cubin, at + 4)
            (name,) = struct.unpack_from("<I", cubin, symbols + 24 * symbol)
            found[_word(cubin, _headers(cubin)[names][1] + name)] = number
        at += 4 + (value if form == _SIZED else 0)
    return found


def code_bytes(cubin: bytes) -> dict[str, int]:
    """Return the bytes of machine code by kernel, from a cubin's sections ``.text.NAME``."""
    found = _sections(cubin).items()
    return {name[len(_CODE) :]: size for name, (_, size, _) in found if name.startswith(_CODE)}


def _sections(cubin: bytes) -> dict[str, tuple[int, int, int]]:
    """Return the start, the bytes and the linked section of each section, by name."""
    headers = _headers(cubin)
    (named,) = struct.unpack_from("<H", cubin, 62)
    names = headers[named][1]
    return {_word(cubin, names + name): (at, size, link) for name, at, size, link in headers}


def _headers(cubin: bytes) -> list[tuple[int, int, int, int]]:
    (start,) = struct.unpack_from("<Q", cubin, 40)
    each, many = struct.unpack_from("<HH", cubin, 58)
    return [struct.unpack_from("<I20xQQI", cubin, start + n * each) for n in range(many)]


def _word(cubin: bytes, begin: int) -> str:
    return cubin[begin : cubin.index(b"\0", begin)].decode()
