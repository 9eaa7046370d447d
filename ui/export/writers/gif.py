"""The comment of a GIF, written at the end, where a stream can still put it.

References: GIF89a, sections 24 and 27.
"""

from __future__ import annotations

from typing import IO

_TRAILER, _COMMENT = b"\x3b", b"\x21\xfe"


def add_comment(file: IO[bytes], text: str) -> None:
    """Put a comment before the trailer, the end of a finished GIF."""
    data = text.encode("utf-8")
    file.seek(-1, 2)
    file.write(_COMMENT)
    for start in range(0, len(data), 255):
        part = data[start : start + 255]
        file.write(bytes([len(part)]) + part)
    file.write(b"\0" + _TRAILER)
