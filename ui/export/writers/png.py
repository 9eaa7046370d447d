"""PNG and APNG, written a piece at a time.

Qt's PNG writer takes three times as long at 1080p. PyAV's APNG encoder compresses every frame in
several ways to keep the smallest: 60 frames of 720p take it 7.2 s of the processor and 2.49 MB (2.6
s and 7.07 MB without alpha), this one 0.85 s and 2.60 MB. Delays and the endless loop are the same,
but its muxer drops the note. `make bench` measures both.

References: PNG (Third Edition), W3C, sections 5 and 11.
"""

from __future__ import annotations

import struct
import zlib
from typing import IO

import numpy as np
from numpy.typing import NDArray

from simulator.base.limits import CHUNKS, NOTE_BYTES
from ui.export.writers.pixels import Patch

SIGNATURE = b"\x89PNG\r\n\x1a\n"
KEYWORD = "Tilescope"  # keyword of the text chunk with the note
_LEVEL = 4

Pixels = NDArray[np.uint8]
"""(height, width, 4) uint8: blue, green, red, alpha (not premultiplied) or nothing."""


def write_png(out: IO[bytes], pixels: Pixels, *, alpha: bool, note: str) -> None:
    """Write one picture.

    pixels: (height, width, 4) uint8, BGRA.
    """
    height, width = pixels.shape[:2]
    out.write(SIGNATURE)
    _chunk(out, b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 6 if alpha else 2, 0, 0, 0))
    _chunk(out, b"iTXt", _text(note))
    _chunk(out, b"IDAT", _packed(pixels, alpha))
    _chunk(out, b"IEND", b"")


class ApngWriter:
    """Writes an animation; after the first frame, only the differences.

    frames, fps: number of frames, in all and a second.
    alpha: whether frames have transparent parts: then they replace the picture below them.
    """

    def __init__(
        self, out: IO[bytes], size: tuple[int, int], frames: int, fps: int, alpha: bool, note: str
    ) -> None:
        self._out, self._fps = out, fps
        self._blend = 0 if alpha else 1
        self._count = 0
        header = struct.pack(">IIBBBBB", *size, 8, 6, 0, 0, 0)
        out.write(SIGNATURE)
        _chunk(out, b"IHDR", header)
        _chunk(out, b"iTXt", _text(note))
        _chunk(out, b"acTL", struct.pack(">II", frames, 0))

    def add(self, patch: Patch) -> None:
        """Write the next frame."""
        height, width = patch.pixels.shape[:2]
        place = struct.pack(">IIIII", self._number(), width, height, patch.x, patch.y)
        _chunk(self._out, b"fcTL", place + struct.pack(">HHBB", 1, self._fps, 0, self._blend))
        data = _packed(patch.pixels, True)
        if self._count == 1:
            _chunk(self._out, b"IDAT", data)
        else:
            _chunk(self._out, b"fdAT", struct.pack(">I", self._number()) + data)

    def close(self) -> None:
        """Write the end."""
        _chunk(self._out, b"IEND", b"")

    def _number(self) -> int:
        self._count += 1
        return self._count - 1


def read_note(file: IO[bytes]) -> str | None:
    """Return our text chunk of a PNG or APNG; None if there is none."""
    place, head = 8, file.read(16)
    if len(head) < 16 or head[:8] != SIGNATURE:
        return None
    for _ in range(CHUNKS):
        length, kind = struct.unpack(">I4s", head[-8:])
        if kind == b"iTXt" and length <= NOTE_BYTES:
            keyword, _, rest = file.read(length).partition(b"\0")
            if keyword == KEYWORD.encode() and rest[:2] == b"\0\0":
                return rest[2:].split(b"\0", 2)[-1].decode("utf-8", errors="replace")
        place += 12 + length
        file.seek(place)
        head = file.read(8)
        if len(head) < 8 or kind == b"IEND":
            break
    return None


def _chunk(out: IO[bytes], kind: bytes, data: bytes) -> None:
    out.write(struct.pack(">I", len(data)) + kind)
    out.write(data)
    out.write(struct.pack(">I", zlib.crc32(data, zlib.crc32(kind))))


def _text(note: str) -> bytes:
    return KEYWORD.encode() + b"\0\0\0\0\0" + note.encode("utf-8")


def _packed(pixels: Pixels, alpha: bool) -> bytes:
    """Return the compressed lines: flat colours need no filter."""
    height, width = pixels.shape[:2]
    channels = 4 if alpha else 3
    lines = np.empty((height, 1 + channels * width), dtype=np.uint8)
    lines[:, 0] = 0
    body = lines[:, 1:].reshape(height, width, channels)
    # One channel at a time, because numpy copies a reversed axis several times slower.
    for to, place in enumerate((2, 1, 0, 3)[:channels]):
        body[..., to] = pixels[..., place]
    return zlib.compress(lines.data, _LEVEL)
