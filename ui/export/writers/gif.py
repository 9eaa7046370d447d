"""The comment of a GIF: it is written at the end, where a stream can still put it, and read.

References
----------
GIF89a, sections 18, 20, 24 and 27.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

from simulator.base.limits import BLOCKS, CHUNKS, NOTE_BYTES

_TRAILER, _EXTENSION, _IMAGE, _COMMENT = b"\x3b", b"\x21", b"\x2c", b"\xfe"


def add_comment(file: IO[bytes], text: str) -> None:
    """Put a comment before the trailer, which is the end of a finished GIF."""
    data = text.encode("utf-8")
    file.seek(-1, 2)
    file.write(_EXTENSION + _COMMENT)
    for start in range(0, len(data), 255):
        part = data[start : start + 255]
        file.write(bytes([len(part)]) + part)
    file.write(b"\0" + _TRAILER)


def read_comment(file: IO[bytes]) -> str | None:
    """Return the last comment of a GIF, None if there is none."""
    head = file.read(13)
    if head[:3] != b"GIF" or len(head) < 13:
        return None
    file.seek(_table(head[10]), 1)
    found = None
    blocks = iter(range(BLOCKS))
    for _ in range(CHUNKS):
        kind = file.read(1)
        if kind not in (_EXTENSION, _IMAGE):
            break
        if kind == _IMAGE:
            place = file.read(9)
            if len(place) < 9:
                break
            file.seek(_table(place[8]) + 1, 1)  # colours, and the code size
            _skip(file, blocks)
        elif file.read(1) == _COMMENT:
            found = _blocks(file).decode("utf-8", errors="replace")
        else:
            _skip(file, blocks)
    return found


def _table(flags: int) -> int:
    """Return how many bytes of colours follow."""
    return 3 * 2 ** ((flags & 7) + 1) if flags & 0x80 else 0


def _skip(file: IO[bytes], blocks: Iterator[int]) -> None:
    for _ in blocks:
        length = int.from_bytes(file.read(1), "little")
        if not length:
            return
        file.seek(length, 1)


def _blocks(file: IO[bytes]) -> bytes:
    parts = []
    while length := int.from_bytes(file.read(1), "little"):
        parts.append(file.read(length))
        if 255 * len(parts) > NOTE_BYTES + 255:
            break
    return b"".join(parts)
