"""A mask as a picture: hidden, partly visible and visible parts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtGui import QColor, QImage

from ui.look.draw import mixed
from ui.look.theme import Theme

_PARTLY = 0.55
"""Share of the colour in a part with some visible pairs."""


def mask_image(kinds: NDArray[np.uint8], theme: Theme) -> QImage:
    """Return one pixel for each part: `kinds` says which are hidden, partly visible, visible."""
    bright = QColor(theme.tensor("P"))
    colours = [QColor(theme.empty), mixed(theme.empty, theme.tensor("P"), _PARTLY), bright]
    rgb = np.array([[c.red(), c.green(), c.blue()] for c in colours], dtype=np.uint8)[kinds]
    rgb = np.ascontiguousarray(rgb)
    down, across = kinds.shape
    image = QImage(rgb.data, across, down, 3 * across, QImage.Format.Format_RGB888)
    return image.copy()  # the array does not outlive this call
