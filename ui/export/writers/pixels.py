"""The bytes of an image, and the changes between two images."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtGui import QImage


def pixels_of(image: QImage) -> NDArray[np.uint8]:
    """Return (height, width, 4) uint8: blue, green, red, alpha not premultiplied.

    Without alpha the array is the image's own memory, which exists as long as the image.
    """
    if image.format() is QImage.Format.Format_RGB32:
        return _memory(image)
    straight = image.convertToFormat(QImage.Format.Format_ARGB32)
    return _memory(straight).copy()


def _memory(image: QImage) -> NDArray[np.uint8]:
    height, width = image.height(), image.width()
    return np.frombuffer(image.constBits(), np.uint8).reshape(height, width, 4)


@dataclass(frozen=True, slots=True)
class Patch:
    """The pixels that must be drawn on one picture to get the next."""

    # x, y: its corner, both even
    x: int
    y: int
    pixels: NDArray[np.uint8]  # (height, width, 4) uint8, BGRA


class Changes:
    """Remembers a picture, to find the differences in the next one.

    opaque: whether the fourth channel is ignored. If so, patches are drawn over the picture and are
        transparent where nothing differs, which compresses well; otherwise they replace it.
    """

    def __init__(self, opaque: bool) -> None:
        self._opaque = opaque
        self._last: NDArray[np.uint32] | None = None

    def patch(self, pixels: NDArray[np.uint8]) -> Patch:
        """Return the patch for the next picture."""
        words = pixels.view(np.uint32)[..., 0]
        if self._last is None:
            self._last = words.copy()
            return self._made(0, 0, words, None)
        off = words != self._last
        rows = np.flatnonzero(off.any(axis=1))
        if not len(rows):
            return self._made(0, 0, words[:1, :1], None)  # a pixel that does not change
        top, bottom = int(rows[0]) // 2 * 2, int(rows[-1]) + 1
        cols = np.flatnonzero(off[top:bottom].any(axis=0))
        left, right = int(cols[0]) // 2 * 2, int(cols[-1]) + 1
        part = slice(top, bottom), slice(left, right)
        self._last[part] = words[part]
        return self._made(left, top, words[part], off[part])

    def _made(
        self, x: int, y: int, words: NDArray[np.uint32], off: NDArray[np.bool_] | None
    ) -> Patch:
        if self._opaque:
            words = words | np.uint32(0xFF000000)
            if off is not None:
                words *= off
        out = np.ascontiguousarray(words)
        return Patch(x, y, out.view(np.uint8).reshape(*out.shape, 4))
