"""The camera: the part of the score matrix on show on the way from one view to another."""

from __future__ import annotations

from collections.abc import Callable
from math import log2

from PySide6.QtCore import QAbstractAnimation, QEasingCurve, QObject, QVariantAnimation

from simulator.program.playback import rescaling
from simulator.run.motion import Motion
from simulator.run.rescales import rescales, row_at_hand
from ui.board.layout import Viewport, clamped, framing, visible_count

GLIDE_MS, DOUBLING_MS, LONGEST_MS = 320, 110, 2000
"""Milliseconds of the camera's way from one view to another: at least, more for each doubling or
halving of the zoom, and at most."""


def between(
    shape: tuple[int, int, int, int], start: Viewport, end: Viewport, share: float
) -> Viewport:
    """Return the view at a share of the way; on screen the middle moves evenly.

    shape: ``Nq, Nk, d, dv``.
    share: 0 to 1.
    """
    if share <= 0 or share >= 1:
        return end if share >= 1 else start
    ratio = end.zoom / start.zoom
    zoom = start.zoom * ratio**share
    # Share of the change in the view's size done so far. The middle goes as far, so the point that
    # is zoomed about stays in place.
    done = share if ratio == 1 else (1 / zoom - 1 / start.zoom) / (1 / end.zoom - 1 / start.zoom)
    places = []
    for count, begin, stop in ((shape[1], start.x, end.x), (shape[0], start.y, end.y)):
        first = begin + visible_count(count, start.zoom) / 2
        last = stop + visible_count(count, end.zoom) / 2
        places.append(first + (last - first) * done - visible_count(count, zoom) / 2)
    return clamped(shape, Viewport(zoom, *places))


def at_row(motion: Motion, share: float, view: Viewport, row: int | None) -> Viewport:
    """Return the view during a rescale: the camera goes to the rescaled row and back.

    share: of the motion, 0 to 1.
    view: the view without the rescale; returned for any other op.
    """
    now = motion.after
    if not (0 < share < 1 and rescales(now)):
        return view
    shown, near = row_at_hand(now, row), rescaling(share).near
    if shown is None or near <= 0:
        return view
    w, stop = now.program.workload, now.visit.cols.stop
    begin = max(now.begun_at * w.cols, stop - _MOST_KEYS)
    shape = (w.seqlen_q, w.seqlen_k, w.head_dim, w.value_dim)
    return between(shape, view, framing(shape, (shown, shown + 1), (begin, stop)), near)


_MOST_KEYS = 40
"""Most keys of a row in sight during its rescale: the last ones."""


def glide_ms(start: Viewport, end: Viewport) -> int:
    """Return how long the camera takes from one view to another, in milliseconds."""
    return min(round(GLIDE_MS + DOUBLING_MS * abs(log2(end.zoom / start.zoom))), LONGEST_MS)


class Camera(QObject):
    """Moves a view: at once, or gliding."""

    def __init__(self, parent: QObject, moved: Callable[[], None]) -> None:
        super().__init__(parent)
        self.view = Viewport()
        """The part of the matrix on show."""
        self.target = Viewport()
        """The view at the end of the way."""
        self.glides = False
        """Whether the camera may take time to move."""
        self._start, self._shape = Viewport(), (1, 1, 1, 1)
        self._moved = moved
        self._way = QVariantAnimation(self)
        self._way.setStartValue(0.0)
        self._way.setEndValue(1.0)
        self._way.setEasingCurve(QEasingCurve.Type.InOutCubic)
        self._way.valueChanged.connect(self._pass)

    @property
    def gliding(self) -> bool:
        """Whether the camera is on its way."""
        return self._way.state() == QAbstractAnimation.State.Running

    def go(self, view: Viewport) -> None:
        """Show a view now."""
        self._way.stop()
        self.target = view
        self._show(view)

    def glide(self, view: Viewport, shape: tuple[int, int, int, int]) -> None:
        """Go to a view of a matrix: glide if the camera `glides`, else jump."""
        if not self.glides:
            self.go(view)
        elif view != self.target:
            self._way.stop()
            self._start, self._shape, self.target = self.view, shape, view
            self._way.setDuration(glide_ms(self.view, view))
            self._way.start()

    def _pass(self, share: float) -> None:
        self._show(between(self._shape, self._start, self.target, share))

    def _show(self, view: Viewport) -> None:
        if view != self.view:
            self.view = view
            self._moved()
