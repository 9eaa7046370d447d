"""Which query row sees which key."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Mask:
    """The visible pairs of a score matrix, aligned at the bottom right.

    With ``i' = i + (seqlen_k - seqlen_q)``, row `i` sees key `j` when all that are set hold:
    causal, ``j <= i'``; window `w`, ``i' - j < w`` (without causal also ``j - i' < w``) or
    ``j < sinks``.

    Attributes
    ----------
    seqlen_q, seqlen_k : int
        Rows and keys.
    causal : bool
        Whether a row sees no later key.
    window : int
        How far a row sees; 0 for no window.
    sinks : int
        First keys that the window never hides.

    References
    ----------
    FlashAttention 2.1 for the alignment; Beltagy et al. 2020 (window); Xiao et al. 2023 (sinks).
    """

    seqlen_q: int
    seqlen_k: int
    causal: bool = False
    window: int = 0
    sinks: int = 0

    @property
    def shift(self) -> int:
        """``i' - i``, negative when there are fewer keys than queries."""
        return self.seqlen_k - self.seqlen_q

    @property
    def hides(self) -> bool:
        """Whether the mask can hide anything at all."""
        return self.causal or self.window > 0

    def visible(self, rows: range, keys: range) -> NDArray[np.bool_]:
        """Return which pairs are visible, bool of shape (len(rows), len(keys))."""
        i = np.arange(rows.start, rows.stop)[:, None] + self.shift
        j = np.arange(keys.start, keys.stop)[None, :]
        seen = np.ones((len(rows), len(keys)), dtype=np.bool_)
        if self.window:
            seen = i - j < self.window
            if not self.causal:
                seen &= j - i < self.window
            seen |= j < self.sinks
        if self.causal:
            seen &= j <= i
        return seen
