"""A picture that a model was given, and the piece that each token stands for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulator.base.errors import refuse
from simulator.base.limits import PICTURE_PIXELS

IMAGE, BOXES = "image", "patch_boxes"
"""Names of the two tensors in an input file, which has both or none."""
Box = tuple[int, int, int, int]
"""Left, top, right and bottom of a piece in pixels of the picture; right and bottom are outside."""


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """A picture in pieces, which are labels like tokens: nothing is computed from them."""

    pixels: NDArray[np.uint8]  # (height, width, 3) uint8, read-only: red, green and blue
    # (Nk, 4) int32, read-only: `Box` of each key, four zeros for a key that is no piece
    boxes: NDArray[np.int32]

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Picture)
            and np.array_equal(self.boxes, other.boxes)
            and np.array_equal(self.pixels, other.pixels)
        )

    def __hash__(self) -> int:
        return hash((self.pixels.shape, self.boxes.tobytes()))

    def piece(self, key: int) -> Box | None:
        """Return where the piece of a key lies; None if the key is no piece."""
        if not (0 <= key < len(self.boxes) and self.boxes[key].any()):
            return None
        left, top, right, bottom = self.boxes[key].tolist()
        return left, top, right, bottom


def checked_picture(
    source: str, pixels: NDArray[np.uint8] | None, boxes: NDArray[np.float32] | None, keys: int
) -> Picture | None:
    """Return the picture of a file with `keys` keys, or None if the file has neither tensor.

    Edges between two pixels go to the nearer one.

    Raises InputError: one tensor is there without the other, or has another shape; the picture is
        too large; or a piece is not inside the picture.
    """
    if pixels is None and boxes is None:
        return None
    for name, found, other in ((BOXES, boxes, IMAGE), (IMAGE, pixels, BOXES)):
        if found is None:
            raise refuse(source, f"tensor {name}", "", f"it beside {other}, or neither of them")
    assert pixels is not None
    assert boxes is not None
    if pixels.ndim != 3 or pixels.shape[2] != 3 or not pixels.size:
        expected = "(height, width, 3): red, green and blue of each pixel"
        raise refuse(source, f"shape of {IMAGE}", pixels.shape, expected)
    high, wide = pixels.shape[:2]
    if high * wide > PICTURE_PIXELS:
        raise refuse(source, f"pixels of {IMAGE}", high * wide, f"at most {PICTURE_PIXELS}")
    if boxes.shape != (keys, 4):
        expected = f"({keys}, 4): left, top, right and bottom of the piece of each key"
        raise refuse(source, f"shape of {BOXES}", boxes.shape, expected)
    left, top, right, bottom = boxes.T
    inside = (left >= 0) & (left < right) & (right <= wide)
    inside &= (top >= 0) & (top < bottom) & (bottom <= high)
    inside |= ~boxes.any(axis=1)
    if not inside.all():
        key = int(inside.argmin())
        expected = f"left < right ≤ {wide} and top < bottom ≤ {high}, none below 0, or four zeros"
        raise refuse(source, f"{BOXES}, key {key}", boxes[key].tolist(), expected)
    whole = np.rint(boxes).astype(np.int32)
    whole[:, 2:] = np.maximum(whole[:, 2:], whole[:, :2] + boxes.any(axis=1, keepdims=True))
    pixels.flags.writeable = whole.flags.writeable = False
    return Picture(pixels, whole)
